//! Checksums in a log of commands (`aof-checksum`): annotations of our own, which other servers skip.
//!
//! `#CRC:<first>:<length>:<checksum>` covers the `length` bytes directly before the line, which begin at offset
//! `first` of the file. They are whole units, and begin where the annotation before them ends: so bytes that a disk has
//! lost are noticed even if what follows them is whole. The checksum, in hexadecimal digits, is the CRC64 of all bytes
//! so far that annotations cover: so bytes that an older file had in the same place are noticed, though they have
//! annotations that agree with them. Bytes that were written while the parameter was off have no checksum, and end with
//! an annotation of no bytes, behind which the CRC64 begins anew.
//!
//! What is behind the last annotation is not checked.

use crate::rdb::crc64_continued;

/// The start of such an annotation.
const START: &[u8] = b"#CRC:";

/// The checksum of no bytes.
pub const NO_CHECKSUM: u64 = 0;

/// The annotation of bytes, the first of which is at `first` of their file, and their checksum. `before` is that of the
/// bytes before them.
pub fn annotation(first: u64, before: u64, bytes: &[u8]) -> (String, u64) {
    let checksum = crc64_continued(before, bytes);
    (format!("#CRC:{first}:{}:{checksum:016x}\r\n", bytes.len()), checksum)
}

/// The annotation that says that the bytes before it, up to `offset` of their file, have no checksum.
pub fn no_checksum(offset: u64) -> String {
    format!("#CRC:{offset}:0:{NO_CHECKSUM:016x}\r\n")
}

/// Checks the bytes of a log against its annotations.
#[derive(Debug)]
pub(super) struct Check {
    /// Where the bytes begin that no annotation has covered yet.
    first: u64,
    /// The checksum of all bytes so far that have one.
    checksum: u64,
}

/// An annotation does not agree with the bytes before it, the first of which is at this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disagreement(pub(super) u64);

impl Check {
    /// Begins at that place of a file.
    pub(super) fn at(first: u64) -> Check {
        Check { first, checksum: NO_CHECKSUM }
    }

    /// Takes the next bytes, which are at `offset` of the file: a command or an annotation.
    pub(super) fn take(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Disagreement> {
        if !bytes.starts_with(START) {
            self.checksum = crc64_continued(self.checksum, bytes);
            return Ok(());
        }
        let found = parse(bytes, offset);
        let wanted = (self.first, self.checksum);
        let end = offset + bytes.len() as u64;
        *self = match found {
            Some(found) if found == wanted => Check { first: end, checksum: self.checksum },
            // One of no bytes says that those before it have no checksum.
            Some(found) if found == (offset, NO_CHECKSUM) => Check::at(end),
            _ => return Err(Disagreement(self.first)),
        };
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

    /// The line behind bytes that are the first of a log.
    fn line(first: u64, bytes: &[u8]) -> String {
        annotation(first, NO_CHECKSUM, bytes).0
    }

    #[test]
    fn an_annotation_agrees_with_the_bytes_before_it_and_no_others() {
        let units = UNITS.map(str::as_bytes);
        let lines = [line(7, units[0]), line(7, &units[..2].concat()), line(8, units[0])];
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
        let line = line(0, UNITS[0].as_bytes());
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
        let (none, second) = (no_checksum(11), line(39, UNITS[1].as_bytes()));
        assert_eq!(none, "#CRC:11:0:0000000000000000\r\n");
        assert_eq!(take(0, &[UNITS[0], &none, UNITS[1], &second, UNITS[2]].map(str::as_bytes)), Ok(()));
        let second = line(11, UNITS[1].as_bytes());
        assert_eq!(take(0, &[UNITS[0], UNITS[1], &second].map(str::as_bytes)), Err(Disagreement(0)));
    }

    /// The zeros are read as a part of the line in which they begin.
    #[test]
    fn a_unit_that_a_disk_has_lost_is_found_though_the_next_one_is_whole() {
        let (first, checksum) = annotation(0, NO_CHECKSUM, UNITS[0].as_bytes());
        let (second, _) = annotation(39, checksum, UNITS[1].as_bytes());
        let whole = [UNITS[0], &first, UNITS[1], &second].map(str::as_bytes).concat();
        let lost = UNITS[0].len() + first.len();
        let merged = [&b"*1\r"[..], &vec![0; lost - 3], &whole[lost..]].concat();
        let (unit, line) = merged.split_at(lost + UNITS[1].len());
        assert_eq!(take(0, &[unit, line]), Err(Disagreement(0)));
    }

    /// Each annotation agrees with the bytes directly before it.
    #[test]
    fn the_beginning_of_another_log_in_the_place_of_ones_own_is_found() {
        let begin = |unit: &str| annotation(0, NO_CHECKSUM, unit.as_bytes());
        let ((own, checksum), (other, _)) = (begin(UNITS[0]), begin(UNITS[1]));
        let second_first = (UNITS[0].len() + own.len()) as u64;
        let (second, _) = annotation(second_first, checksum, UNITS[2].as_bytes());
        assert_eq!(take(0, &[UNITS[0], &own, UNITS[2], &second].map(str::as_bytes)), Ok(()));
        let stale = take(0, &[UNITS[1], &other, UNITS[2], &second].map(str::as_bytes));
        assert_eq!(stale, Err(Disagreement(second_first)));
    }
}
