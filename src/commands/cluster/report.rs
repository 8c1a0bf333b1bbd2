//! Reports of a node on its cluster: SLOTS, SHARDS, NODES, INFO and LINKS.

use std::fmt::Write;

use super::view;
use crate::engine::cluster::{EndpointType, Health, Node, SlotMigration, View};
use crate::engine::exec::cluster::endpoint;
use crate::engine::{Args, Ctx, Engine, Error, Settings};
use crate::resp::Reply;

pub(super) fn slots(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let (engine, reply) = cx.engine_and_reply();
    let Some(view) = &engine.peers.cluster else { return Ok(()) };
    let ranges = view.ranges();
    reply.array(ranges.len());
    for (range, owner) in ranges {
        // A replica is shown once it has announced that it has data; SHARDS shows what it has now.
        let is_shown = |replica: &&Node| !view.has_failed(replica.id) && offset_of(engine, replica) > 0;
        let replicas: Vec<&Node> = view.replicas_of(owner.id).filter(is_shown).collect();
        reply.array(3 + replicas.len());
        reply.integer((*range.start()).into());
        reply.integer((*range.end()).into());
        write_owner(reply, owner, &engine.settings);
        replicas.into_iter().for_each(|replica| write_owner(reply, replica, &engine.settings));
    }
    Ok(())
}

/// The replication offset of a node: first-hand if this node has it, otherwise as the node has announced it.
fn offset_of(engine: &Engine, node: &Node) -> u64 {
    first_hand_offset(engine, node).unwrap_or(node.offset)
}

/// The replication offset of a node now, if its messages reach this node. Redis's nodes exchange offsets every second.
fn present_offset_of(engine: &Engine, view: &View, node: &Node) -> u64 {
    let heard = || engine.host.offset_of_node(node.id, view.myself().id);
    first_hand_offset(engine, node).or_else(heard).unwrap_or(node.offset)
}

/// The offset of this node, or of one that it exchanges the stream with.
fn first_hand_offset(engine: &Engine, node: &Node) -> Option<u64> {
    let replication = engine.peers.replication.as_ref()?;
    let is_myself = engine.peers.cluster.as_ref().is_some_and(|view| view.is_myself(node));
    if is_myself || replication.link.as_ref().is_some_and(|link| link.primary == node.id) {
        return Some(replication.history.offset);
    }
    let replica = replication.replicas.iter().find(|replica| replica.id == node.id);
    replica.map(|replica| replica.offset)
}

