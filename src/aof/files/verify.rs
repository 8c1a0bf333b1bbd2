//! Reads a base once more before it replaces what it was made from: a disk may have taken less than it said.

use std::io::{self, Read};
use std::path::Path;

use crate::aof::scan::{Scanner, Tail};
use crate::rdb::crc64_continued;
use crate::rdb::file::is_rdb as begins_as_rdb;
use crate::storage::Storage;

/// The number of bytes that are read at once.
const PART_BYTES: usize = 256 << 10;
/// The bytes of the magic and the version of an RDB file.
const HEADER_BYTES: usize = 9;
/// The byte before the checksum at the end of an RDB file.
const END: u8 = 0xff;
/// That byte and the checksum.
const FOOTER_BYTES: usize = 9;

/// Whether a file begins as an RDB file.
pub(super) fn is_rdb(storage: &dyn Storage, path: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    storage.open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    Ok(begins_as_rdb(&header))
}

/// Checks that a base is whole: the header, the end and the checksum of an RDB file, or nothing but whole commands.
pub(super) fn verify(storage: &dyn Storage, path: &Path, is_rdb: bool) -> io::Result<()> {
    let source = storage.open(path)?;
    let is_whole = if is_rdb { is_whole_rdb(source)? } else { is_whole_log(source)? };
    if is_whole { Ok(()) } else { Err(io::Error::other("the base of the AOF is not as it was written")) }
}

fn is_whole_log(source: impl Read) -> io::Result<bool> {
    let mut scanner = Scanner::new(source);
    while scanner.next_command().map_err(io::Error::other)?.is_some() {}
    Ok(scanner.tail() == Some(Tail::Clean))
}

fn is_whole_rdb(mut source: impl Read) -> io::Result<bool> {
    let (mut window, mut checksum) = (Vec::new(), 0);
    let mut has_header = None;
    while source.by_ref().take(PART_BYTES as u64).read_to_end(&mut window)? > 0 {
        has_header.get_or_insert_with(|| window.get(..HEADER_BYTES).is_some_and(begins_as_rdb));
        // The last bytes stay, as they may be the footer.
        let passed = window.len().saturating_sub(FOOTER_BYTES);
        checksum = crc64_continued(checksum, &window[..passed]);
        window.drain(..passed);
    }
    let [END, expected @ ..] = &*window else { return Ok(false) };
    checksum = crc64_continued(checksum, &[END]);
    let expected = expected.try_into().map(u64::from_le_bytes);
    Ok(has_header == Some(true) && expected.is_ok_and(|expected| expected == 0 || expected == checksum))
}
