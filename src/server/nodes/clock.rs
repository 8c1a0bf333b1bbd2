//! The one clock of all nodes of a cluster, as a test moves it.
//!
//! It goes from one moment at which something falls due at any node to the next, and what nodes send to each other is
//! delivered at each. So a failure is noticed, voted on and followed in one step of a test, in the order and at the
//! moments in which it happens on a clock that runs.

use std::sync::Arc;

use crate::engine::{Advance, ClockOrder, Now};
use crate::server::clock::later;
use crate::server::shared::Shared;

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

    /// When something happens next without a request, at this server or, in a cluster, at any node.
    pub(crate) fn next_moment(&self) -> Option<Now> {
        self.with_nodes(|all| {
            all.iter().filter(|node| !node.is_down()).filter_map(|node| node.engine().next_moment()).min()
        })
    }

    /// Moves the clocks of all nodes to a moment; or that of this server, in one step, if it is by itself.
    fn reach_with_nodes(&self, target: Now) {
        if !self.worlds().are_nodes() {
            return self.reach_alone(target);
        }
        let mut now = self.clock().now();
        while now < target {
            now = self.next_moment().filter(|moment| now < *moment && *moment < target).unwrap_or(target);
            self.reach_at_once(now);
        }
        // What nodes sent at that moment may have made more fall due at it.
        self.reach_at_once(target);
    }

    /// Moves the clocks to a moment, and delivers what the nodes send by that.
    fn reach_at_once(&self, moment: Now) {
        self.with_nodes(|all| all.iter().for_each(|node| node.reach_alone(moment)));
        self.worlds().deliver();
    }

    /// Has the clocks of all nodes obey an order, or that of this server if it is by itself.
    pub(in crate::server) fn obey_with_nodes(&self, order: ClockOrder) {
        self.with_nodes(|all| all.iter().for_each(|node| node.obey_alone(order)));
        self.worlds().deliver();
    }

    fn with_nodes<R>(&self, act: impl FnOnce(&[&Shared]) -> R) -> R {
        let nodes: Vec<Arc<Shared>> = self.worlds().nodes();
        let all: Vec<&Shared> = if nodes.is_empty() { vec![self] } else { nodes.iter().map(|node| &**node).collect() };
        act(&all)
    }
}