/// Writes a node with its preferred endpoint first, and what else is known of where it is in a map at the end.
fn write_owner(reply: &mut Reply<'_>, node: &Node, settings: &Settings) {
    let address = &node.address;
    reply.array(4);
    reply.bulk_or_null(endpoint(settings, address).as_deref().map(str::as_bytes));
    reply.integer(address.port.into());
    reply.bulk(node.id.as_bytes());
    let preferred = settings.cluster.endpoint_type;
    let ip = (preferred != EndpointType::Ip).then_some(("ip", &address.ip));
    let is_named = preferred != EndpointType::Hostname && !address.hostname.is_empty();
    let hostname = is_named.then_some(("hostname", &address.hostname));
    let more: Vec<(&str, &String)> = ip.into_iter().chain(hostname).collect();
    reply.map(more.len());
    for (name, value) in more {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

pub(super) fn shards(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let (engine, reply) = cx.engine_and_reply();
    let Some(view) = &engine.peers.cluster else { return Ok(()) };
    let shards: Vec<Vec<&Node>> = shards_of(view);
    reply.array(shards.len());
    for nodes in shards {
        // As in Redis, the slots are those of the first working node's primary, even if that one has failed.
        let working = nodes.iter().find(|node| !view.has_failed(node.id));
        let primary = working.map(|node| node.primary.unwrap_or(node.id));
        let ranges = primary.map(|primary| view.ranges_of(primary)).unwrap_or_default();
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * ranges.len());
        for range in ranges {
            reply.integer((*range.start()).into());
            reply.integer((*range.end()).into());
        }
        reply.bulk(b"nodes");
        reply.array(nodes.len());
        nodes.into_iter().for_each(|node| write_member(reply, engine, view, node));
    }
    Ok(())
}

/// The nodes of each shard, in the order in which they became known.
fn shards_of(view: &View) -> Vec<Vec<&Node>> {
    let mut shards: Vec<Vec<&Node>> = Vec::new();
    for node in view.nodes() {
        match shards.iter_mut().find(|nodes| nodes[0].shard == node.shard) {
            Some(nodes) => nodes.push(node),
            None => shards.push(vec![node]),
        }
    }
    shards
}

/// Writes a node as a member of its shard.
fn write_member(reply: &mut Reply<'_>, engine: &Engine, view: &View, node: &Node) {
    let (settings, offset) = (&engine.settings, present_offset_of(engine, view, node));
    let address = &node.address;
    let is_named = !address.hostname.is_empty();
    let text = |reply: &mut Reply<'_>, name: &str, value: &[u8]| {
        reply.bulk(name.as_bytes());
        reply.bulk(value);
    };
    let has_tls = address.tls_port != 0;
    reply.map(7 + usize::from(is_named) + usize::from(has_tls));
    text(reply, "id", node.id.as_bytes());
    reply.bulk(b"port");
    reply.integer(address.port.into());
    if has_tls {
        reply.bulk(b"tls-port");
        reply.integer(address.tls_port.into());
    }
    text(reply, "ip", address.ip.as_bytes());
    text(reply, "endpoint", endpoint(settings, address).unwrap_or_default().as_bytes());
    if is_named {
        text(reply, "hostname", address.hostname.as_bytes());
    }
    text(reply, "role", if node.is_replica() { b"replica" } else { b"master" });
    reply.bulk(b"replication-offset");
    reply.integer(offset as i64);
    let health: &[u8] = match view.has_failed(node.id) {
        true => b"fail",
        false if node.is_replica() && offset == 0 => b"loading",
        false => b"online",
    };
    text(reply, "health", health);
}

pub(super) fn nodes(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let now_ms = cx.now_ms();
    let view = view(cx)?;
    let mut text = String::new();
    for node in view.nodes() {
        text.push_str(&line(view, node, now_ms));
        text.push('\n');
    }
    cx.reply().verbatim("txt", text.as_bytes());
    Ok(())
}

/// The line of a node. A connected one was heard of at this moment, as it is in this process.
pub(super) fn line(view: &View, node: &Node, now_ms: i64) -> String {
    let mut text = String::new();
    let (address, is_myself) = (&node.address, view.is_myself(node));
    let hostname = if address.hostname.is_empty() { String::new() } else { format!(",{}", address.hostname) };
    let mark = if is_myself { "myself," } else { "" };
    let role = if node.is_replica() { "slave" } else { "master" };
    let state = match is_myself {
        false if view.has_failed(node.id) => ",fail",
        false if view.suspects(node.id) => ",fail?",
        _ => "",
    };
    let never = if node.never_fails_over { ",nofailover" } else { "" };
    let primary = node.primary.and_then(|primary| view.get(primary));
    let primary_id = node.primary.map_or_else(|| "-".to_owned(), |primary| primary.to_string());
    let epoch = primary.unwrap_or(node).config_epoch;
    let down_since_ms = view.disconnected_since(node.id).map_or(0, |since| since.unix_ms());
    let heard_ms = if is_myself {
        0
    } else if down_since_ms > 0 {
        down_since_ms
    } else {
        now_ms
    };
    let link = if view.is_connected(node.id) { "connected" } else { "disconnected" };
    // Nothing fails that writes to a text.
    let _ = write!(
        text,
        "{} {}:{}@{}{hostname} {mark}{role}{state}{never} {primary_id} {down_since_ms} {heard_ms} {epoch} {link}",
        node.id, address.ip, address.port, address.bus_port
    );
    for range in view.ranges_of(node.id) {
        let _ = match (*range.start(), *range.end()) {
            (first, last) if first == last => write!(text, " {first}"),
            (first, last) => write!(text, " {first}-{last}"),
        };
    }
    for (slot, migration) in view.slot_migrations().filter(|_| is_myself) {
        let _ = match migration {
            SlotMigration::Migrating(to) => write!(text, " [{slot}->-{to}]"),
            SlotMigration::Importing(from) => write!(text, " [{slot}-<-{from}]"),
        };
    }
    text
}

