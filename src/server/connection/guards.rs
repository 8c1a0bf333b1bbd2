//! Limits on what a client may send, and leave unread, before it is closed.
//!
//! An unauthenticated client may use little, and all unauthenticated clients together get little query buffer, so that
//! they cannot fill memory. For the other clients this module applies `client-query-buffer-limit`; the engine limits
//! their unread replies.

use std::mem;

use tracing::warn;

use super::{Connection, Ended};
use crate::engine::Engine;
use crate::server::clock::monotonic_ns;

/// The longest unfinished request, in bytes, of a client that has not logged in. For other clients, up to this length
/// the settings need not be read.
const UNAUTHENTICATED_QUERY_BYTES: usize = 1 << 20;
/// The memory that the query buffers of all clients that have not logged in may hold together, in bytes.
const ALL_UNAUTHENTICATED_QUERY_BYTES: usize = 24 << 20;
/// The most unsent replies of a client that has not logged in, in bytes.
const UNAUTHENTICATED_OUTPUT_BYTES: usize = 1024;
/// The most replies that such a client gets at once, in bytes: what fits Redis's buffer.
pub(super) const UNAUTHENTICATED_REPLY_BYTES: usize = 16 << 10;

impl Connection {
    /// Closes a client that has not logged in and does not read its replies, so that such clients cannot fill memory.
    pub(super) fn guard_output(&self) -> Result<(), Ended> {
        if self.write_queue.is_empty() {
            return Ok(());
        }
        let mut engine = self.shared.engine();
        self.report(&mut engine);
        self.account_memory(&mut engine);
        if self.write_queue.len() > UNAUTHENTICATED_OUTPUT_BYTES && !self.is_authenticated(&engine) {
            return Err(self.close_unauthenticated(&mut engine));
        }
        Ok(())
    }

    /// Counts and logs the end of a client that has not logged in and has too many unread replies.
    pub(super) fn close_unauthenticated(&self, engine: &mut Engine) -> Ended {
        engine.stats.output_buffer_disconnections += 1;
        let number = self.session.number;
        self.log_unauthenticated(&format!(
            "client {number} closed: it has not logged in and does not read its replies"
        ));
        Ended
    }

    /// The number of bytes, of `length` that have not run, that are not in complete words of an unfinished request.
    pub(super) fn unparsed_bytes(&self, length: usize) -> usize {
        length.saturating_sub(self.parser.partial_request().0)
    }

    /// Closes a client that has sent too many unparsed bytes (`client-query-buffer-limit`), before any of them run.
    /// Complete words of an unfinished request do not count, as in Redis.
    pub(super) fn guard_query(&self) -> Result<(), Ended> {
        let unparsed = self.unparsed_bytes(self.unread.len());
        if unparsed <= UNAUTHENTICATED_QUERY_BYTES {
            return Ok(());
        }
        let mut engine = self.shared.engine();
        if unparsed > engine.settings.query_buffer_bytes || !self.is_authenticated(&engine) {
            self.end_query(&mut engine, self.unread.unread());
            return Err(Ended);
        }
        Ok(())
    }

    /// Closes a client that has not logged in when the query buffers of all such clients take too much. Their number is
    /// not limited, so a limit for each does not bound them. A login that arrives in one piece needs no query buffer.
    pub(super) fn guard_unauthenticated(&mut self) -> Result<(), Ended> {
        let held = if self.limits.authenticated { 0 } else { self.unread.capacity() };
        let before = mem::replace(&mut self.unauthenticated_bytes, held);
        if held == before {
            return Ok(());
        }
        let all = self.assignment.loops().count_unauthenticated_bytes(before, held);
        if held > before && all > ALL_UNAUTHENTICATED_QUERY_BYTES {
            self.end_query(&mut self.shared.engine(), self.unread.unread());
            return Err(Ended);
        }
        Ok(())
    }

    /// Counts and logs the end of a client whose query buffer is too large.
    pub(super) fn end_query(&self, engine: &mut Engine, unread: &[u8]) {
        // Not within the macro, which evaluates its arguments only when the level is logged.
        let line = engine.end_query(self.session, unread);
        if self.is_authenticated(engine) {
            warn!("{line}");
        } else {
            self.log_unauthenticated(&line);
        }
    }

    /// Logs a line about a client that has not logged in, at most one each second: such clients must not fill a disk.
    fn log_unauthenticated(&self, line: &str) {
        match self.assignment.loops().unauthenticated_log_limit().next(monotonic_ns()) {
            Some(0) => warn!("{line}"),
            Some(dropped) => warn!("{line} ({dropped} lines about such clients were dropped before)"),
            None => {}
        }
    }

    /// Whether the client has logged in, or need not.
    pub(super) fn is_authenticated(&self, engine: &Engine) -> bool {
        let has_logged_in = engine.sessions.get(self.session).is_some_and(|session| session.authenticated);
        has_logged_in || !engine.acl.users.must_log_in()
    }
}
