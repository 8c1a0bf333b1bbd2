//! The links between the nodes of a cluster: a test cuts them, one by one or between groups of nodes, or makes them
//! slow, and they heal.
//!
//! Two nodes whose link is cut are disconnected from each other, as if either process had ended for the other: what
//! they send does not arrive. Over a slow link it arrives late; the nodes stay connected, and neither suspects the
//! other however slow the link is. Clients reach all nodes, and so does MIGRATE, which is a client of its target.

use std::collections::{BTreeMap, BTreeSet};

use super::Cluster;
use crate::engine::exec::messages;
use crate::engine::{KitError, LinkOrder};

/// A link as the numbers of its two nodes, the lower one first.
pub(super) type Link = (usize, usize);

/// A set of links.
pub(super) type Links = BTreeSet<Link>;

/// The link between two nodes.
pub(super) fn link(one: usize, other: usize) -> Link {
    (one.min(other), one.max(other))
}

impl Cluster {
    /// Cuts the links between nodes of different groups, which are lists of their numbers; all other nodes are a
    /// group, too. Other links that were cut before heal.
    ///
    /// # Errors
    /// There is no such node, or one is in two groups; nothing has changed then.
    pub(crate) fn partition(&self, groups: &[Vec<usize>]) -> Result<(), KitError> {
        let _orders = self.orders.lock();
        let mut group_of: BTreeMap<usize, Option<usize>> =
            self.nodes().iter().map(|node| (node.node_number(), None)).collect();
        for (number, nodes) in groups.iter().enumerate() {
            for &node in nodes {
                let group = group_of.get_mut(&node).ok_or(KitError::NoNode(node))?;
                if group.replace(number).is_some() {
                    return Err(KitError::InTwoGroups(node));
                }
            }
        }
        let all = group_of.keys().flat_map(|&other| group_of.range(..other).map(move |(&one, _)| (one, other)));
        let cut: Links = all.filter(|(one, other)| group_of[one] != group_of[other]).collect();
        self.change_links(|| self.change_cut_links(|links| *links = cut));
        Ok(())
    }

    /// Connects all nodes again, without any delays.
    pub(crate) fn heal_links(&self) {
        let _orders = self.orders.lock();
        self.change_links(|| {
            self.change_cut_links(Links::clear);
            self.bus.slow_links().into_iter().for_each(|link| self.set_delay_ms(link, 0));
        });
    }

    /// Cuts the link between two nodes, makes it slow, or heals it.
    ///
    /// # Errors
    /// There is no such node, or it is the same one twice.
    pub(crate) fn set_link(&self, one: usize, other: usize, order: LinkOrder) -> Result<(), KitError> {
        let _orders = self.orders.lock();
        self.node(one)?;
        self.node(other)?;
        if one == other {
            return Err(KitError::NoLink(one));
        }
        let link = link(one, other);
        self.change_links(|| match order {
            LinkOrder::Cut => self.change_cut_links(|links| _ = links.insert(link)),
            LinkOrder::Heal => {
                self.change_cut_links(|links| _ = links.remove(&link));
                self.set_delay_ms(link, 0);
            }
            LinkOrder::Delay(delay_ms) => self.set_delay_ms(link, delay_ms),
        });
        Ok(())
    }

    /// Changes links while no message is delivered: one that is sent later must not arrive before one that met the
    /// links as they were. Then delivers what the nodes have sent meanwhile.
    fn change_links(&self, change: impl FnOnce()) {
        let delivery = self.bus.hold_delivery();
        change();
        drop(delivery);
        self.review_agreement();
        self.deliver();
    }

    /// Gives a link another delay. What is in flight arrives as if it had been sent now, unless it arrives earlier.
    fn set_delay_ms(&self, link: Link, delay_ms: i64) {
        if self.bus.set_delay_ms(link, delay_ms) {
            let (one, other) = link;
            for (node, peer) in [(one, other), (other, one)] {
                if let Ok(node) = self.node(node) {
                    node.act_without_delivery(|engine| messages::deliver_within(engine, delay_ms, peer));
                }
            }
        }
    }

    fn change_cut_links(&self, change: impl FnOnce(&mut Links)) {
        let (before, now) = self.bus.change_cut_links(change);
        for &(one, other) in before.symmetric_difference(&now) {
            let (Ok(first), Ok(second)) = (self.node(one), self.node(other)) else { continue };
            self.gossip(&first, &second);
            for (node, peer) in [(&first, &second), (&second, &first)] {
                if now.contains(&(one, other)) || !peer.is_down() {
                    self.record_link_state(node, peer);
                }
            }
        }
    }
}
