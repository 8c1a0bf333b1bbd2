//! Failovers: a replica replaces its primary, because that has failed or because an administrator orders it.
//!
//! After a failure the replica stands for election ([`crate::engine::cluster`]). CLUSTER FAILOVER first has the primary
//! hold back writes, so that the replica gets all of them; FORCE leaves that out, and TAKEOVER the election too.
//!
//! Source: the behaviour of Redis 8.0.6.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::cluster::{MAX_RANDOM_DELAY_MS, Message, NodeId, VoteRequest};
use crate::engine::exec::{agreement, cluster, lag, replication};
use crate::engine::spec::{ClusterError, Error, Now};
use crate::engine::state::Effect;
use crate::engine::state::replication::{Content, FailoverWay, LinkState, ManualFailover};

/// The time limit of a manual failover.
const LONGEST_MS: i64 = 5000;

/// The longest time for which the primary holds back writes: longer than the time limit of the failover, as writes that
/// are taken before it ends would be lost.
const PAUSE_MS: i64 = 2 * LONGEST_MS;

/// The period of a primary's pings (Redis's `repl-ping-replica-period`), which is added to the age that a replica's
/// data may have.
const PING_PERIOD_MS: i64 = 10_000;

/// Begins a failover that an administrator orders at this node.
///
/// # Errors
/// This node is no replica, or its primary does not run.
pub fn order(engine: &mut Engine, way: FailoverWay) -> Result<(), Error> {
    let now = engine.timing.now;
    let Some(view) = &engine.peers.cluster else { return Err(ClusterError::NotReplica.into()) };
    if !view.myself().is_replica() {
        return Err(ClusterError::NotReplica.into());
    }
    let primary = view.primary().ok_or(ClusterError::UnknownPrimary)?.id;
    let is_running = view.is_connected(primary) && !view.has_failed(primary);
    if matches!(way, FailoverWay::Graceful | FailoverWay::Losing(_)) && !is_running {
        return Err(ClusterError::PrimaryIsDown.into());
    }
    if let FailoverWay::Losing(count) = way {
        lag::leave_out(engine, count)?;
    }
    end(engine);
    match way {
        FailoverWay::TakeOver | FailoverWay::Losing(_) => take_over(engine),
        FailoverWay::Force => stand(engine),
        FailoverWay::Graceful => {
            set(engine, Some(ManualFailover { ends: now.after_ms(LONGEST_MS), offset: None }));
            replication::send(engine, Some(primary), Content::BeginFailover);
        }
    }
    Ok(())
}

/// Replaces the primary of this node without an election.
fn take_over(engine: &mut Engine) {
    let epoch = engine.peers.cluster.as_mut().map_or(0, |view| view.next_epoch());
    replace_primary(engine, epoch);
}

fn set(engine: &mut Engine, failover: Option<ManualFailover>) {
    if let Some(replication) = &mut engine.peers.replication {
        replication.failover = failover;
        agreement::publish(engine);
    }
}

fn current(engine: &Engine) -> Option<ManualFailover> {
    engine.peers.replication.as_ref()?.failover
}

/// Holds back the writes of clients, as a replica of this node is ordered to replace it.
pub(super) fn pause_for(engine: &mut Engine, replica: NodeId) {
    let (now, is_replica) = (engine.timing.now, replication::is_replica(engine));
    let Some(replication) = engine.peers.replication.as_mut().filter(|_| !is_replica) else { return };
    if !replication.replicas.iter().any(|known| known.id == replica) {
        return;
    }
    let offset = replication.history.offset;
    set(engine, Some(ManualFailover { ends: now.after_ms(LONGEST_MS), offset: Some(offset) }));
    engine.timing.pause.begin_failover(now.after_ms(PAUSE_MS));
    engine.observers.fast_path.forget();
    replication::send(engine, Some(replica), Content::Paused(offset));
}

/// Records the offset at which this node has all writes of its primary, which holds back others.
pub(super) fn begin_at(engine: &mut Engine, offset: u64) {
    if let Some(failover) = current(engine) {
        set(engine, Some(ManualFailover { offset: Some(offset), ..failover }));
        begin_if_reached(engine);
    }
}

/// Starts the election once this replica has all writes of its primary, which waits for that.
pub(super) fn begin_if_reached(engine: &mut Engine) {
    let reached = engine.peers.replication.as_ref().map_or(0, |replication| replication.history.offset);
    let is_reached = current(engine).and_then(|failover| failover.offset).is_some_and(|offset| offset <= reached);
    if is_reached && replication::is_replica(engine) {
        stand(engine);
    }
}

