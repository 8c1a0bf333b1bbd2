//! Key events: their names in keyspace notifications, and the classes of `notify-keyspace-events`.

use std::fmt;

/// An event of a key, with its name in Redis's documentation of keyspace notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The class of the event.
    pub class: Class,
    /// The published name, such as `zadd`.
    pub name: &'static str,
}

/// The classes that `notify-keyspace-events` switches one by one, in the order in which it shows them.
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
    /// `e`: a key was evicted, because memory was short.
    Evicted,
    /// `t`: streams.
    Stream,
    /// `d`: types that modules add.
    Module,
    /// `n`: a key was created.
    New,
    /// `m`: a key that does not exist was looked up.
    Miss,
}

impl Class {
    /// All classes, in the order of their numbers.
    const ALL: [Class; 12] = [
        Class::Generic,
        Class::String,
        Class::List,
        Class::Set,
        Class::Hash,
        Class::SortedSet,
        Class::Expired,
        Class::Evicted,
        Class::Stream,
        Class::Module,
        Class::New,
        Class::Miss,
    ];

    fn letter(self) -> char {
        match self {
            Class::Generic => 'g',
            Class::String => '$',
            Class::List => 'l',
            Class::Set => 's',
            Class::Hash => 'h',
            Class::SortedSet => 'z',
            Class::Expired => 'x',
            Class::Evicted => 'e',
            Class::Stream => 't',
            Class::Module => 'd',
            Class::New => 'n',
            Class::Miss => 'm',
        }
    }

    /// Whether `A` includes this class.
    fn is_of_all(self) -> bool {
        !matches!(self, Class::New | Class::Miss)
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The events that are published, and their channels (`notify-keyspace-events`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notifications {
    /// `K`: on the channel of the key, `__keyspace@0__:key`.
    pub by_key: bool,
    /// `E`: on the channel of the event, `__keyevent@0__:del`.
    pub by_event: bool,
    classes: u16,
}

impl Notifications {
    /// The notifications that a value of `notify-keyspace-events` selects; `None` if it has an unknown letter.
    pub fn named(text: &str) -> Option<Notifications> {
        let mut named = Notifications::default();
        for letter in text.chars() {
            match letter {
                'K' => named.by_key = true,
                'E' => named.by_event = true,
                'A' => named.classes |= Notifications::bits_of_all(),
                _ => named.classes |= Class::ALL.into_iter().find(|class| class.letter() == letter)?.bit(),
            }
        }
        Some(named)
    }

    /// Whether events of this class are published.
    pub fn has(self, class: Class) -> bool {
        self.classes & class.bit() != 0
    }

    fn bits_of_all() -> u16 {
        Class::ALL.into_iter().filter(|class| class.is_of_all()).map(Class::bit).sum()
    }
}

impl fmt::Display for Notifications {
    /// Writes the value as CONFIG GET shows it; after `A`, `n` is not shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Notifications::bits_of_all();
        if self.classes & all == all {
            formatter.write_str("A")?;
        } else {
            for class in Class::ALL.into_iter().filter(|class| *class != Class::Miss && self.has(*class)) {
                write!(formatter, "{}", class.letter())?;
            }
        }
        for (letter, is_on) in [('K', self.by_key), ('E', self.by_event), (Class::Miss.letter(), self.has(Class::Miss))]
        {
            if is_on {
                write!(formatter, "{letter}")?;
            }
        }
        Ok(())
    }
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
    /// A key was evicted, because memory was short.
    pub const EVICTED: Event = Event { class: Class::Evicted, name: "evicted" };
    /// Fields of a hash reached their deadline.
    pub const FIELDS_EXPIRED: Event = Event::hash("hexpired");

    /// A key was created.
    pub const NEW: Event = Event { class: Class::New, name: "new" };
    /// A key that does not exist was looked up.
    pub const MISS: Event = Event { class: Class::Miss, name: "keymiss" };

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

    /// An event of hashes.
    pub const fn hash(name: &'static str) -> Event {
        Event { class: Class::Hash, name }
    }

    /// An event of sorted sets.
    pub const fn sorted_set(name: &'static str) -> Event {
        Event { class: Class::SortedSet, name }
    }

    /// An event of streams.
    pub const fn stream(name: &'static str) -> Event {
        Event { class: Class::Stream, name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_shown_in_their_own_order() {
        for (text, shown) in
            [("", ""), ("KEA", "AKE"), ("E$gK", "g$KE"), ("g$lshzxetdE", "AE"), ("A$nm", "Am"), ("KEnm", "nKEm")]
        {
            assert_eq!(Notifications::named(text).map(|named| named.to_string()).as_deref(), Some(shown), "{text}");
        }
        assert_eq!(Notifications::named("KQ"), None);
    }

    #[test]
    fn class_all_includes_neither_misses_nor_new_keys() {
        let all = Notifications::named("A").expect("it is a class");
        assert!(all.has(Class::Generic) && all.has(Class::Module) && !all.has(Class::New) && !all.has(Class::Miss));
    }
}
