//! Whether a file is whole, without what it means: a look at a file that was just written, before it replaces another.

use std::io::{self, Read};

use super::{HEADER_BYTES, is_rdb, opcode};
use crate::rdb::crc64_continued;

/// The number of bytes that are read at once.
const PART_BYTES: usize = 256 << 10;
/// The byte that ends the records, and the checksum.
const FOOTER_BYTES: usize = 9;

/// Whether a file has the magic, the end and the checksum of an RDB file.
///
/// # Errors
/// That of the source.
pub fn is_whole(mut source: impl Read) -> io::Result<bool> {
    let (mut window, mut checksum) = (Vec::new(), 0);
    let mut has_magic = None;
    while source.by_ref().take(PART_BYTES as u64).read_to_end(&mut window)? > 0 {
        has_magic.get_or_insert_with(|| window.get(..HEADER_BYTES).is_some_and(is_rdb));
        // The last bytes stay, as they may be the footer.
        let passed = window.len().saturating_sub(FOOTER_BYTES);
        checksum = crc64_continued(checksum, &window[..passed]);
        window.drain(..passed);
    }
    let [opcode::END, expected @ ..] = &*window else { return Ok(false) };
    checksum = crc64_continued(checksum, &[opcode::END]);
    let expected = expected.try_into().map(u64::from_le_bytes);
    Ok(has_magic == Some(true) && expected.is_ok_and(|expected| expected == 0 || expected == checksum))
}
