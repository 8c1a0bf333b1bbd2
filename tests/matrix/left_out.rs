//! Commands that are not tested against a real server, or not compared to the last byte, each with its reason.

use dunlin::engine::{Entry, Flags};

use crate::sampler::Sample;
use crate::server::Manner;
use crate::shape::Sameness;

/// Commands that are never tested against a real server. A name with a `|` is a subcommand.
const COMMANDS: &[(&str, &str)] = &[
    ("bgrewriteaof", "its reply depends on whether a rewrite is in progress"),
    ("bgsave", "its reply depends on whether a save is in progress"),
    ("debug", "it is made to harm: it sleeps, crashes, fills the memory"),
    ("migrate", "it needs another server"),
    ("psync", "it makes a replica of the client"),
    ("replconf", "it makes a replica of the client"),
    ("save", "it writes a file, and the engine alone has none"),
    ("script|debug", "there is a debugger in Redis and none here"),
    ("shutdown", "it ends the server"),
    ("sync", "it makes a replica of the client"),
    (
        "memory|malloc-stats",
        "it asks the allocator, and ours keeps no statistics: Redis with such a one answers so too",
    ),
];

/// Commands that change how the client is answered from then on.
const RESET: &[&str] = &[
    "client|reply",
    "monitor",
    "multi",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "subscribe",
    "sunsubscribe",
    "unsubscribe",
];

/// The way in which a command is tested. Commands that block, or make others wait, are sent within a transaction.
pub(crate) fn manner(entry: &Entry) -> Manner {
    if entry.command.flags.has(Flags::BLOCKING) || entry.name == "client|pause" {
        Manner::Queued
    } else if RESET.contains(&entry.name.as_str()) {
        Manner::Reset
    } else {
        Manner::Alone
    }
}

/// Values that are not tested with a command: a function returns whether a value is left out.
type Values = fn(&str) -> bool;

const VALUES: &[(&str, Values, &str)] = &[
    ("hrandfield", is_a_huge_repetition, "that many fields, with repetitions, would really be made"),
    ("srandmember", is_a_huge_repetition, "that many members, with repetitions, would really be made"),
    ("xautoclaim", is_one, "whether something idles for a millisecond depends on the machine"),
    ("xclaim", is_one, "whether something idles for a millisecond depends on the machine"),
    ("xpending", is_one, "whether something idles for a millisecond depends on the machine"),
    ("zrandmember", is_a_huge_repetition, "that many elements, with repetitions, would really be made"),
];

fn is_a_huge_repetition(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|count| count < -1_000_000 && count > i64::MIN)
}

/// True for numbers of which Redis 8.0.6 allocates so many floats that it ends, and for a count of elements that it
/// cannot negate.
pub(crate) fn ends_the_real_server(name: &str, value: &str) -> bool {
    let number = value.parse::<i64>().unwrap_or_default();
    match name {
        "VADD" | "VSIM" => number > 1_000_000,
        "VRANDMEMBER" => number < -1_000_000,
        _ => false,
    }
}

fn is_one(value: &str) -> bool {
    value == "1"
}

/// True for samples that are not tried: those of REPLICAOF that name a server, as they make a replica of a real one.
pub(crate) fn sample(name: &str, sample: &Sample) -> bool {
    ["replicaof", "slaveof"].contains(&name) && sample.iter().any(|word| word.argument == "host")
}

/// Numbers of keys that COMMAND GETKEYS takes in Redis though the command itself refuses them: it reads them like C's
/// atoi, which stops at the first letter and keeps the lowest 32 bits. Here such a request has no keys.
const COUNTS_OF_KEYS: &[&str] =
    &["-9223372036854775807", "9007199254740993", "8070450532247928833", "1.5", "1e308", "+1", "01", " 1", "1 "];

/// True when that number of keys is not tried with COMMAND GETKEYS.
pub(crate) fn count_of_keys(value: &str) -> bool {
    COUNTS_OF_KEYS.contains(&value)
}

