//! The memory of clients, counted as it grows (`maxmemory-clients`).
//!
//! Clients are kept by the magnitude of their memory, so that a small change costs nothing and the large ones are
//! found at once; of one magnitude, the oldest comes first.

use std::collections::BTreeSet;

use crate::engine::state::SessionId;

/// The memory in bytes below which all clients are of one magnitude.
const SMALL_BYTES: usize = 32 << 10;

/// The smallest limit, in bytes, so that a client can still connect to correct a limit set by mistake.
const MIN_LIMIT_BYTES: u64 = 128 << 10;

/// `maxmemory-clients`: the most memory that all clients together may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientsLimit {
    /// A number of bytes; 0 for no limit.
    Bytes(u64),
    /// A percentage of `maxmemory`, if that is set.
    Percent(u64),
}

impl ClientsLimit {
    /// The limit in bytes; `None` for no limit.
    pub fn bytes(self, max_memory_bytes: u64) -> Option<u64> {
        let bytes = match self {
            ClientsLimit::Bytes(bytes) => bytes,
            ClientsLimit::Percent(percent) => {
                u64::try_from(u128::from(max_memory_bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
            }
        };
        (bytes > 0).then_some(bytes.max(MIN_LIMIT_BYTES))
    }
}

/// The memory that a session is counted with.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct AccountedMemory {
    bytes: usize,
    /// The client's place among those that may be evicted; `None` if it is exempt.
    magnitude: Option<u32>,
}

/// The memory of all clients.
#[derive(Debug, Default)]
pub(in crate::engine) struct ClientMemory {
    total_bytes: usize,
    evictable: BTreeSet<(u32, SessionId)>,
}

impl ClientMemory {
    /// The memory of all clients, in bytes.
    pub(in crate::engine) fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    /// Updates the count of a session: with `bytes`, and among the clients that may be evicted unless it `is_spared`.
    pub(in crate::engine) fn account(
        &mut self,
        session: SessionId,
        weight: &mut AccountedMemory,
        bytes: usize,
        is_spared: bool,
    ) {
        self.total_bytes = self.total_bytes - weight.bytes + bytes;
        let magnitude = (!is_spared).then(|| bytes.max(SMALL_BYTES).ilog2());
        if weight.magnitude != magnitude {
            weight.magnitude.into_iter().for_each(|known| _ = self.evictable.remove(&(known, session)));
            magnitude.into_iter().for_each(|magnitude| _ = self.evictable.insert((magnitude, session)));
        }
        *weight = AccountedMemory { bytes, magnitude };
    }

    /// Removes a session from the count.
    pub(in crate::engine) fn forget(&mut self, session: SessionId, weight: &mut AccountedMemory) {
        self.account(session, weight, 0, true);
    }

    /// The client to evict next.
    pub(in crate::engine) fn largest(&self) -> Option<SessionId> {
        let (most, _) = self.evictable.last()?;
        self.evictable.range((*most, SessionId::FIRST)..).next().map(|(_, session)| *session)
    }
}
