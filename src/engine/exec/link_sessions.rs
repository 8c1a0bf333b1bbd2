//! The sessions of links between a primary and its replicas, on both sides: CLIENT LIST shows them as clients, and
//! CLIENT KILL ends them, upon which the replica connects again.
//!
//! The stream goes to a replica as a message between nodes, so nothing is written to its session.
//!
//! Costs: a look at the replicas after each batch of a node of a cluster.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::cluster::NodeId;
use crate::engine::exec::{cluster, replication};
use crate::engine::state::replication::Content;
use crate::engine::state::{Origin, SessionId, Transport};

/// Opens the sessions of replicas that are new, and closes those of former ones.
pub(super) fn update(engine: &mut Engine) {
    let Some(replication) = &engine.peers.replication else { return };
    let (replicas, open) = (&replication.replicas, &replication.replica_sessions);
    if replicas.len() == open.len() && replicas.iter().all(|replica| replica.session.is_some()) {
        return;
    }
    let is_former = |session: &&SessionId| !replicas.iter().any(|replica| replica.session == Some(**session));
    let former: Vec<SessionId> = open.iter().filter(is_former).copied().collect();
    let new: Vec<NodeId> =
        replicas.iter().filter(|replica| replica.session.is_none()).map(|replica| replica.id).collect();
    former.into_iter().for_each(|session| engine.sessions.close(session));
    for replica in new {
        let session = open_of_replica(engine, replica);
        let known = engine.peers.replication.as_mut().map(|replication| replication.replicas.iter_mut());
        known.into_iter().flatten().filter(|known| known.id == replica).for_each(|known| known.session = Some(session));
    }
    if let Some(replication) = &mut engine.peers.replication {
        replication.replica_sessions = replication.replicas.iter().filter_map(|replica| replica.session).collect();
    }
}

fn open_of_replica(engine: &mut Engine, replica: NodeId) -> SessionId {
    let own = cluster::own_id(engine);
    let local_address = own.map_or_else(String::new, |own| address(engine, own));
    let session = open_link(engine, Some(replica), Origin { is_replica: true, local_address, ..Origin::default() });
    let command = engine.table.known(b"replconf");
    engine.sessions.set_last_command(session, command);
    session
}

/// Opens the session of a link to another node.
pub(super) fn open_link(engine: &mut Engine, other: Option<NodeId>, origin: Origin) -> SessionId {
    let address = other.map_or_else(String::new, |id| address(engine, id));
    let origin =
        Origin { transport: Transport::Tcp, address, descriptor: -1, is_local: true, is_test_client: true, ..origin };
    let user = Arc::clone(engine.acl.users.default_user());
    engine.sessions.open(origin, user, true, engine.timing.now)
}

/// The address at which a node has clients.
fn address(engine: &Engine, id: NodeId) -> String {
    let node = engine.peers.cluster.as_ref().and_then(|view| view.get(id));
    node.map_or_else(String::new, |node| format!("{}:{}", node.address.ip, node.address.port))
}

/// Disconnects a replica whose session was closed: it connects again.
pub(super) fn reconnect_closed(engine: &mut Engine, closed: SessionId) {
    let replicas = engine.peers.replication.iter().flat_map(|replication| &replication.replicas);
    let replica = replicas.into_iter().find(|replica| replica.session == Some(closed)).map(|replica| replica.id);
    if let Some(replica) = replica {
        replication::forget_replica(engine, replica);
        replication::send(engine, Some(replica), Content::Restart);
    }
}
