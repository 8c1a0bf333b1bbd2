//! How a command that changed data is written into the log of changes.

/// The rule by which a command goes into the log of changes ([`crate::engine::Propagation`]). The default fits reading
/// commands, too: they change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagated {
    /// As the client sent it, if it counted a change; or as the words that its handler queued in place of it.
    Verbatim,
    /// As the client sent it, though it may have changed nothing (FLUSHALL).
    Always,
    /// As the words that its handler queues, if any, and never as it was sent (XREADGROUP).
    OwnWords,
    /// Never: it changes no data itself. The commands that it runs go out by their own rules (EXEC, EVAL).
    Never,
    /// Never, and the expired keys that it meets are deleted one by one, in no transaction: its client named none of
    /// them (SCAN, RANDOMKEY).
    Loose,
}
