//! Eviction: when memory is short, keys or clients are removed, or commands that would need more are refused.
//!
//! Before a command passes its gates, memory is compared with `maxmemory`. While it is over, keys are removed as
//! `maxmemory-policy` says, until it fits or the time that `maxmemory-eviction-tenacity` allows is used up: half a
//! millisecond by default, so that no client waits long. Then the timer continues between the turns of clients. If
//! no key is left that the policy may evict, commands that may make the data larger are refused.
//!
//! The memory that counts is what the server holds for its clients and their data: keys and values with their tables,
//! buffers of clients in both directions (those of subscribers too), queued transactions, scripts and the tables of
//! client-side caching. As in Redis the interpreters of scripts are not counted, nor is spare room reserved for keys
//! to come.
//!
//! The key to evict is found by sampling, with random numbers from the engine's generator, and a pool of candidates
//! (`victims`). The key that expires first is known exactly. The choice of a client is in `clients`.
//!
//! Costs: without a limit, one comparison per command; with one, a sum over the databases that hold keys.

mod clients;
mod pool;
mod victims;

use crate::engine::{Engine, Event, Flags, Now};
use crate::keyspace::Slot;

pub use clients::ClientsLimit;
pub(super) use clients::{AccountedMemory, ClientMemory};

/// `maxmemory-policy`: which keys are evicted when memory is short, and in what order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// `volatile-lru`: of the keys with a deadline, the least recently used.
    VolatileLru,
    /// `volatile-lfu`: of the keys with a deadline, the least frequently used.
    VolatileLfu,
    /// `volatile-random`: any keys with a deadline.
    VolatileRandom,
    /// `volatile-ttl`: the keys that expire first.
    VolatileTtl,
    /// `allkeys-lru`: the least recently used keys.
    AllkeysLru,
    /// `allkeys-lfu`: the least frequently used keys.
    AllkeysLfu,
    /// `allkeys-random`: any keys.
    AllkeysRandom,
    /// `noeviction`: no keys.
    #[default]
    NoEviction,
}

impl Policy {
    /// All policies with their names in the configuration, in Redis's order.
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

    /// The name of the policy in the configuration.
    pub fn name(self) -> &'static str {
        Policy::NAMES[self as usize]
    }

    /// The policy of that name; the default one when the name is unknown.
    pub fn named(name: &str) -> Policy {
        Policy::ALL.into_iter().find(|policy| policy.name() == name).unwrap_or_default()
    }

    /// True for LFU policies, by which uses of keys are counted instead of timed.
    pub fn counts_uses(self) -> bool {
        matches!(self, Policy::VolatileLfu | Policy::AllkeysLfu)
    }

    /// True for LRU and LFU policies, which depend on the use of keys.
    pub fn goes_by_use(self) -> bool {
        self.counts_uses() || matches!(self, Policy::VolatileLru | Policy::AllkeysLru)
    }

    /// True when only keys with a deadline may be evicted.
    fn spares_lasting_keys(self) -> bool {
        matches!(self, Policy::VolatileLru | Policy::VolatileLfu | Policy::VolatileRandom | Policy::VolatileTtl)
    }
}

/// The state of eviction: whether memory is short, and the candidates to evict next.
#[derive(Debug, Default)]
pub struct Pressure {
    /// There is not enough memory for the running command, and no more key to evict.
    pub(super) is_short: bool,
    /// Keys are still to be evicted: the time for one round was used up.
    is_evicting: bool,
    /// Since when memory has been short, in microseconds of the world's own clock.
    short_since_us: Option<u64>,
    pool: pool::Pool,
    /// The policy by which the pool's scores were computed.
    scored_by: Policy,
    /// The database from which a random policy takes the next key.
    next_database: usize,
}

impl Pressure {
    /// Clears the candidates, so that eviction restarts as in a new engine.
    pub(super) fn forget(&mut self) {
        self.pool.clear();
        self.next_database = 0;
    }

    /// How long memory has been short, in microseconds.
    pub fn short_us(&self, now_us: u64) -> u64 {
        self.short_since_us.map_or(0, |since_us| now_us.saturating_sub(since_us))
    }
}

/// The result of an attempt to free memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relief {
    /// There is enough memory.
    Enough,
    /// There is not enough yet; evicting goes on later.
    Later,
    /// There is not enough, and no key that may be evicted.
    None,
}

/// The number of keys that are evicted between two readings of the clock.
const BETWEEN_LOOKS: usize = 16;

impl Engine {
    /// The bytes of memory that count against `maxmemory`.
    pub fn used_bytes(&self) -> u64 {
        let data = self.databases.memory_bytes() + self.sessions.memory_bytes();
        (data + self.scripts.source_bytes() + self.observers.tracking.memory_bytes()) as u64
    }

    /// Evicts keys if memory is short; returns whether it still is. `flags` are those of the command about to run.
    pub(super) fn evict_for(&mut self, flags: Flags) -> bool {
        if self.settings.max_memory_bytes == 0 || self.scripts.is_busy() {
            self.databases.pressure.is_short = false;
            return false;
        }
        let is_short = self.evict() == Relief::None;
        self.databases.pressure.is_short = is_short;
        is_short && flags.has(Flags::DENYOOM)
    }

    /// True while keys are to be evicted between the turns of clients.
    pub fn is_evicting(&self) -> bool {
        self.databases.pressure.is_evicting
    }

    /// Starts evicting between the turns of clients, if memory is over a limit that has changed.
    pub fn begin_evicting(&mut self) {
        let limit = self.settings.max_memory_bytes;
        self.databases.pressure.is_evicting = limit > 0 && self.used_bytes() > limit;
    }

    /// Evicts more keys; returns whether it is to be called again.
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

    /// Evicts keys until `excess` bytes are freed, as long as there is time.
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

    /// Evicts a key; returns how many bytes that freed.
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

    /// Records the time for which memory was short.
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

/// The most time for one round of eviction: up to half a millisecond for a tenacity of 10, then 15 percent more for
/// each step, about two minutes at 99, and no limit at 100.
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
