//! Reads an RDB file.
//!
//! The loader sees the file through a window, which moves on and grows until the record in question is in it as a
//! whole. So a record that is read twice is a record that had not arrived, and a length that the file claims takes no
//! memory: only bytes that are there do.
//!
//! Costs: a value larger than the window is read twice: up to the end of the window, then, when all of it is there, as
//! a whole. Whether all of it is there is checked each time that the window has doubled, by the lengths of its parts.

use std::borrow::Cow;
use std::io::{self, Read};

use thiserror::Error;

use super::{LruHint, opcode};
use crate::rdb::checksum::continued;
use crate::rdb::load::Forms;
use crate::rdb::text::Reader;
use crate::rdb::{VERSION, kind};
use crate::value::Value;

/// The window at first, and the least that is read at once.
const WINDOW_BYTES: usize = 256 << 10;
/// The bytes of the magic and the version.
/// The bytes of the header.
pub const HEADER_BYTES: usize = 9;
/// The version from which a file ends with a checksum.
const FIRST_WITH_CHECKSUM: u16 = 5;
/// The last version of which everything that version 12 knows is read.
const LAST_VERSION: u16 = 15;
/// The version that Valkey 9 writes, with a magic of its own.
const VALKEY_VERSION: u16 = 80;

/// The servers whose files differ in what a type means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Redis,
    Valkey,
}

/// A part of the file.
#[derive(Debug)]
pub enum Record<'w> {
    /// A fact about the server that wrote the file.
    Aux(Cow<'w, [u8]>, Cow<'w, [u8]>),
    /// A library of functions: its source.
    Function(Cow<'w, [u8]>),
    /// The database of the keys that follow.
    Database(u64),
    /// How many keys the database is said to have, and how many of them deadlines.
    Sizes(u64, u64),
    /// A key.
    Entry(Entry<'w>),
    /// The end, with what its checksum says.
    End(Checksum),
}

/// A key with its value.
#[derive(Debug)]
pub struct Entry<'w> {
    /// The key.
    pub key: Cow<'w, [u8]>,
    /// The value.
    pub value: Loaded<'w>,
    /// Its deadline, in unix milliseconds.
    pub deadline_ms: Option<i64>,
    /// How recently or how often it was accessed.
    pub hint: Option<LruHint>,
    /// The type byte of its value.
    pub kind: u8,
}

/// A value as it was loaded.
#[derive(Debug)]
pub enum Loaded<'w> {
    /// A text.
    Text(Cow<'w, [u8]>),
    /// Any other value.
    Value(Value),
    /// A collection without elements, which early versions wrote by mistake: there is no such key.
    Empty,
}

/// What the checksum at the end says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It is right.
    Right,
    /// It is not looked at.
    Unchecked,
    /// The file was written without one.
    Disabled,
    /// Versions before 5 have none.
    Missing,
}

/// Why a file cannot be loaded, and where.
#[derive(Debug, Error)]
#[error("{reason}")]
pub struct Fault {
    /// The bytes before the record with the fault.
    pub offset: u64,
    /// The key of the record, if it was read.
    pub key: Option<Vec<u8>>,
    /// The type byte or the opcode of the record, if it was read.
    pub kind: Option<u8>,
    /// What is wrong.
    pub reason: FaultReason,
}

impl Fault {
    /// What is wrong, where, and in which key.
    pub fn explained(&self) -> String {
        let mut text = format!("{self} (at offset {}", self.offset);
        if let Some(kind) = self.kind {
            text.push_str(&format!(", type {kind}"));
        }
        if let Some(key) = &self.key {
            text.push_str(&format!(", key '{}'", key.escape_ascii()));
        }
        text.push(')');
        text
    }
}

