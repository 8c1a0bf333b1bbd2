//! Prefetch: what the requests of a pipeline will look at is fetched from memory before the first of them runs.
//!
//! Where there are many keys, their records are far. Where there are few, what is far lies within them, if anything:
//! the members of a large collection. Nothing changes by it, and no command knows of it.
//!
//! That the second word of a request is a key, and which one is a member, is a guess: nearly always right, and harmless
//! where it is not.

use crate::engine::Engine;
use crate::engine::state::SessionId;
use crate::keyspace::Database;
use crate::resp::Request;
use crate::value::{Prefetch, View};

/// Databases of fewer keys may lie in the processor's caches.
const MANY_KEYS: usize = 10_000;

/// Members that are prefetched together: as many lines as a processor waits for at once, and some more.
const TOGETHER: usize = 16;

impl Engine {
    /// Has memory fetch what the next requests of a session will look at.
    pub fn prefetch<'a>(&self, session: SessionId, requests: impl Iterator<Item = Request<'a>>) {
        let Some(client) = self.sessions.get(session) else { return };
        let data = self.databases.get(client.database);
        if data.len() >= MANY_KEYS {
            return data.prefetch(requests.filter_map(|request| request.get(1)));
        }
        let mut prefetches = requests.map_while(|request| prefetch_of(data, request));
        loop {
            let mut group: Vec<Prefetch<'_>> = prefetches.by_ref().take(TOGETHER).collect();
            if group.is_empty() {
                return;
            }
            Prefetch::run(&mut group);
        }
    }
}

/// A prefetch of the member that a request names, if it is about a large collection.
fn prefetch_of<'d>(data: &'d Database, request: Request<'_>) -> Option<Prefetch<'d>> {
    let view = data.view(data.find(request.get(1)?)?);
    let member = match view {
        View::Zset(_) => request.get(request.len() - 1)?,
        _ => request.get(2)?,
    };
    view.prefetch(member)
}
