//! The start of the nodes of a cluster: their ports, and what they know of each other from the first moment on.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Cluster, LOCAL, Membership};
use crate::engine::cluster::{Address, BUS_OFFSET, MAX_NODES, Node, View};
use crate::engine::exec::cluster;
use crate::engine::{Now, Settings, WorldName};
use crate::server::listen;
use crate::server::shared::Shared;
use crate::server::worlds::Worlds;

/// The highest port of a node: that for other nodes is 10,000 above.
pub(super) const HIGHEST_PORT: u16 = 55_535;

pub(super) const PORT_TOO_HIGH: &str = "Redis port number too high. Cluster communication port is 10,000 port numbers higher than your Redis port. Your \
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
pub(in crate::server) fn open_tcp(settings: &Settings, tcp: bool) -> io::Result<VecDeque<Vec<TcpListener>>> {
    if !tcp {
        return Ok(VecDeque::new());
    }
    let cluster = &settings.cluster;
    let nodes = cluster.nodes();
    if usize::from(nodes) > MAX_NODES || (nodes == 0 && cluster.replicas > 0) {
        return Err(io::Error::other(format!("replicas need a cluster, which has at most {MAX_NODES} nodes")));
    }
    let last_port = settings.port.checked_add(nodes.saturating_sub(1));
    let has_nodes = cluster.is_enabled || nodes > 0;
    if has_nodes && cluster.bus_port == 0 && last_port.is_none_or(|port| port > HIGHEST_PORT) {
        return Err(io::Error::other(PORT_TOO_HIGH));
    }
    let has_own_ports =
        [cluster.bus_port, cluster.announced_port, cluster.announced_bus_port].iter().any(|port| *port != 0);
    if nodes > 0 && (has_own_ports || !cluster.is_enabled) {
        return Err(io::Error::other("the nodes of one process have ports one after the other, and are a cluster"));
    }
    let files = &settings.files;
    if nodes > 0 && (files.loads_at_start || files.appends || !files.load_file.is_empty()) {
        return Err(io::Error::other("the nodes of one process keep no files, and load none"));
    }
    if nodes == 0 || settings.port != 0 {
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
    (0..settings.cluster.nodes().max(1)).map(open).collect()
}

/// Starts the cluster of a server's first world: `first` is its first node, and each of the others accepts clients from
/// its sockets.
///
/// # Errors
/// When a socket cannot be registered with the event loop, or the server has none.
pub(in crate::server) fn start(
    first: &Arc<Shared>,
    cluster: &Arc<Cluster>,
    sockets: VecDeque<Vec<TcpListener>>,
) -> io::Result<()> {
    if first.port() == 0 {
        return Err(io::Error::other("the nodes of a cluster need TCP ports"));
    }
    let (worlds, world) = (first.worlds(), WorldName::first());
    let mut views = views(worlds, &world, first.clock().now()).into_iter();
    first.join(Membership { cluster: Arc::clone(cluster), number: 0, port: first.port() });
    let mut nodes = vec![Arc::clone(first)];
    if let Some(view) = views.next() {
        first.act_without_delivery(|engine| cluster::join(engine, view));
    }
    for ((number, view), sockets) in (1..).zip(views).zip(sockets) {
        let membership = member(cluster, number, &view);
        let node = worlds.make_node(&world.of_node(number), membership, view, worlds.clock_at_start());
        worlds.list_node(&node).map_err(io::Error::other)?;
        worlds.accept(&node, sockets)?;
        nodes.push(node);
    }
    cluster.consist_of(&nodes);
    cluster.begin();
    Ok(())
}

/// Makes the nodes of a world that is a cluster, which have the ports of those of the first world. The caller lists
/// them, and then has the cluster begin ([`Cluster::begin`]).
pub(in crate::server) fn make_nodes(worlds: &Arc<Worlds>, world: &WorldName) -> (Arc<Cluster>, Vec<Arc<Shared>>) {
    let cluster = Arc::new(Cluster::default());
    let views = views(worlds, world, worlds.clock_at_start().now()).into_iter();
    let make = |(number, view)| {
        let membership = member(&cluster, number, &view);
        worlds.make_node(&world.of_node(number), membership, view, worlds.clock_at_start())
    };
    let nodes: Vec<Arc<Shared>> = views.enumerate().map(make).collect();
    cluster.consist_of(&nodes);
    (cluster, nodes)
}

/// The place of a node that knows its port.
fn member(cluster: &Arc<Cluster>, number: usize, view: &View) -> Membership {
    Membership { cluster: Arc::clone(cluster), number, port: view.myself().address.port }
}

/// The address at which the nodes of a server are reached.
pub(super) fn reachable_ip(settings: &Settings) -> String {
    settings.bind.iter().find_map(|name| reachable_ip_of(name)).unwrap_or_else(|| LOCAL.to_owned())
}

/// The view of each node of a world's cluster when it starts.
fn views(worlds: &Worlds, world: &WorldName, now: Now) -> Vec<View> {
    let settings = worlds.settings_at_start();
    let ip = reachable_ip(settings);
    let node = |number: u16| {
        let port = settings.port + number;
        let address = Address { ip: ip.clone(), port, bus_port: port + BUS_OFFSET, ..Address::default() };
        let seed = worlds.seed_of(&world.of_node(number.into()));
        Node { address, ..Node::of_seed(seed, now) }
    };
    View::of_cluster((0..settings.cluster.nodes()).map(node).collect(), settings.cluster.primaries.into())
}

impl Cluster {
    /// Makes these nodes the cluster, once.
    fn consist_of(&self, nodes: &[Arc<Shared>]) {
        *self.nodes.write() = nodes.iter().map(|node| Some(Arc::downgrade(node))).collect();
    }

    /// Lets the nodes send their first messages.
    pub(in crate::server) fn begin(&self) {
        self.nodes().iter().for_each(|node| node.act_without_delivery(|_| ()));
        self.deliver();
    }
}

/// The address by which clients of this machine reach a server that is bound to a name.
fn reachable_ip_of(name: &str) -> Option<String> {
    let ip: IpAddr = name.strip_prefix('-').unwrap_or(name).parse().ok()?;
    (!ip.is_unspecified()).then(|| ip.to_string())
}
