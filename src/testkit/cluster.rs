//! Control over the nodes of a world that is a cluster, for a test in Rust.

use std::time::Duration;

use super::world::refused;
use super::{CallError, World};
use crate::engine::state::replication::{FailoverWay, Lag};
use crate::engine::{KitError, LinkOrder, NodeOrder, SlotMigrationStep};
use crate::value::hash_slot::hash_slot;

impl World {
    /// Returns the nodes of the cluster in the order of their numbers, those that are down too, but not those that were
    /// removed; of a world that is no cluster itself alone.
    ///
    /// A node is a [`World`], too: it has the name of the cluster's world, followed by `.node-1`, `.node-2` and so on
    /// but for the first one. Those of the first world are `default`, `node-1`, `node-2`.
    ///
    /// ```
    /// let server = dunlin::Server::cluster(3).replicas(1).start()?;
    /// let (cart, stock) = (server.world("cart")?, server.world("stock")?); // each a cluster of its own
    /// cart.fail_over(3)?;
    /// cart.nodes()[3].client()?.call(["SET", "bar", "1"])?;
    /// assert_eq!(stock.nodes()[0].client()?.call(["GET", "bar"])?, dunlin::Reply::Null);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn nodes(&self) -> Vec<World> {
        let nodes = self.shared().cluster().nodes();
        if nodes.is_empty() {
            return vec![self.clone()];
        }
        nodes.into_iter().map(|shared| self.beside(shared)).collect()
    }

    /// Returns the node of the cluster with this number, one of [`World::nodes`].
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node.
    pub fn node(&self, number: usize) -> Result<World, CallError> {
        let cluster = self.shared().cluster();
        if number == 0 && cluster.nodes().is_empty() {
            return Ok(self.clone());
        }
        cluster.node(number).map(|shared| self.beside(shared)).map_err(refused)
    }

    /// Returns the number of this node in its cluster; 0 for a world that is no cluster.
    pub fn node_number(&self) -> usize {
        self.shared().node_number()
    }

    /// Returns the URLs of all nodes of the cluster, which some clients want all of; [`World::url`].
    pub fn urls(&self) -> Vec<String> {
        self.nodes().iter().map(World::url).collect()
    }

    /// Returns the node that owns the slot of a key: the last primary that has claimed it.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).replicas(1).start()?;
    /// assert_eq!(cluster.primary_of("bar")?.url(), cluster.urls()[0]);
    /// cluster.fail_over(3)?;
    /// assert_eq!(cluster.primary_of("bar")?.url(), cluster.node(3)?.url());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: no node that is up owns the slot; or this is no cluster.
    pub fn primary_of(&self, key: impl AsRef<[u8]>) -> Result<World, CallError> {
        let slot = hash_slot(key.as_ref());
        let owner = self.shared().cluster().owner_of(slot).ok_or_else(|| refused(KitError::NoOwner(slot)))?;
        Ok(self.beside(owner))
    }

    /// Kills a node of the cluster, as `kill -9` does: its port and its connections close. After `cluster-node-timeout`
    /// the other nodes, if they are a majority, agree that it has failed, and serve no keys as long as its slots must
    /// be covered.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cluster = dunlin::Server::cluster(3).frozen().start()?;
    /// let mut client = cluster.client()?;
    /// cluster.kill_node(2)?;
    /// assert_eq!(client.call(["SET", "bar", "1"])?, "OK");
    /// cluster.advance(Duration::from_secs(15));
    /// let refused = client.call(["SET", "bar", "2"]).expect_err("a third of the slots is not served");
    /// assert_eq!(refused.to_string(), "CLUSTERDOWN The cluster is down");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or it is down.
    pub fn kill_node(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::Kill).map_err(refused)
    }

    /// Pauses a node, as a process that is stopped: its port and its connections stay open, clients connect, and nobody
    /// is answered. The others no longer hear it, and its replica takes over after the node timeout.
    /// [`World::resume_node`] ends that.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cluster = dunlin::Server::cluster(3).replicas(1).frozen().start()?;
    /// cluster.pause_node(0)?;
    /// cluster.advance(Duration::from_secs(16)); // an application that waits for node 0 would have given up by now
    /// assert_eq!(cluster.nodes()[3].client()?.call(["SET", "bar", "1"])?, "OK");
    /// cluster.resume_node(0)?;
    /// let moved = cluster.client()?.call(["GET", "bar"]).expect_err("it has heard that it was replaced");
    /// assert_eq!(moved.to_string(), format!("MOVED 5061 {}", cluster.nodes()[3].addr()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or it is down or paused.
    pub fn pause_node(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::Pause).map_err(refused)
    }

    /// Lets a node go on that was paused: it hears what it has missed, and then answers the requests that have come
    /// meanwhile.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or it is not paused.
    pub fn resume_node(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::Resume).map_err(refused)
    }

    /// Starts a node again that was killed, on its port and with its data.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, it is up, or its port is taken.
    pub fn restart_node(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::Restart).map_err(refused)
    }

    /// Starts a node again that was killed, on its port and without its data.
    ///
    /// # Errors
    /// Those of [`World::restart_node`].
    pub fn restart_node_empty(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::RestartEmpty).map_err(refused)
    }

    /// Adds a node to the cluster: a server starts on the next free port, without slots, and meets the others
    /// (`CLUSTER MEET`). In a network that is divided it is on the side of the first node that is up.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).start()?;
    /// let fourth = cluster.add_node()?;
    /// assert_eq!(fourth.node_number(), 3);
    /// cluster.migrate_slot(5061, 3)?;
    /// assert_eq!(fourth.client()?.call(["SET", "bar", "1"])?, "OK");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: this is no cluster, no node is up, or there is no free port. In another world than the
    /// first one a node has the port of the first world's node with its number, which must be there.
    pub fn add_node(&self) -> Result<World, CallError> {
        self.shared().add_node(None).map(|shared| self.beside(shared)).map_err(refused)
    }

    /// Adds a node to the cluster as [`World::add_node`] does, and makes it a replica of the node with this number.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).start()?;
    /// cluster.client()?.call(["SET", "bar", "1"])?;
    /// let replica = cluster.add_replica(0)?;
    /// cluster.fail_over(replica.node_number())?;
    /// assert_eq!(replica.client()?.call(["GET", "bar"])?, "1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`World::add_node`]; or there is no such node, it is down, or a replica itself.
    pub fn add_replica(&self, of: usize) -> Result<World, CallError> {
        self.shared().add_node(Some(of)).map(|shared| self.beside(shared)).map_err(refused)
    }

    /// Removes a node from the cluster: it ends for good, and all others forget it (`CLUSTER FORGET`), those that are
    /// down, too. Its slots must have moved to others before. Its number is not given out again. Of its [`World`] only
    /// the clock is left, which is that of the others.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).replicas(1).start()?;
    /// cluster.remove_node(4)?;
    /// let numbers: Vec<usize> = cluster.nodes().iter().map(|node| node.node_number()).collect();
    /// assert_eq!(numbers, [0, 1, 2, 3, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, it owns slots, has a replica, or is node 0, with which its world
    /// ends.
    pub fn remove_node(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().remove_node(number).map_err(refused)
    }

    /// Makes a replica replace its primary, as `CLUSTER FAILOVER` at that node does: it gets all writes first, and all
    /// nodes redirect to it when this returns. With a lag ([`World::set_lag`]) it takes over once it has caught up.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).replicas(1).start()?;
    /// cluster.client()?.call(["SET", "bar", "1"])?;
    /// cluster.fail_over(3)?;
    /// assert_eq!(cluster.nodes()[3].client()?.call(["GET", "bar"])?, "1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, it is down, no replica, or its primary is down.
    pub fn fail_over(&self, number: usize) -> Result<(), CallError> {
        let order = NodeOrder::FailOver(FailoverWay::Graceful);
        self.shared().cluster().order_node(number, order).map_err(refused)
    }

    /// Makes a replica replace its primary at once, and lose the last writes that this has acknowledged, exactly so
    /// many; a transaction is one. The replica must not have applied them yet: [`World::set_lag_in_writes`] or
    /// [`World::set_lag`] keeps it behind.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).replicas(1).start()?;
    /// cluster.set_lag_in_writes(3, 1)?;
    /// let mut client = cluster.client()?;
    /// client.call(["SET", "bar", "first"])?;
    /// assert_eq!(client.call(["SET", "bar", "second"])?, "OK");
    /// cluster.fail_over_losing(3, 1)?;
    /// assert_eq!(cluster.nodes()[3].client()?.call(["GET", "bar"])?, "first");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`World::fail_over`]; or the replica is fewer writes behind.
    pub fn fail_over_losing(&self, number: usize, writes: usize) -> Result<(), CallError> {
        let order = NodeOrder::FailOver(FailoverWay::Losing(writes));
        self.shared().cluster().order_node(number, order).map_err(refused)
    }

    /// Makes a replica apply its primary's writes later by `lag`, on the server's clock; zero, the initial value, means
    /// at once. Writes that it has not applied when its primary is killed are lost.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, it is down, or no replica.
    pub fn set_lag(&self, number: usize, lag: Duration) -> Result<(), CallError> {
        let lag = Lag::Milliseconds(i64::try_from(lag.as_millis()).unwrap_or(i64::MAX));
        self.shared().cluster().order_node(number, NodeOrder::Lag(lag)).map_err(refused)
    }

    /// Keeps a replica a number of writes behind its primary, where a transaction is one write; 0 is the initial value.
    /// A failover loses these writes, acknowledged or not.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cluster = dunlin::Server::cluster(3).replicas(1).frozen().start()?;
    /// cluster.set_lag_in_writes(3, 1)?;
    /// cluster.client()?.call(["SET", "bar", "first"])?;
    /// cluster.client()?.call(["SET", "bar", "second"])?;
    /// cluster.kill_node(0)?;
    /// cluster.advance(Duration::from_secs(16)); // the replica takes over, without the last write
    /// assert_eq!(cluster.nodes()[3].client()?.call(["GET", "bar"])?, "first");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`World::set_lag`].
    pub fn set_lag_in_writes(&self, number: usize, writes: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::Lag(Lag::Writes(writes))).map_err(refused)
    }

    /// Makes a replica apply all that it has got, and its primary's writes at once from now on.
    ///
    /// # Errors
    /// Those of [`World::set_lag`].
    pub fn end_lag(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::Lag(Lag::NONE)).map_err(refused)
    }

    /// Freezes a node's view of the cluster: it ignores the other nodes' messages about slots, roles and failures, and
    /// does not vote. So its redirects become outdated, and a primary that was replaced still takes writes.
    /// [`World::refresh_view`] or a restart ends that.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).start()?;
    /// cluster.make_view_stale(2)?;
    /// cluster.migrate_slot(5061, 1)?;
    /// let moved = cluster.nodes()[2].client()?.call(["GET", "bar"]).expect_err("it does not have the slot");
    /// assert_eq!(moved.to_string(), format!("MOVED 5061 {}", cluster.nodes()[0].addr()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or it is down.
    pub fn make_view_stale(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::StaleView).map_err(refused)
    }

    /// Brings a node's view up to date after [`World::make_view_stale`].
    ///
    /// # Errors
    /// Those of [`World::make_view_stale`].
    pub fn refresh_view(&self, number: usize) -> Result<(), CallError> {
        self.shared().cluster().order_node(number, NodeOrder::FreshView).map_err(refused)
    }

    /// Cuts the links between nodes of different groups; nodes that are in none are a group, too. Links that were cut
    /// before heal. Clients reach all nodes.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or one is in two groups.
    pub fn partition(&self, groups: &[&[usize]]) -> Result<(), CallError> {
        let groups: Vec<Vec<usize>> = groups.iter().map(|group| group.to_vec()).collect();
        self.shared().cluster().partition(&groups).map_err(refused)
    }

    /// Cuts the link between two nodes, so that neither hears the other. Clients reach both. [`World::heal_link`] and
    /// [`World::heal`] connect them again.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or it is the same one twice.
    pub fn cut_link(&self, one: usize, other: usize) -> Result<(), CallError> {
        self.shared().cluster().set_link(one, other, LinkOrder::Cut).map_err(refused)
    }

    /// Delays the messages between two nodes, by the server's clock; with zero, the initial value, they arrive at once.
    /// This applies to the replication stream, published messages, and messages about slots, failures and votes.
    /// Messages in flight are lost when the link is cut, or when one of the nodes is killed or paused.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cluster = dunlin::Server::cluster(3).frozen().start()?;
    /// cluster.delay_link(1, 2, Duration::from_millis(300))?;
    /// cluster.migrate_slot(5061, 1)?; // of which node 2 hears late
    /// let mut client = cluster.nodes()[2].client()?;
    /// let moved = |to: usize| format!("MOVED 5061 {}", cluster.nodes()[to].addr());
    /// assert_eq!(client.call(["GET", "bar"]).expect_err("it has moved").to_string(), moved(0));
    /// cluster.advance(Duration::from_millis(300));
    /// assert_eq!(client.call(["GET", "bar"]).expect_err("it has moved").to_string(), moved(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`World::cut_link`].
    pub fn delay_link(&self, one: usize, other: usize, delay: Duration) -> Result<(), CallError> {
        let delay_ms = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        self.shared().cluster().set_link(one, other, LinkOrder::Delay(delay_ms)).map_err(refused)
    }

    /// Connects two nodes again, without a delay.
    ///
    /// # Errors
    /// Those of [`World::cut_link`].
    pub fn heal_link(&self, one: usize, other: usize) -> Result<(), CallError> {
        self.shared().cluster().set_link(one, other, LinkOrder::Heal).map_err(refused)
    }

    /// Connects all nodes again that [`World::partition`] and [`World::cut_link`] have separated, without the delays
    /// of [`World::delay_link`].
    pub fn heal(&self) {
        self.shared().cluster().heal_links();
    }

    /// Moves a slot, 0 to 16383, from the node that owns it to another one, with its keys. All nodes redirect there
    /// when this returns.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).start()?;
    /// cluster.client()?.call(["SET", "bar", "1"])?;
    /// cluster.migrate_slot(5061, 2)?;
    /// assert_eq!(cluster.nodes()[2].client()?.call(["GET", "bar"])?, "1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, it is down, or it owns the slot; or a key cannot move.
    pub fn migrate_slot(&self, slot: u16, to: usize) -> Result<(), CallError> {
        self.shared().cluster().migrate_slot(slot, to, &SlotMigrationStep::Whole).map_err(refused)
    }

    /// Begins to move a slot: both nodes are told, and no key moves yet. The owner answers `ASK` for keys that it does
    /// not have. [`World::migrate_slot`] moves the keys and ends it, [`World::cancel_slot_migration`] takes it back.
    ///
    /// # Errors
    /// Those of [`World::migrate_slot`].
    pub fn begin_slot_migration(&self, slot: u16, to: usize) -> Result<(), CallError> {
        self.shared().cluster().migrate_slot(slot, to, &SlotMigrationStep::Begin).map_err(refused)
    }

    /// Moves one key of a slot whose migration has begun, if the owner has it; [`World::begin_slot_migration`].
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).start()?;
    /// let mut client = cluster.client()?;
    /// client.call(["MSET", "{bar}1", "1", "{bar}2", "2"])?;
    /// cluster.begin_slot_migration(5061, 2)?;
    /// cluster.migrate_key("{bar}1", 2)?;
    /// let asked = client.call(["GET", "{bar}1"]).expect_err("it has moved");
    /// assert_eq!(asked.to_string(), format!("ASK 5061 {}", cluster.nodes()[2].addr()));
    /// let refused = client.call(["MGET", "{bar}1", "{bar}2"]).expect_err("only one is here");
    /// assert!(refused.to_string().starts_with("TRYAGAIN"));
    /// cluster.cancel_slot_migration(5061, 2)?;
    /// assert_eq!(client.call(["GET", "{bar}1"])?, "1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`World::migrate_slot`].
    pub fn migrate_key(&self, key: impl AsRef<[u8]>, to: usize) -> Result<(), CallError> {
        let key = key.as_ref();
        let step = SlotMigrationStep::Named(vec![key.to_vec()]);
        self.shared().cluster().migrate_slot(hash_slot(key), to, &step).map_err(refused)
    }

    /// Takes the migration of a slot back: it stays with its owner, and the keys that have moved go back there.
    ///
    /// # Errors
    /// Those of [`World::migrate_slot`].
    pub fn cancel_slot_migration(&self, slot: u16, to: usize) -> Result<(), CallError> {
        self.shared().cluster().migrate_slot(slot, to, &SlotMigrationStep::Cancel).map_err(refused)
    }

    /// Moves only `count` keys of a slot, which then stays open: its owner answers `ASK` for a key that has moved, and
    /// `TRYAGAIN` for several keys of which only some have moved. [`World::migrate_slot`] moves the rest.
    ///
    /// # Errors
    /// Those of [`World::migrate_slot`].
    pub fn migrate_keys_of_slot(&self, slot: u16, to: usize, count: usize) -> Result<(), CallError> {
        let cluster = self.shared().cluster();
        cluster.migrate_slot(slot, to, &SlotMigrationStep::Begin).map_err(refused)?;
        cluster.migrate_slot(slot, to, &SlotMigrationStep::Keys(count)).map_err(refused)
    }
}
