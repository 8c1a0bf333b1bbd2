//! The system's log (`syslog-enabled`): each log line is also sent there, as one message.
//!
//! A message is a datagram to the socket of the system's log daemon: `<priority>name[process]: text`. The priority is
//! the facility and the level as one number. The daemon adds the time, so none is sent. A message that cannot be
//! delivered is lost, and the next one is tried again: a log must not make its program wait.
//!
//! Source: RFC 3164, section 4; which level is which, Redis 8.0.6.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process;

use tracing::Level;

use crate::engine::Process;

/// The socket of the system's log daemon.
const SOCKET: &str = if cfg!(target_vendor = "apple") { "/var/run/syslog" } else { "/dev/log" };

/// Sends messages to the system's log.
#[derive(Debug)]
pub(crate) struct SystemLog {
    socket: UnixDatagram,
    path: PathBuf,
    facility: u8,
    name: String,
}

impl SystemLog {
    /// Opens a socket for messages with the facility and the name of the settings.
    ///
    /// # Errors
    /// When the system has no more sockets.
    pub(crate) fn open(process: &Process) -> io::Result<SystemLog> {
        SystemLog::at(Path::new(SOCKET), process)
    }

    fn at(path: &Path, process: &Process) -> io::Result<SystemLog> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let (facility, name) = (number_of(process.log_facility), process.log_name.clone());
        Ok(SystemLog { socket, path: path.to_owned(), facility, name })
    }

    /// Sends a text as one message of that level.
    pub(crate) fn send(&self, level: Level, text: &str) {
        let SystemLog { socket, path, facility, name } = self;
        let message = format!("<{}>{name}[{}]: {text}", facility * 8 + severity(level), process::id());
        // A failure cannot be logged: this is the log.
        let _ = socket.send_to(message.as_bytes(), path);
    }
}

/// The number of a facility: 1 is `user`, and 16 and higher are `local0` and the following ones.
fn number_of(facility: &str) -> u8 {
    facility.strip_prefix("local").and_then(|number| number.parse::<u8>().ok()).map_or(1, |number| 16 + number)
}

/// The system's number for a level.
fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR | Level::WARN => 4,
        Level::INFO => 5,
        Level::DEBUG => 6,
        Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::LogLevel;
    use crate::server::program::log::{Log, Output};

    #[test]
    fn a_line_is_a_message_with_its_priority_and_the_name_of_the_program() {
        let path = std::env::temp_dir().join(format!("dunlin-{}-system-log", process::id()));
        let listener = UnixDatagram::bind(&path).expect("the folder takes sockets");
        let received = |facility, log_name: &str, write: fn()| {
            let process = Process { log_facility: facility, log_name: log_name.to_owned(), ..Process::default() };
            let log = SystemLog::at(&path, &process).expect("there is a socket");
            let log = Log::new(LogLevel::Debug, vec![Output::System(log)]);
            tracing::subscriber::with_default(log, write);
            let mut message = [0; 256];
            let length = listener.recv(&mut message).expect("a message was sent");
            String::from_utf8_lossy(&message[..length]).into_owned()
        };
        let id = process::id();
        assert_eq!(received("local0", "redis", || tracing::info!("ready {}", 1)), format!("<133>redis[{id}]: ready 1"));
        assert_eq!(received("user", "mine", || tracing::warn!("a b")), format!("<12>mine[{id}]: a b"));
        assert_eq!(received("local7", "", || tracing::debug!("x")), format!("<190>[{id}]: x"));
        std::fs::remove_file(path).expect("it is there");
    }
}
