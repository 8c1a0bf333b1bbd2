//! What happens when memory is short: keys or clients go, or commands that would need more are refused.
//!
//! Before a command passes its gates, memory is compared with `maxmemory`. While it is more, keys are removed by the
//! rule of `maxmemory-policy`, until it fits or the time is up that `maxmemory-eviction-tenacity` allows: half a
//! millisecond usually, so that nobody waits for it. The timer of time goes on then between the turns of clients. If
//! nothing is left that the policy lets go, memory stays short, and commands that may make the data larger are refused.
//!
//! What counts is what the server holds for its clients and their data: keys and values with the tables that find them,
//! buffers of clients in both directions (those of subscribers too), queued transactions, scripts and what is known for
//! client-side caching. As in Redis the interpreters of scripts are not counted, nor is room that is held for keys to
//! come: it is there for the next ones.
//!
//! Which key goes is found by sampling, with chance from the engine's generator, and kept in a pool (`victims`). The
//! key that falls due first is known exactly. Which client goes is in `clients`.
//!
//! Costs: without a limit, one comparison a command; with one, a sum over the databases that hold keys.

mod clients;
mod pool;
mod victims;

use crate::engine::{Engine, Event, Flags, Now};
use crate::keyspace::Slot;

pub use clients::ClientsLimit;
pub(super) use clients::{AccountedMemory, ClientMemory};

/// Which keys go when memory is short, and by what order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// Of the keys with a deadline, those not used for the longest time.
    VolatileLru,
    /// Of the keys with a deadline, those used least often.
    VolatileLfu,
    /// Any keys with a deadline.
    VolatileRandom,
    /// The keys that fall due first.
    VolatileTtl,
    /// Those not used for the longest time.
    AllkeysLru,
    /// Those used least often.
    AllkeysLfu,
    /// Any.
    AllkeysRandom,
    /// None.
    #[default]
    NoEviction,
}

impl Policy {
    /// All, as the configuration spells them, in Redis's order.
    pub const NAMES: [&str; 8] = [
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "noeviction",
    ];

    const ALL: [Policy; 8] = [
        Policy::VolatileLru,
        Policy::VolatileLfu,
        Policy::VolatileRandom,
        Policy::VolatileTtl,
        Policy::AllkeysLru,
        Policy::AllkeysLfu,
        Policy::AllkeysRandom,
        Policy::NoEviction,
    ];

    /// As the configuration spells it.
    pub fn name(self) -> &'static str {
        Policy::NAMES[self as usize]
    }

    /// The policy of that name; the usual one when the name is unknown.
    pub fn named(name: &str) -> Policy {
        Policy::ALL.into_iter().find(|policy| policy.name() == name).unwrap_or_default()
    }

    /// True when it goes by how often keys are used, so that uses are counted instead of timed.
    pub fn counts_uses(self) -> bool {
        matches!(self, Policy::VolatileLfu | Policy::AllkeysLfu)
    }

    /// True when it goes by when or how often keys are used.
    pub fn goes_by_use(self) -> bool {
        self.counts_uses() || matches!(self, Policy::VolatileLru | Policy::AllkeysLru)
    }

    /// True when only keys with a deadline may go.
    fn spares_lasting_keys(self) -> bool {
        matches!(self, Policy::VolatileLru | Policy::VolatileLfu | Policy::VolatileRandom | Policy::VolatileTtl)
    }
}

/// How short memory is, and who is to go next.
#[derive(Debug, Default)]
pub struct Pressure {
    /// There was not enough memory for the command that runs, and nothing more to remove.
    pub(super) is_short: bool,
    /// Keys are still to be removed; the time for one go was up.
    is_evicting: bool,
    /// Since when memory has been short, by the world's own clock, in microseconds.
    short_since_us: Option<u64>,
    pool: pool::Pool,
    /// The policy that the pool's scores are of.
    scored_by: Policy,
    /// Where the next key is taken that any may be.
    next_database: usize,
}

impl Pressure {
    /// Forgets whom it has seen, so that it begins as it did at the start.
    pub(super) fn forget(&mut self) {
        self.pool.clear();
        self.next_database = 0;
    }

    /// How long memory has been short now, in microseconds.
    pub fn short_us(&self, now_us: u64) -> u64 {
        self.short_since_us.map_or(0, |since_us| now_us.saturating_sub(since_us))
    }
}

/// What became of an attempt to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relief {
    /// There is enough memory.
    Enough,
    /// There will be.
    Later,
    /// There is not, and nothing that may be removed.
    None,
}

/// How many keys are removed between two looks at the clock.
const BETWEEN_LOOKS: usize = 16;

