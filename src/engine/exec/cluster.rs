//! The work of a cluster node beside its commands: redirecting clients to the node that owns their slot, and notifying
//! clients and other nodes of changes of its view.
//!
//! The decision itself is a pure function ([`redirect`]). While nothing but the owner of a slot counts, the fast path
//! asks only whether that is this node. While the server is no node of a cluster, all this costs one branch.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::cluster::{
    Address, BUS_OFFSET, Claim, Consequences, EndpointType, Gossip, Health, Message, Node, NodeId, QueriedKey, Query,
    Refusal, SlotMigration, View, redirect,
};
use crate::engine::exec::ctx::databases;
use crate::engine::exec::gates::GateRequest;
use crate::engine::exec::{access, blocking, changes, failover, kit, messages, propagation, publish, replication};
use crate::engine::spec::{
    Channels, ClusterError, Command, CommandId, Entry, Error, Family, Flags, KeyFlags, Now, PlainKeys,
};
use crate::engine::state::{Asking, Effect, LogLevel, NodeMessage, Presence, Session, SessionId, Settings, Topic};
use crate::resp::Request;
use crate::value::hash_slot::hash_slot;

/// Refuses a request whose keys this node does not serve. A transaction that is refused is over.
#[cold]
pub(super) fn pass_redirect(engine: &mut Engine, asked: &GateRequest<'_>) -> Result<(), Error> {
    check_redirect(engine, asked).map_err(|error| {
        if engine.observers.strict().is_some() {
            kit::redirects::note(engine, asked, &error);
        }
        error.into()
    })
}

/// The error, such as MOVED, if this node does not serve the keys of a request.
pub(super) fn check_redirect(engine: &Engine, asked: &GateRequest<'_>) -> Result<(), ClusterError> {
    decide(engine, &query(engine, asked), |_| true).map(|_| ()).map_err(|refusal| error_of(engine, refusal))
}

/// Whether this node serves the keys of a client exactly if it owns their slot: no slot moves, and the node is not
/// down.
pub(super) fn serves_what_it_owns(engine: &Engine, client: &Session) -> bool {
    let view = engine.peers.cluster.as_ref();
    client.asking == Asking::No
        && view.is_none_or(|view| view.health() == Health::Ok && view.slot_migrations().next().is_none())
}

/// Whether this node owns the one slot of all keys of a request, which are found at sight; or the server is no node of
/// a cluster.
#[inline]
pub(super) fn owns_keys(engine: &Engine, entry: &Entry, request: Request<'_>) -> bool {
    let Some(view) = &engine.peers.cluster else { return true };
    match entry.plain_keys {
        PlainKeys::None => true,
        PlainKeys::First => request.get(1).is_some_and(|key| view.owns(hash_slot(key))),
        PlainKeys::Each(step) => {
            let places = (1..request.len()).step_by(step as usize);
            let mut slots = places.filter_map(|place| request.get(place)).map(hash_slot);
            slots.next().is_some_and(|first| view.owns(first) && slots.all(|slot| slot == first))
        }
        PlainKeys::Other => false,
    }
}

/// Refuses a request of a script whose keys this node does not serve, or that are in another slot than those before.
pub(super) fn pass_redirect_of_script(engine: &mut Engine, id: CommandId, request: Request<'_>) -> Result<(), Error> {
    if engine.peers.cluster.is_none() {
        return Ok(());
    }
    let (session, last) = (engine.scripts.running().session, engine.scripts.running().last_slot);
    let asked = GateRequest { session, id, flags: engine.table.entry(id).command.flags, request };
    // Redis 8.0 looks for the keys of a slot that moves where the last command of the script had its own.
    let decision = decide(engine, &query(engine, &asked), |key| last.is_none_or(|slot| slot == hash_slot(key)));
    let name = || engine.table.entry(id).name.clone();
    let slot = decision.map_err(|refusal| match refusal {
        Refusal::Unowned => ClusterError::ScriptUnowned,
        Refusal::CrossSlot => ClusterError::ScriptCrossSlot(name()),
        Refusal::Down => ClusterError::ScriptDown,
        Refusal::ReadsOnly => ClusterError::ScriptReadsOnly,
        Refusal::TryAgain => ClusterError::ScriptTryAgain(name()),
        Refusal::Ask(..) | Refusal::Moved(..) => ClusterError::ScriptMoved,
    })?;
    let running = engine.scripts.running();
    running.last_slot = slot;
    match (slot, running.hash_slot) {
        _ if running.allows_cross_slot => Ok(()),
        (Some(slot), Some(before)) if slot != before => Err(ClusterError::ScriptSlots.into()),
        (slot, before) => {
            running.hash_slot = before.or(slot);
            Ok(())
        }
    }
}

