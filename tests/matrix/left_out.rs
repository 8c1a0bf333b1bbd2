//! What is not tried, or not compared to the last byte, each with its reason.

use dunlin::engine::{Entry, Flags};

use crate::server::Manner;
use crate::shape::Sameness;

/// Commands that are not tried against a real server at all. A name with a `|` is a subcommand.
const COMMANDS: &[(&str, &str)] = &[
    ("acl|setuser", "a user stays when the data is gone"),
    ("debug", "it is made to harm: it sleeps, crashes, fills the memory"),
    ("migrate", "it needs another server"),
    ("module|list", "Redis has a module built in"),
    ("psync", "it makes a replica of the client"),
    ("replconf", "it makes a replica of the client"),
    ("replicaof", "it makes a replica of a real server"),
    ("script|debug", "there is a debugger in Redis and none here"),
    ("shutdown", "it ends the server"),
    ("slowlog|get", "what is slow depends on the machine"),
    ("slowlog|len", "what is slow depends on the machine"),
    ("slaveof", "it makes a replica of a real server"),
    ("sync", "it makes a replica of the client"),
    ("wait", "it waits, and our clock stands still"),
    ("waitaof", "it waits, and our clock stands still"),
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

/// How a command is tried. What waits, and what makes others wait, is tried within a transaction.
pub(crate) fn manner(entry: &Entry) -> Manner {
    if entry.command.flags.has(Flags::BLOCKING) || entry.name == "client|pause" {
        Manner::Queued
    } else if RESET.contains(&entry.name.as_str()) {
        Manner::Reset
    } else {
        Manner::Alone
    }
}

/// Values that are not tried with a command, told by whether they are left out.
type Values = fn(&str) -> bool;

const VALUES: &[(&str, Values, &str)] = &[
    ("hrandfield", is_a_huge_repetition, "that many fields, with repetitions, would really be made"),
    ("srandmember", is_a_huge_repetition, "that many members, with repetitions, would really be made"),
    ("zrandmember", is_a_huge_repetition, "that many elements, with repetitions, would really be made"),
];

fn is_a_huge_repetition(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|count| count < -1_000_000 && count > i64::MIN)
}

/// Numbers of keys that COMMAND GETKEYS takes in Redis though the command itself refuses them: it reads them like C's
/// atoi, which stops at the first letter and keeps the lowest 32 bits. Here such a request has no keys.
const COUNTS_OF_KEYS: &[&str] =
    &["-9223372036854775807", "9007199254740993", "8070450532247928833", "1.5", "1e308", "+1", "01", " 1", "1 "];

/// True when that number of keys is not tried with COMMAND GETKEYS.
pub(crate) fn count_of_keys(value: &str) -> bool {
    COUNTS_OF_KEYS.contains(&value)
}

/// Commands whose answer is the same only in kind, beside those whose row says `nondeterministic_output`.
const ONLY_IN_KIND: &[(&str, &str)] = &[
    ("acl|genpass", "a password is chance"),
    ("acl|log", "it tells addresses and times"),
    ("client|id", "the number of a connection counts all that came before"),
    ("client|info", "addresses, ages and numbers"),
    ("command", "there are fewer commands here than in Redis"),
    ("command|count", "there are fewer commands here than in Redis"),
    ("command|docs", "there are fewer commands here than in Redis"),
    ("command|info", "there are fewer commands here than in Redis"),
    ("command|list", "there are fewer commands here than in Redis"),
    ("config|get", "the defaults differ where a setting is not supported"),
    ("lolwut", "what it draws is chance, and ours is our own"),
    ("memory|usage", "our values take other amounts of memory than Redis's"),
    ("hello", "it tells the number of the connection"),
];

/// Commands whose answer has the same elements in any order, beside those whose row says so.
const ONLY_IN_CONTENTS: &[(&str, &str)] = &[
    ("sort", "members of equal weight come in the order of a table in Redis, which is chance"),
    ("sort_ro", "members of equal weight come in the order of a table in Redis, which is chance"),
];

/// True when the command is not tried.
pub(crate) fn command(name: &str) -> bool {
    COMMANDS.iter().any(|(left_out, _)| *left_out == name || name.split('|').next() == Some(left_out))
}

/// True when that value is not tried with the command.
pub(crate) fn value(name: &str, value: &str) -> bool {
    VALUES.iter().any(|(command, is_left_out, _)| *command == name && is_left_out(value))
}

/// How much of the answers to a command can be compared.
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
