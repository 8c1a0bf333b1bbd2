//! The row of a command: its name, syntax, keys, flags, documentation, and the function that runs it.
//!
//! The rows are in `commands/`, each above its function; a [`Table`](crate::engine::Table) is built from them. All that
//! is reported or checked about a command derives from its row: the arity and login gates, COMMAND and its subcommands,
//! ACL categories, the keys of a request, statistics by name, the README's table.

use std::ops::Range;

use crate::engine::Engine;
use crate::engine::exec::Ctx;
use crate::engine::spec::{Args, Change, Error, KeyFlags, KeySpec, Propagated, Secrets};
use crate::resp::Request;

/// The function that runs a command: it parses all of `args`, then acts through the context and writes one reply.
pub type Handler = for<'c, 'a> fn(&mut Ctx<'c>, Args<'a>) -> Result<(), Error>;

/// The flags whose commands meet a gate of their own, so that they never take the fast path. A test of `exec/gates`
/// compares this list with the gates.
const GATED: [Flags; 3] = [Flags::PROTECTED, Flags::EXTENDS, Flags::NO_MULTI];

/// A command, declared once.
#[derive(Debug)]
pub struct Command {
    /// The command's name in upper case; for a subcommand, only the second word.
    pub name: &'static str,
    /// The arguments in the notation of Redis's documentation: `[x]` is optional, `a|b` is a choice, `x ...` repeats,
    /// words in upper case are literal. `label:` before a group or a word gives it another name than its own
    /// (`commands/command/syntax.rs` describes all of it).
    pub syntax: &'static str,
    /// The arguments as HELP shows them, where that differs from `syntax`.
    pub usage: &'static str,
    /// The family of the command, which gives its documentation group and ACL category.
    pub family: Family,
    /// The number of words that a request may have, including the name.
    pub arity: Arity,
    /// The properties of the command: what it may do and where it may run.
    pub flags: Flags,
    /// Whether the command is as quick as one that reads or changes a key and has [`Flags::FAST`], and does no more,
    /// although Redis does not flag it so.
    pub is_quick: bool,
    /// Whether its reply may show something of the data, which then has to be durable under `appendfsync always`.
    pub shows_data: bool,
    /// Computes the flags from the request, in place of `flags`: a script declares them in its first line.
    pub flags_of: Option<fn(&Engine, Request<'_>) -> Flags>,
    /// The rules that find the keys of a request.
    pub keys: &'static [KeySpec],
    /// Finds the words that are keys, where `keys` does not give them exactly; their access is that of the first rule
    /// in `keys`.
    pub keys_by: Option<fn(Request<'_>) -> Range<usize>>,
    /// Computes the access to the keys from the other arguments ([`KeyFlags::VARIABLE`]).
    pub access_of: Option<fn(Request<'_>) -> KeyFlags>,
    /// How the log of changes repeats the command.
    pub propagated: Propagated,
    /// The arguments that are channels to publish to or to subscribe to.
    pub channels: Channels,
    /// The first version of Redis that had the command.
    pub since: &'static str,
    /// The changes since that version, the oldest first.
    pub history: &'static [Change],
    /// The time complexity as Redis documents it.
    pub cost: &'static str,
    /// A summary of the command in one line of our own.
    pub about: &'static str,
    /// Hints for clients and proxies, such as `nondeterministic_output`.
    pub tips: &'static [&'static str],
    /// The version that deprecated the command, and its replacement.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// The arguments that are secret, so that logs and MONITOR hide them.
    pub secrets: Secrets,
    /// The subcommands; the handler of a container that has some never runs.
    pub subcommands: &'static [Command],
    /// The handler, which runs the command.
    pub run: Handler,
}

impl Command {
    /// The default values of a row, for `..Command::ROW`.
    pub const ROW: Command = Command {
        name: "",
        syntax: "",
        usage: "",
        family: Family::Generic,
        arity: Arity::Exactly(1),
        flags: Flags::NONE,
        is_quick: false,
        shows_data: true,
        flags_of: None,
        keys: &[],
        keys_by: None,
        access_of: None,
        propagated: Propagated::Verbatim,
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

    /// Whether the command only reads or changes data, publishes a message, or repeats its words, and replies at once.
    pub(in crate::engine) fn may_run_fast(&self) -> bool {
        const MEANT: [Flags; 3] = [Flags::READONLY, Flags::WRITE, Flags::MAY_REPLICATE];
        const ELSE: [Flags; 3] = [Flags::BLOCKING, Flags::NOSCRIPT, Flags::TEST_KIT];
        let has = |flag: &Flags| self.flags.has(*flag);
        let may_be_more = ELSE.iter().any(has)
            || GATED.iter().any(has)
            || self.is_about_more_than_keys()
            || self.flags_of.is_some()
            || self.family == Family::Scripting;
        (MEANT.iter().any(has) || self.is_quick) && !may_be_more && !self.is_container()
    }

    /// Whether the command is about whole databases (FLUSHALL), about another server (MIGRATE), or for administrators.
    /// Of the dangerous commands and those for administrators, the ones that change single keys need memory: RESTORE,
    /// SORT and PFDEBUG.
    fn is_about_more_than_keys(&self) -> bool {
        let changes_dangerously = self.flags.has(Flags::DANGEROUS.and(Flags::WRITE));
        (changes_dangerously || self.flags.has(Flags::ADMIN)) && !self.flags.has(Flags::DENYOOM)
    }

    /// Whether a short request takes next to no time, unless its reply is long.
    pub(in crate::engine) fn is_brief(&self) -> bool {
        // XADD may trim many entries at once.
        self.may_run_fast() && self.flags.has(Flags::FAST) && self.family != Family::Stream || self.is_quick
    }

    /// True when the command has subcommands.
    pub fn is_container(&self) -> bool {
        !self.subcommands.is_empty()
    }

    /// True when the command runs or manages scripts.
    pub fn is_of_scripts(&self) -> bool {
        self.family == Family::Scripting
    }

    /// The subcommand with that name, in upper or lower case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Command> {
        self.subcommands.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// The handler in the row of a container: it never runs, because dispatch always finds a subcommand first.
fn unreachable_container(_: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    Err(Error::Syntax)
}

/// The arguments of a command that are channels to publish to or to subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// No argument is a channel.
    None,
    /// The first argument is a channel.
    First,
    /// All arguments are channels.
    All,
    /// All arguments are patterns of channels.
    Patterns,
}

/// The number of words that a request of a command may have, including the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this number of words.
    Exactly(u8),
    /// This number of words or more.
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

    /// The number as COMMAND INFO shows it: negative for a minimum.
    pub fn signed(self) -> i64 {
        match self {
            Arity::Exactly(count) => i64::from(count),
            Arity::AtLeast(count) => -i64::from(count),
        }
    }
}

/// A family of commands, which gives a documentation group and an ACL category.
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
    VectorSet,
}

impl Family {
    /// The group in COMMAND DOCS.
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
            Family::VectorSet => "module",
        }
    }

    /// The ACL category that all commands of the family are in, if there is one.
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
            Family::Cluster | Family::PubSub | Family::Server | Family::VectorSet => None,
            Family::Set => Some("set"),
            Family::SortedSet => Some("sortedset"),
            Family::Stream => Some("stream"),
            Family::String => Some("string"),
            Family::Transactions => Some("transaction"),
        }
    }
}

