//! The server around the engine, and the only impure module: sockets, files, threads, the system's clock and
//! randomness, and the engine's lock.
//!
//! It contains no logic of commands. Bytes arrive on a [`stream`] and reach the engine as requests ([`connection`]);
//! [`shared`] carries out the engine's effects; the [`timer`] runs what falls due. [`run`] puts the parts together.
//! `program` is the whole `dunlin` program, and only compiled with the feature of that name, as is `page`; `testkit`
//! starts servers inside other programs.

mod aof_files;
mod aof_rewrite;
pub(crate) mod aof_start;
mod aof_threads;
mod aof_waiters;
mod aof_writer;
mod atomic_file;
mod background_saver;
pub(crate) mod clock;
mod config_file;
mod connection;
mod contain;
mod data_reader;
mod deliveries;
mod dump_file;
mod fairness;
pub(crate) mod faulty_storage;
mod first_of;
pub(crate) mod host_call;
mod lazy_free;
mod listen;
mod listeners;
pub(crate) mod loading;
mod log;
mod log_limit;
mod loop_scaler;
mod loops;
mod migrate_client;
mod moved_clock;
mod near_timer;
mod nodes;
mod oom_score;
mod os_host;
pub(crate) mod os_storage;
#[cfg(feature = "page")]
pub(crate) mod page;
mod processors;
#[cfg(feature = "program")]
mod program;
mod progress;
pub(crate) mod run;
pub(crate) mod shared;
mod stall;
mod stream;
mod strict_worlds;
mod timer;
pub(crate) mod url;
pub(crate) mod wake_flags;
mod wakeup;
mod worker;
pub(crate) mod world;
pub(crate) mod worlds;
mod write_queue;

#[cfg(feature = "program")]
pub use program::program;
