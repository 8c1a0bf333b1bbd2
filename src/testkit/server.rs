//! A server on its own thread, which runs until its handle is dropped.

use std::ops::Deref;
use std::sync::Arc;
#[cfg(feature = "page")]
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::world::{World, refused};
use super::{Builder, CallError, DiskFaultRule, StartError};
use crate::engine::exec::persistence::ShutdownOptions;
use crate::engine::state::replication::{FailoverWay, Lag};
use crate::engine::{KitError, LinkOrder, MoveStep, NodeOrder, WorldName};
#[cfg(feature = "page")]
use crate::server::page::Page;
use crate::server::run::{self, Plan};
use crate::server::wake_flags::WakeFlag;

/// A Redis-compatible server in this process. When it is dropped, it stops and its port is free again. With save points
/// (`.set("save", "3600 1")`) it saves its data first, as Redis does when it is asked to end.
///
/// Start one for each test, or give each test a [`World`] of one server. The server dereferences to its first world, so
/// it has all methods of [`World`].
///
/// ```
/// use std::time::Duration;
///
/// let server = dunlin::Server::start()?;
/// println!("any Redis client can connect to {}", server.url());
///
/// let mut client = server.client()?;
/// client.call(["SET", "session", "ann", "EX", "3600"])?;
/// server.advance(Duration::from_secs(3599));
/// assert_eq!(client.call(["GET", "session"])?, "ann");
/// server.advance(Duration::from_secs(1));
/// assert_eq!(client.call(["GET", "session"])?, dunlin::Reply::Null);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    first: World,
    thread: Option<JoinHandle<()>>,
    #[cfg(feature = "page")]
    page: Option<Page>,
}

impl Server {
    /// Starts a server with Redis's defaults on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// [`StartError::System`] if the system has no free port, descriptor or thread.
    pub fn start() -> Result<Server, StartError> {
        Server::builder().start()
    }

