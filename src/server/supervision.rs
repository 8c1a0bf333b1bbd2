//! Who watches over the process (`supervised`), and what he is told: that it starts, that it is ready, that it ends.
//!
//! systemd names a socket in the environment and takes datagrams there; upstart names its job there and waits for the
//! process to stop itself, once. Where neither has left his name, nobody is told anything, and INFO says so.
//!
//! Source: what Redis 8.0.6 says; systemd's sd_notify(3).

use std::env;
use std::ffi::OsStr;
use std::io;
use std::sync::OnceLock;

use tracing::{info, warn};

use crate::engine::Supervisor;

/// Where upstart names its job.
const UPSTART: &str = "UPSTART_JOB";
/// Where systemd names its socket.
const SYSTEMD: &str = "NOTIFY_SOCKET";

/// Who watches, once that is known.
static PRESENT: OnceLock<Supervisor> = OnceLock::new();

/// Who watches over this process.
pub(crate) fn present() -> Supervisor {
    PRESENT.get().copied().unwrap_or_default()
}

/// Who would be told, if `wanted` is there.
fn found(wanted: Supervisor) -> Supervisor {
    let is_there = |name: &str| env::var_os(name).is_some();
    match wanted {
        Supervisor::Auto if is_there(UPSTART) => Supervisor::Upstart,
        Supervisor::Auto if is_there(SYSTEMD) => Supervisor::Systemd,
        Supervisor::Auto => Supervisor::Nobody,
        wanted => wanted,
    }
}

/// Whether somebody shall watch who seems to be there: then the process stays in the foreground.
pub(crate) fn is_wanted(wanted: Supervisor) -> bool {
    let name = match found(wanted) {
        Supervisor::Upstart => UPSTART,
        Supervisor::Systemd => SYSTEMD,
        Supervisor::Nobody | Supervisor::Auto => return false,
    };
    env::var_os(name).is_some()
}

/// Tells who shall watch that the server starts. Answers who does.
pub(crate) fn begin(wanted: Supervisor) -> Supervisor {
    let supervisor = match found(wanted) {
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
            if tell("STATUS=dunlin is starting...\n") { Supervisor::Systemd } else { Supervisor::Nobody }
        }
        Supervisor::Nobody | Supervisor::Auto => Supervisor::Nobody,
    };
    *PRESENT.get_or_init(|| supervisor)
}

/// Tells that clients can connect.
pub(crate) fn ready() {
    if present() == Supervisor::Systemd {
        tell("STATUS=Ready to accept connections\nREADY=1\n");
    }
}

/// Tells that the server ends.
pub(crate) fn ending() {
    if present() == Supervisor::Systemd {
        tell("STOPPING=1\n");
    }
}

/// Stops this process until somebody lets it go on.
fn stop() {
    #[cfg(unix)]
    if let Err(error) = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP) {
        warn!("the process cannot stop itself: {error}");
    }
}

/// Sends systemd a message. False when that cannot be.
fn tell(message: &str) -> bool {
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
        // A name that is no path.
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
