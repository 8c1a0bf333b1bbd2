//! Paces the wake-ups of subscribers when a message goes to many of them.
//!
//! A message may go to thousands of subscribers, and each of their connections costs a write. If all were woken at
//! once, every other client would wait for all of those writes, the next publisher included. So [`AT_ONCE`] sessions
//! are woken at a time, and in between the event loop serves other clients; what is published meanwhile reaches the
//! rest in the same write. When [`ENOUGH_BYTES`] wait for a client, all are woken, so that publishers do not run ahead
//! of readers.
//!
//! A session is queued once, even if it takes its pushes with a reply, and then gets others: were it queued again for
//! each, subscribers that send requests would have the others wait ever longer.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::contain::keep_running;
use super::shared::Shared;
use super::wake_flags::WakeFlag;
use crate::engine::SessionId;

/// The number of sessions that are woken together.
pub(crate) const AT_ONCE: usize = 64;

/// When this many bytes wait for the first session of the queue, all sessions are woken.
const ENOUGH_BYTES: usize = 64 << 10;

/// Sessions in the order in which they are to be woken.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    waiting: Mutex<VecDeque<SessionId>>,
    added: Notify,
}

impl Deliveries {
    /// Adds a session to the end of the queue.
    pub(crate) fn add(&self, session: SessionId) {
        let mut waiting = self.waiting.lock();
        waiting.push_back(session);
        if waiting.len() == 1 {
            self.added.notify_one();
        }
    }

    /// True while no session waits to be woken.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    fn first(&self) -> Option<SessionId> {
        self.waiting.lock().front().copied()
    }

    fn take(&self, count: usize) -> Vec<SessionId> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(count);
        waiting.drain(..count).collect()
    }
}

/// Wakes the queued sessions, for as long as the server serves.
pub(crate) async fn deliver(shared: Arc<Shared>) {
    keep_running("the delivery of messages", || deliver_all(&shared)).await;
}

async fn deliver_all(shared: &Shared) {
    loop {
        // The queue is checked before the first wait, because a panic may have left sessions in it.
        while let Some(first) = shared.deliveries().first() {
            #[cfg(test)]
            shared.test_panics().panic_if_ordered("deliveries");
            for session in next(shared, first) {
                shared.notify(session, WakeFlag::Pushed);
            }
            // The woken connections run now, then clients that have sent something, then this task again.
            tokio::task::yield_now().await;
        }
        shared.deliveries().added.notified().await;
    }
}

/// Takes the sessions that are to be woken now, of which that is the first.
fn next(shared: &Shared, first: SessionId) -> Vec<SessionId> {
    let mut engine = shared.engine();
    let bytes = engine.sessions.get(first).map_or(0, |first| first.push_queue.bytes());
    let taken = shared.deliveries().take(if bytes >= ENOUGH_BYTES { usize::MAX } else { AT_ONCE });
    for session in &taken {
        if let Some(client) = engine.sessions.get_mut(*session) {
            client.is_to_be_woken = false;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::host::Facts;
    use crate::engine::{Flow, Now, Origin, Settings};
    use crate::resp::{ReplyBuffer, Requests};
    use crate::server::clock::Clock;
    use crate::server::os_storage::OsStorage;
    use crate::server::run::{Plan, Server};

    fn ask(shared: &Shared, session: SessionId, line: &str) {
        let request = Requests::of(line.split(' ').map(str::as_bytes));
        let request = request.iter().next().expect("there is one");
        let flow = shared.call(session, request, &mut ReplyBuffer::default()).expect("its session exists");
        assert_eq!(flow, Flow::Next);
    }

    #[test]
    fn a_subscriber_that_takes_its_messages_with_a_reply_is_queued_once() {
        let (clock, storage) = (Clock::frozen(Now::from_us(0)), Arc::new(OsStorage));
        let (settings, facts) = (Settings::default(), Facts::default());
        let plan =
            Plan { settings, tcp: false, clock, seed: 1, is_deterministic: true, facts, storage, disk_faults: None };
        let server = Server::open(plan).expect("it opens no socket");
        let shared = server.shared();
        let come = || shared.connect(Origin::default()).expect("there is room").0;
        let subscribers: Vec<SessionId> = (0..AT_ONCE + 10).map(|_| come()).collect();
        for subscriber in &subscribers {
            ask(shared, *subscriber, "HELLO 3");
            ask(shared, *subscriber, "SUBSCRIBE news");
        }
        let publisher = come();
        let publish = || {
            ask(shared, publisher, "PUBLISH news message");
            subscribers.iter().for_each(|subscriber| ask(shared, *subscriber, "PING"));
            shared.deliveries().waiting.lock().len()
        };
        // The first are woken at once, and while others are queued they are, too.
        let all = subscribers.len();
        assert_eq!([publish(), publish(), publish()], [all - AT_ONCE, all, all]);
        assert_eq!(next(shared, subscribers[AT_ONCE]).len(), AT_ONCE);
        assert_eq!(publish(), all, "those that were woken are queued again");
    }
}
