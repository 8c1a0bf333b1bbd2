//! Orders of the test kit for the nodes of a cluster: it kills, pauses and restarts them, makes replicas take over or
//! lag, and moves slots between them.

use std::sync::Arc;

use super::{BusMessage, Cluster, LOCAL};
use crate::engine::cluster::NodeId;
use crate::engine::exec::{agreement, blocking, cluster, failover, lag, messages, replication};
use crate::engine::state::replication::Lag;
use crate::engine::{Engine, Error, Flow, KitError, NodeFigures, NodeOrder, Origin, SlotMigrationStep};
use crate::resp::{ReplyBuffer, Requests};
use crate::server::shared::Shared;
use crate::value::hash_slot::hash_slot;

/// The most keys that one MIGRATE moves.
const MOVED_TOGETHER: usize = 100;

/// The time limit of moving keys between nodes, in milliseconds.
const MOVE_TIMEOUT_MS: &str = "5000";

/// Orders of the test kit.
impl Cluster {
    pub(super) fn running_node(&self, number: usize) -> Result<Arc<Shared>, KitError> {
        let node = self.node(number)?;
        if node.is_down() { Err(node.why_down(number)) } else { Ok(node) }
    }

    /// The state of all nodes, in the order of their numbers.
    pub(crate) fn node_figures(&self) -> Vec<NodeFigures> {
        let nodes = self.nodes();
        let ids: Vec<(usize, Option<NodeId>)> = nodes.iter().map(|node| (node.node_number(), node.node_id())).collect();
        let figures = |node: Arc<Shared>| {
            let engine = node.engine();
            let view = engine.peers.cluster.as_ref()?;
            Some(NodeFigures {
                number: node.node_number(),
                port: engine.settings.port,
                id: view.myself().id.to_string(),
                shard: view.myself().shard.to_string(),
                is_up: !node.is_down(),
                is_paused: engine.timing.pause().is_node_paused(),
                has_stale_view: node.has_stale_view(),
                primary: view
                    .primary()
                    .and_then(|primary| ids.iter().find(|(_, id)| *id == Some(primary.id)).map(|(number, _)| *number)),
                lag: engine.peers.replication.as_ref().map_or(Lag::NONE, |replication| replication.lag),
                offset: engine.peers.replication.as_ref().map_or(0, |replication| replication.history.offset),
                slots: view.slots_of(|node| view.is_myself(node)),
                keys: engine.databases.len(),
            })
        };
        nodes.into_iter().filter_map(figures).collect()
    }

    /// Carries out an order for one node: kill, pause, resume, restart, fail over, lag, stale or fresh view.
    ///
    /// # Errors
    /// There is no such node, it is down, paused or up already, its port is taken, or it is no replica.
    pub(crate) fn order_node(&self, number: usize, order: NodeOrder) -> Result<(), KitError> {
        let _orders = self.orders.lock();
        let node = self.node(number)?;
        match (order, node.is_down()) {
            (NodeOrder::Kill, false) => node.kill(&mut node.engine()),
            (NodeOrder::Kill, true) if node.is_paused() => node.kill_paused(),
            (NodeOrder::Pause, false) => node.pause(),
            (NodeOrder::Resume, true) if node.is_paused() => self.resume(&node),
            (NodeOrder::Restart, true) if !node.is_paused() => self.restart(&node, false)?,
            (NodeOrder::RestartEmpty, true) if !node.is_paused() => self.restart(&node, true)?,
            (NodeOrder::Resume | NodeOrder::Restart | NodeOrder::RestartEmpty, false) => {
                return Err(KitError::NodeIsUp(number));
            }
            (_, true) => return Err(node.why_down(number)),
            (NodeOrder::FailOver(way), false) => {
                let ordered = node.act_without_delivery(|engine| failover::order(engine, way));
                ordered.map_err(|error| KitError::NoFailover(number, reason(&error)))?;
            }
            (NodeOrder::Lag(lag), false) => {
                let is_replica = node.act_without_delivery(|engine| {
                    let is_replica = replication::is_replica(engine);
                    is_replica.then(|| lag::set_lag(engine, lag)).is_some()
                });
                if !is_replica {
                    return Err(KitError::NotReplica(number));
                }
            }
            (NodeOrder::StaleView, false) => {
                let _delivery = self.bus.hold_delivery();
                self.bus.set_stale(node.node_number(), true);
                node.act_without_delivery(messages::drop_news);
            }
            (NodeOrder::FreshView, false) => {
                let _delivery = self.bus.hold_delivery();
                if self.bus.set_stale(node.node_number(), false) {
                    self.inform(&node);
                }
            }
        }
        self.review_agreement();
        self.deliver();
        Ok(())
    }