/// The numbers in CLUSTER INFO, each with the name of its line, but for those of messages, and for the last, which is
/// always 0.
pub(in crate::commands) fn figures(view: &View) -> [(&'static str, u64); 8] {
    let assigned = view.assigned();
    let suspected = view.slots_of(|node| view.suspects(node.id));
    let failed = view.slots_of(|node| view.has_failed(node.id));
    [
        ("cluster_slots_assigned", assigned as u64),
        ("cluster_slots_ok", (assigned - suspected - failed) as u64),
        ("cluster_slots_pfail", suspected as u64),
        ("cluster_slots_fail", failed as u64),
        ("cluster_known_nodes", view.nodes().len() as u64),
        ("cluster_size", view.size() as u64),
        ("cluster_current_epoch", view.current_epoch),
        ("cluster_my_epoch", view.primary().unwrap_or(view.myself()).config_epoch),
    ]
}

/// A number of messages in CLUSTER INFO.
pub(in crate::commands) struct MessageFigure {
    /// `sent` or `received`.
    pub direction: &'static str,
    /// Their type; `None` for all together.
    pub kind: Option<&'static str>,
    pub count: u64,
}

impl MessageFigure {
    /// The name of its line.
    pub fn line(&self) -> String {
        let direction = self.direction;
        match self.kind {
            Some(kind) => format!("cluster_stats_messages_{kind}_{direction}"),
            None => format!("cluster_stats_messages_{direction}"),
        }
    }
}

/// The numbers of messages in CLUSTER INFO: in each direction those of each type, then of all together.
pub(in crate::commands) fn message_figures(view: &View) -> impl Iterator<Item = MessageFigure> {
    [("sent", &view.sent), ("received", &view.received)].into_iter().flat_map(|(direction, counts)| {
        let by_type = counts.by_type().map(|(kind, count)| (Some(kind), count));
        let all = by_type.chain([(None, counts.total())]);
        all.map(move |(kind, count)| MessageFigure { direction, kind, count })
    })
}

pub(super) fn info(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let view = view(cx)?;
    let mut text = format!("cluster_state:{}\r\n", if view.health() == Health::Ok { "ok" } else { "fail" });
    for (name, figure) in figures(view) {
        let _ = write!(text, "{name}:{figure}\r\n");
    }
    for figure in message_figures(view) {
        let _ = write!(text, "{}:{}\r\n", figure.line(), figure.count);
    }
    text.push_str("total_cluster_links_buffer_limit_exceeded:0\r\n");
    cx.reply().verbatim("txt", text.as_bytes());
    Ok(())
}

/// The bytes of an empty buffer of a link, as Redis counts them.
const EMPTY_BUFFER_BYTES: i64 = 48;

/// Two links for each other node, to it and from it. Nothing waits in their buffers: nodes of one process hear each
/// other at once.
pub(super) fn links(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let (engine, reply) = cx.engine_and_reply();
    let Some(view) = &engine.peers.cluster else { return Ok(()) };
    let is_linked = |node: &&Node| !view.is_myself(node) && view.is_connected(node.id);
    let others: Vec<&Node> = view.nodes().iter().filter(is_linked).collect();
    reply.array(2 * others.len());
    for node in others {
        for direction in ["to", "from"] {
            reply.map(6);
            for (name, value) in [("direction", direction.as_bytes()), ("node", node.id.as_bytes())] {
                reply.bulk(name.as_bytes());
                reply.bulk(value);
            }
            reply.bulk(b"create-time");
            reply.integer(node.met_ms);
            reply.bulk(b"events");
            reply.bulk(b"r");
            for name in ["send-buffer-allocated", "send-buffer-used"] {
                reply.bulk(name.as_bytes());
                reply.integer(EMPTY_BUFFER_BYTES);
            }
        }
    }
    Ok(())
}
