//! The rows of all parameters, grouped by topic.
//!
//! A row with a fixed value shows the value in effect, or Redis's default if its topic does not exist here. A row has
//! no effect if its topic does not exist here (crash reports, connections between nodes), or if its effect always
//! happens (large values are always freed in the background). A number is cast to the type of its field, where the
//! row's bounds make it fit.

mod general;
mod hidden;
#[cfg(feature = "program")]
mod launch;
mod memory;
mod network;
#[cfg(feature = "page")]
mod page;
mod persistence;
mod replication;
mod tls;

pub use replication::REPL_BACKLOG_SIZE;

use super::parameter::Parameter;

/// All rows.
pub(super) const ALL: &[&[Parameter]] = &[
    network::ROWS,
    general::ROWS,
    memory::ROWS,
    persistence::ROWS,
    replication::ROWS,
    tls::ROWS,
    hidden::ROWS,
    #[cfg(feature = "program")]
    launch::ROWS,
    #[cfg(feature = "page")]
    page::ROWS,
];

/// The largest value of C's `int`.
const INT: i64 = i32::MAX as i64;
/// The largest value of C's `unsigned int`.
const UINT: i64 = u32::MAX as i64;
/// The largest value of C's `long`.
const LONG: i64 = i64::MAX;
/// The largest value of C's `long`, as bytes.
const LONG_BYTES: u64 = LONG as u64;
/// The largest port.
const PORT: i64 = u16::MAX as i64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Assigned;
    use crate::engine::Settings;

    #[test]
    fn every_name_and_alias_is_unique() {
        let mut seen = BTreeSet::new();
        for parameter in ALL.iter().copied().flatten() {
            for name in parameter.names() {
                assert!(seen.insert(name), "{name} stands twice");
            }
        }
    }

    #[test]
    fn setting_a_parameter_to_its_shown_value_changes_nothing() {
        let mut settings = Settings::default();
        // `replicaof` shows an empty text for none, which Redis does not accept back either.
        for parameter in ALL.iter().copied().flatten().filter(|parameter| parameter.name != "replicaof") {
            let shown = parameter.shown(&settings);
            assert_eq!(parameter.assign_text(&mut settings, &shown), Ok(Assigned::InForce), "{}", parameter.name);
            assert_eq!(parameter.shown(&settings), shown, "{}", parameter.name);
        }
    }

    #[test]
    fn the_docs_list_the_parameters_with_a_fixed_value() {
        let docs = include_str!("../../../docs/configuration.md");
        let table = docs.split("<!-- fixed -->").nth(1).and_then(|rest| rest.split("<!-- end -->").next());
        let rows = table.expect("the table stands between marks").lines().filter_map(|line| line.split('|').nth(1));
        let named: BTreeSet<&str> = rows.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
        let all = ALL.iter().copied().flatten();
        let fixed: BTreeSet<&str> = all
            .filter(|parameter| parameter.is_fixed() && !parameter.is_hidden)
            .map(|parameter| parameter.name)
            .collect();
        assert_eq!(named, fixed);
    }

    #[test]
    fn a_parameter_shows_the_value_that_was_set() {
        let table = [
            ("bind", "127.0.0.1 ::1"),
            ("port", "7000"),
            ("unixsocket", "/tmp/a"),
            ("unixsocketperm", "700"),
            ("tcp-backlog", "5"),
            ("tcp-keepalive", "6"),
            ("timeout", "7"),
            ("maxclients", "8"),
            ("protected-mode", "no"),
            ("requirepass", "secret"),
            ("aclfile", "users.acl"),
            ("acl-pubsub-default", "allchannels"),
            ("acllog-max-len", "7"),
            ("client-query-buffer-limit", "2097152"),
            ("client-output-buffer-limit", "normal 1 2 3 slave 4 5 6 pubsub 7 8 9"),
            ("notify-keyspace-events", "g$KE"),
            ("proto-max-bulk-len", "3145728"),
            ("io-threads", "2"),
            ("databases", "3"),
            ("dir", "/tmp"),
            ("enable-debug-command", "local"),
            ("logfile", "log"),
            ("loglevel", "verbose"),
            ("hash-max-listpack-entries", "11"),
            ("hash-max-listpack-value", "12"),
            ("list-max-listpack-size", "-3"),
            ("set-max-intset-entries", "13"),
            ("set-max-listpack-entries", "14"),
            ("set-max-listpack-value", "15"),
            ("zset-max-listpack-entries", "9"),
            ("zset-max-listpack-value", "10"),
            ("maxmemory", "14"),
            ("maxmemory-clients", "15%"),
            ("maxmemory-eviction-tenacity", "16"),
            ("maxmemory-policy", "volatile-lfu"),
            ("maxmemory-samples", "17"),
            ("lfu-decay-time", "18"),
            ("lfu-log-factor", "19"),
            ("tracking-table-max-keys", "20"),
        ];
        let mut settings = Settings::default();
        for (name, value) in table {
            let (parameter, _) = crate::config::find(name).expect("the name has a row");
            assert_eq!(parameter.assign_text(&mut settings, value), Ok(Assigned::InForce), "{name}");
            assert_eq!(parameter.shown(&settings), value, "{name}");
        }
        for (name, value) in table {
            assert_eq!(crate::config::shown(name, &settings).as_deref(), Some(value), "{name}");
        }
    }
}
