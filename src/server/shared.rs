//! What all threads of one server share: the engine behind its lock, the clock, and ways to wake one another.
//!
//! The lock is taken once for a batch of requests, and let go now and then within a long one while others wait. What
//! the engine wishes for ([`Effect`]) is carried out here, at once and under the lock: no wish takes long except a
//! stall, which is meant to hold everyone up.
//!
//! Lock order: the engine's first, then the wake_flags_of'. Neither is ever held across an `await`.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tracing::info;

use super::clock::{Clock, later};
use super::deliveries::{AT_ONCE, Deliveries};
use super::log;
use super::timer::{NextTick, Timer};
use super::wake_flags::{WakeFlag, WakeFlags};
use super::wakeup::Wakeup;
use super::worlds::{World, Worlds};
use crate::engine::{ClockOrder, DueState, Effect, Engine, Flow, LogLevel, Now, Origin, SessionId, Transport};
use crate::resp::{ReplyBuffer, Request};

/// How long a stall goes on at most once the server is told to end.
const STALL_PART: Duration = Duration::from_millis(50);

/// How long who must not hang waits for the engine's lock.
const LOCK_PATIENCE: Duration = Duration::from_millis(100);

/// One server, as its threads and its in-process clients see it.
#[derive(Debug)]
pub(crate) struct Shared {
    engine: Mutex<Engine>,
    clock: Arc<Clock>,
    wake_flags_of: Mutex<HashMap<SessionId, Arc<WakeFlags>>>,
    wakeup: Wakeup,
    deliveries: Deliveries,
    phase: watch::Sender<Phase>,
    worlds: Arc<Worlds>,
    /// Which of the worlds it is; none for the first.
    world: Option<World>,
    #[cfg(test)]
    faults: super::contain::Faults,
}

/// How far the server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// It is told to end: nobody is let in any more.
    Ending,
    /// Nobody comes in: connections end.
    Closing,
}

impl Shared {
    /// The first of a server's worlds. All threads of the server go by `phase`.
    pub(crate) fn first(
        engine: Engine,
        clock: Arc<Clock>,
        phase: watch::Sender<Phase>,
        worlds: Arc<Worlds>,
    ) -> Arc<Shared> {
        let shared = Arc::new(Shared::of(engine, clock, phase, worlds, None));
        shared.worlds.begin_with(&shared);
        shared
    }

    /// Another of its worlds.
    pub(crate) fn of_world(
        engine: Engine,
        clock: Arc<Clock>,
        phase: watch::Sender<Phase>,
        worlds: Arc<Worlds>,
        world: World,
    ) -> Shared {
        Shared::of(engine, clock, phase, worlds, Some(world))
    }

    fn of(
        engine: Engine,
        clock: Arc<Clock>,
        phase: watch::Sender<Phase>,
        worlds: Arc<Worlds>,
        world: Option<World>,
    ) -> Shared {
        let mut engine = engine;
        engine.hold_time(clock.is_frozen());
        Shared {
            engine: Mutex::new(engine),
            clock,
            wake_flags_of: Mutex::default(),
            wakeup: Wakeup::default(),
            deliveries: Deliveries::default(),
            phase,
            worlds,
            world,
            #[cfg(test)]
            faults: super::contain::Faults::default(),
        }
    }

    /// Panics that tests ask for.
    #[cfg(test)]
    pub(super) fn faults(&self) -> &super::contain::Faults {
        &self.faults
    }

    /// All worlds of the server.
    pub(crate) fn worlds(&self) -> &Arc<Worlds> {
        &self.worlds
    }

    /// Which of them this is; none for the first.
    pub(crate) fn world(&self) -> Option<&World> {
        self.world.as_ref()
    }

