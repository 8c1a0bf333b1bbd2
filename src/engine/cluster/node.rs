//! A node of a cluster: its id, its addresses, and what the others know of it.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};

use sha1::{Digest, Sha1};

use crate::engine::spec::Now;
use crate::value::hashing::Key;
use crate::value::hexadecimal;

/// How far the port for other nodes is above that for clients, unless another one is named.
pub const BUS_OFFSET: u16 = 10_000;

/// The length of an id in digits.
const DIGITS: usize = 40;

/// The id of a node or of a shard: forty hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialOrd, Ord)]
pub struct NodeId([u8; DIGITS]);

impl NodeId {
    /// The id with that value.
    pub fn of(bytes: [u8; DIGITS / 2]) -> NodeId {
        let mut digits = [b'0'; DIGITS];
        hexadecimal::write(&bytes, &mut digits);
        NodeId(digits)
    }

    /// An id whose value `random` gives, eight bytes at a time.
    pub fn random(mut random: impl FnMut() -> u64) -> NodeId {
        let mut bytes = [0; DIGITS / 2];
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random().to_be_bytes()[..chunk.len()]));
        NodeId::of(bytes)
    }

    /// The id that belongs to a name.
    pub fn named(name: &str) -> NodeId {
        NodeId::of(Sha1::digest(name).into())
    }

    /// The first digits, as a number.
    fn first(&self) -> u64 {
        self.0.first_chunk().copied().map_or(0, u64::from_be_bytes)
    }

    /// The digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// By the first digits first, which nearly always differ: views look for ids in short lists all the time, and comparing
/// eight bytes takes no call.
impl PartialEq for NodeId {
    fn eq(&self, other: &NodeId) -> bool {
        self.first() == other.first() && self.0 == other.0
    }
}

/// By the first digits alone: a hash of all takes several times as long.
impl Hash for NodeId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.first().hash(state);
    }
}

impl Display for NodeId {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

/// Where a node is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The address; empty while the node does not know its own.
    pub ip: String,
    /// The port for clients.
    pub port: u16,
    /// The port for clients with TLS that the node announces; 0 for none.
    pub tls_port: u16,
    /// The port for other nodes.
    pub bus_port: u16,
    /// The name of the host that the node announces, empty for none.
    pub hostname: String,
}

/// A node as one node knows it; also this node itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The id of its shard: of a primary with its replicas.
    pub shard: NodeId,
    /// Where it is reached.
    pub address: Address,
    /// The epoch of its claim to its slots.
    pub config_epoch: u64,
    /// When it became known, in unix milliseconds.
    pub met_ms: i64,
    /// The id of its primary; `None` if it is a primary itself.
    pub primary: Option<NodeId>,
    /// How many bytes of the replication stream it had when it announced that last.
    pub offset: u64,
    /// Whether it never replaces its primary by itself (`cluster-replica-no-failover`).
    pub never_fails_over: bool,
}

impl Node {
    /// A node whose ids follow from a seed, and which has no address yet.
    pub fn of_seed(seed: u64, now: Now) -> Node {
        let mut generator = fastrand::Rng::with_seed(Key::of(seed).hash(b"node"));
        let mut id = || NodeId::random(|| generator.u64(..));
        let (id, shard, address) = (id(), id(), Address::default());
        let met_ms = now.unix_ms();
        Node { id, shard, address, config_epoch: 0, met_ms, primary: None, offset: 0, never_fails_over: false }
    }

    /// Whether it is a replica.
    pub fn is_replica(&self) -> bool {
        self.primary.is_some()
    }
}
