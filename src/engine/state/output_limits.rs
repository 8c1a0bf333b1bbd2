//! The output limits of clients (`client-output-buffer-limit`), and the clients that are over a soft one.
//!
//! Output is counted as Redis stores it, so that the same clients are closed: the first 16 KiB are in a buffer that
//! does not count, the rest in blocks that do; the last block counts whole.

use std::collections::BTreeSet;

use crate::engine::spec::Now;
use crate::engine::state::{Session, SessionId};

/// The unsent bytes that do not count: the size of Redis's static reply buffer.
pub(in crate::engine) const FREE_BYTES: usize = 16 << 10;

/// The output buffer limit of a class of clients; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// The hard limit, in bytes: at it a client is closed at once.
    pub hard_bytes: u64,
    /// The soft limit, in bytes: a client that stays over it for `soft_s` is closed.
    pub soft_bytes: u64,
    /// How long a client may be over the soft limit, in seconds.
    pub soft_s: u64,
}

/// The output buffer limits of all classes of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Plain clients, including monitors.
    pub normal: OutputLimit,
    /// Replicas.
    pub replica: OutputLimit,
    /// Clients that subscribe to a channel or pattern.
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        OutputLimits {
            normal: OutputLimit::default(),
            replica: OutputLimit { hard_bytes: 256 << 20, soft_bytes: 64 << 20, soft_s: 60 },
            pubsub: OutputLimit { hard_bytes: 32 << 20, soft_bytes: 8 << 20, soft_s: 60 },
        }
    }
}

impl OutputLimits {
    /// False when the client has no limit and is not over an earlier one.
    pub(in crate::engine) fn concern(&self, session: &Session) -> bool {
        self.of(session) != OutputLimit::default() || session.overfull_until.is_some()
    }

    /// The length in bytes from which a reply closes its client; `None` if there is no hard limit.
    pub(in crate::engine) fn most_reply_bytes(&self, session: &Session) -> Option<u64> {
        let limit = self.of(session);
        (limit.hard_bytes > 0).then(|| limit.hard_bytes.saturating_add(FREE_BYTES as u64))
    }

    /// The limit of that client's class.
    pub(in crate::engine) fn of(&self, session: &Session) -> OutputLimit {
        if session.subscribed.is_empty() { self.normal } else { self.pubsub }
    }
}

/// The clients over their soft limit, ordered by the moment at which each is closed.
#[derive(Debug, Default)]
pub struct Overfull {
    pub(in crate::engine) ends: BTreeSet<(Now, SessionId)>,
}

impl Overfull {
    /// When the first client over its soft limit is closed.
    pub fn next(&self) -> Option<Now> {
        self.ends.first().map(|(end, _)| *end)
    }

    pub(in crate::engine) fn forget(&mut self, session: &mut Session) {
        if let Some(end) = session.overfull_until.take() {
            self.ends.remove(&(end, session.id));
        }
    }
}