impl Engine {
    /// Bytes of memory that count.
    pub fn used_bytes(&self) -> u64 {
        let data = self.databases.memory_bytes() + self.sessions.memory_bytes();
        (data + self.scripts.source_bytes() + self.observers.tracking.memory_bytes()) as u64
    }

    /// Makes room if memory is short, and answers whether it still is. `flags` are those of the command that comes.
    pub(super) fn evict_for(&mut self, flags: Flags) -> bool {
        if self.settings.max_memory_bytes == 0 || self.scripts.is_busy() {
            self.databases.pressure.is_short = false;
            return false;
        }
        let is_short = self.evict() == Relief::None;
        self.databases.pressure.is_short = is_short;
        is_short && flags.has(Flags::DENYOOM)
    }

    /// True while keys are to be removed between the turns of clients.
    pub fn is_evicting(&self) -> bool {
        self.databases.pressure.is_evicting
    }

    /// Has keys be removed between the turns of clients, if there are too many now: a limit has changed.
    pub fn begin_evicting(&mut self) {
        let limit = self.settings.max_memory_bytes;
        self.databases.pressure.is_evicting = limit > 0 && self.used_bytes() > limit;
    }

    /// Removes more of the keys that are to go; answers whether it is to be called again.
    pub fn go_on_evicting(&mut self, now: Now) -> bool {
        if self.is_evicting() {
            self.at(now);
            self.databases.pressure.is_evicting = false;
            if self.settings.max_memory_bytes > 0 && !self.scripts.is_busy() {
                self.evict();
            }
        }
        self.is_evicting()
    }

    fn evict(&mut self) -> Relief {
        if self.timing.pause.holds(self.timing.now) {
            return Relief::Enough;
        }
        let limit = self.settings.max_memory_bytes;
        let excess = self.used_bytes().saturating_sub(limit);
        let relief = match self.settings.policy {
            _ if excess == 0 => Relief::Enough,
            Policy::NoEviction => Relief::None,
            _ => self.free_bytes(excess),
        };
        self.note_relief(relief);
        relief
    }

    /// Removes keys that take so many bytes together, as long as there is time.
    fn free_bytes(&mut self, excess: u64) -> Relief {
        let began_us = self.host.elapsed_us();
        let limit_us =
            if self.switches.is_deterministic { u64::MAX } else { time_limit_us(self.settings.eviction_tenacity) };
        let (mut freed, mut count) = (0, 0);
        while freed < excess {
            let Some((database, slot)) = self.victim() else { return Relief::None };
            freed += self.evict_key(database, slot);
            count += 1;
            if count % BETWEEN_LOOKS == 0 && self.host.elapsed_us().saturating_sub(began_us) > limit_us {
                self.databases.pressure.is_evicting = true;
                return Relief::Later;
            }
        }
        Relief::Enough
    }

    /// Removes a key for want of memory; answers how many bytes that gave back.
    fn evict_key(&mut self, database: usize, slot: Slot) -> u64 {
        let data = self.databases.get_mut(database);
        let (key, before) = (data.key(slot).to_vec(), data.memory());
        let lazy_free = data.delete(slot);
        let freed = before.saturating_sub(data.memory()) as u64;
        self.free(lazy_free);
        self.stats.evicted_keys += 1;
        self.changed(database, Event::EVICTED, &key);
        freed
    }

    /// Keeps the time for which memory was short.
    fn note_relief(&mut self, relief: Relief) {
        let pressure = &mut self.databases.pressure;
        match (relief, pressure.short_since_us) {
            (Relief::Enough, None) | (Relief::Later | Relief::None, Some(_)) => {}
            (Relief::Enough, Some(since_us)) => {
                self.stats.short_of_memory_us += self.host.elapsed_us().saturating_sub(since_us);
                pressure.short_since_us = None;
            }
            (Relief::Later | Relief::None, None) => pressure.short_since_us = Some(self.host.elapsed_us()),
        }
    }
}

/// How long one go may take: up to half a millisecond for a tenacity of 10, then more by 15 percent for each step,
/// about two minutes at 99, and any time at 100.
fn time_limit_us(tenacity: u8) -> u64 {
    match tenacity {
        0..=10 => 50 * u64::from(tenacity),
        11..=99 => (500.0 * 1.15_f64.powi(i32::from(tenacity) - 10)) as u64,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_its_name() {
        for (policy, name) in Policy::ALL.into_iter().zip(Policy::NAMES) {
            assert_eq!((policy.name(), Policy::named(name)), (name, policy));
        }
    }

    #[test]
    fn tenacity_is_half_a_millisecond_at_10_and_some_two_minutes_at_99() {
        assert_eq!([0, 1, 10, 11].map(time_limit_us), [0, 50, 500, 575]);
        assert!((100_000_000..200_000_000).contains(&time_limit_us(99)));
        assert_eq!(time_limit_us(100), u64::MAX);
    }
}
