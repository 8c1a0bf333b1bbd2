//! CLIENT PAUSE: commands wait, and keys do not expire, until a moment comes or CLIENT UNPAUSE.

use crate::engine::spec::Now;

/// Which commands a pause holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PauseScope {
    /// Those that may change data.
    Write,
    /// All.
    All,
}

/// A pause, or none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pause {
    current: Option<(Now, PauseScope)>,
    /// How many requests were held back so far.
    turns: u64,
}

impl Pause {
    /// Begins or prolongs a pause. The later end and the wider scope of the old and the new one hold.
    pub fn begin(&mut self, now: Now, until: Now, scope: PauseScope) {
        self.current = match self.current.filter(|&(end, _)| now < end) {
            Some((end, held)) => Some((end.max(until), held.max(scope))),
            None => Some((until, scope)),
        };
    }

    /// Counts another request that is held back; returns how many were before it.
    pub(in crate::engine) fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Ends the pause.
    pub fn end(&mut self) {
        self.current = None;
    }

    /// True while a pause lasts.
    pub fn holds(&self, now: Now) -> bool {
        self.current.is_some_and(|(end, _)| now < end)
    }

    /// Until when a command waits: `writes` tells whether it may change data.
    pub fn holds_back(&self, now: Now, writes: bool) -> Option<Now> {
        let (end, scope) = self.current?;
        (now < end && (writes || scope == PauseScope::All)).then_some(end)
    }

    /// When it ends, or would have ended had anybody looked.
    pub fn until(&self) -> Option<Now> {
        self.current.map(|(end, _)| end)
    }

    /// What lasts: its end and scope.
    pub fn current(&self, now: Now) -> Option<(Now, PauseScope)> {
        self.current.filter(|&(end, _)| now < end)
    }
}
