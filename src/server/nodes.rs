//! The nodes of a cluster that run in this process: their start, what they say to each other, the keys that they move,
//! and what the test kit does with them.
//!
//! A node is one more world with a port of its own ([`super::worlds`]); the first world is the first node. What a node
//! says while it runs requests ([`Message`]) is kept in the [`Mailbox`], and delivered when the thread has released the
//! node's lock, before any reply leaves. So a client that reads a reply finds all nodes informed, and a test that has
//! one thread is the same in every run. The clock is one for all nodes: an order for that of one goes to all.
//!
//! Lock order: that of delivery, then an engine's. A thread that holds the lock of one engine takes that of no other,
//! with one exception: MIGRATE to another node ([`Shared::restore`]), which gives up after its timeout. So two nodes
//! that move keys to each other at once both fail, as two servers of Redis do.
//!
//! Costs: a server that is no such node reads one flag after each batch.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::iter;
use std::net::{IpAddr, TcpListener};
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::listen;
use super::listeners::Listeners;
use super::shared::Shared;
use super::worlds::{Worlds, seed_of};
use crate::engine::cluster::{Address, BUS_OFFSET, Claim, Message, Node, NodeId, View};
use crate::engine::exec::cluster;
use crate::engine::{
    ClockOrder, Engine, Flow, KitError, MoveStep, NodeFigures, NodeOrder, Origin, RemoteFault, RemoteRequest,
    RemoteResult, Settings, Transport, WorldName,
};
use crate::resp::{Limits, Parser, ReplyBuffer, Requests};

/// The highest port of a node: that for other nodes is 10,000 above.
const HIGHEST_PORT: u16 = 55_535;

const PORT_TOO_HIGH: &str = "Redis port number too high. Cluster communication port is 10,000 port numbers higher than your Redis port. Your \
     Redis port number must be 55535 or less.";

/// The ports among which free ones for several nodes are looked for: below those that systems give to clients.
const FREE_PORTS: RangeInclusive<u16> = 10_000..=32_000;

/// The number of places at which free ports for several nodes are looked for.
const FREE_PORT_TRIES: u64 = 100;

/// Opens the TCP sockets of a server (none unless `tcp`), those of each node of a cluster together. The nodes have
/// ports one after the other; with port 0 from a free one on.
///
/// # Errors
/// Those of [`listen::open_tcp`]; or there is no port for other nodes above one for clients.
pub(super) fn open_tcp(settings: &Settings, tcp: bool) -> io::Result<VecDeque<Vec<TcpListener>>> {
    if !tcp {
        return Ok(VecDeque::new());
    }
    let cluster = &settings.cluster;
    let last_port = settings.port.checked_add(cluster.nodes.saturating_sub(1));
    let has_nodes = cluster.is_enabled || cluster.nodes > 0;
    if has_nodes && cluster.bus_port == 0 && last_port.is_none_or(|port| port > HIGHEST_PORT) {
        return Err(io::Error::other(PORT_TOO_HIGH));
    }
    let has_own_ports =
        [cluster.bus_port, cluster.announced_port, cluster.announced_bus_port].iter().any(|port| *port != 0);
    if cluster.nodes > 0 && (has_own_ports || !cluster.is_enabled) {
        return Err(io::Error::other("the nodes of one process have ports one after the other, and are a cluster"));
    }
    let files = &settings.files;
    if cluster.nodes > 0 && (files.are_wanted || files.appends || !files.load_file.is_empty()) {
        return Err(io::Error::other("the nodes of one process keep no files, and load none"));
    }
    if cluster.nodes == 0 || settings.port != 0 {
        return open_from(settings, settings.port);
    }
    let places = u64::from(FREE_PORTS.end() - FREE_PORTS.start());
    for attempt in 1..FREE_PORT_TRIES {
        let place = RandomState::new().hash_one(attempt) % places;
        match open_from(settings, FREE_PORTS.start() + place as u16) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            opened => return opened,
        }
    }
    open_from(settings, *FREE_PORTS.start())
}

fn open_from(settings: &Settings, port: u16) -> io::Result<VecDeque<Vec<TcpListener>>> {
    let open = |number: u16| listen::open_tcp(&Settings { port: port + number, ..settings.clone() });
    (0..settings.cluster.nodes.max(1)).map(open).collect()
}

