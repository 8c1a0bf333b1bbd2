//! The rules of strict mode: the name, subject and default limit of each.

/// Something that passes in a test and breaks in production.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A script uses a key that was not passed to it.
    UndeclaredKeys,
    /// The keys of one command, script or transaction belong to different slots of a cluster.
    CrossSlot,
    /// KEYS among many keys.
    KeysCommand,
    /// All of a large collection is read at once.
    WholeReads,
    /// A large payload is put into a list, set or sorted set.
    LargeElements,
    /// A collection may grow without bound.
    UnboundedCollection,
    /// A key gets its deadline in another step than its value.
    LateExpire,
    /// A score is beyond the integers that a double represents exactly.
    LossyScores,
    /// A blocking command has no timeout.
    EndlessWaits,
    /// Another database than 0 is used.
    Select,
    /// A command is about all keys, of which a node of a cluster has some.
    WholeServer,
    /// SORT reads keys that may be in another slot than the sorted one.
    SortOutside,
    /// A client does not follow a redirect to another node.
    MovedUnhandled,
    /// A replica is read that has not applied a write to the key yet.
    StaleRead,
}

/// The level of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The rule is not checked.
    #[default]
    Off,
    /// Findings are recorded.
    Warn,
    /// The command is refused, and the finding recorded.
    Error,
}

impl Rule {
    /// All rules, in the order in which they are listed.
    pub const ALL: [Rule; 14] = [
        Rule::UndeclaredKeys,
        Rule::CrossSlot,
        Rule::KeysCommand,
        Rule::WholeReads,
        Rule::LargeElements,
        Rule::UnboundedCollection,
        Rule::LateExpire,
        Rule::LossyScores,
        Rule::EndlessWaits,
        Rule::Select,
        Rule::WholeServer,
        Rule::SortOutside,
        Rule::MovedUnhandled,
        Rule::StaleRead,
    ];
    /// The rules for any application. `UndeclaredKeys` and `CrossSlot` are in [`Rule::CLUSTER`], too.
    pub const GENERAL: [Rule; 9] = *Rule::ALL.first_chunk().expect("they come first");
    /// The rules for an application whose production is a cluster, or is going to be one.
    pub const CLUSTER: [Rule; 7] = [
        Rule::UndeclaredKeys,
        Rule::CrossSlot,
        Rule::Select,
        Rule::WholeServer,
        Rule::SortOutside,
        Rule::MovedUnhandled,
        Rule::StaleRead,
    ];

    /// The name of the rule, as DUNLIN STRICT has it.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// A description in one line of the fault that the rule finds.
    pub fn about(self) -> &'static str {
        self.row().1
    }

    /// The default limit of the number that the rule counts: keys, elements or bytes.
    pub fn usual_limit(self) -> Option<u64> {
        self.row().2
    }

    /// The rule of that name, in any case.
    #[doc(hidden)]
    pub fn of(name: &[u8]) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.name().as_bytes().eq_ignore_ascii_case(name))
    }

    pub(in crate::engine) fn place(self) -> usize {
        self as usize
    }

    fn row(self) -> (&'static str, &'static str, Option<u64>) {
        match self {
            Rule::UndeclaredKeys => ("undeclared-keys", "a script uses keys that are not among its KEYS", None),
            Rule::CrossSlot => {
                ("cross-slot", "keys of one command, script or transaction are in different slots of a cluster", None)
            }
            Rule::KeysCommand => ("keys-command", "KEYS in a database of more keys than the limit", Some(100)),
            Rule::WholeReads => {
                ("whole-reads", "a collection of more elements than the limit is read at once", Some(1000))
            }
            Rule::LargeElements => {
                ("large-elements", "an element of a list, set or sorted set has more bytes than the limit", Some(1024))
            }
            Rule::UnboundedCollection => (
                "unbounded-collection",
                "a list, set, sorted set or stream is written, never trimmed, and has no deadline at the end",
                None,
            ),
            Rule::LateExpire => {
                ("late-expire", "a key gets its deadline in another step than its value, and may never get it", None)
            }
            Rule::LossyScores => ("lossy-scores", "a score is beyond 2^53, where not every integer exists", None),
            Rule::EndlessWaits => ("endless-waits", "a blocking command has no timeout", None),
            Rule::Select => ("select", "another database than 0 is used, and a cluster has no other", None),
            Rule::WholeServer => {
                ("whole-server", "a command is about all keys, and a node of a cluster has only some", None)
            }
            Rule::SortOutside => {
                ("sort-outside", "SORT reads keys that may be in another slot of a cluster than the sorted one", None)
            }
            Rule::MovedUnhandled => {
                ("moved-unhandled", "a client of a cluster is sent to another node, and does not go there", None)
            }
            Rule::StaleRead => ("stale-read", "a replica is read that has not applied a write to the key yet", None),
        }
    }
}

impl Level {
    /// The name of the level, as DUNLIN STRICT has it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }

    /// The level of that name, in any case.
    #[doc(hidden)]
    pub fn of(name: &[u8]) -> Option<Level> {
        let all = [Level::Off, Level::Warn, Level::Error];
        all.into_iter().find(|level| level.name().as_bytes().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_name_and_its_index() {
        for (place, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!((rule.place(), Rule::of(rule.name().to_uppercase().as_bytes())), (place, Some(rule)));
        }
        assert!(Rule::CLUSTER.iter().chain(&Rule::GENERAL).all(|rule| Rule::ALL.contains(rule)));
        assert_eq!((Rule::of(b"nosuch"), Level::of(b"ERROR"), Level::of(b"")), (None, Some(Level::Error), None));
    }
}
