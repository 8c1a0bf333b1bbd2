//! The log of refused requests (ACL LOG).
//!
//! A refusal that is repeated within a minute, for the same reason in the same context, is counted in the existing
//! entry if that is among the last ten; that entry then moves to the front.

use std::collections::VecDeque;

/// The subject of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A command without permission.
    Command,
    /// A key without permission.
    Key,
    /// A channel without permission.
    Channel,
    /// A login with a wrong password, or as a user that does not exist.
    Auth,
}

impl Reason {
    /// The name in ACL LOG.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// The context of the refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A request by itself.
    TopLevel,
    /// A command in a transaction.
    Multi,
    /// A command in a script.
    Script,
}

impl Context {
    /// The name in ACL LOG.
    pub fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            Context::Script => "lua",
        }
    }
}

/// A denial as the log has it: what was refused, and to which user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedDenial {
    /// The subject of the refusal.
    pub reason: Reason,
    /// The context of the request.
    pub context: Context,
    /// The command, key or channel.
    pub object: Vec<u8>,
    /// The name of the user.
    pub user: Vec<u8>,
}

/// An entry of the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The number of the entry, from 0.
    pub id: u64,
    /// The refusal.
    pub refusal: LoggedDenial,
    /// The number of times that it happened.
    pub count: u64,
    /// The client of the last time, in the form of CLIENT LIST.
    pub client: Vec<u8>,
    /// The time of the first refusal, in unix milliseconds.
    pub first_ms: i64,
    /// The time of the last refusal, in unix milliseconds.
    pub last_ms: i64,
}

/// The log of refusals, the latest first.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    next_id: u64,
}

/// The number of entries that are searched for an equal refusal.
const ALIKE_AMONG: usize = 10;
const ALIKE_FOR_MS: u64 = 60_000;

impl Log {
    /// Adds a refusal; at most `most` entries are kept.
    pub fn add(&mut self, refusal: LoggedDenial, client: Vec<u8>, now_ms: i64, most: usize) {
        if most > 0 {
            let is_alike = |entry: &Entry| entry.refusal == refusal && entry.last_ms.abs_diff(now_ms) <= ALIKE_FOR_MS;
            let alike = self.entries.iter().take(ALIKE_AMONG).position(is_alike);
            let entry = match alike.and_then(|index| self.entries.remove(index)) {
                Some(known) => Entry { client, count: known.count + 1, last_ms: now_ms, ..known },
                None => {
                    self.next_id += 1;
                    Entry { id: self.next_id - 1, refusal, count: 1, client, first_ms: now_ms, last_ms: now_ms }
                }
            };
            self.entries.push_front(entry);
        }
        self.entries.truncate(most);
    }

    /// The entries, the latest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(object: &str) -> LoggedDenial {
        let (reason, context) = (Reason::Key, Context::TopLevel);
        LoggedDenial { reason, context, object: object.as_bytes().to_vec(), user: b"ann".to_vec() }
    }

    fn shown(log: &Log) -> Vec<(u64, u64, i64, i64)> {
        log.iter().map(|entry| (entry.id, entry.count, entry.first_ms, entry.last_ms)).collect()
    }

    #[test]
    fn a_refusal_repeated_within_a_minute_counts_in_the_same_entry() {
        let mut log = Log::default();
        for (object, now_ms) in [("a", 0), ("b", 1), ("a", 60_000), ("a", 120_001)] {
            log.add(refusal(object), Vec::new(), now_ms, 128);
        }
        assert_eq!(shown(&log), [(2, 1, 120_001, 120_001), (0, 2, 0, 60_000), (1, 1, 1, 1)]);
    }

    #[test]
    fn a_refusal_counts_in_an_equal_entry_only_among_the_last_ten() {
        let mut log = Log::default();
        for number in 0..11 {
            log.add(refusal(&number.to_string()), Vec::new(), 0, 128);
        }
        log.add(refusal("1"), Vec::new(), 0, 128);
        log.add(refusal("0"), Vec::new(), 0, 128);
        let shown: Vec<_> = log.iter().map(|entry| (entry.id, entry.count)).take(2).collect();
        assert_eq!(shown, [(11, 1), (1, 2)]);
    }

    #[test]
    fn the_log_keeps_no_more_entries_than_its_limit() {
        let mut log = Log::default();
        for number in 0..5 {
            log.add(refusal(&number.to_string()), Vec::new(), 0, 3);
        }
        assert_eq!(log.iter().map(|entry| entry.id).collect::<Vec<_>>(), [4, 3, 2]);
        log.add(refusal("9"), Vec::new(), 0, 0);
        assert_eq!(log.iter().len(), 0);
    }
}
