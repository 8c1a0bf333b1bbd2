//! Replication between nodes: the stream of changes from a primary to its replicas, and how a replica gets there.
//!
//! After each batch a primary sends what has changed ([`complete_batch`]). A replica asks for the stream from its
//! offset on ([`request_sync`]), and gets what it has missed (a partial synchronization) or all data (a full one). It
//! applies the stream as a log is replayed ([`Replay`]): its commands are never refused, and keys expire only when the
//! primary deletes them. Messages reach a node through [`receive`], in the order in which they were sent.
//!
//! Costs: a node without replicas and primary has none of this. For a full synchronization the primary copies its data;
//! the replica shares the copy until it changes.
//!
//! Source: the behaviour of Redis 8.0.6.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::cluster::NodeId;
use crate::engine::exec::ctx::databases;
use crate::engine::exec::lag::writes;
use crate::engine::exec::replay::Replay;
use crate::engine::exec::{blocking, cluster, failover, link_sessions, sleep, snapshots, tracking};
use crate::engine::spec::{CommandId, Error, Now, ServerError};
use crate::engine::state::replication::{
    Content, FullSync, History, Lag, Link, LinkState, Replica, ReplicaWait, Replication, ReplicationId,
    ReplicationMessage,
};
use crate::engine::state::{Databases, Effect, LateReply, NodeMessage, Origin, SessionId};
use crate::resp::{Limits, Parser};

/// The limits of the stream, which comes from a node.
pub(super) const STREAM_LIMITS: Limits = Limits { max_bulk_bytes: usize::MAX, authenticated: true };

/// The replication of this node, which begins if there was none.
pub(super) fn replication(engine: &mut Engine) -> &mut Replication {
    let id = initial_id(engine);
    engine.peers.replication.get_or_insert_with(|| Box::new(Replication::of(id)))
}

/// The id of the history of a server without replicas and primary: it follows from the id of its process.
pub fn initial_id(engine: &Engine) -> ReplicationId {
    ReplicationId::named(&format!("{} {}", engine.host.facts().run_id, engine.switches.replid_generation))
}

/// The replication id and the offset of the present data.
pub fn history(engine: &Engine) -> History {
    let own = engine.peers.replication.as_ref().map(|replication| replication.history);
    own.unwrap_or_else(|| History { id: initial_id(engine), offset: engine.effects.propagation.commands() })
}

/// A fresh id of a history.
fn random_id(engine: &mut Engine) -> ReplicationId {
    ReplicationId::random(|| engine.generator.u64(..))
}

/// Changes the replication id, so that no replica can continue from these data by a partial synchronization. Those that
/// are connected stay.
pub(super) fn change_replication_id(engine: &mut Engine) {
    engine.switches.replid_generation = engine.switches.replid_generation.wrapping_add(1);
    let id = initial_id(engine);
    if let Some(replication) = &mut engine.peers.replication {
        (replication.history.id, replication.previous) = (id, None);
    }
}

/// The link to the primary, if this node is a replica.
pub(super) fn link(engine: &mut Engine) -> Option<&mut Link> {
    engine.peers.replication.as_mut()?.link.as_mut()
}

/// Sends something to another node, or to all replicas of this one.
pub(super) fn send(engine: &mut Engine, to: Option<NodeId>, content: Content) {
    let Some(from) = cluster::own_id(engine) else { return };
    let message = NodeMessage::Replication(ReplicationMessage { from, to, content });
    if let (Some(kind), Some(view)) = (message.kind(), &mut engine.peers.cluster) {
        view.sent.add(kind, 1);
    }
    engine.effects.push(Effect::SendToNodes(Box::new(message)));
}

/// Sends the replicas what has changed, after a batch, and answers those that had to wait for its end.
#[inline]
pub fn complete_batch(engine: &mut Engine) {
    // Nodes that have files have no replicas: their stream is for the log of changes.
    if engine.peers.replication.is_some() && !engine.persistence.aof.is_on() {
        send_stream(engine);
        answer_waiting(engine);
        link_sessions::update(engine);
    }
}

