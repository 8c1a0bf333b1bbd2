//! Where others leave a word for one connection: end yourself, go on, listen.
//!
//! A connection is run by one task on one thread, and nobody else touches it. Whoever wants something of it sets a bit
//! here and wakes that task, which looks at the bits first thing whenever it runs. Looking costs one load while there
//! is nothing, which is nearly always.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

/// What a connection may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letter {
    /// End, at once.
    Close = 1,
    /// Try again the request that a pause held back.
    Resume = 2,
    /// Fetch what the session is told.
    Told = 4,
}

/// The letters of one connection, and how to wake it.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    letters: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// Letters that were taken out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letters(u8);

impl Mailbox {
    /// Says whom to wake. The owner calls it before it looks for letters the first time.
    pub(crate) fn attach(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    /// Leaves a letter, and wakes the owner if it was the first.
    pub(crate) fn post(&self, letter: Letter) {
        if self.letters.fetch_or(letter as u8, Ordering::AcqRel) == 0
            && let Some(waker) = &*self.waker.lock()
        {
            waker.wake_by_ref();
        }
    }

    /// Takes all letters out.
    pub(crate) fn take(&self) -> Letters {
        if self.letters.load(Ordering::Acquire) == 0 {
            return Letters(0);
        }
        Letters(self.letters.swap(0, Ordering::AcqRel))
    }
}

impl Letters {
    /// Whether this letter is among them.
    pub(crate) fn has(self, letter: Letter) -> bool {
        self.0 & letter as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_read_once() {
        let mailbox = Mailbox::default();
        mailbox.post(Letter::Resume);
        let letters = mailbox.take();
        assert!(letters.has(Letter::Resume) && !letters.has(Letter::Close));
        assert!(!mailbox.take().has(Letter::Resume));
    }
}
