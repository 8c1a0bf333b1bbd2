//! Reads an RDB file.
//!
//! The loader sees the file through a window, which moves forward and grows until it contains the next record as a
//! whole. Only a record that had not arrived completely is read twice, and a length that the file claims takes no
//! memory: only bytes that have arrived do. For a file of more than one window, other threads build the collections of
//! the next windows meanwhile (`ahead`).
//!
//! Costs: whether all of a value larger than the window is there is checked each time that the window has doubled, by
//! the lengths of its parts.

use std::borrow::Cow;
use std::io::{self, Read};

use super::ahead::{Ahead, Built};
use super::record::{Format, HEADER_BYTES, Head, Split};
use super::{Checksum, Fault, FaultReason, Record};
use crate::rdb::checksum::continued;
use crate::rdb::load::Forms;
use crate::rdb::text::Reader;

/// The window at first, and the least that is read at once.
const WINDOW_BYTES: usize = 256 << 10;
/// The share of collections in a window from which on the next windows are built ahead.
const MIN_BUILT: f64 = 0.25;
/// The windows that are read without a look ahead after one that had too few collections.
const WINDOWS_WITHOUT: u32 = 8;

/// Whether bytes begin as an RDB file.
pub fn is_rdb(bytes: &[u8]) -> bool {
    let header = bytes.get(..HEADER_BYTES);
    header.is_some_and(|header| !matches!(Format::of_header(header), Err(FaultReason::Signature)))
}

/// Reads an RDB file, record by record.
#[derive(Debug)]
pub struct Loader<R> {
    source: Source<R>,
    format: Format,
    window: Vec<u8>,
    /// Where the next record begins in the window.
    start: usize,
    /// The values that were built of the window.
    built: Built,
    /// The next windows.
    ahead: Option<Ahead>,
    /// The bytes of the file that were read behind them.
    rest: Vec<u8>,
    /// Whether the end of the file is in the window, or in the next ones.
    has_end: bool,
    /// The windows that are to be read without a look ahead.
    pub(super) windows_without: u32,
    /// The bytes of the file before the window.
    before_window: u64,
    /// The checksum of those bytes; `None` if none is to be checked.
    checksum: Option<u64>,
}

/// The bytes of a file.
#[derive(Debug)]
struct Source<R> {
    reader: R,
    is_at_end: bool,
    /// Why it cannot be read any further.
    error: Option<io::Error>,
}

impl<R: io::Read> Source<R> {
    /// Reads a window more, or as much as there is. False if there is nothing more, or it cannot be read.
    fn read(&mut self, bytes: &mut Vec<u8>) -> bool {
        if self.is_at_end {
            return false;
        }
        let (before, wanted) = (bytes.len(), WINDOW_BYTES.max(bytes.len()));
        match (&mut self.reader).take(wanted as u64).read_to_end(bytes) {
            Ok(read) => self.is_at_end = read < wanted,
            Err(error) => (self.is_at_end, self.error) = (true, Some(error)),
        }
        bytes.len() > before
    }
}

impl<R: io::Read> Loader<R> {
    /// Reads the header of a file; `verifies` decides whether its checksum is checked.
    ///
    /// # Errors
    /// It is not an RDB file, has an unknown version, or cannot be read.
    pub fn open(source: R, verifies: bool) -> Result<Loader<R>, Fault> {
        let mut source = Source { reader: source, is_at_end: false, error: None };
        let mut window = Vec::new();
        source.read(&mut window);
        let format = match (window.get(..HEADER_BYTES), source.error.take()) {
            (_, Some(error)) => Err(error.into()),
            (None, None) => Err(FaultReason::Short),
            (Some(header), None) => Format::of_header(header),
        };
        Ok(Loader {
            source,
            format: format.map_err(|reason| Fault { offset: 0, key: None, kind: None, reason })?,
            window,
            start: HEADER_BYTES,
            built: Built::default(),
            ahead: None,
            rest: Vec::new(),
            has_end: false,
            windows_without: 0,
            before_window: 0,
            checksum: verifies.then_some(0),
        })
    }

    /// The version of the file.
    pub fn version(&self) -> u16 {
        self.format.version
    }