/// Whether bytes begin as an RDB file.
pub fn is_rdb(bytes: &[u8]) -> bool {
    bytes.get(..HEADER_BYTES).is_some_and(|bytes| !matches!(header(bytes), Err(FaultReason::Signature)))
}

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum FaultReason {
    /// It does not begin as an RDB file.
    #[error("Wrong signature trying to load DB from file")]
    Signature,
    /// Its version is not known.
    #[error("Can't handle RDB format version {0}")]
    Version(u16),
    /// It ends too early.
    #[error("Short read or OOM loading DB. Unrecoverable error, aborting now.")]
    Short,
    /// A type or an opcode is not known.
    #[error("Unknown RDB encoding type {0}")]
    UnknownType(u8),
    /// A value contradicts its type.
    #[error("the value is damaged")]
    Damaged,
    /// Data of a module that are not a key's.
    #[error("The RDB file contains AUX module data I can't load: no matching module '{0}'")]
    ModuleAux(String),
    /// A value of a module.
    #[error("The RDB file contains module data I can't load: no matching module type '{0}'")]
    ModuleType(String),
    /// A library in the form of the release candidates of 7.0.
    #[error("Pre-release function format not supported.")]
    EarlyFunction,
    /// The bytes are not those that were written.
    #[error("Wrong RDB checksum expected: ({expected:x}) but got ({got:x}). Aborting now.")]
    Checksum {
        /// The checksum of the bytes before it.
        expected: u64,
        /// The checksum in the file.
        got: u64,
    },
    /// The caller refused a record.
    #[error("{0}")]
    Refused(String),
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads an RDB file, record by record.
#[derive(Debug)]
pub struct Loader<R> {
    source: R,
    window: Vec<u8>,
    /// Where the next record begins in the window.
    start: usize,
    /// The bytes of the file before the window.
    before_window: u64,
    /// The checksum of those bytes; `None` if none is to be checked.
    checksum: Option<u64>,
    is_at_end: bool,
    dialect: Dialect,
    version: u16,
}

impl<R: io::Read> Loader<R> {
    /// Reads the header of a file. `verifies` says whether its checksum is looked at.
    ///
    /// # Errors
    /// The file is none, of an unknown version, or cannot be read.
    pub fn open(source: R, verifies: bool) -> Result<Loader<R>, Fault> {
        let mut loader = Loader {
            source,
            window: Vec::new(),
            start: 0,
            before_window: 0,
            checksum: verifies.then_some(0),
            is_at_end: false,
            dialect: Dialect::Redis,
            version: 0,
        };
        while loader.window.len() < HEADER_BYTES {
            if !loader.extend().map_err(|reason| loader.fault(reason))? {
                return Err(loader.fault(FaultReason::Short));
            }
        }
        (loader.dialect, loader.version) =
            header(&loader.window[..HEADER_BYTES]).map_err(|reason| loader.fault(reason))?;
        loader.start = HEADER_BYTES;
        Ok(loader)
    }

    /// The version of the file.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The bytes behind the file, which was read to its end, with their offset.
    pub fn into_rest(mut self) -> (impl io::Read + use<R>, u64) {
        let offset = self.offset();
        self.window.drain(..self.start);
        (io::Cursor::new(self.window).chain(self.source), offset)
    }

    /// The bytes of the file before the next record.
    pub fn offset(&self) -> u64 {
        self.before_window + self.start as u64
    }

    /// Reads the next record and gives it to `take`; false when it was the end. Values get the encodings that `forms`
    /// say.
    ///
    /// # Errors
    /// The record is damaged, or missing, or `take` refuses it for a reason.
    pub fn next(&mut self, forms: &Forms, take: impl FnOnce(Record<'_>) -> Result<(), String>) -> Result<bool, Fault> {
        loop {
            let mut reader = Reader::new(&self.window[self.start..]);
            let mut head = Head::default();
            let record = self.record(&mut reader, &mut head, forms);
            if let Err(reason) = &record
                && reader.is_short()
                && !matches!(reason, FaultReason::Checksum { .. })
            {
                match self.extend_for(&head) {
                    Ok(true) => continue,
                    Ok(false) => return Err(self.fault_in(head, FaultReason::Short)),
                    Err(reason) => return Err(self.fault_in(head, reason)),
                }
            }
            let taken = record.and_then(|record| {
                let goes_on = !matches!(record, Record::End(_));
                take(record).map_err(FaultReason::Refused)?;
                Ok((goes_on, self.window.len() - reader.left()))
            });
            return match taken {
                Ok((goes_on, start)) => {
                    self.start = start;
                    Ok(goes_on)
                }
                Err(reason) => Err(self.fault_in(head, reason)),
            };
        }
    }

    /// Reads one record, if it is in the window as a whole.
    fn record<'w>(&self, reader: &mut Reader<'w>, head: &mut Head, forms: &Forms) -> Result<Record<'w>, FaultReason> {
        let (mut deadline_ms, mut hint) = (None, None);
        loop {
            let code = reader.byte().ok_or(FaultReason::Short)?;
            head.kind = Some(code);
            let is_mark = match code {
                opcode::DEADLINE_MS => {
                    deadline_ms = Some(deadline(reader.moment().ok_or(FaultReason::Short)?)?);
                    true
                }
                opcode::DEADLINE_S => {
                    let seconds = reader.array().map(u32::from_le_bytes).ok_or(FaultReason::Short)?;
                    deadline_ms = Some(i64::from(seconds.cast_signed()) * 1000);
                    true
                }
                opcode::IDLE => {
                    let seconds = reader.length().ok_or(FaultReason::Damaged)?;
                    hint = Some(LruHint::Idle(i64::try_from(seconds).unwrap_or(i64::MAX)));
                    true
                }
                opcode::FREQUENCY => {
                    hint = Some(LruHint::Frequency(reader.byte().ok_or(FaultReason::Short)?));
                    true
                }
                _ => false,
            };
            if is_mark {
                continue;
            }
            if code >= opcode::FIRST {
                return self.fact(reader, code);
            }
            let key = reader.text().ok_or(FaultReason::Damaged)?;
            head.key = Some(key.to_vec());
            head.value_at = Some(self.window.len() - self.start - reader.left());
            let value = self.value(reader, code, forms)?;
            return Ok(Record::Entry(Entry { key, value, deadline_ms, hint, kind: code }));
        }
    }

    /// Reads what an opcode introduces.
    fn fact<'w>(&self, reader: &mut Reader<'w>, code: u8) -> Result<Record<'w>, FaultReason> {
        let damaged = || FaultReason::Damaged;
        Ok(match code {
            opcode::AUX => Record::Aux(reader.text().ok_or_else(damaged)?, reader.text().ok_or_else(damaged)?),
            opcode::FUNCTION => Record::Function(reader.text().ok_or_else(damaged)?),
            opcode::DATABASE => Record::Database(reader.length().ok_or_else(damaged)?),
            opcode::SIZES => Record::Sizes(reader.length().ok_or_else(damaged)?, reader.length().ok_or_else(damaged)?),
            opcode::SLOT_INFO => {
                let mut number = || reader.length().ok_or_else(damaged);
                let (_slot, keys, deadlines) = (number()?, number()?, number()?);
                Record::Sizes(keys, deadlines)
            }
            opcode::END => Record::End(self.end(reader)?),
            opcode::FUNCTION_PRE_GA => return Err(FaultReason::EarlyFunction),
            opcode::MODULE_AUX => {
                return Err(FaultReason::ModuleAux(module_name(reader.length().ok_or_else(damaged)?)));
            }
            code => return Err(FaultReason::UnknownType(code)),
        })
    }

    fn value<'w>(&self, reader: &mut Reader<'w>, code: u8, forms: &Forms) -> Result<Loaded<'w>, FaultReason> {
        match (self.dialect, code) {
            (_, kind::TEXT) => reader.text().map(Loaded::Text).ok_or(FaultReason::Damaged),
            (_, kind::MODULE | kind::MODULE_2) => {
                Err(FaultReason::ModuleType(module_name(reader.length().ok_or(FaultReason::Damaged)?)))
            }
            (Dialect::Valkey, kind::HASH_VALKEY) => loaded(reader, |reader| reader.valkey_hash(&forms.hash)),
            (_, code) if !kind::is_known(code) || self.is_foreign(code) => Err(FaultReason::UnknownType(code)),
            (_, code) => loaded(reader, |reader| reader.value(code, forms)),
        }
    }

    /// Whether a type has another meaning, or none, in a file of this version.
    fn is_foreign(&self, code: u8) -> bool {
        match self.dialect {
            Dialect::Redis => false,
            Dialect::Valkey => code > kind::STREAM_3,
        }
    }

    /// Reads and checks the checksum.
    fn end(&self, reader: &mut Reader<'_>) -> Result<Checksum, FaultReason> {
        if self.version < FIRST_WITH_CHECKSUM {
            return Ok(Checksum::Missing);
        }
        let covered = self.window.len() - reader.left();
        let got = reader.array().map(u64::from_le_bytes).ok_or(FaultReason::Short)?;
        let Some(before) = self.checksum else { return Ok(Checksum::Unchecked) };
        if got == 0 {
            return Ok(Checksum::Disabled);
        }
        let expected = continued(before, &self.window[..covered]);
        if got == expected { Ok(Checksum::Right) } else { Err(FaultReason::Checksum { expected, got }) }
    }

    /// Extends the window until the value of the record at its start is in it as a whole, if its end can be found
    /// faster than by reading it. False at the end of the file.
    fn extend_for(&mut self, head: &Head) -> Result<bool, FaultReason> {
        let has_grown = self.extend()?;
        let (Some(kind), Some(value_at)) = (head.kind, head.value_at) else { return Ok(has_grown) };
        loop {
            let mut reader = Reader::new(&self.window[value_at..]);
            let is_cut = reader.skip_value(kind).is_none() && reader.is_short();
            // At the end of the file, a value that is cut is read once more, to find out what is wrong with it.
            if !is_cut || !self.extend()? {
                return Ok(has_grown);
            }
        }
    }

    /// Moves the window on to the next record, and lets it grow. False at the end of the file.
    fn extend(&mut self) -> Result<bool, FaultReason> {
        if self.is_at_end {
            return Ok(false);
        }
        if let Some(checksum) = &mut self.checksum {
            *checksum = continued(*checksum, &self.window[..self.start]);
        }
        self.window.drain(..self.start);
        self.before_window += self.start as u64;
        self.start = 0;
        let before = self.window.len();
        let wanted = WINDOW_BYTES.max(before);
        let read = (&mut self.source).take(wanted as u64).read_to_end(&mut self.window)?;
        self.is_at_end = read < wanted;
        Ok(read > 0)
    }

    fn fault(&self, reason: FaultReason) -> Fault {
        self.fault_in(Head::default(), reason)
    }

    fn fault_in(&self, head: Head, reason: FaultReason) -> Fault {
        Fault { offset: self.offset(), key: head.key, kind: head.kind, reason }
    }
}

