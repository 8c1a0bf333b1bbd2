//! Shared code of the SCAN family: the cursor and the options `MATCH`, `COUNT`, `TYPE` and `NOVALUES`.
//!
//! Each command iterates in steps with its own method. If an option is repeated, the last one is used. `COUNT` is a
//! hint: the number of elements to visit in a step, not to return.

use crate::engine::{Args, Error};
use crate::resp::Reply;
use crate::value::glob::Pattern;
use crate::value::number;

/// The scanned collection, which determines the available options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// The keys of a database: with `TYPE`.
    Keys,
    /// The fields of a hash: with `NOVALUES`.
    Hash,
    /// The members of a collection.
    Members,
}

/// The options of a scan.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    pattern: Option<Pattern<'a>>,
    /// `COUNT`: the number of elements to visit, at least 1.
    pub count: usize,
    /// `TYPE`: the name of the type that a key must hold.
    pub type_name: Option<&'a [u8]>,
    /// `NOVALUES`: return fields without their values.
    pub no_values: bool,
}

const DEFAULT_COUNT: usize = 10;

impl<'a> Options<'a> {
    /// Parses all remaining options in `args`.
    ///
    /// # Errors
    /// [`Error::Syntax`] for an option that is unknown, has no value or is not for this collection, or for a
    /// count below 1; [`Error::NotAnInteger`] for a count that is not an integer; [`Error::NoValuesOfHash`] for
    /// `NOVALUES` elsewhere.
    pub fn parse(args: &mut Args<'a>, scanned: Scanned) -> Result<Options<'a>, Error> {
        let mut options = Options { pattern: None, count: DEFAULT_COUNT, type_name: None, no_values: false };
        while !args.is_empty() {
            if args.take_with("COUNT", 1) {
                let count = args.integer()?;
                options.count = usize::try_from(count).ok().filter(|&count| count > 0).ok_or(Error::Syntax)?;
            } else if args.take_with("MATCH", 1) {
                let pattern = Some(args.word()?).filter(|&pattern| pattern != b"*");
                options.pattern = pattern.map(|pattern| Pattern::new(pattern, false));
            } else if scanned == Scanned::Keys && args.take_with("TYPE", 1) {
                options.type_name = Some(args.word()?);
            } else if args.take("NOVALUES") {
                if scanned != Scanned::Hash {
                    return Err(Error::NoValuesOfHash);
                }
                options.no_values = true;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }

    /// The pattern of `MATCH`; `None` if it is `*`, which admits all elements.
    pub fn pattern(&self) -> Option<&'a [u8]> {
        self.pattern.as_ref().map(Pattern::source)
    }

    /// Whether all elements are returned, as far as `MATCH` decides.
    pub fn admits_all(&self) -> bool {
        self.pattern.is_none()
    }

    /// Whether an element is returned, as far as `MATCH` decides.
    pub fn admits(&self, element: &[u8]) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.matches(element))
    }
}

/// Parses the cursor in the next word of `args`: an unsigned number, as [`number::parse_u64`] parses it.
///
/// # Errors
/// [`Error::Syntax`] if there is no word, [`Error::InvalidCursor`] if it is not a cursor.
pub fn cursor(args: &mut Args<'_>) -> Result<u64, Error> {
    number::parse_u64(args.word()?).ok_or(Error::InvalidCursor)
}

/// Replies with the cursor for the next call.
pub fn write_cursor(reply: &mut Reply<'_>, next: u64) {
    reply.bulk(itoa::Buffer::new().format(next).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Request, Span};

    fn with_words<R>(words: &[&str], act: impl FnOnce(Args<'_>) -> R) -> R {
        let mut buffer = Vec::new();
        let mut spans = Vec::new();
        for word in words {
            let start = buffer.len();
            buffer.extend_from_slice(word.as_bytes());
            spans.push(Span { start, end: buffer.len() });
        }
        act(Args::new(Request::new(&buffer, &spans), 0))
    }

    #[test]
    fn the_last_of_a_repeated_option_is_used() {
        with_words(&["count", "5", "match", "a*", "COUNT", "7", "MATCH", "b*"], |mut args| {
            let options = Options::parse(&mut args, Scanned::Members).expect("these options are valid");
            assert_eq!(options.count, 7);
            assert!(options.admits(b"bee"));
            assert!(!options.admits(b"ant"));
        });
    }

    #[test]
    fn options_of_other_scan_commands_are_refused() {
        let refused = |words: &[&str], scanned| with_words(words, |mut args| Options::parse(&mut args, scanned).err());
        assert_eq!(refused(&["TYPE", "zset"], Scanned::Members), Some(Error::Syntax));
        assert_eq!(refused(&["NOVALUES"], Scanned::Members), Some(Error::NoValuesOfHash));
        assert_eq!(refused(&["NOVALUES"], Scanned::Hash), None);
        assert_eq!(refused(&["COUNT", "0"], Scanned::Members), Some(Error::Syntax));
        assert_eq!(refused(&["COUNT", "x", "y"], Scanned::Members), Some(Error::NotAnInteger));
        assert_eq!(refused(&["MATCH"], Scanned::Members), Some(Error::Syntax));
    }
}
