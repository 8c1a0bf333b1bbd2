//! The wake-up of the timer task: one moment to sleep until, which other tasks may make earlier.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::clock::Clock;
use crate::engine::Now;

const NEVER: i64 = i64::MAX;

/// One moment, and a way to be called before it.
#[derive(Debug)]
pub(crate) struct Wakeup {
    at_us: AtomicI64,
    earlier: Notify,
}

impl Default for Wakeup {
    fn default() -> Wakeup {
        Wakeup { at_us: AtomicI64::new(NEVER), earlier: Notify::new() }
    }
}

impl Wakeup {
    /// Sets it, or turns it off. Only the sleeper does this, and under the engine's lock, so that no reason to ring
    /// earlier can slip in between its look at the engine and its sleep.
    pub(crate) fn set(&self, moment: Option<Now>) {
        self.at_us.store(moment.map_or(NEVER, |moment| moment.unix_us), Ordering::Release);
    }

    /// Makes it ring no later than at `moment`.
    pub(crate) fn no_later_than(&self, moment: Now) {
        let is_earlier = moment.unix_us < self.at_us.load(Ordering::Acquire);
        if is_earlier && moment.unix_us < self.at_us.fetch_min(moment.unix_us, Ordering::AcqRel) {
            self.earlier.notify_one();
        }
    }

    /// Sleeps until it rings.
    pub(crate) async fn elapsed(&self, clock: &Clock) {
        let at_us = self.at_us.load(Ordering::Acquire);
        let Some(rest) = clock.time_until(Now::from_us(at_us)).filter(|_| at_us != NEVER) else {
            return self.earlier.notified().await;
        };
        // A timer may end within the millisecond before its time is up; asking again at once would be a spin.
        let rest = rest.max(Duration::from_millis(1));
        tokio::select! {
            () = self.earlier.notified() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}