    /// The bytes behind the file, which was read to its end, with their offset.
    pub fn into_rest(mut self) -> (impl io::Read + use<R>, u64) {
        let offset = self.offset();
        self.window.drain(..self.start);
        self.window.append(&mut self.rest);
        (io::Cursor::new(self.window).chain(self.source.reader), offset)
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
            let mut record = self.format.record(&mut reader, &mut head, forms, &mut self.built);
            if let Ok(Record::End(_)) = record {
                record = self.end(&mut reader).map(Record::End);
            }
            if let Err(reason) = &record
                && reader.is_short()
                && !matches!(reason, FaultReason::Checksum { .. })
            {
                let (kind, key) = (head.kind, head.key.map(Cow::into_owned));
                match self.extend(forms) {
                    Ok(true) => continue,
                    Ok(false) => return Err(self.fault(kind, key, FaultReason::Short)),
                    Err(error) => return Err(self.fault(kind, key, error.into())),
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
                Err(reason) => Err(self.fault(head.kind, head.key.map(Cow::into_owned), reason)),
            };
        }
    }

    /// Reads and checks the checksum.
    fn end(&self, reader: &mut Reader<'_>) -> Result<Checksum, FaultReason> {
        if !self.format.has_checksum() {
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

    /// Moves the window on to the next record, and lets it grow until that is in it as a whole, unless it has to be
    /// read to find its end. False at the end of the file.
    fn extend(&mut self, forms: &Forms) -> io::Result<bool> {
        self.leave_what_was_read();
        let before = self.window.len();
        if let Some((mut bytes, built)) = self.ahead.as_mut().and_then(Ahead::next) {
            if before == 0 {
                (self.window, self.built) = (bytes, built);
            } else {
                self.window.append(&mut bytes);
            }
            self.fill_ahead(forms);
            return Ok(true);
        }
        self.window.append(&mut self.rest);
        // At the end of the file, a value that is cut is read once more, to find out what is wrong with it.
        while (self.window.len() == before || self.format.is_cut(&self.window)) && self.source.read(&mut self.window) {}
        self.look_ahead(forms);
        match self.source.error.take_if(|_| self.window.len() == before) {
            Some(error) => Err(error),
            None => Ok(self.window.len() > before),
        }
    }

    /// Removes the records that were read from the window.
    fn leave_what_was_read(&mut self) {
        if let Some(checksum) = &mut self.checksum {
            *checksum = continued(*checksum, &self.window[..self.start]);
        }
        self.window.drain(..self.start);
        self.built.clear();
        self.before_window += self.start as u64;
        self.start = 0;
    }

    /// Leaves whole records in the window, and has the next ones built ahead if they look worth it.
    fn look_ahead(&mut self, forms: &Forms) {
        if self.windows_without > 0 {
            self.windows_without -= 1;
            return;
        }
        self.ahead = self.ahead.take().or_else(|| Ahead::new(self.format));
        if self.ahead.is_none() {
            self.windows_without = u32::MAX;
            return;
        }
        let split = self.format.split(&self.window);
        self.has_end |= split.has_end;
        if !self.is_worth_building(&split) || split.has_end {
            return;
        }
        self.rest = self.window.split_off(split.whole_bytes);
        self.fill_ahead(forms);
    }

    /// Reads and splits the next windows.
    fn fill_ahead(&mut self, forms: &Forms) {
        while !self.has_end
            && self.windows_without == 0
            && self.ahead.as_ref().is_some_and(Ahead::has_room)
            && self.source.read(&mut self.rest)
        {
            let split = self.format.split(&self.rest);
            if split.whole_bytes == 0 {
                if !self.format.is_cut(&self.rest) {
                    self.windows_without = WINDOWS_WITHOUT;
                }
                return;
            }
            self.is_worth_building(&split);
            self.has_end = split.has_end;
            let rest = self.rest.split_off(split.whole_bytes);
            let bytes = std::mem::replace(&mut self.rest, rest);
            if let Some(ahead) = &mut self.ahead {
                ahead.push(bytes, *forms);
            }
        }
    }

    /// Whether collections are enough of some records. Otherwise the next ones are read without a look ahead.
    fn is_worth_building(&mut self, split: &Split) -> bool {
        let is_worth_it = split.collection_bytes as f64 > MIN_BUILT * split.whole_bytes as f64;
        if !is_worth_it {
            self.windows_without = WINDOWS_WITHOUT;
        }
        is_worth_it
    }

    fn fault(&self, kind: Option<u8>, key: Option<Vec<u8>>, reason: FaultReason) -> Fault {
        Fault { offset: self.offset(), key, kind, reason }
    }
}
