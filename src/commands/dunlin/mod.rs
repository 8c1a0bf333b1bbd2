//! DUNLIN: the test kit as a command. It controls time, randomness, failures and state from any language.
//!
//! Redis has no such command, so it exists only where it was requested: with `test-kit yes` in the configuration, and
//! in servers that a test embeds. Otherwise it is an unknown command like any other.

mod clock;
mod due;
mod fault;
mod feed;
mod filter;
mod journal;
mod measure;
mod nodes;
mod seed;
mod snapshots;
mod state;
pub mod strict;
mod tree;
mod wait;
mod world;

pub use state::{diff, dump, load};
pub use world::of_login;

use super::command::syntax;
use super::help;
use crate::engine::exec::operations;
use crate::engine::{AclError, Args, Arity, Command, Ctx, Error, Family, Flags, HostCall, KitError, Propagated};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[DUNLIN];

const DUNLIN: Command = Command {
    name: "DUNLIN",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    flags: Flags::TEST_KIT,
    since: SINCE,
    cost: "Depends on the subcommand.",
    about: "Controls time, randomness, failures and state, for tests.",
    subcommands: &[
        clock::ADVANCE,
        clock::ADVANCE_TO_NEXT,
        state::DIFF,
        snapshots::DROP_SNAPSHOT,
        world::DROP_TEMPLATE,
        world::DROP_WORLD,
        due::DUE,
        state::DUMP,
        fault::FAULT,
        feed::FEED,
        clock::FREEZE,
        help::row(Family::Server, SINCE),
        journal::JOURNAL,
        world::LISTEN,
        state::LOAD,
        measure::MEASURE,
        nodes::FAILOVER,
        nodes::HEAL,
        nodes::LAG,
        nodes::LINK,
        nodes::MIGRATE_SLOT,
        nodes::NODE,
        nodes::NODES,
        nodes::PARTITION,
        clock::RESUME,
        snapshots::ROLLBACK,
        seed::SEED,
        clock::SET_TIME,
        snapshots::SNAPSHOT,
        snapshots::SNAPSHOTS,
        clock::SPEED,
        strict::STRICT,
        world::TEMPLATE,
        tree::TREE,
        nodes::VIEW,
        wait::WAIT,
        world::WORLD,
        world::WORLDS,
    ],
    ..Command::ROW
};

/// The version that COMMAND DOCS reports for it: that of Redis that the first release answers as.
const SINCE: &str = "8.0.0";

/// Makes a syntax error contain the subcommand's syntax.
fn explained(row: &Command, outcome: Result<(), Error>) -> Result<(), Error> {
    outcome.map_err(|error| match error {
        Error::Syntax => KitError::Syntax(format!("{} {}", row.name, syntax::shown(row.syntax))).into(),
        other => other,
    })
}

/// Refuses a client whose user may not read all keys: the reply may have more of any key than its name, type and size,
/// which SCAN and DUNLIN TREE show to every user: its deadline, its value, or a command with that.
fn check_reads_all(cx: &Ctx<'_>, args: &Args<'_>) -> Result<(), Error> {
    if operations::may_read_all_keys(cx, args) { Ok(()) } else { Err(AclError::Key.into()) }
}

/// Refuses a client whose user may not read a key that is not one of the keys of the request.
fn check_reads(cx: &Ctx<'_>, args: &Args<'_>, key: &[u8]) -> Result<(), Error> {
    if operations::may_read(cx, args, key) { Ok(()) } else { Err(AclError::Key.into()) }
}

/// Takes the next word as a number that is not negative: how many of something, or the number of a node.
fn count<N: TryFrom<i64>>(args: &mut Args<'_>) -> Result<N, Error> {
    N::try_from(args.integer()?).map_err(|_| Error::NotAnInteger)
}

/// Replies OK when the host has done what it is asked.
fn order_host(cx: &mut Ctx<'_>, call: HostCall) -> Result<(), Error> {
    if cx.call_host(call)?.is_some() {
        cx.reply().ok();
    }
    Ok(())
}

/// Whether the server is one of the nodes of a cluster in this process.
fn has_nodes(cx: &mut Ctx<'_>) -> bool {
    cx.engine().settings.cluster.nodes() > 0
}

/// Fields shared by all subcommands: they are not for applications, and they act between commands.
const ROW: Command = Command {
    family: Family::Server,
    flags: Flags::ADMIN
        .and(Flags::NOSCRIPT)
        .and(Flags::NO_MULTI)
        .and(Flags::LOADING)
        .and(Flags::STALE)
        .and(Flags::SKIP_SLOWLOG),
    propagated: Propagated::Never,
    since: SINCE,
    ..Command::ROW
};
