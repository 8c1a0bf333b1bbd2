//! The records of an RDB file, and its format, which says how one is read or skipped.

use std::borrow::Cow;

use super::ahead::Built;
use super::{FaultReason, LruHint, opcode};
use crate::rdb::load::Forms;
use crate::rdb::text::Reader;
use crate::rdb::{VALKEY_VERSION, VERSION, kind, vector_set};
use crate::value::Value;

/// The bytes of the magic and the version.
pub const HEADER_BYTES: usize = 9;
/// The version from which a file ends with a checksum.
const FIRST_WITH_CHECKSUM: u16 = 5;
/// The last version of which everything that version 12 knows is read.
const LAST_VERSION: u16 = 15;

/// The servers whose files differ in what a type means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Redis,
    Valkey,
}

/// The format of a file, as its header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    dialect: Dialect,
    pub(super) version: u16,
}

/// The whole records that some bytes begin with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Split {
    /// Their bytes.
    pub(super) whole_bytes: usize,
    /// Those of them that are values of collections.
    pub(super) collection_bytes: usize,
    /// Whether the end of the file is among them, which is the last then.
    pub(super) has_end: bool,
}

/// The kind of a record, after the hints and deadline before it.
pub(super) enum Next {
    /// A value of that type.
    Value(u8),
    /// The next record, as this one was no key.
    Record,
    /// The file ends behind the last record.
    End,
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

/// The outcome of comparing the file with the checksum at its end.
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

impl Format {
    /// The format that a header names.
    ///
    /// # Errors
    /// It is no header, or names a version that is not known.
    pub(super) fn of_header(header: &[u8]) -> Result<Format, FaultReason> {
        let (dialect, digits) = match (header.strip_prefix(b"REDIS"), header.strip_prefix(b"VALKEY")) {
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
        if is_known { Ok(Format { dialect, version }) } else { Err(FaultReason::Version(version)) }
    }

    /// Whether a file ends with a checksum.
    pub(super) fn has_checksum(self) -> bool {
        self.version >= FIRST_WITH_CHECKSUM
    }

    /// Reads one record, but for the checksum behind the end. A value that was built ahead is taken from `built`.
    ///
    /// # Errors
    /// The fault, or that the record is not there as a whole (`reader.is_short()`); `head` has what was read.
    pub(super) fn record<'w>(
        self,
        reader: &mut Reader<'w>,
        head: &mut Head<'w>,
        forms: &Forms,
        built: &mut Built,
    ) -> Result<Record<'w>, FaultReason> {
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
            head.key = Some(key.clone());
            let value = match built.take(reader) {
                Some(value) => Loaded::Value(value),
                None => self.value(reader, code, forms)?,
            };
            return Ok(Record::Entry(Entry { key, value, deadline_ms, hint, kind: code }));
        }
    }

    /// Reads what an opcode introduces.
    fn fact<'w>(self, reader: &mut Reader<'w>, code: u8) -> Result<Record<'w>, FaultReason> {
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
            opcode::END => Record::End(Checksum::Unchecked),
            opcode::FUNCTION_PRE_GA => return Err(FaultReason::EarlyFunction),
            opcode::MODULE_AUX => {
                return Err(FaultReason::ModuleAux(module_name(reader.length().ok_or_else(damaged)?)));
            }
            code => return Err(FaultReason::UnknownType(code)),
        })
    }

    /// Reads a value of the type `code`.
    ///
    /// # Errors
    /// The fault, or that the value is not there as a whole.
    pub(super) fn value<'w>(self, reader: &mut Reader<'w>, code: u8, forms: &Forms) -> Result<Loaded<'w>, FaultReason> {
        match (self.dialect, code) {
            (_, kind::TEXT) => reader.text().map(Loaded::Text).ok_or(FaultReason::Damaged),
            (_, kind::MODULE | kind::MODULE_2) => match (code, reader.length().ok_or(FaultReason::Damaged)?) {
                (kind::MODULE_2, vector_set::ID) => loaded(reader, Reader::vector_set_value),
                (_, id) => Err(FaultReason::ModuleType(module_name(id))),
            },
            (Dialect::Valkey, kind::HASH_VALKEY) => loaded(reader, |reader| reader.valkey_hash(&forms.hash)),
            (_, code) if !kind::is_known(code) || self.is_foreign(code) => Err(FaultReason::UnknownType(code)),
            (_, code) => loaded(reader, |reader| reader.value(code, forms)),
        }
    }

    /// Skips a record as far as the value of its key, or as a whole if it is not that of a key. `None` if it is
    /// damaged, or not there as a whole.
    pub(super) fn skip_to_value(self, reader: &mut Reader<'_>) -> Option<Next> {
        loop {
            match reader.byte()? {
                opcode::DEADLINE_MS => reader.moment().map(drop)?,
                opcode::DEADLINE_S => reader.array::<4>().map(drop)?,
                opcode::IDLE => reader.length().map(drop)?,
                opcode::FREQUENCY => reader.byte().map(drop)?,
                opcode::END => {
                    reader.bytes(if self.has_checksum() { 8 } else { 0 })?;
                    return Some(Next::End);
                }
                code if code >= opcode::FIRST => return self.fact(reader, code).ok().map(|_| Next::Record),
                code => return reader.skip_text().map(|()| Next::Value(code)),
            }
        }
    }

    /// Skips a value of the type `code`. `None` if it is damaged, not there as a whole, or of a type whose values
    /// have to be read to find their end.
    pub(super) fn skip_value(self, reader: &mut Reader<'_>, code: u8) -> Option<()> {
        if self.dialect == Dialect::Valkey && code == kind::HASH_VALKEY { None } else { reader.skip_value(code) }
    }

    /// Whether the first record ends behind these bytes, as far as can be told without reading it.
    pub(super) fn is_cut(self, bytes: &[u8]) -> bool {
        let mut reader = Reader::new(bytes);
        let is_whole = match self.skip_to_value(&mut reader) {
            Some(Next::Value(code)) => self.skip_value(&mut reader, code).is_some(),
            next => next.is_some(),
        };
        !is_whole && reader.is_short()
    }

    /// Finds the whole records at the beginning of some bytes.
    pub(super) fn split(self, bytes: &[u8]) -> Split {
        let (mut split, mut reader) = (Split::default(), Reader::new(bytes));
        while !split.has_end {
            match self.skip_to_value(&mut reader) {
                Some(Next::Value(code)) => {
                    let left = reader.left();
                    if self.skip_value(&mut reader, code).is_none() {
                        break;
                    }
                    split.collection_bytes += if code == kind::TEXT { 0 } else { left - reader.left() };
                }
                Some(Next::Record) => {}
                Some(Next::End) => split.has_end = true,
                None => break,
            }
            split.whole_bytes = bytes.len() - reader.left();
        }
        split
    }

    /// Whether a type has another meaning, or none, in a file of this version.
    fn is_foreign(self, code: u8) -> bool {
        match self.dialect {
            Dialect::Redis => false,
            Dialect::Valkey => code > kind::STREAM_3,
        }
    }
}

/// The parts of a record that are known before it is read as a whole.
#[derive(Debug, Default)]
pub(super) struct Head<'w> {
    pub(super) key: Option<Cow<'w, [u8]>>,
    pub(super) kind: Option<u8>,
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
    (0..9).map(|place| char::from(vector_set::LETTERS[(id >> (58 - 6 * place) & 63) as usize])).collect()
}

const _: () = assert!(VERSION <= LAST_VERSION);
