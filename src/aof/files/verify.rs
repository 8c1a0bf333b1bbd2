//! Reads a base once more before it replaces what it was made from: a disk may have taken less than it said.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::aof::scan::{Scanner, Tail};
use crate::rdb::file::{HEADER_BYTES, is_rdb as begins_as_rdb, is_whole};
use crate::storage::Storage;

/// A base that is written and synced, and was read once more as the file system has it now. Reading takes as long as
/// the file is large, so it is done before the files are locked.
#[derive(Debug)]
pub struct VerifiedBase {
    pub(super) path: PathBuf,
    pub(super) is_rdb: bool,
}

impl VerifiedBase {
    /// Reads the base at `path`, an RDB file or a log of commands.
    ///
    /// # Errors
    /// The base is not as it was written, or the disk fails. It is removed then, if the disk permits that.
    pub fn read(storage: &dyn Storage, path: PathBuf, is_rdb: bool) -> io::Result<VerifiedBase> {
        let verified = verify(storage, &path, is_rdb).inspect_err(|_| {
            // If it stays, the next start removes it.
            let _ = storage.remove(&path);
        });
        verified.map(|()| VerifiedBase { path, is_rdb })
    }
}

/// Whether a file begins as an RDB file.
pub(super) fn is_rdb(storage: &dyn Storage, path: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    storage.open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    Ok(begins_as_rdb(&header))
}

/// Checks that a base is whole: the header, the end and the checksum of an RDB file, or nothing but whole commands.
fn verify(storage: &dyn Storage, path: &Path, is_rdb: bool) -> io::Result<()> {
    let source = storage.open(path)?;
    let is_whole = if is_rdb { is_whole(source)? } else { is_whole_log(source)? };
    if is_whole { Ok(()) } else { Err(io::Error::other("the base of the AOF is not as it was written")) }
}

fn is_whole_log(source: impl Read) -> io::Result<bool> {
    let mut scanner = Scanner::new(source);
    while scanner.next_command().map_err(io::Error::other)?.is_some() {}
    Ok(scanner.tail() == Some(Tail::Clean))
}
