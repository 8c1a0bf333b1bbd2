//! What commands on bits refuse.

use thiserror::Error as Texts;

/// Why a command on the bits of a string was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Texts)]
pub enum BitmapError {
    /// A place of a bit that is no number, negative, or beyond the longest string.
    #[error("ERR bit offset is not an integer or out of range")]
    Offset,
    /// SETBIT sets a bit to 0 or 1.
    #[error("ERR bit is not an integer or out of range")]
    Bit,
    /// BITPOS looks for 0 or 1.
    #[error("ERR The bit argument must be 1 or 0.")]
    SoughtBit,
    /// BITOP NOT with several sources.
    #[error("ERR BITOP NOT must be called with a single source key.")]
    NotOfSeveral,
    /// No type of a field.
    #[error("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")]
    FieldType,
    /// BITFIELD knows no such way of dealing with a number that does not fit.
    #[error("ERR Invalid OVERFLOW type specified")]
    Overflow,
    /// BITFIELD_RO was to write.
    #[error("ERR BITFIELD_RO only supports the GET subcommand")]
    ReadOnly,
}
