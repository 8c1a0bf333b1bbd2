//! Errors of the HyperLogLog commands.

use thiserror::Error as Texts;

/// The reason why a HyperLogLog command failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum HyperLogLogError {
    /// The string at the key does not have the header or the length of a HyperLogLog.
    #[error("WRONGTYPE Key is not a valid HyperLogLog string value.")]
    NotOne,
    /// The string at the key has the header of a HyperLogLog, but its registers are invalid.
    #[error("INVALIDOBJ Corrupted HLL object detected")]
    Corrupted,
    /// PFDEBUG names a key that does not exist.
    #[error("ERR The specified key does not exist")]
    Missing,
    /// PFDEBUG DECODE names a HyperLogLog that is not sparse.
    #[error("ERR HLL encoding is not sparse")]
    NotSparse,
    /// The argument of PFDEBUG SIMD is neither ON nor OFF.
    #[error("ERR Argument must be ON or OFF")]
    Simd,
    /// PFDEBUG has no subcommand of this name; as the client sent it.
    #[error("ERR Unknown PFDEBUG subcommand '{0}'")]
    UnknownSubcommand(String),
    /// PFSELFTEST found a fault; which one.
    #[error("ERR TESTFAILED {0}")]
    TestFailed(&'static str),
}
