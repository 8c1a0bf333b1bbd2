//! KEYS, SCAN and RANDOMKEY: list or choose keys.

use crate::commands::scanning::{self, Options, Scanned};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Change, Command, Ctx, Engine, Error, Family, Flags, Lookup, Propagated, says};
use crate::keyspace::{Database, KeyHandle};
use crate::value::TYPES;
use crate::value::glob::Pattern;
use crate::value::hash_slot::hash_slot_of_pattern;
use either::Either;

pub(super) const KEYS: Command = Command {
    name: "KEYS",
    syntax: "pattern",
    family: Family::Generic,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::DANGEROUS),
    cost: "O(N) where N is the number of keys in the database",
    about: "Returns the keys whose names match a pattern.",
    tips: &["request_policy:all_shards", "nondeterministic_output_order"],
    run: keys,
    ..Command::ROW
};

fn keys(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let word = args.word()?;
    let pattern = Some(word).filter(|&pattern| pattern != b"*").map(|pattern| Pattern::new(pattern, false));
    let (due_ms, index) = (cx.due_ms(), cx.database_index());
    let (engine, reply) = cx.engine_and_reply();
    let database = engine.databases.get(index);
    let handles = match only_hash_slot(engine, word) {
        Some(hash_slot) => Either::Left(database.hash_slot_keys(hash_slot)),
        None => Either::Right(database.handles_prefetched()),
    };
    let list = reply.open_array();
    let mut count = 0;
    for handle in handles {
        let key = database.key(handle);
        if pattern.as_ref().is_none_or(|pattern| pattern.matches(key)) && !is_due(database, handle, due_ms) {
            reply.bulk(key);
            count += 1;
        }
    }
    reply.close_array(list, count);
    Ok(())
}

/// The one slot of all keys that match a pattern, if this is a node of a cluster, which finds keys by their slots.
fn only_hash_slot(engine: &Engine, pattern: &[u8]) -> Option<u16> {
    engine.peers.cluster.as_ref().and_then(|_| hash_slot_of_pattern(pattern))
}

pub(super) const SCAN: Command = Command {
    name: "SCAN",
    syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
    family: Family::Generic,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    since: "2.8.0",
    history: &[Change::brings("6.0.0", &["TYPE"])],
    cost: "O(1) for each step, O(N) for the whole walk, where N is the number of keys in the database",
    about: "Iterates over the keys of the database, with a cursor.",
    tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
    propagated: Propagated::Loose,
    run: scan,
    ..Command::ROW
};

fn scan(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let cursor = scanning::cursor(&mut args)?;
    let options = Options::parse(&mut args, Scanned::Keys)?;
    let (due_ms, index) = (cx.due_ms(), cx.database_index());
    let (engine, reply) = cx.engine_and_reply();
    let database = engine.databases.get(index);
    // A word that names no type is not the type of any key.
    let type_name = |word: &[u8]| TYPES.into_iter().find(|name| says(word, name)).unwrap_or_default();
    let wanted = options.type_name.map(type_name);
    let (mut found, mut due, mut live) = (Vec::new(), Vec::new(), 0);
    let visit = |handle| {
        if !options.admits_all() && !options.admits(database.key(handle)) {
            return;
        }
        if is_due(database, handle, due_ms) {
            return due.push(database.key(handle).to_vec());
        }
        live += 1;
        if wanted.is_none_or(|wanted| wanted == database.type_name(handle)) {
            found.push(handle);
        }
    };
    let only = options.pattern().and_then(|pattern| only_hash_slot(engine, pattern));
    let next = match only {
        Some(hash_slot) => database.scan_hash_slot(hash_slot, cursor, options.count, visit),
        None => database.scan(cursor, options.count, visit),
    };
    // With a type filter each key is looked up.
    let looked_up = if wanted.is_some() { (live, due.len() as u64) } else { (0, 0) };
    reply.array(2);
    scanning::write_cursor(reply, next);
    reply.array(found.len());
    for handle in found {
        reply.bulk(database.key(handle));
    }
    let stats = cx.stats_mut();
    stats.keyspace_hits += looked_up.0;
    stats.keyspace_misses += looked_up.1;
    delete_expired(cx, &due);
    Ok(())
}

pub(super) const RANDOMKEY: Command = Command {
    name: "RANDOMKEY",
    family: Family::Generic,
    arity: Arity::Exactly(1),
    flags: Flags::READONLY,
    about: "Returns a random key.",
    tips: &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
    propagated: Propagated::Loose,
    run: randomkey,
    ..Command::ROW
};

/// The number of times that a random choice may hit expired keys that are not removed because of a pause.
const TRIES: usize = 100;

fn randomkey(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (due_ms, index, mut tries) = (cx.due_ms(), cx.database_index(), 0);
    loop {
        let chosen = operations::random_key(cx);
        let (engine, reply) = cx.engine_and_reply();
        let database = engine.databases.get(index);
        let Some(due) = chosen.filter(|handle| is_due(database, *handle, due_ms)) else {
            reply.bulk_or_null(chosen.map(|handle| database.key(handle)));
            return Ok(());
        };
        if tries == TRIES {
            // If every key has a deadline, Redis stops searching for one that has not expired.
            let live = || database.handles().find(|handle| !is_due(database, *handle, due_ms));
            let chosen = if database.volatile_len() == database.len() { Some(due) } else { live() };
            reply.bulk_or_null(chosen.map(|handle| database.key(handle)));
            return Ok(());
        }
        let (key, before) = (database.key(due).to_vec(), database.len());
        delete_expired(cx, &[key]);
        tries += usize::from(cx.database().len() == before);
    }
}

/// Deletes keys whose deadlines have passed, which a look-up does unless a pause keeps them.
fn delete_expired(cx: &mut Ctx<'_>, keys: &[Vec<u8>]) {
    keys.iter().for_each(|key| _ = cx.lookup(key, Lookup::NO_TRACE));
}

/// True if the key's deadline has passed: it no longer exists for clients, though it may not be removed yet.
#[inline]
fn is_due(database: &Database, handle: KeyHandle, due_ms: i64) -> bool {
    database.volatile_len() > 0 && database.deadline(handle).is_some_and(|deadline_ms| deadline_ms <= due_ms)
}
