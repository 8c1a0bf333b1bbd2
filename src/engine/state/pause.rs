//! CLIENT PAUSE: commands wait, and keys do not expire, until a moment or CLIENT UNPAUSE. A failover that an
//! administrator ordered holds back writes in the same way, and a node that a test has paused (DUNLIN NODE) every
//! request.

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
    /// Until when a failover holds back writes.
    failover_until: Option<Now>,
    /// Whether the node is paused, and answers nothing.
    is_node_paused: bool,
    /// The number of requests that were held back so far.
    held_back_count: u64,
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
        self.held_back_count += 1;
        self.held_back_count
    }

    /// Ends the pause.
    pub fn end(&mut self) {
        self.current = None;
    }

    /// Holds back writes until a moment, for a failover.
    pub(in crate::engine) fn begin_failover(&mut self, until: Now) {
        self.failover_until = Some(until);
    }

    /// Ends the pause of a failover; whether there was one.
    pub(in crate::engine) fn end_failover(&mut self) -> bool {
        self.failover_until.take().is_some()
    }

    /// Holds back every request, whatever it is, or no longer.
    pub(in crate::engine) fn set_node_paused(&mut self, is_paused: bool) {
        self.is_node_paused = is_paused;
    }

    /// Whether the node is paused.
    pub fn is_node_paused(&self) -> bool {
        self.is_node_paused
    }

    /// Ends what is over at a moment; whether anything is.
    pub fn end_at(&mut self, now: Now) -> bool {
        let before = (self.current, self.failover_until);
        self.current = self.current.filter(|&(end, _)| now < end);
        self.failover_until = self.failover_until.filter(|&end| now < end);
        before != (self.current, self.failover_until)
    }

    /// All pauses, of clients and of a failover.
    fn all(&self) -> impl Iterator<Item = (Now, PauseScope)> {
        self.current.into_iter().chain(self.failover_until.map(|end| (end, PauseScope::Write)))
    }

    /// True while a pause lasts.
    pub fn holds(&self, now: Now) -> bool {
        self.is_node_paused || self.all().any(|(end, _)| now < end)
    }

    /// The commands that are held back now; `None` if none are.
    pub fn scope(&self, now: Now) -> Option<PauseScope> {
        self.all().filter(|&(end, _)| now < end).map(|(_, scope)| scope).max()
    }

    /// Moves all ends back by that many microseconds: the clock was set back.
    pub(in crate::engine) fn move_back(&mut self, by_us: i64) {
        let ends = self.current.iter_mut().map(|(end, _)| end).chain(&mut self.failover_until);
        ends.for_each(|end| *end = end.before_us(by_us));
    }

    /// The moment until which a command waits; `writes` is true when it may change data. `None` if it need not wait.
    pub fn holds_back(&self, now: Now, writes: bool) -> Option<Now> {
        let concerns = |&(end, scope): &(Now, PauseScope)| now < end && (writes || scope == PauseScope::All);
        self.all().filter(concerns).map(|(end, _)| end).max()
    }

    /// The end of the pause that ends first, which may be in the past.
    pub fn until(&self) -> Option<Now> {
        self.all().map(|(end, _)| end).min()
    }

    /// The end and scope of the pause of clients that is in force at `now`.
    pub fn current(&self, now: Now) -> Option<(Now, PauseScope)> {
        self.current.filter(|&(end, _)| now < end)
    }
}
