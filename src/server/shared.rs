//! The state that all threads of one server share: the engine behind its lock, the clock, and the means to wake each
//! other.
//!
//! The lock is taken once for a batch of requests, and released between the parts of a long one while others wait. What
//! the engine asks for meanwhile is carried out under it ([`effects`]).
//!
//! Lock order: the engine's first, then that of `wake_flags`. Neither is ever held across an `await`.

mod effects;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::clock::{Clock, later};
use super::deliveries::Deliveries;
use super::nodes::Membership;
use super::wake_flags::{WakeFlag, WakeFlags};
use super::wakeup::Wakeup;
use super::world::World;
use super::worlds::Worlds;
use crate::engine::exec::kit::waits;
use crate::engine::exec::persistence::ShutdownOptions;
use crate::engine::exec::{agreement, persistence, replication, tracking};
use crate::engine::state::BackgroundSave;
use crate::engine::{DueState, Engine, Flow, Origin, SessionId, Settings};
use crate::resp::{ReplyBuffer, Request};

/// One server, as its threads and its in-process clients see it.
pub(crate) struct Shared {
    pub(super) engine: Mutex<Engine>,
    clock: Arc<Clock>,
    wake_flags: Mutex<HashMap<SessionId, Arc<WakeFlags>>>,
    wakeup: Wakeup,
    deliveries: Deliveries,
    phase: watch::Sender<Phase>,
    worlds: Arc<Worlds>,
    /// Whether the data may have to be saved before the server ends, as the settings say.
    saves_at_end: AtomicBool,
    /// The world that this is; `None` for the first.
    world: Option<World>,
    /// Its place in the cluster that it is a node of, if it is one.
    membership: OnceLock<Membership>,
    /// Whether it is a node of a cluster that was killed, and not started again, or is paused. Set under the engine's
    /// lock.
    is_down: AtomicBool,
    #[cfg(test)]
    test_panics: super::contain::TestPanics,
}

/// Only the name: the whole state would put megabytes into the messages of assertions.
impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Shared").field(&self.world_name().as_str()).finish()
    }
}

/// The phases of a server's life, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// The server was asked to end: it accepts no more clients.
    Ending,
    /// The listeners are closed, and the connections are being closed.
    Closing,
}

impl Shared {
    /// Makes the first of a server's worlds. All threads of the server follow `phase`.
    pub(crate) fn first(
        engine: Engine,
        clock: Arc<Clock>,
        phase: watch::Sender<Phase>,
        worlds: Arc<Worlds>,
    ) -> Arc<Shared> {
        let shared = Arc::new(Shared::of(engine, clock, phase, worlds, None));
        shared.worlds.set_first(&shared);
        shared
    }

