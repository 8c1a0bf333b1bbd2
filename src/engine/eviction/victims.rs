//! Which key goes next.
//!
//! `volatile-ttl` takes the key whose deadline is the earliest of all, which the index of deadlines knows. The random
//! policies take any key, of each database in turn. The others look at `maxmemory-samples` keys of every database,
//! offer them to the pool, and take the best of the pool. A candidate that was used since it was seen is looked at
//! anew: Redis would let it go all the same.

use super::Policy;
use super::pool::Candidate;
use crate::engine::{Engine, lru};
use crate::keyspace::Slot;

impl Engine {
    /// The key that is to go next; `None` when there is none that may.
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

    /// Some key of the next database that has one.
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

    /// The best of the pool and of some more keys.
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

    /// Offers some keys of every database to the pool; false when there are none.
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

    /// The key of a candidate, if it is still there, may still go and is as little used as it was.
    fn confirmed(&self, candidate: Candidate) -> Option<(usize, Slot)> {
        let data = self.databases.get(candidate.database);
        let slot = data.find_hash(candidate.hash)?;
        let may_go = !self.settings.policy.spares_lasting_keys() || data.deadline(slot).is_some();
        (may_go && self.score(candidate.database, slot) >= candidate.score).then_some((candidate.database, slot))
    }

    /// Some key that the policy may let go.
    fn sample(&mut self, number: usize) -> Option<Slot> {
        let (data, generator) = (self.databases.get(number), &mut self.generator);
        if self.settings.policy.spares_lasting_keys() {
            data.random_volatile(&mut || generator.u64(..))
        } else {
            data.random(&mut || generator.u64(..))
        }
    }

    /// The higher, the sooner a key goes.
    fn score(&self, number: usize, slot: Slot) -> u64 {
        let noted = self.databases.get(number).access(slot);
        if self.settings.policy.counts_uses() {
            u64::from(u8::MAX - lru::frequency(noted, self.now(), self.settings.lfu_decay_minutes))
        } else {
            lru::idle_s(noted, self.now()).unsigned_abs()
        }
    }
}