/// Applies the redirect rule to a request. A key that `is_found` is false for counts as missing, even if it is there.
fn decide(engine: &Engine, query: &Query<'_>, is_found: impl Fn(&[u8]) -> bool) -> Result<Option<u16>, Refusal> {
    let Some(view) = &engine.peers.cluster else { return Ok(None) };
    let has_key = |key: &[u8]| is_found(key) && access::presence(engine, 0, key) == Presence::Live;
    redirect(view, &engine.settings.cluster, query, has_key)
}

/// The keys of a request, or of all requests of the transaction that it runs.
pub(super) fn query<'e>(engine: &'e Engine, asked: &GateRequest<'e>) -> Query<'e> {
    let GateRequest { session, id, flags, request } = *asked;
    let command = engine.table.entry(id).command;
    let client = engine.sessions.get(session);
    let is_asking = flags.has(Flags::ASKING) || client.is_some_and(|client| client.asking.is_on());
    let reads_replicas = client.is_some_and(|client| client.reads_replicas);
    let (keys, writes, migrates) = (Vec::new(), flags.has(Flags::WRITE), command.name == "MIGRATE");
    let mut query = Query { keys, uses_channels: false, writes, migrates, is_asking, reads_replicas };
    if !flags.has(Flags::RUNS_QUEUE) {
        add_keys(command, request, &mut query);
        return query;
    }
    let transaction = client.and_then(|client| client.transaction.as_deref());
    for queued in transaction.iter().flat_map(|transaction| transaction.queue.iter()) {
        if let Ok((id, _)) = engine.table.resolve(queued) {
            add_keys(engine.table.entry(id).command, queued, &mut query);
        }
    }
    query
}

/// Adds the keys and the shard channels of a request. Rows describe shard channels as words that look like keys.
fn add_keys<'r>(command: &Command, request: Request<'r>, query: &mut Query<'r>) {
    query.uses_channels |= command.channels != Channels::None;
    let may_be_missing = !query.uses_channels;
    let mut add = |place: usize| query.keys.extend(request.get(place).map(|name| QueriedKey { name, may_be_missing }));
    if command.has_keys() {
        return command.keys_of(request).into_iter().for_each(|(place, _)| add(place));
    }
    let specs =
        command.keys.iter().filter(|spec| command.family == Family::PubSub && spec.access.has(KeyFlags::NOT_KEY));
    specs.flat_map(|spec| spec.places(request)).for_each(add);
}

/// The error for the client of a request that is not served here.
fn error_of(engine: &Engine, refusal: Refusal) -> ClusterError {
    let at = |id: NodeId| {
        let node = engine.peers.cluster.as_ref().and_then(|view| view.get(id));
        let address = node.map(|node| node.address.clone()).unwrap_or_default();
        (endpoint(&engine.settings, &address).unwrap_or_default(), address.port)
    };
    match refusal {
        Refusal::Unowned => ClusterError::Unowned,
        Refusal::CrossSlot => ClusterError::CrossSlot,
        Refusal::Down => ClusterError::Down,
        Refusal::ReadsOnly => ClusterError::ReadsOnly,
        Refusal::TryAgain => ClusterError::TryAgain,
        Refusal::Ask(slot, id) => {
            let (endpoint, port) = at(id);
            ClusterError::Ask { slot, endpoint, port }
        }
        Refusal::Moved(slot, id) => {
            let (endpoint, port) = at(id);
            ClusterError::Moved { slot, endpoint, port }
        }
    }
}

