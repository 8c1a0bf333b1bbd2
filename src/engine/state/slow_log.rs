//! SLOWLOG: the last commands that took long, each with its arguments cut short.
//!
//! The log has at most `slowlog-max-len` entries when one is added: a smaller number takes effect with the next entry.
//! Secrets in a request are not stored. Each entry has a number, which grows as long as the server runs, also when the
//! log is emptied.
//!
//! Source: the entries of Redis 8.0.6.

use std::collections::VecDeque;

use crate::engine::spec::{REDACTED, Secrets};
use crate::resp::Request;

/// The last commands that took long, the youngest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    entries: VecDeque<SlowCommand>,
    next_number: u64,
}

/// A command that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCommand {
    /// The entry's number among all entries ever added.
    pub number: u64,
    /// The end of the command, in Unix seconds.
    pub unix_s: i64,
    /// The duration of the command, in microseconds.
    pub elapsed_us: u64,
    /// The words of the request, cut short.
    pub words: Vec<Vec<u8>>,
    /// The address of its client.
    pub address: String,
    /// The name of its client.
    pub client_name: Vec<u8>,
}

/// The maximum number of stored words; if there are more, the last stored one gives the number of the others.
const MAX_WORDS: usize = 32;

/// The maximum number of stored bytes of a word.
const MAX_BYTES: usize = 128;

impl SlowLog {
    /// Adds an entry, sets its number, and removes the oldest entries beyond `most`.
    pub fn add(&mut self, entry: SlowCommand, most: usize) {
        self.entries.push_front(SlowCommand { number: self.next_number, ..entry });
        self.next_number += 1;
        self.entries.truncate(most);
    }

    /// The entries, the youngest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &SlowCommand> {
        self.entries.iter()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

/// The words of a request as the log keeps them.
pub(in crate::engine) fn kept_words(request: Request<'_>, secrets: Secrets) -> Vec<Vec<u8>> {
    let whole = if request.len() > MAX_WORDS { MAX_WORDS - 1 } else { request.len() };
    let kept = |(index, word): (usize, &[u8])| match secrets.hide(request, index) {
        true => REDACTED.to_vec(),
        false => start_of(word),
    };
    let mut words: Vec<Vec<u8>> = request.iter().enumerate().take(whole).map(kept).collect();
    if whole < request.len() {
        words.push(format!("... ({} more arguments)", request.len() - whole).into_bytes());
    }
    words
}

fn start_of(word: &[u8]) -> Vec<u8> {
    let mut start = word[..word.len().min(MAX_BYTES)].to_vec();
    if word.len() > MAX_BYTES {
        start.extend_from_slice(format!("... ({} more bytes)", word.len() - MAX_BYTES).as_bytes());
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::Requests;

    fn kept(words: &[&str], secrets: Secrets) -> Vec<String> {
        let spans: Vec<_> = words.iter().scan(0, |end, word| Some(span(end, word.len()))).collect();
        let requests = Requests::from(Request::new(words.concat().as_bytes(), &spans));
        let request = requests.iter().next().expect("one was kept");
        kept_words(request, secrets).iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    fn span(end: &mut usize, length: usize) -> crate::resp::Span {
        let start = *end;
        *end += length;
        crate::resp::Span { start, end: *end }
    }

    #[test]
    fn long_words_are_cut_and_many_words_counted() {
        let (long, fits) = ("a".repeat(129), "b".repeat(128));
        let words = kept(&["set", &fits, &long], Secrets::None);
        assert_eq!(words, ["set", &fits, &format!("{}... (1 more bytes)", "a".repeat(128))]);
        let many = kept(&["x"; 33], Secrets::None);
        assert_eq!((many.len(), many[31].as_str()), (32, "... (2 more arguments)"));
        assert_eq!(kept(&["x"; 32], Secrets::None), ["x"; 32]);
    }

    #[test]
    fn secrets_are_replaced_in_the_slow_log() {
        assert_eq!(kept(&["auth", "user", "word"], Secrets::All), ["auth", "(redacted)", "(redacted)"]);
    }

    #[test]
    fn the_oldest_entries_are_dropped_and_numbering_continues() {
        let mut log = SlowLog::default();
        let entry = |unix_s| SlowCommand {
            number: 0,
            unix_s,
            elapsed_us: 1,
            words: Vec::new(),
            address: String::new(),
            client_name: Vec::new(),
        };
        (0..3).for_each(|at| log.add(entry(at), 2));
        let numbers: Vec<(u64, i64)> = log.entries().map(|entry| (entry.number, entry.unix_s)).collect();
        assert_eq!(numbers, [(2, 2), (1, 1)]);
        log.clear();
        log.add(entry(7), 2);
        assert_eq!(log.entries().next().map(|entry| entry.number), Some(3));
        log.add(entry(8), 0);
        assert_eq!(log.entries().len(), 0);
    }
}
