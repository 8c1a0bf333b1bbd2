//! What RESTORE refuses.

use thiserror::Error as Texts;

/// Why a key was not restored.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum RestoreError {
    /// There is such a key, and REPLACE was not said.
    #[error("BUSYKEY Target key name already exists.")]
    Busy,
    /// The time to live is negative.
    #[error("ERR Invalid TTL value, must be >= 0")]
    NegativeTtl,
    /// The idle time is negative.
    #[error("ERR Invalid IDLETIME value, must be >= 0")]
    NegativeIdleTime,
    /// The frequency is no byte.
    #[error("ERR Invalid FREQ value, must be >= 0 and <= 255")]
    FrequencyOutOfRange,
    /// The payload is sealed, and yet damaged.
    #[error("ERR Bad data format")]
    BadFormat,
}