/// The endpoint that clients are told of a node at that address; `None` if they are told none.
pub fn endpoint(settings: &Settings, address: &Address) -> Option<String> {
    match settings.cluster.endpoint_type {
        EndpointType::Ip => Some(address.ip.clone()),
        EndpointType::Hostname if address.hostname.is_empty() => Some("?".to_owned()),
        EndpointType::Hostname => Some(address.hostname.clone()),
        EndpointType::Unknown => None,
    }
}

/// Makes the server a node of a cluster, which it sees as `view`. Its data are one database, whose keys are indexed by
/// their slots.
pub fn join(engine: &mut Engine, view: View) {
    let primary = view.primary().map(|primary| primary.id);
    engine.databases.index_hash_slots();
    engine.peers.cluster = Some(Box::new(view));
    apply_settings(engine);
    primary.into_iter().for_each(|primary| replication::follow(engine, primary));
}

/// Makes this node a replica of another one, which it knows. Its clients stay subscribed only to the shard channels of
/// that one's slots.
pub(super) fn follow(engine: &mut Engine, primary: NodeId) {
    change_without_redirects(engine, |view| view.follow(primary));
    replication::follow(engine, primary);
    blocking::redirect_waiting(engine);
    let Some(view) = engine.peers.cluster.as_ref().filter(|_| engine.observers.subscriptions.has_shard_channels())
    else {
        return;
    };
    let view = view.clone();
    let is_elsewhere = |name: &[u8]| view.owner(hash_slot(name)).is_none_or(|owner| owner.id != primary);
    publish::end_shard_subscriptions(engine, is_elsewhere);
}

/// Puts changed settings in force: where this node is reached, and whether it serves keys while slots have no owner.
pub fn apply_settings(engine: &mut Engine) {
    let (settings, port) = (&engine.settings.cluster, engine.settings.port);
    let Some(view) = &engine.peers.cluster else { return };
    let or = |announced: u16, real: u16| if announced == 0 { real } else { announced };
    let ip = if settings.announced_ip.is_empty() { &view.own_ip } else { &settings.announced_ip };
    let address = Address {
        ip: ip.clone(),
        port: or(settings.announced_port, port),
        tls_port: settings.announced_tls_port,
        bus_port: or(settings.announced_bus_port, or(settings.bus_port, port.saturating_add(BUS_OFFSET))),
        hostname: settings.announced_hostname.clone(),
    };
    let (settings, now) = (Arc::clone(settings), engine.timing.now);
    change(engine, |view| {
        view.myself_mut().address = address;
        view.myself_mut().never_fails_over = settings.never_fails_over;
        // Redis does not look again because of a setting while it serves keys.
        if view.health() == Health::Fail {
            view.update_health(&settings, now);
        }
    });
}

/// Changes the view by `act`, with all consequences: recomputes whether keys are served, ends waits for keys and
/// subscriptions to shard channels that belong to another node now, and announces the change to the other nodes. `None`
/// if the server is not a node of a cluster.
pub fn change<R>(engine: &mut Engine, act: impl FnOnce(&mut View) -> R) -> Option<R> {
    let result = change_without_redirects(engine, act);
    blocking::redirect_waiting(engine);
    result
}

/// Changes the view as [`change`] does, but redirects no client that waits for a key: if this node becomes a replica by
/// the change, that ends the waits with another error.
fn change_without_redirects<R>(engine: &mut Engine, act: impl FnOnce(&mut View) -> R) -> Option<R> {
    let view = engine.peers.cluster.as_mut()?;
    let (before, epoch) = (view.before(), view.current_epoch);
    let result = act(view);
    view.is_unpublished = true;
    let changes = view.changes_since(&before);
    if changes.concerns_health {
        view.update_health(&engine.settings.cluster, engine.timing.now);
    }
    if changes.frees_slots_of_others {
        view.postpone(Message::ClaimsWanted, engine.timing.now);
    }
    view.update_orphans(&engine.settings.cluster, engine.timing.now);
    // A node that was reset tells the nodes that it has forgotten what it is now.
    let knows_others = view.knows_others() || before.knows_others();
    let claim = (changes.claims && knows_others).then(|| view.claim());
    // A claim has the epoch, too. What a node sees spreads, as it does among Redis's nodes within a second.
    let has_seen_later = view.current_epoch > epoch && claim.is_none() && knows_others;
    let later_epoch = Message::Epoch { from: view.myself().id, epoch: view.current_epoch };
    send(engine, claim.map(Message::Claim));
    send(engine, has_seen_later.then_some(later_epoch));
    send(engine, (changes.wants_claims && knows_others).then_some(Message::ClaimsWanted));
    end_shard_subscriptions(engine, &changes.released);
    Some(result)
}

