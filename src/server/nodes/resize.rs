//! Nodes that a test adds to a cluster while it runs, or removes from it.
//!
//! A new node comes to the others as a server of Redis does: it starts by itself, on the next free port, CLUSTER MEET
//! makes it known to all that are within reach, and CLUSTER REPLICATE makes it a replica. Its settings are those with
//! which the server started. A removed node ends as one that is killed, and all others forget it at once, those that
//! are down, too: so none of them brings it back. Its number is not given out again.
//!
//! In another world than the first one a new node has the port of the first world's node with its number.

use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use super::links::{Links, link};
use super::start::{HIGHEST_PORT, PORT_TOO_HIGH, reachable_ip};
use super::{Cluster, Membership};
use crate::engine::cluster::{Claim, MAX_NODES, Node, NodeId, View};
use crate::engine::exec::cluster;
use crate::engine::{KitError, Settings, WorldName};
use crate::server::listen;
use crate::server::shared::Shared;
use crate::server::world::World;

/// A node that is about to start.
struct StartingNode {
    number: usize,
    port: u16,
    /// The sockets of its port; none if it shares that with a node of the first world.
    sockets: Vec<TcpListener>,
}

impl Shared {
    /// Adds a node to the cluster of this one: as a replica of the node with that number, or as a primary without
    /// slots. Whoever reads the reply finds it known to all nodes within its reach.
    ///
    /// # Errors
    /// This server is no cluster, there is no such primary, no node is up, or there is no free port.
    pub(crate) fn add_node(&self, replica_of: Option<usize>) -> Result<Arc<Shared>, KitError> {
        let cluster = &self.membership().ok_or(KitError::NoNodes)?.cluster;
        let _orders = cluster.orders.lock();
        if !self.is_open() {
            return Err(KitError::NoWorld(self.name_of_world().as_str().to_owned()));
        }
        let met = cluster.node_to_meet(replica_of)?;
        let primary = replica_of.and_then(|_| met.node_id());
        let node = self.start_node(cluster, &met)?;
        let joined = node.meet(&met).and_then(|()| match primary {
            Some(primary) => node.run_own(&[b"CLUSTER", b"REPLICATE", primary.as_bytes()]),
            None => Ok(()),
        });
        if let Err(why) = joined {
            cluster.end_node(&node);
            return Err(KitError::NoNewNode(why));
        }
        cluster.review_agreement();
        cluster.deliver();
        Ok(node)
    }

    /// Starts a node that knows no other one, at the side of one if the network is divided.
    fn start_node(&self, cluster: &Arc<Cluster>, beside: &Shared) -> Result<Arc<Shared>, KitError> {
        let (worlds, world) = (self.worlds(), self.name_of_world());
        let StartingNode { number, port, sockets } = self.next_node(cluster, &world)?;
        let name = world.of_node(number);
        WorldName::parse(name.as_str().as_bytes())?;
        let membership = Membership { cluster: Arc::clone(cluster), number, port };
        let within_reach = cluster.within_reach(beside.node_number());
        let node = {
            // The clock neither moves nor gets an order between its copy and the moment at which the node follows it.
            let _ticks = cluster.ticks.read();
            let _delivery = cluster.bus.hold_delivery();
            let view = View::alone(Node::of_seed(worlds.seed_of(&name), beside.clock().now()));
            let node = worlds.make_node(&name, membership, view, beside.clock());
            cluster.append(&node, &within_reach);
            node
        };
        cluster.begin_journal_at(&node);
        if beside.world().is_some_and(World::is_temporary) {
            node.world().into_iter().for_each(World::make_temporary);
        }
        let accept = || match sockets.is_empty() {
            true => Ok(()),
            false => worlds.accept(&node, sockets).map_err(|error| KitError::Listen(error.to_string())),
        };
        let opened = worlds.list_node(&node).and_then(|()| accept());
        if opened.is_err() {
            cluster.end_node(&node);
        }
        opened.map(|()| node)
    }

    /// The number and port of the next node.
    fn next_node(&self, cluster: &Cluster, world: &WorldName) -> Result<StartingNode, KitError> {
        let number = cluster.numbers();
        if cluster.nodes().len() >= MAX_NODES {
            return Err(KitError::NoNewNode(format!("a cluster has at most {MAX_NODES} nodes")));
        }
        if world.is_first() {
            let last = cluster.nodes().iter().map(|node| node.port()).max().unwrap_or_default();
            let by_number = usize::from(self.worlds().settings_at_start().port) + number;
            let first = u16::try_from(by_number).unwrap_or(u16::MAX).max(last.saturating_add(1));
            let (port, sockets) = open_next(self.worlds().settings_at_start(), first)?;
            return Ok(StartingNode { number, port, sockets });
        }
        let nodes = self.worlds().first().map(|first| first.cluster().nodes()).unwrap_or_default();
        let above = nodes.iter().find(|node| node.node_number() >= number);
        let node =
            above.map(|node| StartingNode { number: node.node_number(), port: node.port(), sockets: Vec::new() });
        let why = || format!("it would have the port of node {number} of the world 'default', which has none");
        node.ok_or_else(|| KitError::NoNewNode(why()))
    }

    /// Makes this node and another one known to each other, and to all that the other one knows.
    fn meet(&self, other: &Shared) -> Result<(), String> {
        let ip = reachable_ip(self.worlds().settings_at_start());
        self.run_own(&[b"CLUSTER", b"MEET", ip.as_bytes(), other.port().to_string().as_bytes()])
    }