/// Starts the cluster that the settings ask for, if they do: `first` is its first node, and each of the others accepts
/// clients from its sockets.
///
/// # Errors
/// When a socket cannot be registered with the event loop, or the server has none.
pub(super) fn start(first: &Arc<Shared>, seed: u64, sockets: VecDeque<Vec<TcpListener>>) -> io::Result<()> {
    if !first.worlds().are_nodes() {
        return Ok(());
    }
    let now = first.clock().now();
    let port = first.port();
    if port == 0 {
        return Err(io::Error::other("the nodes of a cluster need TCP ports"));
    }
    let ip =
        first.engine().settings.bind.iter().find_map(|name| reachable_ip(name)).unwrap_or_else(|| LOCAL.to_owned());
    let names: Vec<WorldName> = (1..=sockets.len()).map(WorldName::of_node).collect();
    let seeds = iter::once(seed).chain(names.iter().map(|name| seed_of(seed, name)));
    let nodes = (port..).zip(seeds).map(|(port, seed)| {
        let address = Address { ip: ip.clone(), port, bus_port: port + BUS_OFFSET, hostname: String::new() };
        Node { address, ..Node::of_seed(seed, now) }
    });
    let mut views = View::of_cluster(nodes.collect()).into_iter();
    if let Some(view) = views.next() {
        first.act_alone(|engine| cluster::join(engine, view));
    }
    for ((name, view), sockets) in names.iter().zip(views).zip(sockets) {
        first.worlds().make_node(name, view, sockets)?;
    }
    first.worlds().deliver();
    Ok(())
}

/// The address by which clients of this machine reach a server that is bound to a name.
fn reachable_ip(name: &str) -> Option<String> {
    let ip: IpAddr = name.strip_prefix('-').unwrap_or(name).parse().ok()?;
    (!ip.is_unspecified()).then(|| ip.to_string())
}

const LOCAL: &str = "127.0.0.1";

/// What nodes have said and was not delivered yet, in the order in which they said it.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    has_some: AtomicBool,
    letters: Mutex<VecDeque<(WorldName, Letter)>>,
    /// Held while letters are delivered, so that a thread that wants to deliver its own waits until they are.
    delivery: Mutex<()>,
}

/// What one node sends to all others.
#[derive(Debug)]
pub(super) enum Letter {
    /// A message of the cluster.
    Message(Message),
    /// An order for the clock.
    Clock(ClockOrder),
    /// The process of that node has ended.
    Gone(NodeId),
    /// The sender runs again.
    Back(Claim),
}

impl Mailbox {
    fn post(&self, from: WorldName, letter: Letter) {
        self.letters.lock().push_back((from, letter));
        self.has_some.store(true, Ordering::Release);
    }

    /// The next letter. The one before has been delivered: until there is none, other threads wait for the delivery.
    fn take(&self) -> Option<(WorldName, Letter)> {
        let mut letters = self.letters.lock();
        let taken = letters.pop_front();
        self.has_some.store(taken.is_some(), Ordering::Release);
        taken
    }
}

impl Worlds {
    /// Delivers what the nodes have said, and what they say to that. The caller holds no engine's lock.
    #[inline]
    pub(crate) fn deliver(&self) {
        if self.mailbox().has_some.load(Ordering::Acquire) {
            self.deliver_all();
        }
    }

    #[cold]
    fn deliver_all(&self) {
        let _delivery = self.mailbox().delivery.lock();
        while let Some((from, letter)) = self.mailbox().take() {
            if let Letter::Message(Message::Meet { ip, port }) = &letter {
                self.introduce(&from, ip, *port);
                continue;
            }
            let others = self.all().into_iter().filter(|shared| shared.world_name() != from);
            others.for_each(|node| node.receive(&letter));
        }
    }