/// Whether that is the id of this node.
pub(super) fn is_myself(engine: &Engine, id: NodeId) -> bool {
    engine.peers.cluster.as_ref().is_some_and(|view| view.is_myself_id(id))
}

/// Whether this node belongs to a shard.
pub(super) fn is_in_shard(engine: &Engine, shard: NodeId) -> bool {
    engine.peers.cluster.as_ref().is_some_and(|view| view.myself().shard == shard)
}

/// Announces this node to the others once more.
pub fn announce(engine: &mut Engine) {
    let claim = engine.peers.cluster.as_ref().map(|view| Message::Claim(view.claim()));
    send(engine, claim);
}

/// Sends something to the other nodes of the cluster.
pub(super) fn send(engine: &mut Engine, message: Option<Message>) {
    let Some(message) = message else { return };
    engine.peers.cluster.iter_mut().for_each(|view| view.count_sent(&message));
    engine.effects.push(Effect::SendToNodes(Box::new(NodeMessage::Cluster(message))));
}

/// Introduces this node and all nodes that it knows to the node at that address and all nodes that one knows (CLUSTER
/// MEET). False if no node of this process listens there.
pub(super) fn meet(engine: &mut Engine, ip: &str, port: u16) -> bool {
    let is_there = engine.host.has_node_at(ip, port);
    send(engine, is_there.then(|| Message::Meet { ip: ip.to_owned(), port }));
    is_there
}

/// Makes this node know all of these, if it is one of them. It is reached at `ip` if it did not know where. Returns the
/// ids of those that it did not know.
pub fn introduce(engine: &mut Engine, nodes: &[Gossip], ip: &str) -> Vec<NodeId> {
    let Some(view) = &mut engine.peers.cluster else { return Vec::new() };
    if !nodes.iter().any(|gossip| view.is_myself(&gossip.node)) {
        return Vec::new();
    }
    if view.own_ip.is_empty() {
        ip.clone_into(&mut view.own_ip);
    }
    let met = meet_all(engine, nodes);
    apply_settings(engine);
    announce(engine);
    met
}

/// Learns of the nodes that another one knows, but for those that were forgotten lately, if the two know each other or
/// the other one introduces itself. Returns the ids of those that were not known.
pub fn learn(engine: &mut Engine, from: NodeId, nodes: &[Gossip]) -> Vec<NodeId> {
    let Some(view) = &mut engine.peers.cluster else { return Vec::new() };
    let now = engine.timing.now;
    let about_me = nodes.iter().find(|gossip| view.is_myself(&gossip.node));
    if !about_me.is_some_and(|gossip| view.knows_other(from) || gossip.is_handshake()) {
        return Vec::new();
    }
    view.end_handshake(from);
    let is_welcome = |gossip: &&Gossip| !view.has_forgotten(gossip.node.id.as_bytes(), now);
    let welcome: Vec<Gossip> = nodes.iter().filter(is_welcome).cloned().collect();
    let met = meet_all(engine, &welcome);
    if !met.is_empty() {
        announce(engine);
    }
    met
}

/// Makes this node know all of these; returns the ids of those that it did not know.
fn meet_all(engine: &mut Engine, nodes: &[Gossip]) -> Vec<NodeId> {
    let now = engine.timing.now;
    let meet = |view: &mut View| {
        let met = nodes.iter().filter(|gossip| view.meet(gossip, now));
        met.map(|gossip| gossip.node.id).collect()
    };
    change(engine, meet).unwrap_or_default()
}

