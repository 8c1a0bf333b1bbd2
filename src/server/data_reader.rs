//! Reads all data for clients on a thread, so that no event loop waits for a walk over all keys: counts the keys for
//! DUNLIN TREE, and writes the RDB file that SYNC sends.
//!
//! One thread serves these requests of all clients, one after the other: while a database is frozen for one client, a
//! second request would have to count it under the engine's lock. Clients that wait for the same get the same answer,
//! so that many who ask for an RDB file at once do not each hold one in memory. What takes long is done at a low
//! priority, because clients that ask about all keys can wait for a moment, and the others cannot.

use std::sync::Arc;

use parking_lot::Mutex;

use super::contain::contain;
use super::processors::at_low_priority;
use super::shared::Shared;
use super::wake_flags::WakeFlag;
use super::worker::Worker;
use crate::engine::exec::kit::tree;
use crate::engine::exec::{persistence, replication};
use crate::engine::state::kit::tree::{Tree, TreeQuery};
use crate::engine::state::replication::History;
use crate::engine::state::{DataQuery, RdbParts};
use crate::engine::{HostCall, HostReply, SessionId};
use crate::value::SharedBytes;

/// What is to be read of the data of a world, and the session that waits for it.
#[derive(Debug)]
pub(super) struct ReadOrder {
    pub(super) shared: Arc<Shared>,
    pub(super) session: SessionId,
    pub(super) query: DataQuery,
}

/// The orders that no thread has begun, in the order in which they came.
type Waiting = Arc<Mutex<Vec<ReadOrder>>>;

/// Reads data on a thread of its own.
#[derive(Debug)]
pub(super) struct DataReader {
    waiting: Waiting,
    /// The thread, which gets the list once for each order that was added to it.
    worker: Worker<Waiting>,
}

impl DataReader {
    /// Makes one whose thread will run on the processors of a list.
    pub(super) fn on(processors: &str) -> DataReader {
        DataReader { waiting: Waiting::default(), worker: Worker::new("dunlin-read", processors, read_next) }
    }

    /// Orders data to be read: then the session has the answer to its host call, and gets [`WakeFlag::Resume`].
    pub(super) fn read(&self, order: ReadOrder) {
        self.waiting.lock().push(order);
        self.worker.send(Arc::clone(&self.waiting));
    }
}

/// Carries out the first order, and those that are the same. If that panics, their sessions end, which would wait for
/// ever.
fn read_next(waiting: Waiting) {
    let orders = take_next(&mut waiting.lock());
    if contain("the thread that reads all data", || carry_out(&orders)).is_none() {
        orders.iter().for_each(|order| order.shared.act(|engine| engine.close_session_later(order.session)));
    }
}

/// Takes the first order, and all others that want the same of the same world.
fn take_next(waiting: &mut Vec<ReadOrder>) -> Vec<ReadOrder> {
    let Some(first) = waiting.first() else { return Vec::new() };
    let (shared, query) = (Arc::clone(&first.shared), first.query.clone());
    waiting.extract_if(.., |order| Arc::ptr_eq(&order.shared, &shared) && order.query == query).collect()
}

fn carry_out(orders: &[ReadOrder]) {
    let is_awaited = |order: &&ReadOrder| order.shared.engine().sessions.get(order.session).is_some();
    let Some(ReadOrder { shared, query, .. }) = orders.iter().find(is_awaited) else { return };
    let reply = match query {
        DataQuery::Tree(query) => HostReply::Tree(Box::new(tree_of(shared, query))),
        DataQuery::Rdb(parts) => {
            let (file, history) = rdb_of(shared, *parts);
            HostReply::Rdb(file, history)
        }
    };
    for ReadOrder { shared, session, query } in orders {
        shared.engine().answer_host_call(*session, HostCall::Read(query.clone()), reply.clone());
        shared.notify(*session, WakeFlag::Resume);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::PendingHostCall;
    use crate::engine::state::host::Facts;
    use crate::engine::{Now, Origin, Settings};
    use crate::server::clock::Clock;
    use crate::server::os_storage::OsStorage;
    use crate::server::run::{Plan, Server};

    /// The address of the RDB file that a session got.
    fn file_of(shared: &Shared, session: SessionId) -> Option<*const u8> {
        let engine = shared.engine();
        match engine.sessions.get(session)?.host_call.as_deref() {
            Some(PendingHostCall::Answered(_, HostReply::Rdb(file, _))) => Some(file.as_ptr()),
            _ => None,
        }
    }

    #[test]
    fn clients_that_want_the_same_get_one_file() {
        let (clock, storage) = (Clock::frozen(Now::from_us(0)), Arc::new(OsStorage));
        let (settings, facts) = (Settings::default(), Facts::default());
        let plan =
            Plan { settings, tcp: false, clock, seed: 1, is_deterministic: true, facts, storage, disk_faults: None };
        let server = Server::open(plan).expect("it opens no socket");
        let shared = server.shared();
        let waiting = Waiting::default();
        let parts = RdbParts { keys: true, functions: true };
        let sessions = [parts, RdbParts { keys: false, ..parts }, parts].map(|parts| {
            let session = shared.connect(Origin::default()).expect("there is room").0;
            let query = DataQuery::Rdb(parts);
            waiting.lock().push(ReadOrder { shared: Arc::clone(shared), session, query });
            session
        });
        read_next(Arc::clone(&waiting));
        let [first, other, same] = sessions.map(|session| file_of(shared, session));
        assert!(first.is_some() && first == same && other.is_none());
        read_next(Arc::clone(&waiting));
        let other = file_of(shared, sessions[1]);
        assert!(other.is_some() && other != first && waiting.lock().is_empty());
        read_next(waiting);
    }
}
