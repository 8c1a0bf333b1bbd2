//! Errors of the bitmap commands.

use thiserror::Error as Texts;

/// The reason why a bitmap command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Texts)]
pub enum BitmapError {
    /// A bit offset is not a number, negative, or beyond the longest string (SETBIT, GETBIT, BITFIELD).
    #[error("ERR bit offset is not an integer or out of range")]
    Offset,
    /// The value for SETBIT is neither 0 nor 1.
    #[error("ERR bit is not an integer or out of range")]
    Bit,
    /// The bit that BITPOS searches for is neither 0 nor 1.
    #[error("ERR The bit argument must be 1 or 0.")]
    SoughtBit,
    /// BITOP NOT has more than one source key.
    #[error("ERR BITOP NOT must be called with a single source key.")]
    NotOfSeveral,
    /// A type of BITFIELD is none of i1 to i64 and u1 to u63.
    #[error("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")]
    FieldType,
    /// OVERFLOW of BITFIELD is neither WRAP, SAT nor FAIL.
    #[error("ERR Invalid OVERFLOW type specified")]
    Overflow,
    /// BITFIELD_RO has a subcommand that writes.
    #[error("ERR BITFIELD_RO only supports the GET subcommand")]
    ReadOnly,
}
