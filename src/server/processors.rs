//! Which processors threads may run on (`server-cpulist`, `bio-cpulist`), where the system can be told.
//!
//! A list is numbers and ranges with commas between them: `0,2`, `1-3`, `0-6:2` for every second one. As in Redis, a
//! list that is malformed, or names no processor that is there, changes nothing.

#[cfg(target_os = "linux")]
pub(crate) use linux::{keep_beside, keep_to};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::OnceLock;

    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    /// This thread.
    const OWN: Pid = Pid::from_raw(0);

    /// Those that the process had before it was kept to some of them.
    static ALL: OnceLock<CpuSet> = OnceLock::new();

    /// Keeps this thread, and those that it will start, to the processors of a list.
    pub(crate) fn keep_to(list: &str) {
        if let Some(set) = set_of(list) {
            if let Ok(all) = sched_getaffinity(OWN) {
                ALL.get_or_init(|| all);
            }
            // Nothing is lost but the wish.
            let _ = sched_setaffinity(OWN, &set);
        }
    }

    /// Keeps a thread that works beside the server to the processors of a list of its own; without one, to all.
    pub(crate) fn keep_beside(list: &str) {
        if let Some(set) = set_of(list).or_else(|| ALL.get().copied()) {
            let _ = sched_setaffinity(OWN, &set);
        }
    }

    fn set_of(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        for number in super::numbers_in(list)? {
            // There are no processors with numbers as large as it refuses.
            let _ = set.set(number);
        }
        Some(set)
    }
}

/// Elsewhere threads run where the system likes.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_to(_: &str) {}

/// See above.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_beside(_: &str) {}

/// No machine has more processors.
#[cfg(any(target_os = "linux", test))]
const MOST: usize = 1 << 16;

/// The numbers of a list, `None` where it is empty or malformed.
#[cfg(any(target_os = "linux", test))]
fn numbers_in(list: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&number| number < MOST);
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
    #[cfg(target_os = "linux")]
    fn a_thread_runs_where_its_list_says() {
        use nix::sched::sched_getaffinity;
        use nix::unistd::Pid;
        let own = || sched_getaffinity(Pid::from_raw(0)).expect("the system tells it");
        let all = own();
        let first = (0..MOST).find(|&number| all.is_set(number) == Ok(true)).expect("there is a processor");
        let (kept, beside) = std::thread::spawn(move || {
            keep_to(&first.to_string());
            let kept = own();
            keep_beside("");
            (kept, own())
        })
        .join()
        .expect("nothing in it panics");
        assert_eq!((0..256).filter(|&number| kept.is_set(number) == Ok(true)).collect::<Vec<_>>(), [first]);
        assert_eq!(beside, all);
    }
}
