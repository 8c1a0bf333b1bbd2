//! Writes an RDB file.

use std::io;

use super::{LruHint, opcode};
use crate::rdb::checksum::continued;
use crate::rdb::{Writer, kind};
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
    /// `rdb-version`: the version of the format, for servers that do not know the present one.
    pub version: u16,
}

/// Writes an RDB file, part by part, in the order of the methods.
#[derive(Debug)]
pub struct Saver<W> {
    writer: Writer,
    output: Output<W>,
}

/// Where the file goes, and what is known of its bytes so far.
#[derive(Debug)]
struct Output<W> {
    checksum: Option<u64>,
    out: W,
    written_bytes: u64,
}

impl<W: io::Write> Saver<W> {
    /// Begins a file with its magic.
    pub fn begin(out: W, options: Options) -> Saver<W> {
        let mut writer = Writer::in_parts(options.compresses, options.version, GATHERED_BYTES);
        writer.out.extend_from_slice(format!("REDIS{:04}", options.version).as_bytes());
        let checksum = options.has_checksum.then_some(0);
        Saver { writer, output: Output { checksum, out, written_bytes: 0 } }
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
        self.writer.pass_on(&mut |gathered| self.output.take(gathered))
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
    /// That of the output; or the version of the file has no form for the value.
    pub fn entry(
        &mut self,
        key: &[u8],
        view: View<'_>,
        deadline_ms: Option<i64>,
        hint: Option<LruHint>,
    ) -> io::Result<()> {
        let writer = &mut self.writer;
        let kind = writer.kind_of(view);
        if kind::version(kind) > writer.version {
            return Err(without_form(key, writer.version));
        }
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
        writer.byte(kind);
        writer.text(key);
        let sink = &mut |gathered: &mut Vec<u8>| self.output.take(gathered);
        writer.value_in_parts(view, sink)?;
        writer.pass_on(sink)
    }

    /// Ends the file; returns the output, and the file's length in bytes.
    ///
    /// # Errors
    /// That of the output.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.writer.byte(opcode::END);
        let mut output = self.output;
        output.take(&mut self.writer.out)?;
        let checksum = output.checksum.unwrap_or(0);
        output.out.write_all(&checksum.to_le_bytes())?;
        output.out.flush()?;
        Ok((output.out, output.written_bytes + size_of_val(&checksum) as u64))
    }
}

/// The reason why a file cannot have a key: a hash with deadlines of fields is all that older versions lack.
fn without_form(key: &[u8], version: u16) -> io::Error {
    let key = key.escape_ascii();
    io::Error::other(format!(
        "version {version} of the RDB format has no hashes with fields that expire, as '{key}' is"
    ))
}

impl<W: io::Write> Output<W> {
    /// Writes the bytes that have been gathered, and clears them.
    fn take(&mut self, gathered: &mut Vec<u8>) -> io::Result<()> {
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
