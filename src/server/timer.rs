//! The timer task: runs what falls due (expired keys, eviction, timeouts of blocked clients, long scripts, the end of a
//! pause, idle clients).
//!
//! It sleeps exactly until something is due, so an idle server takes no processor time. Code that makes something fall
//! due earlier calls [`super::wakeup::Wakeup::no_later_than`]. When much is due at once, a tick does a slice of it and
//! unlocks the engine, so that clients are served in between. A test that moves the clock runs the ticks itself, one
//! for each moment on the way. At a node of a cluster with a frozen clock, the timer does only work without a due time
//! ([`has_undated_work`]); everything else runs with the requests, so that a test has one order of events.
//!
//! The system's clock may be set while the timer sleeps. After it was set back, the timer wakes early and sleeps again.
//! After it was set forward, commands remove the expired keys that they touch, and the timer removes the others when
//! its sleep ends.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::clock::later;
use super::contain::keep_running;
use super::near_timer::NearTimer;
use super::shared::Shared;
use super::wake_flags::WakeFlag;
use crate::engine::exec::kit::waits;
use crate::engine::exec::{sleep, tracking};
use crate::engine::{Engine, Now, Session, SessionId, Transport};

/// The number of keys that one slice removes: some ten microseconds of work.
const SLICE_KEYS: usize = 64;

/// The timer's own state: when idle clients are checked next.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    idle_check: Option<Now>,
    timeout: Duration,
}

/// The moment of the timer's next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextTick {
    /// The next tick is at once, because more is due.
    Again,
    /// The next tick is at this moment.
    At(Now),
    /// The next tick is when [`super::wakeup::Wakeup::no_later_than`] is called; nothing is due.
    Never,
}

impl Timer {
    /// Does a slice of what is due at `now`.
    pub(crate) fn tick(&mut self, shared: &Shared, engine: &mut Engine, now: Now) -> NextTick {
        if engine.persistence.shutdown.has_begun {
            return NextTick::Never;
        }
        if shared.is_down() || engine.timing.pause().is_node_paused() {
            return sleep::ends(engine).filter(|_| !shared.is_down()).map_or(NextTick::Never, NextTick::At);
        }
        if engine.scripts.is_busy() {
            engine.go_on(now);
            shared.complete(engine);
            if !engine.scripts.is_busy() {
                // The script's client may have been the last one of a temporary world, and may have left.
                shared.end_if_left(engine);
            }
            return NextTick::Again;
        }
        end_pause(shared, engine, now);
        self.close_idle(shared, engine, now);
        let expired = engine.run_due(now, SLICE_KEYS);
        if !engine.switches.cron_paused {
            tracking::limit_tracking(engine);
        }
        let goes_on_evicting = engine.continue_eviction(now);
        shared.complete(engine);
        if expired == SLICE_KEYS || goes_on_evicting {
            return NextTick::Again;
        }
        match [engine.next_due(), self.idle_check].into_iter().flatten().min() {
            Some(moment) => NextTick::At(moment),
            None => NextTick::Never,
        }
    }

    fn close_idle(&mut self, shared: &Shared, engine: &Engine, now: Now) {
        let timeout_s = if engine.switches.cron_paused { 0 } else { engine.settings.timeout_s };
        let timeout = Duration::from_secs(timeout_s.into());
        if timeout != self.timeout {
            self.timeout = timeout;
            self.idle_check = None;
        }
        if !timeout.is_zero() && self.idle_check.is_none_or(|check| check <= now) {
            let (idle, next) = idle_sessions(engine, now, timeout);
            for session in idle {
                shared.notify(session, WakeFlag::Close);
            }
            self.idle_check = next;
        }
    }
}

/// Resumes the held-back clients once a pause is over, even one so short that it ended before any tick.
fn end_pause(shared: &Shared, engine: &mut Engine, now: Now) {
    if engine.timing.pause_mut().end_at(now) {
        waits::wake_waiters(engine);
        shared.resume(engine);
    }
}