    fn restart(&self, node: &Arc<Shared>, is_empty: bool) -> Result<(), KitError> {
        // First, as a node that cannot listen is to stay as it is.
        let settings = node.engine().settings.clone();
        let resumed = node.with_listeners(|listeners| listeners.resume(&settings)).unwrap_or(Ok(()));
        resumed.map_err(|error| KitError::Listen(error.to_string()))?;
        node.act_without_delivery(|engine| {
            node.set_down(false);
            cluster::start(engine, is_empty);
        });
        self.bus.set_stale(node.node_number(), false);
        self.inform(node);
        node.wake_timer();
        node.broadcast_up();
        Ok(())
    }

    /// Resumes a paused node: connects it again, sends it what it has missed, then serves its clients.
    fn resume(&self, node: &Arc<Shared>) {
        node.act_without_delivery(|engine| {
            node.set_down(false);
            agreement::publish(engine);
        });
        let others = self.nodes();
        others.iter().filter(|other| !Arc::ptr_eq(other, node)).for_each(|other| node.mark_disconnected(other));
        self.inform(node);
        node.broadcast_up();
        self.deliver();
        node.go_on();
    }

    /// The node that owns a slot, if one that is up does. A primary that was replaced and has not heard of it claims
    /// the slot, too, but with an older epoch.
    pub(crate) fn owner_of(&self, slot: u16) -> Option<Arc<Shared>> {
        let claim = |node: &Arc<Shared>| {
            let engine = node.engine();
            engine.peers.cluster.as_ref().filter(|view| view.owns(slot)).map(|view| view.myself().config_epoch)
        };
        let up = self.nodes().into_iter().filter(|node| !node.is_down());
        let claims = up.filter_map(|node| Some((claim(&node)?, node)));
        claims.max_by_key(|(epoch, _)| *epoch).map(|(_, node)| node)
    }

    /// Moves a slot from the node that owns it to another one, or a step of the way, by the commands with which
    /// `redis-cli --cluster reshard` does it.
    ///
    /// # Errors
    /// There is no such node, or one of the commands is refused.
    pub(crate) fn migrate_slot(&self, slot: u16, to: usize, step: &SlotMigrationStep) -> Result<(), KitError> {
        let _orders = self.orders.lock();
        let target = self.running_node(to)?;
        let stays = |why: String| KitError::SlotStays(slot, why);
        let source = self.owner_of(slot).ok_or_else(|| stays("no node owns it".to_owned()))?;
        if Arc::ptr_eq(&source, &target) {
            return Err(stays(format!("node {to} owns it already")));
        }
        let ids = [&source, &target].map(|node| node.node_id().map(|id| id.to_string()).unwrap_or_default());
        let number = slot.to_string();
        let set = |node: &Shared, words: &[&str]| {
            let words = [&["CLUSTER", "SETSLOT", &number], words].concat();
            node.run_own(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()).map_err(stays)
        };
        let outcome = (|| {
            if matches!(step, SlotMigrationStep::Whole | SlotMigrationStep::Begin) {
                set(&target, &["IMPORTING", &ids[0]])?;
                set(&source, &["MIGRATING", &ids[1]])?;
            }
            match step {
                SlotMigrationStep::Whole | SlotMigrationStep::Finish => {
                    source.migrate_keys(&target, slot, usize::MAX).map_err(stays)?;
                    set(&target, &["NODE", &ids[1]])?;
                    // Without slots it follows the new owner by now, and has learned all by that.
                    let follows = replication::is_replica(&source.engine());
                    if follows { Ok(()) } else { set(&source, &["NODE", &ids[1]]) }
                }
                SlotMigrationStep::Keys(most) => source.migrate_keys(&target, slot, *most).map_err(stays),
                SlotMigrationStep::Named(keys) => {
                    match keys.iter().map(|key| hash_slot(key)).find(|other| *other != slot) {
                        Some(other) => Err(stays(format!("the key is in slot {other}"))),
                        None => source.migrate(&target, keys).map_err(stays),
                    }
                }
                SlotMigrationStep::Cancel => {
                    set(&source, &["STABLE"])?;
                    target.migrate_keys(&source, slot, usize::MAX).map_err(stays)?;
                    set(&target, &["STABLE"])
                }
                SlotMigrationStep::Begin => Ok(()),
            }
        })();
        self.deliver();
        outcome
    }
}

