//! What falls due: everything that the engine does at a moment though no request comes, in one list.
//!
//! The timer sleeps until [`Engine::next_due`] and then calls [`Engine::run_due`]. A server compares the [`DueState`]
//! before and after a batch, and wakes the timer earlier if something may fall due earlier now. A test that moves the
//! clock goes from one [`Engine::next_moment`] to the next. All three read [`KEYS`] and [`OTHERS`], so something new
//! that falls due is one row of `OTHERS`, and what happens then is a line in [`Engine::run_due`] or in the server's
//! timer.
//!
//! Not here: closing idle clients (`timeout`), which depends on sockets and is the server's.

use crate::engine::{Engine, Event, Now};
use crate::keyspace::Slot;

/// The caller that asks for the next moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// The timer, which also ends what should have ended before.
    Timer,
    /// A test that moves the clock on to that moment, where what falls due has ended already.
    Clock,
}

/// One kind of thing that falls due: when the next one does.
type Source = fn(&Engine, Asker) -> Option<Now>;

/// Keys and fields of hashes, which have deadlines in the data.
const KEYS: Source = |engine, asker| {
    let deadline_ms = if engine.may_expire() { engine.databases.next_deadline()? } else { return None };
    let grace_ms = if asker == Asker::Timer { engine.grace_ms() } else { 0 };
    Now::from_ms(deadline_ms.saturating_add(grace_ms))
};

/// Everything else that falls due.
const OTHERS: [Source; 4] = [
    // Timeouts of blocked clients, and commands that the test kit delays.
    |engine, _| engine.observers.waiting.next_deadline().and_then(Now::from_ms),
    // Invalidations of keys that no longer fit the tracking table.
    |engine, _| engine.tracking_deadline().and_then(Now::from_ms),
    // The end of a pause.
    |engine, asker| match asker {
        Asker::Timer => engine.timing.pause.until(),
        Asker::Clock => engine.timing.pause.current(engine.timing.now).map(|(end, _)| end),
    },
    // Clients that have been over the soft limit of their output for too long.
    |engine, _| engine.observers.overfull.next(),
];

/// A fingerprint that changes when something may fall due earlier than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueState {
    /// Changes of the data, any of which may have set a deadline.
    changes: u64,
    may_expire: bool,
    others: [Option<Now>; OTHERS.len()],
}

impl Engine {
    /// The moment when the timer has something to do next. What no clock ever reaches never falls due.
    pub fn next_due(&self) -> Option<Now> {
        self.next_for(Asker::Timer)
    }

    /// The moment when something happens next though no request comes, for a test that moves the clock there.
    pub fn next_moment(&self) -> Option<Now> {
        self.next_for(Asker::Clock)
    }

    fn next_for(&self, asker: Asker) -> Option<Now> {
        OTHERS.iter().chain([&KEYS]).filter_map(|source| source(self, asker)).min()
    }

    /// The state to compare with a later one.
    pub fn due_state(&self) -> DueState {
        DueState {
            changes: self.stats.changes,
            may_expire: self.switches.active_expiry && !self.switches.cron_paused,
            others: OTHERS.map(|source| source(self, Asker::Timer)),
        }
    }

    /// Runs what is due, at most `limit` things: closes clients that have not read for too long, ends waits, and
    /// removes keys and fields of hashes whose deadline has passed, in the order of their deadlines. Returns how many;
    /// fewer than `limit` means that none is left.
    pub fn run_due(&mut self, now: Now, limit: usize) -> usize {
        self.at(now);
        self.cut_off_overfull();
        if self.scripts.is_busy() {
            return 0;
        }
        self.unblock_ready();
        let mut expired = self.time_out(limit);
        if !self.may_expire() {
            return expired;
        }
        let (timer, before) = (self.start_timer(), expired);
        for database in 0..self.databases.count() {
            while expired < limit {
                let ended = self.expire_next(database, limit - expired);
                if ended == 0 {
                    break;
                }
                expired += ended;
            }
        }
        if expired > before {
            let elapsed_us = self.elapsed_us(timer);
            self.stats.expiring_us = self.stats.expiring_us.saturating_add(elapsed_us);
            self.record_latency("expire-cycle", elapsed_us);
        }
        self.unblock_ready();
        expired
    }

    /// Removes what expires first: a key, or those fields of one hash, at most `limit`, that expire together.
    fn expire_next(&mut self, database: usize, limit: usize) -> usize {
        let (data, last_ms) = (self.databases.get(database), self.due_ms());
        let key = data.first_due().filter(|(due_ms, _)| *due_ms <= last_ms);
        let fields = data.first_part_due().filter(|(due_ms, _)| *due_ms <= last_ms);
        match (key, fields) {
            (Some((key_ms, slot)), fields) if fields.is_none_or(|(due_ms, _)| key_ms <= due_ms) => {
                self.expire_slot(database, slot);
                1
            }
            (_, Some((due_ms, slot))) => self.end_fields(database, slot, |hash| hash.remove_due(due_ms, limit)).0,
            (_, None) => 0,
        }
    }

    pub(super) fn expire_slot(&mut self, database: usize, slot: Slot) {
        let key = self.databases.get(database).key(slot).to_vec();
        let lazy_free = self.databases.get_mut(database).delete(slot);
        self.free(lazy_free);
        self.stats.expired_keys += 1;
        self.changed(database, Event::EXPIRED, &key);
    }

    pub(super) fn may_expire(&self) -> bool {
        self.switches.active_expiry && !self.switches.cron_paused && !self.timing.pause.holds(self.timing.now)
    }

    /// The latest deadline that ends a key or field now.
    #[inline]
    pub fn due_ms(&self) -> i64 {
        self.timing.now.unix_ms() - self.grace_ms()
    }

    /// How much later than its deadline a key ends, in milliseconds.
    #[inline]
    fn grace_ms(&self) -> i64 {
        i64::from(!self.timing.is_held)
    }
}
