//! Publishing: turns messages and keyspace notifications into frames, and queues them for subscribers.
//!
//! A frame is built once for all subscribers of a channel or pattern with the same protocol, and shared by them.
//! A client that publishes to itself reads the message after the reply, since every push follows the reply to the
//! command that the client runs.
//!
//! Sources: the answers of Redis 8.0.6; its documentation of keyspace notifications.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::delivery;
use crate::engine::exec::delivery::Delivery;
use crate::engine::spec::Event;
use crate::engine::state::observers::Audience;
use crate::engine::state::{SessionId, Topic};
use crate::resp::{Protocol, Reply};

/// Subscribes a session to a channel, pattern or shard channel.
pub fn subscribe(engine: &mut Engine, session: SessionId, topic: Topic, name: &[u8]) {
    if let Some(client) = engine.sessions.get_mut(session) {
        engine.observers.subscriptions.add(session, &mut client.subscribed, topic, name);
    }
}

/// Unsubscribes a session from a channel, pattern or shard channel.
pub fn unsubscribe(engine: &mut Engine, session: SessionId, topic: Topic, name: &[u8]) {
    if let Some(client) = engine.sessions.get_mut(session) {
        engine.observers.subscriptions.remove(session, &mut client.subscribed, topic, name);
    }
}

/// Ends all subscriptions to the shard channels that are meant, and tells their subscribers.
pub(super) fn end_shard_subscriptions(engine: &mut Engine, is_meant: impl Fn(&[u8]) -> bool) {
    let subscriptions = &engine.observers.subscriptions;
    let names: Vec<Vec<u8>> = subscriptions.names(Topic::Shard, is_meant).into_iter().map(<[u8]>::to_vec).collect();
    for name in names {
        let audience = engine.observers.subscriptions.audience(Topic::Shard, &name).cloned().unwrap_or_default();
        for session in audience {
            unsubscribe(engine, session, Topic::Shard, &name);
            let Some(client) = engine.sessions.get(session) else { continue };
            let mut frame = Vec::new();
            write_unsubscribed(
                &mut Reply::new(&mut frame, client.protocol),
                &name,
                client.subscribed.count(Topic::Shard),
            );
            delivery::send(engine, session, frame.into());
        }
    }
}

fn write_unsubscribed(reply: &mut Reply<'_>, channel: &[u8], left: usize) {
    reply.push(3);
    reply.bulk(b"sunsubscribe");
    reply.bulk(channel);
    reply.count(left);
}

/// Ends all subscriptions of a session, and its MONITOR.
pub fn unsubscribe_all(engine: &mut Engine, session: SessionId) {
    if let Some(client) = engine.sessions.get_mut(session) {
        engine.observers.unsubscribe_all(client);
    }
}

/// Sends a message to all subscribers of a channel or shard channel; returns the number of receivers. A client with
/// several matching subscriptions receives the message, and is counted, once for each.
pub fn publish(engine: &mut Engine, topic: Topic, channel: &[u8], message: &[u8]) -> usize {
    let (subscriptions, mut delivery) = delivery::with_subscriptions(engine);
    let mut receivers = 0;
    if let Some(audience) = subscriptions.audience(topic, channel) {
        let kind: &[u8] = if topic == Topic::Shard { b"smessage" } else { b"message" };
        receivers += delivery.spread(audience, &mut Frames::of(&[kind, channel, message]));
    }
    if topic == Topic::Channel {
        for (pattern, audience) in subscriptions.matching(channel) {
            receivers += delivery.spread(audience, &mut Frames::of(&[b"pmessage", pattern, channel, message]));
        }
    }
    receivers
}

/// Publishes a keyspace notification, if `notify-keyspace-events` has the event's class.
#[inline]
pub(super) fn notify(engine: &mut Engine, database: usize, event: Event, key: &[u8]) {
    if engine.settings.notifications.has(event.class) && !engine.observers.subscriptions.has_no_channels_or_patterns() {
        publish_event(engine, database, event, key);
    }
}

fn publish_event(engine: &mut Engine, database: usize, event: Event, key: &[u8]) {
    let wanted = engine.settings.notifications;
    let mut channel = Vec::with_capacity(32 + key.len());
    if wanted.by_key {
        name_channel(&mut channel, "keyspace", database, key);
        publish(engine, Topic::Channel, &channel, event.name.as_bytes());
    }
    if wanted.by_event {
        name_channel(&mut channel, "keyevent", database, event.name.as_bytes());
        publish(engine, Topic::Channel, &channel, key);
    }
}

/// Writes the name of a notification channel: `__kind@database__:name`.
fn name_channel(channel: &mut Vec<u8>, kind: &str, database: usize, name: &[u8]) {
    let mut digits = itoa::Buffer::new();
    channel.clear();
    for part in [b"__", kind.as_bytes(), b"@", digits.format(database).as_bytes(), b"__:", name] {
        channel.extend_from_slice(part);
    }
}

impl Delivery<'_> {
    /// Queues a frame for each session of an audience; returns the number of sessions.
    fn spread(&mut self, audience: &Audience, frames: &mut Frames<'_>) -> usize {
        for &session in audience {
            if let Some(receiver) = self.receiver(session) {
                let frame = frames.get(receiver.protocol);
                self.send(session, frame);
            }
        }
        audience.len()
    }
}

/// A push message as a frame of each protocol; built for a protocol when its first subscriber needs it.
struct Frames<'m> {
    words: &'m [&'m [u8]],
    resp2: Option<Arc<[u8]>>,
    resp3: Option<Arc<[u8]>>,
}

impl<'m> Frames<'m> {
    fn of(words: &'m [&'m [u8]]) -> Frames<'m> {
        Frames { words, resp2: None, resp3: None }
    }

    fn get(&mut self, protocol: Protocol) -> Arc<[u8]> {
        let frame = match protocol {
            Protocol::Resp2 => &mut self.resp2,
            Protocol::Resp3 => &mut self.resp3,
        };
        Arc::clone(frame.get_or_insert_with(|| built(self.words, protocol)))
    }
}

fn built(words: &[&[u8]], protocol: Protocol) -> Arc<[u8]> {
    let mut bytes = Vec::with_capacity(words.iter().map(|word| word.len() + 16).sum::<usize>() + 8);
    let mut reply = Reply::new(&mut bytes, protocol);
    reply.push(words.len());
    for word in words {
        reply.bulk(word);
    }
    bytes.into()
}
