//! Publishing: from a message to the frames that subscribers read, and keyspace notifications, which are messages too.
//!
//! A frame is built once for all subscribers of a channel or pattern who speak the same protocol, and shared by them.
//! A client that publishes to itself reads the message after the reply, as everything that it is told comes after the
//! reply to what it runs.
//!
//! Sources: the answers of Redis 8.0.6; its documentation of keyspace notifications.

use std::sync::Arc;

use crate::engine::delivery::Delivery;
use crate::engine::observers::Audience;
use crate::engine::{Engine, Event, SessionId, Topic};
use crate::resp::{Protocol, Reply};

impl Engine {
    /// Adds a name to those that a session subscribes to.
    pub fn subscribe(&mut self, session: SessionId, topic: Topic, name: &[u8]) {
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.subscriptions.add(session, &mut client.subscribed, topic, name);
        }
    }

    /// Takes a name from those that a session subscribes to.
    pub fn unsubscribe(&mut self, session: SessionId, topic: Topic, name: &[u8]) {
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.subscriptions.remove(session, &mut client.subscribed, topic, name);
        }
    }

    /// Takes from a session all that it subscribes to or watches.
    pub fn unsubscribe_all(&mut self, session: SessionId) {
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.unsubscribe_all(client);
        }
    }

    /// Sends a message to all who listen to a channel or shard channel; answers how many receive it, and one that
    /// listens in several ways receives it as often.
    pub fn publish(&mut self, topic: Topic, channel: &[u8], message: &[u8]) -> usize {
        let (subscriptions, mut delivery) = self.listening();
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

    /// Tells subscribers what happened to a key, if `notify-keyspace-events` has that class.
    #[inline]
    pub(super) fn notify(&mut self, database: usize, event: Event, key: &[u8]) {
        if self.settings.notifications.has(event.class) && !self.observers.subscriptions.are_deaf() {
            self.publish_event(database, event, key);
        }
    }

    fn publish_event(&mut self, database: usize, event: Event, key: &[u8]) {
        let wanted = self.settings.notifications;
        let mut channel = Vec::with_capacity(32 + key.len());
        if wanted.by_key {
            name_channel(&mut channel, "keyspace", database, key);
            self.publish(Topic::Channel, &channel, event.name.as_bytes());
        }
        if wanted.by_event {
            name_channel(&mut channel, "keyevent", database, event.name.as_bytes());
            self.publish(Topic::Channel, &channel, key);
        }
    }
}

/// `__kind@database__:name`.
fn name_channel(channel: &mut Vec<u8>, kind: &str, database: usize, name: &[u8]) {
    let mut digits = itoa::Buffer::new();
    channel.clear();
    for part in [b"__", kind.as_bytes(), b"@", digits.format(database).as_bytes(), b"__:", name] {
        channel.extend_from_slice(part);
    }
}

impl Delivery<'_> {
    /// Tells everyone of an audience; answers how many they are.
    fn spread(&mut self, audience: &Audience, frames: &mut Frames<'_>) -> usize {
        for &session in audience {
            if let Some(listener) = self.listener(session) {
                let frame = frames.get(listener.protocol);
                self.tell(session, frame);
            }
        }
        audience.len()
    }
}

/// A push message in the words of each protocol, as far as somebody speaks it.
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
