//! Propagation: the stream of commands that repeats every change of the data, for a log of changes (the AOF).
//!
//! Replaying the stream on the data that it began with gives the data again. It has Redis's form, byte for byte: each
//! command as an array of bulk strings, `SELECT` before a command of another database than the last one, and `MULTI`
//! and `EXEC` around an execution unit of more than one command. An execution unit is what no other client sees half
//! of: a command, a whole transaction, a whole script, a blocked client that is served, one expiry or eviction.
//!
//! How a command is written is part of its row ([`Propagated`](crate::engine::spec::Propagated)), and
//! `exec/propagation` decides at its end whether it goes out. This struct knows no command: it puts words in order and
//! encodes them at once, so no list of commands is kept. `MULTI` is inserted when a unit gets its second command.
//!
//! Commands of the test kit are not part of the stream, as no other server knows them. Most change no data (the clock,
//! the seed, faults, worlds), and what a moved clock expires goes out like any expiry. `DUNLIN ROLLBACK` and `DUNLIN
//! LOAD` replace the data by other data, which no command says: they ask for a new base
//! ([`Propagation::request_base`]). The stream then ends, until whoever writes the log takes it, saves all data as they
//! are at that moment, and begins another log with them.
//!
//! - Invariant: the bytes that are taken end between two units.
//! - Invariant: while it is off, it holds no memory.
//!
//! Costs: off, a branch for each command; on, the copying of the command: of its request as it arrived, if it has the
//! usual form, or else word by word.
//! Source: the AOF that Redis 8.0.6 writes.

use std::mem;
use std::sync::OnceLock;

use crate::aof::checksum::{self, NO_CHECKSUM};
use crate::engine::state::lazy::{Lazy, Unused};
use crate::resp::Request;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// The stream of commands that repeats the changes of the data.
#[derive(Debug, Default)]
pub struct Propagation {
    mode: Mode,
    /// The database of the last command in the stream.
    database: Option<usize>,
    unit: Unit,
    /// The running command has queued its own words, which go out in place of its request.
    pub(in crate::engine) has_own_words: bool,
    needs_base: bool,
    bytes: Vec<u8>,
    /// The number of bytes that are whole units.
    whole: usize,
    /// The number of bytes that were taken, since the server started.
    taken_bytes: u64,
    /// The offset at which the present file starts; it wraps below 0 if the file had bytes before the server started.
    file_start: u64,
    /// The offset up to which the present file has checksums, and the last one; `None` if it has bytes without them
    /// before.
    checked: Option<(u64, u64)>,
    /// The number of commands, which Redis shows as the offset of replication while there are no replicas.
    commands: u64,
    /// The second to write as a timestamp before the next command, if timestamps are on, and the last one written.
    second: Option<i64>,
    noted_second: i64,
}

impl Unused for Propagation {
    fn unused() -> &'static Propagation {
        static UNUSED: OnceLock<Propagation> = OnceLock::new();
        UNUSED.get_or_init(Propagation::default)
    }
}

/// Questions of every command and every batch, answered without a look at the shared default.
impl Lazy<Propagation> {
    /// Whether changes are recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.used().is_some_and(Propagation::is_on)
    }

    /// Whether there is anything to take.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.used().is_some_and(Propagation::has_more)
    }
}

/// Whether changes are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Off,
    On,
    /// A log is being replayed: nothing goes out, and its commands are accepted in forms that only a log has.
    Loading,
}

/// The open execution unit.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    is_open: bool,
    /// Its commands stand alone: it touches keys that its client did not name, which is no transaction (SCAN).
    is_loose: bool,
    commands: usize,
    /// The database of the last command before it.
    database_before: Option<usize>,
}

/// The part of the stream since it was last taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The commands, encoded: whole execution units.
    pub bytes: Vec<u8>,
    /// The data after these commands are other data, which have to be saved now: the stream goes on from there, with
    /// no database selected.
    pub needs_base: bool,
}

