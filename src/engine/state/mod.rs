//! The state of a server: one struct for each concern, with its own methods.
//!
//! Nothing here runs a command: a struct knows itself and what a command is (`spec`), and never the whole engine, which
//! is their composition ([`crate::engine::Engine`]). An operation on several of them is in `exec`.

mod acl;
mod aof;
mod capacity;
mod checkpoint;
mod coarse_histogram;
pub(in crate::engine) mod databases;
mod effects;
pub(in crate::engine) mod error_counts;
pub mod eviction;
pub(in crate::engine) mod fast_path;
mod file_settings;
pub mod host;
mod host_call;
mod in_flight;
mod instant_metrics;
pub mod kit;
mod latency_histogram;
mod latency_monitor;
mod lazy;
pub mod lru;
pub mod measures;
pub mod observers;
pub(in crate::engine) mod output_limits;
mod pause;
mod peers;
mod persistence;
mod process;
pub mod propagation;
pub(in crate::engine) mod push_queue;
mod rdb_request;
mod remote_request;
pub mod replication;
pub mod scripts;
mod session;
mod settings;
mod sleep;
pub(in crate::engine) mod slow_log;
pub(in crate::engine) mod snapshots;
mod stats;
mod switches;
pub(in crate::engine) mod template;
pub(in crate::engine) mod timing;
pub mod tracking;
mod transaction;
mod unsynced_keys;

pub use crate::aof::decisions::SyncPolicy;
pub use acl::Acl;
pub use aof::{Aof, AofProgress, AofState, Rewrite, SyncWait};
pub use capacity::Capacity;
pub use checkpoint::Checkpoint;
pub use coarse_histogram::CoarseHistogram;
pub use databases::Databases;
pub use effects::{Advance, BackgroundSave, ClockOrder, Effect, Effects};
pub use error_counts::ErrorCounts;
pub use eviction::{ClientsLimit, Policy, Pressure};
pub use file_settings::{FileSettings, SavePoint};
pub use host::Host;
pub use host_call::{
    DataQuery, FIRST_WORLD, FaultOrder, HostCall, HostReply, JournalOrder, LinkOrder, NodeFigures, NodeOrder,
    PendingHostCall, SessionTransfer, SlotMigrationStep, SnapshotOrder, WorldFigures, WorldName,
};
pub use in_flight::{InFlight, NodeMessage};
pub use instant_metrics::{Counts, InstantMetrics};
pub use latency_histogram::LatencyHistogram;
pub use latency_monitor::{LatencyMonitor, MAX_SAMPLES, Sample, Series};
pub use lazy::Lazy;
pub use observers::{Block, LateReply, Observers, Presence, Subscribed, Subscriptions, Topic, Wait, Waiting, Watches};
pub use output_limits::{OutputLimit, OutputLimits};
pub use pause::{Pause, PauseScope};
pub use peers::Peers;
pub use persistence::{LoadCounts, Loading, Persistence, SaveWait, Saving};
#[cfg(feature = "page")]
pub use process::Page;
#[cfg(feature = "program")]
pub use process::{EndWith, Launch};
pub use process::{OomScore, Process, Supervisor};
pub use propagation::Propagation;
pub use push_queue::PushQueue;
pub use rdb_request::{RdbParts, RdbRequest};
pub use remote_request::{RemoteFault, RemoteRequest, RemoteResult};
pub use replication::ReplicationSettings;
pub use scripts::Scripts;
pub use session::{Asking, Buffers, Origin, ReplyMode, ReplyRoom, Session, SessionId, Sessions, Transport};
pub use settings::{LazyDeletion, LfuCounter, LogLevel, Permission, Settings};
pub use sleep::Sleep;
pub use slow_log::{SlowCommand, SlowLog};
pub use stats::{CommandStats, Stats, Transfers};
pub use switches::Switches;
pub use template::Template;
pub use timing::Timing;
pub use transaction::Transaction;
