//! The cached answer to whether the fast path is open ([`crate::engine::exec`]).

use crate::engine::state::SessionId;

/// The cached answer to whether the fast path is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum FastPath {
    /// No answer is cached: outside of a batch it may change between two requests.
    #[default]
    NotKept,
    /// The next request of the batch checks.
    Unknown,
    /// The fast path is open for that session until [`FastPath::forget`] is called or the batch ends; a direct call
    /// leaves it to the next one.
    For(SessionId),
}

impl FastPath {
    /// Drops the cached answer: a command may have changed it.
    pub(in crate::engine) fn forget(&mut self) {
        if *self != FastPath::NotKept {
            *self = FastPath::Unknown;
        }
    }
}
