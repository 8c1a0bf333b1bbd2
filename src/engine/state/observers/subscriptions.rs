//! Subscriptions: channels, patterns and shard channels, each with its sessions.
//!
//! A name is stored once and shared by the directory and by every session that subscribes to it. This module sends
//! nothing: [`crate::engine::exec::publish`] does.
//!
//! Invariant: a name is listed while a session subscribes to it, and no longer; a session is listed under exactly the
//! names in its own [`Subscribed`]. Every listed session is alive: a session that ends is removed from all names.
//!
//! Order: a channel's sessions receive in the order of their ids, patterns are tried in the order in which they were
//! first subscribed to, lists of names are sorted. So nothing depends on how a table hashes.
//!
//! Costs: O(log s) to subscribe or unsubscribe, s being the sessions of a name or the names of a session; to publish,
//! one probe, and one match for every pattern that has subscribers.

use std::collections::btree_map::BTreeMap;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::state::SessionId;
use crate::value::glob;

/// The kind of name that a session subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A channel (SUBSCRIBE).
    Channel,
    /// All channels that match a pattern (PSUBSCRIBE).
    Pattern,
    /// A shard channel (SSUBSCRIBE): a channel in a separate namespace, and in a slot of a cluster.
    Shard,
}

/// The names that one session subscribes to.
#[derive(Debug, Default)]
pub struct Subscribed {
    channels: BTreeSet<Arc<[u8]>>,
    patterns: BTreeSet<Arc<[u8]>>,
    shards: BTreeSet<Arc<[u8]>>,
    /// The bytes of all names, with the memory of their entries.
    memory_bytes: usize,
}

/// The memory of a name's entries, here and in the directory, beside the bytes of the name.
const NAME_BYTES: usize = 128;

impl Subscribed {
    /// The number of names of that kind.
    pub fn count(&self, topic: Topic) -> usize {
        self.names(topic).len()
    }

    /// About how many bytes of memory the names take, as if no other session shared them.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// True while the session subscribes to nothing.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shards.is_empty()
    }

    /// The first name of that kind, in sorted order.
    pub fn first(&self, topic: Topic) -> Option<Arc<[u8]>> {
        self.names(topic).first().cloned()
    }

    /// The names of that kind, sorted.
    pub fn names(&self, topic: Topic) -> &BTreeSet<Arc<[u8]>> {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
            Topic::Shard => &self.shards,
        }
    }

    fn names_mut(&mut self, topic: Topic) -> &mut BTreeSet<Arc<[u8]>> {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
            Topic::Shard => &mut self.shards,
        }
    }
}

/// The sessions that subscribe to one name.
pub type Audience = BTreeSet<SessionId>;

/// The subscriptions of all sessions, by name.
#[derive(Debug, Default)]
pub struct Subscriptions {
    channels: HashMap<Arc<[u8]>, Audience>,
    shards: HashMap<Arc<[u8]>, Audience>,
    patterns: Patterns,
    /// The number of sessions with a subscription.
    pub subscribers: usize,
}

impl Subscriptions {
    /// Subscribes a session to a name; false when it was subscribed already.
    pub fn add(&mut self, session: SessionId, own: &mut Subscribed, topic: Topic, name: &[u8]) -> bool {
        if own.names(topic).contains(name) {
            return false;
        }
        self.subscribers += usize::from(own.is_empty());
        let name = match topic {
            Topic::Channel => join(&mut self.channels, session, name),
            Topic::Shard => join(&mut self.shards, session, name),
            Topic::Pattern => self.patterns.join(session, name),
        };
        own.memory_bytes += name.len() + NAME_BYTES;
        own.names_mut(topic).insert(name);
        true
    }

    /// Unsubscribes a session from a name; false when it was not subscribed.
    pub fn remove(&mut self, session: SessionId, own: &mut Subscribed, topic: Topic, name: &[u8]) -> bool {
        if !own.names_mut(topic).remove(name) {
            return false;
        }
        own.memory_bytes -= name.len() + NAME_BYTES;
        match topic {
            Topic::Channel => leave(&mut self.channels, session, name),
            Topic::Shard => leave(&mut self.shards, session, name),
            Topic::Pattern => self.patterns.leave(session, name),
        }
        self.subscribers -= usize::from(own.is_empty());
        true
    }

    /// Unsubscribes a session from all names.
    pub fn remove_all(&mut self, session: SessionId, own: &mut Subscribed) {
        for topic in [Topic::Channel, Topic::Pattern, Topic::Shard] {
            while let Some(name) = own.first(topic) {
                self.remove(session, own, topic, &name);
            }
        }
    }

    /// The sessions that subscribe to a channel or shard channel, or to a pattern as such.
    pub fn audience(&self, topic: Topic, name: &[u8]) -> Option<&Audience> {
        match topic {
            Topic::Channel => self.channels.get(name),
            Topic::Shard => self.shards.get(name),
            Topic::Pattern => self.patterns.named(name),
        }
    }

