//! The only impure place: sockets, files, threads, the system's clock and randomness, and the lock around the engine.
//!
//! It has no command's logic. Bytes come in over a [`stream`] and go to the engine as requests ([`connection`]);
//! [`shared`] carries out the engine's effects; the [`timer`] runs what falls due. [`run`] puts the parts together,
//! [`program`] is the whole of the `dunlin` program. `testkit` starts servers inside of other programs.

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
