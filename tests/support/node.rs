//! Nodes of a cluster without servers: engines that see three nodes, or one that owns all slots.

use dunlin::engine::cluster::{Address, Node, View};
use dunlin::engine::exec::cluster::join;

use super::world::{START, World};

/// The ports of three nodes.
pub const PORTS: [u16; 3] = [7001, 7002, 7003];

/// The node at a port.
pub fn node(port: u16) -> Node {
    let address = Address { ip: "127.0.0.1".to_owned(), port, bus_port: port + 10_000, ..Address::default() };
    Node { address, ..Node::of_seed(port.into(), START) }
}

/// One of three nodes among which the slots are dealt out: `bar` is in slot 5061 of the first, `abc` in slot 7638 of
/// the second, `foo` in slot 12182 of the third.
pub fn node_of_three(place: usize) -> World {
    let mut world = World::with(|settings| {
        settings.cluster_mut().is_enabled = true;
        settings.port = PORTS[place];
    });
    join(&mut world.engine, View::of_cluster(PORTS.map(node).to_vec(), PORTS.len()).swap_remove(place));
    world
}

/// Makes a server the only node of a cluster, which owns all slots.
pub fn join_alone(world: &mut World) {
    join(&mut world.engine, View::of_cluster(vec![node(PORTS[0])], 1).swap_remove(0));
}
