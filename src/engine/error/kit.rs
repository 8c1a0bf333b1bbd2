//! What the test kit refuses.

use thiserror::Error as Texts;

/// Why a subcommand of DUNLIN did nothing.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum KitError {
    /// A subcommand was said otherwise than it is.
    #[error("ERR syntax error, it is DUNLIN {0}")]
    Syntax(String),
    /// No command has that name.
    #[error("ERR there is no command '{0}'")]
    NoCommand(String),
    /// There is no snapshot of that name.
    #[error("ERR no snapshot named '{0}'")]
    NoSnapshot(String),
    /// A world was to have another name than worlds have.
    #[error("ERR a world has 1 to 64 letters, digits, '-', '_' or '.' for a name")]
    WorldName,
    /// There is no world of that name.
    #[error("ERR no world named '{0}'")]
    NoWorld(String),
    /// There are so many worlds that no other can be made.
    #[error("ERR max number of worlds reached")]
    TooManyWorlds,
    /// A world has as many clients as it lets in.
    #[error("ERR max number of clients reached")]
    FullWorld,
    /// The world that a server starts with was to end without it.
    #[error("ERR the world 'default' lasts as long as the server")]
    LastingWorld,
    /// The first world was to be seen from another one by somebody who may not see all of it.
    #[error("NOPERM the data of the world 'default' is shown to users who may do everything there")]
    HiddenWorld,
    /// A transaction or a script was to go into another world, or to look at others.
    #[error("ERR worlds are out of reach of a transaction")]
    WorldWithin,
    /// A login that was delayed was to lead into another world.
    #[error("ERR worlds are out of reach of what a fault delays")]
    WorldTooLate,
    /// A line of a text does not say what data there is.
    #[error("ERR line {number}: {reason}")]
    Line {
        /// The number of the line, from 1 on.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
}