/// The id of this node and its offset in the stream, if that has changed since the last call.
#[inline]
pub fn changed_offset(engine: &mut Engine) -> Option<(NodeId, u64)> {
    let replication = engine.peers.replication.as_mut()?;
    let offset = replication.history.offset;
    let has_changed = std::mem::replace(&mut replication.published, offset) != offset;
    let view = engine.peers.cluster.as_ref().filter(|_| has_changed)?;
    Some((view.myself().id, offset))
}

fn send_stream(engine: &mut Engine) {
    if !engine.effects.propagation.has_more() {
        return;
    }
    let taken = engine.effects.propagation.take();
    let settings = Arc::clone(&engine.settings.replication);
    let Some(replication) = &mut engine.peers.replication else { return };
    if !taken.bytes.is_empty() {
        let offset = replication.append(&taken.bytes, &settings);
        if !replication.replicas.is_empty() {
            send(engine, None, Content::Stream { offset, bytes: taken.bytes.into() });
        }
    }
    if taken.needs_base {
        let id = random_id(engine);
        if let Some(replication) = &mut engine.peers.replication {
            replication.begin_history(id);
        }
        send(engine, None, Content::Restart);
    }
}

/// Whether a message of another node is for this one.
pub fn is_addressed_by(engine: &Engine, message: &ReplicationMessage) -> bool {
    match message.to {
        Some(to) => cluster::is_myself(engine, to),
        None => is_linked_to(engine, message.from),
    }
}

fn is_linked_to(engine: &Engine, primary: NodeId) -> bool {
    let link = engine.peers.replication.as_ref().and_then(|replication| replication.link.as_ref());
    link.is_some_and(|link| link.primary == primary)
}

/// Takes a message of another node that is for this one.
pub fn receive(engine: &mut Engine, message: &ReplicationMessage) {
    let (from, now) = (message.from, engine.timing.now);
    if let Some(link) = link(engine).filter(|link| link.primary == from) {
        link.last_message = now;
    }
    match &message.content {
        Content::Synchronize(known) => answer_sync_request(engine, from, *known),
        Content::Acknowledge(offset) => take_acknowledgement(engine, from, *offset),
        Content::Leave => forget_replica(engine, from),
        Content::BeginFailover => failover::pause_for(engine, from),
        _ if !is_linked_to(engine, from) => {}
        // A node that asks twice before it is answered is connected when the second answer comes.
        Content::Continue { .. } | Content::FullSync(_) if link(engine).is_some_and(|link| link.is_up()) => {}
        Content::Continue { id, offset, bytes } => begin_partial(engine, *id, *offset, bytes),
        Content::FullSync(data) => begin_full(engine, data),
        Content::Restart => request_sync(engine),
        Content::Stream { offset, bytes } => take_stream(engine, *offset, bytes),
        Content::Paused(offset) => failover::begin_at(engine, *offset),
    }
}

/// Asks the primary for the stream of changes. If it does not run, it is asked when it does again.
pub(super) fn request_sync(engine: &mut Engine) {
    // A link that is closed behind DEBUG SLEEP in a transaction is after the sleep.
    let now = sleep::ends(engine).unwrap_or(engine.timing.now);
    let Some(replication) = &mut engine.peers.replication else { return };
    let known = replication.history;
    let Some(link) = &mut replication.link else { return };
    link.state = link.state.ended(now);
    link.queue.clear();
    let primary = link.primary;
    send(engine, Some(primary), Content::Synchronize(known));
}

