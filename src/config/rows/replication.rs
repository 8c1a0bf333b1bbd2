//! Parameters of nodes of a cluster, and of replicas.
//!
//! `replicaof` has a fixed value: replicas are nodes of a cluster in the same process. Parameters about connections
//! between nodes, which do not exist here, are stored without effect.

use super::{INT, LONG, LONG_BYTES, PORT};
use crate::config::parameter::{Backing, Parameter};
use crate::config::words;
use crate::engine::cluster::EndpointType;

/// The least size of the backlog for replicas. A smaller one is accepted and means this one.
const MIN_BACKLOG_BYTES: u64 = 16 * 1024;

/// The size of the backlog for replicas, which INFO shows too.
pub const REPL_BACKLOG_SIZE: Parameter = Parameter::memory(
    "repl-backlog-size",
    1,
    LONG_BYTES,
    Backing::Field(
        |s| s.replication.backlog_bytes,
        |s, bytes| s.replication_mut().backlog_bytes = bytes.max(MIN_BACKLOG_BYTES),
    ),
);

pub(super) const ROWS: &[Parameter] = &[
    Parameter::switch(
        "cluster-allow-pubsubshard-when-down",
        Backing::Field(
            |s| s.cluster.allows_shard_channels_when_down,
            |s, allows| s.cluster_mut().allows_shard_channels_when_down = allows,
        ),
    ),
    Parameter::switch(
        "cluster-allow-reads-when-down",
        Backing::Field(
            |s| s.cluster.allows_reads_when_down,
            |s, allows| s.cluster_mut().allows_reads_when_down = allows,
        ),
    ),
    Parameter::switch(
        "cluster-allow-replica-migration",
        Backing::Field(
            |s| s.cluster.allows_replica_migration,
            |s, allows| s.cluster_mut().allows_replica_migration = allows,
        ),
    ),
    Parameter::number(
        "cluster-announce-bus-port",
        0,
        PORT,
        Backing::Field(
            |s| s.cluster.announced_bus_port.into(),
            |s, port| s.cluster_mut().announced_bus_port = port as u16,
        ),
    ),
    Parameter::word(
        "cluster-announce-hostname",
        words::hostname,
        Backing::Field(|s| s.cluster.announced_hostname.clone(), |s, name| s.cluster_mut().announced_hostname = name),
    ),
    Parameter::word("cluster-announce-human-nodename", words::node_name, Backing::NoEffect("")),
    Parameter::text(
        "cluster-announce-ip",
        Backing::Field(|s| s.cluster.announced_ip.clone(), |s, ip| s.cluster_mut().announced_ip = ip),
    ),
    Parameter::number(
        "cluster-announce-port",
        0,
        PORT,
        Backing::Field(|s| s.cluster.announced_port.into(), |s, port| s.cluster_mut().announced_port = port as u16),
    ),
    Parameter::number(
        "cluster-announce-tls-port",
        0,
        PORT,
        Backing::Field(
            |s| s.cluster.announced_tls_port.into(),
            |s, port| s.cluster_mut().announced_tls_port = port as u16,
        ),
    ),
    Parameter::number(
        "cluster-compatibility-sample-ratio",
        0,
        100,
        Backing::Field(
            |s| s.cluster.compatibility_sample_percent.into(),
            |s, percent| s.cluster_mut().compatibility_sample_percent = percent as u8,
        ),
    ),
    Parameter::text("cluster-config-file", Backing::NoEffect("nodes.conf")).at_start(),
    Parameter::switch(
        "cluster-enabled",
        Backing::Field(|s| s.cluster.is_enabled, |s, is_enabled| s.cluster_mut().is_enabled = is_enabled),
    )
    .at_start(),
    Parameter::memory("cluster-link-sendbuf-limit", 0, u64::MAX, Backing::NoEffect("0")),
    Parameter::number(
        "cluster-migration-barrier",
        0,
        INT,
        Backing::Field(|s| s.cluster.migration_barrier, |s, replicas| s.cluster_mut().migration_barrier = replicas),
    ),
    Parameter::number(
        "cluster-node-timeout",
        0,
        LONG,
        Backing::Field(|s| s.cluster.node_timeout_ms, |s, ms| s.cluster_mut().node_timeout_ms = ms),
    ),
    Parameter::number(
        "cluster-port",
        0,
        PORT,
        Backing::Field(|s| s.cluster.bus_port.into(), |s, port| s.cluster_mut().bus_port = port as u16),
    )
    .at_start(),
    Parameter::choice(
        "cluster-preferred-endpoint-type",
        &["ip", "hostname", "unknown-endpoint"],
        Backing::Field(
            |s| s.cluster.endpoint_type.name(),
            |s, name| s.cluster_mut().endpoint_type = EndpointType::named(name),
        ),
    ),
    Parameter::switch(
        "cluster-replica-no-failover",
        Backing::Field(|s| s.cluster.never_fails_over, |s, never| s.cluster_mut().never_fails_over = never),
    )
    .alias("cluster-slave-no-failover"),
    Parameter::number(
        "cluster-replica-validity-factor",
        0,
        INT,
        Backing::Field(|s| s.cluster.validity_factor, |s, factor| s.cluster_mut().validity_factor = factor),
    )
    .alias("cluster-slave-validity-factor"),
    Parameter::switch(
        "cluster-require-full-coverage",
        Backing::Field(
            |s| s.cluster.requires_full_coverage,
            |s, requires| s.cluster_mut().requires_full_coverage = requires,
        ),
    ),
    Parameter::text("masterauth", Backing::NoEffect("")),
    Parameter::text("masteruser", Backing::NoEffect("")),
    Parameter::number(
        "min-replicas-max-lag",
        0,
        INT,
        Backing::Field(|s| s.replication.max_lag_s.into(), |s, seconds| s.replication_mut().max_lag_s = seconds as u32),
    )
    .alias("min-slaves-max-lag"),
    Parameter::number(
        "min-replicas-to-write",
        0,
        INT,
        Backing::Field(
            |s| s.replication.min_replicas.into(),
            |s, count| s.replication_mut().min_replicas = count as u32,
        ),
    )
    .alias("min-slaves-to-write"),
    REPL_BACKLOG_SIZE,
    Parameter::number("repl-backlog-ttl", 0, LONG, Backing::NoEffect("3600")),
    Parameter::switch("repl-disable-tcp-nodelay", Backing::NoEffect("no")),
    Parameter::choice("repl-diskless-load", &["disabled", "on-empty-db", "swapdb"], Backing::NoEffect("disabled")),
    Parameter::switch("repl-diskless-sync", Backing::NoEffect("yes")),
    Parameter::number("repl-diskless-sync-delay", 0, INT, Backing::NoEffect("5")),
    Parameter::number("repl-diskless-sync-max-replicas", 0, INT, Backing::NoEffect("0")),
    Parameter::number("repl-ping-replica-period", 1, INT, Backing::NoEffect("10")).alias("repl-ping-slave-period"),
    Parameter::number("repl-timeout", 1, INT, Backing::NoEffect("60")),
    Parameter::text("replica-announce-ip", Backing::NoEffect("")).alias("slave-announce-ip"),
    Parameter::number("replica-announce-port", 0, PORT, Backing::NoEffect("0")).alias("slave-announce-port"),
    Parameter::switch("replica-announced", Backing::NoEffect("yes")),
    Parameter::memory("replica-full-sync-buffer-limit", 0, LONG_BYTES, Backing::NoEffect("0")),
    Parameter::switch("replica-ignore-disk-write-errors", Backing::NoEffect("no")),
    Parameter::switch("replica-ignore-maxmemory", Backing::NoEffect("yes")).alias("slave-ignore-maxmemory"),
    Parameter::switch("replica-lazy-flush", Backing::NoEffect("no")).alias("slave-lazy-flush"),
    Parameter::number(
        "replica-priority",
        0,
        INT,
        Backing::Field(|s| s.replication.priority, |s, priority| s.replication_mut().priority = priority),
    )
    .alias("slave-priority"),
    Parameter::switch(
        "replica-read-only",
        Backing::Field(|s| s.replication.is_read_only, |s, read_only| s.replication_mut().is_read_only = read_only),
    )
    .alias("slave-read-only"),
    Parameter::switch(
        "replica-serve-stale-data",
        Backing::Field(|s| s.replication.serves_stale_data, |s, serves| s.replication_mut().serves_stale_data = serves),
    )
    .alias("slave-serve-stale-data"),
    Parameter::words("replicaof", words::primary, Backing::Fixed("")).alias("slaveof").at_start().or_refuse(),
];
