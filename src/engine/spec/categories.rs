//! Facts derived from a command's row: the old form of its key positions, and its ACL categories.

use crate::engine::spec::{Begin, Command, Find, Flags, KeyFlags, KeySpec};

/// The one range of keys that COMMAND INFO shows for clients that do not know key specifications: the first and the
/// last key (negative: from the end) and the step; all 0 when no key is at a fixed place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub first: i32,
    /// The last key.
    pub last: i32,
    /// The distance from one key to the next.
    pub step: i32,
}

/// Every ACL category, in Redis's order.
pub const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

impl Command {
    /// The range of the command's keys, as far as they are at fixed places.
    pub fn key_range(&self) -> KeyRange {
        self.walk_keys().0
    }

    /// The flags as COMMAND INFO lists them: those of the row, and `movablekeys` if some keys are not at fixed places.
    pub fn all_flags(&self) -> Flags {
        if self.walk_keys().1 { self.flags.and(Flags::MOVABLE_KEYS) } else { self.flags }
    }

    /// The range of the command's keys, and whether some keys are outside of it.
    fn walk_keys(&self) -> (KeyRange, bool) {
        if let [only] = self.keys
            && let Some(range) = range_of(only)
        {
            return (range, only.access.has(KeyFlags::INCOMPLETE));
        }
        let mut misses_some = false;
        let mut whole: Option<KeyRange> = None;
        for spec in self.keys {
            let follows = |range: &KeyRange| whole.is_none_or(|whole| whole.last + 1 == range.first);
            match range_of(spec).filter(|range| range.step == 1 && follows(range)) {
                Some(range) => {
                    let first = whole.map_or(range.first, |whole| whole.first);
                    whole = Some(KeyRange { first, ..range });
                    misses_some |= spec.access.has(KeyFlags::INCOMPLETE);
                }
                None => misses_some = true,
            }
        }
        (whole.unwrap_or_default(), misses_some)
    }

    /// The ACL categories of the command, in Redis's order.
    pub fn categories(&self) -> impl Iterator<Item = &'static str> + '_ {
        CATEGORIES.into_iter().filter(|category| self.is_in(category))
    }

    /// True when the command is in that ACL category. In a container, only the subcommands are in the family's
    /// category.
    pub fn is_in(&self, category: &str) -> bool {
        let flags = self.flags;
        match category {
            _ if flags.has(Flags::MODULE) => false,
            "keyspace" if flags.has(Flags::KEYSPACE) => true,
            "connection" if flags.has(Flags::CONNECTION) => true,
            "read" => flags.has(Flags::READONLY) && self.family.category() != Some("scripting"),
            "write" => flags.has(Flags::WRITE),
            "pubsub" => flags.has(Flags::PUBSUB),
            "admin" => flags.has(Flags::ADMIN) || flags.has(Flags::FOR_ADMINS),
            "fast" => flags.has(Flags::FAST),
            "slow" => !flags.has(Flags::FAST),
            "blocking" => flags.has(Flags::BLOCKING),
            "list" | "set" | "sortedset" if flags.has(Flags::COLLECTIONS) => true,
            "keyspace" if flags.has(Flags::COLLECTIONS) || flags.has(Flags::CONNECTION) => false,
            "dangerous" => self.is_in("admin") || flags.has(Flags::DANGEROUS),
            _ => !self.is_container() && self.family.category() == Some(category),
        }
    }
}

fn range_of(spec: &KeySpec) -> Option<KeyRange> {
    match (spec.begin, spec.find) {
        (Begin::Index(first), Find::Range { last, step, .. }) => {
            Some(KeyRange { first, last: if last < 0 { last } else { first + last }, step })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_keys(keys: &'static [KeySpec]) -> Command {
        Command { keys, ..Command::ROW }
    }

    #[test]
    fn adjacent_keys_become_one_range() {
        const NEIGHBOURS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW), KeySpec::at(2, KeyFlags::OW)];
        let command = with_keys(NEIGHBOURS);
        assert_eq!(command.key_range(), KeyRange { first: 1, last: 2, step: 1 });
        assert!(!command.all_flags().has(Flags::MOVABLE_KEYS));
    }

    #[test]
    fn counted_keys_are_in_no_range() {
        const COUNTED: &[KeySpec] = &[KeySpec::at(1, KeyFlags::OW), KeySpec::counted(2, KeyFlags::RO)];
        let command = with_keys(COUNTED);
        assert_eq!(command.key_range(), KeyRange { first: 1, last: 1, step: 1 });
        assert!(command.all_flags().has(Flags::MOVABLE_KEYS));
    }

    #[test]
    fn every_second_word_is_a_range_with_a_step() {
        const PAIRS: &[KeySpec] = &[KeySpec::range(1, -1, 2, KeyFlags::OW)];
        assert_eq!(with_keys(PAIRS).key_range(), KeyRange { first: 1, last: -1, step: 2 });
    }
}
