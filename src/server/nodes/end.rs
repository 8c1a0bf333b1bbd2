//! The end of temporary worlds that are clusters: when the last client of all nodes has left.

use std::sync::Arc;

use super::Cluster;
use crate::engine::KitError;
use crate::server::shared::Shared;
use crate::server::world::World;

impl Shared {
    /// Makes this world, with all its nodes if it is a cluster, end when its last client leaves. A node that is added
    /// meanwhile is one of them.
    ///
    /// # Errors
    /// It is the first world.
    pub(crate) fn make_temporary(&self) -> Result<(), KitError> {
        let own = self.world().filter(|_| !self.name_of_world().is_first()).ok_or(KitError::LastingWorld)?;
        let _orders = self.membership().map(|own| own.cluster.orders.lock());
        own.make_temporary();
        self.cluster().nodes().iter().filter_map(|node| node.world()).for_each(World::make_temporary);
        Ok(())
    }

    /// Ends the temporary world that this node belongs to, unless another node has a client. The check runs on the
    /// event loop, after this node's lock is released.
    pub(in crate::server) fn end_nodes_if_left(&self) {
        if let Some(own) = self.membership() {
            let cluster = Arc::clone(&own.cluster);
            self.worlds().event_loop().spawn(async move { cluster.end_if_left() });
        }
    }
}

impl Cluster {
    fn end_if_left(&self) {
        let _orders = self.orders.lock();
        let nodes = self.nodes();
        if nodes.iter().any(|node| node.engine().sessions.clients_of_users() > 0) {
            return;
        }
        // A client that came meanwhile keeps the world; no other one enters before that is known.
        let closed = nodes.iter().take_while(|node| node.close_if_left(&node.engine())).count();
        if closed < nodes.len() {
            return nodes[..closed].iter().filter_map(|node| node.world()).for_each(World::reopen);
        }
        nodes.iter().for_each(|node| node.end_world(&mut node.engine()));
    }
}
