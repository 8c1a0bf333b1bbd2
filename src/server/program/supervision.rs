//! The process supervisor (`supervised`), systemd or upstart: it is notified that the server starts, is ready, or ends.
//!
//! systemd names a socket in the environment and takes datagrams there; upstart names its job there and waits for the
//! process to stop itself, once. If neither is found, nothing is sent, and INFO reports that there is none.
//!
//! Source: the messages of Redis 8.0.6; systemd's sd_notify(3).

use std::env;
use std::ffi::OsStr;
use std::io;

use tracing::{info, warn};

use crate::engine::Supervisor;

/// The environment variable with the name of upstart's job.
const UPSTART: &str = "UPSTART_JOB";
/// The environment variable with the name of systemd's socket.
const SYSTEMD: &str = "NOTIFY_SOCKET";

/// The supervisor that `wanted` means; `auto` means the one that is named in the environment.
fn found(wanted: Supervisor) -> Supervisor {
    let is_there = |name: &str| env::var_os(name).is_some();
    match wanted {
        Supervisor::Auto if is_there(UPSTART) => Supervisor::Upstart,
        Supervisor::Auto if is_there(SYSTEMD) => Supervisor::Systemd,
        Supervisor::Auto => Supervisor::Nobody,
        wanted => wanted,
    }
}

/// Whether the wanted supervisor is named in the environment; the process then stays in the foreground.
pub(crate) fn is_wanted(wanted: Supervisor) -> bool {
    let name = match found(wanted) {
        Supervisor::Upstart => UPSTART,
        Supervisor::Systemd => SYSTEMD,
        Supervisor::Nobody | Supervisor::Auto => return false,
    };
    env::var_os(name).is_some()
}

/// Notifies the wanted supervisor that the server starts. Returns the one that supervises this process.
pub(crate) fn begin(wanted: Supervisor) -> Supervisor {
    match found(wanted) {
        Supervisor::Upstart if env::var_os(UPSTART).is_none() => {
            warn!("upstart supervision requested, but {UPSTART} not found");
            Supervisor::Nobody
        }
        Supervisor::Upstart => {
            info!("supervised by upstart, will stop to signal readiness");
            stop();
            Supervisor::Upstart
        }
        Supervisor::Systemd => {
            warn!("supervised by systemd: TimeoutStartSec and TimeoutStopSec of its unit must leave enough time");
            if notify("STATUS=dunlin is starting...\n") { Supervisor::Systemd } else { Supervisor::Nobody }
        }
        Supervisor::Nobody | Supervisor::Auto => Supervisor::Nobody,
    }
}

/// Notifies the supervisor of this process, if it is systemd, that clients can connect.
pub(crate) fn ready(supervisor: Supervisor) {
    if supervisor == Supervisor::Systemd {
        notify("STATUS=Ready to accept connections\nREADY=1\n");
    }
}

/// Notifies the supervisor of this process, if it is systemd, that the server ends.
pub(crate) fn ending(supervisor: Supervisor) {
    if supervisor == Supervisor::Systemd {
        notify("STOPPING=1\n");
    }
}

/// Stops this process until it is continued (SIGCONT), as upstart expects.
fn stop() {
    #[cfg(unix)]
    if let Err(error) = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP) {
        warn!("cannot stop the process for upstart: {error}");
    }
}

/// Sends systemd a message. Returns false, and logs why, if it cannot be sent.
fn notify(message: &str) -> bool {
    let Some(socket) = env::var_os(SYSTEMD) else {
        warn!("systemd supervision error: {SYSTEMD} not found!");
        return false;
    };
    send(&socket, message.as_bytes()).map_err(|error| warn!("systemd supervision error: {error}")).is_ok()
}

#[cfg(unix)]
fn send(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    #[cfg(target_os = "linux")]
    let address = match socket.as_encoded_bytes() {
        // An abstract socket name, which is not a path.
        [b'@', name @ ..] => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    #[cfg(not(target_os = "linux"))]
    let address = SocketAddr::from_pathname(socket)?;
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(drop)
}

#[cfg(not(unix))]
fn send(_: &OsStr, _: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
