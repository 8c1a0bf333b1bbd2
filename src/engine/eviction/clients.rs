//! Clients that take too much memory: counted as they grow, and closed, the largest first, when all of them together
//! take more than `maxmemory-clients`.
//!
//! Clients are kept by the magnitude of what they take, so that a small change costs nothing and the
//! large ones are found at once; of one magnitude, the oldest goes first. Who asked for it (CLIENT
//! NO-EVICT) is counted and never closed.
//!
//! Source: Redis's documentation of client eviction, and the behaviour of Redis 8.0.6.

use std::collections::BTreeSet;

use crate::engine::{Effect, Engine, LogLevel, SessionId};

/// Clients of less than this are all of one magnitude.
const SMALL_BYTES: usize = 32 << 10;
/// A limit is at least this, so that somebody can still say that it was a mistake.
const LEAST_LIMIT_BYTES: u64 = 128 << 10;

/// `maxmemory-clients`: how much memory all clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientsLimit {
    /// This many bytes; 0 for no limit.
    Bytes(u64),
    /// This many hundredths of `maxmemory`, if there is one.
    Percent(u64),
}

impl ClientsLimit {
    /// How many bytes that is; `None` for any.
    pub fn bytes(self, max_memory_bytes: u64) -> Option<u64> {
        let bytes = match self {
            ClientsLimit::Bytes(bytes) => bytes,
            ClientsLimit::Percent(percent) => {
                u64::try_from(u128::from(max_memory_bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
            }
        };
        (bytes > 0).then_some(bytes.max(LEAST_LIMIT_BYTES))
    }
}

/// What a session is counted as.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct AccountedMemory {
    bytes: usize,
    /// Its place among those who may be closed.
    magnitude: Option<u32>,
}

/// What all clients take.
#[derive(Debug, Default)]
pub(in crate::engine) struct ClientMemory {
    total_bytes: usize,
    evictable: BTreeSet<(u32, SessionId)>,
}

impl ClientMemory {
    /// What all take, in bytes.
    pub(in crate::engine) fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    /// Counts a session anew: with `bytes`, and among those who may be closed unless it `is_spared`.
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

    /// No longer counts a session.
    pub(in crate::engine) fn forget(&mut self, session: SessionId, weight: &mut AccountedMemory) {
        self.account(session, weight, 0, true);
    }

    /// The client that is to be closed next.
    pub(in crate::engine) fn largest(&self) -> Option<SessionId> {
        let (most, _) = self.evictable.last()?;
        self.evictable.range((*most, SessionId::FIRST)..).next().map(|(_, session)| *session)
    }
}

impl Engine {
    /// Closes clients until the others take less than they may; the session that has its turn may be among them.
    #[inline]
    pub fn evict_clients(&mut self) {
        if self.settings.max_client_bytes != ClientsLimit::Bytes(0) {
            self.evict_clients_beyond_limit();
        }
    }

    #[cold]
    fn evict_clients_beyond_limit(&mut self) {
        let Some(limit) = self.settings.max_client_bytes.bytes(self.settings.max_memory_bytes) else { return };
        while self.sessions.memory_bytes() as u64 >= limit {
            let Some(session) = self.sessions.largest() else {
                let line = "Over client maxmemory after evicting all evictable clients".to_owned();
                return self.effects.push(Effect::Log(LogLevel::Warning, line));
            };
            self.evict_client(session);
        }
    }

    fn evict_client(&mut self, session: SessionId) {
        let Some(client) = self.sessions.get(session) else { return };
        let line = format!("Evicting client: {}", self.client_info(client));
        self.effects.push(Effect::Log(LogLevel::Notice, line));
        self.stats.evicted_clients += 1;
        self.drop_session(session);
    }
}