    /// The address of this node for clients.
    pub(crate) fn client_address(&self) -> String {
        format!("{}:{}", reachable_ip(self.worlds().settings_at_start()), self.port())
    }

    /// The id of this node.
    pub(super) fn node_id(&self) -> Option<NodeId> {
        self.engine().peers.cluster.as_ref().map(|view| view.myself().id)
    }

    /// Answers a question by the view of this node; false if it has none.
    fn sees(&self, question: impl FnOnce(&View) -> bool) -> bool {
        self.engine().peers.cluster.as_deref().is_some_and(question)
    }
}

/// Opens the next free port, from `first` on.
fn open_next(settings: &Settings, first: u16) -> Result<(u16, Vec<TcpListener>), KitError> {
    for port in first..=HIGHEST_PORT {
        match listen::open_tcp(&Settings { port, ..settings.clone() }) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            opened => {
                let sockets = opened.map_err(|error| KitError::Listen(error.to_string()))?;
                return Ok((port, sockets));
            }
        }
    }
    Err(KitError::Listen(PORT_TOO_HIGH.to_owned()))
}

impl Cluster {
    /// The node that a new one meets first: its primary, or else the first one that is up and hears the others.
    fn node_to_meet(&self, primary: Option<usize>) -> Result<Arc<Shared>, KitError> {
        if let Some(number) = primary {
            let node = self.running_node(number)?;
            let is_replica = node.sees(|view| view.myself().is_replica());
            return if is_replica { Err(KitError::IsReplica(number)) } else { Ok(node) };
        }
        let up = self.nodes().into_iter().filter(|node| !node.is_down());
        let first = up.min_by_key(|node| node.has_stale_view());
        first.ok_or_else(|| KitError::NoNewNode("no node is up".to_owned()))
    }

    /// Enters a new node under its number, the highest so far, with links to those within reach.
    fn append(&self, node: &Arc<Shared>, within_reach: &BTreeSet<usize>) {
        let number = node.node_number();
        let others = self.nodes().into_iter().map(|other| other.node_number());
        let apart: Links =
            others.filter(|other| !within_reach.contains(other)).map(|other| link(other, number)).collect();
        self.bus.change_cut_links(|links| links.extend(apart));
        let mut nodes = self.nodes.write();
        nodes.resize(number, None);
        nodes.push(Some(Arc::downgrade(node)));
    }

    /// Removes a node that owns no slots and has no replicas.
    ///
    /// # Errors
    /// There is no such node, it is the first one, owns slots, or has a replica, or another world uses its port.
    pub(crate) fn remove_node(&self, number: usize) -> Result<(), KitError> {
        let _orders = self.orders.lock();
        let node = self.node(number)?;
        if let Some(why) = self.why_it_stays(&node) {
            return Err(KitError::NodeStays(number, why));
        }
        self.end_node(&node);
        Ok(())
    }

    /// The reason why a node cannot be removed, if there is one.
    fn why_it_stays(&self, node: &Arc<Shared>) -> Option<String> {
        let id = node.node_id()?;
        if node.node_number() == 0 {
            return Some("its world ends with it".to_owned());
        }
        let nodes = self.nodes();
        let mut informed = nodes.iter().filter(|node| !node.is_down() && !node.has_stale_view());
        // A new node does not know the slots of one that it has never heard.
        if informed.any(|asked| asked.sees(|view| view.owns_slots(id))) || self.has_best_claim(node) {
            return Some("it owns slots".to_owned());
        }
        if let Some(replica) = nodes.iter().find(|other| other.sees(|view| view.is_replica_of(id))) {
            return Some(format!("node {} is its replica", replica.node_number()));
        }
        let is_first = node.name_of_world().is_first();
        let world = node.worlds().other_world_with_node(node.node_number()).filter(|_| is_first)?;
        Some(format!("a node of the world '{}' is behind its port", world.as_str()))
    }

    /// Whether a node claims a slot that no other one claims with a higher epoch, those that are down included. While
    /// it is down, the claim of one that is up and hears the others is a better one, whatever its epoch.
    fn has_best_claim(&self, node: &Shared) -> bool {
        let claim_of = |node: &Shared| node.engine().peers.cluster.as_ref().map(|view| view.claim());
        let Some(own) = claim_of(node) else { return false };
        let is_heard = |other: &Shared| node.is_down() && !other.is_down() && !other.has_stale_view();
        let better_claim = |other: &Arc<Shared>| {
            claim_of(other).filter(|claim| claim.node.config_epoch > own.node.config_epoch || is_heard(other))
        };
        let better: Vec<Claim> = self.nodes().iter().filter_map(better_claim).collect();
        own.slots.iter().cloned().flatten().any(|slot| !better.iter().any(|claim| claim.contains(slot)))
    }

    /// Ends a node for good, and has all others forget it.
    fn end_node(&self, node: &Arc<Shared>) {
        if node.is_paused() {
            node.kill_paused();
        } else {
            node.kill(&mut node.engine());
        }
        self.deliver();
        let (number, id) = (node.node_number(), node.node_id());
        for other in self.nodes().iter().filter(|other| other.node_number() != number) {
            id.into_iter().for_each(|id| other.act_without_delivery(|engine| cluster::forget_quietly(engine, id)));
        }
        self.nodes.write().get_mut(number).into_iter().for_each(|place| *place = None);
        self.bus.forget(number, id);
        node.end_world(&mut node.engine());
        self.review_agreement();
        self.deliver();
    }
}
