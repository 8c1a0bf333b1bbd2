//! What a command is: one row with its name, shape, keys, flags, words about it, and the function that runs it.
//!
//! The rows themselves stand in `commands/`, each above its function; a [`crate::engine::Table`] is made of them. All
//! that is shown or checked about a command derives from its row: the arity and login gates, COMMAND and its
//! subcommands, ACL categories, the keys that a request touches, statistics by name, the README's table.

use std::ops::Range;

use crate::engine::Engine;
use crate::engine::exec::Ctx;
use crate::engine::spec::{Args, Change, Error, KeyFlags, KeySpec, Secrets};
use crate::resp::Request;

/// The function behind a command: it parses all of `args`, then acts through the context and writes one reply.
pub type Handler = for<'c, 'a> fn(&mut Ctx<'c>, Args<'a>) -> Result<(), Error>;

/// The flags of commands that a gate asks about for them alone, so that they never take the fast path.
pub(in crate::engine) const GATED: [Flags; 2] = [Flags::PROTECTED, Flags::EXTENDS];

/// A command, declared once.
#[derive(Debug)]
pub struct Command {
    /// Its name in upper case; of a subcommand, the second word alone.
    pub name: &'static str,
    /// Its arguments in the notation of Redis's documentation: `[x]` may be left out, `a|b` is a choice, `x ...`
    /// repeats, words in upper case are literal. `label:` before a group or a word gives it another name than its own
    /// (`commands/command/syntax.rs` tells all).
    pub syntax: &'static str,
    /// Its arguments as HELP tells them, where those are other words than in `syntax`.
    pub usage: &'static str,
    /// What it belongs to: its documentation group and ACL category.
    pub family: Family,
    /// How many words it takes, its name counted.
    pub arity: Arity,
    /// What it may do and where it may run.
    pub flags: Flags,
    /// It takes no longer than what is [`Flags::FAST`], though Redis does not say so.
    pub is_quick: bool,
    /// What it may do where that follows from its arguments, in place of `flags`: a script says it in its first line.
    pub flags_of: Option<fn(&Engine, Request<'_>) -> Flags>,
    /// Where its keys stand.
    pub keys: &'static [KeySpec],
    /// Which of its words are keys where `keys` does not tell it exactly; what happens to them
    /// is what the first of those says.
    pub keys_by: Option<fn(Request<'_>) -> Range<usize>>,
    /// What happens to its keys where that follows from its other arguments ([`KeyFlags::VARIABLE`]).
    pub access_of: Option<fn(Request<'_>) -> KeyFlags>,
    /// Which of its arguments are channels that it tells or listens to.
    pub channels: Channels,
    /// The version of Redis that had it first.
    pub since: &'static str,
    /// What changed since then, oldest first.
    pub history: &'static [Change],
    /// Its cost in Redis, as documented there.
    pub cost: &'static str,
    /// What it does, in one line of our own.
    pub about: &'static str,
    /// Hints for clients and proxies, such as `nondeterministic_output`.
    pub tips: &'static [&'static str],
    /// The version it is deprecated since, and what replaces it.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Which of its arguments are secret.
    pub secrets: Secrets,
    /// Its subcommands; a container's own function never runs when it has some.
    pub subcommands: &'static [Command],
    /// Runs it.
    pub run: Handler,
}

impl Command {
    /// A row to take the rest from (`..Command::ROW`), where nothing is special.
    pub const ROW: Command = Command {
        name: "",
        syntax: "",
        usage: "",
        family: Family::Generic,
        arity: Arity::Exactly(1),
        flags: Flags::NONE,
        is_quick: false,
        flags_of: None,
        keys: &[],
        keys_by: None,
        access_of: None,
        channels: Channels::None,
        since: "1.0.0",
        history: &[],
        cost: "O(1)",
        about: "",
        tips: &[],
        deprecated: None,
        secrets: Secrets::None,
        subcommands: &[],
        run: unreachable_container,
    };

    /// Whether the command only reads or changes data, or publishes a message, and replies at once.
    pub(in crate::engine) fn may_run_fast(&self) -> bool {
        const MEANT: [Flags; 3] = [Flags::READONLY, Flags::WRITE, Flags::MAY_REPLICATE];
        const ELSE: [Flags; 5] = [Flags::BLOCKING, Flags::NOSCRIPT, Flags::DANGEROUS, Flags::ADMIN, Flags::TEST_KIT];
        let has = |flag: &Flags| self.flags.has(*flag);
        let may_be_more = ELSE.iter().any(has)
            || GATED.iter().any(has)
            || self.flags_of.is_some()
            || self.family == Family::Scripting;
        MEANT.iter().any(has) && !may_be_more && !self.is_container()
    }

    /// Whether a short request takes next to no time, unless its reply is long.
    pub(in crate::engine) fn is_brief(&self) -> bool {
        // Whatever XADD trims is gone at once.
        self.may_run_fast() && self.flags.has(Flags::FAST) && self.family != Family::Stream || self.is_quick
    }

    /// True when it has subcommands.
    pub fn is_container(&self) -> bool {
        !self.subcommands.is_empty()
    }

    /// True when it runs a script, or is about them.
    pub fn is_of_scripts(&self) -> bool {
        self.family == Family::Scripting
    }

    /// The subcommand of that name, in any case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Command> {
        self.subcommands.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// Stands in the row of a container, where dispatch always finds a subcommand first.
fn unreachable_container(_: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    Err(Error::Syntax)
}

/// Which arguments of a command are channels that it tells or listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// None.
    None,
    /// The first.
    First,
    /// All.
    All,
    /// All, and they are patterns of channels.
    Patterns,
}

/// How many words a request has, the name counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// That many and no others.
    Exactly(u8),
    /// That many or more.
    AtLeast(u8),
}

impl Arity {
    /// True when a request of `words` words fits.
    pub fn admits(self, words: usize) -> bool {
        match self {
            Arity::Exactly(count) => words == usize::from(count),
            Arity::AtLeast(count) => words >= usize::from(count),
        }
    }