/// Ends a failover that was ordered, and lets writes pass again.
pub(super) fn end(engine: &mut Engine) {
    set(engine, None);
    if engine.timing.pause.end_failover() {
        engine.effects.push(Effect::Resume);
    }
}

/// Stands for election at once.
fn stand(engine: &mut Engine) {
    let now = engine.timing.now;
    cluster::change(engine, |view| view.begin_manual_election(now));
    take_step(engine);
}

/// Schedules the election that the failure of this node's primary calls for, and announces this node's replication
/// offset.
pub(super) fn prepare(engine: &mut Engine) {
    let settings = &engine.settings.cluster;
    let Some(view) = engine.peers.cluster.as_ref().filter(|view| view.has_to_replace_primary()) else { return };
    if view.next_election_step(settings.node_timeout_ms).is_some() || settings.never_fails_over || is_outdated(engine) {
        return;
    }
    let (now, random_delay_ms) = (engine.timing.now, engine.generator.u64(..=MAX_RANDOM_DELAY_MS));
    let offset = engine.peers.replication.as_ref().map_or(0, |replication| replication.history.offset);
    cluster::change(engine, |view| {
        view.myself_mut().offset = offset;
        view.prepare_election(now, random_delay_ms);
    });
    take_step(engine);
}

/// Whether this node was disconnected from its primary too long to replace it, or never had its data.
fn is_outdated(engine: &Engine) -> bool {
    let settings = &engine.settings.cluster;
    let Some(link) = engine.peers.replication.as_ref().and_then(|replication| replication.link.as_ref()) else {
        return true;
    };
    let age_ms = match link.state {
        LinkState::Up => 0,
        LinkState::DownSince(since) => (engine.timing.now.since_us(since) / 1000) as i64,
        LinkState::NeverUp => i64::MAX,
    };
    let age_ms = if age_ms > settings.node_timeout_ms { age_ms - settings.node_timeout_ms } else { age_ms };
    let limit_ms = settings.node_timeout_ms.saturating_mul(settings.validity_factor).saturating_add(PING_PERIOD_MS);
    settings.validity_factor > 0 && age_ms > limit_ms
}

/// When something about a failover falls due.
pub(super) fn next_step(engine: &Engine) -> Option<Now> {
    let election = engine.peers.cluster.as_ref()?.next_election_step(engine.settings.cluster.node_timeout_ms);
    election.into_iter().chain(current(engine).map(|failover| failover.ends)).min()
}

/// Does what is due: begins or ends an election, or gives up a failover that was ordered.
pub(super) fn take_step(engine: &mut Engine) {
    let now = engine.timing.now;
    if next_step(engine).is_none_or(|due| due > now) {
        return;
    }
    if current(engine).is_some_and(|failover| failover.ends <= now) {
        end(engine);
    }
    let settings = Arc::clone(&engine.settings.cluster);
    let request = cluster::change(engine, |view| view.take_election_step(now, &settings)).flatten();
    match request {
        Some(request) => cluster::send(engine, Some(Message::VoteRequest(request))),
        None => prepare(engine),
    }
}

/// Votes for a replica that stands for election, if it may be voted for.
pub fn vote(engine: &mut Engine, request: &VoteRequest) {
    let (now, timeout_ms) = (engine.timing.now, engine.settings.cluster.node_timeout_ms);
    let votes = cluster::change(engine, |view| view.vote(request, now, timeout_ms)) == Some(true);
    let from = cluster::own_id(engine).filter(|_| votes);
    let vote = from.map(|from| Message::Vote { from, to: request.from, epoch: request.epoch });
    cluster::send(engine, vote);
}

/// Takes the vote of another node for this one, which replaces its primary once it has a majority.
pub fn take_vote(engine: &mut Engine, from: NodeId, epoch: u64) {
    let (now, timeout_ms) = (engine.timing.now, engine.settings.cluster.node_timeout_ms);
    let won = cluster::change(engine, |view| view.count_vote(from, epoch, timeout_ms, now)).flatten();
    won.into_iter().for_each(|epoch| replace_primary(engine, epoch));
}

fn replace_primary(engine: &mut Engine, epoch: u64) {
    replication::promote(engine);
    cluster::change(engine, |view| view.replace_primary(epoch));
}