impl Propagation {
    /// Whether changes are recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.mode == Mode::On
    }

    /// Begins the stream, with no database selected.
    pub fn turn_on(&mut self) {
        self.begin(Mode::On);
    }

    /// Ends the stream, and frees its memory.
    pub fn turn_off(&mut self) {
        self.begin(Mode::Off);
    }

    /// Sets that a log is being replayed from now on, until [`Propagation::turn_on`] or [`Propagation::turn_off`].
    pub fn begin_loading(&mut self) {
        self.begin(Mode::Loading);
    }

    fn begin(&mut self, mode: Mode) {
        let (taken_bytes, file_start, commands) = (self.offset(), self.file_start, self.commands);
        *self = Propagation { mode, taken_bytes, file_start, commands, ..Propagation::default() };
    }

    /// Sets the number of bytes that the present file has already.
    pub fn continue_file(&mut self, bytes: u64) {
        self.file_start = self.offset().wrapping_sub(bytes);
        self.checked = (bytes == 0).then(|| (self.offset(), NO_CHECKSUM));
    }

    /// Puts the checksum of what is to be taken behind it, as an annotation. Before it, one of no bytes ends what was
    /// taken without a checksum.
    pub fn add_checksum(&mut self) {
        if self.whole == 0 {
            return;
        }
        let first = self.taken_bytes.wrapping_sub(self.file_start);
        let (begins, before) = match self.checked {
            Some((offset, checksum)) if offset == self.taken_bytes => (0, checksum),
            _ => (self.insert(0, &checksum::no_checksum(first)), NO_CHECKSUM),
        };
        let first = first.wrapping_add(begins as u64);
        let (line, checksum) = checksum::annotation(first, before, &self.bytes[begins..self.whole]);
        self.insert(self.whole, &line);
        self.checked = Some((self.offset(), checksum));
    }

    /// Inserts a line among the whole units, and returns its length.
    fn insert(&mut self, at: usize, line: &str) -> usize {
        self.bytes.splice(at..at, line.bytes());
        self.whole += line.len();
        line.len()
    }

    /// The number of commands so far, since the files began.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Sets the number of commands, which the files know.
    pub fn set_commands(&mut self, commands: u64) {
        self.commands = commands;
    }

    /// Whether a log is being replayed.
    pub fn is_loading(&self) -> bool {
        self.mode == Mode::Loading
    }

    /// The bytes of the stream so far, since the server started, up to the last whole execution unit.
    pub fn offset(&self) -> u64 {
        self.taken_bytes + self.whole as u64
    }

    /// Whether the open execution unit has a command.
    pub(in crate::engine) fn has_open_commands(&self) -> bool {
        self.bytes.len() > self.whole
    }

    /// Whether there is anything to take.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.whole > 0 || self.needs_base
    }

    /// Takes the whole execution units of the stream so far; one that is still open (a suspended script) stays.
    pub fn take(&mut self) -> Taken {
        let mut bytes = Vec::new();
        let needs_base = self.take_into(&mut bytes);
        Taken { bytes, needs_base }
    }

    /// Like [`Propagation::take`], but appends the bytes to `out`, and returns whether a new base is needed.
    pub fn take_into(&mut self, out: &mut Vec<u8>) -> bool {
        let whole = mem::take(&mut self.whole);
        self.taken_bytes += whole as u64;
        if whole == self.bytes.len() && out.is_empty() {
            mem::swap(out, &mut self.bytes);
        } else {
            out.extend(self.bytes.drain(..whole));
        }
        let needs_base = mem::take(&mut self.needs_base);
        if needs_base {
            self.database = None;
        }
        needs_base
    }

    /// Notes the time before the next command, unless it was noted in this second of the unix time.
    pub(in crate::engine) fn note_second(&mut self, second: i64) {
        self.second = Some(second);
    }

    /// Makes what is taken from now on readable by itself: another file begins, with no database selected.
    pub fn begin_file(&mut self) {
        self.file_start = self.taken_bytes;
        self.checked = Some((self.taken_bytes, NO_CHECKSUM));
        match self.unit.database_before.filter(|_| self.unit.commands > 0) {
            Some(database) => {
                let open = self.bytes.split_off(self.whole);
                write_select(&mut self.bytes, database);
                self.bytes.extend_from_slice(&open);
            }
            None if self.unit.commands == 0 => self.database = None,
            None => {}
        }
    }

    /// Writes the command that selects a database, though no change needs it yet. Within a unit nothing is written.
    pub(in crate::engine) fn select(&mut self, database: usize) {
        if self.unit.commands > 0 {
            return;
        }
        self.database = Some(database);
        write_select(&mut self.bytes, database);
        self.whole = self.bytes.len();
    }

    /// Asks for a new base, and ends the stream until it is taken: the data were replaced in a way that no command
    /// describes.
    pub fn request_base(&mut self) {
        self.needs_base = self.is_on();
    }

    /// Opens an execution unit; false if one is open already, which this one is then part of.
    pub(in crate::engine) fn begin_unit(&mut self, is_loose: bool) -> bool {
        let begins = !self.unit.is_open;
        if begins {
            self.unit = Unit { is_open: true, is_loose, commands: 0, database_before: self.database };
        }
        begins
    }

    /// Ends the open execution unit.
    pub(in crate::engine) fn end_unit(&mut self) {
        let unit = mem::take(&mut self.unit);
        if unit.commands > 1 && !unit.is_loose {
            self.bytes.extend_from_slice(EXEC);
            self.commands += 1;
        }
        self.whole = self.bytes.len();
    }

    /// Adds a command to the open unit, or as a unit of its own.
    pub fn push<'w>(&mut self, database: usize, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        self.push_with(database, |out| write_command(out, words));
    }

    /// Adds a client's request, as it arrived if that is how it is to be written.
    pub fn push_request(&mut self, database: usize, request: Request<'_>) {
        self.push_with(database, |out| match request.as_array() {
            Some(bytes) => out.extend_from_slice(bytes),
            None => write_command(out, request.iter()),
        });
    }

    fn push_with(&mut self, database: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_on() || self.needs_base {
            return;
        }
        if self.unit.commands == 1 && !self.unit.is_loose {
            self.bytes.splice(self.whole..self.whole, MULTI.iter().copied());
            self.commands += 1;
        }
        if let Some(second) = self.second.take().filter(|&second| second > self.noted_second) {
            self.noted_second = second;
            self.bytes.extend_from_slice(format!("#TS:{second}\r\n").as_bytes());
        }
        if self.database != Some(database) {
            self.database = Some(database);
            write_select(&mut self.bytes, database);
        }
        write(&mut self.bytes);
        self.commands += 1;
        if self.unit.is_open {
            self.unit.commands += 1;
        } else {
            self.whole = self.bytes.len();
        }
    }
}