    /// As COMMAND INFO says it: negative for a minimum.
    pub fn signed(self) -> i64 {
        match self {
            Arity::Exactly(count) => i64::from(count),
            Arity::AtLeast(count) => -i64::from(count),
        }
    }
}

/// What a command belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the name of a family of commands")]
pub enum Family {
    Bitmap,
    Cluster,
    Connection,
    Generic,
    Geo,
    Hash,
    HyperLogLog,
    List,
    PubSub,
    Scripting,
    Server,
    Set,
    SortedSet,
    Stream,
    String,
    Transactions,
}

impl Family {
    /// The group that COMMAND DOCS names.
    pub fn group(self) -> &'static str {
        match self {
            Family::Bitmap => "bitmap",
            Family::Cluster => "cluster",
            Family::Connection => "connection",
            Family::Generic => "generic",
            Family::Geo => "geo",
            Family::Hash => "hash",
            Family::HyperLogLog => "hyperloglog",
            Family::List => "list",
            Family::PubSub => "pubsub",
            Family::Scripting => "scripting",
            Family::Server => "server",
            Family::Set => "set",
            Family::SortedSet => "sorted-set",
            Family::Stream => "stream",
            Family::String => "string",
            Family::Transactions => "transactions",
        }
    }

    /// The ACL category that all of its commands are in; the families `Cluster`, `PubSub` and
    /// `Server` have none of their own.
    pub fn category(self) -> Option<&'static str> {
        match self {
            Family::Bitmap => Some("bitmap"),
            Family::Connection => Some("connection"),
            Family::Generic => Some("keyspace"),
            Family::Geo => Some("geo"),
            Family::Hash => Some("hash"),
            Family::HyperLogLog => Some("hyperloglog"),
            Family::List => Some("list"),
            Family::Scripting => Some("scripting"),
            Family::Cluster | Family::PubSub | Family::Server => None,
            Family::Set => Some("set"),
            Family::SortedSet => Some("sortedset"),
            Family::Stream => Some("stream"),
            Family::String => Some("string"),
            Family::Transactions => Some("transaction"),
        }
    }
}