/// A set of flags of a command, joined with [`Flags::and`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u64);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    // Flags that COMMAND INFO shows, in its order.
    /// The command may change data.
    pub const WRITE: Flags = Flags(1);
    /// The command reads data and changes none.
    pub const READONLY: Flags = Flags(1 << 1);
    /// The command may make the data larger: it is refused when memory is short.
    pub const DENYOOM: Flags = Flags(1 << 2);
    /// The command is of a module that Redis has built in: its full name is in upper case, it is in no ACL category,
    /// and COMMAND DOCS knows only its module.
    pub const MODULE: Flags = Flags(1 << 32);
    /// The command is for administrators.
    pub const ADMIN: Flags = Flags(1 << 3);
    /// The command belongs to publish and subscribe.
    pub const PUBSUB: Flags = Flags(1 << 4);
    /// Scripts may not call it.
    pub const NOSCRIPT: Flags = Flags(1 << 5);
    /// The command may block its client.
    pub const BLOCKING: Flags = Flags(1 << 6);
    /// The command runs while data is loaded.
    pub const LOADING: Flags = Flags(1 << 7);
    /// The command runs on a replica whose data is stale.
    pub const STALE: Flags = Flags(1 << 8);
    /// MONITOR does not show the command.
    pub const SKIP_MONITOR: Flags = Flags(1 << 9);
    /// The slow log does not record the command.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 10);
    /// A cluster's node accepts the command for a slot that is being imported.
    pub const ASKING: Flags = Flags(1 << 11);
    /// The command takes constant or logarithmic time.
    pub const FAST: Flags = Flags(1 << 12);
    /// The command runs before login.
    pub const NO_AUTH: Flags = Flags(1 << 13);
    /// The command does not run while data is loaded asynchronously.
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 14);
    /// The command does not run inside MULTI.
    pub const NO_MULTI: Flags = Flags(1 << 15);
    /// The command can be called without keys although it has key arguments.
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 16);
    /// The keys cannot be found by fixed places alone. No row sets this flag: it follows from `keys`
    /// ([`Command::all_flags`]).
    pub const MOVABLE_KEYS: Flags = Flags(1 << 17);
    /// The command runs while a script is busy.
    pub const ALLOW_BUSY: Flags = Flags(1 << 18);

    // Flags for ACL categories that follow neither from the family nor from the other flags.
    /// ACL category `dangerous`.
    pub const DANGEROUS: Flags = Flags(1 << 19);
    /// ACL category `keyspace`, in addition to the family's.
    pub const KEYSPACE: Flags = Flags(1 << 20);
    /// ACL category `connection` instead of the family's.
    pub const CONNECTION: Flags = Flags(1 << 21);
    /// ACL categories `admin` and `dangerous`, without the flag `admin`.
    pub const FOR_ADMINS: Flags = Flags(1 << 22);
    /// ACL categories `list`, `set` and `sortedset` instead of the family's.
    pub const COLLECTIONS: Flags = Flags(1 << 23);

    // Internal flags, which COMMAND INFO does not show.
    /// The command may concern replicas although it is no write: a script, a message.
    pub const MAY_REPLICATE: Flags = Flags(1 << 24);
    /// The command needs the setting `enable-debug-command`.
    pub const PROTECTED: Flags = Flags(1 << 25);
    /// The command needs the setting `enable-module-command`.
    pub const EXTENDS: Flags = Flags(1 << 26);
    /// The command is for the server's own use, which COMMAND DOCS shows.
    pub const SYSTEM: Flags = Flags(1 << 27);
    /// The command runs at once inside MULTI, where others are queued (EXEC).
    pub const UNQUEUED: Flags = Flags(1 << 28);
    /// The command runs the queue of a transaction, so it passes the gates with the flags of all queued commands, too.
    pub const RUNS_QUEUE: Flags = Flags(1 << 29);
    /// A RESP2 client with subscriptions may call the command.
    pub const WHILE_SUBSCRIBED: Flags = Flags(1 << 30);
    /// The command belongs to the test kit, which neither records nor disturbs it.
    pub const TEST_KIT: Flags = Flags(1 << 31);

    /// The flags of this set that are not in the other.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// The flags of both sets.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// True when all flags of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the flags that COMMAND INFO lists, in Redis's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(Flags, &str); 20] = [
            (Flags::WRITE, "write"),
            (Flags::READONLY, "readonly"),
            (Flags::DENYOOM, "denyoom"),
            (Flags::MODULE, "module"),
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
        assert!(with(Flags::READONLY.and(Flags::DANGEROUS)).may_run_fast());
        assert!(with(Flags::WRITE.and(Flags::DENYOOM).and(Flags::DANGEROUS)).may_run_fast());
        assert!(with(Flags::WRITE.and(Flags::DENYOOM).and(Flags::ADMIN)).may_run_fast());
        assert!(Command { is_quick: true, ..with(Flags::FAST) }.may_run_fast(), "PING");
        let of_more = [Flags::DANGEROUS, Flags::ADMIN, Flags::BLOCKING].map(|flag| Flags::WRITE.and(flag));
        for flags in [Flags::NONE, Flags::FAST, Flags::READONLY.and(Flags::ADMIN)].into_iter().chain(of_more) {
            assert!(!with(flags).may_run_fast(), "{flags:?}");
        }
    }
}
