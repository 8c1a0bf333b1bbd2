//! The state of eviction: the policy, how short memory is, the pool of candidates, and the memory of each client.
//!
//! The code that chooses and removes keys and clients is in [`crate::engine::exec::eviction`].

pub(in crate::engine) mod clients;
pub(in crate::engine) mod pool;

pub use clients::ClientsLimit;

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

    /// True for LRU policies.
    pub fn is_lru(self) -> bool {
        matches!(self, Policy::VolatileLru | Policy::AllkeysLru)
    }

    /// True for LRU and LFU policies, which depend on the use of keys.
    pub fn depends_on_use(self) -> bool {
        self.counts_uses() || self.is_lru()
    }

    /// True when only keys with a deadline may be evicted.
    pub(in crate::engine) fn is_volatile_only(self) -> bool {
        matches!(self, Policy::VolatileLru | Policy::VolatileLfu | Policy::VolatileRandom | Policy::VolatileTtl)
    }
}

/// The state of eviction: whether memory is short, and the candidates to evict next.
#[derive(Debug, Default)]
pub struct Pressure {
    /// There is not enough memory for the running command, and no more key to evict.
    pub(in crate::engine) is_short: bool,
    /// Keys are still to be evicted: the time for one round was used up.
    pub(in crate::engine) is_evicting: bool,
    /// Since when memory has been short, in microseconds of the world's own clock.
    pub(in crate::engine) short_since_us: Option<u64>,
    pub(in crate::engine) pool: pool::Pool,
    /// The policy by which the pool's scores were computed.
    pub(in crate::engine) scored_by: Policy,
    /// The database from which a random policy takes the next key.
    pub(in crate::engine) next_database: usize,
}

impl Pressure {
    /// Clears the candidates, so that eviction restarts as in a new engine.
    pub(in crate::engine) fn forget(&mut self) {
        self.pool.clear();
        self.next_database = 0;
    }

    /// How long memory has been short, in microseconds.
    pub fn short_us(&self, now_us: u64) -> u64 {
        self.short_since_us.map_or(0, |since_us| now_us.saturating_sub(since_us))
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
}