    /// Makes two nodes, and all that they know, known to each other.
    fn introduce(&self, from: &WorldName, ip: &str, port: u16) {
        let nodes: Vec<Arc<Shared>> = self.all().into_iter().filter(|node| !node.is_down()).collect();
        let known_to = |node: &Arc<Shared>| {
            let engine = node.engine();
            engine.cluster.as_ref().map(|view| view.nodes().to_vec()).unwrap_or_default()
        };
        let ends = nodes.iter().filter(|node| node.world_name() == *from || node.port() == port);
        let mut met: Vec<Node> = Vec::new();
        for node in ends.flat_map(known_to) {
            if met.iter().all(|known| known.id != node.id) {
                met.push(node);
            }
        }
        met.iter_mut().filter(|node| node.address.ip.is_empty()).for_each(|node| ip.clone_into(&mut node.address.ip));
        nodes.iter().for_each(|node| node.act_alone(|engine| cluster::introduce(engine, &met, ip)));
    }

    /// The node that listens there for clients, if it runs; `None` unless this process runs a cluster.
    pub(super) fn node_at(&self, host: &str, port: u16) -> Option<Arc<Shared>> {
        let is_here = is_this_machine(host) || self.settings_at_start().bind.iter().any(|name| name == host);
        if !self.are_nodes() || !is_here {
            return None;
        }
        self.all().into_iter().find(|shared| shared.port() == port && !shared.is_down())
    }
}

/// How long a thread waits for a node's lock before it looks whether the server ends.
const LOCK_PART_MS: u64 = 50;

/// The most keys that one MIGRATE moves.
const MOVED_TOGETHER: usize = 100;

/// The time limit of moving keys between nodes, in milliseconds.
const MOVE_TIMEOUT_MS: &str = "5000";

/// What the test kit does with the nodes.
impl Worlds {
    /// The nodes in the order of their numbers; none unless this process runs a cluster.
    pub(crate) fn nodes(&self) -> Vec<Arc<Shared>> {
        let mut nodes = if self.are_nodes() { self.all() } else { Vec::new() };
        nodes.sort_by_key(|node| node.world_name().node_number());
        nodes
    }

    fn node(&self, number: usize) -> Result<Arc<Shared>, KitError> {
        self.nodes().into_iter().nth(number).ok_or(KitError::NoNode(number))
    }

    fn running_node(&self, number: usize) -> Result<Arc<Shared>, KitError> {
        let node = self.node(number)?;
        if node.is_down() { Err(KitError::NodeIsDown(number)) } else { Ok(node) }
    }

    /// The state of all nodes, in the order of their numbers.
    pub(crate) fn node_figures(&self) -> Vec<NodeFigures> {
        let figures = |(number, node): (usize, Arc<Shared>)| {
            let engine = node.engine();
            let view = engine.cluster.as_ref()?;
            Some(NodeFigures {
                number,
                port: engine.settings.port,
                id: view.myself().id.to_string(),
                is_up: !node.is_down(),
                slots: view.slots_of(|node| view.is_myself(node)),
                keys: engine.databases.len(),
            })
        };
        self.nodes().into_iter().enumerate().filter_map(figures).collect()
    }

    /// Kills a node, or starts it again.
    ///
    /// # Errors
    /// There is no such node, it is down or up already, or its port is taken.
    pub(crate) fn order_node(&self, number: usize, order: NodeOrder) -> Result<(), KitError> {
        let node = self.node(number)?;
        match (order, node.is_down()) {
            (NodeOrder::Kill, true) => return Err(KitError::NodeIsDown(number)),
            (NodeOrder::Kill, false) => node.kill(&mut node.engine()),
            (_, false) => return Err(KitError::NodeIsUp(number)),
            (order, true) => self.restart(&node, order == NodeOrder::RestartEmpty)?,
        }
        self.deliver();
        Ok(())
    }

    fn restart(&self, node: &Shared, is_empty: bool) -> Result<(), KitError> {
        let settings = node.act_alone(|engine| {
            if is_empty {
                cluster::empty(engine);
            }
            cluster::start(engine);
            node.set_down(false);
            engine.settings.clone()
        });
        for other in self.nodes().iter().filter(|other| !ptr::eq(&raw const ***other, node)) {
            let claim = other.engine().cluster.as_ref().map(|view| view.claim());
            match claim {
                Some(claim) if other.is_down() => node.receive(&Letter::Gone(claim.node.id)),
                Some(claim) => node.receive(&Letter::Back(claim)),
                None => {}
            }
        }
        let resumed = node.with_listeners(|listeners| listeners.resume(&settings)).unwrap_or(Ok(()));
        if let Err(error) = resumed {
            node.set_down(true);
            return Err(KitError::Listen(error.to_string()));
        }
        let claim = node.engine().cluster.as_ref().map(|view| view.claim());
        claim.into_iter().for_each(|claim| node.say(Letter::Back(claim)));
        Ok(())
    }

