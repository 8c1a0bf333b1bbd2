//! What commands on HyperLogLogs refuse.

use thiserror::Error as Texts;

/// Why a command on a HyperLogLog was refused.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum HyperLogLogError {
    /// The string has not the head of one, or not its length.
    #[error("WRONGTYPE Key is not a valid HyperLogLog string value.")]
    NotOne,
    /// The string has the head of one, and its registers make no sense.
    #[error("INVALIDOBJ Corrupted HLL object detected")]
    Corrupted,
    /// PFDEBUG of a key that is not there.
    #[error("ERR The specified key does not exist")]
    Missing,
    /// PFDEBUG DECODE of a dense one.
    #[error("ERR HLL encoding is not sparse")]
    NotSparse,
    /// PFDEBUG SIMD with another word.
    #[error("ERR Argument must be ON or OFF")]
    Simd,
    /// PFDEBUG has no such subcommand; as the client sent it.
    #[error("ERR Unknown PFDEBUG subcommand '{0}'")]
    UnknownSubcommand(String),
    /// PFSELFTEST found something wrong: what.
    #[error("ERR TESTFAILED {0}")]
    TestFailed(&'static str),
}
