//! The server from the outside: sockets, limits, time and the embedding interface. Transcripts test the replies of
//! commands; these tests are about everything between a client's bytes and the engine.

mod append_only;
#[cfg(unix)]
mod check_tools;
mod checked_files;
#[cfg(target_os = "linux")]
mod descriptors;
mod disk_faults;
mod effects;
mod embedding;
mod files;
mod files_to_load;
mod holes;
mod killed_writer;
mod kills;
mod launching;
mod limits;
mod listeners;
mod migrate;
mod old_files;
mod other_versions;
mod page;
mod page_commands;
mod page_stream;
mod persistence;
#[cfg(target_os = "linux")]
mod process;
mod program;
mod queues;
mod requests;
#[cfg(unix)]
mod run_command;
mod shared_dump;
mod slow_disk;
mod slow_scripts;
mod subscribers;
#[path = "../support/mod.rs"]
mod support;
mod time;
#[cfg(target_os = "linux")]
mod unauthenticated;
#[cfg(unix)]
mod unix_socket;
mod users;
mod wire;

use support::{process as oracle, timeout};