/// Answers a node that wants to be a replica: with what it has missed, or with all data.
fn answer_sync_request(engine: &mut Engine, replica: NodeId, known: History) {
    if is_replica(engine) {
        return;
    }
    if must_wait(engine) {
        let waiting = &mut replication(engine).waiting_replicas;
        waiting.retain(|(other, _)| *other != replica);
        waiting.push((replica, known));
        return;
    }
    if !engine.effects.propagation.is_on() {
        engine.effects.propagation.turn_on();
    }
    let (stream_offset, now) = (engine.effects.propagation.offset(), engine.timing.now);
    let replication = replication(engine);
    replication.align(stream_offset);
    let missed = replication.missed_since(known);
    replication.replicas.retain(|other| other.id != replica);
    replication.replicas.push(Replica { id: replica, offset: 0, acknowledged: now, session: None });
    let history = replication.history;
    let answer = match missed {
        Some(bytes) => {
            engine.stats.partial_syncs += 1;
            Content::Continue { id: history.id, offset: known.offset, bytes: bytes.into() }
        }
        None => {
            engine.stats.full_syncs += 1;
            engine.stats.refused_partial_syncs += 1;
            let functions = engine.scripts.functions.registry.sources();
            Content::FullSync(Arc::new(FullSync { history, databases: engine.databases.fork(), functions }))
        }
    };
    send(engine, Some(replica), answer);
    announce_offset(engine);
}

/// Whether a node that wants to be a replica is answered later: behind a script, of which the stream does not have yet
/// what it has done so far, or behind a pause of clients, as such a node is one of them.
fn must_wait(engine: &Engine) -> bool {
    engine.scripts.is_busy() || engine.timing.pause.holds_back(engine.timing.now, false).is_some()
}

/// Answers the replicas that had to wait.
fn answer_waiting(engine: &mut Engine) {
    let is_to_wait = must_wait(engine);
    let Some(replication) = engine.peers.replication.as_mut().filter(|_| !is_to_wait) else { return };
    for (replica, known) in std::mem::take(&mut replication.waiting_replicas) {
        answer_sync_request(engine, replica, known);
    }
}

/// Goes on with the stream of the primary from where this node was.
fn begin_partial(engine: &mut Engine, id: ReplicationId, offset: u64, bytes: &[u8]) {
    let is_next = |replication: &&mut Box<Replication>| replication.history.offset == offset;
    let Some(replication) = engine.peers.replication.as_mut().filter(is_next) else { return };
    replication.rename(id);
    begin_link(engine);
    apply(engine, bytes);
}

/// Takes all data of the primary in the place of its own.
fn begin_full(engine: &mut Engine, data: &FullSync) {
    let mut databases = Databases::forked(&data.databases);
    databases.index_hash_slots();
    snapshots::replace_data(engine, databases, data.functions.clone());
    if let Some(replication) = &mut engine.peers.replication {
        replication.adopt(data.history);
    }
    begin_link(engine);
    acknowledge(engine);
}

/// Opens the link to the primary, and the session in which its stream is applied.
fn begin_link(engine: &mut Engine) {
    end_link(engine);
    let primary = engine.peers.cluster.as_ref().and_then(|view| Some(view.primary()?.id));
    let origin = Origin { is_primary: true, ..Origin::default() };
    let session = link_sessions::open_link(engine, primary, origin);
    if let Some(link) = link(engine) {
        (link.session, link.state) = (Some(session), LinkState::Up);
    }
    announce_offset(engine);
}

/// Announces this node's offset in the stream to all nodes; they do not show a replica with offset 0 to clients.
fn announce_offset(engine: &mut Engine) {
    let offset = engine.peers.replication.as_ref().map_or(0, |replication| replication.history.offset);
    cluster::change(engine, |view| view.myself_mut().offset = offset);
}

/// Closes the session of the link to the primary.
fn end_link(engine: &mut Engine) {
    if let Some(session) = link(engine).and_then(|link| link.session.take()) {
        engine.sessions.close(session);
    }
}

/// Queues a part of the primary's stream, and applies what is due: at once, or with the lag that the test kit has set.
fn take_stream(engine: &mut Engine, offset: u64, bytes: &Arc<[u8]>) {
    let now = engine.timing.now;
    let Some(replication) = &mut engine.peers.replication else { return };
    let lag = replication.lag;
    let Some(link) = replication.link.as_mut().filter(|link| link.is_up()) else { return };
    let queued = link.queued_bytes();
    // A part that was on its way when all data were copied is among these.
    if offset != replication.history.offset + queued as u64 {
        return;
    }
    match lag {
        Lag::Milliseconds(_) => link.queue.push_back((lag.due(now), Arc::clone(bytes))),
        Lag::Writes(_) => link.queue.extend(writes(bytes).into_iter().map(|write| (now, write))),
    }
    apply_due(engine);
}

