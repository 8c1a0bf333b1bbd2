//! State of the server's peers: the cluster that it is a node of, its replicas, and the primary that it follows.

use super::replication::Replication;
use super::{InFlight, Sleep};
use crate::engine::cluster::View;

/// The other servers, as far as this one knows them. A server by itself pays for four empty pointers.
#[derive(Debug, Default)]
pub struct Peers {
    /// The cluster that the server is a node of, as it sees it; `None` for a server by itself.
    pub cluster: Option<Box<View>>,
    /// Its replicas, or the primary that it follows; `None` if it never had any.
    pub replication: Option<Box<Replication>>,
    /// Messages of other nodes that have not arrived over slow links yet; `None` if no link ever was slow.
    pub in_flight: Option<Box<InFlight>>,
    /// The sleep of this node, while it sleeps (DEBUG SLEEP).
    pub sleep: Option<Box<Sleep>>,
}
