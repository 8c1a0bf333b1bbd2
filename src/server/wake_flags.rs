//! Wake flags of one connection: what other tasks want it to do (close, resume, send pushes).
//!
//! A connection is run by one task on one thread, and nobody else touches it. Another task that wants something of it
//! sets a flag here and wakes that task, which checks the flags whenever it runs. The check costs one load while no
//! flag is set, which is nearly always.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

/// What a connection may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeFlag {
    /// End, at once.
    Close = 1,
    /// Try again the request that a pause held back.
    Resume = 2,
    /// Fetch what the session is told.
    Pushed = 4,
}

/// The flags of one connection, and how to wake it.
#[derive(Debug, Default)]
pub(crate) struct WakeFlags {
    flags: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// TakenFlags that were taken out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenFlags(u8);

impl WakeFlags {
    /// Says whom to wake. The owner calls it before it looks for flags the first time.
    pub(crate) fn attach(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    /// Leaves a flag, and wakes the owner if it was the first.
    pub(crate) fn notify(&self, flag: WakeFlag) {
        if self.flags.fetch_or(flag as u8, Ordering::AcqRel) == 0
            && let Some(waker) = &*self.waker.lock()
        {
            waker.wake_by_ref();
        }
    }

    /// Takes all flags out.
    pub(crate) fn take(&self) -> TakenFlags {
        if self.flags.load(Ordering::Acquire) == 0 {
            return TakenFlags(0);
        }
        TakenFlags(self.flags.swap(0, Ordering::AcqRel))
    }
}

impl TakenFlags {
    /// Whether this flag is among them.
    pub(crate) fn has(self, flag: WakeFlag) -> bool {
        self.0 & flag as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_read_once() {
        let wake_flags = WakeFlags::default();
        wake_flags.notify(WakeFlag::Resume);
        let flags = wake_flags.take();
        assert!(flags.has(WakeFlag::Resume) && !flags.has(WakeFlag::Close));
        assert!(!wake_flags.take().has(WakeFlag::Resume));
    }
}
