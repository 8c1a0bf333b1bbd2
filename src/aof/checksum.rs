//! Checksums in a log of commands (`aof-checksum`): annotations of our own, which other servers skip.
//!
//! `#CRC:<first>:<length>:<checksum>` gives the CRC64, in hexadecimal digits, of the `length` bytes directly before the
//! line, which begin at offset `first` of the file. They are whole units, and begin where the annotation before them
//! ends: so bytes that a disk has lost are noticed even if what follows them is whole. Bytes that were written while
//! the parameter was off have no checksum, and end with an annotation of no bytes.
//!
//! What is behind the last annotation is not checked.

use crate::rdb::{crc64, crc64_continued};

/// The start of such an annotation.
const START: &[u8] = b"#CRC:";

/// The annotation of bytes, the first of which is at `first` of their file.
pub fn annotation(first: u64, bytes: &[u8]) -> String {
    format!("#CRC:{first}:{}:{:016x}\r\n", bytes.len(), crc64(bytes))
}

/// Checks the bytes of a log against its annotations.
#[derive(Debug)]
pub(super) struct Check {
    /// Where the bytes begin that no annotation has covered yet.
    first: u64,
    checksum: u64,
}

/// An annotation does not agree with the bytes before it, the first of which is at this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disagreement(pub(super) u64);

impl Check {
    /// Begins at that place of a file.
    pub(super) fn at(first: u64) -> Check {
        Check { first, checksum: 0 }
    }

    /// Takes the next bytes, which are at `offset` of the file: a command or an annotation.
    pub(super) fn take(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Disagreement> {
        if !bytes.starts_with(START) {
            self.checksum = crc64_continued(self.checksum, bytes);
            return Ok(());
        }
        let found = parse(bytes, offset);
        let wanted = (self.first, self.checksum);
        // One of no bytes, whose checksum is 0, says that those before it have none.
        if found.is_none_or(|found| found != wanted && found != (offset, 0)) {
            return Err(Disagreement(self.first));
        }
        *self = Check::at(offset + bytes.len() as u64);
        Ok(())
    }
}

/// The first place and the checksum that an annotation names, if its length reaches up to `offset`, where it begins.
fn parse(line: &[u8], offset: u64) -> Option<(u64, u64)> {
    let text = str::from_utf8(line.strip_prefix(START)?).ok()?.strip_suffix("\r\n")?;
    let mut parts = text.split(':');
    let (first, length, digits) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
    let is_whole = parts.next().is_none() && u64::checked_add(first, length) == Some(offset);
    Some((first, u64::from_str_radix(digits, 16).ok()?)).filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: [&str; 3] = ["*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n", "#TS:1\r\n"];

    /// Takes the parts of a log whose first byte is at `offset`.
    fn take(offset: u64, parts: &[&[u8]]) -> Result<(), Disagreement> {
        let (mut check, mut offset) = (Check::at(offset), offset);
        parts.iter().try_for_each(|part| {
            offset += part.len() as u64;
            check.take(offset - part.len() as u64, part)
        })
    }

    #[test]
    fn an_annotation_agrees_with_the_bytes_before_it_and_no_others() {
        let units = UNITS.map(str::as_bytes);
        let lines = [annotation(7, units[0]), annotation(7, &units[..2].concat()), annotation(8, units[0])];
        let lines = lines.each_ref().map(|line| line.as_bytes());
        assert_eq!(take(7, &[units[0], lines[0]]), Ok(()));
        assert_eq!(take(7, &[units[0], units[1], lines[1]]), Ok(()));
        for parts in [&[units[1], lines[0]][..], &[units[0], lines[1]], &[units[0], units[2], lines[0]]] {
            assert_eq!(take(7, parts), Err(Disagreement(7)), "{parts:?}");
        }
        assert_eq!(take(7, &[units[0], lines[2]]), Err(Disagreement(7)), "it does not end at the annotation");
        assert_eq!(take(8, &[units[0], lines[0]]), Err(Disagreement(8)));
    }

    #[test]
    fn any_bit_that_flips_in_an_annotated_log_is_found() {
        let line = annotation(0, UNITS[0].as_bytes());
        let bytes = [UNITS[0], line.as_str()].map(str::as_bytes);
        for bit in 0..8 * bytes.concat().len() {
            let mut flipped = bytes.concat();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (unit, line) = flipped.split_at(bytes[0].len());
            let is_checked = line.starts_with(START);
            assert!(!is_checked || take(0, &[unit, line]).is_err() || line.eq_ignore_ascii_case(bytes[1]), "bit {bit}");
        }
    }

    #[test]
    fn bytes_without_a_checksum_end_with_an_annotation_of_no_bytes() {
        let (none, line) = (annotation(11, b""), annotation(39, UNITS[1].as_bytes()));
        assert_eq!(none, "#CRC:11:0:0000000000000000\r\n");
        assert_eq!(take(0, &[UNITS[0], &none, UNITS[1], &line, UNITS[2]].map(str::as_bytes)), Ok(()));
        let line = annotation(11, UNITS[1].as_bytes());
        assert_eq!(take(0, &[UNITS[0], UNITS[1], &line].map(str::as_bytes)), Err(Disagreement(0)));
    }

    /// The zeros are read as a part of the line in which they begin.
    #[test]
    fn a_unit_that_a_disk_has_lost_is_found_though_the_next_one_is_whole() {
        let (first, second) = (annotation(0, UNITS[0].as_bytes()), annotation(39, UNITS[1].as_bytes()));
        let whole = [UNITS[0], &first, UNITS[1], &second].map(str::as_bytes).concat();
        let lost = UNITS[0].len() + first.len();
        let merged = [&b"*1\r"[..], &vec![0; lost - 3], &whole[lost..]].concat();
        let (unit, line) = merged.split_at(lost + UNITS[1].len());
        assert_eq!(take(0, &[unit, line]), Err(Disagreement(0)));
    }
}
