//! The rules of strict mode: what is wrong with a command, and what to do instead.
//!
//! A malformed command is not checked: its own error is more helpful. Each rule checks the words of the command and the
//! data before it runs.

use crate::engine::state::kit::{CheckedCommand, Rule, Source, Strict, Violation, quoted};
use crate::engine::{Databases, Family, Flags, says};
use crate::resp::Request;
use crate::value::hash_slot::{hash_slot, hash_slot_of_pattern};
use crate::value::{View, number};

/// Checks a command against a rule.
pub fn check_rule(
    databases: &Databases,
    strict: &Strict,
    rule: Rule,
    checked: &CheckedCommand<'_>,
) -> Option<Violation> {
    let limit = strict.limit(rule);
    match rule {
        Rule::UndeclaredKeys => undeclared_key(checked),
        Rule::CrossSlot => other_slot(checked),
        Rule::KeysCommand => keys_command(databases, checked, limit),
        Rule::WholeReads => whole_read(databases, checked, limit),
        Rule::LargeElements => large_element(checked, limit),
        Rule::LateExpire => late_expire(databases, strict, checked),
        Rule::LossyScores => lossy_score(databases, checked),
        Rule::EndlessWaits => endless_wait(checked),
        Rule::Select => other_database(checked),
        Rule::WholeServer => whole_server(checked),
        Rule::SortOutside => sort_outside(checked),
        // These are checked at the end of a test, or by what a node knows of others.
        Rule::UnboundedCollection | Rule::MovedUnhandled | Rule::StaleRead => None,
    }
}

fn violation_of_key(key: &[u8], text: String) -> Option<Violation> {
    Some(Violation { key: Some(key.to_vec()), text })
}

fn undeclared_key(checked: &CheckedCommand<'_>) -> Option<Violation> {
    let declared = checked.declared?;
    let (key, _) = checked.keys.iter().find(|(key, _)| declared.iter().all(|known| **known != **key))?;
    let text = format!(
        "the script uses {}, which is not among its KEYS; pass every key in KEYS, since a cluster sends the \
         script to the node that has them",
        quoted(key)
    );
    violation_of_key(key, text)
}

fn other_slot(checked: &CheckedCommand<'_>) -> Option<Violation> {
    let mut keys = checked.keys.iter().map(|(key, _)| *key);
    let first = checked.first_key.or_else(|| keys.next())?;
    let slot = hash_slot(first);
    let other = keys.find(|key| hash_slot(key) != slot)?;
    let text = format!(
        "{} is in slot {slot} of a cluster and {} in slot {}; give them one hash tag, as in {{id}}:a and {{id}}:b",
        quoted(first),
        quoted(other),
        hash_slot(other)
    );
    violation_of_key(other, text)
}

fn keys_command(databases: &Databases, checked: &CheckedCommand<'_>, limit: u64) -> Option<Violation> {
    let count = databases.get(checked.database).len() as u64;
    if checked.name != "keys" || count <= limit {
        return None;
    }
    Some(Violation { key: None, text: format!("KEYS scans all {count} keys while other clients wait; use SCAN") })
}

/// Commands that read a whole collection: the words after the key with which they do, and what to do instead.
const WHOLE: &[(&str, &[&str], &str)] = &[
    ("smembers", &[], "use SSCAN, SISMEMBER or SCARD"),
    ("hgetall", &[], "use HSCAN, or HMGET for the fields that are needed"),
    ("hkeys", &[], "use HSCAN"),
    ("hvals", &[], "use HSCAN, or HMGET for the fields that are needed"),
    ("lrange", &["0", "-1"], "read a part of it"),
    ("zrange", &["0", "-1"], "read a part of it by rank or score, or use ZSCAN"),
    ("zrevrange", &["0", "-1"], "read a part of it by rank or score, or use ZSCAN"),
    ("zrangebyscore", &["-inf", "+inf"], "use LIMIT"),
    ("xrange", &["-", "+"], "use COUNT, and continue after the last id"),
    ("xrevrange", &["+", "-"], "use COUNT, and continue after the last id"),
];

