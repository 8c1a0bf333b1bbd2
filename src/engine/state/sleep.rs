//! The sleep of a node of a cluster (DEBUG SLEEP): nobody is answered until it ends, and what others send waits.

use super::SessionId;
use crate::engine::spec::Now;

/// A sleep that has not ended.
#[derive(Debug)]
pub struct Sleep {
    /// When it ends.
    pub until: Now,
    /// The session whose request has begun it.
    pub(in crate::engine) sleeper: SessionId,
    /// The reply to that request, once it has run.
    pub(in crate::engine) reply: Option<Vec<u8>>,
}
