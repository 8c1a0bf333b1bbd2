//! The state of client-side caching: the clients that track, the keys that they know, and their prefixes.
//!
//! In the default mode a table has the keys that each client has read ([`table`]); with BCAST a client names prefixes
//! instead ([`prefixes`]). Messages are sent by [`crate::engine::exec::tracking`].

pub(in crate::engine) mod prefixes;
pub(in crate::engine) mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::state::tracking::prefixes::Prefixes;
use crate::engine::state::tracking::table::TrackingTable;
use crate::engine::state::{Session, SessionId};

/// The tracking options of a client (CLIENT TRACKING).
#[derive(Clone, Debug, Default)]
pub struct Mode {
    /// The client that gets the invalidations in its place (REDIRECT).
    pub redirect: Option<SessionId>,
    /// It gets invalidations of all keys that begin with its prefixes (BCAST).
    pub broadcasts: bool,
    /// The commands whose keys are tracked.
    pub choice: Choice,
    /// It gets no invalidations of keys that it changes itself (NOLOOP).
    pub no_loop: bool,
    /// CLIENT CACHING was called, which applies to the next command.
    pub is_exception: bool,
    /// The client of its REDIRECT has disconnected.
    pub is_broken: bool,
    /// Its prefixes, for BCAST.
    pub prefixes: BTreeSet<Arc<[u8]>>,
    /// The memory of its prefixes, in bytes.
    pub prefix_bytes: usize,
}

/// The commands of a client whose keys are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// All commands.
    #[default]
    All,
    /// Only commands after CLIENT CACHING YES (OPTIN).
    OnlyNamed,
    /// All commands except those after CLIENT CACHING NO (OPTOUT).
    UnlessNamed,
}

/// The state of client-side caching: the clients that track, and what they track.
#[derive(Debug, Default)]
pub struct Tracking {
    pub(in crate::engine) clients: BTreeSet<SessionId>,
    pub(in crate::engine) table: TrackingTable,
    pub(in crate::engine) prefixes: Prefixes,
    /// The session whose request runs.
    pub(in crate::engine) current: Option<SessionId>,
    /// The command of that session runs, and has not replied yet.
    pub(in crate::engine) is_running: bool,
    /// The invalidations that follow that client's reply: of a key, or of all keys.
    pub(in crate::engine) pending: Vec<Option<Box<[u8]>>>,
    /// The reply of the running command follows the invalidations for its own client, instead of preceding them.
    pub(in crate::engine) is_reply_last: bool,
    /// The number of consecutive commands that found too many keys.
    pub(in crate::engine) rounds: usize,
}

impl Tracking {
    /// True when at least one client tracks keys.
    #[inline]
    pub fn is_on(&self) -> bool {
        !self.clients.is_empty() || self.table.len() > 0
    }

    /// The number of clients that track.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// The number of keys in the tracking table.
    pub fn keys(&self) -> usize {
        self.table.len()
    }

    /// The number of pairs of a key and a client in the tracking table.
    pub fn items(&self) -> usize {
        self.table.items()
    }

    /// The number of tracked prefixes.
    pub fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    /// About how many bytes of memory tracking takes.
    pub(in crate::engine) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    /// Ends the tracking of a client.
    pub(in crate::engine) fn leave(&mut self, session: &mut Session) {
        if let Some(mode) = session.tracking.take() {
            self.clients.remove(&session.id);
            mode.prefixes.iter().for_each(|prefix| self.prefixes.leave(prefix, session.id));
        }
    }
}

/// Attributing changes to sessions.
impl Tracking {
    /// A session's request begins: changes from now on are attributed to it.
    #[inline]
    pub(in crate::engine) fn begin_request(&mut self, session: SessionId) {
        self.current = Some(session);
    }

    /// The session's command begins to run: invalidations by its own changes wait for the reply.
    #[inline]
    pub(in crate::engine) fn begin_command(&mut self, session: SessionId) {
        (self.current, self.is_running) = (Some(session), true);
    }

    /// The session's request is over.
    #[inline]
    pub(in crate::engine) fn end_request(&mut self) {
        self.current = None;
    }
}
