//! The log of what was refused (ACL LOG).
//!
//! What is refused again within a minute, for the same reason in the same place, counts in the entry that is there, if
//! that is among the last ten; it becomes the first one then.

use std::collections::VecDeque;

/// For what something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// A wrong password, or no such user.
    Auth,
}

impl Reason {
    /// As ACL LOG tells it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// Where something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// In a request by itself.
    TopLevel,
    /// In a transaction.
    Multi,
    /// In a script.
    Script,
}

impl Context {
    /// As ACL LOG tells it.
    pub fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            Context::Script => "lua",
        }
    }
}

/// What was refused, to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For what.
    pub reason: Reason,
    /// Where.
    pub context: Context,
    /// The command, key or channel.
    pub object: Vec<u8>,
    /// The user.
    pub user: Vec<u8>,
}

/// A line of the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number, from 0.
    pub id: u64,
    /// What was refused.
    pub refusal: Refusal,
    /// How often.
    pub count: u64,
    /// Who asked for it last, as CLIENT LIST shows it.
    pub client: Vec<u8>,
    /// When it was refused first, in unix milliseconds.
    pub first_ms: i64,
    /// When it was refused last, in unix milliseconds.
    pub last_ms: i64,
}

/// The log, and how often what was refused since the last time that was counted anew.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    next_id: u64,
}

/// So many entries are looked at for one that is alike.
const ALIKE_AMONG: usize = 10;
const ALIKE_FOR_MS: u64 = 60_000;

impl Log {
    /// Adds what was refused; at most `most` entries are kept.
    pub fn add(&mut self, refusal: Refusal, client: Vec<u8>, now_ms: i64, most: usize) {
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

    /// The entries, the last one first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(object: &str) -> Refusal {
        let (reason, context) = (Reason::Key, Context::TopLevel);
        Refusal { reason, context, object: object.as_bytes().to_vec(), user: b"ann".to_vec() }
    }

    fn shown(log: &Log) -> Vec<(u64, u64, i64, i64)> {
        log.iter().map(|entry| (entry.id, entry.count, entry.first_ms, entry.last_ms)).collect()
    }

    #[test]
    fn what_is_refused_again_within_a_minute_counts_in_the_same_entry() {
        let mut log = Log::default();
        for (object, now_ms) in [("a", 0), ("b", 1), ("a", 60_000), ("a", 120_001)] {
            log.add(refusal(object), Vec::new(), now_ms, 128);
        }
        assert_eq!(shown(&log), [(2, 1, 120_001, 120_001), (0, 2, 0, 60_000), (1, 1, 1, 1)]);
    }

    #[test]
    fn what_is_behind_the_last_ten_is_not_looked_at() {
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
    fn no_more_entries_are_kept_than_wanted() {
        let mut log = Log::default();
        for number in 0..5 {
            log.add(refusal(&number.to_string()), Vec::new(), 0, 3);
        }
        assert_eq!(log.iter().map(|entry| entry.id).collect::<Vec<_>>(), [4, 3, 2]);
        log.add(refusal("9"), Vec::new(), 0, 0);
        assert_eq!(log.iter().len(), 0);
    }
}
