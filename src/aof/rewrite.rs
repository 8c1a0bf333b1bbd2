//! Writes data as commands: the base of an AOF with `aof-use-rdb-preamble no`.
//!
//! ```text
//! [#TS:seconds]
//! FUNCTION LOAD source
//! SELECT number
//! SET, RPUSH, SADD, ZADD or HMSET key ...        64 elements a command
//! HMSET key field value, HPEXPIREAT ...          each field of a hash that has deadlines of fields
//! XADD ..., XSETID, XGROUP CREATE, XCLAIM ...    a stream with its groups
//! RESTORE key 0 payload                          a vector set
//! PEXPIREAT key deadline
//! ```
//!
//! The bytes are those that Redis 8.0 writes for the same data, apart from the order of the keys, and of the
//! elements of a table, which is random there. Like Redis's, the commands do not have when consumers were seen, nor
//! pending entries that were deleted from their stream.
//!
//! Source: bases that Redis 8.0.6 wrote.

use std::io;

use crate::rdb;
use crate::value::stream::{Group, Id, Stream};
use crate::value::{HashView, Item, List, Set, View, Zset, number};

/// The most elements of a command.
const ELEMENTS: usize = 64;
/// The bytes that are gathered before they are written.
const GATHERED_BYTES: usize = 64 << 10;

/// Writes data as commands, part by part, in the order of the methods.
#[derive(Debug)]
pub struct Rewriter<W> {
    commands: Commands,
    out: W,
    written_bytes: u64,
}

/// Commands as bytes.
#[derive(Debug, Default)]
struct Commands {
    bytes: Vec<u8>,
    /// Where numbers are formatted.
    scratch: Vec<u8>,
}

impl<W: io::Write> Rewriter<W> {
    /// Begins with nothing, or with the time in unix seconds (`aof-timestamp-enabled`).
    pub fn begin(out: W, timestamp_s: Option<i64>) -> Rewriter<W> {
        let mut commands = Commands::default();
        if let Some(seconds) = timestamp_s {
            commands.bytes.extend_from_slice(format!("#TS:{seconds}\r\n").as_bytes());
        }
        Rewriter { commands, out, written_bytes: 0 }
    }

    /// Adds a library of functions.
    ///
    /// # Errors
    /// That of the output.
    pub fn function(&mut self, source: &[u8]) -> io::Result<()> {
        self.commands.whole(&[b"FUNCTION", b"LOAD", source]);
        self.flush_if_full()
    }

    /// Begins a database.
    pub fn select(&mut self, number: usize) {
        self.commands.whole(&[b"SELECT", itoa::Buffer::new().format(number).as_bytes()]);
    }

    /// Adds a key.
    ///
    /// # Errors
    /// That of the output.
    pub fn entry(&mut self, key: &[u8], view: View<'_>, deadline_ms: Option<i64>) -> io::Result<()> {
        let commands = &mut self.commands;
        match view {
            View::Text(text) => commands.whole(&[b"SET", key, text.as_bytes(&mut itoa::Buffer::new())]),
            View::List(list) => commands.list(key, list),
            View::Set(set) => commands.set(key, set),
            View::Zset(zset) => commands.zset(key, zset),
            View::Hash(hash) => commands.hash(key, hash),
            View::Stream(stream) => commands.stream(key, stream),
            View::VectorSet(_) => commands.whole(&[b"RESTORE", key, b"0", &rdb::dump(view, false)]),
        }
        if let Some(deadline_ms) = deadline_ms {
            commands.whole(&[b"PEXPIREAT", key, itoa::Buffer::new().format(deadline_ms).as_bytes()]);
        }
        self.flush_if_full()
    }

    /// Ends the commands; returns the output, and their length in bytes.
    ///
    /// # Errors
    /// That of the output.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.flush()?;
        self.out.flush()?;
        Ok((self.out, self.written_bytes))
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.commands.bytes.len() < GATHERED_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.commands.bytes)?;
        self.written_bytes += self.commands.bytes.len() as u64;
        self.commands.bytes.clear();
        Ok(())
    }
}

impl Commands {
    /// Begins a command of that many words.
    fn begin(&mut self, words: usize) {
        self.header(b'*', words);
    }

