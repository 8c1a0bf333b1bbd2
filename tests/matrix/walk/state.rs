//! The state of both servers, which a walk compares from time to time: every key of every database, the users,
//! the functions, and the statistics.

use crate::reply::Reply;
use crate::walk::pair::Pair;
use crate::walk::volatile;

/// The number of databases that a walk uses.
const DATABASES: usize = 3;

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Requests whose answers are the same when all else is.
const OVERALL: &[&[&str]] = &[
    &["ACL", "LIST"],
    &["FUNCTION", "LIST", "WITHCODE"],
    &["PUBSUB", "CHANNELS"],
    &["PUBSUB", "SHARDCHANNELS"],
    &["PUBSUB", "NUMPAT"],
    &["CLIENT", "LIST"],
    &["INFO", "errorstats"],
    &["INFO", "keyspace"],
    &["INFO", "commandstats"],
    &["INFO", "clients"],
    &["INFO", "stats"],
    &["INFO", "memory"],
];

/// Fields of INFO that are equal when everything else is. The number of expired keys is not among them: Redis counts
/// keys when it finds them, if they still exist.
const FIELDS: &[&str] = &[
    "errorstat_",
    "db",
    "cmdstat_",
    "connected_clients:",
    "blocked_clients:",
    "tracking_clients:",
    "pubsub_clients:",
    "watching_clients:",
    "clients_in_timeout_table:",
    "total_watched_keys:",
    "total_blocking_keys:",
    "total_blocking_keys_on_nokey:",
    "total_connections_received:",
    "rejected_connections:",
    "evicted_keys:",
    "evicted_clients:",
    "keyspace_hits:",
    "keyspace_misses:",
    "pubsub_channels:",
    "pubsub_patterns:",
    "pubsubshard_channels:",
    "tracking_total_keys:",
    "tracking_total_prefixes:",
    "unexpected_error_replies:",
    "total_error_replies:",
    "number_of_cached_scripts:",
    "number_of_functions:",
    "number_of_libraries:",
    "acl_access_denied_auth:",
    "acl_access_denied_cmd:",
    "acl_access_denied_key:",
    "acl_access_denied_channel:",
];

/// Within those: times, and what is from chance.
const PARTS: &[&str] = &["usec", "usec_per_call", "avg_ttl"];

/// The first thing that differs between both servers, if any.
pub(super) fn difference(pair: &mut Pair) -> Option<String> {
    let mut found = None;
    for database in (0..DATABASES).rev() {
        pair.ask_own(&[b"SELECT", database.to_string().as_bytes()]);
        found = found.or_else(|| KEYS.iter().find_map(|key| of_key(pair, key.as_bytes())));
    }
    found
}

/// The state that does not concern keys.
pub(super) fn overall_difference(pair: &mut Pair) -> Option<String> {
    OVERALL.iter().find_map(|words| {
        let request: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let command = words[..2].join("|").to_lowercase();
        compared(pair, &request, &command)
    })
}

fn of_key(pair: &mut Pair, key: &[u8]) -> Option<String> {
    let kinds = pair.ask_own(&[b"TYPE", key]);
    if kinds[0] != kinds[1] {
        return Some(format!("the type of {}: {kinds:?}", key.escape_ascii()));
    }
    let Reply::Simple(kind) = &kinds[0] else { return None };
    let (request, command): (&[&[u8]], &str) = match kind.as_slice() {
        b"none" => return None,
        b"string" => (&[b"GET", key], "get"),
        b"list" => (&[b"LRANGE", key, b"0", b"-1"], "lrange"),
        b"set" => (&[b"SMEMBERS", key], "smembers"),
        b"zset" => (&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], "zrange"),
        b"hash" => (&[b"HGETALL", key], "hgetall"),
        _ => (&[b"XINFO", b"STREAM", key, b"FULL"], "xinfo|stream"),
    };
    compared(pair, request, command)
        .or_else(|| compared(pair, &[b"OBJECT", b"ENCODING", key], "object|encoding"))
        .or_else(|| compared(pair, &[b"DEBUG", b"DIGEST-VALUE", key], "debug"))
        .or_else(|| of_deadline(pair, key))
        .or_else(|| compared(pair, &[b"DUMP", key], "dump"))
}

/// The deadline, which is counted from another moment.
fn of_deadline(pair: &mut Pair, key: &[u8]) -> Option<String> {
    let [real, ours] = pair.ask_own(&[b"PEXPIRETIME", key]);
    let is_same = real == ours || volatile::are_near("pexpiretime", &real, &ours);
    (!is_same).then(|| format!("the deadline of {}: real {real:?}, ours {ours:?}", key.escape_ascii()))
}

fn compared(pair: &mut Pair, request: &[&[u8]], command: &str) -> Option<String> {
    let answers = pair.ask_own(request).map(|reply| sorted(command, lines_of(volatile::masked(command, reply))));
    let shown = request.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
    (answers[0] != answers[1]).then(|| format!("{shown}:\n  {}", unlike(&answers).join("\n  ")))
}

/// The lines in which both differ.
fn unlike(answers: &[Vec<String>; 2]) -> Vec<String> {
    let only = |own: &Vec<String>, other: &Vec<String>, who: &str| {
        own.iter().filter(|line| !other.contains(line)).map(|line| format!("{who}: {line}")).collect::<Vec<_>>()
    };
    let [real, ours] = answers;
    let found = [only(real, ours, "real"), only(ours, real, "ours")].concat();
    if found.is_empty() { vec![format!("real: {real:?}"), format!("ours: {ours:?}")] } else { found }
}

/// A reply as lines; of INFO the fields that count.
fn lines_of(reply: Reply) -> Vec<String> {
    match reply {
        Reply::Bulk(text) | Reply::Verbatim(text) if text.starts_with(b"# ") => {
            let text = String::from_utf8_lossy(&text).into_owned();
            let is_kept =
                |line: &&str| FIELDS.iter().any(|field| line.starts_with(field)) && !line.starts_with("cmdstat_ping:");
            text.lines().filter(is_kept).map(without_times).collect()
        }
        Reply::Array(items) | Reply::Set(items) => items.iter().map(|item| format!("{item:?}")).collect(),
        Reply::Bulk(text) => text.escape_ascii().to_string().split("\\n").map(str::to_owned).collect(),
        leaf => vec![format!("{leaf:?}")],
    }
}

fn without_times(line: &str) -> String {
    let Some((name, parts)) = line.split_once(':') else { return line.to_owned() };
    // Redis counts EXEC as failed when one of its commands was refused for want of a right.
    let is_about_exec = name == "cmdstat_exec";
    let is_kept = |part: &&str| {
        let part = part.split('=').next().unwrap_or_default();
        !(PARTS.contains(&part) || is_about_exec && part == "failed_calls")
    };
    format!("{name}:{}", parts.split(',').filter(is_kept).collect::<Vec<_>>().join(","))
}

/// Sorts elements that tables order at random; in a hash, fields and values together.
fn sorted(command: &str, mut lines: Vec<String>) -> Vec<String> {
    if command.starts_with("info|")
        || matches!(
            command,
            "smembers" | "hgetall" | "function|list" | "acl|list" | "pubsub|channels" | "pubsub|shardchannels"
        )
    {
        lines.sort();
    }
    lines
}
