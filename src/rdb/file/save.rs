//! Writes an RDB file.

use std::io;

use super::{LruHint, opcode};
use crate::rdb::checksum::continued;
use crate::rdb::{VERSION, Writer, kind_of};
use crate::value::View;

/// The bytes that are gathered before they are written.
const GATHERED_BYTES: usize = 64 << 10;

/// What the settings say about the file.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `rdbcompression`: whether long texts are compressed.
    pub compresses: bool,
    /// `rdbchecksum`: whether the file ends with its checksum, and not with 0.
    pub has_checksum: bool,
}

/// Writes an RDB file, part by part, in the order of the methods.
#[derive(Debug)]
pub struct Saver<W> {
    writer: Writer,
    checksum: Option<u64>,
    out: W,
    written_bytes: u64,
}

impl<W: io::Write> Saver<W> {
    /// Begins a file with its magic.
    pub fn begin(out: W, options: Options) -> Saver<W> {
        let mut writer = Writer::new(options.compresses);
        writer.out.extend_from_slice(format!("REDIS{VERSION:04}").as_bytes());
        let checksum = options.has_checksum.then_some(0);
        Saver { writer, checksum, out, written_bytes: 0 }
    }

    /// Adds a fact about the server.
    pub fn aux(&mut self, name: &str, value: &str) {
        self.writer.byte(opcode::AUX);
        self.writer.text(name.as_bytes());
        self.writer.text(value.as_bytes());
    }

    /// Adds a library of functions.
    ///
    /// # Errors
    /// That of the output.
    pub fn function(&mut self, source: &[u8]) -> io::Result<()> {
        self.writer.byte(opcode::FUNCTION);
        self.writer.text(source);
        self.flush_if_full()
    }

    /// Begins a database of which the number of keys is not known.
    pub fn select(&mut self, number: u64) {
        self.writer.byte(opcode::DATABASE);
        self.writer.length(number);
    }

    /// Begins a database with that many keys, of which some have deadlines.
    pub fn database(&mut self, number: usize, keys: usize, deadlines: usize) {
        self.select(number as u64);
        self.writer.byte(opcode::SIZES);
        self.writer.length(keys as u64);
        self.writer.length(deadlines as u64);
    }

    /// Adds a key.
    ///
    /// # Errors
    /// That of the output.
    pub fn entry(
        &mut self,
        key: &[u8],
        view: View<'_>,
        deadline_ms: Option<i64>,
        hint: Option<LruHint>,
    ) -> io::Result<()> {
        let writer = &mut self.writer;
        if let Some(deadline_ms) = deadline_ms {
            writer.byte(opcode::DEADLINE_MS);
            writer.moment(deadline_ms);
        }
        match hint {
            Some(LruHint::Idle(seconds)) => {
                writer.byte(opcode::IDLE);
                writer.length(seconds.cast_unsigned());
            }
            Some(LruHint::Frequency(count)) => {
                writer.byte(opcode::FREQUENCY);
                writer.byte(count);
            }
            None => {}
        }
        writer.byte(kind_of(view));
        writer.text(key);
        writer.value(view);
        self.flush_if_full()
    }

    /// Ends the file; returns the output, and the file's length in bytes.
    ///
    /// # Errors
    /// That of the output.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.writer.byte(opcode::END);
        self.flush()?;
        let checksum = self.checksum.unwrap_or(0);
        self.out.write_all(&checksum.to_le_bytes())?;
        self.out.flush()?;
        Ok((self.out, self.written_bytes + size_of_val(&checksum) as u64))
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.writer.len() < GATHERED_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        let gathered = &mut self.writer.out;
        if let Some(checksum) = &mut self.checksum {
            *checksum = continued(*checksum, gathered);
        }
        self.out.write_all(gathered)?;
        self.written_bytes += gathered.len() as u64;
        gathered.clear();
        gathered.shrink_to(2 * GATHERED_BYTES);
        Ok(())
    }
}
