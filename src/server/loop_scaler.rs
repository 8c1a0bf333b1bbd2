//! Scales the number of event loops that serve clients.
//!
//! One loop serves all clients as long as it can: it sends more replies together, is woken less often, and never waits
//! for the engine's lock. When the loops in use were nearly always busy ([`BUSY`]) and a processor is idle, one loop
//! more is tried; it stays if the request rate rises by the factor [`GAIN`]. When no processor is idle, one loop fewer
//! is tried; that stays if the rate holds ([`MIN_KEPT_RATE`]). A trial that did not pay is repeated at ever longer
//! intervals, from [`BACKOFF_NS`] to [`LONGEST_BACKOFF_NS`]. So where clients need the processors, or the engine's own
//! work is the limit, further loops cost nothing. When the work fits one loop fewer ([`MAX_BUSY_OF_REST`]), a loop is
//! dropped without a trial.
//!
//! Nothing here reads a clock or calls the system: [`super::loops`] passes in what it measured.
//!
//! Costs: a few comparisons a window.

/// A loop that is busy for at least this share of its time counts as saturated.
const BUSY: f64 = 0.9;
/// The number of windows in a row that must ask for the same change before it is tried.
const WINDOWS: u32 = 2;
/// The number of idle processors from which on another loop may be tried.
const SPARE: f64 = 0.75;
/// The number of idle processors below which none counts as left.
const NONE_LEFT: f64 = 0.25;
/// The factor by which the request rate must rise for one loop more to stay.
const GAIN: f64 = 1.1;
/// The share of the former request rate that must be kept for one loop fewer to stay.
const MIN_KEPT_RATE: f64 = 0.97;
/// A loop is dropped when the others would be busy for less than this share of their time.
const MAX_BUSY_OF_REST: f64 = 0.6;
/// The time without a trial after the first trial that did not pay, in nanoseconds. It doubles with each further one.
const BACKOFF_NS: u64 = 1_000_000_000;
/// The longest time without a trial, in nanoseconds.
const LONGEST_BACKOFF_NS: u64 = 64_000_000_000;

/// The measurements of one window of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The end of the window, on the monotonic clock.
    pub(super) end_ns: u64,
    /// The busy time of all loops, divided by the length of the window.
    pub(super) busy: f64,
    /// The number of requests served in a second.
    pub(super) rate: f64,
    /// The number of idle processors, where it is known.
    pub(super) spare: Option<f64>,
}

/// A change that may be tried: one loop more, or one fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    AddLoop,
    DropLoop,
}

/// The state of the scaler between two windows.
#[derive(Debug, Default)]
pub(super) struct LoopScaler {
    /// The change that the last window asked for.
    step: Option<Step>,
    /// The number of windows in a row that asked for this change.
    windows: u32,
    /// The change that is being tried, and the request rate before it.
    trial: Option<(Step, f64)>,
    /// The time without a trial after the last one, as that did not pay.
    backoff_ns: u64,
    backoff_until_ns: u64,
}

impl LoopScaler {
    /// Decides how many loops of `all` serve from now on; `in_use` served in `window`.
    pub(super) fn decide(&mut self, window: Window, in_use: usize, all: usize) -> usize {
        if let Some((step, before)) = self.trial.take() {
            return self.evaluate(step, before, window, in_use);
        }
        if in_use > 1 && window.busy < MAX_BUSY_OF_REST * (in_use - 1) as f64 {
            return in_use - 1;
        }
        let step = step_to_try(window, in_use, all);
        self.windows = if step == self.step { self.windows + 1 } else { 1 };
        self.step = step;
        match step {
            Some(step) if self.windows >= WINDOWS && window.end_ns >= self.backoff_until_ns => {
                self.trial = Some((step, window.rate));
                self.step = None;
                step.of(in_use)
            }
            _ => in_use,
        }
    }

    /// Keeps or reverts the change that was tried; returns how many loops serve from now on.
    fn evaluate(&mut self, step: Step, before: f64, window: Window, in_use: usize) -> usize {
        let (wanted, back) = match step {
            Step::AddLoop => (GAIN, Step::DropLoop),
            Step::DropLoop => (MIN_KEPT_RATE, Step::AddLoop),
        };
        if window.rate >= before * wanted {
            self.backoff_ns = 0;
            return in_use;
        }
        self.backoff_ns = (self.backoff_ns * 2).clamp(BACKOFF_NS, LONGEST_BACKOFF_NS);
        self.backoff_until_ns = window.end_ns + self.backoff_ns;
        back.of(in_use)
    }
}

