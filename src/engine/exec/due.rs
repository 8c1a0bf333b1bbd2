//! Everything that falls due, in one list: what the engine does at a moment without a request.
//!
//! The timer sleeps until [`Engine::next_due`] and then calls [`Engine::run_due`]. After a batch, a server has the
//! timer wake no later than [`Engine::next_due_since`] says. A test that moves the clock goes from one
//! [`Engine::next_moment`] to the next. All three read [`KEYS`] and [`OTHERS`], so something new that falls due is one
//! row of `OTHERS`, and what happens then is a line in [`Engine::run_due`] or in the server's timer.
//!
//! Not here: closing idle clients (`timeout`), which depends on sockets and is the server's.

use crate::engine::Engine;
use crate::engine::exec::{
    aof, blocking, changes, cluster, delivery, failover, fields, kit, persistence, propagation, replication, sleep,
    timing, tracking,
};
use crate::engine::spec::{Event, Now};
use crate::keyspace::KeyHandle;

/// The caller that asks for the next moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// The timer, which also ends what should have ended before.
    Timer,
    /// A test that moves the clock on to that moment, where what falls due has ended already.
    Clock,
}

/// A kind of thing that falls due: the function returns the moment of the next one.
type Source = fn(&Engine, Asker) -> Option<Now>;

/// Keys and fields of hashes, which have deadlines in the data.
const KEYS: Source = |engine, asker| {
    let deadline_ms = if may_expire(engine) { engine.databases.next_deadline()? } else { return None };
    let grace_ms = if asker == Asker::Timer { engine.timing.grace_ms() } else { 0 };
    Now::from_ms(deadline_ms.saturating_add(grace_ms))
};

/// Everything that falls due besides keys.
const OTHERS: [Source; 10] = [
    // Timeouts of blocked clients, and commands that the test kit delays.
    |engine, _| engine.observers.waiting.next_deadline().and_then(Now::from_ms),
    // Invalidations of keys that no longer fit the tracking table.
    |engine, _| tracking::tracking_deadline(engine).and_then(Now::from_ms),
    // The end of a pause.
    |engine, asker| match asker {
        Asker::Timer => engine.timing.pause.until(),
        Asker::Clock => engine.timing.pause.until().filter(|end| *end > engine.timing.now),
    },
    // A save that a save point asks for, or that was scheduled.
    |engine, _| persistence::next_save(engine),
    // A rewrite of the append-only file that was scheduled, or that its growth asks for, and its next sync.
    |engine, _| aof::next_rewrite(engine),
    |engine, _| aof::next_sync(engine),
    // Clients that have been over the soft limit of their output for too long.
    |engine, _| engine.observers.overfull.next(),
    // Nodes of the cluster that are disconnected for too long, and messages of others that arrive late.
    |engine, _| cluster::next_step(engine),
    // Elections, failovers, and parts of a primary's stream that are to be applied late.
    |engine, _| failover::next_step(engine),
    |engine, _| replication::next_part(engine),
];

/// A fingerprint that changes when a key may fall due earlier than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueState {
    /// Changes of the data, any of which may have set a deadline.
    changes: u64,
    may_expire: bool,
}

impl Engine {
    /// The moment when the timer has something to do next. What no clock ever reaches never falls due.
    pub fn next_due(&self) -> Option<Now> {
        next_for(self, Asker::Timer)
    }

    /// The next moment at which something happens without a request, for a test that moves the clock there.
    pub fn next_moment(&self) -> Option<Now> {
        next_for(self, Asker::Clock)
    }

    /// The state to compare with a later one.
    pub fn due_state(&self) -> DueState {
        DueState { changes: self.stats.changes, may_expire: may_expire(self) }
    }

    /// Like [`Engine::next_due`], but without keys if none can have become due earlier since `before`: finding the
    /// first of those takes longer than a command.
    pub fn next_due_since(&self, before: DueState) -> Option<Now> {
        if before == self.due_state() { next_other(self, Asker::Timer) } else { self.next_due() }
    }

