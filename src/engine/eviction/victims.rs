//! The choice of the next key to evict.
//!
//! `volatile-ttl` takes the key with the earliest deadline of all, from the index of deadlines. The random policies
//! take any key, of each database in turn. The others sample `maxmemory-samples` keys of every database, offer them to
//! the pool, and take the best of the pool. A candidate that was used since it was sampled is scored again; Redis
//! would evict it.

use super::Policy;
use super::pool::Candidate;
use crate::engine::{Engine, lru};
use crate::keyspace::Slot;

impl Engine {
    /// The next key to evict; `None` when the policy may evict none.
    pub(super) fn victim(&mut self) -> Option<(usize, Slot)> {
        match self.settings.policy {
            Policy::NoEviction => None,
            Policy::VolatileTtl => self.first_due(),
            Policy::VolatileRandom | Policy::AllkeysRandom => self.any_key(),
            Policy::VolatileLru | Policy::VolatileLfu | Policy::AllkeysLru | Policy::AllkeysLfu => self.least_used(),
        }
    }

    fn first_due(&self) -> Option<(usize, Slot)> {
        let due = self.databases.iter().enumerate().filter_map(|(number, data)| Some((number, data.first_due()?)));
        due.min_by_key(|(_, (deadline_ms, _))| *deadline_ms).map(|(number, (_, slot))| (number, slot))
    }

    /// Some key of the next database that has a candidate.
    fn any_key(&mut self) -> Option<(usize, Slot)> {
        let count = self.databases.count();
        for _ in 0..count {
            let pressure = &mut self.databases.pressure;
            let number = pressure.next_database % count;
            pressure.next_database = number + 1;
            if let Some(slot) = self.sample(number) {
                return Some((number, slot));
            }
        }
        None
    }

    /// The best candidate of the pool, after some more keys were sampled.
    fn least_used(&mut self) -> Option<(usize, Slot)> {
        let pressure = &mut self.databases.pressure;
        if pressure.scored_by != self.settings.policy {
            pressure.scored_by = self.settings.policy;
            pressure.pool.clear();
        }
        loop {
            if !self.fill_pool() {
                return None;
            }
            while let Some(candidate) = self.databases.pressure.pool.take() {
                if let Some(found) = self.confirmed(candidate) {
                    return Some(found);
                }
            }
        }
    }

    /// Samples some keys of every database into the pool; false when there are none.
    fn fill_pool(&mut self) -> bool {
        let mut is_any = false;
        for number in 0..self.databases.count() {
            for _ in 0..self.settings.eviction_samples {
                let Some(slot) = self.sample(number) else { break };
                is_any = true;
                let (score, hash) = (self.score(number, slot), self.databases.get(number).hash(slot));
                self.databases.pressure.pool.offer(Candidate { score, database: number, hash });
            }
        }
        is_any
    }

    /// The key of a candidate, if it still exists, may still be evicted and was not used since.
    fn confirmed(&self, candidate: Candidate) -> Option<(usize, Slot)> {
        let data = self.databases.get(candidate.database);
        let slot = data.find_hash(candidate.hash)?;
        let may_go = !self.settings.policy.spares_lasting_keys() || data.deadline(slot).is_some();
        (may_go && self.score(candidate.database, slot) >= candidate.score).then_some((candidate.database, slot))
    }

    /// Some key that the policy may evict.
    fn sample(&mut self, number: usize) -> Option<Slot> {
        let (data, generator) = (self.databases.get(number), &mut self.generator);
        if self.settings.policy.spares_lasting_keys() {
            data.random_volatile(&mut || generator.u64(..))
        } else {
            data.random(&mut || generator.u64(..))
        }
    }

    /// The eviction score of a key: the highest is evicted first.
    fn score(&self, number: usize, slot: Slot) -> u64 {
        let noted = self.databases.get(number).access(slot);
        if self.settings.policy.counts_uses() {
            u64::from(u8::MAX - lru::frequency(noted, self.now(), self.settings.lfu_decay_minutes))
        } else {
            lru::idle_s(noted, self.now()).unsigned_abs()
        }
    }
}