impl Step {
    fn of(self, in_use: usize) -> usize {
        match self {
            Step::AddLoop => in_use + 1,
            Step::DropLoop => in_use - 1,
        }
    }
}

/// The change that is worth a trial after `window`, if there is one.
fn step_to_try(window: Window, in_use: usize, all: usize) -> Option<Step> {
    let is_busy = window.busy >= BUSY * in_use as f64;
    match window.spare {
        Some(spare) if spare < NONE_LEFT => (in_use > 1).then_some(Step::DropLoop),
        Some(spare) if spare < SPARE => None,
        _ => (is_busy && in_use < all).then_some(Step::AddLoop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_NS: u64 = 100_000_000;

    /// A server and its clients, as far as loops are concerned.
    struct Scene {
        scaler: LoopScaler,
        in_use: usize,
        now_ns: u64,
    }

    impl Scene {
        fn new() -> Scene {
            Scene { scaler: LoopScaler::default(), in_use: 1, now_ns: 0 }
        }

        /// Lets a number of windows pass. `seen` gives the load, the rate and the idle processors for a number of loops
        /// in use. Returns how many windows passed with each number of loops.
        fn pass(&mut self, windows: usize, seen: impl Fn(usize) -> (f64, f64, Option<f64>)) -> [usize; 5] {
            let mut passed = [0; 5];
            for _ in 0..windows {
                self.now_ns += WINDOW_NS;
                passed[self.in_use] += 1;
                let (busy, rate, spare) = seen(self.in_use);
                let window = Window { end_ns: self.now_ns, busy, rate, spare };
                self.in_use = self.scaler.decide(window, self.in_use, 4);
            }
            passed
        }
    }

    #[test]
    fn loops_are_added_while_they_increase_throughput() {
        let mut scene = Scene::new();
        scene.pass(20, |loops| (loops as f64, 100.0 * loops as f64, Some(4.0)));
        assert_eq!(scene.in_use, 4);
        scene.pass(20, |loops| (loops as f64, 400.0, None));
        assert_eq!(scene.in_use, 4);
    }

    #[test]
    fn a_single_loop_that_is_not_always_busy_stays_the_only_one() {
        assert_eq!(Scene::new().pass(1000, |_| (0.8, 100.0, Some(8.0))), [0, 1000, 0, 0, 0]);
    }

    #[test]
    fn no_loop_is_added_while_clients_need_the_processors() {
        assert_eq!(Scene::new().pass(1000, |_| (1.0, 100.0, Some(0.5))), [0, 1000, 0, 0, 0]);
    }

    #[test]
    fn a_loop_that_brings_no_gain_is_retried_ever_more_rarely() {
        let mut scene = Scene::new();
        let tried = scene.pass(36_000, |loops| (loops as f64, 100.0, Some(2.0)));
        assert_eq!(tried[3..], [0, 0]);
        assert!((50..=70).contains(&tried[2]), "an hour has 56 spans of 64 seconds: {tried:?}");
    }

    #[test]
    fn loops_are_dropped_when_fewer_can_do_the_work() {
        let mut scene = Scene::new();
        scene.pass(20, |loops| (loops as f64, 100.0 * loops as f64, Some(4.0)));
        scene.pass(10, |_| (1.0, 100.0, Some(4.0)));
        assert_eq!(scene.in_use, 2);
        scene.pass(10, |_| (0.3, 30.0, Some(4.0)));
        assert_eq!(scene.in_use, 1);
    }

    #[test]
    fn only_one_loop_is_used_while_clients_need_the_processors() {
        let mut scene = Scene::new();
        scene.in_use = 2;
        scene.pass(10, |loops| (0.7 * loops as f64, 100.0 / loops as f64, Some(0.0)));
        assert_eq!(scene.in_use, 1);
    }

    #[test]
    fn loops_that_increase_throughput_on_a_busy_machine_stay() {
        let mut scene = Scene::new();
        scene.in_use = 3;
        let tried = scene.pass(600, |loops| (loops as f64, 100.0 * loops as f64, Some(0.0)));
        assert!(scene.in_use == 3 && tried[2] < 10, "{tried:?}");
    }

    #[test]
    fn only_consecutive_busy_windows_count() {
        let mut scene = Scene::new();
        for _ in 0..100 {
            assert_eq!(scene.pass(1, |_| (1.0, 100.0, None))[1], 1);
            assert_eq!(scene.pass(1, |_| (0.5, 100.0, None))[1], 1);
        }
    }
}
