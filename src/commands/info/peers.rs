//! The metrics of a server with peers: of a replica, of a primary that has replicas, and of a node of a cluster.
//!
//! redis_exporter reads these from lines of INFO that name a peer, and from CLUSTER INFO.

use super::exposition::{Exposition, MetricType};
use super::{InfoContext, replication};
use crate::commands::cluster;
use crate::engine::cluster::Health;

/// The metrics of a replica that are lines of INFO, with their descriptions.
const OF_REPLICA: [(&str, &str); 3] = [
    ("master_last_io_seconds_ago", "The time since the primary was last heard."),
    ("master_sync_in_progress", "Whether all data are being received."),
    ("slave_repl_offset", "The offset in the stream of the primary up to which it was applied."),
];

/// Writes the metrics about peers; a server without peers has none.
pub(super) fn peers(context: &InfoContext<'_>, out: &mut Exposition) {
    primary(context, out);
    replicas(context, out);
    nodes(context, out);
}

/// The metrics of a replica and its link to the primary.
fn primary(context: &InfoContext<'_>, out: &mut Exposition) {
    let line = |name: &str| {
        let row = replication::FIELDS.iter().find(|row| row.name == name).filter(|row| (row.is_shown)(context))?;
        let mut text = String::new();
        (row.value)(context).write(&mut text);
        Some(text)
    };
    let (Some(host), Some(port), Some(status)) = (line("master_host"), line("master_port"), line("master_link_status"))
    else {
        return;
    };
    let labels = [("master_host", host.as_str()), ("master_port", port.as_str())];
    let mut gauge = |name: &str, help: &str, value: &str| {
        let name = format!("redis_{name}");
        out.family(&name, MetricType::Gauge, help);
        out.sample(name, &labels, value);
    };
    gauge("master_link_up", "Whether the primary is connected.", if status == "up" { "1" } else { "0" });
    for (name, help) in OF_REPLICA {
        gauge(name, help, &line(name).unwrap_or_default());
    }
    let read_only = line("slave_read_only").unwrap_or_default();
    let [host, port] = labels;
    out.family("redis_slave_info", MetricType::Gauge, "What the replica is, as labels.");
    out.sample("redis_slave_info", &[host, port, ("read_only", &read_only)], 1);
}

/// The metrics of a primary's replicas.
fn replicas(context: &InfoContext<'_>, out: &mut Exposition) {
    let replicas = replication::connected(context);
    let mut family = |name: &str, help: &str, value: &dyn Fn(&replication::Connected) -> i64| {
        out.family(name, MetricType::Gauge, help);
        for replica in &replicas {
            let port = replica.port.to_string();
            let labels = [("slave_ip", replica.ip.as_str()), ("slave_port", &port), ("slave_state", "online")];
            out.sample(name, &labels, value(replica));
        }
    };
    let help = "The offset up to which a replica has applied the stream.";
    family("redis_connected_slave_offset_bytes", help, &|replica| replica.offset as i64);
    let help = "The time since a replica has told how far it is.";
    family("redis_connected_slave_lag_seconds", help, &|replica| replica.lag_s);
}

/// The metrics of a node of a cluster.
fn nodes(context: &InfoContext<'_>, out: &mut Exposition) {
    let Some(view) = &context.engine.peers.cluster else { return };
    let is_ok = u8::from(view.health() == Health::Ok);
    out.metric("redis_cluster_state", MetricType::Gauge, "Whether the cluster serves all slots.", is_ok);
    for (line, figure) in cluster::figures(view) {
        out.metric(
            format!("redis_{line}"),
            MetricType::Gauge,
            format_args!("The line {line} of CLUSTER INFO."),
            figure,
        );
    }
    for figure in cluster::message_figures(view) {
        let line = figure.line();
        let name = match figure.kind {
            Some(_) => format!("redis_{}", line.replace('-', "_")),
            None => format!("redis_cluster_messages_{}_total", figure.direction),
        };
        out.metric(name, MetricType::Gauge, format_args!("The line {line} of CLUSTER INFO."), figure.count);
    }
}