fn whole_read(databases: &Databases, checked: &CheckedCommand<'_>, limit: u64) -> Option<Violation> {
    let (_, range, instead) = WHOLE.iter().find(|(name, ..)| *name == checked.name)?;
    let options = checked.request.iter().skip(2 + range.len());
    let is_part = options.into_iter().any(|word| ["LIMIT", "COUNT"].iter().any(|option| says(word, option)));
    let is_whole = range.iter().zip(checked.request.iter().skip(2)).all(|(whole, word)| says(word, whole));
    let (key, _) = checked.keys.first().filter(|_| is_whole && !is_part)?;
    let data = databases.get(checked.database);
    let count = match data.view(data.find(key)?) {
        View::Text(_) => 0,
        View::List(list) => list.len(),
        View::Set(set) => set.len(),
        View::Hash(hash) => hash.len(),
        View::Zset(zset) => zset.len(),
        View::Stream(stream) => stream.log().len(),
        View::VectorSet(set) => set.len(),
    };
    if count as u64 <= limit {
        return None;
    }
    let name = checked.name.to_uppercase();
    violation_of_key(key, format!("{name} reads all {count} elements of {} at once; {instead}", quoted(key)))
}

fn large_element(checked: &CheckedCommand<'_>, limit: u64) -> Option<Violation> {
    let takes = matches!(checked.command.family, Family::List | Family::Set | Family::SortedSet);
    if !takes || !checked.command.flags.has(Flags::WRITE) || !checked.command.flags.has(Flags::DENYOOM) {
        return None;
    }
    let (key, _) = checked.keys.first()?;
    let is_key = |word: &[u8]| checked.keys.iter().any(|(key, _)| *key == word);
    let largest = checked.request.iter().skip(1).filter(|word| !is_key(word)).map(<[u8]>::len).max()?;
    if largest as u64 <= limit {
        return None;
    }
    let text = format!(
        "an element of {largest} bytes goes into {}; keep an id there and the rest in a key of its own",
        quoted(key)
    );
    violation_of_key(key, text)
}

fn late_expire(databases: &Databases, strict: &Strict, checked: &CheckedCommand<'_>) -> Option<Violation> {
    let is_expire = ["expire", "pexpire", "expireat", "pexpireat"].contains(&checked.name);
    let (key, _) = checked.keys.first().filter(|_| is_expire && checked.source == Source::Client)?;
    let trace = strict.traces.of(checked.database, key).filter(|trace| !trace.is_kept())?;
    let write = trace.written.as_ref()?;
    let data = databases.get(checked.database);
    data.find(key).filter(|slot| data.deadline(*slot).is_none())?;
    let instead = match &*write.command {
        "set" | "setnx" | "getset" => "use SET with EX, or send both in one script or MULTI",
        _ => "send both in one script or MULTI",
    };
    let text = format!(
        "{} has had no deadline since {}, and would live for ever if the application had died in between; {instead}",
        quoted(key),
        write.command.to_uppercase()
    );
    violation_of_key(key, text)
}

/// The largest score up to which every integer has a distinct score.
const EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

fn lossy_score(databases: &Databases, checked: &CheckedCommand<'_>) -> Option<Violation> {
    let (key, _) = checked.keys.first()?;
    let data = databases.get(checked.database);
    let zset = data.find(key).and_then(|slot| if let View::Zset(zset) = data.view(slot) { Some(zset) } else { None });
    let before = |member: &[u8]| zset.and_then(|zset| zset.score(member)).unwrap_or(0.0);
    let (pairs, is_added) = match checked.name {
        "zadd" => scores_of_zadd(checked.request),
        "zincrby" => (2, true),
        _ => return None,
    };
    let pair = |place: usize| Some((number::parse_f64(checked.request.get(place)?)?, checked.request.get(place + 1)?));
    let mut pairs = (pairs..checked.request.len()).step_by(2).filter_map(pair);
    let lossy = pairs.find_map(|(score, member)| {
        let score = if is_added { before(member) + score } else { score };
        (score.is_finite() && score.abs() > EXACT).then_some((score, member))
    });
    let (score, member) = lossy?;
    let text = format!(
        "the score of {} would be {score:.0}, and a double cannot hold every integer beyond 2^53; keep one number in \
         the score, and the rest in the member",
        quoted(member)
    );
    violation_of_key(key, text)
}

/// The index of ZADD's first score, and whether scores are increments.
fn scores_of_zadd(request: Request<'_>) -> (usize, bool) {
    let is_option = |word: &[u8]| ["NX", "XX", "GT", "LT", "CH", "INCR"].iter().any(|option| says(word, option));
    let options = request.iter().skip(2).take_while(|word| is_option(word)).count();
    let is_added = request.iter().skip(2).take(options).any(|word| says(word, "INCR"));
    (2 + options, is_added)
}