/// When the next part of the stream is to be applied.
pub(super) fn next_part(engine: &Engine) -> Option<Now> {
    let replication = engine.peers.replication.as_ref()?;
    let queue = &replication.link.as_ref()?.queue;
    queue.front().filter(|_| queue.len() > replication.lag.held_back()).map(|(due, _)| *due)
}

/// The reason why a replica's value of a key may be stale.
pub(super) enum Staleness {
    /// It is disconnected.
    Disconnected,
    /// It has got a command of that name, and not applied it yet.
    Unapplied(String),
}

/// The reason why this node's value of a key may be stale; `None` if it is not, or if this node is a primary.
pub(super) fn staleness(engine: &Engine, key: &[u8]) -> Option<Staleness> {
    let link = engine.peers.replication.as_ref()?.link.as_ref()?;
    if !link.is_up() {
        return Some(Staleness::Disconnected);
    }
    link.queue.iter().find_map(|(_, part)| {
        let (mut parser, mut start) = (Parser::new(), 0);
        while let Ok(Some(request)) = parser.next(&part[start..], &STREAM_LIMITS) {
            let entry = engine.table.resolve(request).ok().map(|(id, _)| engine.table.entry(id))?;
            let keys = entry.command.keys_of(request);
            let is_flush = matches!(&*entry.name, "flushall" | "flushdb");
            if is_flush || keys.into_iter().any(|(place, _)| request.get(place) == Some(key)) {
                return Some(Staleness::Unapplied(entry.name.to_string()));
            }
            start += parser.consumed();
        }
        None
    })
}

/// Applies the parts of the stream that are due.
pub(super) fn apply_due(engine: &mut Engine) {
    while next_part(engine).is_some_and(|due| due <= engine.timing.now) {
        let Some((_, bytes)) = link(engine).and_then(|link| link.queue.pop_front()) else { return };
        apply(engine, &bytes);
    }
}

/// Applies a part of the stream, and acknowledges it to the primary.
fn apply(engine: &mut Engine, bytes: &[u8]) {
    let Some(session) = link(engine).and_then(|link| link.session) else { return };
    let mut replay = Replay::begin_in(engine, session);
    let (mut parser, mut start) = (Parser::new(), 0);
    while let Ok(Some(request)) = parser.next(&bytes[start..], &STREAM_LIMITS) {
        // A command that this node does not know is not in the stream of one of its kind.
        let _ = replay.run(engine, request);
        start += parser.consumed();
    }
    replay.end_part(engine);
    let settings = Arc::clone(&engine.settings.replication);
    if let Some(replication) = &mut engine.peers.replication {
        replication.append(bytes, &settings);
    }
    acknowledge(engine);
    failover::begin_if_reached(engine);
}

/// Tells the primary how far the stream is applied.
fn acknowledge(engine: &mut Engine) {
    let Some(replication) = &engine.peers.replication else { return };
    let offset = replication.history.offset;
    if let Some(link) = &replication.link {
        let primary = link.primary;
        send(engine, Some(primary), Content::Acknowledge(offset));
    }
}

/// Records the offset that a replica has acknowledged, and ends the waits for it.
fn take_acknowledgement(engine: &mut Engine, from: NodeId, offset: u64) {
    let now = engine.timing.now;
    let Some(replication) = &mut engine.peers.replication else { return };
    let Some(replica) = replication.replicas.iter_mut().find(|replica| replica.id == from) else { return };
    (replica.offset, replica.acknowledged) = (offset, now);
    let session = replica.session.and_then(|session| engine.sessions.get_mut(session));
    session.into_iter().for_each(|session| session.active = now);
    end_waits(engine);
}

