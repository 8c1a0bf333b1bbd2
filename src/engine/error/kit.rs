//! What the test kit refuses.

use thiserror::Error as Texts;

/// Why a subcommand of DUNLIN did nothing.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum KitError {
    /// There is no snapshot of that name.
    #[error("ERR no snapshot named '{0}'")]
    NoSnapshot(String),
    /// A line of a text does not say what data there is.
    #[error("ERR line {number}: {reason}")]
    Line {
        /// The number of the line, from 1 on.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
}
