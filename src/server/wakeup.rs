//! The wake-up time of the timer task: one moment to sleep until, which other tasks may make earlier.

use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::clock::Clock;
use super::first_of::first_of;
use super::near_timer::{NearTimer, SHORTEST};
use crate::engine::Now;

const NEVER: i64 = i64::MAX;

/// The moment until which the timer sleeps, and a notification that interrupts the sleep.
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
    /// Sets the moment; with `None` there is none. Only the timer calls this: under the engine's lock, so that no
    /// earlier moment can be lost between its check of the engine and its sleep, or before such a check.
    pub(crate) fn set(&self, moment: Option<Now>) {
        self.at_us.store(moment.map_or(NEVER, |moment| moment.unix_us), Ordering::Release);
    }

    /// Wakes the timer no later than at `moment`.
    pub(crate) fn no_later_than(&self, moment: Now) {
        let is_earlier = moment.unix_us < self.at_us.load(Ordering::Acquire);
        if is_earlier && moment.unix_us < self.at_us.fetch_min(moment.unix_us, Ordering::AcqRel) {
            self.earlier.notify_one();
        }
    }

    /// Sleeps until the moment comes, or until it was made earlier.
    pub(crate) async fn elapsed(&self, clock: &Clock, timer: &mut NearTimer) {
        let at_us = self.at_us.load(Ordering::Acquire);
        let Some(rest) = clock.time_until(Now::from_us(at_us)).filter(|_| at_us != NEVER) else {
            return self.earlier.notified().await;
        };
        if timer.is_for(rest) {
            // In a box, which most worlds never need, so that their tasks are small.
            return Box::pin(self.near(timer, rest)).await;
        }
        // Both outcomes mean the same to the timer.
        let _ = timeout(rest.max(SHORTEST), self.earlier.notified()).await;
    }

    /// Sleeps for this long by `timer`, or until the moment was made earlier.
    async fn near(&self, timer: &mut NearTimer, rest: Duration) {
        first_of(pin!(timer.sleep(rest)), pin!(self.earlier.notified())).await;
    }
}