    /// Moves a slot from the node that owns it to another one, or a step of the way, by the commands with which
    /// `redis-cli --cluster reshard` does it.
    ///
    /// # Errors
    /// There is no such node, or one of the commands is refused.
    pub(crate) fn move_slot(&self, slot: u16, to: usize, step: MoveStep) -> Result<(), KitError> {
        let target = self.running_node(to)?;
        let stays = |why: String| KitError::SlotStays(slot, why);
        let owns = |node: &Arc<Shared>| node.engine().cluster.as_ref().is_some_and(|view| view.owns(slot));
        let source = self.nodes().into_iter().find(|node| !node.is_down() && owns(node));
        let source = source.ok_or_else(|| stays("no node owns it".to_owned()))?;
        if Arc::ptr_eq(&source, &target) {
            return Err(stays(format!("node {to} owns it already")));
        }
        let ids = [&source, &target].map(|node| node.id().unwrap_or_default());
        let number = slot.to_string();
        let set = |node: &Shared, words: &[&str]| {
            let words = [&["CLUSTER", "SETSLOT", &number], words].concat();
            node.run_own(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()).map_err(stays)
        };
        let outcome = (|| {
            if matches!(step, MoveStep::Whole | MoveStep::Begin) {
                set(&target, &["IMPORTING", &ids[0]])?;
                set(&source, &["MIGRATING", &ids[1]])?;
            }
            match step {
                MoveStep::Whole | MoveStep::Finish => {
                    source.migrate_keys(&target, slot, usize::MAX).map_err(stays)?;
                    set(&target, &["NODE", &ids[1]])?;
                    set(&source, &["NODE", &ids[1]])
                }
                MoveStep::Keys(most) => source.migrate_keys(&target, slot, most).map_err(stays),
                MoveStep::Cancel => set(&target, &["STABLE"]).and_then(|()| set(&source, &["STABLE"])),
                MoveStep::Begin => Ok(()),
            }
        })();
        self.deliver();
        outcome
    }
}

/// Whether a host is this machine, as nodes of one process are reached.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback() || ip.is_unspecified())
}

/// The part of a [`Shared`] that concerns it as one of the nodes of a cluster.
impl Shared {
    /// Keeps what this node says, to be delivered to the others.
    pub(super) fn say(&self, letter: Letter) {
        // The clock of a node that is down goes on.
        let is_heard = !self.is_down() || matches!(letter, Letter::Clock(_));
        if self.worlds().are_nodes() && is_heard {
            self.worlds().mailbox().post(self.world_name(), letter);
        }
    }

    /// The id of this node.
    fn id(&self) -> Option<String> {
        self.engine().cluster.as_ref().map(|view| view.myself().id.to_string())
    }

    /// Ends this node as a process that is killed: its port and its connections close. Its data stay, for the case that
    /// it starts again.
    pub(super) fn kill(&self, engine: &mut Engine) {
        if self.set_down(true) {
            return;
        }
        let id = engine.cluster.as_ref().map(|view| view.myself().id);
        id.into_iter().for_each(|id| self.worlds().mailbox().post(self.world_name(), Letter::Gone(id)));
        self.with_listeners(Listeners::suspend);
        self.close_all(engine);
    }