    /// Runs what is due, at most `limit` things: closes clients that have not read for too long, ends waits, and
    /// removes keys and fields of hashes whose deadline has passed, in the order of their deadlines. Returns how many;
    /// fewer than `limit` means that none is left.
    pub fn run_due(&mut self, now: Now, limit: usize) -> usize {
        self.at(now);
        delivery::cut_off_overfull(self);
        if self.scripts.is_busy() {
            return 0;
        }
        self.unblock_ready();
        persistence::begin_next(self);
        aof::rewrite_if_due(self);
        aof::sync_if_due(self, now);
        cluster::take_steps(self);
        failover::take_step(self);
        replication::apply_due(self);
        kit::waits::wake_waiters(self);
        let mut expired = blocking::time_out(self, limit);
        if !may_expire(self) {
            return expired;
        }
        let (timer, before) = (timing::start_timer(self), expired);
        for database in 0..self.databases.count() {
            while expired < limit {
                let ended = expire_next(self, database, limit - expired);
                if ended == 0 {
                    break;
                }
                expired += ended;
            }
        }
        if expired > before {
            let elapsed_us = timing::elapsed_us(self, timer);
            self.stats.expiring_us = self.stats.expiring_us.saturating_add(elapsed_us);
            timing::record_latency(self, "expire-cycle", elapsed_us);
        }
        self.unblock_ready();
        expired
    }
}

/// Like [`Engine::next_moment`], of what is not due yet at `now`.
pub fn next_moment_after(engine: &Engine, now: Now) -> Option<Now> {
    if let Some(end) = sleep::ends(engine) {
        return Some(end).filter(|end| *end > now);
    }
    let moments = std::iter::once(&KEYS).chain(&OTHERS).filter_map(|source| source(engine, Asker::Clock));
    moments.filter(|moment| *moment > now).min()
}

fn next_for(engine: &Engine, asker: Asker) -> Option<Now> {
    if let Some(end) = sleep::ends(engine) {
        return Some(end);
    }
    KEYS(engine, asker).into_iter().chain(next_other(engine, asker)).min()
}

#[inline]
fn next_other(engine: &Engine, asker: Asker) -> Option<Now> {
    OTHERS.iter().filter_map(|source| source(engine, asker)).min()
}

/// Removes what expires first: a key, or those fields of one hash, at most `limit`, that expire together.
fn expire_next(engine: &mut Engine, database: usize, limit: usize) -> usize {
    let (data, last_ms) = (engine.databases.get(database), engine.timing.due_ms());
    let key = data.first_due().filter(|(due_ms, _)| *due_ms <= last_ms);
    let fields = data.first_part_due().filter(|(due_ms, _)| *due_ms <= last_ms);
    match (key, fields) {
        (Some((key_ms, handle)), fields) if fields.is_none_or(|(due_ms, _)| key_ms <= due_ms) => {
            expire_key(engine, database, handle);
            note_lag(engine, key_ms, 1);
            1
        }
        (_, Some((due_ms, handle))) => {
            let (removed, _) =
                fields::remove_fields(engine, database, handle, |removal, hash| removal.due(hash, due_ms, limit));
            note_lag(engine, due_ms, removed);
            removed
        }
        (_, None) => 0,
    }
}

/// Counts removals by the time since they could have been made: from the end of the deadline's millisecond on.
fn note_lag(engine: &mut Engine, deadline_ms: i64, removals: usize) {
    let from_us = deadline_ms.saturating_add(engine.timing.grace_ms()).saturating_mul(1000);
    let lag_us = engine.timing.now.unix_us.saturating_sub(from_us);
    engine.stats.expiry_lag.add(lag_us.try_into().unwrap_or(0), removals as u64);
}

pub(super) fn expire_key(engine: &mut Engine, database: usize, handle: KeyHandle) {
    let key = engine.databases.get(database).key(handle).to_vec();
    let lazy_free = engine.databases.get_mut(database).delete(handle);
    engine.free(lazy_free);
    engine.stats.expired_keys += 1;
    changes::changed(engine, database, Event::EXPIRED, &key);
    propagation::deletion(engine, database, &key, engine.settings.lazy_free.expired);
}

pub(super) fn may_expire(engine: &Engine) -> bool {
    engine.switches.active_expiry
        && !engine.switches.cron_paused
        && engine.persistence.loading.is_none()
        && !engine.timing.holds_expiry()
}
