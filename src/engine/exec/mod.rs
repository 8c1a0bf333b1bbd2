//! What happens: the path of a command through the gates and stages, and all that reaches over several concerns.
//!
//! A module here has functions that take the engine. The path begins in [`dispatch`] or [`fast_path`], asks the
//! [`gates`], runs the [`stages`] around the command, and calls its handler with a [`Ctx`]. What happens without a
//! request is listed in [`due`].

pub(in crate::engine) mod access;
pub mod blocking;
mod changes;
pub mod client_line;
mod ctx;
pub mod delivery;
mod dispatch;
mod due;
pub mod eviction;
pub(in crate::engine) mod fast_path;
mod fields;
pub(in crate::engine) mod gates;
pub mod host_call;
pub mod kit;
pub mod measure;
pub mod monitor;
pub mod operations;
mod prefetch;
pub mod publish;
pub mod rights;
pub mod scripts;
pub mod snapshots;
mod stages;
mod template;
pub mod tracking;

pub use ctx::{
    Changed, Ctx, Deadline, Lookup, MetadataChange, Missing, Peek, Stored, expire_fields, flush_database,
    may_read_all_keys, note_expired_fields, push_reply, reload_databases, swap_databases, unblock_client, unwatch_all,
    watch_key,
};
pub use dispatch::Flow;
pub use due::DueState;
