//! Sleeping until a moment close ahead.
//!
//! Tokio passes the time until its next timer to each wait for sockets. If the machine is otherwise idle, the kernel
//! programs the processor's timer before each such wait and resets it afterwards; on a virtual machine both steps call
//! the hypervisor and take longer than a short command. With keys that live for a millisecond, that was half of the
//! server's processor time. A `timerfd` is set once for each moment. It is also exact, while tokio's timers count whole
//! milliseconds.
//!
//! Each world has a timer, and a `timerfd` for each would be too many, so only the first world has one. Moments further
//! away are left to tokio, whose timer costs nothing until it is the system's next one; so are all moments on systems
//! other than Linux.
//!
//! Costs: two descriptors of a file from the first use on; three system calls for a moment.

use std::future::pending;
use std::time::Duration;

use tokio::time::timeout;

/// A moment at most this far away is near: a few ticks of the kernel.
#[cfg(target_os = "linux")]
const NEAR: Duration = Duration::from_millis(20);

/// The shortest sleep by a `timerfd`, so that work which stays due cannot make the task spin.
#[cfg(target_os = "linux")]
const SHORTEST_BY_FILE: Duration = Duration::from_micros(50);

/// The shortest sleep by tokio's timers, which have whole milliseconds.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

/// The timer by which one task sleeps.
#[derive(Debug)]
pub(crate) struct NearTimer {
    #[cfg(target_os = "linux")]
    file: File,
}

impl NearTimer {
    /// A timer that opens a file when it is first needed, if it may.
    pub(crate) fn new(may_open_file: bool) -> NearTimer {
        #[cfg(not(target_os = "linux"))]
        let _ = may_open_file;
        NearTimer {
            #[cfg(target_os = "linux")]
            file: if may_open_file { File::Unopened } else { File::None },
        }
    }

    /// Whether a sleep that long is better left to it than to tokio.
    pub(crate) fn is_for(&self, rest: Duration) -> bool {
        #[cfg(target_os = "linux")]
        return rest <= NEAR && !matches!(self.file, File::None);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = rest;
            false
        }
    }

    /// Sleeps for this long. If the sleep is cut off, the next one is not affected.
    pub(crate) async fn sleep(&mut self, rest: Duration) {
        #[cfg(target_os = "linux")]
        if self.file.sleep(rest).await {
            return;
        }
        // Nothing else can end it but a task that drops it.
        let _ = timeout(rest.max(SHORTEST), pending::<()>()).await;
    }
}

/// The file of a timer.
#[cfg(target_os = "linux")]
#[derive(Debug)]
enum File {
    Unopened,
    Open(Box<linux::Timer>),
    /// There is none, as it is not wanted or could not be opened.
    None,
}

#[cfg(target_os = "linux")]
impl File {
    /// Sleeps for this long; false, at once, if there is no file.
    async fn sleep(&mut self, rest: Duration) -> bool {
        if matches!(self, File::Unopened) {
            *self = linux::Timer::open().map_or(File::None, |timer| File::Open(Box::new(timer)));
        }
        let File::Open(timer) = self else { return false };
        timer.set(rest) && timer.elapsed().await
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use nix::sys::time::TimeSpec;
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use tokio::net::unix::pipe::Receiver;

    /// A `timerfd`. It is read as a pipe is: eight bytes arrive when it elapses.
    #[derive(Debug)]
    pub(super) struct Timer {
        file: TimerFd,
        reader: Receiver,
    }

    impl Timer {
        pub(super) fn open() -> io::Result<Timer> {
            let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
            let file = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
            let reader = Receiver::from_owned_fd_unchecked(file.as_fd().try_clone_to_owned()?)?;
            Ok(Timer { file, reader })
        }

        /// Sets the timer, whatever it was set to; whether that could be done.
        pub(super) fn set(&self, rest: Duration) -> bool {
            let rest = TimeSpec::from_duration(rest.max(super::SHORTEST_BY_FILE));
            self.file.set(Expiration::OneShot(rest), TimerSetTimeFlags::empty()).is_ok()
        }

        /// Waits until the timer has elapsed since it was set; false if that cannot be told.
        pub(super) async fn elapsed(&self) -> bool {
            loop {
                if self.reader.readable().await.is_err() {
                    return false;
                }
                match self.reader.try_read(&mut [0; 8]) {
                    // It may have been ready from an earlier time.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read.is_ok(),
                }
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Instant;

    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use tokio::runtime::Builder;

    use super::*;

    /// Begins a sleep, and cuts it off, unless it is over by then.
    async fn begin_to_sleep(timer: &mut NearTimer) {
        let mut sleep = pin!(timer.sleep(SHORTEST_BY_FILE));
        let _ = poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx))).await;
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about the system's clock")]
    fn a_sleep_lasts_as_long_as_it_should_after_one_that_was_cut_off() {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().expect("it can be built");
        runtime.block_on(async {
            for may_open_file in [true, false] {
                let mut timer = NearTimer::new(may_open_file);
                for rest in [Duration::from_millis(2), Duration::ZERO, Duration::from_millis(3)] {
                    begin_to_sleep(&mut timer).await;
                    // The timer elapses while nobody waits for it.
                    let begin = Instant::now();
                    while begin.elapsed() < Duration::from_millis(1) {}
                    let begin = Instant::now();
                    timer.sleep(rest).await;
                    assert!(begin.elapsed() >= rest);
                }
                assert_eq!(matches!(timer.file, File::Open(_)), may_open_file);
            }
        });
    }
}
