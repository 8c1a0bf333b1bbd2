//! The parts of a reply that differ between two servers that do the same: times, addresses, sizes, and random choices
//! of Redis itself. They are masked, so that everything else is compared.

use crate::reply::Reply;

/// The text that replaces a part that is not compared.
const ANY: &[u8] = b"...";

/// Fields of CLIENT LIST that depend on sockets, times and buffers: also on whether a reply is still in one.
const OF_CLIENTS: &[&str] = &[
    "addr",
    "laddr",
    "fd",
    "age",
    "idle",
    "qbuf",
    "qbuf-free",
    "argv-mem",
    "rbs",
    "rbp",
    "obl",
    "oll",
    "omem",
    "tot-mem",
    "events",
];

/// Fields of replies that are maps, and of those that are lists of names and values: times, and how Redis's trees look.
const FIELDS: &[&str] = &[
    "idle",
    "inactive",
    "seen-time",
    "active-time",
    "age-seconds",
    "timestamp-created",
    "timestamp-last-updated",
    "duration_ms",
    "radix-tree-nodes",
    "modules",
];

/// Sorts received replies whose order is random: the deliveries of one message to patterns, and the confirmations of
/// leaving several channels.
pub(super) fn arranged(mut replies: Vec<Reply>) -> Vec<Reply> {
    let shown = |reply: &Reply| format!("{reply:?}");
    for run in replies.chunk_by_mut(are_of_one_message) {
        run.sort_by_key(shown);
    }
    let left = |one: &Reply, other: &Reply| channel_left(one).is_some() && channel_left(other).is_some();
    for run in replies.chunk_by_mut(left).filter(|run| run.len() > 1) {
        let mut channels: Vec<Reply> = run.iter().filter_map(channel_left).cloned().collect();
        channels.sort_by_key(shown);
        for (reply, channel) in run.iter_mut().zip(channels) {
            if let Reply::Array(items) | Reply::Push(items) = reply {
                items[1] = channel;
            }
        }
    }
    replies
}

/// The channel in a confirmation of UNSUBSCRIBE.
fn channel_left(reply: &Reply) -> Option<&Reply> {
    match reply {
        Reply::Array(items) | Reply::Push(items) => match items.as_slice() {
            [Reply::Bulk(kind), channel, Reply::Integer(_)] if kind.ends_with(b"unsubscribe") => Some(channel),
            _ => None,
        },
        _ => None,
    }
}

/// Masks the channel in a confirmation of UNSUBSCRIBE: the order of several is random.
pub(super) fn without_channel_left(mut reply: Reply) -> Reply {
    if channel_left(&reply).is_some()
        && let Reply::Array(items) | Reply::Push(items) = &mut reply
    {
        items[1] = Reply::Bulk(ANY.to_vec());
    }
    reply
}

/// Whether both are deliveries of the same message to patterns.
fn are_of_one_message(one: &Reply, other: &Reply) -> bool {
    match (one, other) {
        (Reply::Array(one), Reply::Array(other)) | (Reply::Push(one), Reply::Push(other)) => {
            one.len() == 4
                && other.len() == 4
                && one[0] == Reply::Bulk(b"pmessage".to_vec())
                && one[0] == other[0]
                && one[2..] == other[2..]
        }
        _ => false,
    }
}

/// A reply of that command without what differs.
pub(super) fn masked(command: &str, reply: Reply) -> Reply {
    match command {
        "client|list" | "client|info" => of_text(reply, &client_lines),
        "acl|log" => of_text(without_fields(reply), &client_lines),
        "xinfo|stream" => without_delivery_times(without_fields(reply)),
        "xinfo|consumers" | "xinfo|groups" | "function|stats" | "hello" => without_fields(reply),
        "role" => within_place(reply, 1),
        "dump" => payload(reply),
        "config|get" => in_order_of_names(reply),
        // After a change of the policy, the bits of one kind are read as the other.
        "object|idletime" | "object|freq" if matches!(reply, Reply::Integer(_)) => Reply::Simple(ANY.to_vec()),
        "xpending" => within_items(reply, &|entry| within_place(entry, 2)),
        "slowlog|get" => {
            within_items(without_pings(reply), &|entry| [0, 1, 2, 4].into_iter().fold(entry, within_place))
        }
        _ => reply,
    }
}

