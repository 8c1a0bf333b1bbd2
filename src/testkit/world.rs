//! A world, as a test in Rust uses it: the first world of a server, or another one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{CallError, Client, Entry, FaultRule, Strict, wait};
use crate::commands::dunlin;
use crate::engine::exec::kit::faults;
use crate::engine::state::kit::Filter;
use crate::engine::{ClockOrder, Engine, FIRST_WORLD, SnapshotOrder};
use crate::server::clock::{from_system, to_system};
use crate::server::shared::Shared;
use crate::server::url::escaped;

/// A private server behind a server's port: with its own data, clients, clock, settings, users, scripts and snapshots.
/// [`Server::world`](super::Server::world) creates one; a server dereferences to its first world.
///
/// ```
/// use std::time::Duration;
///
/// let server = dunlin::Server::start()?;
/// let (early, late) = (server.world("early")?, server.world("late")?);
/// late.advance(Duration::from_secs(3600));
/// assert!(late.now() > early.now());
/// println!("any Redis client can connect to {} or {}", early.url(), late.url());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct World {
    shared: Arc<Shared>,
    address: SocketAddr,
    password: String,
    /// The moment when the first world started, by the machine's clock, in microseconds.
    began_us: u64,
}

/// The password in a URL where any password is accepted, as some clients do not authenticate without one.
const ANY_PASSWORD: &str = "any";

impl World {
    pub(super) fn of(shared: Arc<Shared>, address: SocketAddr, password: String) -> World {
        let began_us = shared.engine().host.elapsed_us();
        World { shared, address, password, began_us }
    }

    /// Another world behind the same port.
    pub(super) fn beside(&self, shared: Arc<Shared>) -> World {
        let port = shared.node_port().unwrap_or_else(|| self.address.port());
        World { shared, address: SocketAddr::new(self.address.ip(), port), ..self.clone() }
    }

    /// Calls `act` with the engine, for the tests of this project.
    #[doc(hidden)]
    pub fn with_engine<R>(&self, act: impl FnOnce(&mut Engine) -> R) -> R {
        act(&mut self.shared.engine())
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns its name: `default` for the first world.
    pub fn name(&self) -> &str {
        self.shared.world().map_or(FIRST_WORLD, |world| world.name().as_str())
    }

    /// Returns the address that TCP clients connect to.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for Redis clients: `redis://127.0.0.1:PORT/`, with the password if there is one; or
    /// `redis://world.NAME:PASSWORD@127.0.0.1:PORT/`, where any password is accepted unless the server has one. The
    /// nodes of a cluster have the name of its world, and each its port.
    pub fn url(&self) -> String {
        let name = self.shared.name_of_world();
        let (user, password) = match (Some(name).filter(|name| !name.is_first()), &*self.password) {
            (None, "") => return format!("redis://{}/", self.address),
            (None, password) => (String::new(), password),
            (Some(name), password) => {
                (format!("world.{}", name.as_str()), if password.is_empty() { ANY_PASSWORD } else { password })
            }
        };
        format!("redis://{user}:{}@{}/", escaped(password), self.address)
    }

    /// Opens a port for this world, and returns its address: clients that connect there are in this world, so it serves
    /// programs that take a host and a port but no URL. The port closes with the world. A second call returns the same
    /// address; the first world has the one of the server.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// let cart = server.world("cart")?;
    /// let address = cart.listen()?;
    /// assert_ne!(address, server.addr());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`] if the system has no free port or descriptor, [`CallError::Closed`] if the world has
    /// ended.
    pub fn listen(&self) -> Result<SocketAddr, CallError> {
        let port = self.shared.worlds().port_of(&self.shared).map_err(refused)?.ok_or(CallError::Closed)?;
        Ok(SocketAddr::new(self.address.ip(), port))
    }

    /// Makes this world end when its last client leaves, direct clients included. It has no effect on the first world,
    /// which ends with its server.
    pub fn make_temporary(&self) {
        // The first world stays what it is.
        _ = self.shared.make_temporary();
    }

    /// Makes new worlds start as a copy of the present state of this one: data, settings, users, scripts, functions,
    /// the random generator, the clock and the rules of strict mode. Worlds that are clusters start empty all the same.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// server.client()?.call(["SET", "fixture", "loaded once"])?;
    /// server.make_template();
    /// let mut client = server.world("one")?.client()?;
    /// assert_eq!(client.call(["GETDEL", "fixture"])?, "loaded once");
    /// assert_eq!(server.world("two")?.client()?.call(["GET", "fixture"])?, "loaded once");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn make_template(&self) {
        let template = self.shared.act(|engine| engine.template());
        self.shared.worlds().set_template(Some(template));
    }

