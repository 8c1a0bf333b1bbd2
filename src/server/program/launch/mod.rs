//! Services for programs that start a server for themselves: it announces its addresses (`announce`,
//! `port-file`), and it ends with them (`end-with`, `idle-end`).
//!
//! A launcher cannot see when a server is ready, cannot keep a port free for it, and may be killed. So the server picks
//! the port (`free-port`), the first line of its output has all that a launcher needs, whether it has started or not,
//! and a pipe or a process that ends is what ends it. What a launcher may rely on is in
//! docs/configuration.md.

mod addresses;
mod announcement;
mod ending;
mod port_file;

pub(super) use addresses::Addresses;
pub(super) use announcement::Announcer;
pub(super) use ending::begin as end_with_launcher;
pub(super) use port_file::PortFile;

use crate::config::Sources;
use crate::engine::Settings;

/// Whether the server listens on TCP.
pub(super) fn opens_tcp(settings: &Settings) -> bool {
    // Without a Unix socket, port 0 means a port that the system picks.
    settings.port != 0 || settings.unix_socket.is_empty() || settings.process.launch.uses_free_port
}

/// Checks that the settings for launchers fit each other and the sources that they came from.
///
/// # Errors
/// A sentence that says which do not.
pub(super) fn check(settings: &Settings, sources: &Sources) -> Result<(), &'static str> {
    let launch = &settings.process.launch;
    let has_stdin = launch.end_with.stdin;
    match () {
        () if has_stdin && sources.stdin => {
            Err("'end-with stdin' and '-' cannot be used together: both read the standard input")
        }
        () if has_stdin && settings.process.in_background => {
            Err("'end-with stdin' and 'daemonize yes' cannot be used together: a daemon has no standard input")
        }
        () if launch.is_announced && settings.process.in_background => {
            Err("'announce yes' and 'daemonize yes' cannot be used together: a daemon has no standard output")
        }
        () if !launch.port_file.is_empty() && !opens_tcp(settings) => {
            Err("'port-file' needs a port: with 'unixsocket' and 'port 0' add 'free-port yes'")
        }
        () => Ok(()),
    }
}