/// Redis has parameters in a table, so those of a pattern come in an order of chance.
fn in_order_of_names(reply: Reply) -> Reply {
    let name = |pair: &(Reply, Reply)| format!("{:?}", pair.0);
    match reply {
        Reply::Map(mut pairs) => {
            pairs.sort_by_key(name);
            Reply::Map(pairs)
        }
        Reply::Array(items) => {
            let mut pairs: Vec<Vec<Reply>> = items.chunks(2).map(<[Reply]>::to_vec).collect();
            pairs.sort_by_key(|pair| format!("{:?}", pair.first()));
            Reply::Array(pairs.concat())
        }
        reply => reply,
    }
}

/// Types of payloads with the members of a table, which are in an order of chance, or with moments: sets (packed ones
/// may be made of a table), hashes, and hashes whose fields have deadlines; streams.
const DISORDERED: &[u8] = &[2, 20, 4, 24, 25, 15, 19, 21];

/// A payload of DUMP; where it depends on chance or time, only its type and how long it is.
fn payload(reply: Reply) -> Reply {
    match &reply {
        Reply::Bulk(bytes) if bytes.first().is_some_and(|kind| DISORDERED.contains(kind)) => {
            Reply::Bulk(format!("{} bytes of type {}", bytes.len(), bytes[0]).into_bytes())
        }
        _ => reply,
    }
}

/// The most seconds by which deadlines may differ: our clock is frozen while the other runs.
const APART_S: i64 = 600;

/// Whether both are deadlines, in seconds or milliseconds, that differ only by the times when they were set and read.
pub(super) fn are_near(command: &str, real: &Reply, ours: &Reply) -> bool {
    let apart = match command.trim_start_matches('h') {
        "ttl" | "expiretime" => APART_S,
        "pttl" | "pexpiretime" => APART_S * 1000,
        _ => return false,
    };
    let number = |text: &str| text.parse::<i64>().ok().filter(|&number| number > apart);
    match (real, ours) {
        (Reply::Array(real), Reply::Array(ours)) => {
            let is_near = |(real, ours)| real == ours || are_near(command, real, ours);
            real.len() == ours.len() && real.iter().zip(ours).all(is_near)
        }
        (Reply::Integer(real), Reply::Integer(ours)) => {
            number(real).zip(number(ours)).is_some_and(|(real, ours)| real.abs_diff(ours) <= apart.unsigned_abs())
        }
        _ => false,
    }
}

/// The number of entries of the slow log that are compared.
const SLOW: usize = 20;

/// The walk's own requests are among the slow ones, sometimes before another client's, sometimes after it.
fn without_pings(reply: Reply) -> Reply {
    let ping = Reply::Array(vec![Reply::Bulk(b"PING".to_vec())]);
    let is_ping = |entry: &Reply| matches!(entry, Reply::Array(parts) if parts.get(3) == Some(&ping));
    match reply {
        Reply::Array(entries) => {
            let kept = entries.into_iter().filter(|entry| !is_ping(entry)).take(SLOW);
            Reply::Array(kept.map(without_secrets).collect())
        }
        reply => reply,
    }
}

/// Secrets are hidden here in every request; in Redis only after they were parsed.
fn without_secrets(entry: Reply) -> Reply {
    let Reply::Array(mut parts) = entry else { return entry };
    if let Some(Reply::Array(words)) = parts.get_mut(3)
        && let Some(Reply::Bulk(name)) = words.first()
        && [&b"AUTH"[..], b"HELLO"].contains(&name.as_slice())
    {
        words.truncate(1);
    }
    Reply::Array(parts)
}

/// A message without what differs: a line of MONITOR begins with a time and holds an address.
pub(super) fn masked_message(message: Reply) -> Reply {
    match message {
        Reply::Simple(line) => Reply::Simple(monitored(&line).unwrap_or(line)),
        message => message,
    }
}