/// The clients that have been idle for `timeout`, and the moment when the next one will have been. In-process clients,
/// blocked clients, clients that only listen (subscribers, monitors) and those that keep a world are never idle.
fn idle_sessions(engine: &Engine, now: Now, timeout: Duration) -> (Vec<SessionId>, Option<Now>) {
    let (mut idle, mut next) = (Vec::new(), None);
    let may_be_idle = |session: &&Session| {
        let is_connection = session.origin.transport != Transport::Direct && !session.origin.is_node();
        let waits = engine.is_blocked(session.id) || session.hold_number.is_some();
        is_connection && !waits && !session.receives_pushes() && !session.keeps_world
    };
    for session in engine.sessions.iter().filter(may_be_idle) {
        let end = later(session.active, timeout);
        if end <= now {
            idle.push(session.id);
        } else {
            next = Some(next.map_or(end, |next: Now| next.min(end)));
        }
    }
    (idle, next)
}

/// Whether the timer may have work without a due time: a script to resume, keys to evict, or idle clients to close.
pub(super) fn has_undated_work(engine: &Engine) -> bool {
    engine.scripts.is_busy() || engine.databases.is_evicting() || engine.settings.timeout_s > 0
}

/// Runs the timer of a server, or of one of its worlds, until it ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    keep_running("the timer", || run_timer(&shared)).await;
}