/// Commands of whose reply only the type is compared, in addition to those whose row has `nondeterministic_output`.
const ONLY_IN_KIND: &[(&str, &str)] = &[
    ("acl|cat", "there are fewer commands here than in Redis"),
    ("acl|genpass", "a password is chance"),
    ("acl|log", "it shows addresses and times"),
    ("client|id", "the number of a connection counts all that came before"),
    ("client|info", "addresses, ages and numbers"),
    ("command", "there are fewer commands here than in Redis"),
    ("command|count", "there are fewer commands here than in Redis"),
    ("command|docs", "there are fewer commands here than in Redis"),
    ("command|info", "there are fewer commands here than in Redis"),
    ("command|list", "there are fewer commands here than in Redis"),
    ("config|get", "the defaults differ where a setting is not supported"),
    ("function|dump", "libraries come in the order of a table in Redis, which is chance"),
    ("lolwut", "what it draws is chance, and ours is our own"),
    ("xinfo|stream", "with FULL it shows when consumers were seen"),
    ("memory|usage", "our values take other amounts of memory than Redis's"),
    ("hello", "it shows the number of the connection"),
    ("VINFO", "it shows the number of the set, and a level that is chance"),
    ("VLINKS", "the levels of an element are chance"),
    ("VRANDMEMBER", "it chooses by chance"),
];

/// Commands whose reply has the same elements in any order, in addition to those with that tip in their row.
const ONLY_IN_CONTENTS: &[(&str, &str)] = &[
    ("sort", "members of equal weight come in the order of a table in Redis, which is chance"),
    ("sort_ro", "members of equal weight come in the order of a table in Redis, which is chance"),
];

/// Commands that walks do not generate from their syntax, in addition to those that are never tested. Most are among
/// the lines of a walk, in a form with a deterministic result.
const OF_WALKS: &[(&str, &str)] = &[
    ("acl|setuser", "its rules are given by lines"),
    ("client|pause", "it would hold the walk itself up; lines pause for writers"),
    ("command", "a reply of hundreds of kilobytes"),
    ("command|docs", "a reply of hundreds of kilobytes"),
    ("command|info", "a reply of hundreds of kilobytes"),
    ("config|set", "lines set what does not change the kind of the server"),
    ("flushall", "little would be left to meet"),
    ("flushdb", "little would be left to meet"),
    ("function|flush", "Redis makes a client of its own for the new interpreter, and numbers it"),
    ("function|restore", "which of several libraries is refused first is chance; a line replaces"),
    ("info", "it is compared field by field at the end of a run"),
    ("lolwut", "what it draws is chance"),
    ("memory|stats", "a part is listed only while it takes memory"),
    ("pfselftest", "it takes a second"),
    ("replicaof", "a line says NO ONE"),
    ("script|flush", "Redis makes a client of its own for the new interpreter, and numbers it"),
    ("slaveof", "a line of REPLICAOF says NO ONE"),
    ("slowlog|get", "the walk's own requests are among the entries; a line asks for all"),
    ("slowlog|len", "the walk's own requests are counted, some before the log was emptied, some behind"),
    ("spop", "what it takes is chance, unless it takes all, as a line does"),
    ("wait", "lines wait for none, or for long"),
    ("waitaof", "lines wait for none, or for long"),
];

/// Commands that choose at random, or report values that differ, but which walks compare in full nevertheless: their
/// lines avoid random choices, and differing values are masked.
const EXACT_IN_WALKS: &[&str] = &[
    "acl|log",
    "client|id",
    "client|info",
    "client|list",
    "config|get",
    "dump",
    "function|stats",
    "hello",
    "object|encoding",
    "slowlog|get",
    "xadd",
    "xautoclaim",
    "xclaim",
    "xinfo|consumers",
    "xinfo|groups",
    "xinfo|stream",
    "xpending",
    "xtrim",
    "role",
    "pubsub|numpat",
    "pubsub|numsub",
];

/// Commands whose replies walks compare in any order: with a large COUNT a scan has one step.
const UNORDERED_IN_WALKS: &[&str] =
    &["hscan", "pubsub|channels", "pubsub|shardchannels", "scan", "spop", "sscan", "zscan"];

