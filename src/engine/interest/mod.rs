//! Who wants to hear of what: everything by which one session's doing concerns another session.
//!
//! It knows sessions and keys by name only and touches no data: the engine tells it what happened, and it tells the
//! engine whom that concerns.

/// Who wants to hear of what.
#[derive(Debug, Default)]
pub struct Interest {}
