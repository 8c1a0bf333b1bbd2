//! Prefetch: the memory that the requests of a pipeline, or a request with several keys, will read is fetched into the
//! processor's caches before it is read.
//!
//! In a database with many keys, it fetches the records of the keys. In one with few keys, it fetches the members of
//! large collections, as the records are probably cached. It changes nothing, and no command depends on it.
//!
//! It guesses that the second word of a request is a key, and which word is a member: the guess is nearly always right,
//! and a wrong one does no harm.

use crate::engine::Engine;
use crate::engine::state::SessionId;
use crate::keyspace::Database;
use crate::resp::Request;
use crate::value::{Prefetch, View};

/// The number of keys from which on records are prefetched: smaller databases may be in the processor's caches.
const MANY_KEYS: usize = 10_000;

/// The number of members that are prefetched together: as many cache lines as a processor loads in parallel, and some
/// more.
const TOGETHER: usize = 16;

/// The number of keys of one command that are prefetched together: so few that their records are still cached when they
/// are read, and so many that their waits overlap.
pub(super) const KEYS_TOGETHER: usize = 128;

/// Prefetches the records of several keys of one command, if the database has many keys. A single key costs a
/// comparison.
#[inline]
pub(super) fn prefetch_keys<'k>(data: &Database, keys: impl ExactSizeIterator<Item = &'k [u8]>) {
    if keys.len() > 1 && data.len() >= MANY_KEYS {
        data.prefetch(keys);
    }
}

impl Engine {
    /// Prefetches the memory that the next requests of a session will read.
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

/// Returns a prefetch of the member that a request names, if the key holds a large collection.
fn prefetch_of<'d>(data: &'d Database, request: Request<'_>) -> Option<Prefetch<'d>> {
    let view = data.view(data.find(request.get(1)?)?);
    let member = match view {
        View::Zset(_) => request.get(request.len() - 1)?,
        _ => request.get(2)?,
    };
    view.prefetch(member)
}
