//! The server around the engine, and the only impure module: sockets, files, threads, the system's clock and
//! randomness, and the engine's lock.
//!
//! It contains no logic of commands. Bytes arrive on a [`stream`] and reach the engine as requests ([`connection`]);
//! [`shared`] carries out the engine's effects; the [`timer`] runs what falls due. [`run`] puts the parts together,
//! [`program`] is the whole `dunlin` program. `testkit` starts servers inside other programs.

mod background;
pub(crate) mod clock;
mod config_file;
mod connection;
mod contain;
mod deliveries;
mod fairness;
mod lazy_free;
mod listen;
mod listeners;
mod log;
mod log_limit;
mod log_queue;
mod loop_scaler;
mod loops;
mod migrate_client;
mod oom_score;
mod os_host;
mod processors;
mod program;
pub(crate) mod run;
pub(crate) mod shared;
mod signals;
mod stream;
mod supervision;
#[cfg(unix)]
mod system_log;
mod timer;
pub(crate) mod wake_flags;
mod wakeup;
pub(crate) mod worlds;
mod write_queue;

pub use program::program;