/// Forgets another node without telling the others, as the caller has each of them do the same.
pub fn forget_quietly(engine: &mut Engine, node: NodeId) {
    let now = engine.timing.now;
    change(engine, |view| view.forget(node, now));
}

/// Forgets another node. The others will, too.
pub(super) fn forget(engine: &mut Engine, node: NodeId) {
    let now = engine.timing.now;
    change(engine, |view| {
        view.forget(node, now);
        view.postpone(Message::Forgotten { from: view.myself().id, node }, now);
    });
}

/// Forgets a node that another one has forgotten, unless it is this one or its primary.
pub(super) fn apply_forgotten(engine: &mut Engine, from: NodeId, node: NodeId) {
    let view = engine.peers.cluster.as_ref();
    if view.is_some_and(|view| view.knows_other(from) && view.knows_other(node) && !view.is_replica_of(node)) {
        forget(engine, node);
    }
}

/// Records that a node is disconnected, as its process has ended.
pub fn disconnect(engine: &mut Engine, id: NodeId) {
    let now = engine.timing.now;
    change(engine, |view| view.disconnect(id, now));
    replication::disconnect(engine, id);
}

/// Records that another node does not answer, though it is connected.
pub fn note_silence(engine: &mut Engine, id: NodeId) {
    let now = engine.timing.now;
    change(engine, |view| view.note_silence(id, now));
}

/// Records that this node has just started, without any keys if `is_empty`.
pub fn start(engine: &mut Engine, is_empty: bool) {
    let now = engine.timing.now;
    if is_empty {
        databases::flush(engine, 0);
    }
    messages::drop_all(engine);
    let settings = Arc::clone(&engine.settings.cluster);
    change(engine, |view| {
        view.start(now);
        view.update_health(&settings, now);
    });
    replication::start(engine, is_empty);
}

/// Records that a node is connected again.
pub fn reconnect(engine: &mut Engine, id: NodeId) {
    let (now, timeout_ms) = (engine.timing.now, engine.settings.cluster.node_timeout_ms);
    let may_be_reported = change(engine, |view| view.reconnect(id, now, timeout_ms)).unwrap_or_default();
    if may_be_reported {
        tell_suspicion(engine, id, None);
    }
}

/// Records that another node has learned of this one.
pub fn end_handshake(engine: &mut Engine, id: NodeId) {
    engine.peers.cluster.iter_mut().for_each(|view| view.end_handshake(id));
}

/// The id of this node; `None` if the server is not a node of a cluster.
pub(super) fn own_id(engine: &Engine) -> Option<NodeId> {
    engine.peers.cluster.as_ref().map(|view| view.myself().id)
}

/// Tells the others since when this node suspects one, or that it no longer does.
fn tell_suspicion(engine: &mut Engine, node: NodeId, since: Option<Now>) {
    let from = own_id(engine);
    send(engine, from.map(|from| Message::Suspects { from, node, since }));
}

/// Takes a report of another node: that it suspects a node since a moment, or no longer does.
pub fn apply_report(engine: &mut Engine, from: NodeId, suspected: NodeId, since: Option<Now>) {
    change(engine, |view| view.apply_report(from, suspected, since));
    spread_failures(engine);
}

/// Applies the message of a known node that another one failed at that moment.
pub fn apply_failure(engine: &mut Engine, from: NodeId, failed: NodeId, since: Now) {
    if engine.peers.cluster.as_ref().is_some_and(|view| view.knows_other(from)) {
        change(engine, |view| view.apply_failure(failed, since));
        failover::prepare(engine);
    }
}

/// The next moment at which the state of a disconnected node changes, this node moves to another primary, or a delayed
/// message arrives.
pub(super) fn next_step(engine: &Engine) -> Option<Now> {
    let (view, settings) = (engine.peers.cluster.as_ref()?, &engine.settings.cluster);
    let migration = view.next_replica_migration().map(|(due, _)| due);
    let step = view.next_failure_step(settings.node_timeout_ms);
    let own = step.into_iter().chain(migration).chain(view.next_postponed());
    own.chain(messages::next_arrival(engine)).min()
}