/// `+1700000000.000001 [0 127.0.0.1:5000] "GET" "a"` with only the database in its brackets.
fn monitored(line: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok()?;
    let (time, rest) = text.split_once(" [")?;
    let (place, words) = rest.split_once("] ")?;
    let (database, from) = place.split_once(' ')?;
    time.parse::<f64>().ok()?;
    let from = if from == "lua" { "lua" } else { "..." };
    let words = if words.starts_with("\"AUTH\"") || words.starts_with("\"HELLO\"") { &words[..6] } else { words };
    Some(format!("[{database} {from}] {words}").into_bytes())
}

fn client_lines(text: &str) -> String {
    let field = |field: &str| match field.split_once('=') {
        Some((name, _)) if OF_CLIENTS.contains(&name) => format!("{name}=..."),
        _ => field.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(field).collect::<Vec<_>>().join(" ");
    // The walk's own client may have sent other requests meanwhile.
    text.split('\n').filter(|line| !line.contains(" user=walker ")).map(line).collect::<Vec<_>>().join("\n")
}

/// The reply with every text in it rewritten.
fn of_text(reply: Reply, rewrite: &dyn Fn(&str) -> String) -> Reply {
    let text =
        |bytes: Vec<u8>| std::str::from_utf8(&bytes).map(|text| rewrite(text).into_bytes()).unwrap_or(bytes.clone());
    match reply {
        Reply::Bulk(bytes) => Reply::Bulk(text(bytes)),
        Reply::Verbatim(bytes) => Reply::Verbatim(text(bytes)),
        reply => within(reply, &|inner| of_text(inner, rewrite)),
    }
}

/// The reply with the elements of the outermost list changed.
fn within_items(reply: Reply, change: &dyn Fn(Reply) -> Reply) -> Reply {
    match reply {
        Reply::Array(items) => Reply::Array(items.into_iter().map(change).collect()),
        reply => reply,
    }
}

/// Masks the element at one place of a list.
fn within_place(reply: Reply, place: usize) -> Reply {
    match reply {
        Reply::Array(mut items) => {
            if let Some(item @ (Reply::Integer(_) | Reply::Bulk(_))) = items.get_mut(place) {
                *item = Reply::Simple(ANY.to_vec());
            }
            Reply::Array(items)
        }
        reply => reply,
    }
}

fn within(reply: Reply, change: &dyn Fn(Reply) -> Reply) -> Reply {
    match reply {
        Reply::Array(items) => Reply::Array(items.into_iter().map(change).collect()),
        Reply::Set(items) => Reply::Set(items.into_iter().map(change).collect()),
        Reply::Push(items) => Reply::Push(items.into_iter().map(change).collect()),
        Reply::Map(pairs) => Reply::Map(pairs.into_iter().map(|(key, value)| (key, change(value))).collect()),
        leaf => leaf,
    }
}

/// The reply without the values of some fields.
fn without_fields(reply: Reply) -> Reply {
    let is_field =
        |name: &Reply| matches!(name, Reply::Bulk(name) if FIELDS.iter().any(|field| field.as_bytes() == name));
    match reply {
        Reply::Map(pairs) => Reply::Map(
            pairs
                .into_iter()
                .map(|(name, value)| {
                    let value = if is_field(&name) { Reply::Simple(ANY.to_vec()) } else { without_fields(value) };
                    (name, value)
                })
                .collect(),
        ),
        Reply::Array(items) => {
            let mut kept: Vec<Reply> = Vec::new();
            for item in items {
                let is_value = kept.len() % 2 == 1 && kept.last().is_some_and(is_field);
                kept.push(if is_value { Reply::Simple(ANY.to_vec()) } else { without_fields(item) });
            }
            Reply::Array(kept)
        }
        reply => reply,
    }
}

/// XINFO STREAM FULL shows when each pending entry was delivered: `[id consumer time count]`, `[id time count]`.
fn without_delivery_times(reply: Reply) -> Reply {
    let reply = match reply {
        Reply::Array(items) => match items.as_slice() {
            [Reply::Bulk(_), Reply::Bulk(_), Reply::Integer(_), Reply::Integer(_)] => {
                within_place(Reply::Array(items), 2)
            }
            [Reply::Bulk(_), Reply::Integer(_), Reply::Integer(_)] => within_place(Reply::Array(items), 1),
            _ => Reply::Array(items),
        },
        reply => reply,
    };
    within(reply, &without_delivery_times)
}