    /// Returns a client that calls this world directly, without a socket, and is authenticated.
    ///
    /// # Errors
    /// [`CallError`] if there are as many clients as `maxclients` allows.
    pub fn client(&self) -> Result<Client, CallError> {
        Client::connect(Arc::clone(&self.shared))
    }

    pub(super) fn is_cluster(&self) -> bool {
        !self.shared.cluster().nodes().is_empty()
    }

    /// A client of the test itself, to which no journal, fault, rule or limit applies.
    pub(super) fn test_client(&self) -> Result<Client, CallError> {
        Client::examine(Arc::clone(&self.shared))
    }

    /// The time by which its clock may have advanced by itself.
    pub(super) fn ran_for(&self) -> Duration {
        let engine = self.shared.engine();
        let real = Duration::from_micros(engine.host.elapsed_us().saturating_sub(self.began_us));
        real.mul_f64(engine.host.clock_speed().max(1.0))
    }

    /// The last commands of the journal, up to this number and the oldest first, if there is a journal.
    pub(super) fn last_entries(&self, count: usize) -> Vec<Entry> {
        let engine = self.shared.engine();
        let (journal, all) = (engine.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref()), Filter::default());
        let entries = journal.into_iter().flat_map(|journal| journal.matching(&all, &engine.table));
        let mut entries: Vec<Entry> = entries.cloned().collect();
        entries.drain(..entries.len().saturating_sub(count));
        entries
    }

    /// Starts a fault rule with this name; the rule applies once its failure is set, and replaces the rule of the same
    /// name.
    pub fn fault(&self, name: &str) -> FaultRule<'_> {
        FaultRule::of(&self.shared, name)
    }

    /// Removes a fault rule; returns false if no rule has this name. In a cluster it removes those of all nodes.
    pub fn remove_fault(&self, name: &str) -> bool {
        if self.is_cluster() {
            return self.shared.cluster().remove_faults(name.as_bytes());
        }
        faults::remove(&mut self.shared.engine(), name.as_bytes())
    }

    /// Removes all fault rules, in a cluster those of all nodes. Failures that have already happened remain: a delay
    /// ends at its time.
    pub fn clear_faults(&self) {
        if self.is_cluster() {
            return self.shared.cluster().clear_faults();
        }
        faults::clear(&mut self.shared.engine());
    }

    /// Returns the rules of strict mode, which fail a test for what would break in production.
    pub fn strict(&self) -> Strict<'_> {
        Strict::of(&self.shared)
    }

    /// Waits until a client is blocked on `key` of database 0. A timeout below a millisecond counts as one.
    ///
    /// # Errors
    /// [`CallError::Refused`] if `timeout` passes on its clock; while the clock is frozen, the wait goes on.
    pub fn wait_until_blocked(&self, key: impl AsRef<[u8]>, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(wait::blocked(key), timeout)
    }

    /// Waits until at least this many clients are blocked on `key` of database 0.
    ///
    /// # Errors
    /// Those of [`World::wait_until_blocked`].
    pub fn wait_for_blocked(&self, key: impl AsRef<[u8]>, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(wait::blocked_clients(key, count), timeout)
    }

    /// Waits until at least this many clients are subscribed to a channel.
    ///
    /// # Errors
    /// Those of [`World::wait_until_blocked`].
    pub fn wait_for_subscribers(
        &self,
        channel: impl AsRef<[u8]>,
        count: u64,
        timeout: Duration,
    ) -> Result<(), CallError> {
        self.wait_until(wait::subscribers(channel, count), timeout)
    }

    /// Waits until a fault rule ([`World::fault`]), in a cluster one of this node, has fired at least this many times.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let server = dunlin::Server::start()?;
    /// server.fault("the worker hangs").command("LPOP").silence();
    /// let mut worker = server.client()?;
    /// std::thread::spawn(move || worker.call(["LPOP", "queue"]));
    /// server.wait_until_fired("the worker hangs", 1, Duration::from_secs(10))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`World::wait_until_blocked`]; or no rule has this name.
    pub fn wait_until_fired(&self, rule: &str, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(wait::fired(rule, count), timeout)
    }

    /// Waits until exactly this many clients are connected: until a pool is filled, or a worker is gone. A [`Client`]
    /// counts, too.
    ///
    /// # Errors
    /// Those of [`World::wait_until_blocked`].
    pub fn wait_for_clients(&self, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(wait::clients(count), timeout)
    }

    /// Waits until the `cluster_state` of this node of a cluster is `ok`: it serves keys.
    ///
    /// # Errors
    /// Those of [`World::wait_until_blocked`]; or this is no node of a cluster.
    pub fn wait_until_cluster_is_ok(&self, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(wait::cluster_is_ok(), timeout)
    }

    /// Waits until the `cluster_state` of this node of a cluster is `fail`: it answers `CLUSTERDOWN`.
    ///
    /// # Errors
    /// Those of [`World::wait_until_cluster_is_ok`].
    pub fn wait_until_cluster_fails(&self, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(wait::cluster_fails(), timeout)
    }

    /// Waits until all nodes of the cluster that are up see the same owner of every slot, the same roles and the same
    /// failures, and nothing is to come that would change that: a failover is over, and a partition has healed.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cluster = dunlin::Server::cluster(3).replicas(1).start()?;
    /// cluster.set_speed(1000.0);
    /// cluster.kill_node(0)?;
    /// cluster.nodes()[1].wait_until_cluster_agrees(Duration::from_secs(86_400))?; // by the clock of the server
    /// assert_eq!(cluster.nodes()[3].client()?.call(["SET", "bar", "1"])?, "OK");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`World::wait_until_cluster_is_ok`].
    pub fn wait_until_cluster_agrees(&self, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(wait::cluster_agrees(), timeout)
    }

    /// Waits until all replicas that are connected to this node have its writes; at a replica, until it has applied all
    /// that its primary has sent.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cluster = dunlin::Server::cluster(3).replicas(1).start()?;
    /// cluster.set_lag(3, Duration::from_millis(5))?;
    /// cluster.client()?.call(["SET", "bar", "7"])?;
    /// cluster.wait_until_synced(Duration::from_secs(10))?;
    /// let mut reader = cluster.nodes()[3].client()?;
    /// reader.call(["READONLY"])?;
    /// assert_eq!(reader.call(["GET", "bar"])?, "7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`World::wait_until_blocked`].
    pub fn wait_until_synced(&self, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(wait::synced(), timeout)
    }

    fn wait_until(&self, condition: wait::Words, timeout: Duration) -> Result<(), CallError> {
        self.test_client()?.call(wait::command(condition, timeout)).map(drop)
    }

    /// The server that has the clock: this one, or the first node of the cluster that this one was removed from.
    fn timekeeper(&self) -> Arc<Shared> {
        let cluster = self.shared.cluster();
        let node = cluster.node(self.shared.node_number()).or_else(|_| cluster.node(0));
        node.unwrap_or_else(|_| Arc::clone(&self.shared))
    }

    /// Moves its clock forward, whether it runs or is frozen. Everything that is due on the way happens before this
    /// returns, in order and each at its own moment.
    pub fn advance(&self, by: Duration) {
        self.timekeeper().advance(by);
    }

    /// Moves the clock to the next moment when something is due, and lets it happen; returns that moment, or `None` if
    /// nothing is due. The timeout of idle clients does not count.
    pub fn advance_to_next(&self) -> Option<SystemTime> {
        let timekeeper = self.timekeeper();
        let moment = timekeeper.next_moment()?;
        timekeeper.apply_order(ClockOrder::Reach(moment));
        Some(self.now())
    }

    /// Sets the clock: forward as [`World::advance`] does, or back, but not before 1970.
    pub fn set_time(&self, time: SystemTime) {
        let moment = from_system(time);
        let timekeeper = self.timekeeper();
        let is_later = moment >= timekeeper.clock().now();
        timekeeper.apply_order(if is_later { ClockOrder::Reach(moment) } else { ClockOrder::Set(moment) });
    }

    /// Freezes the clock.
    pub fn freeze(&self) {
        self.timekeeper().apply_order(ClockOrder::Speed(0.0));
    }

    /// Lets the clock run from its present time, as fast as real time.
    pub fn resume(&self) {
        self.set_speed(1.0);
    }

    /// Lets the clock run from its present time, `factor` times as fast as real time. A factor that is not above 0
    /// freezes it.
    pub fn set_speed(&self, factor: f64) {
        self.timekeeper().apply_order(ClockOrder::Speed(if factor > 0.0 { factor } else { 0.0 }));
    }

    /// Takes a snapshot of the whole state under a name, and replaces a snapshot of that name. This takes microseconds,
    /// however much data there is. In a cluster it is one of all nodes.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// let mut client = server.client()?;
    /// client.call(["SET", "visits", "1"])?;
    /// server.snapshot("before");
    /// client.call(["INCR", "visits"])?;
    /// server.rollback("before")?;
    /// assert_eq!(client.call(["GET", "visits"])?, "1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self, name: &str) {
        // Nothing refuses it.
        let _ = self.shared.order_snapshots(&SnapshotOrder::Take(name.into()));
    }

    /// Restores the state of a snapshot, which remains; later snapshots are dropped. The time that this takes is
    /// proportional to the changes.
    ///
    /// # Errors
    /// [`CallError::Refused`]: no snapshot has this name, or a script is running that takes too long; or a node of the
    /// cluster has another role or other slots than at the snapshot, or was added since.
    pub fn rollback(&self, name: &str) -> Result<(), CallError> {
        self.shared.order_snapshots(&SnapshotOrder::RollBack(name.into())).map_err(refused)
    }

    /// Returns the names of the snapshots, the oldest first.
    pub fn snapshots(&self) -> Vec<String> {
        let engine = self.shared.engine();
        engine.databases.snapshots().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Drops a snapshot: later changes stay, and a rollback to older ones is still possible.
    ///
    /// # Errors
    /// [`CallError::Refused`]: no snapshot has this name.
    pub fn drop_snapshot(&self, name: &str) -> Result<(), CallError> {
        self.shared.order_snapshots(&SnapshotOrder::Drop(name.into())).map_err(refused)
    }

    /// Returns all data and functions as lines of commands that would create them, in a fixed order.
    pub fn dump(&self) -> String {
        self.shared.act(|engine| dunlin::dump(engine))
    }

    /// Replaces all data and functions by those that the commands of a text create ([`World::dump`]), or by those of an
    /// RDB file of Redis or Valkey, given as its bytes.
    ///
    /// # Errors
    /// [`CallError::Refused`]: a line is not a command that creates data, or the file is damaged. Nothing has changed
    /// then.
    pub fn load(&self, data: impl AsRef<[u8]>) -> Result<(), CallError> {
        self.shared.act(|engine| dunlin::load(engine, data.as_ref())).map_err(refused)
    }

    /// Returns the lines in which a text and the data differ: `-` for lines that only the text has, `+` for lines that
    /// only the data has. Empty without differences.
    ///
    /// # Errors
    /// [`CallError::Refused`]: a line of the text is not a command that creates data.
    pub fn diff(&self, text: &str) -> Result<String, CallError> {
        self.shared.act(|engine| dunlin::diff(engine, text.as_bytes())).map_err(refused)
    }

    /// Returns the time of its clock.
    pub fn now(&self) -> SystemTime {
        to_system(self.timekeeper().clock().now())
    }
}

pub(super) fn refused(error: impl Into<crate::engine::Error>) -> CallError {
    CallError::Refused(error.into().to_string())
}
