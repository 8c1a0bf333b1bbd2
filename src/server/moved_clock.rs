//! Moving the clock of a world: runs what falls due on the way.
//!
//! The nodes of a cluster have one clock, so an order for that of one of them is one for all ([`super::nodes`]).

use std::time::Duration;

use super::shared::Shared;
use super::timer::{NextTick, Timer};
use crate::engine::exec::blocking;
use crate::engine::{Advance, ClockOrder, Engine, Now};

impl Shared {
    /// Changes the clock. Everything that falls due on the way to a later moment happens, in order and at its moment.
    pub(super) fn set_clock(&self, engine: &mut Engine, order: ClockOrder) {
        match order {
            ClockOrder::Reach(moment) => self.move_engine_to(engine, moment),
            ClockOrder::Set(moment) => {
                blocking::move_ends_back(engine, moment);
                self.clock().apply_order(order);
            }
            ClockOrder::Speed(_) => self.clock().apply_order(order),
        }
        engine.timing.hold_time(self.clock().is_frozen());
        engine.jump(self.clock().now());
        self.wake_timer();
    }

    /// Changes the clock outside of any request.
    pub(crate) fn apply_order(&self, order: ClockOrder) {
        match order {
            ClockOrder::Reach(moment) => _ = self.advance_all(Advance::To(moment)),
            ClockOrder::Set(_) | ClockOrder::Speed(_) => self.apply_to_all_nodes(order),
        }
    }

    /// Changes the clock of this world alone: the other nodes of a cluster do not follow.
    pub(super) fn apply_to_this_node(&self, order: ClockOrder) {
        self.set_clock(&mut self.engine(), order);
    }

    /// Moves the clock of this world alone on to a moment.
    pub(super) fn move_node_clock_and_wake(&self, moment: Now) {
        self.move_node_clock_to(moment);
        self.wake_timer();
    }

    /// Like [`Shared::move_node_clock_and_wake`], but leaves it to the caller to wake the timer if the clock has moved.
    pub(super) fn move_node_clock_to(&self, moment: Now) {
        self.move_engine_to(&mut self.engine(), moment);
    }

    /// Ends the pause of a node: runs what fell due during the pause, then serves its clients.
    pub(super) fn go_on(&self) {
        let mut engine = self.engine();
        blocking::set_node_paused(&mut engine, false);
        self.move_engine_to(&mut engine, self.clock().now());
        self.complete(&mut engine);
        drop(engine);
        self.wake_timer();
    }

    /// Wakes the timer, whose sleep was computed before the clock changed.
    pub(super) fn wake_timer(&self) {
        self.wakeup().no_later_than(Now::from_us(i64::MIN));
    }

    /// Moves the clock on. Everything that falls due on the way happens, in order and at its moment; when this returns,
    /// nothing is left that was due by then, even on a running clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.advance_all(Advance::By(by));
    }

    pub(super) fn move_engine_to(&self, engine: &mut Engine, target: Now) {
        if engine.scripts.is_busy() || self.is_down() || engine.timing.pause().is_node_paused() {
            // Nothing happens in a process that has ended or is stopped, nor before the end of a script, which is
            // at a moment that nobody knows.
            return self.clock().reach(target);
        }
        engine.timing.hold_time(true);
        let mut timer = Timer::default();
        let mut now = self.clock().now();
        loop {
            now = match timer.tick(self, engine, now) {
                NextTick::Again => now,
                // After its tick, nothing of a moment is left, and nothing falls due at it again.
                NextTick::At(moment) if now < moment && moment <= target => moment,
                NextTick::At(_) | NextTick::Never if now < target => target,
                NextTick::At(_) | NextTick::Never => break,
            };
            self.clock().reach(now);
        }
        engine.timing.hold_time(self.clock().is_frozen());
    }
}
