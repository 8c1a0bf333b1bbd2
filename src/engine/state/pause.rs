//! CLIENT PAUSE: commands wait, and keys do not expire, until a moment or CLIENT UNPAUSE.

use crate::engine::spec::Now;

/// The commands that a pause holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PauseScope {
    /// Commands that may change data.
    Write,
    /// All commands.
    All,
}

/// The current pause, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pause {
    current: Option<(Now, PauseScope)>,
    /// The number of requests that were held back so far.
    held_back: u64,
}

impl Pause {
    /// Begins or extends a pause: the later end and the wider scope of the old and the new one apply.
    pub fn begin(&mut self, now: Now, until: Now, scope: PauseScope) {
        self.current = match self.current.filter(|&(end, _)| now < end) {
            Some((end, held)) => Some((end.max(until), held.max(scope))),
            None => Some((until, scope)),
        };
    }

    /// Counts another request that is held back; returns its number, from 1 on.
    pub(in crate::engine) fn next_number(&mut self) -> u64 {
        self.held_back += 1;
        self.held_back
    }

    /// Ends the pause.
    pub fn end(&mut self) {
        self.current = None;
    }

    /// True while a pause lasts.
    pub fn holds(&self, now: Now) -> bool {
        self.current.is_some_and(|(end, _)| now < end)
    }

    /// The moment until which a command waits; `writes` is true when it may change data. `None` if it need not wait.
    pub fn holds_back(&self, now: Now, writes: bool) -> Option<Now> {
        let (end, scope) = self.current?;
        (now < end && (writes || scope == PauseScope::All)).then_some(end)
    }

    /// The end of the pause, which may be in the past.
    pub fn until(&self) -> Option<Now> {
        self.current.map(|(end, _)| end)
    }

    /// The end and scope of the pause that is in force at `now`.
    pub fn current(&self, now: Now) -> Option<(Now, PauseScope)> {
        self.current.filter(|&(end, _)| now < end)
    }
}
