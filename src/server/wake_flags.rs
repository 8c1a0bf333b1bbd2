//! Wake flags of one connection: what other tasks want it to do (close, resume, send pushes).
//!
//! A connection is run by one task on one thread, and no other task accesses it. Another task that wants something of
//! it sets a flag here and wakes that task, which checks the flags whenever it runs. The check costs one load while no
//! flag is set, which is nearly always.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

/// An action that another task requests from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeFlag {
    /// Close at once.
    Close = 1,
    /// Retry the request that a pause held back, or whose host call is answered.
    Resume = 2,
    /// Send the pushes that the engine has queued for the session.
    Pushed = 4,
}

/// The flags of one connection, and how to wake it.
#[derive(Debug, Default)]
pub(crate) struct WakeFlags {
    flags: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// The flags that [`WakeFlags::take`] has cleared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenFlags(u8);

impl WakeFlags {
    /// Stores the waker of the connection's task. The task calls it before it checks the flags for the first time.
    pub(crate) fn attach(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    /// Sets a flag, and wakes the connection's task if no flag was set before.
    pub(crate) fn notify(&self, flag: WakeFlag) {
        if self.flags.fetch_or(flag as u8, Ordering::AcqRel) == 0
            && let Some(waker) = &*self.waker.lock()
        {
            waker.wake_by_ref();
        }
    }

    /// Clears all flags, and returns those that were set.
    pub(crate) fn take(&self) -> TakenFlags {
        if self.flags.load(Ordering::Acquire) == 0 {
            return TakenFlags(0);
        }
        TakenFlags(self.flags.swap(0, Ordering::AcqRel))
    }
}

impl TakenFlags {
    /// Whether `flag` was set.
    pub(crate) fn has(self, flag: WakeFlag) -> bool {
        self.0 & flag as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_taken_once() {
        let wake_flags = WakeFlags::default();
        wake_flags.notify(WakeFlag::Resume);
        let flags = wake_flags.take();
        assert!(flags.has(WakeFlag::Resume) && !flags.has(WakeFlag::Close));
        assert!(!wake_flags.take().has(WakeFlag::Resume));
    }
}
