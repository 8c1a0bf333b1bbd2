//! Execution: the path of a command through the gates and stages, and every operation on several parts of the state.
//!
//! A module here has functions that take the engine. The path begins in [`dispatch`] or [`fast_path`], asks the
//! [`gates`], runs the [`stages`] around the command, and calls its handler with a [`Ctx`]. Everything that
//! happens without a request is listed in [`due`].

mod access;
pub mod acl;
pub mod agreement;
pub mod aof;
pub mod aof_load;
pub mod blocking;
mod changes;
pub mod client_line;
pub mod cluster;
pub mod cluster_compatibility;
mod ctx;
pub mod delivery;
mod dispatch;
pub mod due;
pub mod eviction;
pub mod failover;
mod fast_path;
mod fields;
mod gates;
pub mod host_call;
pub mod kit;
pub mod lag;
mod link_sessions;
pub mod loading;
pub mod measures;
pub mod messages;
pub mod monitor;
pub mod operations;
pub mod persistence;
mod prefetch;
mod propagation;
pub mod publish;
pub mod replay;
pub mod replication;
pub mod scripts;
pub mod sleep;
pub mod snapshots;
mod stages;
mod template;
pub mod timing;
pub mod tracking;

pub use ctx::{Changed, Ctx, Deadline, Lookup, MetadataChange, Missing, Peek, Stored};
pub use dispatch::Flow;
pub use due::DueState;
