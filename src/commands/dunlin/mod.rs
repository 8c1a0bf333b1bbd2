//! DUNLIN: time, chance, failure and state in the hands of a test, from any language.
//!
//! It is no command of Redis, so it exists only where it was asked for: with `test-kit yes` in the configuration, and
//! in servers that a test embeds. Where it is off, it is an unknown command like any other.

mod clock;
mod fault;
mod filter;
mod journal;
mod seed;
mod snapshots;
mod state;
pub mod strict;
mod wait;
mod world;

pub use state::{diff, dump, load};
pub use world::of_login;

use super::command::syntax;
use super::help;
use crate::engine::{Arity, Command, Error, Family, Flags, KitError};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[DUNLIN];

const DUNLIN: Command = Command {
    name: "DUNLIN",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    flags: Flags::TEST_KIT,
    since: SINCE,
    cost: "Depends on the subcommand.",
    about: "Puts time, chance, failure and state into the hands of a test.",
    subcommands: &[
        clock::ADVANCE,
        clock::ADVANCE_TO_NEXT,
        state::DIFF,
        snapshots::DROP_SNAPSHOT,
        world::DROP_TEMPLATE,
        world::DROP_WORLD,
        state::DUMP,
        fault::FAULT,
        clock::FREEZE,
        help::row(Family::Server, SINCE),
        journal::JOURNAL,
        state::LOAD,
        clock::RESUME,
        snapshots::ROLLBACK,
        seed::SEED,
        clock::SET_TIME,
        snapshots::SNAPSHOT,
        snapshots::SNAPSHOTS,
        clock::SPEED,
        strict::STRICT,
        world::TEMPLATE,
        wait::WAIT,
        world::WORLD,
        world::WORLDS,
    ],
    ..Command::ROW
};

/// It came with the first release, which answers as this version of Redis.
const SINCE: &str = "8.0.0";

/// Has what is refused for its syntax be told what that is.
fn explained(row: &Command, outcome: Result<(), Error>) -> Result<(), Error> {
    outcome.map_err(|error| match error {
        Error::Syntax => KitError::Syntax(format!("{} {}", row.name, syntax::shown(row.syntax))).into(),
        other => other,
    })
}

/// What all of them share: they are not for applications, and what they do is done between commands.
const ROW: Command = Command {
    family: Family::Server,
    flags: Flags::ADMIN
        .and(Flags::NOSCRIPT)
        .and(Flags::NO_MULTI)
        .and(Flags::LOADING)
        .and(Flags::STALE)
        .and(Flags::SKIP_SLOWLOG),
    since: SINCE,
    ..Command::ROW
};
