//! Counting keys for DUNLIN TREE: a thread that does it, so that no event loop waits for a walk over all keys.
//!
//! One thread counts for all clients of the server, one after the other: a database that is frozen for one client would
//! have to be counted under the engine's lock for another. Its thread ([`Worker`]) has a low priority, as clients who
//! look at all keys can wait for a moment and others cannot.

use std::sync::Arc;

use super::contain::contain;
use super::shared::Shared;
use super::wake_flags::WakeFlag;
use super::worker::Worker;
use crate::engine::exec::kit::tree;
use crate::engine::state::kit::tree::{Tree, TreeQuery};
use crate::engine::{HostCall, HostReply, SessionId};

/// What is counted, and for whom.
#[derive(Debug)]
pub(super) struct TreeOrder {
    pub(super) shared: Arc<Shared>,
    pub(super) session: SessionId,
    pub(super) query: TreeQuery,
}

/// Counts keys on a thread of its own.
#[derive(Debug)]
pub(super) struct TreeCounter(Worker<TreeOrder>);

impl TreeCounter {
    /// Makes one whose thread will run on the processors of a list.
    pub(super) fn on(processors: &str) -> TreeCounter {
        TreeCounter(Worker::new("dunlin-tree", processors, yield_to_others, count_or_end))
    }

    /// Has keys counted: then the session has the answer to its host call, and gets [`WakeFlag::Resume`].
    pub(super) fn count(&self, order: TreeOrder) {
        self.0.send(order);
    }
}

/// Carries out an order, or, if that panics, ends the session, which would wait for ever.
fn count_or_end(order: TreeOrder) {
    if contain("the thread that counts keys", || carry_out(&order)).is_none() {
        order.shared.engine().kill(order.session);
    }
}

/// Gives this thread a low priority, where that is possible: on Linux a thread has one of its own.
fn yield_to_others() {
    #[cfg(all(target_os = "linux", feature = "program"))]
    let _ = rustix::process::nice(10);
}

fn carry_out(order: &TreeOrder) {
    let TreeOrder { shared, session, query } = order;
    let tree = Box::new(tree_of(shared, query));
    shared.engine().answer_host_call(*session, HostCall::Tree(query.clone()), HostReply::Tree(tree));
    shared.notify(*session, WakeFlag::Resume);
}

/// Counts the keys of a world, without its lock where that is possible.
fn tree_of(shared: &Shared, query: &TreeQuery) -> Tree {
    let frozen = shared.act(|engine| tree::freeze(engine, query));
    let Some(frozen) = frozen else { return tree::count(&shared.engine(), query) };
    let counted = tree::count_frozen(&frozen, query);
    drop(frozen);
    shared.act(tree::thaw);
    counted
}
