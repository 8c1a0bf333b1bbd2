//! The settings of a node of a cluster.

/// The kind of endpoint that clients are told for a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndpointType {
    /// The address.
    #[default]
    Ip,
    /// The name of the host.
    Hostname,
    /// Nothing: clients go on with the host that they have asked.
    Unknown,
}

impl EndpointType {
    const ALL: [EndpointType; 3] = [EndpointType::Ip, EndpointType::Hostname, EndpointType::Unknown];

    /// The value's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            EndpointType::Ip => "ip",
            EndpointType::Hostname => "hostname",
            EndpointType::Unknown => "unknown-endpoint",
        }
    }

    /// The type of that name; the default one when the name is unknown.
    pub fn named(name: &str) -> EndpointType {
        EndpointType::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_default()
    }
}

/// The settings of a node, which matter only in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// `cluster-enabled`: whether the server is a node of a cluster.
    pub is_enabled: bool,
    /// `cluster`: the number of primaries that the process starts, which know each other and share the slots; 0 for a
    /// single node, which knows no other.
    pub primaries: u16,
    /// `replicas`: the number of replicas of each of these.
    pub replicas: u16,
    /// `cluster-require-full-coverage`: whether the cluster is down while a slot has no owner.
    pub requires_full_coverage: bool,
    /// `cluster-node-timeout` in milliseconds: how long a node may be disconnected before it is suspected.
    pub node_timeout_ms: i64,
    /// `cluster-allow-replica-migration`: whether a primary that lost its last slot becomes a replica of the node that
    /// took it, and a replica goes to a primary that has none left.
    pub allows_replica_migration: bool,
    /// `cluster-migration-barrier`: the working replicas that stay with a primary when one goes to another.
    pub migration_barrier: i64,
    /// `cluster-replica-no-failover`: whether this node never replaces its primary by itself.
    pub never_fails_over: bool,
    /// `cluster-replica-validity-factor`: how often `cluster-node-timeout` may pass since a replica was connected to
    /// its primary, if it is to replace it; 0 for any time.
    pub validity_factor: i64,
    /// `cluster-allow-reads-when-down`.
    pub allows_reads_when_down: bool,
    /// `cluster-allow-pubsubshard-when-down`.
    pub allows_shard_channels_when_down: bool,
    /// `cluster-preferred-endpoint-type`.
    pub endpoint_type: EndpointType,
    /// `cluster-announce-ip`: the node's address for others, empty for its real one.
    pub announced_ip: String,
    /// `cluster-announce-hostname`: the node's name for others, empty for none.
    pub announced_hostname: String,
    /// `cluster-announce-port`: the node's port for others, 0 for its real one.
    pub announced_port: u16,
    /// `cluster-announce-bus-port`: the node's bus port for others, 0 for its real one.
    pub announced_bus_port: u16,
    /// `cluster-announce-tls-port`: the node's port for clients with TLS that others are told, 0 for none.
    pub announced_tls_port: u16,
    /// `cluster-compatibility-sample-ratio`: how many of a hundred commands are checked for what a cluster would
    /// refuse, while the server is no node of one.
    pub compatibility_sample_percent: u8,
    /// `cluster-port`: the port for other nodes, 0 for that of clients plus 10,000.
    pub bus_port: u16,
}

impl ClusterSettings {
    /// The number of nodes that the process starts; 0 if it is no cluster by itself.
    pub fn nodes(&self) -> u16 {
        self.primaries.saturating_mul(self.replicas.saturating_add(1))
    }
}

impl Default for ClusterSettings {
    fn default() -> ClusterSettings {
        ClusterSettings {
            is_enabled: false,
            primaries: 0,
            replicas: 0,
            requires_full_coverage: true,
            node_timeout_ms: 15_000,
            allows_replica_migration: true,
            migration_barrier: 1,
            never_fails_over: false,
            validity_factor: 10,
            allows_reads_when_down: false,
            allows_shard_channels_when_down: true,
            endpoint_type: EndpointType::default(),
            announced_ip: String::new(),
            announced_hostname: String::new(),
            announced_port: 0,
            announced_bus_port: 0,
            announced_tls_port: 0,
            compatibility_sample_percent: 0,
            bus_port: 0,
        }
    }
}
