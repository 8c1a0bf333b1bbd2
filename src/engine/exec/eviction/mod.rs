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

pub(in crate::engine) mod clients;
pub(in crate::engine) mod victims;

use crate::engine::Engine;
use crate::engine::exec::{changes, propagation};
use crate::engine::spec::{Event, Flags, Now};
use crate::engine::state::Policy;
use crate::keyspace::KeyHandle;

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
    /// Evicts more keys; returns whether it is to be called again.
    pub fn continue_eviction(&mut self, now: Now) -> bool {
        if self.databases.is_evicting() {
            self.at(now);
            self.databases.pressure.is_evicting = false;
            if self.settings.max_memory_bytes > 0 && !self.scripts.is_busy() {
                evict(self);
            }
        }
        self.databases.is_evicting()
    }
}

/// The bytes of memory that count against `maxmemory`.
pub fn used_bytes(engine: &Engine) -> u64 {
    let data = engine.databases.memory_bytes() + engine.sessions.memory_bytes();
    (data + engine.scripts.source_bytes() + engine.observers.tracking.memory_bytes()) as u64
}

/// Evicts keys if memory is short; returns whether it still is. `flags` are those of the command about to run.
pub(super) fn evict_for(engine: &mut Engine, flags: Flags) -> bool {
    if !is_limited(engine) {
        engine.databases.pressure.is_short = false;
        return false;
    }
    let is_short = evict(engine) == Relief::None;
    engine.databases.pressure.is_short = is_short;
    is_short && flags.has(Flags::DENYOOM)
}

/// Whether a command with these flags is refused without any eviction: memory is short, and there is no key that the
/// policy may evict.
pub(super) fn refuses_at_sight(engine: &Engine, flags: Flags) -> bool {
    let is_short = || used_bytes(engine) > engine.settings.max_memory_bytes;
    let may_evict = !engine.timing.holds_expiry();
    flags.has(Flags::DENYOOM) && is_limited(engine) && may_evict && is_short() && !victims::is_any(engine)
}

/// Whether memory has a limit now.
fn is_limited(engine: &Engine) -> bool {
    engine.settings.max_memory_bytes > 0 && !engine.scripts.is_busy() && engine.persistence.loading.is_none()
}

/// Starts evicting between the turns of clients, if memory is over a limit that has changed.
pub fn begin_evicting(engine: &mut Engine) {
    let limit = engine.settings.max_memory_bytes;
    engine.databases.pressure.is_evicting = limit > 0 && used_bytes(engine) > limit;
}

fn evict(engine: &mut Engine) -> Relief {
    if engine.timing.holds_expiry() {
        return Relief::Enough;
    }
    let limit = engine.settings.max_memory_bytes;
    let excess = used_bytes(engine).saturating_sub(limit);
    let relief = match engine.settings.policy {
        _ if excess == 0 => Relief::Enough,
        Policy::NoEviction => Relief::None,
        _ => free_bytes(engine, excess),
    };
    record_memory_pressure(engine, relief);
    relief
}

/// Evicts keys until `excess` bytes are freed, as long as there is time.
fn free_bytes(engine: &mut Engine, excess: u64) -> Relief {
    let began_us = engine.host.elapsed_us();
    let limit_us =
        if engine.switches.is_deterministic { u64::MAX } else { time_limit_us(engine.settings.eviction.tenacity) };
    let (mut freed, mut count) = (0, 0);
    while freed < excess {
        let Some((database, handle)) = victims::victim(engine) else { return Relief::None };
        freed += evict_key(engine, database, handle);
        count += 1;
        if count % BETWEEN_LOOKS == 0 && engine.host.elapsed_us().saturating_sub(began_us) > limit_us {
            engine.databases.pressure.is_evicting = true;
            return Relief::Later;
        }
    }
    Relief::Enough
}

/// Evicts a key; returns how many bytes that freed.
fn evict_key(engine: &mut Engine, database: usize, handle: KeyHandle) -> u64 {
    let data = engine.databases.get_mut(database);
    let (key, before) = (data.key(handle).to_vec(), data.memory());
    let lazy_free = data.delete(handle);
    let freed = before.saturating_sub(data.memory()) as u64;
    engine.free(lazy_free);
    engine.stats.evicted_keys += 1;
    changes::changed(engine, database, Event::EVICTED, &key);
    propagation::deletion(engine, database, &key, engine.settings.lazy_free.evicted);
    freed
}

/// Records the time for which memory was short.
fn record_memory_pressure(engine: &mut Engine, relief: Relief) {
    let pressure = &mut engine.databases.pressure;
    match (relief, pressure.short_since_us) {
        (Relief::Enough, None) | (Relief::Later | Relief::None, Some(_)) => {}
        (Relief::Enough, Some(since_us)) => {
            engine.stats.short_of_memory_us += engine.host.elapsed_us().saturating_sub(since_us);
            pressure.short_since_us = None;
        }
        (Relief::Later | Relief::None, None) => pressure.short_since_us = Some(engine.host.elapsed_us()),
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
    fn eviction_tenacity_10_is_half_a_millisecond_and_99_some_two_minutes() {
        assert_eq!([0, 1, 10, 11].map(time_limit_us), [0, 50, 500, 575]);
        assert!((100_000_000..200_000_000).contains(&time_limit_us(99)));
        assert_eq!(time_limit_us(100), u64::MAX);
    }
}