fn write_select(out: &mut Vec<u8>, database: usize) {
    let mut digits = itoa::Buffer::new();
    write_command(out, [&b"SELECT"[..], digits.format(database).as_bytes()].into_iter());
}

/// Writes a command as an array of bulk strings.
fn write_command<'w>(out: &mut Vec<u8>, words: impl ExactSizeIterator<Item = &'w [u8]>) {
    write_length(out, b'*', words.len());
    for word in words {
        write_length(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_length(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Limits, Parser};

    fn push(stream: &mut Propagation, database: usize, words: &str) {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        stream.push(database, words.into_iter());
    }

    /// The stream's words since it was last taken, a line for each command.
    fn taken(stream: &mut Propagation) -> String {
        let bytes = String::from_utf8(stream.take().bytes).expect("these words are text");
        let lines = bytes.split("\r\n").filter(|line| !line.starts_with('$'));
        lines
            .map(|word| if word.starts_with('*') { "\n" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
            .trim()
            .to_owned()
    }

    #[test]
    fn commands_are_arrays_of_bulk_strings_behind_their_database() {
        let mut stream = Propagation::default();
        stream.turn_on();
        push(&mut stream, 10, "SET k v");
        let expected = b"*2\r\n$6\r\nSELECT\r\n$2\r\n10\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
        assert_eq!(stream.take(), Taken { bytes: expected.to_vec(), needs_base: false });
        push(&mut stream, 10, "DEL k");
        assert_eq!(taken(&mut stream), "DEL k", "the database is still selected");
    }

    #[test]
    fn a_request_is_written_in_the_same_form_however_it_arrived() {
        let limits = Limits { max_bulk_bytes: 1 << 20, authenticated: true };
        let long = format!("*2\r\n$3\r\nDEL\r\n$100\r\n{}\r\n", "k".repeat(100));
        let usual = ["*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n", "*2\r\n$3\r\nDEL\r\n$12\r\nklmnopqrstuv\r\n", long.as_str()];
        let others =
            ["DEL k\r\n", "DEL \"*1\\r\"\r\n", "*2\r\n$03\r\nDEL\r\n$1\r\nk\r\n", "*2\r\n$3\r\nDEL??$1\r\nk\r\n"];
        let as_it_arrived = |text: &str| {
            let mut parser = Parser::new();
            let request = parser.next(text.as_bytes(), &limits).expect("it is a request").expect("it is whole");
            request.as_array() == Some(text.as_bytes())
        };
        assert_eq!(usual.map(as_it_arrived), [true, true, false]);
        let (forms, mut generator) = ([&usual[..], &others].concat(), fastrand::Rng::with_seed(1));
        for _ in 0..20_000 {
            let mut bytes = generator.choice(&forms).expect("there are some").as_bytes().to_vec();
            for _ in 0..generator.usize(..3) {
                let place = generator.usize(..bytes.len());
                bytes[place] = *generator.choice(b"\r\n$*0123 k").expect("there are some");
            }
            let mut parser = Parser::new();
            let Ok(Some(request)) = parser.next(&bytes, &limits) else { continue };
            let mut streams = [Propagation::default(), Propagation::default()];
            streams.iter_mut().for_each(Propagation::turn_on);
            streams[0].push_request(0, request);
            streams[1].push(0, request.iter());
            assert_eq!(streams[0].take(), streams[1].take(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_unit_of_several_commands_is_a_transaction_and_one_that_is_open_is_not_taken() {
        let mut stream = Propagation::default();
        stream.turn_on();
        push(&mut stream, 0, "SET a 1");
        assert!(stream.begin_unit(false) && !stream.begin_unit(false));
        push(&mut stream, 0, "SET b 1");
        assert_eq!(taken(&mut stream), "SELECT 0 \n SET a 1");
        push(&mut stream, 1, "SET c 1");
        stream.end_unit();
        assert_eq!(taken(&mut stream), "MULTI \n SET b 1 \n SELECT 1 \n SET c 1 \n EXEC");
        assert!(stream.begin_unit(true));
        push(&mut stream, 1, "DEL c");
        push(&mut stream, 1, "DEL d");
        stream.end_unit();
        assert_eq!(taken(&mut stream), "DEL c \n DEL d", "a loose unit is no transaction");
    }

    #[test]
    fn another_file_selects_its_database_whether_a_unit_is_open_or_not() {
        let mut stream = Propagation::default();
        stream.turn_on();
        push(&mut stream, 3, "SET a 1");
        stream.take();
        stream.begin_file();
        push(&mut stream, 3, "SET b 1");
        assert_eq!(taken(&mut stream), "SELECT 3 \n SET b 1");
        stream.begin_unit(false);
        push(&mut stream, 3, "SET c 1");
        push(&mut stream, 4, "SET d 1");
        assert_eq!(taken(&mut stream), "");
        stream.begin_file();
        stream.end_unit();
        push(&mut stream, 4, "SET e 1");
        let expected = "SELECT 3 \n MULTI \n SET c 1 \n SELECT 4 \n SET d 1 \n EXEC \n SET e 1";
        assert_eq!(taken(&mut stream), expected);
    }

    #[test]
    fn nothing_is_recorded_while_it_is_off_loading_or_wants_a_base() {
        let mut stream = Propagation::default();
        push(&mut stream, 0, "SET a 1");
        stream.request_base();
        assert_eq!((stream.take(), stream.bytes.capacity()), (Taken::default(), 0));
        stream.begin_loading();
        push(&mut stream, 0, "SET a 1");
        assert_eq!(stream.take(), Taken::default());
        stream.turn_on();
        push(&mut stream, 0, "SET a 1");
        stream.request_base();
        push(&mut stream, 0, "SET b 1");
        let Taken { bytes, needs_base } = stream.take();
        assert!(needs_base && bytes.ends_with(b"SET\r\n$1\r\na\r\n$1\r\n1\r\n"));
        push(&mut stream, 0, "SET c 1");
        assert_eq!(taken(&mut stream), "SELECT 0 \n SET c 1", "a new log begins");
    }
}