/// True when walks do not call the command from its syntax.
pub(crate) fn of_walks(name: &str) -> bool {
    // Whatever the links of a graph decide is chance, and an element that is replaced is not in the log of Redis.
    let is_of_vector_sets = name.starts_with(|letter: char| letter.is_ascii_uppercase());
    is_of_vector_sets || command(name) || OF_WALKS.iter().any(|(left_out, _)| *left_out == name)
}

/// Samples that walks leave out: EXPIRE with GT or LT, as a span that begins a little later ends a little later, but
/// only on a clock that runs; scans, which need a large COUNT; and XADD with an id of the time.
pub(crate) fn sample_of_walks(name: &str, sample: &Sample) -> bool {
    let has_word = |word: &[u8]| sample.iter().any(|other| other.bytes == word);
    let is_span = name.ends_with("expire");
    is_span && (has_word(b"GT") || has_word(b"LT")) || name.ends_with("scan") || name == "xadd" && has_word(b"*")
}

/// True for requests that walks do not queue. EXEC has fewer replies than it announces after a login that fails, which
/// Redis does not report while there are unsent replies, and after CLIENT REPLY. A client that begins to monitor within
/// a transaction is not recognized (see [`of_monitors`]).
pub(crate) fn of_transactions(words: &[Vec<u8>]) -> bool {
    let is = |place: usize, name: &str| words.get(place).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    // In Redis it depends on whether memory was short before the transaction, or before the last limit was raised.
    let limits_memory = words.iter().any(|word| word.starts_with(b"maxmemory"));
    // A client that loses its login is closed when its replies exceed a buffer whose size depends on timing.
    let requires_login = is(0, "acl") && is(1, "setuser") && is(2, "default");
    requires_login
        || is(0, "auth")
        || is(0, "hello")
        || is(0, "client") && is(1, "reply")
        || is(0, "monitor")
        || limits_memory
}

/// True for requests that walks do not make of clients that monitor: Redis shows them what they do in the midst of its
/// answers, in those of EXEC too, which are then short of one.
pub(crate) fn of_monitors(words: &[Vec<u8>]) -> bool {
    !words[0].eq_ignore_ascii_case(b"reset")
}

/// How exactly walks compare the replies of a command.
pub(crate) fn sameness_in_walks(entry: &Entry) -> Sameness {
    if EXACT_IN_WALKS.contains(&entry.name.as_str()) {
        Sameness::Exact
    } else if UNORDERED_IN_WALKS.contains(&entry.name.as_str()) {
        Sameness::Unordered
    } else {
        sameness(entry)
    }
}

/// True when a command that may block is also tested outside of transactions: not those that only wait for replicas, as
/// they wait until their timeout, and our clock is frozen.
pub(crate) fn may_be_tried_alone(entry: &Entry) -> bool {
    entry.command.flags.has(Flags::BLOCKING) && !entry.command.keys.is_empty()
}

/// True when the command is not tried.
pub(crate) fn command(name: &str) -> bool {
    COMMANDS.iter().any(|(left_out, _)| *left_out == name || name.split('|').next() == Some(left_out))
}

/// True when that value is not tried with the command.
pub(crate) fn value(name: &str, value: &str) -> bool {
    VALUES.iter().any(|(command, is_left_out, _)| *command == name && is_left_out(value))
}

/// How exactly the replies of a command can be compared.
pub(crate) fn sameness(entry: &Entry) -> Sameness {
    let has = |tip: &str| entry.command.tips.contains(&tip);
    if has("nondeterministic_output") || ONLY_IN_KIND.iter().any(|(name, _)| *name == entry.name) {
        Sameness::Kind
    } else if entry.name.ends_with("|help") {
        // The words of every HELP are our own.
        Sameness::Kind
    } else if has("nondeterministic_output_order") || ONLY_IN_CONTENTS.iter().any(|(name, _)| *name == entry.name) {
        Sameness::Unordered
    } else {
        Sameness::Exact
    }
}
