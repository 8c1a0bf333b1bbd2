//! The only impure place: sockets, files, threads, the system's clock and chance, and the lock around the engine.
//!
//! It knows no command. Bytes come in over a [`stream`] and go to the engine as requests ([`connection`]); what the
//! engine wishes for is done in [`shared`]; time is kept by the [`keeper`]. [`run`] puts the parts together,
//! [`program`] is the whole of the `dunlin` program. Servers inside of other programs are started by `testkit`.

mod alarm;
mod background;
mod balance;
pub(crate) mod clock;
mod config_file;
mod connection;
mod contain;
mod courier;
mod deliveries;
mod doors;
mod fairness;
mod keeper;
mod listen;
mod log;
mod log_limit;
mod log_queue;
mod loops;
mod machine;
pub(crate) mod mailbox;
mod oom_score;
mod outbox;
mod processors;
mod program;
mod reaper;
pub(crate) mod run;
pub(crate) mod shared;
mod signals;
mod stream;
mod supervision;
#[cfg(unix)]
mod system_log;
pub(crate) mod worlds;

pub use program::program;
