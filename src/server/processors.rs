//! Processor affinity of threads (`server-cpulist`, `bio-cpulist`), a low priority, and the number of idle processors,
//! all on Linux only.
//!
//! A list is numbers and ranges with commas between them: `0,2`, `1-3`, `0-6:2` for every second one. As in Redis, a
//! list that is malformed, or names no existing processor, changes nothing.

#[cfg(all(target_os = "linux", feature = "program"))]
mod long_slices;

use std::io;
use std::panic::resume_unwind;
use std::thread;

#[cfg(target_os = "linux")]
pub(crate) use linux::{pin_background_thread, pin_thread};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::OnceLock;

    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    /// The id that means the calling thread.
    const OWN: Pid = Pid::from_raw(0);

    /// The processors that the process could run on before it was restricted.
    static ALL: OnceLock<CpuSet> = OnceLock::new();

    /// Restricts this thread, and those that it will start, to the processors of a list.
    pub(crate) fn pin_thread(list: &str) {
        if let Some(set) = set_of(list) {
            if let Ok(all) = sched_getaffinity(OWN) {
                ALL.get_or_init(|| all);
            }
            // A list that cannot be applied changes nothing.
            let _ = sched_setaffinity(OWN, &set);
        }
    }

    /// Restricts this background thread to the processors of a list of its own; without one, it may run on all.
    pub(crate) fn pin_background_thread(list: &str) {
        if let Some(set) = set_of(list).or_else(|| ALL.get().copied()) {
            let _ = sched_setaffinity(OWN, &set);
        }
    }

    fn set_of(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        for number in super::numbers_in(list)? {
            // Numbers too large for the set name no existing processor.
            let _ = set.set(number);
        }
        Some(set)
    }
}

/// Does nothing: on other systems the affinity of a thread cannot be set.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_thread(_: &str) {}

/// Does nothing: on other systems the affinity of a thread cannot be set.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_background_thread(_: &str) {}

/// Runs what takes long, and can wait for a moment, on a thread with a lower priority than those that serve clients,
/// and waits for it. Threads inherit the priority of the one that starts them, so it must not call the engine.
///
/// Only on Linux a thread has a priority of its own. There it also makes way for whatever wakes up (`long_slices`).
///
/// # Errors
/// The system has no thread.
pub(crate) fn at_low_priority<T: Send>(run: impl FnOnce() -> T + Send) -> io::Result<T> {
    let run = || {
        #[cfg(all(target_os = "linux", feature = "program"))]
        if let Ok(nice) = rustix::process::nice(10) {
            long_slices::lengthen_slices(nice);
        }
        run()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("dunlin-lowprio".to_owned()).spawn_scoped(scope, run)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// The processor time of the machine since its start, in ticks, and its number of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessorTime {
    processors: u64,
    idle: u64,
    all: u64,
}

impl ProcessorTime {
    /// The system's present figures, if it reports them.
    pub(crate) fn now() -> Option<ProcessorTime> {
        if cfg!(target_os = "linux") { ProcessorTime::of(&std::fs::read_to_string("/proc/stat").ok()?) } else { None }
    }

    /// Parses `/proc/stat` of Linux: one line for all processors together, then one for each.
    fn of(text: &str) -> Option<ProcessorTime> {
        let mut lines = text.lines().take_while(|line| line.starts_with("cpu"));
        let figures = lines.next()?.split_ascii_whitespace().skip(1).map_while(|word| word.parse().ok());
        // User, nice, system, idle, waiting for disks, two kinds of interrupts, stolen; what follows is part of these.
        let figures: Vec<u64> = figures.take(8).collect();
        let idle = figures.get(3..5)?.iter().sum();
        Some(ProcessorTime { processors: lines.count() as u64, idle, all: figures.iter().sum() })
    }

    /// The mean number of idle processors since `before`; `None` while the system's counters have not advanced.
    pub(crate) fn idle_since(self, before: ProcessorTime) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        Some(self.idle.saturating_sub(before.idle) as f64 * self.processors as f64 / all as f64)
    }
}

/// No machine has more processors.
#[cfg(any(target_os = "linux", test))]
const MAX: usize = 1 << 16;

/// The numbers of a list, `None` where it is empty or malformed.
#[cfg(any(target_os = "linux", test))]
fn numbers_in(list: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&number| number < MAX);
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (range, step) =
            part.split_once(':').map_or(Some((part, 1)), |(range, step)| Some((range, number(step)?)))?;
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(range)?, number(range)?),
        };
        if first > last || step == 0 {
            return None;
        }
        numbers.extend((first..=last).step_by(step));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_processors_and_ranges_of_them() {
        assert_eq!(numbers_in("0"), Some(vec![0]));
        assert_eq!(numbers_in("1-3,7"), Some(vec![1, 2, 3, 7]));
        assert_eq!(numbers_in("0-6:2, 9"), Some(vec![0, 2, 4, 6, 9]));
        for malformed in ["", ",", "a", "1-", "-1", "3-1", "0-6:0", "1;2", "99999999999999999999"] {
            assert_eq!(numbers_in(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn idle_processors_are_counted() {
        let line = |idle: u64, user: u64| format!("cpu  {user} 5 20 {idle} 10 0 5 0 7 0\ncpu0 1\ncpu1 1\nintr 1 2\n");
        let time = |idle, user| ProcessorTime::of(&line(idle, user)).expect("it is such a text");
        assert_eq!(time(130, 50).idle_since(time(100, 40)), Some(1.5));
        assert_eq!(time(100, 80).idle_since(time(100, 40)), Some(0.0));
        assert_eq!(time(100, 40).idle_since(time(100, 40)), None);
        for malformed in ["", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5 6"] {
            assert_eq!(ProcessorTime::of(malformed), None, "{malformed}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_runs_on_the_processors_of_its_list() {
        use nix::sched::sched_getaffinity;
        use nix::unistd::Pid;
        let own = || sched_getaffinity(Pid::from_raw(0)).expect("the system tells it");
        let all = own();
        let first = (0..MAX).find(|&number| all.is_set(number) == Ok(true)).expect("there is a processor");
        let (kept, beside) = std::thread::spawn(move || {
            pin_thread(&first.to_string());
            let kept = own();
            pin_background_thread("");
            (kept, own())
        })
        .join()
        .expect("nothing in it panics");
        assert_eq!((0..256).filter(|&number| kept.is_set(number) == Ok(true)).collect::<Vec<_>>(), [first]);
        assert_eq!(beside, all);
    }
}