async fn run_timer(shared: &Shared) {
    let (mut timer, mut near) = (Timer::default(), NearTimer::new(shared.world().is_none()));
    loop {
        if shared.membership().is_some() {
            // A test that moves the clock wakes the timer, whenever that is.
            shared.wakeup().set(None);
        }
        let next = shared.tick_beside_nodes(|| {
            let mut engine = shared.engine();
            let next = timer.tick(shared, &mut engine, shared.clock().now());
            #[cfg(test)]
            shared.test_panics().panic_if_ordered("timer");
            shared.wakeup().set(if let NextTick::At(moment) = next { Some(moment) } else { None });
            // The lock goes to a thread that waits for it, before the next tick of a script or of much work.
            MutexGuard::unlock_fair(engine);
            next
        });
        if next == Some(NextTick::Again) {
            tokio::task::yield_now().await;
        } else {
            shared.wakeup().elapsed(shared.clock(), &mut near).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestCaseResult, TestRunner};

    use super::*;
    use crate::engine::state::Effect;
    use crate::engine::state::host::Facts;
    use crate::engine::{ClockOrder, Flow, Origin, Settings};
    use crate::resp::{ReplyBuffer, Requests};
    use crate::server::clock::Clock;
    use crate::server::os_storage::OsStorage;
    use crate::server::run::{Plan, Server};

    /// A server whose clock is stopped, and whose timer runs only when the test calls it.
    fn server() -> Server {
        server_at(Now::from_us(0))
    }

    /// A server whose clock is stopped at that moment, and whose timer runs only when the test calls it.
    fn server_at(moment: Now) -> Server {
        let (clock, facts) = (Clock::frozen(moment), Facts::default());
        let settings = Settings { test_kit: true, ..Settings::default() };
        let storage = Arc::new(OsStorage);
        let plan =
            Plan { settings, tcp: false, clock, seed: 1, is_deterministic: true, facts, storage, disk_faults: None };
        Server::open(plan).expect("it opens no socket")
    }

    fn ask(shared: &Shared, session: SessionId, line: &str) -> Flow {
        let request = Requests::of(line.split(' ').map(str::as_bytes));
        let request = request.iter().next().expect("there is one");
        shared.call(session, request, &mut ReplyBuffer::default()).expect("its session exists")
    }

    #[test]
    fn a_pause_that_ended_unobserved_resumes_the_clients_that_it_held() {
        let server = server();
        let shared = server.shared();
        let (pausing, _) = shared.connect(Origin::default()).expect("there is room");
        let (held, wake_flags) = shared.connect(Origin::default()).expect("there is room");
        assert_eq!(ask(shared, pausing, "CLIENT PAUSE 5 WRITE"), Flow::Next);
        assert!(matches!(ask(shared, held, "SET key value"), Flow::HeldBack(_)));
        let mut engine = shared.engine();
        Timer::default().tick(shared, &mut engine, Now::from_us(6_000));
        assert!(wake_flags.take().has(WakeFlag::Resume));
        assert_eq!(engine.timing.pause().until(), None);
    }

    #[test]
    fn a_client_that_blocks_is_woken_for_what_came_while_its_command_ran() {
        let server = server();
        let shared = server.shared();
        let (session, wake_flags) = shared.connect(Origin::default()).expect("there is room");
        shared.engine().effects.push(Effect::Wake(session));
        assert_eq!(ask(shared, session, "BLPOP queue 0"), Flow::Block);
        assert!(wake_flags.take().has(WakeFlag::Pushed));
    }

    /// Milliseconds about where moments, as microseconds and as milliseconds, end.
    fn edges() -> impl Strategy<Value = i64> {
        let ends = [i64::MIN, i64::MIN / 1000, 0, Now::LAST_MS, i64::MAX];
        (prop::sample::select(ends.to_vec()), -1100..1100_i64).prop_map(|(end, by)| end.saturating_add(by))
    }

    /// Requests that make something fall due there, or move the clock there.
    fn requests() -> impl Strategy<Value = Vec<String>> {
        let request = (0..8, edges()).prop_map(|(kind, edge_ms)| match kind {
            0 => format!("SET key:{} value PXAT {edge_ms}", edge_ms % 5),
            1 => format!("HPEXPIREAT hash {edge_ms} FIELDS 1 field:{}", edge_ms % 3),
            2 => format!("BLPOP queue {}.{:03}", edge_ms / 1000, edge_ms.unsigned_abs() % 1000),
            3 => format!("CLIENT PAUSE {edge_ms} WRITE"),
            4 => format!("CONFIG SET timeout {}", edge_ms.unsigned_abs() % 2000),
            5 => format!("DUNLIN SET-TIME {edge_ms}"),
            6 => format!("DUNLIN ADVANCE {}", edge_ms.unsigned_abs()),
            _ => "DUNLIN ADVANCE-TO-NEXT".to_owned(),
        });
        prop::collection::vec(request, 1..12)
    }

    /// A request that waits for ever.
    const WITHOUT_TIMEOUT: &str = "BLPOP queue 0.000";

    /// Runs the requests, each on a client of its own, and moves the clock to its end: then no client is blocked any
    /// more.
    fn play(start_ms: i64, requests: &[String]) -> TestCaseResult {
        let server = server_at(Now::from_ms(start_ms).unwrap_or(Now::from_us(i64::MAX)));
        let shared = server.shared();
        let come = || shared.connect(Origin::default()).expect("there is room").0;
        let fields = "HSET hash field:0 a field:1 b field:2 c field:-1 d field:-2 e";
        ask(shared, come(), fields);
        let mut waiting = Vec::new();
        for request in requests {
            let client = come();
            if ask(shared, client, request) == Flow::Block && request != WITHOUT_TIMEOUT {
                waiting.push(client);
            }
            let (next, now) = (shared.engine().next_moment(), shared.clock().now());
            prop_assert!(
                !request.ends_with("TO-NEXT") || next.is_none_or(|next| next > now),
                "{:?} at {:?}",
                next,
                now
            );
        }
        shared.apply_order(ClockOrder::Reach(Now::from_us(i64::MAX)));
        let engine = shared.engine();
        prop_assert_eq!(engine.next_moment(), None);
        for client in waiting {
            prop_assert!(!engine.is_blocked(client));
        }
        Ok(())
    }

    /// Runs something on a thread and returns its result; fails if it takes a minute.
    fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, done) = mpsc::channel();
        thread::spawn(move || sender.send(act()));
        done.recv_timeout(Duration::from_secs(60)).expect("it comes to an end")
    }

    #[test]
    fn the_largest_time_is_reached_whatever_is_due_then() {
        let config = Config { failure_persistence: None, ..Config::default() };
        let play = |(start_ms, requests): (i64, Vec<String>)| play(start_ms, &requests);
        assert!(play((0, vec![WITHOUT_TIMEOUT.to_owned()])).is_ok(), "it waits for ever");
        let played = in_time(move || TestRunner::new(config).run(&(edges(), requests()), play));
        assert!(played.is_ok(), "{played:?}");
    }

    #[test]
    fn a_deadline_beyond_the_largest_time_is_never_due_and_delays_nothing() {
        let server = server();
        let (shared, client) = (Arc::clone(server.shared()), server.shared().connect(Origin::default()));
        let (client, _) = client.expect("there is room");
        let now = in_time(move || {
            for request in ["SET key value PXAT 9999999999999999", "DUNLIN ADVANCE-TO-NEXT", "DUNLIN ADVANCE 5"] {
                assert_eq!(ask(&shared, client, request), Flow::Next);
            }
            shared.clock().now()
        });
        assert_eq!(now, Now::from_us(5000));
    }
}