impl Shared {
    /// Whether this node is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.engine().timing.pause().is_node_paused()
    }

    /// The error for an order to this node, which is paused or killed.
    fn why_down(&self, number: usize) -> KitError {
        if self.is_paused() { KitError::NodeIsPaused(number) } else { KitError::NodeIsDown(number) }
    }

    /// Ends this node as a process that is killed: its port and its connections close. Its data stay, for the case that
    /// it starts again.
    pub(in crate::server) fn kill(&self, engine: &mut Engine) {
        if !self.set_down(true) {
            self.withdraw_opinion();
            self.broadcast_down(engine);
            messages::drop_all(engine);
            self.forget_sleep(engine);
            self.close_ends(engine);
        }
    }

    /// Ends this node, which is paused.
    pub(super) fn kill_paused(&self) {
        let mut engine = self.engine();
        self.forget_sleep(&mut engine);
        self.close_ends(&mut engine);
    }

    fn close_ends(&self, engine: &mut Engine) {
        self.with_listeners(|listeners| listeners.suspend(&engine.settings));
        self.disconnect_all(engine);
    }

    /// Pauses this node as a process that is stopped: its port and its connections stay open, and nobody is answered.
    fn pause(&self) {
        let mut engine = self.engine();
        if !self.set_down(true) {
            self.withdraw_opinion();
            self.broadcast_down(&engine);
            messages::drop_all(&mut engine);
            blocking::set_node_paused(&mut engine, true);
        }
    }

    /// Tells the others that they no longer hear this node.
    fn broadcast_down(&self, engine: &Engine) {
        let id = engine.peers.cluster.as_ref().map(|view| view.myself().id);
        id.into_iter().for_each(|id| self.cluster().bus.push(self.node_number(), BusMessage::NodeDown(id)));
    }

    /// Tells the others that they hear this node again.
    pub(super) fn broadcast_up(&self) {
        let claim = self.engine().peers.cluster.as_ref().map(|view| view.claim());
        claim.into_iter().for_each(|claim| self.send_to_nodes(BusMessage::NodeUp(claim)));
    }

    /// Runs a command of the test kit itself, which no journal records.
    ///
    /// # Errors
    /// The error with which it is refused.
    pub(super) fn run_own(&self, words: &[&[u8]]) -> Result<(), String> {
        let origin =
            Origin { is_local: true, descriptor: -1, is_test_client: true, is_order: true, ..Origin::default() };
        let (session, _) = self.connect(origin).ok_or("it lets no clients in")?;
        if let Some(own) = self.engine().sessions.get_mut(session) {
            own.authenticated = true;
        }
        let mut output = ReplyBuffer::default();
        let request = Requests::of(words.iter().copied());
        let flow = request.iter().next().and_then(|request| self.call(session, request, &mut output));
        self.disconnect(session);
        let reply = output.into_bytes();
        match reply.strip_prefix(b"-") {
            None if flow == Some(Flow::Next) => Ok(()),
            None => Err("its clients are paused".to_owned()),
            Some(error) => Err(String::from_utf8_lossy(error).trim_end().to_owned()),
        }
    }

    /// Moves keys of a slot to another node, at most so many.
    fn migrate_keys(&self, target: &Shared, slot: u16, most: usize) -> Result<(), String> {
        let mut left = most;
        while left > 0 {
            let keys: Vec<Vec<u8>> = {
                let engine = self.engine();
                let database = engine.databases.get(0);
                let slots = database.hash_slot_keys(slot).take(left.min(MOVED_TOGETHER));
                slots.map(|found| database.key(found).to_vec()).collect()
            };
            if keys.is_empty() {
                break;
            }
            left -= keys.len();
            self.migrate(target, &keys)?;
        }
        Ok(())
    }

    /// Moves these keys to another node.
    fn migrate(&self, target: &Shared, keys: &[Vec<u8>]) -> Result<(), String> {
        let (port, password) = {
            let engine = target.engine();
            (engine.settings.port.to_string(), engine.settings.password.clone())
        };
        let to: [&[u8]; 7] =
            [b"MIGRATE", LOCAL.as_bytes(), port.as_bytes(), b"", b"0", MOVE_TIMEOUT_MS.as_bytes(), b"REPLACE"];
        let login: &[&[u8]] = if password.is_empty() { &[] } else { &[b"AUTH", password.as_bytes()] };
        let words = to.into_iter().chain(login.iter().copied()).chain([&b"KEYS"[..]]);
        self.run_own(&words.chain(keys.iter().map(Vec::as_slice)).collect::<Vec<_>>())
    }
}

/// The text of an error without its code.
fn reason(error: &Error) -> String {
    let line = error.to_string();
    line.strip_prefix("ERR ").unwrap_or(&line).to_owned()
}
