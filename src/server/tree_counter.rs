//! Counting keys for DUNLIN TREE: a thread that does it, so that no event loop waits for a walk over all keys.
//!
//! One thread counts for all clients of the server, one after the other: a database that is frozen for one client would
//! have to be counted under the engine's lock for another. The thread starts with the first order, and ends with the
//! server. It has a low priority, as clients who look at all keys can wait for a moment and others cannot.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::contain::contain;
use super::processors;
use super::shared::Shared;
use super::wake_flags::WakeFlag;
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
pub(super) struct TreeCounter {
    inbox: OnceLock<Sender<TreeOrder>>,
    processors: String,
}

impl TreeCounter {
    /// Makes one whose thread will run on the processors of a list.
    pub(super) fn on(processors: &str) -> TreeCounter {
        TreeCounter { inbox: OnceLock::new(), processors: processors.to_owned() }
    }

    /// Has keys counted: then the session has the answer to its host call, and gets [`WakeFlag::Resume`]. If no thread
    /// can be started, they are counted here.
    pub(super) fn count(&self, order: TreeOrder) {
        if let Err(returned) = self.inbox.get_or_init(|| start(self.processors.clone())).send(order) {
            carry_out(&returned.0);
        }
    }
}

fn start(processors: String) -> Sender<TreeOrder> {
    let (inbox, orders) = channel();
    let run = move || {
        processors::keep_beside(&processors);
        yield_to_others();
        for order in orders {
            if contain("the thread that counts keys", || carry_out(&order)).is_none() {
                order.shared.engine().kill(order.session);
            }
        }
    };
    // If no thread starts, the receiver is dropped at once, and sending returns the order.
    drop(thread::Builder::new().name("dunlin-tree".to_owned()).spawn(run));
    inbox
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
