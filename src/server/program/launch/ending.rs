//! The end of a server with the program that it was started for (`end-with`), or without clients (`idle-end`).
//!
//! A launcher that is killed cannot end its server, so the server watches: the standard input, whose other end only the
//! launcher holds (on every system), or a process (on Linux). When that ends, the server shuts down as on a signal. If
//! a command keeps it busy then, and it has nothing to save, it ends all the same after [`PATIENCE`].
//!
//! Each watch is a thread that waits, and exists only if its parameter is set: one for the standard input, and one for
//! each process. The threads are never joined.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::engine::Launch;
use crate::server::clock::monotonic_us;
use crate::server::contain::contain;
use crate::server::program::polling::sleep_before_next_poll;
use crate::server::program::signals::ShutdownRequests;
use crate::server::shared::Shared;

/// The time that a server without files has to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two looks at the clients, when an idle server is to end.
const LOOK: Duration = Duration::from_secs(1);

/// Starts the watches that the settings ask for. The server is not forced to end if something `is_written_at_end`.
///
/// # Errors
/// When the process to end with does not exist or cannot be watched, or the system has no thread.
pub(in super::super) fn begin(
    launch: &Launch,
    shared: &Arc<Shared>,
    requests: &ShutdownRequests,
    is_written_at_end: bool,
) -> io::Result<()> {
    let end = End { shared: Arc::clone(shared), requests: requests.clone(), is_written_at_end };
    if launch.end_with.stdin {
        let end = end.clone();
        watch("dunlin-stdin", move || {
            wait_for_end_of(&mut io::stdin().lock());
            end.begin("The standard input has ended");
        })?;
    }
    for id in &launch.end_with.processes {
        let process = process::Watched::open(*id)?;
        let end = end.clone();
        watch("dunlin-process", move || {
            process.wait();
            end.begin("The process to end with has ended");
        })?;
    }
    if launch.idle_end_s > 0 {
        let limit = Duration::from_secs(launch.idle_end_s.into());
        watch("dunlin-idle", move || {
            end.wait_until_idle(limit);
            end.begin("There were no clients for the time of idle-end");
        })?;
    }
    Ok(())
}

fn watch(name: &'static str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(move || contain(name, run)).map(drop)
}

/// Reads up to the end. A fault is the end, too: nobody holds the other side of what cannot be read.
fn wait_for_end_of(input: &mut impl Read) {
    let mut ignored = [0; 512];
    loop {
        match input.read(&mut ignored) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            Ok(_) | Err(_) => {}
        }
    }
}

/// The means to end the server.
#[derive(Clone)]
struct End {
    shared: Arc<Shared>,
    requests: ShutdownRequests,
    /// Whether files are written once the server has ended.
    is_written_at_end: bool,
}

impl End {
    /// Asks the server to end, for this reason, and insists after [`PATIENCE`] unless it may have to save its data.
    fn begin(&self, why: &'static str) {
        self.requests.send(why);
        if !self.shared.saves_at_end() && !self.is_written_at_end {
            sleep_before_next_poll(PATIENCE);
            self.requests.send(why);
        }
    }

    /// Waits until there was no client in any world for this long.
    fn wait_until_idle(&self, limit: Duration) {
        let (mut since_us, mut arrivals_before) = (monotonic_us(), 0);
        loop {
            let (clients, arrivals) = self.clients();
            if clients > 0 || arrivals != arrivals_before {
                (since_us, arrivals_before) = (monotonic_us(), arrivals);
            }
            let idle = Duration::from_micros(monotonic_us().saturating_sub(since_us));
            if idle >= limit {
                return;
            }
            sleep_before_next_poll(LOOK.min(limit - idle));
        }
    }

    /// The number of clients in all worlds, and of those that have ever entered one.
    fn clients(&self) -> (usize, u64) {
        let mut counts = (0, 0);
        for world in self.shared.worlds().all() {
            let engine = world.engine();
            counts = (counts.0 + engine.sessions.len(), counts.1 + engine.stats.connections);
        }
        counts
    }
}

#[cfg(target_os = "linux")]
mod process {
    //! A process that is watched by a descriptor, which stays that process's when its id is used again.

    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use crate::server::os_host::reason;

    /// A process to wait for.
    #[derive(Debug)]
    pub(super) struct Watched(OwnedFd);

    impl Watched {
        /// Opens a process.
        ///
        /// # Errors
        /// When there is no such process any more, or the system cannot watch it.
        pub(super) fn open(id: u32) -> io::Result<Watched> {
            let id = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
            let explain = |error: rustix::io::Errno| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("cannot end with process {}: {}", id.as_raw_pid(), reason(&error)))
            };
            pidfd_open(id, PidfdFlags::empty()).map(Watched).map_err(explain)
        }

        /// Waits until the process has ended.
        pub(super) fn wait(&self) {
            let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
            // A signal may interrupt the wait.
            while !matches!(poll(&mut watched, None), Ok(1..)) {}
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod process {
    //! On other systems no process is watched: the standard input serves every launcher there.

    use std::io;

    /// A process to wait for: it has no values.
    #[derive(Debug)]
    pub(super) enum Watched {}

    impl Watched {
        /// Opens nothing.
        ///
        /// # Errors
        /// Always.
        pub(super) fn open(_: u32) -> io::Result<Watched> {
            let why = "on this system 'end-with' takes only 'stdin'";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }

        pub(super) fn wait(&self) {
            match *self {}
        }
    }
}
