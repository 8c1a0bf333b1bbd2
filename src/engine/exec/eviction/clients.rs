//! Client eviction: the largest clients are closed while all of them together take more than `maxmemory-clients`.
//!
//! A client with CLIENT NO-EVICT is counted but never closed.
//!
//! Source: Redis's documentation of client eviction, and the behaviour of Redis 8.0.6.

use crate::engine::Engine;
use crate::engine::exec::{client_line, delivery};
use crate::engine::state::{ClientsLimit, Effect, LogLevel, SessionId};

impl Engine {
    /// Closes clients until the rest fit the limit; the calling session may be among them.
    #[inline]
    pub fn evict_clients(&mut self) {
        if self.settings.max_client_bytes != ClientsLimit::Bytes(0) {
            evict_clients_beyond_limit(self);
        }
    }
}

#[cold]
fn evict_clients_beyond_limit(engine: &mut Engine) {
    let Some(limit) = engine.settings.max_client_bytes.bytes(engine.settings.max_memory_bytes) else { return };
    while engine.sessions.memory_bytes() as u64 >= limit {
        let Some(session) = engine.sessions.largest() else {
            let line = "Over client maxmemory after evicting all evictable clients".to_owned();
            return engine.effects.push(Effect::Log(LogLevel::Warning, line));
        };
        evict_client(engine, session);
    }
}

fn evict_client(engine: &mut Engine, session: SessionId) {
    let Some(client) = engine.sessions.get(session) else { return };
    let line = format!("Evicting client: {}", client_line::client_info(engine, client));
    engine.effects.push(Effect::Log(LogLevel::Notice, line));
    engine.stats.evicted_clients += 1;
    delivery::drop_session(engine, session);
}
