//! The id of an entry: a time in unix milliseconds, and a number that distinguishes entries of the same time.
//!
//! A text is an id as in Redis: two numbers as [`parse_u64`] reads them, and a NUL ends the text.
//!
//! Source: the replies of Redis 8.0.6 to ids with blanks, signs, zeros and NULs.

use crate::value::number::{parse_u64, until_nul};
use crate::value::sorted_chunks::Keyed;
use std::fmt;

/// The id of an entry of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The time in unix milliseconds, or a number that the client chose.
    pub ms: u64,
    /// The sequence number among the ids of that time.
    pub seq: u64,
}

/// The longest text that can be an id, in bytes.
const LONGEST: usize = 127;

impl Id {
    /// `0-0`, which no entry has.
    pub const MIN: Id = Id { ms: 0, seq: 0 };
    /// The greatest id.
    pub const MAX: Id = Id { ms: u64::MAX, seq: u64::MAX };

    /// Creates an id from its two parts.
    pub const fn new(ms: u64, seq: u64) -> Id {
        Id { ms, seq }
    }

    /// The id after this one.
    pub fn next(self) -> Option<Id> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => self.ms.checked_add(1).map(|ms| Id { ms, seq: 0 }),
        }
    }

    /// The id before this one.
    pub fn previous(self) -> Option<Id> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => self.ms.checked_sub(1).map(|ms| Id { ms, seq: u64::MAX }),
        }
    }

    /// Reads a text as an id; for a time alone, the sequence number is `missing_seq`.
    pub fn parse(text: &[u8], missing_seq: u64) -> Option<Id> {
        let (ms, seq) = parts(text)?;
        let seq = seq.map_or(Some(missing_seq), parse_u64)?;
        Some(Id { ms, seq })
    }

    /// Reads a text as an id whose sequence number may be `*`, for which it returns none.
    pub fn parse_open(text: &[u8]) -> Option<(u64, Option<u64>)> {
        let (ms, seq) = parts(text)?;
        match seq {
            None => Some((ms, Some(0))),
            Some(b"*") => Some((ms, None)),
            Some(seq) => parse_u64(seq).map(|seq| (ms, Some(seq))),
        }
    }
}

impl Keyed for Id {
    type Key = Id;

    fn key(&self) -> Id {
        *self
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.ms, self.seq)
    }
}

/// The time, and the part behind the dash.
fn parts(text: &[u8]) -> Option<(u64, Option<&[u8]>)> {
    if text.len() > LONGEST {
        return None;
    }
    let text = until_nul(text);
    match text.iter().position(|&byte| byte == b'-') {
        Some(dash) => Some((parse_u64(&text[..dash])?, Some(&text[dash + 1..]))),
        None => Some((parse_u64(text)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_two_numbers_or_one() {
        assert_eq!(Id::parse(b"5-7", 0), Some(Id::new(5, 7)));
        assert_eq!(Id::parse(b"5", 9), Some(Id::new(5, 9)));
        assert_eq!(Id::parse(b"18446744073709551615-18446744073709551615", 0), Some(Id::MAX));
        assert_eq!(Id::parse_open(b"5-*"), Some((5, None)));
        assert_eq!(Id::parse_open(b"5"), Some((5, Some(0))));
        for text in ["", "-", "-5", "5-", "5-*", "18446744073709551616", "5-7-9", "5--3", "a", "5-a", "(5"] {
            assert_eq!(Id::parse(text.as_bytes(), 0), None, "{text}");
        }
        assert_eq!(Id::parse(&[b'0'; 128], 0), None, "too long");
    }

    #[test]
    fn the_numbers_of_an_id_are_parsed_as_by_strtoull() {
        for (text, id) in [
            ("007-01", Id::new(7, 1)),
            (" +7- 1", Id::new(7, 1)),
            ("5--03", Id::new(5, 3_u64.wrapping_neg())),
            ("5\0-1", Id::new(5, 0)),
        ] {
            assert_eq!(Id::parse(text.as_bytes(), 0), Some(id), "{text:?}");
        }
    }

    #[test]
    fn the_next_id_follows_and_the_previous_one_precedes() {
        assert_eq!(Id::new(5, u64::MAX).next(), Some(Id::new(6, 0)));
        assert_eq!(Id::new(6, 0).previous(), Some(Id::new(5, u64::MAX)));
        assert_eq!((Id::MAX.next(), Id::MIN.previous()), (None, None));
    }
}
