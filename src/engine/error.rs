//! Every error a command can answer, each with its exact text.
//!
//! One variant is one text, and the text stands nowhere else. The wording is Redis 8.0's, since clients and tests match
//! on it. Errors of files and sockets are not here: the engine has neither.

use thiserror::Error as Texts;

/// Why a command was refused. Its `Display` is the line that the client reads, code first.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum Error {
    // Finding a command.
    /// No command of that name; the name and the start of the arguments, as the client sent them.
    #[error("ERR unknown command '{name}', with args beginning with: {arguments}")]
    UnknownCommand {
        /// The name, cut to 128 bytes.
        name: String,
        /// The first arguments, quoted, cut to 128 bytes.
        arguments: String,
    },
    /// A container command has no such subcommand.
    #[error("ERR unknown subcommand '{subcommand}'. Try {container} HELP.")]
    UnknownSubcommand {
        /// The container's name in upper case.
        container: String,
        /// The subcommand, cut to 128 bytes.
        subcommand: String,
    },
    /// Too few or too many arguments; the command's full name in lower case.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(String),

    // Gates.
    /// The session has not logged in.
    #[error("NOAUTH Authentication required.")]
    NoAuth,
    /// DEBUG is not enabled.
    #[error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
         local connection, otherwise you need to set this option in the configuration file, and then restart the server."
    )]
    DebugDisabled,

    // Arguments.
    /// An option is unknown, misplaced or contradicts another.
    #[error("ERR syntax error")]
    Syntax,
    /// Not a 64-bit signed integer in canonical form.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// An integer outside of what the argument can mean.
    #[error("ERR value is out of range")]
    OutOfRange,
    /// An integer that must not be negative.
    #[error("ERR value is out of range, must be positive")]
    NotPositive,
    /// Not a number.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// A database number that is not there.
    #[error("ERR DB index is out of range")]
    DatabaseOutOfRange,

    // Data.
    /// The key holds another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// The key must exist.
    #[error("ERR no such key")]
    NoSuchKey,

    // Deadlines.
    /// A deadline that is not positive, or too far away; the command's name in lower case.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpireTime(&'static str),
}