    /// Returns a builder for a server with other options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a builder for a cluster of that many primaries: each has a port of its own and owns a part of the slots,
    /// and all run in this process with one clock. What Redis's nodes take seconds for, they agree on before the reply
    /// to what caused it.
    ///
    /// [`Builder::replicas`] gives each of them replicas. The server dereferences to its first node;
    /// [`Server::nodes`] returns all.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).start()?;
    /// println!("a cluster client connects to {}", cluster.url());
    ///
    /// let [first, _, third] = &cluster.nodes()[..] else { panic!("there are three") };
    /// let moved = first.client()?.call(["GET", "foo"]).expect_err("another node owns the slot of this key");
    /// assert_eq!(moved.to_string(), format!("MOVED 12182 {}", third.addr()));
    /// assert_eq!(third.client()?.call(["SET", "foo", "bar"])?, "OK");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cluster(primaries: u16) -> Builder {
        Builder::default().primaries(primaries)
    }

    pub(super) fn run(plan: Plan) -> Result<Server, StartError> {
        let password = plan.settings.password.clone();
        let server = run::Server::open(plan)?;
        let address = server.addresses().first().copied().ok_or_else(no_address)?;
        let first = World::of(Arc::clone(server.shared()), address, password);
        let serve = move || server.serve();
        let thread = thread::Builder::new().name("dunlin".to_owned()).spawn(serve)?;
        Ok(Server {
            first,
            thread: Some(thread),
            #[cfg(feature = "page")]
            page: None,
        })
    }

    /// Serves the page where the settings say, if they do. The server has its data by now.
    #[cfg(feature = "page")]
    pub(super) fn with_page(mut self) -> Result<Server, StartError> {
        self.page = Page::start(self.first.shared(), &Arc::new(AtomicBool::new(true)))?;
        Ok(self)
    }

    /// Returns the address of the page with its token, for the browser; `None` without [`Builder::page`]. Without what
    /// follows `#`, it is what `/metrics` is appended to.
    #[cfg(feature = "page")]
    pub fn page_url(&self) -> Option<String> {
        self.page.as_ref().map(Page::link)
    }

    /// Returns the world with this name: a private server behind the same port, which is created if it does not exist.
    /// Clients that connect to its URL enter it ([`World::url`]). It remains, with or without clients, until
    /// [`Server::drop_world`] or the server's end.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// let (cart, stock) = (server.world("cart")?, server.world("stock")?);
    /// cart.client()?.call(["SET", "key", "value"])?;
    /// assert_eq!(stock.client()?.call(["GET", "key"])?, dunlin::Reply::Null);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: the name is not 1 to 64 letters, digits, `-`, `_` or `.`; or there are ten thousand
    /// worlds.
    pub fn world(&self, name: &str) -> Result<World, CallError> {
        self.find_or_make(name).map_err(refused)
    }

    fn find_or_make(&self, name: &str) -> Result<World, KitError> {
        let shared = self.first.shared().worlds().find_or_make(&WorldName::parse(name.as_bytes())?)?;
        Ok(self.first.beside(shared))
    }

    /// Returns the nodes of the cluster in the order of their numbers, those that are down too; of any other server the
    /// first world alone.
    ///
    /// A node is a [`World`] named `node-1`, `node-2` and so on, and the first one `default`. Those are all worlds that
    /// such a server has.
    pub fn nodes(&self) -> Vec<World> {
        let nodes = self.first.shared().worlds().nodes();
        if nodes.is_empty() {
            return vec![self.first.clone()];
        }
        nodes.into_iter().map(|shared| self.first.beside(shared)).collect()
    }

    /// Kills a node of the cluster, as a process that ends without a word: its port and its connections close. After
    /// `cluster-node-timeout` the others, if they are a majority, agree that it has failed, and serve no keys while its
    /// slots are required.
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
        self.first.shared().worlds().order_node(number, NodeOrder::Kill).map_err(refused)
    }

    /// Pauses a node, as a process that is stopped: its port and its connections stay open, clients connect, and nobody
    /// is answered. The others no longer hear it, and its replica takes over after the node timeout.
    /// [`Server::resume_node`] ends that.
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
        self.first.shared().worlds().order_node(number, NodeOrder::Pause).map_err(refused)
    }

    /// Lets a node go on that was paused: it hears what it has missed, and then answers the requests that have come
    /// meanwhile.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or it is not paused.
    pub fn resume_node(&self, number: usize) -> Result<(), CallError> {
        self.first.shared().worlds().order_node(number, NodeOrder::Resume).map_err(refused)
    }

    /// Starts a node again that was killed, on its port and with its data.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, it is up, or its port is taken.
    pub fn restart_node(&self, number: usize) -> Result<(), CallError> {
        self.first.shared().worlds().order_node(number, NodeOrder::Restart).map_err(refused)
    }

    /// Starts a node again that was killed, on its port and without its data.
    ///
    /// # Errors
    /// Those of [`Server::restart_node`].
    pub fn restart_node_empty(&self, number: usize) -> Result<(), CallError> {
        self.first.shared().worlds().order_node(number, NodeOrder::RestartEmpty).map_err(refused)
    }

    /// Has a replica replace its primary, as `CLUSTER FAILOVER` at that node does: it gets all writes first, and all
    /// nodes redirect to it when this returns. With a lag ([`Server::set_lag`]) it takes over once it has caught up.
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
        self.first.shared().worlds().order_node(number, order).map_err(refused)
    }

    /// Has a replica apply what its primary sends so much later, by the server's clock; with zero at once, as at first.
    /// What it has not applied when its primary is killed is lost.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, it is down, or no replica.
    pub fn set_lag(&self, number: usize, lag: Duration) -> Result<(), CallError> {
        let lag = Lag::Milliseconds(i64::try_from(lag.as_millis()).unwrap_or(i64::MAX));
        self.first.shared().worlds().order_node(number, NodeOrder::Lag(lag)).map_err(refused)
    }

    /// Has a replica stay that many writes behind its primary, a transaction being one; with 0 none, as at first. These
    /// are what a failover loses, acknowledged or not.
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
    /// Those of [`Server::set_lag`].
    pub fn set_lag_in_writes(&self, number: usize, writes: usize) -> Result<(), CallError> {
        self.first.shared().worlds().order_node(number, NodeOrder::Lag(Lag::Writes(writes))).map_err(refused)
    }

    /// Has a node go on with its present view of the cluster: it misses what the others say of slots, roles and
    /// failures, and does not vote. So its redirects grow old, and a primary that was replaced still takes
    /// writes. [`Server::refresh_view`] or a restart ends that.
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
        self.first.shared().worlds().order_node(number, NodeOrder::StaleView).map_err(refused)
    }

    /// Has a node find out what it has missed since [`Server::make_view_stale`].
    ///
    /// # Errors
    /// Those of [`Server::make_view_stale`].
    pub fn refresh_view(&self, number: usize) -> Result<(), CallError> {
        self.first.shared().worlds().order_node(number, NodeOrder::FreshView).map_err(refused)
    }

    /// Cuts the links between nodes of different groups; nodes that are in none are a group, too. Links that were cut
    /// before heal. Clients reach all nodes.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or one is in two groups.
    pub fn partition(&self, groups: &[&[usize]]) -> Result<(), CallError> {
        let groups: Vec<Vec<usize>> = groups.iter().map(|group| group.to_vec()).collect();
        self.first.shared().worlds().partition(&groups).map_err(refused)
    }

    /// Cuts the link between two nodes, so that neither hears the other. Clients reach both. [`Server::heal_link`] and
    /// [`Server::heal`] connect them again.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is no such node, or it is the same one twice.
    pub fn cut_link(&self, one: usize, other: usize) -> Result<(), CallError> {
        self.first.shared().worlds().set_link(one, other, LinkOrder::Cut).map_err(refused)
    }

    /// Has what two nodes say to each other arrive later, by the server's clock; with zero at once, as at first. That
    /// is the stream from a primary to its replica, what is published, and what they know of slots, failures and
    /// votes. What is in flight when the link is cut, or one of them is killed or paused, is lost.
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
    /// Those of [`Server::cut_link`].
    pub fn delay_link(&self, one: usize, other: usize, delay: Duration) -> Result<(), CallError> {
        let delay_ms = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        self.first.shared().worlds().set_link(one, other, LinkOrder::Delay(delay_ms)).map_err(refused)
    }

    /// Connects two nodes again, without a delay.
    ///
    /// # Errors
    /// Those of [`Server::cut_link`].
    pub fn heal_link(&self, one: usize, other: usize) -> Result<(), CallError> {
        self.first.shared().worlds().set_link(one, other, LinkOrder::Heal).map_err(refused)
    }

    /// Connects all nodes again that [`Server::partition`] and [`Server::cut_link`] have separated, without the delays
    /// of [`Server::delay_link`].
    pub fn heal(&self) {
        self.first.shared().worlds().heal_links();
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
        self.first.shared().worlds().move_slot(slot, to, MoveStep::Whole).map_err(refused)
    }

    /// Moves only so many keys of a slot, which is then open: the node that owns it answers for keys that have moved
    /// with `ASK`, and for several of which some have with `TRYAGAIN`. [`Server::migrate_slot`] does the rest.
    ///
    /// # Errors
    /// Those of [`Server::migrate_slot`].
    pub fn migrate_keys_of_slot(&self, slot: u16, to: usize, count: usize) -> Result<(), CallError> {
        let worlds = self.first.shared().worlds();
        worlds.move_slot(slot, to, MoveStep::Begin).map_err(refused)?;
        worlds.move_slot(slot, to, MoveStep::Keys(count)).map_err(refused)
    }

    /// Starts a rule by which calls of the file system fail or take long, with this name; the rule applies once its
    /// failure is set, and replaces the rule of the same name. [`World::remove_fault`] and [`World::clear_faults`]
    /// remove it.
    pub fn disk_fault(&self, name: &str) -> DiskFaultRule {
        let mut engine = self.first.shared().engine();
        engine.observers.kit().faults.remove(name.as_bytes());
        engine.observers.put_kit_away();
        // The first world of a server with the test kit has them.
        DiskFaultRule::of(&engine.host.disk_faults().cloned().unwrap_or_default(), name)
    }

    /// Returns the names of the existing worlds, the first one first.
    pub fn worlds(&self) -> Vec<String> {
        let figures = self.first.shared().worlds().figures();
        figures.into_iter().map(|world| world.name.as_str().to_owned()).collect()
    }

    /// Makes its worlds keep journals from their start.
    pub(super) fn keep_journals(&self) {
        self.first.shared().worlds().keep_journals();
    }

    /// Returns all existing worlds, the first one first.
    pub(super) fn all(&self) -> impl Iterator<Item = World> {
        self.first.shared().worlds().all().into_iter().map(|shared| self.first.beside(shared))
    }

    /// Ends a world and closes the connections of its clients. The next client to enter this name gets a new world.
    ///
    /// # Errors
    /// [`CallError::Refused`]: no world has this name, or it is the first one.
    pub fn drop_world(&self, name: &str) -> Result<(), CallError> {
        let name = WorldName::parse(name.as_bytes()).map_err(refused)?;
        self.first.shared().worlds().end(&name).map_err(refused)
    }

    /// Makes new worlds start empty, and no longer from the template of [`World::make_template`].
    pub fn drop_template(&self) {
        self.first.shared().worlds().set_template(None);
    }
}

impl Deref for Server {
    type Target = World;

    fn deref(&self) -> &World {
        &self.first
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let shared = self.first.shared();
        // With save points the data are saved first; where that fails, the server ends all the same.
        if !shared.saves_at_end() || !shared.save_and_stop(ShutdownOptions::default()) {
            shared.stop();
        }
        // A direct client that is blocked would wait for ever.
        shared.notify_all(WakeFlag::Close);
        shared.worlds().notify_all(WakeFlag::Close);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the panic was reported where it happened.
            drop(thread.join());
        }
        #[cfg(feature = "page")]
        if let Some(page) = self.page.take() {
            page.join();
        }
    }
}

fn no_address() -> std::io::Error {
    std::io::Error::other("there is no address to listen on")
}