    /// Runs a command of the test kit itself, which no journal records.
    ///
    /// # Errors
    /// The error with which it is refused.
    fn run_own(&self, words: &[&[u8]]) -> Result<(), String> {
        let origin = Origin { is_local: true, descriptor: -1, is_test_client: true, ..Origin::default() };
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
        let (port, password) = {
            let engine = target.engine();
            (engine.settings.port.to_string(), engine.settings.password.clone())
        };
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
            let to: [&[u8]; 7] =
                [b"MIGRATE", LOCAL.as_bytes(), port.as_bytes(), b"", b"0", MOVE_TIMEOUT_MS.as_bytes(), b"REPLACE"];
            let login: &[&[u8]] = if password.is_empty() { &[] } else { &[b"AUTH", password.as_bytes()] };
            let words = to.into_iter().chain(login.iter().copied()).chain([&b"KEYS"[..]]);
            self.run_own(&words.chain(keys.iter().map(Vec::as_slice)).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// The port of this node; `None` if it is no node beside others.
    pub(crate) fn node_port(&self) -> Option<u16> {
        self.worlds().are_nodes().then(|| self.port())
    }

    /// Takes what another node has said.
    fn receive(&self, letter: &Letter) {
        match letter {
            Letter::Clock(order) => self.obey_alone(*order),
            _ if self.is_down() => {}
            Letter::Message(Message::Claim(claim)) => self.act_alone(|engine| cluster::take_claim(engine, claim)),
            Letter::Message(Message::Publish { from, channel, payload }) => {
                self.act_alone(|engine| cluster::take_published(engine, *from, channel, payload));
            }
            Letter::Message(Message::Suspects { from, node, since }) => {
                self.act_alone(|engine| cluster::take_report(engine, *from, *node, *since));
            }
            Letter::Message(Message::Failed { from, node, since }) => {
                self.act_alone(|engine| cluster::take_failure(engine, *from, *node, *since));
            }
            Letter::Gone(node) => self.act_alone(|engine| cluster::lose(engine, *node)),
            Letter::Back(claim) => self.act_alone(|engine| {
                cluster::hear(engine, claim.node.id);
                cluster::take_claim(engine, claim);
            }),
            // The nodes at both ends are introduced to each other instead.
            Letter::Message(Message::Meet { .. }) => {}
        }
    }

    /// Locks the engine within that many milliseconds, unless the server ends meanwhile.
    fn lock_within(&self, mut left_ms: u64) -> Option<MutexGuard<'_, Engine>> {
        while left_ms > 0 && !self.is_ending() {
            let part_ms = left_ms.min(LOCK_PART_MS);
            if let Some(engine) = self.engine.try_lock_for(Duration::from_millis(part_ms)) {
                return Some(engine);
            }
            left_ms -= part_ms;
        }
        None
    }

    /// Runs the requests of MIGRATE at this node, for a thread that holds the lock of another one.
    pub(super) fn restore(&self, remote: &RemoteRequest) -> RemoteResult {
        let Some(mut engine) = self.lock_within(remote.timeout_ms).filter(|_| !self.is_down()) else {
            return RemoteResult::of(RemoteFault::Reading);
        };
        let origin = Origin {
            transport: Transport::Tcp,
            address: "127.0.0.1:0".to_owned(),
            local_address: "127.0.0.1:0".to_owned(),
            descriptor: -1,
            is_local: true,
            ..Origin::default()
        };
        let Some(session) = engine.connect(self.clock().now(), origin) else {
            return RemoteResult::of(RemoteFault::Reading);
        };
        let before = self.begin_batch(&mut engine);
        let limits = Limits { max_bulk_bytes: engine.settings.max_bulk_bytes, authenticated: true };
        let mut result = RemoteResult::default();
        let greeting = remote.greeting();
        for (bytes, is_greeting) in [(&greeting, true), (&remote.requests, false)] {
            let (mut parser, mut start) = (Parser::new(), 0);
            while let Ok(Some(request)) = parser.next(&bytes[start..], &limits) {
                let mut output = ReplyBuffer::default();
                let flow = self.run_in(&mut engine, session, request, &mut output);
                start += parser.consumed();
                let reply = output.into_bytes();
                let Some(line) = reply.strip_suffix(b"\r\n").filter(|_| flow == Flow::Next) else {
                    // A node that makes clients wait does not answer in time.
                    result.fault = Some(RemoteFault::Reading);
                    break;
                };
                match is_greeting {
                    false => result.replies.push(line.to_vec()),
                    true if line.starts_with(b"-") && result.refusal.is_none() => result.refusal = Some(line.to_vec()),
                    true => {}
                }
            }
            if start < bytes.len() {
                // The node takes no words of that length, and would close a connection.
                result.fault = Some(RemoteFault::Reading);
            }
        }
        self.end_batch(&mut engine, before);
        engine.disconnect(session);
        result
    }
}