fn endless_wait(checked: &CheckedCommand<'_>) -> Option<Violation> {
    // Commands never block within a script or a transaction.
    let timeout =
        if checked.source == Source::Client { timeout_of(checked.name, checked.request)? } else { return None };
    if number::parse_f64(timeout)? != 0.0 {
        return None;
    }
    let name = checked.name.to_uppercase();
    let text = format!(
        "{name} would wait for ever; use a timeout of some seconds and call it again, so that its caller can stop"
    );
    Some(Violation { key: checked.keys.first().map(|(key, _)| key.to_vec()), text })
}

/// The timeout of a blocking command.
fn timeout_of<'a>(name: &str, request: Request<'a>) -> Option<&'a [u8]> {
    match name {
        "blpop" | "brpop" | "bzpopmin" | "bzpopmax" | "brpoplpush" | "blmove" => request.get(request.len() - 1),
        "blmpop" | "bzmpop" => request.get(1),
        "xread" | "xreadgroup" => {
            let options = request.iter().take_while(|word| !says(word, "STREAMS"));
            let place = options.into_iter().position(|word| says(word, "BLOCK"))?;
            request.get(place + 1)
        }
        "wait" => request.get(2).filter(|_| request.get(1) != Some(b"0")),
        "waitaof" => request.get(3).filter(|_| request.get(1) != Some(b"0") || request.get(2) != Some(b"0")),
        _ => None,
    }
}

fn other_database(checked: &CheckedCommand<'_>) -> Option<Violation> {
    let request = checked.request;
    let is_other = |word: &[u8]| number::parse_i64(word).is_some_and(|index| index != 0);
    let uses_other = match checked.name {
        "select" => request.get(1).is_some_and(is_other),
        "copy" => value_of(request, 3, "DB").is_some_and(is_other),
        "move" | "swapdb" => true,
        _ => false,
    };
    let name = checked.name.to_uppercase();
    let text = format!("{name} uses another database, and a cluster has only database 0; tell keys apart by a prefix");
    uses_other.then_some(Violation { key: None, text })
}

/// Commands that are about all keys, and what to do instead.
const WHOLE_SERVER: &[(&str, &str)] = &[
    ("keys", "keep the names in a set, or give what belongs together one hash tag"),
    ("scan", "have the client visit each node, or give what belongs together one hash tag"),
    ("dbsize", "ask each node, or count in a key of its own"),
    ("randomkey", "keep the names in a set, and use SRANDMEMBER"),
    ("flushdb", "flush each node, or let the keys expire"),
    ("flushall", "flush each node, or let the keys expire"),
];

fn whole_server(checked: &CheckedCommand<'_>) -> Option<Violation> {
    let (_, instead) = WHOLE_SERVER.iter().find(|(name, _)| *name == checked.name)?;
    let pattern = match checked.name {
        "keys" => checked.request.get(1),
        "scan" => value_of(checked.request, 2, "MATCH"),
        _ => None,
    };
    if pattern.is_some_and(|pattern| hash_slot_of_pattern(pattern).is_some()) {
        return None;
    }
    let name = checked.name.to_uppercase();
    Some(Violation { key: None, text: format!("{name} is about the keys of one node of a cluster only; {instead}") })
}

fn sort_outside(checked: &CheckedCommand<'_>) -> Option<Violation> {
    if !["sort", "sort_ro"].contains(&checked.name) {
        return None;
    }
    let key = checked.request.get(1)?;
    let mut words = checked.request.iter().skip(2);
    while let Some(word) = words.next() {
        let reads = says(word, "BY") || says(word, "GET");
        let values = if says(word, "LIMIT") { 2 } else { usize::from(reads || says(word, "STORE")) };
        let pattern = words.by_ref().take(values).last().filter(|pattern| reads && *pattern != b"#");
        if let Some(pattern) = pattern.filter(|pattern| pattern.contains(&b'*'))
            && hash_slot_of_pattern(pattern) != Some(hash_slot(key))
        {
            let text = format!(
                "SORT reads keys as {}, which may be in other slots than {}; give them one hash tag before the *, or sort \
                 in the client",
                quoted(pattern),
                quoted(key)
            );
            return violation_of_key(key, text);
        }
    }
    None
}

/// The word that follows an option, which is looked for from the word at `first` on.
fn value_of<'a>(request: Request<'a>, first: usize, option: &str) -> Option<&'a [u8]> {
    let place = request.iter().skip(first).position(|word| says(word, option))?;
    request.get(first + place + 1)
}