/// Becomes a replica of a primary that has none left, if that is due.
fn migrate_replica(engine: &mut Engine) {
    let view = engine.peers.cluster.as_ref();
    let migration = view.and_then(|view| view.next_replica_migration());
    if let Some((_, orphan)) = migration.filter(|(due, _)| *due <= engine.timing.now) {
        let line = format!("Migrating to orphaned master {orphan}");
        engine.effects.push(Effect::Log(LogLevel::Notice, line));
        follow(engine, orphan);
    }
}

/// Does what is due: receives delayed messages, sends postponed ones, moves this node to an orphaned primary, marks
/// disconnected nodes as suspected, and announces that.
pub(super) fn take_steps(engine: &mut Engine) {
    let now = engine.timing.now;
    if next_step(engine).is_none_or(|due| due > now) {
        return;
    }
    messages::receive_due(engine);
    let postponed = engine.peers.cluster.as_mut().map(|view| view.take_postponed(now)).unwrap_or_default();
    postponed.into_iter().for_each(|message| send(engine, Some(message)));
    migrate_replica(engine);
    let settings = Arc::clone(&engine.settings.cluster);
    let suspected = change(engine, |view| {
        let suspected = view.suspect_overdue(now, settings.node_timeout_ms);
        view.update_health(&settings, now);
        suspected
    });
    let suspected = suspected.unwrap_or_default();
    for (node, since) in suspected {
        tell_suspicion(engine, node, Some(since));
    }
    spread_failures(engine);
}

/// Tells the others of the nodes that have failed by the latest reports.
fn spread_failures(engine: &mut Engine) {
    let timeout_ms = engine.settings.cluster.node_timeout_ms;
    let failed = change(engine, |view| view.mark_failed_by_majority(timeout_ms)).unwrap_or_default();
    for (node, since) in failed {
        let from = own_id(engine);
        send(engine, from.map(|from| Message::Failed { from, node, since }));
    }
    failover::prepare(engine);
}

/// Publishes a message to the subscribers of a channel at the other nodes, or at those of this shard, too.
pub(super) fn publish_elsewhere(engine: &mut Engine, topic: Topic, channel: &[u8], payload: &[u8]) {
    let view = engine.peers.cluster.as_ref().filter(|view| view.knows_others());
    let message = view.map(|view| Message::Publish {
        from: view.myself().id,
        shard: (topic == Topic::Shard).then_some(view.myself().shard),
        channel: channel.to_vec(),
        payload: payload.to_vec(),
    });
    send(engine, message);
}

/// Delivers a message that a known node published, for all nodes or for those of a shard, to the subscribers here.
pub fn take_published(engine: &mut Engine, from: NodeId, shard: Option<NodeId>, channel: &[u8], payload: &[u8]) {
    let Some(view) = engine.peers.cluster.as_ref().filter(|view| view.knows_other(from)) else { return };
    let topic = if shard.is_some() { Topic::Shard } else { Topic::Channel };
    if shard.is_none_or(|shard| shard == view.myself().shard) {
        publish::publish(engine, topic, channel, payload);
    }
}

/// Takes the claim of another node. This node becomes its replica if it has taken all slots from here; otherwise the
/// keys in the slots that it has taken are deleted.
pub fn apply_claim(engine: &mut Engine, claim: &Claim) {
    let settings = Arc::clone(&engine.settings.cluster);
    let consequences = change_without_redirects(engine, |view| view.apply_claim(claim, &settings)).unwrap_or_default();
    if !claim.node.is_replica() {
        // A replica has no stream for others, so a node that was one when it was asked has not answered.
        replication::reconnect(engine, claim.node.id);
    }
    send(engine, consequences.has_freed_slots.then_some(Message::ClaimsWanted));
    if let Some(view) = &engine.peers.cluster {
        let from = view.myself().id;
        let to_sender =
            consequences.better_owners.iter().filter_map(|owner| Some((claim.node.id, view.known_claim(*owner)?)));
        let to_losers =
            consequences.former_owners.iter().filter_map(|owner| Some((*owner, view.known_claim(claim.node.id)?)));
        let messages: Vec<Message> =
            to_sender.chain(to_losers).map(|(to, claim)| Message::Update { from, to, claim }).collect();
        messages.into_iter().for_each(|message| send(engine, Some(message)));
    }
    follow_claim(engine, consequences);
    spread_failures(engine);
}

