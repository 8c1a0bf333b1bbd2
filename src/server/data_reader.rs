//! Reads all data for clients on a thread, so that no event loop waits for a walk over all keys: counts the keys for
//! DUNLIN TREE, and writes the RDB file that SYNC sends.
//!
//! One thread serves these requests of all clients, one after the other: while a database is frozen for one client, a
//! second request would have to count it under the engine's lock. What takes long is done at a low priority, because
//! clients that ask about all keys can wait for a moment, and the others cannot.

use std::sync::Arc;

use super::contain::contain;
use super::processors::at_low_priority;
use super::shared::Shared;
use super::wake_flags::WakeFlag;
use super::worker::Worker;
use crate::engine::exec::kit::tree;
use crate::engine::exec::{persistence, replication};
use crate::engine::state::RdbParts;
use crate::engine::state::kit::tree::{Tree, TreeQuery};
use crate::engine::state::replication::History;
use crate::engine::{HostCall, HostReply, SessionId};
use crate::value::SharedBytes;

/// A host call that reads all data of a world, and the session that waits for it.
#[derive(Debug)]
pub(super) struct ReadOrder {
    pub(super) shared: Arc<Shared>,
    pub(super) session: SessionId,
    pub(super) call: HostCall,
}

/// Reads data on a thread of its own.
#[derive(Debug)]
pub(super) struct DataReader(Worker<ReadOrder>);

impl DataReader {
    /// Makes one whose thread will run on the processors of a list.
    pub(super) fn on(processors: &str) -> DataReader {
        DataReader(Worker::new("dunlin-read", processors, read_or_end))
    }

    /// Orders data to be read: then the session has the answer to its host call, and gets [`WakeFlag::Resume`].
    pub(super) fn read(&self, order: ReadOrder) {
        self.0.send(order);
    }
}

/// Carries out an order, or, if that panics, ends the session, which would wait for ever.
fn read_or_end(order: ReadOrder) {
    if contain("the thread that reads all data", || carry_out(&order)).is_none() {
        order.shared.act(|engine| engine.kill(order.session));
    }
}

fn carry_out(order: &ReadOrder) {
    let ReadOrder { shared, session, call } = order;
    if shared.engine().sessions.get(*session).is_none() {
        return;
    }
    let reply = match call {
        HostCall::Tree(query) => HostReply::Tree(Box::new(tree_of(shared, query))),
        HostCall::Rdb(parts) => {
            let (file, history) = rdb_of(shared, *parts);
            HostReply::Rdb(file, history)
        }
        // The others are answered where they are asked.
        _ => HostReply::Done,
    };
    shared.engine().answer_host_call(*session, call.clone(), reply);
    shared.notify(*session, WakeFlag::Resume);
}

/// Counts the keys of a world, without its lock where that is possible.
fn tree_of(shared: &Shared, query: &TreeQuery) -> Tree {
    let frozen = shared.act(|engine| tree::freeze(engine, query));
    let Some(frozen) = frozen else { return tree::count(&shared.engine(), query) };
    let counted = at_low_priority(|| tree::count_frozen(&frozen, query));
    let counted = counted.unwrap_or_else(|_| tree::count_frozen(&frozen, query));
    drop(frozen);
    shared.act(persistence::reclaim);
    counted
}

/// The data of a world as an RDB file, written without its lock, and the replication history that they belong to. If
/// another save shares the data at the moment, they are copied first, under the lock.
fn rdb_of(shared: &Shared, parts: RdbParts) -> (SharedBytes, History) {
    let (checkpoint, history) = shared.act(|engine| (persistence::checkpoint(engine), replication::history(engine)));
    let checkpoint = checkpoint.of_parts(parts).with_history(history);
    let write = || {
        let mut bytes = Vec::new();
        // Writing into memory cannot fail.
        let _ = checkpoint.write(&mut bytes, || Ok(()));
        bytes
    };
    let bytes = at_low_priority(write).unwrap_or_else(|_| write());
    drop(checkpoint);
    shared.act(persistence::reclaim);
    (bytes.into(), history)
}
