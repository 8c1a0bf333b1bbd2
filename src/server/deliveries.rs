//! Paces the wake-ups of subscribers when a message goes to many of them.
//!
//! A message may go to thousands of subscribers, and each of their connections costs a write. If all were woken at
//! once, every other client would wait for all of those writes, the next publisher included. So [`AT_ONCE`] sessions
//! are woken at a time, and in between the event loop serves other clients; what is published meanwhile reaches the
//! rest in the same write. When [`ENOUGH_BYTES`] wait for a client, all are woken, so that publishers do not run ahead
//! of readers.
//!
//! A session that takes its pushes with a reply, and then gets another, is queued twice; the second wake-up finds
//! nothing.

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
            shared.faults().happen("deliveries");
            let is_enough = |bytes: usize| bytes >= ENOUGH_BYTES;
            let is_behind =
                shared.engine().sessions.get(first).is_some_and(|first| is_enough(first.push_queue.bytes()));
            for session in shared.deliveries().take(if is_behind { usize::MAX } else { AT_ONCE }) {
                shared.notify(session, WakeFlag::Pushed);
            }
            // The woken connections run now, then clients that have sent something, then this task again.
            tokio::task::yield_now().await;
        }
        shared.deliveries().added.notified().await;
    }
}