    fn word(&mut self, word: &[u8]) {
        self.header(b'$', word.len());
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn item(&mut self, item: Item<'_>) {
        self.header(b'$', item.len());
        item.append_to(&mut self.bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn header(&mut self, mark: u8, number: usize) {
        self.bytes.push(mark);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn integer(&mut self, integer: i64) {
        self.word(itoa::Buffer::new().format(integer).as_bytes());
    }

    fn score(&mut self, score: f64) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        number::write_f64(&mut scratch, score);
        self.word(&scratch);
        self.scratch = scratch;
    }

    fn id(&mut self, id: Id) {
        self.word(id.to_string().as_bytes());
    }

    /// A command as a whole.
    fn whole(&mut self, words: &[&[u8]]) {
        self.begin(words.len());
        words.iter().for_each(|word| self.word(word));
    }

    /// Writes the commands that add `elements` elements to a key, [`ELEMENTS`] at a time; each element is `words`
    /// words.
    fn elements<T>(
        &mut self,
        (name, key): (&[u8], &[u8]),
        (elements, words): (usize, usize),
        of: impl Iterator<Item = T>,
        write: impl Fn(&mut Commands, T),
    ) {
        for (at, element) in of.enumerate() {
            if at % ELEMENTS == 0 {
                self.begin(2 + (elements - at).min(ELEMENTS) * words);
                self.word(name);
                self.word(key);
            }
            write(self, element);
        }
    }

    fn list(&mut self, key: &[u8], list: &List) {
        self.elements((b"RPUSH", key), (list.len(), 1), list.iter(), Commands::item);
    }

    fn set(&mut self, key: &[u8], set: &Set) {
        self.elements((b"SADD", key), (set.len(), 1), set.iter(), Commands::item);
    }

    fn zset(&mut self, key: &[u8], zset: &Zset) {
        self.elements((b"ZADD", key), (zset.len(), 2), zset.iter(), |commands, entry| {
            commands.score(entry.score);
            commands.word(entry.member);
        });
    }

    fn hash(&mut self, key: &[u8], hash: HashView<'_>) {
        if hash.first_deadline().is_none() && hash.encoding() != "listpackex" {
            return self.elements((b"HMSET", key), (hash.len(), 2), hash.iter(), |commands, entry| {
                commands.item(entry.field);
                commands.item(entry.value);
            });
        }
        for (entry, deadline_ms) in hash.iter_timed() {
            self.begin(4);
            self.word(b"HMSET");
            self.word(key);
            self.item(entry.field);
            self.item(entry.value);
            if deadline_ms != 0 {
                self.begin(6);
                self.word(b"HPEXPIREAT");
                self.word(key);
                self.integer(deadline_ms);
                self.word(b"FIELDS");
                self.word(b"1");
                self.item(entry.field);
            }
        }
    }

    fn stream(&mut self, key: &[u8], stream: &Stream) {
        let log = stream.log();
        for entry in log.range(Id::MIN, Id::MAX) {
            let pairs = entry.pairs();
            self.begin(3 + 2 * pairs.len());
            self.word(b"XADD");
            self.word(key);
            self.id(entry.id());
            for (field, value) in pairs {
                self.item(field);
                self.item(value);
            }
        }
        if log.is_empty() {
            // An entry that is removed at once makes the stream.
            self.whole(&[b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"]);
        }
        self.begin(7);
        self.word(b"XSETID");
        self.word(key);
        self.id(log.last());
        self.word(b"ENTRIESADDED");
        self.word(itoa::Buffer::new().format(log.added()).as_bytes());
        self.word(b"MAXDELETEDID");
        self.id(log.max_deleted());
        stream.groups().iter().for_each(|group| self.group(key, group));
    }

    fn group(&mut self, key: &[u8], group: &Group) {
        self.begin(7);
        self.word(b"XGROUP");
        self.word(b"CREATE");
        self.word(key);
        self.word(group.name());
        self.id(group.last);
        self.word(b"ENTRIESREAD");
        self.integer(group.read.unwrap_or(-1));
        for (number, consumer) in group.consumers() {
            if consumer.pending_len() == 0 {
                self.whole(&[b"XGROUP", b"CREATECONSUMER", key, group.name(), consumer.name()]);
            }
            for pending in group.pending_of(number, Id::MIN) {
                self.begin(12);
                for word in [b"XCLAIM", key, group.name(), consumer.name(), b"0"] {
                    self.word(word);
                }
                self.id(pending.id());
                self.word(b"TIME");
                self.integer(pending.delivered_ms);
                self.word(b"RETRYCOUNT");
                self.word(itoa::Buffer::new().format(pending.times).as_bytes());
                self.word(b"JUSTID");
                self.word(b"FORCE");
            }
        }
    }
}