    /// The engine, for as long as nobody else needs it.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What the timer sleeps by.
    pub(crate) fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    /// Runs one request and nothing else, under a lock of its own.
    pub(crate) fn run(&self, session: SessionId, request: Request<'_>, output: &mut Vec<u8>) -> Flow {
        let mut engine = self.engine();
        let before = self.begin_batch(&mut engine);
        let mut replies = ReplyBuffer::from(mem::take(output));
        let flow = self.run_in(&mut engine, session, request, &mut replies);
        engine.sessions.account_memory(session);
        self.end_batch(&mut engine, before);
        drop(engine);
        *output = replies.into_bytes();
        flow
    }

    /// Lets `act` do to the engine what no request asks for, and then all happen that follows from it.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut Engine) -> R) -> R {
        let mut engine = self.engine();
        let before = self.begin_batch(&mut engine);
        let result = act(&mut engine);
        engine.unblock_ready();
        self.end_batch(&mut engine, before);
        result
    }

    /// Begins a batch.
    pub(crate) fn begin_batch(&self, engine: &mut Engine) -> DueState {
        engine.begin_batch(self.clock.now());
        engine.due_state()
    }

    /// Runs one request of a batch that has begun. It begins when the one before it has ended, or was timed last.
    pub(crate) fn run_in(
        &self,
        engine: &mut Engine,
        session: SessionId,
        request: Request<'_>,
        output: &mut ReplyBuffer,
    ) -> Flow {
        let flow = engine.run_zero_copy(engine.now(), session, request, output);
        if !engine.effects.is_empty() {
            self.carry_out(engine, Some(session));
        }
        if engine.is_timed_later() {
            return flow;
        }
        engine.finish(self.clock.now(), request);
        if flow == Flow::Block && engine.scripts.is_busy() {
            self.wakeup.no_later_than(engine.now());
        }
        if let Flow::Wait(moment) = flow {
            self.wakeup.no_later_than(moment);
        }
        flow
    }

    /// Ends a batch that began at `before`, and sees to it that the timer sleeps no longer than it may now.
    pub(crate) fn end_batch(&self, engine: &mut Engine, before: DueState) {
        engine.end_batch();
        self.settle(engine);
        if before != engine.due_state() {
            engine.next_due().into_iter().for_each(|moment| self.wakeup.no_later_than(moment));
        }
    }

    /// Ends a turn: tells what was gathered in it, and makes room where clients or keys take too much.
    pub(crate) fn settle(&self, engine: &mut Engine) {
        engine.broadcast();
        engine.evict_clients();
        if !engine.effects.is_empty() {
            self.carry_out(engine, None);
        }
        if engine.is_evicting() {
            self.wakeup.no_later_than(engine.now());
        }
    }

    /// A client comes; `None` when there are too many, or this is a world that has ended.
    pub(crate) fn connect(&self, origin: Origin) -> Option<(SessionId, Arc<WakeFlags>)> {
        let now = self.clock.now();
        let mut engine = self.engine();
        if self.has_ended() {
            return None;
        }
        let session = engine.connect(now, origin)?;
        let timeout = Duration::from_secs(engine.settings.timeout_s.into());
        let wake_flags = Arc::new(WakeFlags::default());
        self.wake_flags_of.lock().insert(session, Arc::clone(&wake_flags));
        self.tell_waiters(&mut engine);
        drop(engine);
        if !timeout.is_zero() {
            self.wakeup.no_later_than(later(now, timeout));
        }
        Some((session, wake_flags))
    }

    /// A client is gone.
    pub(crate) fn disconnect(&self, session: SessionId) {
        let mut engine = self.engine();
        engine.disconnect(session);
        self.wake_flags_of.lock().remove(&session);
        self.tell_waiters(&mut engine);
        self.end_if_left(&mut engine);
    }

    /// Who waited for clients to come or go is to be told.
    fn tell_waiters(&self, engine: &mut Engine) {
        if !engine.effects.is_empty() {
            self.carry_out(engine, None);
        }
    }

    /// Leaves a flag for one session, if it is still there.
    pub(crate) fn notify(&self, session: SessionId, flag: WakeFlag) {
        if let Some(wake_flags) = self.wake_flags_of.lock().get(&session) {
            wake_flags.notify(flag);
        }
    }

    /// Leaves a flag for every session.
    pub(crate) fn notify_all(&self, flag: WakeFlag) {
        for wake_flags in self.wake_flags_of.lock().values() {
            wake_flags.notify(flag);
        }
    }

    /// Does what the engine wished for while it ran a request of `caller`. Who wishes his own end reaches it when his
    /// replies are sent, as [`Flow::Close`] tells his connection.
    pub(crate) fn carry_out(&self, engine: &mut Engine, caller: Option<SessionId>) {
        let mut woken = 0;
        for effect in engine.effects.take() {
            match effect {
                Effect::Close(session) if caller == Some(session) => {}
                Effect::Close(session) => self.close(engine, session),
                Effect::CutOff(session) => {
                    if let Some(line) = engine.close_log_line(session) {
                        log::write(LogLevel::Warning, &line);
                    }
                    if caller != Some(session) {
                        self.close(engine, session);
                    }
                }
                // Whoever runs a request takes what he is told with its reply.
                Effect::Wake(session) if caller == Some(session) => {}
                Effect::Wake(session) => {
                    woken += 1;
                    self.wake(session, woken);
                }
                Effect::Resume => self.resume(engine),
                Effect::Clock(order) => self.set_clock(engine, order),
                Effect::Stall(stall_us) => self.stall(engine, Duration::from_micros(stall_us)),
                Effect::Shutdown => {
                    self.shut_down(engine);
                }
                Effect::Setting(name) => self.apply(engine, name),
                Effect::Free(lazy_free) => self.worlds.lazy_free_thread().free(lazy_free),
                Effect::Template(template) => self.worlds.set_template(template.map(|template| *template)),
                Effect::Log(level, line) => log::write(level, &line),
                Effect::KeyEvent { .. } => {}
            }
        }
    }

    /// Has a session fetch what it is told, as one of `woken` who are to by now.
    fn wake(&self, session: SessionId, woken: usize) {
        if woken <= AT_ONCE && self.deliveries.is_empty() {
            self.notify(session, WakeFlag::Pushed);
        } else {
            self.deliveries.add(session);
        }
    }

    /// Who is still to be woken.
    pub(crate) fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// Lets everyone go on whom a pause held back, who came first goes first, and the timer too.
    pub(super) fn resume(&self, engine: &Engine) {
        engine.held_back().into_iter().for_each(|session| self.notify(session, WakeFlag::Resume));
        self.wakeup.no_later_than(engine.now());
    }

    /// Ends a session: its connection does that, or, where there is none, nobody but us.
    fn close(&self, engine: &mut Engine, session: SessionId) {
        self.notify(session, WakeFlag::Close);
        if engine.sessions.get(session).is_some_and(|session| session.origin.transport == Transport::Direct) {
            engine.disconnect(session);
        }
    }

    /// Ends the server, or this world alone if it is another than the first.
    fn shut_down(&self, engine: &mut Engine) {
        if self.world.is_some() {
            return self.end_world(engine);
        }
        info!("User requested shutdown...");
        self.stop();
    }

    fn apply(&self, engine: &Engine, name: &str) {
        match name {
            "timeout" => self.wakeup.no_later_than(engine.now()),
            "loglevel" if self.world.is_none() => log::set_level(engine.settings.log_level),
            _ => {}
        }
    }

    /// Keeps everyone waiting. A frozen clock moves on instead, so nobody sleeps for it.
    fn stall(&self, engine: &mut Engine, length: Duration) {
        if self.clock.is_frozen() {
            self.advance_engine(engine, later(self.clock.now(), length));
        } else {
            self.sleep(length);
        }
    }

    /// Sleeps in short parts, so that a server told to end ends.
    fn sleep(&self, length: Duration) {
        let mut rest = length;
        while !rest.is_zero() && !self.is_ending() {
            let part = rest.min(STALL_PART);
            #[expect(
                clippy::disallowed_methods,
                reason = "DEBUG SLEEP is there to make a server that does not answer"
            )]
            std::thread::sleep(part);
            rest -= part;
        }
    }

    /// Changes the clock. What falls due on the way to a later moment happens, in order, each at its moment.
    fn set_clock(&self, engine: &mut Engine, order: ClockOrder) {
        match order {
            ClockOrder::Reach(moment) => self.advance_engine(engine, moment),
            ClockOrder::Set(_) | ClockOrder::Speed(_) => self.clock.obey(order),
        }
        engine.hold_time(self.clock.is_frozen());
        engine.jump(self.clock.now());
        self.wake_timer();
    }

    /// Changes the clock, from outside of any request.
    pub(crate) fn obey(&self, order: ClockOrder) {
        self.set_clock(&mut self.engine(), order);
    }

    /// Has the timer look at the clock again: he sleeps by the time that was.
    fn wake_timer(&self) {
        self.wakeup.no_later_than(Now::from_us(i64::MIN));
    }

    /// Moves the clock on, and lets everything happen that falls due on the way, in order, each at its moment. Whoever
    /// moves a clock finds nothing left that was to end by then, also on one that runs.
    pub(crate) fn advance(&self, by: Duration) {
        let mut engine = self.engine();
        self.advance_engine(&mut engine, later(self.clock.now(), by));
        self.wake_timer();
    }

    fn advance_engine(&self, engine: &mut Engine, target: Now) {
        if engine.scripts.is_busy() {
            // Nothing happens before the script has ended, and nobody knows when that is.
            return self.clock.reach(target);
        }
        engine.hold_time(true);
        let mut timer = Timer::default();
        let mut now = self.clock.now();
        loop {
            now = match timer.tick(self, engine, now) {
                NextTick::Again => now,
                // What is due at a moment has happened when its turn is over, and does not fall due again.
                NextTick::At(moment) if now < moment && moment <= target => moment,
                NextTick::At(_) | NextTick::Never if now < target => target,
                NextTick::At(_) | NextTick::Never => break,
            };
            self.clock.reach(now);
        }
        engine.hold_time(self.clock.is_frozen());
    }

    /// Has the server end: nobody is let in from now on, and then all connections are closed.
    pub(crate) fn stop(&self) {
        self.reach(Phase::Ending);
    }

    /// The process is asked to end: the server does so at once, unless nothing is done by itself now; then it is noted,
    /// and done when that is over. Whoever has the engine is waited for no longer than a moment.
    pub(crate) fn stop_or_note(&self) {
        match self.engine.try_lock_for(LOCK_PATIENCE) {
            Some(mut engine) if engine.switches.cron_paused => engine.switches.shutdown_pending = true,
            _ => self.stop(),
        }
    }

    /// Whether the server is not to end any more, though the process was asked to. Whoever has the engine is waited for
    /// no longer than a moment.
    pub(crate) fn is_shutdown_called_off(&self) -> bool {
        let is_noted = || self.engine.try_lock_for(LOCK_PATIENCE).is_none_or(|engine| engine.switches.shutdown_pending);
        !self.is_ending() && !is_noted()
    }

    /// Nobody is let in any more: connections are closed.
    pub(crate) fn close_connections(&self) {
        self.reach(Phase::Closing);
    }

    /// Whether the server is told to end.
    pub(crate) fn is_ending(&self) -> bool {
        *self.phase.borrow() > Phase::Serving
    }

    /// Returns when [`Shared::stop`] was called.
    pub(crate) async fn stopped(&self) {
        self.reached(Phase::Ending).await;
    }

    /// Returns when [`Shared::close_connections`] was called.
    pub(crate) async fn connections_closed(&self) {
        self.reached(Phase::Closing).await;
    }

    fn reach(&self, phase: Phase) {
        self.phase.send_modify(|reached| *reached = phase.max(*reached));
    }

    async fn reached(&self, phase: Phase) {
        // The sender lives in `self`, so it cannot be gone.
        let _ = self.phase.subscribe().wait_for(|&reached| reached >= phase).await;
    }
}