/// Ends the waits of clients whose writes enough replicas have, and updates the count that the others get at their
/// timeout.
fn end_waits(engine: &mut Engine) {
    let Some(replication) = &mut engine.peers.replication else { return };
    let waits = std::mem::take(&mut replication.waits);
    for wait in waits {
        let Some(replication) = &mut engine.peers.replication else { return };
        let count = replication.count_at(wait.offset);
        let reply = LateReply::Integer(count as i64);
        if count >= wait.count {
            blocking::complete(engine, wait.session, wait.command, Ok(reply));
        } else if engine.observers.waiting.set_timeout_reply(wait.session, wait.command, reply) {
            replication.waits.push(wait);
        }
    }
}

/// The number of replicas that have all writes of a client, and the offset behind these.
pub fn count_replicas_with_writes_of(engine: &Engine, session: SessionId) -> (usize, u64) {
    let written = engine.sessions.get(session).map_or(0, |session| session.written_offset);
    let Some(replication) = &engine.peers.replication else { return (0, 0) };
    let offset = replication.offset_of(written);
    (replication.count_at(offset), offset)
}

/// The number of replicas that do not have all writes: of a primary, those that are connected to it; a replica counts
/// itself while it is disconnected or has not applied all that its primary has sent.
pub fn replicas_behind(engine: &Engine) -> usize {
    let Some(replication) = &engine.peers.replication else { return 0 };
    if let Some(link) = &replication.link {
        let in_flight = engine.peers.in_flight.as_ref();
        let has_more = in_flight.is_some_and(|in_flight| in_flight.has_data_of(link.primary));
        return usize::from(!link.is_up() || !link.queue.is_empty() || has_more);
    }
    let offset = replication.offset_of(engine.effects.propagation.offset());
    replication.replicas.len() - replication.count_at(offset)
}

/// Answers a client that waits in a command when that many replicas have the stream up to an offset.
pub fn await_replicas(engine: &mut Engine, session: SessionId, command: CommandId, count: usize, offset: u64) {
    if engine.peers.cluster.is_none() {
        // It waits for its timeout, as there will be no replicas.
        return;
    }
    let waits = &mut replication(engine).waits;
    // Its last wait may have ended by its timeout.
    waits.retain(|wait| wait.session != session);
    waits.push(ReplicaWait { session, command, count, offset });
}

/// The number of replicas that have all writes of a client in files. Replicas keep no files, so it is 0 if the client
/// has written anything, and otherwise all of them.
pub fn replicas_that_have_synced(engine: &Engine, session: SessionId) -> usize {
    let has_written = engine.sessions.get(session).is_some_and(|client| client.written_offset > 0);
    let replicas = engine.peers.replication.as_ref().map_or(0, |replication| replication.replicas.len());
    if has_written { 0 } else { replicas }
}

/// Makes this node a replica of another one, whose data it gets.
pub(super) fn follow(engine: &mut Engine, primary: NodeId) {
    let (now, was_replica) = (engine.timing.now, is_replica(engine));
    leave(engine, Some(primary));
    end_link(engine);
    let replication = replication(engine);
    replication.link = Some(Link::to(primary, replication.link.as_ref(), now));
    let had_replicas = !std::mem::take(&mut replication.replicas).is_empty();
    replication.waits.clear();
    if had_replicas {
        // A replica has no stream for others: its replicas lose their link until they follow the new primary.
        send(engine, None, Content::Restart);
    }
    engine.timing.set_replica(true);
    engine.effects.propagation.turn_off();
    engine.observers.fast_path.forget();
    if !was_replica {
        blocking::end_all(engine, &Error::from(ServerError::RoleChanged));
    }
    failover::end(engine);
    request_sync(engine);
}

/// Tells the primary of this node, if it has one, that it no longer follows it, unless that is the next one, too.
fn leave(engine: &mut Engine, next: Option<NodeId>) {
    let former = link(engine).map(|link| link.primary).filter(|former| Some(*former) != next);
    former.into_iter().for_each(|former| send(engine, Some(former), Content::Leave));
}

/// Forgets a replica that follows this node no more.
pub(super) fn forget_replica(engine: &mut Engine, id: NodeId) {
    let Some(replication) = &mut engine.peers.replication else { return };
    replication.replicas.retain(|replica| replica.id != id);
    replication.waiting_replicas.retain(|(replica, _)| *replica != id);
}

