//! Errors of RESTORE.

use thiserror::Error as Texts;

/// The reason why RESTORE failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum RestoreError {
    /// The key already exists, and RESTORE has no REPLACE.
    #[error("BUSYKEY Target key name already exists.")]
    Busy,
    /// The time to live is negative.
    #[error("ERR Invalid TTL value, must be >= 0")]
    NegativeTtl,
    /// IDLETIME is negative.
    #[error("ERR Invalid IDLETIME value, must be >= 0")]
    NegativeIdleTime,
    /// FREQ is not from 0 to 255.
    #[error("ERR Invalid FREQ value, must be >= 0 and <= 255")]
    FrequencyOutOfRange,
    /// The payload has a correct checksum, but its content is damaged.
    #[error("ERR Bad data format")]
    BadFormat,
}
