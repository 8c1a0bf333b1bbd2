//! The choice of the next key to evict.
//!
//! `volatile-ttl` takes the key with the earliest deadline of all, from the index of deadlines. The random policies
//! take any key, of each database in turn. The others sample `maxmemory-samples` keys of every database, offer them to
//! the pool, and take the best of the pool. A candidate that was used since it was sampled is scored again; Redis
//! would evict it.

use crate::engine::Engine;
use crate::engine::state::eviction::pool::Candidate;
use crate::engine::state::{Policy, lru};
use crate::keyspace::KeyHandle;

/// The next key to evict; `None` when the policy may evict none.
pub(super) fn victim(engine: &mut Engine) -> Option<(usize, KeyHandle)> {
    match engine.settings.policy {
        Policy::NoEviction => None,
        Policy::VolatileTtl => first_due(engine),
        Policy::VolatileRandom | Policy::AllkeysRandom => any_key(engine),
        Policy::VolatileLru | Policy::VolatileLfu | Policy::AllkeysLru | Policy::AllkeysLfu => least_used(engine),
    }
}

/// Whether there is a key that the policy may evict.
pub(super) fn is_any(engine: &Engine) -> bool {
    match engine.settings.policy {
        Policy::NoEviction => false,
        policy if policy.is_volatile_only() => first_due(engine).is_some(),
        _ => engine.databases.iter().any(|data| !data.is_empty()),
    }
}

fn first_due(engine: &Engine) -> Option<(usize, KeyHandle)> {
    let due = engine.databases.iter().enumerate().filter_map(|(number, data)| Some((number, data.first_due()?)));
    due.min_by_key(|(_, (deadline_ms, _))| *deadline_ms).map(|(number, (_, handle))| (number, handle))
}

/// Some key of the next database that has a candidate.
fn any_key(engine: &mut Engine) -> Option<(usize, KeyHandle)> {
    let count = engine.databases.count();
    for _ in 0..count {
        let pressure = &mut engine.databases.pressure;
        let number = pressure.next_database % count;
        pressure.next_database = number + 1;
        if let Some(handle) = sample(engine, number) {
            return Some((number, handle));
        }
    }
    None
}

/// The best candidate of the pool, after some more keys were sampled.
fn least_used(engine: &mut Engine) -> Option<(usize, KeyHandle)> {
    let pressure = &mut engine.databases.pressure;
    if pressure.scored_by != engine.settings.policy {
        pressure.scored_by = engine.settings.policy;
        pressure.pool.clear();
    }
    loop {
        if !fill_pool(engine) {
            return None;
        }
        while let Some(candidate) = engine.databases.pressure.pool.take() {
            if let Some(found) = confirmed(engine, candidate) {
                return Some(found);
            }
        }
    }
}

/// Samples some keys of every database into the pool; false when there are none.
fn fill_pool(engine: &mut Engine) -> bool {
    let mut is_any = false;
    for number in 0..engine.databases.count() {
        for _ in 0..engine.settings.eviction.samples {
            let Some(handle) = sample(engine, number) else { break };
            is_any = true;
            let (score, hash) = (score(engine, number, handle), engine.databases.get(number).hash(handle));
            engine.databases.pressure.pool.offer(Candidate { score, database: number, hash });
        }
    }
    is_any
}

/// The key of a candidate, if it still exists, may still be evicted and was not used since.
fn confirmed(engine: &Engine, candidate: Candidate) -> Option<(usize, KeyHandle)> {
    let data = engine.databases.get(candidate.database);
    let handle = data.find_hash(candidate.hash)?;
    let may_go = !engine.settings.policy.is_volatile_only() || data.deadline(handle).is_some();
    (may_go && score(engine, candidate.database, handle) >= candidate.score).then_some((candidate.database, handle))
}

/// Some key that the policy may evict.
fn sample(engine: &mut Engine, number: usize) -> Option<KeyHandle> {
    let (data, generator) = (engine.databases.get(number), &mut engine.generator);
    if engine.settings.policy.is_volatile_only() {
        data.random_volatile(&mut || generator.u64(..))
    } else {
        data.random(&mut || generator.u64(..))
    }
}

/// The eviction score of a key: the highest is evicted first.
fn score(engine: &Engine, number: usize, handle: KeyHandle) -> u64 {
    let access = engine.databases.get(number).access(handle);
    if engine.settings.policy.counts_uses() {
        u64::from(u8::MAX - lru::frequency(access, engine.now(), engine.settings.lfu.decay_minutes))
    } else {
        lru::idle_s(access, engine.now()).unsigned_abs()
    }
}