/// Whether another node that this one knows has seen a later epoch.
pub(super) fn is_later_epoch(engine: &Engine, from: NodeId, epoch: u64) -> bool {
    engine.peers.cluster.as_ref().is_some_and(|view| view.current_epoch < epoch && view.knows_other(from))
}

/// Whether a known node sends this one a claim that is newer than what this one knows of the claiming node.
pub(super) fn is_news_for(engine: &Engine, from: NodeId, to: NodeId, by: &Claim) -> bool {
    let Some(view) = engine.peers.cluster.as_ref().filter(|view| view.is_myself_id(to)) else { return false };
    view.knows_other(from) && view.get(by.node.id).is_some_and(|known| known.config_epoch < by.node.config_epoch)
}

/// Notes an epoch that another node has seen.
pub(super) fn see_epoch(engine: &mut Engine, epoch: u64) {
    change(engine, |view| view.current_epoch = view.current_epoch.max(epoch));
}

/// Takes the claim of a node as another one knows it.
pub(super) fn apply_better_claim(engine: &mut Engine, claim: &Claim) {
    let settings = Arc::clone(&engine.settings.cluster);
    let consequences = change_without_redirects(engine, |view| view.apply_better_claim(claim, &settings));
    if let Some(consequences) = consequences.flatten() {
        follow_claim(engine, consequences);
        spread_failures(engine);
    }
}

/// Does what follows from a claim: follows the new owner of this node's slots, or deletes the keys of those that it has
/// lost and redirects the clients that wait for them.
fn follow_claim(engine: &mut Engine, consequences: Consequences) {
    match consequences.new_primary {
        Some(primary) => follow(engine, primary),
        None => {
            consequences.lost_slots.into_iter().for_each(|slot| delete_keys(engine, slot));
            blocking::redirect_waiting(engine);
        }
    }
}

fn delete_keys(engine: &mut Engine, hash_slot: u16) {
    loop {
        let data = engine.databases.get(0);
        let Some(slot) = data.hash_slot_keys(hash_slot).next() else { return };
        let key = data.key(slot).to_vec();
        let lazy_free = engine.databases.get_mut(0).delete(slot);
        engine.free(lazy_free);
        engine.stats.changes += 1;
        propagation::deletion(engine, 0, &key, false);
        changes::left_with_slot(engine, 0, &key);
    }
}

/// Unsubscribes all clients from the shard channels in slots that have another owner now, and tells them.
fn end_shard_subscriptions(engine: &mut Engine, released: &[u16]) {
    if released.is_empty() || !engine.observers.subscriptions.has_shard_channels() {
        return;
    }
    let is_released = |name: &[u8]| released.binary_search(&hash_slot(name)).is_ok();
    publish::end_shard_subscriptions(engine, is_released);
}

/// The error for a client blocked on a key that this node no longer serves; `None` while it serves the key.
pub(super) fn refusal_of_wait(engine: &Engine, session: SessionId, key: &[u8]) -> Option<Error> {
    let view = engine.peers.cluster.as_ref()?;
    if view.health() == Health::Fail {
        return Some(ClusterError::Down.into());
    }
    let slot = hash_slot(key);
    let reads_here = |owner: &Node| {
        view.is_replica_of(owner.id) && engine.sessions.get(session).is_some_and(|client| client.reads_replicas)
    };
    let is_served = view.owns(slot) || view.owner(slot).is_some_and(reads_here);
    if is_served || matches!(view.slot_migration(slot), Some(SlotMigration::Importing(_))) {
        return None;
    }
    let refusal = view.owner(slot).map_or(Refusal::Unowned, |owner| Refusal::Moved(slot, owner.id));
    Some(error_of(engine, refusal).into())
}
