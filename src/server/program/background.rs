//! Running in the background (`daemonize`), and the file with the process id (`pidfile`).
//!
//! Redis forks; safe code cannot. Instead, the program starts itself once more, with the same arguments and directory,
//! and ends. The second process knows by an environment variable that it is the server; it leaves the terminal's
//! session, and its standard streams are /dev/null. So a fault in the configuration is reported on the terminal, and a
//! later one, such as a port in use, only in the log, both as in Redis.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{self, Command, Stdio};

use tracing::{info, warn};

use crate::server::os_host::reason;

/// The environment variable that is set for the background process.
const MARK: &str = "DUNLIN_IN_BACKGROUND";

/// The `pidfile` of a background process for which none is configured, as in Redis.
pub(crate) const DEFAULT_ID_FILE: &str = "/var/run/redis.pid";

/// Whether this is the background process.
pub(crate) fn is_here() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts the background process in `directory`, where this process was started, and passes it `input`, which this
/// process has read from its standard input.
///
/// # Errors
/// When the process cannot be started.
pub(crate) fn start(directory: &Path, input: &[u8]) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    command.args(env::args_os().skip(1)).env(MARK, "yes").current_dir(directory);
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.spawn()?;
    server.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input))
}

/// Leaves the terminal's session, so that the end of the terminal does not end the server.
pub(crate) fn leave_terminal() {
    #[cfg(unix)]
    if let Err(error) = nix::unistd::setsid() {
        warn!("cannot leave the terminal's session: {error}");
    }
}

/// The file with the process id; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct IdFile(String);

impl IdFile {
    /// Writes the file, unless `path` is empty. A failure is logged, and the server runs without the file.
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
        // It may have been removed already.
        let _ = fs::remove_file(&self.0);
    }
}
