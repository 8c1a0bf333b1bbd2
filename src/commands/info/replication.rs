//! The section about replication: the role, the replicas or the primary, and the history of the data.

use std::fmt::Write;

use super::InfoContext;
use super::fields::{Field, field};
use super::value::Value;
use crate::config;
use crate::engine::Now;
use crate::engine::exec::replication;
use crate::engine::state::replication::{History, Link, LinkState, Replica, Replication};

const NO_ID: &str = "0000000000000000000000000000000000000000";

/// A line that only a replica has.
const fn of_replica(name: &'static str, value: for<'s> fn(&'s InfoContext<'s>) -> Value<'s>) -> Field {
    Field { is_shown: |context| link(context).is_some(), ..field(name, value) }
}

pub(super) const FIELDS: &[Field] = &[
    field("role", |context| if link(context).is_some() { "slave" } else { "master" }.into()),
    of_replica("master_host", |context| primary(context).0.into()),
    of_replica("master_port", |context| primary(context).1.into()),
    of_replica("master_link_status", |context| if is_linked(context) { "up" } else { "down" }.into()),
    of_replica("master_last_io_seconds_ago", |context| match link(context) {
        Some(link) if link.is_up() => seconds_since(context, link.last_message),
        _ => Value::Integer(-1),
    }),
    of_replica("master_sync_in_progress", |_| Value::Count(0)),
    of_replica("slave_read_repl_offset", |context| {
        let queued = link(context).map_or(0, Link::queued_bytes);
        (offset(context) + queued as u64).into()
    }),
    of_replica("slave_repl_offset", |context| offset(context).into()),
    of_replica("replica_full_sync_buffer_size", |_| Value::Count(0)),
    of_replica("replica_full_sync_buffer_peak", |_| Value::Count(0)),
    Field {
        is_shown: |context| link(context).is_some_and(|link| !link.is_up()),
        ..field("master_link_down_since_seconds", |context| match link(context).map(|link| link.state) {
            Some(LinkState::DownSince(since)) => seconds_since(context, since),
            _ => Value::Integer(-1),
        })
    },
    of_replica("slave_priority", |context| context.engine.settings.replication.priority.into()).gauge("slave_priority"),
    of_replica("slave_read_only", |context| u64::from(context.engine.settings.replication.is_read_only).into()),
    of_replica("replica_announced", |_| Value::Count(1)),
    field("connected_slaves", |context| replicas(context).len().into()).gauge("connected_slaves"),
    Field {
        is_shown: |context| context.engine.settings.counts_replicas() && link(context).is_none(),
        ..field("min_slaves_good_slaves", |context| replication::good_replicas(context.engine).into())
    },
    Field {
        is_shown: |context| !replicas(context).is_empty(),
        ..field("slave0", |context| replica_lines(context).into())
    },
    field("master_failover_state", |_| "no-failover".into()),
    field("master_replid", |context| replication::history(context.engine).id.to_string().into()),
    field("master_replid2", |context| {
        former(context).map_or_else(|| NO_ID.to_owned(), |one| one.id.to_string()).into()
    }),
    field("master_repl_offset", |context| replication::history(context.engine).offset.into())
        .gauge("master_repl_offset"),
    field("second_repl_offset", |context| former(context).map_or(-1, |former| former.offset as i64 + 1).into())
        .gauge("second_repl_offset"),
    field("repl_backlog_active", |context| u8::from(own(context).is_some()).into()).gauge("repl_backlog_is_active"),
    field("repl_backlog_size", |context| config::REPL_BACKLOG_SIZE.shown(&context.engine.settings).into())
        .gauge("replication_backlog_bytes"),
    field("repl_backlog_first_byte_offset", |context| match own(context) {
        Some(own) => (own.history.offset + 1 - own.backlog.len() as u64).into(),
        None => Value::Count(0),
    })
    .gauge("repl_backlog_first_byte_offset"),
    field("repl_backlog_histlen", |context| own(context).map_or(0, |own| own.backlog.len()).into())
        .gauge("repl_backlog_history_bytes"),
];

fn own<'s>(context: &'s InfoContext<'_>) -> Option<&'s Replication> {
    context.engine.peers.replication.as_deref()
}

fn offset(context: &InfoContext<'_>) -> u64 {
    own(context).map_or(0, |own| own.history.offset)
}

fn former<'s>(context: &'s InfoContext<'_>) -> Option<&'s History> {
    own(context)?.previous.as_ref()
}

fn link<'s>(context: &'s InfoContext<'_>) -> Option<&'s Link> {
    own(context)?.link.as_ref()
}

fn is_linked(context: &InfoContext<'_>) -> bool {
    link(context).is_some_and(Link::is_up)
}

fn replicas<'s>(context: &'s InfoContext<'_>) -> &'s [Replica] {
    own(context).map_or(&[], |own| &own.replicas)
}

/// The address and port of the primary.
fn primary(context: &InfoContext<'_>) -> (String, u16) {
    let node = context.engine.peers.cluster.as_ref().and_then(|view| view.primary());
    node.map_or((String::new(), 0), |node| (node.address.ip.clone(), node.address.port))
}

fn seconds_since<'s>(context: &InfoContext<'_>, moment: Now) -> Value<'s> {
    (context.engine.now().since_us(moment) / 1_000_000).into()
}

/// A replica as its primary knows it.
pub(super) struct Connected {
    pub(super) ip: String,
    pub(super) port: u16,
    /// The offset up to which it has applied the stream.
    pub(super) offset: u64,
    /// The seconds since it last reported its offset.
    pub(super) lag_s: i64,
}

/// The replicas of this server.
pub(super) fn connected(context: &InfoContext<'_>) -> Vec<Connected> {
    let now = context.engine.now();
    let Some(own) = own(context) else { return Vec::new() };
    let connected = |replica: &Replica| {
        let node = context.engine.peers.cluster.as_ref().and_then(|view| view.get(replica.id));
        let (ip, port) = node.map_or((String::new(), 0), |node| (node.address.ip.clone(), node.address.port));
        Connected { ip, port, offset: replica.offset, lag_s: own.lag_s(replica, now) }
    };
    own.replicas.iter().map(connected).collect()
}

/// The value of the line for the first replica, and the lines for all others behind it.
fn replica_lines(context: &InfoContext<'_>) -> String {
    let mut text = String::new();
    for (number, Connected { ip, port, offset, lag_s }) in connected(context).iter().enumerate() {
        if number > 0 {
            let _ = write!(text, "\r\nslave{number}:");
        }
        // Nothing fails that writes to a text.
        let _ = write!(text, "ip={ip},port={port},state=online,offset={offset},lag={lag_s}");
    }
    text
}
