//! The command of `dunlin run` as a process: how it starts, the signals that are passed on to it, and how it ended.
//!
//! Signals are caught and not ignored, since a command inherits what is ignored. Those of a terminal (Ctrl-C) reach the
//! command from there, as it is in the same process group, and are passed on only if no terminal can have sent them.
//! The others are always passed on. The second SIGINT or SIGTERM within two seconds kills the command.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus};

use super::say;
use super::server::DescriptorLimit;
use super::variables::Variable;
use crate::server::os_host::reason;

/// The exit code when a command is not found, as that of a shell.
const NOT_FOUND: u8 = 127;
/// The exit code when a command cannot be executed, as that of a shell.
const NOT_EXECUTABLE: u8 = 126;

/// Runs a command to its end; returns the exit code.
pub(super) fn run(words: &[OsString], variables: &[Variable], descriptors: &DescriptorLimit) -> u8 {
    let [program, arguments @ ..] = words else { return NOT_FOUND };
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let ended = system::Signals::catch().and_then(|signals| {
        let child = descriptors.start(|| command.spawn())?;
        signals.wait_for(child)
    });
    match ended {
        Ok(status) => code_of(status),
        Err(error) => {
            say(&format!("{}: {}", program.to_string_lossy(), reason(&error)));
            if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
        }
    }
}

/// The exit code of a process: its own, or 128 and the number of the signal that has ended it.
fn code_of(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal).unwrap_or(i32::from(NOT_EXECUTABLE));
    // Other systems have longer codes; what is not success must not become it.
    u8::try_from(code).unwrap_or(1)
}

#[cfg(unix)]
mod system {
    //! Signals of Unix.

    use std::fs::{self, File};
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::{Pid, getpgrp, tcgetpgrp};
    use tokio::runtime::{Builder, Runtime};
    use tokio::signal::unix::{self, SignalKind, signal};

    use super::*;
    use crate::server::clock::monotonic_us;

    /// The time within which a second SIGINT or SIGTERM kills the command.
    const INSISTENCE: Duration = Duration::from_secs(2);

    /// The time within which a second one is still the first: `timeout` sends it to this process, and then to its
    /// group.
    const ECHO: Duration = Duration::from_millis(200);

    /// The signals that are caught.
    const CAUGHT: [Signal; 8] = [
        Signal::SIGCHLD,
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGWINCH,
    ];

    /// The signals that a terminal sends to all of its foreground group.
    const OF_TERMINAL: [Signal; 3] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGWINCH];

    /// The signals that have come, from the moment of catching on.
    pub(super) struct Signals {
        runtime: Runtime,
        streams: Vec<(Signal, unix::Signal)>,
    }

    impl Signals {
        /// Catches the signals, apart from those that the caller has ignored: so does the command, then (`nohup`).
        ///
        /// # Errors
        /// When the system has no descriptor for it.
        pub(super) fn catch() -> io::Result<Signals> {
            let runtime = Builder::new_current_thread().enable_io().build()?;
            let streams = {
                let _entered = runtime.enter();
                let ignored = ignored();
                let is_caught =
                    |&&signal: &&Signal| signal == Signal::SIGCHLD || ignored & (1 << (signal as i32 - 1)) == 0;
                let stream = |caught: &Signal| Ok((*caught, signal(SignalKind::from_raw(*caught as i32))?));
                CAUGHT.iter().filter(is_caught).map(stream).collect::<io::Result<_>>()?
            };
            Ok(Signals { runtime, streams })
        }

        /// Waits until a process has ended, and passes signals on to it meanwhile.
        ///
        /// # Errors
        /// When the process cannot be waited for.
        pub(super) fn wait_for(mut self, mut child: Child) -> io::Result<ExitStatus> {
            let mut asked_us = None;
            loop {
                match self.next() {
                    Signal::SIGCHLD => {
                        reap_others(&child);
                        if let Some(status) = child.try_wait()? {
                            return Ok(status);
                        }
                    }
                    caught @ (Signal::SIGINT | Signal::SIGTERM) => {
                        let now_us = monotonic_us();
                        let since = asked_us.map(|asked_us| Duration::from_micros(now_us - asked_us));
                        if since.is_some_and(|since| since < ECHO) {
                            continue;
                        }
                        asked_us = Some(now_us);
                        let insists = since.is_some_and(|since| since < INSISTENCE);
                        pass_on(if insists { Signal::SIGKILL } else { caught }, &child);
                    }
                    caught => pass_on(caught, &child),
                }
            }
        }

        /// Waits for the next signal.
        fn next(&mut self) -> Signal {
            let streams = &mut self.streams;
            self.runtime.block_on(poll_fn(|context| {
                let came = |(caught, stream): &mut (Signal, unix::Signal)| {
                    stream.poll_recv(context).is_ready().then_some(*caught)
                };
                streams.iter_mut().find_map(came).map_or(Poll::Pending, Poll::Ready)
            }))
        }
    }

    /// The signals that this process ignores, one bit for each; none where the system does not tell.
    fn ignored() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    }

    fn pass_on(signal: Signal, child: &Child) {
        if OF_TERMINAL.contains(&signal) && is_in_foreground() {
            return;
        }
        // The process was not waited for yet, so its id is still its own, even if it has ended.
        let _ = i32::try_from(child.id()).map(|id| kill(Pid::from_raw(id), signal));
    }

    /// Whether this process is in the foreground group of a terminal, whose keys send signals to all of the group.
    fn is_in_foreground() -> bool {
        File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(&terminal) == Ok(getpgrp()))
    }

    /// Waits for other processes that have ended, if this is the first process of a container: those that have lost
    /// their parent are its children there, and nobody else waits for them.
    #[cfg(target_os = "linux")]
    fn reap_others(child: &Child) {
        use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
        if std::process::id() != 1 {
            return;
        }
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        // The command itself stays for its own wait, which follows.
        while let Some(ended) = waitid(Id::All, peek).ok().and_then(|status| status.pid())
            && u32::try_from(ended.as_raw()) != Ok(child.id())
        {
            // How they have ended concerns nobody.
            let _ = waitpid(ended, Some(WaitPidFlag::WNOHANG));
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn reap_others(_: &Child) {}
}

#[cfg(not(unix))]
mod system {
    //! Other systems: Ctrl-C reaches every process of the console, so it is only kept from ending this one.

    use tokio::runtime::Builder;

    use super::*;

    /// The signals that are caught.
    pub(super) struct Signals;

    impl Signals {
        pub(super) fn catch() -> io::Result<Signals> {
            let runtime = Builder::new_current_thread().enable_io().build()?;
            // Once caught, Ctrl-C no longer ends the process, whether somebody waits for it or not.
            runtime.block_on(async { drop(tokio::signal::windows::ctrl_c()) });
            Ok(Signals)
        }

        pub(super) fn wait_for(self, mut child: Child) -> io::Result<ExitStatus> {
            child.wait()
        }
    }
}