    /// The patterns that `channel` matches, with the sessions that subscribe to them.
    pub fn matching<'a>(&'a self, channel: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a Audience)> {
        let all = self.patterns.in_order.values().map(|(pattern, audience)| (&**pattern, audience));
        all.filter(move |(pattern, _)| glob::matches(pattern, channel, false))
    }

    /// The number of names of that kind with subscribers.
    pub fn count(&self, topic: Topic) -> usize {
        match topic {
            Topic::Channel => self.channels.len(),
            Topic::Shard => self.shards.len(),
            Topic::Pattern => self.patterns.in_order.len(),
        }
    }

    /// The channels or shard channels that have subscribers and are wanted, sorted.
    pub fn names(&self, topic: Topic, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<&[u8]> {
        let is_wanted = |name: &&[u8]| is_wanted(name);
        let mut names: Vec<&[u8]> = match topic {
            Topic::Channel => self.channels.keys().map(|name| &**name).filter(is_wanted).collect(),
            Topic::Shard => self.shards.keys().map(|name| &**name).filter(is_wanted).collect(),
            Topic::Pattern => self.patterns.in_order.values().map(|(name, _)| &**name).filter(is_wanted).collect(),
        };
        names.sort_unstable();
        names
    }

    /// Whether any session subscribes to a shard channel.
    pub fn has_shard_channels(&self) -> bool {
        !self.shards.is_empty()
    }

    /// True when there are no channels or patterns, so that a message would reach no client.
    pub fn has_no_channels_or_patterns(&self) -> bool {
        self.channels.is_empty() && self.patterns.in_order.is_empty()
    }
}

fn join(listed: &mut HashMap<Arc<[u8]>, Audience>, session: SessionId, name: &[u8]) -> Arc<[u8]> {
    if let Some((known, _)) = listed.get_key_value(name) {
        let known = Arc::clone(known);
        listed.entry(Arc::clone(&known)).or_default().insert(session);
        return known;
    }
    let name: Arc<[u8]> = name.into();
    listed.insert(Arc::clone(&name), Audience::from([session]));
    name
}

fn leave(listed: &mut HashMap<Arc<[u8]>, Audience>, session: SessionId, name: &[u8]) {
    if let Some(audience) = listed.get_mut(name) {
        audience.remove(&session);
        if audience.is_empty() {
            listed.remove(name);
        }
    }
}

/// Patterns in the order in which they were first subscribed to, which is the order of matching.
#[derive(Debug, Default)]
struct Patterns {
    places: HashMap<Arc<[u8]>, u64>,
    in_order: BTreeMap<u64, (Arc<[u8]>, Audience)>,
    places_given: u64,
}

impl Patterns {
    fn named(&self, pattern: &[u8]) -> Option<&Audience> {
        let place = self.places.get(pattern)?;
        self.in_order.get(place).map(|(_, audience)| audience)
    }

    fn join(&mut self, session: SessionId, pattern: &[u8]) -> Arc<[u8]> {
        if let Some((known, audience)) = self.places.get(pattern).and_then(|place| self.in_order.get_mut(place)) {
            audience.insert(session);
            return Arc::clone(known);
        }
        let pattern: Arc<[u8]> = pattern.into();
        self.places_given += 1;
        self.places.insert(Arc::clone(&pattern), self.places_given);
        self.in_order.insert(self.places_given, (Arc::clone(&pattern), Audience::from([session])));
        pattern
    }

    fn leave(&mut self, session: SessionId, pattern: &[u8]) {
        let Some(&place) = self.places.get(pattern) else { return };
        let Some((_, audience)) = self.in_order.get_mut(&place) else { return };
        audience.remove(&session);
        if audience.is_empty() {
            self.in_order.remove(&place);
            self.places.remove(pattern);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::Sessions;

    fn sessions<const COUNT: usize>() -> [SessionId; COUNT] {
        let mut sessions = Sessions::default();
        [(); COUNT].map(|()| sessions.open_one())
    }

    #[test]
    fn a_channel_is_listed_while_a_client_subscribes_to_it() {
        let [ann, bob] = sessions();
        let (mut all, mut anns, mut bobs) = (Subscriptions::default(), Subscribed::default(), Subscribed::default());
        for topic in [Topic::Channel, Topic::Pattern, Topic::Shard] {
            assert!(all.add(ann, &mut anns, topic, b"news"));
            assert!(!all.add(ann, &mut anns, topic, b"news"));
            assert!(all.add(bob, &mut bobs, topic, b"news"));
            assert_eq!((all.count(topic), all.audience(topic, b"news").map(Audience::len)), (1, Some(2)));
        }
        assert_eq!(all.subscribers, 2);
        all.remove_all(ann, &mut anns);
        assert_eq!((all.subscribers, anns.is_empty(), all.count(Topic::Shard)), (1, true, 1));
        assert!(!all.remove(ann, &mut anns, Topic::Shard, b"news"));
        all.remove_all(bob, &mut bobs);
        for topic in [Topic::Channel, Topic::Pattern, Topic::Shard] {
            assert_eq!((all.count(topic), all.audience(topic, b"news")), (0, None));
        }
        assert!(all.has_no_channels_or_patterns());
    }

    #[test]
    fn patterns_are_tried_in_the_order_of_their_first_subscription() {
        let [ann] = sessions();
        let (mut all, mut anns) = (Subscriptions::default(), Subscribed::default());
        for pattern in [&b"n*"[..], b"*", b"x*", b"?ews"] {
            all.add(ann, &mut anns, Topic::Pattern, pattern);
        }
        all.remove(ann, &mut anns, Topic::Pattern, b"n*");
        all.add(ann, &mut anns, Topic::Pattern, b"n*");
        let matching: Vec<&[u8]> = all.matching(b"news").map(|(pattern, _)| pattern).collect();
        assert_eq!(matching, [&b"*"[..], b"?ews", b"n*"]);
    }
}
