//! Which keys there are: KEYS, SCAN and RANDOMKEY.

use crate::commands::scanning::{self, Options, Scanned};
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, says};
use crate::keyspace::{Database, Slot};
use crate::value::glob;

pub(super) const KEYS: Command = Command {
    name: "KEYS",
    syntax: "pattern",
    family: Family::Generic,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::DANGEROUS),
    cost: "O(N) where N is the number of keys in the database",
    about: "Answers the keys whose names match a pattern.",
    tips: &["request_policy:all_shards", "nondeterministic_output_order"],
    run: keys,
    ..Command::ROW
};

fn keys(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let pattern = args.word()?;
    let (now_ms, index) = (cx.now_ms(), cx.database_index());
    let (engine, reply) = cx.engine_and_reply();
    let database = engine.databases.get(index);
    let list = reply.open_array();
    let mut count = 0;
    for slot in database.slots() {
        let key = database.key(slot);
        if (pattern == b"*" || glob::matches(pattern, key, false)) && !is_due(database, slot, now_ms) {
            reply.bulk(key);
            count += 1;
        }
    }
    reply.close_array(list, count);
    Ok(())
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
    about: "Walks the keys of the database, a step at a time.",
    tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
    run: scan,
    ..Command::ROW
};

fn scan(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let cursor = scanning::cursor(&mut args)?;
    let options = Options::parse(&mut args, Scanned::Keys)?;
    let (now_ms, index) = (cx.now_ms(), cx.database_index());
    let (engine, reply) = cx.engine_and_reply();
    let database = engine.databases.get(index);
    let (mut found, mut due) = (Vec::new(), 0);
    let next = database.scan(cursor, options.count, |slot| {
        if options.admits(database.key(slot)) {
            if is_due(database, slot, now_ms) { due += 1 } else { found.push(slot) }
        }
    });
    if let Some(wanted) = options.type_name {
        // Whoever asks for a type has each key looked up.
        engine.stats.keyspace_hits += found.len() as u64;
        engine.stats.keyspace_misses += due;
        found.retain(|slot| says(wanted, database.view(*slot).type_name()));
    }
    reply.array(2);
    scanning::write_cursor(reply, next);
    reply.array(found.len());
    for slot in found {
        reply.bulk(database.key(slot));
    }
    Ok(())
}

pub(super) const RANDOMKEY: Command = Command {
    name: "RANDOMKEY",
    family: Family::Generic,
    arity: Arity::Exactly(1),
    flags: Flags::READONLY,
    about: "Answers a key chosen at random.",
    tips: &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
    run: randomkey,
    ..Command::ROW
};

/// How often chance may hit a key that is due, before the first one that is not is taken.
const TRIES: usize = 100;

fn randomkey(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (now_ms, index) = (cx.now_ms(), cx.database_index());
    let (engine, reply) = cx.engine_and_reply();
    let database = engine.databases.get(index);
    let is_live = |slot: &Slot| !is_due(database, *slot, now_ms);
    let chosen = (0..TRIES).find_map(|_| database.random(&mut || engine.generator.u64(..)).filter(is_live));
    let chosen = chosen.or_else(|| database.slots().find(is_live));
    reply.bulk_or_null(chosen.map(|slot| database.key(slot)));
    Ok(())
}

/// True when the key's deadline has passed: it is not there any more, though nobody has removed it yet.
fn is_due(database: &Database, slot: Slot, now_ms: i64) -> bool {
    database.deadline(slot).is_some_and(|deadline_ms| deadline_ms <= now_ms)
}
