//! The start of the nodes of a cluster: their ports, and what they know of each other from the first moment on.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::iter;
use std::net::{IpAddr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::LOCAL;
use crate::engine::cluster::{Address, BUS_OFFSET, MOST_NODES, Node, View};
use crate::engine::exec::cluster;
use crate::engine::{Settings, WorldName};
use crate::server::listen;
use crate::server::shared::Shared;
use crate::server::worlds::seed_of;

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
pub(in crate::server) fn open_tcp(settings: &Settings, tcp: bool) -> io::Result<VecDeque<Vec<TcpListener>>> {
    if !tcp {
        return Ok(VecDeque::new());
    }
    let cluster = &settings.cluster;
    let nodes = cluster.nodes();
    if usize::from(nodes) > MOST_NODES || (nodes == 0 && cluster.replicas > 0) {
        return Err(io::Error::other(format!("replicas need a cluster, which has at most {MOST_NODES} nodes")));
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
    if nodes > 0 && (files.are_wanted || files.appends || !files.load_file.is_empty()) {
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

/// Starts the cluster that the settings ask for, if they do: `first` is its first node, and each of the others accepts
/// clients from its sockets.
///
/// # Errors
/// When a socket cannot be registered with the event loop, or the server has none.
pub(in crate::server) fn start(first: &Arc<Shared>, seed: u64, sockets: VecDeque<Vec<TcpListener>>) -> io::Result<()> {
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
    let primaries = first.worlds().settings_at_start().cluster.primaries;
    let mut views = View::of_cluster(nodes.collect(), primaries.into()).into_iter();
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