/// Makes this node a primary: it goes on with its data, under another name.
pub(super) fn promote(engine: &mut Engine) {
    leave(engine, None);
    end_link(engine);
    let id = random_id(engine);
    replication(engine).promote(id);
    engine.timing.set_replica(false);
    engine.effects.propagation.turn_on();
    let offset = engine.effects.propagation.offset();
    replication(engine).align(offset);
    engine.observers.fast_path.forget();
    failover::end(engine);
}

/// Makes this node, if it is a replica, a primary without data.
pub(super) fn become_empty_primary(engine: &mut Engine) {
    if is_replica(engine) {
        promote(engine);
        tracking::invalidate_all(engine);
        (0..engine.databases.count()).for_each(|number| databases::flush(engine, number));
    }
}

/// Records that another node is disconnected: the primary of this one, or one of its replicas.
pub fn disconnect(engine: &mut Engine, id: NodeId) {
    let now = engine.timing.now;
    forget_replica(engine, id);
    let Some(replication) = &mut engine.peers.replication else { return };
    if let Some(link) = replication.link.as_mut().filter(|link| link.primary == id) {
        link.state = link.state.ended(now);
        link.queue = VecDeque::new();
        end_link(engine);
    }
}

/// Connects to another node again, if it is the primary of this one.
pub fn reconnect(engine: &mut Engine, id: NodeId) {
    if link(engine).is_some_and(|link| link.primary == id && !link.is_up()) {
        request_sync(engine);
    }
}

/// Connects this node and its primary, or a replica and this node, again if the session that was closed is the link
/// between them.
pub(super) fn replace_link(engine: &mut Engine, closed: SessionId) {
    if let Some(link) = link(engine).filter(|link| link.session == Some(closed)) {
        link.session = None;
        request_sync(engine);
    }
    link_sessions::reconnect_closed(engine, closed);
}

/// Begins anew after the process has ended: nobody is connected, and nothing that a client waited for is left.
pub(super) fn start(engine: &mut Engine, is_empty: bool) {
    let id = random_id(engine);
    end_link(engine);
    let Some(replication) = &mut engine.peers.replication else { return };
    replication.waits.clear();
    replication.replicas.clear();
    replication.waiting_replicas.clear();
    replication.link.iter_mut().for_each(|link| link.state = LinkState::NeverUp);
    if is_empty {
        replication.restart(id);
    }
    request_sync(engine);
}

/// Whether this node is a replica.
pub fn is_replica(engine: &Engine) -> bool {
    engine.peers.replication.as_ref().is_some_and(|replication| replication.link.is_some())
}

/// Whether this node is a replica that is disconnected from its primary.
pub fn is_disconnected(engine: &Engine) -> bool {
    let link = engine.peers.replication.as_ref().and_then(|replication| replication.link.as_ref());
    link.is_some_and(|link| !link.is_up())
}

/// Whether this node refuses the writes of clients, as it is a replica.
pub(super) fn is_read_only(engine: &Engine) -> bool {
    is_replica(engine) && engine.settings.replication.is_read_only
}

/// Whether this node is a replica that must not serve clients, as it is disconnected from its primary.
pub(super) fn is_stale(engine: &Engine) -> bool {
    is_disconnected(engine) && !engine.settings.replication.serves_stale_data
}

/// Whether writes are refused, as there are fewer replicas than `min-replicas-to-write`.
pub fn lacks_replicas(engine: &Engine) -> bool {
    engine.settings.counts_replicas()
        && !is_replica(engine)
        && good_replicas(engine) < engine.settings.replication.min_replicas
}

/// The number of replicas whose lag is at most `min-replicas-max-lag`.
pub fn good_replicas(engine: &Engine) -> u32 {
    let max_lag_s = engine.settings.replication.max_lag_s.into();
    let now = engine.timing.now;
    engine.peers.replication.as_ref().map_or(0, |replication| replication.count_good(max_lag_s, now) as u32)
}