    /// Makes another world of a server.
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
        engine.timing.hold_time(clock.is_frozen());
        let saves_at_end = AtomicBool::new(saves_at_end(&engine.settings));
        Shared {
            engine: Mutex::new(engine),
            clock,
            wake_flags: Mutex::default(),
            wakeup: Wakeup::default(),
            deliveries: Deliveries::default(),
            phase,
            worlds,
            saves_at_end,
            world,
            membership: OnceLock::new(),
            is_down: AtomicBool::new(false),
            #[cfg(test)]
            test_panics: super::contain::TestPanics::default(),
        }
    }

    /// Panics that tests ask for.
    #[cfg(test)]
    pub(super) fn test_panics(&self) -> &super::contain::TestPanics {
        &self.test_panics
    }

    /// All worlds of the server.
    pub(crate) fn worlds(&self) -> &Arc<Worlds> {
        &self.worlds
    }

    /// The world that this is; `None` for the first.
    pub(crate) fn world(&self) -> Option<&World> {
        self.world.as_ref()
    }

    /// Its place in the cluster that it is a node of, if it is one.
    #[inline]
    pub(super) fn membership(&self) -> Option<&Membership> {
        self.membership.get()
    }

    /// Makes it a node of a cluster, once.
    pub(super) fn join(&self, membership: Membership) {
        self.membership.get_or_init(|| membership);
    }

    /// Locks the engine.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        let mut engine = self.engine.lock();
        engine.observers.end_direct_calls();
        engine
    }

    /// Locks the engine, unless somebody else has.
    pub(super) fn try_engine(&self) -> Option<MutexGuard<'_, Engine>> {
        self.engine.try_lock()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The wake-up time of the timer task.
    pub(crate) fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    /// Runs one request of a client without a socket as a batch of its own, and appends its messages and its reply to
    /// `output`, those that waited before first. `None` if its session has ended.
    pub(crate) fn call(&self, session: SessionId, request: Request<'_>, output: &mut ReplyBuffer) -> Option<Flow> {
        // Not `engine`, which ends a row of direct calls.
        let mut engine = self.engine.lock();
        if engine.persistence.shutdown.has_begun {
            return None;
        }
        let mut shows_data = fetch(&mut engine, session, output)?;
        engine.begin_direct_call(self.clock.now());
        let before = engine.due_state();
        let flow = self.run_in(&mut engine, session, request, output);
        // A brief command leaves its session as it was and pushes nothing to it; what it may make fall due is a change.
        let is_brief = engine.is_timed_later();
        if !is_brief {
            engine.sessions.account_memory(session);
        }
        engine.end_batch();
        self.complete(&mut engine);
        let may_be_due = !is_brief || before != engine.due_state();
        if may_be_due {
            self.wake_timer_since(&engine, before);
        }
        let mut offset = release_offset(&mut engine);
        if flow == Flow::Next && !is_brief {
            shows_data |= fetch(&mut engine, session, output)?;
        }
        if shows_data {
            offset = self.aof_offset(&engine);
        }
        drop(engine);
        self.deliver_and_settle_if(may_be_due);
        self.wait_released(offset);
        Some(flow)
    }

    /// Appends what waits for a client without a socket to `output`, as soon as all changes that it may show are where
    /// the append-only file has to have them. `None` if its session has ended.
    pub(crate) fn fetch(&self, session: SessionId, output: &mut ReplyBuffer) -> Option<()> {
        let mut engine = self.engine();
        let offset = if fetch(&mut engine, session, output)? { self.aof_offset(&engine) } else { 0 };
        drop(engine);
        self.wait_released(offset);
        Some(())
    }

    /// Waits until a reply may leave that depends on the append-only file up to `offset`; 0 is nothing to wait for.
    fn wait_released(&self, offset: u64) {
        if offset > 0 {
            self.worlds.aof().wait_released(offset);
        }
    }

    /// Runs `act` on the engine outside of any request, then carries out what follows from it, as after a batch.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut Engine) -> R) -> R {
        let result = self.act_without_delivery(act);
        self.deliver_and_settle();
        result
    }

    /// Like [`Shared::act`], but the messages that a node of a cluster sends by it are not delivered yet.
    pub(super) fn act_without_delivery<R>(&self, act: impl FnOnce(&mut Engine) -> R) -> R {
        self.act_on_locked(&mut self.engine(), act)
    }

    /// Like [`Shared::act_without_delivery`], for whoever has locked the engine.
    pub(super) fn act_on_locked<R>(&self, engine: &mut Engine, act: impl FnOnce(&mut Engine) -> R) -> R {
        let before = self.begin_batch(engine);
        let result = act(engine);
        waits::wake_waiters(engine);
        engine.unblock_ready();
        self.end_batch(engine, before);
        result
    }

    /// Begins a batch; returns what is due, for [`Shared::end_batch`].
    pub(crate) fn begin_batch(&self, engine: &mut Engine) -> DueState {
        engine.begin_batch(self.clock.now());
        engine.due_state()
    }

    /// Runs one request of a batch that has begun. Its time counts from the end of the request before it, or from when
    /// that was last timed.
    pub(crate) fn run_in(
        &self,
        engine: &mut Engine,
        session: SessionId,
        request: Request<'_>,
        output: &mut ReplyBuffer,
    ) -> Flow {
        let flow = engine.run_zero_copy(engine.now(), session, request, output);
        if !engine.effects.is_empty() {
            // A request that waits has no reply that pushes could go with, so its client is woken as others are.
            let has_reply = !matches!(flow, Flow::Block | Flow::HeldBack(_) | Flow::CallHost);
            self.carry_out(engine, has_reply.then_some(session));
        }
        if engine.is_timed_later() {
            return flow;
        }
        engine.finish(self.clock.now(), request);
        if flow == Flow::Block && engine.scripts.is_busy() {
            self.wakeup.no_later_than(engine.now());
        }
        if let Flow::HeldBack(moment) = flow {
            self.wakeup.no_later_than(moment);
        }
        flow
    }

    /// Ends a batch that began in the state `before`, and has the timer wake for what falls due earlier now. Returns
    /// the offset of the append-only file before which the batch's replies may not leave; 0 if they may at once.
    pub(crate) fn end_batch(&self, engine: &mut Engine, before: DueState) -> u64 {
        engine.end_batch();
        self.complete(engine);
        self.wake_timer_since(engine, before);
        release_offset(engine)
    }

    /// Sets the timer for what may fall due earlier than in the state `before`.
    fn wake_timer_since(&self, engine: &Engine, before: DueState) {
        let next = engine.next_due_since(before).filter(|_| self.is_timer_used(engine));
        next.into_iter().for_each(|moment| self.wakeup.no_later_than(moment));
    }

    /// Completes a batch or a tick: sends gathered invalidations, evicts clients, carries out the effects, and wakes
    /// the timer if keys must be evicted.
    pub(crate) fn complete(&self, engine: &mut Engine) {
        tracking::broadcast(engine);
        engine.evict_clients();
        replication::complete_batch(engine);
        if let Some((node, offset)) = replication::changed_offset(engine) {
            self.publish_offset(node, offset);
        }
        if !engine.effects.is_empty() {
            self.carry_out(engine, None);
        }
        if let Some(opinion) = agreement::changed_opinion(engine) {
            self.publish_opinion(opinion);
        }
        if engine.effects.propagation.has_more() && engine.persistence.aof.is_on() {
            self.append_to_aof(engine);
        }
        if engine.databases.is_evicting() {
            self.wakeup.no_later_than(engine.now());
        }
    }

    /// Connects a client; `None` when there are too many, or none may enter this world.
    pub(crate) fn connect(&self, origin: Origin) -> Option<(SessionId, Arc<WakeFlags>)> {
        let mut engine = self.engine();
        // Read under the lock, so that the engine's time never goes back.
        let now = self.clock.now();
        if !self.is_open() || (self.is_down() && !engine.timing.pause().is_node_paused()) {
            return None;
        }
        let session = engine.connect(now, origin)?;
        let timeout = Duration::from_secs(engine.settings.timeout_s.into());
        let wake_flags = Arc::new(WakeFlags::default());
        self.wake_flags.lock().insert(session, Arc::clone(&wake_flags));
        self.carry_out(&mut engine, None);
        drop(engine);
        if !timeout.is_zero() {
            self.wakeup.no_later_than(later(now, timeout));
        }
        Some((session, wake_flags))
    }

    /// Disconnects a client. A temporary world ends with the last one that somebody has connected.
    pub(crate) fn disconnect(&self, session: SessionId) {
        let mut engine = self.engine();
        // One that was killed has no session any more.
        let is_of_user = engine.sessions.get(session).is_none_or(|client| client.origin.is_of_user());
        engine.disconnect(session);
        self.wake_flags.lock().remove(&session);
        self.carry_out(&mut engine, None);
        if is_of_user {
            self.end_if_left(&mut engine);
        }
    }

    /// Sets a wake flag of one session, if it still exists.
    pub(crate) fn notify(&self, session: SessionId, flag: WakeFlag) {
        if let Some(wake_flags) = self.wake_flags.lock().get(&session) {
            wake_flags.notify(flag);
        }
    }

    /// Sets a wake flag of every session.
    pub(crate) fn notify_all(&self, flag: WakeFlag) {
        for wake_flags in self.wake_flags.lock().values() {
            wake_flags.notify(flag);
        }
    }

    /// The sessions that are still to be woken for pushes.
    pub(crate) fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// Whether it is a node of a cluster that was killed, and not started again, or is paused.
    pub(super) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Acquire)
    }

    /// Records whether it is such a node, under its engine's lock; returns what was recorded before.
    pub(super) fn set_down(&self, is_down: bool) -> bool {
        self.is_down.swap(is_down, Ordering::AcqRel)
    }

    /// Saves the data, if they are to be, and ends the server; true unless they cannot be saved (signals, the drop of
    /// an embedded server).
    pub(crate) fn save_and_stop(&self, options: ShutdownOptions) -> bool {
        self.act(|engine| persistence::prepare_shutdown(engine, options)).inspect(|()| self.stop()).is_ok()
    }

    /// Whether the data may have to be saved before the server ends.
    pub(crate) fn saves_at_end(&self) -> bool {
        self.saves_at_end.load(Ordering::Relaxed)
    }

    /// Starts a thread for a save of this world, which is the first.
    pub(super) fn start_save(
        &self,
        save: BackgroundSave,
        write: impl FnOnce(&Shared, &AtomicBool) + Send + 'static,
    ) -> Result<(), String> {
        let shared = self.worlds.first().ok_or("the server is ending")?;
        self.worlds.saver().start(save, move |is_stopped| write(&shared, is_stopped))
    }

    /// The offset of the append-only file before which no reply may leave that shows all changes so far; 0 while there
    /// is none.
    pub(crate) fn aof_offset(&self, engine: &Engine) -> u64 {
        if engine.persistence.aof.is_on() { engine.persistence.aof.last_offset(&engine.settings.files) } else { 0 }
    }

    /// Ends the server: no more clients are accepted, and then all connections are closed.
    pub(crate) fn stop(&self) {
        self.reach(Phase::Ending);
    }

    /// Starts closing all connections; the listeners are closed already.
    pub(crate) fn close_connections(&self) {
        self.reach(Phase::Closing);
    }

    /// Whether the server was asked to end.
    pub(crate) fn is_ending(&self) -> bool {
        *self.phase.borrow() > Phase::Serving
    }

    /// Waits until [`Shared::stop`] is called.
    pub(crate) async fn stopped(&self) {
        self.reached(Phase::Ending).await;
    }

    /// Waits until [`Shared::close_connections`] is called.
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

/// Whether the settings may require a save, or a complete append-only file, when a signal ends the server.
fn saves_at_end(settings: &Settings) -> bool {
    let asks = |words: &str| words.split(' ').any(|word| word == "save");
    let (files, process) = (&settings.files, &settings.process);
    !files.save_points.is_empty() || files.appends || asks(&process.on_sigint) || asks(&process.on_sigterm)
}

/// The offset of the append-only file before which the replies of a batch that ends may not leave; 0 if they may.
fn release_offset(engine: &mut Engine) -> u64 {
    if engine.persistence.aof.is_on() { engine.persistence.aof.end_batch(&engine.settings.files) } else { 0 }
}

/// Takes what the engine holds for a client without a socket; returns whether there was something that may show data.
fn fetch(engine: &mut Engine, session: SessionId, output: &mut ReplyBuffer) -> Option<bool> {
    let client = engine.sessions.get_mut(session)?;
    let shows_data = client.push_queue.shows_data();
    if !client.push_queue.is_empty() {
        client.push_queue.take(output.written_mut(), usize::MAX);
        engine.check_output_limit(session, 0);
    }
    Some(shows_data)
}
