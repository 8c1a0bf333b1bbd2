//! The names of what can happen to a key, as keyspace notifications tell them.

/// Something that happens to a key: a name from Redis's documentation of keyspace notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it belongs to.
    pub class: Class,
    /// What is announced, such as `zadd`.
    pub name: &'static str,
}

/// The classes that `notify-keyspace-events` switches one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `g`: any type, such as `del`.
    Generic,
    /// `$`: strings.
    String,
    /// `l`: lists.
    List,
    /// `s`: sets.
    Set,
    /// `h`: hashes.
    Hash,
    /// `z`: sorted sets.
    SortedSet,
    /// `x`: a key reached its deadline.
    Expired,
}

impl Event {
    /// A key was removed.
    pub const DEL: Event = Event::generic("del");
    /// A key got a deadline.
    pub const EXPIRE: Event = Event::generic("expire");
    /// A key lost its deadline.
    pub const PERSIST: Event = Event::generic("persist");
    /// A key reached its deadline.
    pub const EXPIRED: Event = Event { class: Class::Expired, name: "expired" };
    /// Fields of a hash reached their deadline.
    pub const FIELDS_EXPIRED: Event = Event::hash("hexpired");

    /// An event of any type.
    pub const fn generic(name: &'static str) -> Event {
        Event { class: Class::Generic, name }
    }

    /// An event of strings.
    pub const fn string(name: &'static str) -> Event {
        Event { class: Class::String, name }
    }

    /// An event of lists.
    pub const fn list(name: &'static str) -> Event {
        Event { class: Class::List, name }
    }

    /// An event of sets.
    pub const fn set(name: &'static str) -> Event {
        Event { class: Class::Set, name }
    }

    /// An event of hashs.
    pub const fn hash(name: &'static str) -> Event {
        Event { class: Class::Hash, name }
    }

    /// An event of sorted sets.
    pub const fn sorted_set(name: &'static str) -> Event {
        Event { class: Class::SortedSet, name }
    }
}