/// A set of flags, joined with [`Flags::and`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    // Those that COMMAND INFO tells, in its order.
    /// It may change data.
    pub const WRITE: Flags = Flags(1);
    /// It reads data and changes none.
    pub const READONLY: Flags = Flags(1 << 1);
    /// It may make the data larger: refused when memory is short.
    pub const DENYOOM: Flags = Flags(1 << 2);
    /// An administrator's command.
    pub const ADMIN: Flags = Flags(1 << 3);
    /// It belongs to publish and subscribe.
    pub const PUBSUB: Flags = Flags(1 << 4);
    /// Scripts may not call it.
    pub const NOSCRIPT: Flags = Flags(1 << 5);
    /// It may wait.
    pub const BLOCKING: Flags = Flags(1 << 6);
    /// It runs while data is loaded.
    pub const LOADING: Flags = Flags(1 << 7);
    /// It runs on a replica whose data is stale.
    pub const STALE: Flags = Flags(1 << 8);
    /// MONITOR does not show it.
    pub const SKIP_MONITOR: Flags = Flags(1 << 9);
    /// The slow log does not show it.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 10);
    /// A cluster's node takes it for a slot that it is being given.
    pub const ASKING: Flags = Flags(1 << 11);
    /// Constant or logarithmic time.
    pub const FAST: Flags = Flags(1 << 12);
    /// It runs before login.
    pub const NO_AUTH: Flags = Flags(1 << 13);
    /// No asynchronous loading.
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 14);
    /// Not inside MULTI.
    pub const NO_MULTI: Flags = Flags(1 << 15);
    /// It can be called without any keys though it has some.
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 16);
    /// Its keys cannot be told from fixed places alone. No row says it: it follows from the
    /// keys ([`Command::all_flags`]).
    pub const MOVABLE_KEYS: Flags = Flags(1 << 17);
    /// It runs while a script is busy.
    pub const ALLOW_BUSY: Flags = Flags(1 << 18);

    // Those by which a command is in other ACL categories than its family and its other flags say.
    /// ACL category `dangerous`.
    pub const DANGEROUS: Flags = Flags(1 << 19);
    /// ACL category `keyspace` though the family does not say so.
    pub const KEYSPACE: Flags = Flags(1 << 20);
    /// ACL category `connection` instead of the family's.
    pub const CONNECTION: Flags = Flags(1 << 21);
    /// ACL categories `admin` and `dangerous` though it is no administrator's command.
    pub const FOR_ADMINS: Flags = Flags(1 << 22);
    /// ACL categories `list`, `set` and `sortedset` instead of the family's.
    pub const COLLECTIONS: Flags = Flags(1 << 23);

    // Those that are told nowhere, or otherwise.
    /// It may concern replicas though it is no write: a script, a message.
    pub const MAY_REPLICATE: Flags = Flags(1 << 24);
    /// Needs a setting (`enable-debug-command`) to be on.
    pub const PROTECTED: Flags = Flags(1 << 25);
    /// Needs a setting (`enable-module-command`) to be on.
    pub const EXTENDS: Flags = Flags(1 << 26);
    /// For the server's own use: COMMAND DOCS says so.
    pub const SYSTEM: Flags = Flags(1 << 27);
    /// Runs at once where others are queued (EXEC).
    pub const UNQUEUED: Flags = Flags(1 << 28);
    /// Runs what was queued, and so passes the gates with the flags of all that too.
    pub const RUNS_QUEUE: Flags = Flags(1 << 29);
    /// A subscriber that speaks RESP2 may call it.
    pub const WHILE_LISTENING: Flags = Flags(1 << 30);
    /// It belongs to the test kit: it is neither kept nor disturbed by it.
    pub const TEST_KIT: Flags = Flags(1 << 31);

    /// The first set without the other.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Both sets.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// True when all of `other` is set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names that COMMAND INFO lists, in Redis's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(Flags, &str); 19] = [
            (Flags::WRITE, "write"),
            (Flags::READONLY, "readonly"),
            (Flags::DENYOOM, "denyoom"),
            (Flags::ADMIN, "admin"),
            (Flags::PUBSUB, "pubsub"),
            (Flags::NOSCRIPT, "noscript"),
            (Flags::BLOCKING, "blocking"),
            (Flags::LOADING, "loading"),
            (Flags::STALE, "stale"),
            (Flags::SKIP_MONITOR, "skip_monitor"),
            (Flags::SKIP_SLOWLOG, "skip_slowlog"),
            (Flags::ASKING, "asking"),
            (Flags::FAST, "fast"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::NO_ASYNC_LOADING, "no_async_loading"),
            (Flags::NO_MULTI, "no_multi"),
            (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
            (Flags::MOVABLE_KEYS, "movablekeys"),
            (Flags::ALLOW_BUSY, "allow_busy"),
        ];
        NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_take_the_fast_path_if_it_only_reads_or_changes_data() {
        let with = |flags| Command { flags, ..Command::ROW };
        assert!(with(Flags::READONLY.and(Flags::FAST)).may_run_fast());
        assert!(with(Flags::WRITE.and(Flags::DENYOOM)).may_run_fast());
        for flags in
            [Flags::NONE, Flags::FAST, Flags::WRITE.and(Flags::BLOCKING), Flags::READONLY.and(Flags::DANGEROUS)]
        {
            assert!(!with(flags).may_run_fast(), "{flags:?}");
        }
    }
}