/// What is known of a record before it is read as a whole.
#[derive(Debug, Default)]
struct Head {
    key: Option<Vec<u8>>,
    kind: Option<u8>,
    /// Where its value begins, counted from its own start.
    value_at: Option<usize>,
}

/// The server that wrote the file, and the version.
fn header(bytes: &[u8]) -> Result<(Dialect, u16), FaultReason> {
    let (dialect, digits) = match (bytes.strip_prefix(b"REDIS"), bytes.strip_prefix(b"VALKEY")) {
        (Some(digits), _) => (Dialect::Redis, digits),
        (None, Some(digits)) => (Dialect::Valkey, digits),
        (None, None) => return Err(FaultReason::Signature),
    };
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse::<u16>().ok());
    let version = number.ok_or(FaultReason::Signature)?;
    let is_known = match dialect {
        Dialect::Redis => (1..=LAST_VERSION).contains(&version),
        Dialect::Valkey => version == VALKEY_VERSION,
    };
    if is_known { Ok((dialect, version)) } else { Err(FaultReason::Version(version)) }
}

fn loaded<'w>(
    reader: &mut Reader<'w>,
    read: impl FnOnce(&mut Reader<'w>) -> Option<Value>,
) -> Result<Loaded<'w>, FaultReason> {
    match read(reader) {
        Some(value) => Ok(Loaded::Value(value)),
        None if reader.is_empty_value => Ok(Loaded::Empty),
        None => Err(FaultReason::Damaged),
    }
}

/// A deadline of a key. Redis writes what fits 63 bits.
fn deadline(unix_ms: u64) -> Result<i64, FaultReason> {
    i64::try_from(unix_ms).map_err(|_| FaultReason::Damaged)
}

/// The name of a module: nine letters of six bits, before ten bits of a version.
fn module_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9).map(|place| char::from(LETTERS[(id >> (58 - 6 * place) & 63) as usize])).collect()
}

const _: () = assert!(VERSION <= LAST_VERSION);
