//! The server in the background (`daemonize`), and the file that names its process (`pidfile`).
//!
//! Redis copies its process; safe code cannot. The program starts itself once more instead, with the same arguments, in
//! the same directory, and ends. A mark in its environment tells the second process that it is the server; it leaves
//! the terminal's session behind, and its standard streams lead nowhere. So a fault in the configuration is told on the
//! terminal, and what fails later, such as a port that is taken, only in the log, both as in Redis.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{self, Command, Stdio};

use tracing::{info, warn};

use super::os_host::reason;

/// What stands in the environment of the process in the background.
const MARK: &str = "DUNLIN_IN_BACKGROUND";

/// Where the process is named when it is in the background and nobody said where, as in Redis.
pub(crate) const USUAL_ID_FILE: &str = "/var/run/redis.pid";

/// Whether this is the process in the background.
pub(crate) fn is_here() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts the process in the background, in the directory that this one was started in, with what it read from its
/// standard input.
///
/// # Errors
/// When the system does not start it.
pub(crate) fn start(directory: &Path, input: &[u8]) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    command.args(env::args_os().skip(1)).env(MARK, "yes").current_dir(directory);
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.spawn()?;
    server.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input))
}

/// Leaves the session of the terminal, so that its end is not ours.
pub(crate) fn leave_terminal() {
    #[cfg(unix)]
    if let Err(error) = nix::unistd::setsid() {
        warn!("the session of the terminal cannot be left: {error}");
    }
}

/// The file that names the process, for as long as it serves.
#[derive(Debug)]
pub(crate) struct IdFile(String);

impl IdFile {
    /// Writes it, if there is a path. When that fails, the log says so, and the server does without.
    pub(crate) fn write(path: &str) -> Option<IdFile> {
        if path.is_empty() {
            return None;
        }
        match fs::write(path, format!("{}\n", process::id())) {
            Ok(()) => Some(IdFile(path.to_owned())),
            Err(error) => {
                warn!("Failed to write PID file: {}", reason(&error));
                None
            }
        }
    }
}

impl Drop for IdFile {
    fn drop(&mut self) {
        info!("Removing the pid file.");
        // Somebody may have removed it before.
        let _ = fs::remove_file(&self.0);
    }
}
