//! The opinion of a node about its cluster, which it publishes for tests that wait until all nodes agree
//! ([`crate::engine::cluster::Opinion`]).
//!
//! Costs: a branch after each batch; after a change of the view, a look at its nodes, and at the runs of its slots if
//! their owners have changed.

use crate::engine::Engine;
use crate::engine::cluster::Opinion;
use crate::engine::exec::failover;

/// This node's opinion, if that may have changed since the last call.
#[inline]
pub fn changed_opinion(engine: &mut Engine) -> Option<Opinion> {
    let view = engine.peers.cluster.as_mut().filter(|view| view.is_unpublished)?;
    view.is_unpublished = false;
    opinion(engine)
}

/// Marks the opinion as changed, so that it is published after the batch.
pub fn publish(engine: &mut Engine) {
    engine.peers.cluster.iter_mut().for_each(|view| view.is_unpublished = true);
}

#[cold]
fn opinion(engine: &mut Engine) -> Option<Opinion> {
    let view = engine.peers.cluster.as_ref()?;
    let timeout_ms = engine.settings.cluster.node_timeout_ms;
    let has_step = view.next_failure_step(timeout_ms).is_some() || view.next_replica_migration().is_some();
    let has_news = engine.peers.in_flight.as_ref().is_some_and(|in_flight| in_flight.has_news());
    let has_more = has_step || has_news || view.next_postponed().is_some() || failover::next_step(engine).is_some();
    engine.peers.cluster.as_mut().map(|view| view.opinion(!has_more))
}
