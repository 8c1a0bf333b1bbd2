//! Reads a base once more before it replaces what it was made from: a disk may have taken less than it said.

use std::io::{self, Read};
use std::path::Path;

use crate::aof::scan::{Scanner, Tail};
use crate::rdb::file::{HEADER_BYTES, is_rdb as begins_as_rdb, is_whole};
use crate::storage::Storage;

/// Whether a file begins as an RDB file.
pub(super) fn is_rdb(storage: &dyn Storage, path: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    storage.open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    Ok(begins_as_rdb(&header))
}

/// Checks that a base is whole: the header, the end and the checksum of an RDB file, or nothing but whole commands.
pub(super) fn verify(storage: &dyn Storage, path: &Path, is_rdb: bool) -> io::Result<()> {
    let source = storage.open(path)?;
    let is_whole = if is_rdb { is_whole(source)? } else { is_whole_log(source)? };
    if is_whole { Ok(()) } else { Err(io::Error::other("the base of the AOF is not as it was written")) }
}

fn is_whole_log(source: impl Read) -> io::Result<bool> {
    let mut scanner = Scanner::new(source);
    while scanner.next_command().map_err(io::Error::other)?.is_some() {}
    Ok(scanner.tail() == Some(Tail::Clean))
}
