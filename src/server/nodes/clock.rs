//! The one clock of all nodes of a cluster, as a test moves it.
//!
//! It goes from one moment at which something falls due at any node to the next, and what nodes send to each other is
//! delivered at each. So a failure is noticed, voted on and followed in one step of a test, in the order and at the
//! moments in which it happens on a clock that runs.

use std::sync::Arc;

use super::Cluster;
use crate::engine::exec::due;
use crate::engine::{Advance, ClockOrder, Engine, Now};
use crate::server::clock::later;
use crate::server::shared::Shared;
use crate::server::timer;

/// The most rounds of ticks and deliveries at one moment: what a pause holds back stays due, so there must be a limit.
const MAX_ROUNDS: usize = 4;

impl Shared {
    /// Moves the clock on, which the nodes of a cluster have in common. Returns where it is then; `None` if it was to
    /// go to the next moment at which something falls due, and nothing does.
    pub(crate) fn advance_all(&self, advance: Advance) -> Option<Now> {
        let now = self.clock().now();
        let target = match advance {
            Advance::By(by) => later(now, by),
            Advance::To(moment) => moment,
            Advance::ToNext => self.next_moment()?.max(now),
        };
        self.reach_with_nodes(target);
        Some(target)
    }

    /// The next moment at which something falls due: at this server or, in a cluster, at any node.
    pub(crate) fn next_moment(&self) -> Option<Now> {
        self.with_nodes(|all| {
            all.iter().filter(|node| !node.is_down()).filter_map(|node| node.engine().next_moment()).min()
        })
    }

    /// Moves the clocks of all nodes to a moment; or that of this server, in one step, if it is by itself.
    fn reach_with_nodes(&self, target: Now) {
        let Some(own) = self.membership() else { return self.move_node_clock_and_wake(target) };
        own.cluster.move_clock(|| {
            let mut now = self.clock().now();
            while now < target {
                self.run_due_at(now);
                now = self.next_moment_after(now).filter(|moment| *moment < target).unwrap_or(target);
            }
            self.run_due_at(target);
        });
    }

    /// Makes everything happen that is due at a moment at any node, and what falls due at it by the messages sent then.
    fn run_due_at(&self, moment: Now) {
        for _ in 0..MAX_ROUNDS {
            self.with_nodes(|all| {
                all.iter().for_each(|node| {
                    node.end_sleep_by(moment);
                    node.move_node_clock_to(moment);
                });
            });
            self.cluster().deliver();
            if !self.is_due_at_any_node(moment) {
                return;
            }
        }
    }

    /// Delivers the messages of the nodes and, if the clock is frozen, runs everything that is due. So this is done
    /// before a client reads its reply, and in the same order in every run. A frozen clock goes on to the end of this
    /// node's sleep. The caller holds no lock.
    #[inline]
    pub(crate) fn deliver_and_settle(&self) {
        if let Some(own) = self.membership() {
            own.cluster.deliver();
            if !self.clock().is_frozen() {
                return;
            }
            if let Some(end) = self.sleep_ends() {
                self.reach_with_nodes(end);
            } else if self.is_due_at_any_node(self.clock().now()) {
                let _ticks = own.cluster.ticks.write();
                self.run_due_at(self.clock().now());
            }
        }
    }

    /// Like [`Shared::deliver_and_settle`], but if nothing can have fallen due, as after a read, it only delivers.
    #[inline]
    pub(crate) fn deliver_and_settle_if(&self, may_be_due: bool) {
        match self.membership() {
            Some(own) if !may_be_due => own.cluster.deliver(),
            _ => self.deliver_and_settle(),
        }
    }

    /// Whether something happens at a moment at any node. At one that runs a script nothing does before its end.
    fn is_due_at_any_node(&self, moment: Now) -> bool {
        let is_due = |node: &Shared| {
            let engine = node.engine();
            !engine.scripts.is_busy() && engine.next_moment().is_some_and(|due| due <= moment)
        };
        self.with_nodes(|all| all.iter().any(|node| !node.is_down() && is_due(node)))
    }

    /// The first moment after `now` at which something falls due at any node.
    fn next_moment_after(&self, now: Now) -> Option<Now> {
        self.with_nodes(|all| {
            let running = all.iter().filter(|node| !node.is_down());
            running.filter_map(|node| due::next_moment_after(&node.engine(), now)).min()
        })
    }

    /// Runs a tick of this node's timer, and delivers the messages that it sends. Returns `None` without a tick while a
    /// test moves the clock, which wakes the timer afterwards; and on a frozen clock, where the batch that causes
    /// something due also runs it, in the order of the nodes ([`Shared::deliver_and_settle`]). There the timer does
    /// only work that has no due time.
    pub(in crate::server) fn tick_beside_nodes<R>(&self, tick: impl FnOnce() -> R) -> Option<R> {
        let Some(own) = self.membership() else { return Some(tick()) };
        let ticks = own.cluster.ticks.try_read()?;
        if !self.is_timer_used(&self.engine()) {
            return None;
        }
        self.end_sleep_by(self.clock().now());
        let result = tick();
        own.cluster.deliver();
        drop(ticks);
        self.deliver_and_settle();
        Some(result)
    }

    /// Whether the timer is to wake when something falls due: not at a node with a frozen clock, where it has nothing
    /// to do then, unless there is work without a due time.
    pub(in crate::server) fn is_timer_used(&self, engine: &Engine) -> bool {
        self.membership().is_none() || !self.clock().is_frozen() || timer::has_undated_work(engine)
    }

    /// Moves the clocks of all nodes by an order, or that of this server if it is by itself.
    pub(in crate::server) fn apply_to_all_nodes(&self, order: ClockOrder) {
        let apply = || self.with_nodes(|all| all.iter().for_each(|node| node.apply_to_this_node(order)));
        match self.membership() {
            Some(own) => own.cluster.move_clock(apply),
            None => apply(),
        }
        self.deliver_and_settle();
    }

    fn with_nodes<R>(&self, act: impl FnOnce(&[&Shared]) -> R) -> R {
        let nodes: Vec<Arc<Shared>> = self.cluster().nodes();
        let all: Vec<&Shared> = if nodes.is_empty() { vec![self] } else { nodes.iter().map(|node| &**node).collect() };
        act(&all)
    }
}

impl Cluster {
    /// Runs `act`, which moves the clocks, while no timer ticks: so what is due at one moment happens in the order of
    /// the nodes.
    fn move_clock(&self, act: impl FnOnce()) {
        let ticks = self.ticks.write();
        act();
        drop(ticks);
        let nodes = self.nodes();
        nodes.iter().filter(|node| node.is_timer_used(&node.engine())).for_each(|node| node.wake_timer());
    }
}
