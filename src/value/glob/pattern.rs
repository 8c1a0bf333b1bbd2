//! A pattern that is matched with many texts, such as that of KEYS or SCAN: it is taken apart once.

use super::{Segment, matches};
use memchr::memmem;

/// The most segments that are taken apart in advance.
const MAX_SEGMENTS: usize = 16;
/// The longest segment that is compared as plain bytes if case is ignored: that takes its length times the text's.
const MAX_FOLDED: usize = 64;

/// A pattern that has been taken apart. It matches what [`matches()`] matches.
#[derive(Clone, Debug)]
pub struct Pattern<'p> {
    source: &'p [u8],
    ignore_case: bool,
    /// The segments from the first to the last; none if there are too many.
    segments: Vec<Part<'p>>,
    /// The length of the shortest text that can match.
    least_bytes: usize,
}

/// A segment, and how it is searched.
#[derive(Clone, Debug)]
struct Part<'p> {
    segment: Segment<'p>,
    /// The bytes that it matches, in lower case if case is ignored; `None` if it has classes or question marks.
    literal: Option<Vec<u8>>,
    /// Searches for the literal between two stars.
    finder: Option<memmem::Finder<'p>>,
    ignore_case: bool,
}

impl<'p> Pattern<'p> {
    /// Takes `source` apart; `ignore_case` is for ASCII letters.
    pub fn new(source: &'p [u8], ignore_case: bool) -> Pattern<'p> {
        let mut pattern = Pattern { source, ignore_case, segments: Vec::new(), least_bytes: 0 };
        let mut rest = Some(source);
        while let Some((segment, after)) = rest.and_then(|rest| Segment::take(rest, usize::MAX, ignore_case)) {
            if pattern.segments.len() == MAX_SEGMENTS {
                pattern.segments.clear();
                break;
            }
            pattern.least_bytes += segment.length;
            let is_between = !pattern.segments.is_empty() && after.is_some();
            pattern.segments.push(Part::new(segment, is_between));
            rest = after;
        }
        pattern
    }

    /// The text of the pattern.
    pub fn source(&self) -> &'p [u8] {
        self.source
    }

    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        let [first, rest @ ..] = self.segments.as_slice() else {
            return matches(self.source, text, self.ignore_case);
        };
        if text.is_empty() {
            return self.source.is_empty();
        }
        if text.len() < self.least_bytes {
            return false;
        }
        let [between @ .., last] = rest else { return first.matches(text) };
        let (start, text) = text.split_at(first.segment.length);
        let (mut text, end) = text.split_at(text.len() - last.segment.length);
        first.matches(start)
            && last.matches(end)
            && between.iter().all(|part| {
                let found = part.find(text);
                text = found.map_or(text, |at| &text[at + part.segment.length..]);
                found.is_some()
            })
    }
}

impl<'p> Part<'p> {
    fn new(segment: Segment<'p>, is_between: bool) -> Part<'p> {
        let ignore_case = segment.ignore_case;
        let literal = segment.literal().filter(|literal| !ignore_case || literal.len() <= MAX_FOLDED);
        let is_searched = is_between && !ignore_case;
        let finder = literal.as_ref().filter(|_| is_searched).map(|literal| memmem::Finder::new(literal).into_owned());
        Part { segment, literal, finder, ignore_case }
    }

    #[inline]
    fn matches(&self, text: &[u8]) -> bool {
        match &self.literal {
            Some(literal) if !self.ignore_case => are_equal(text, literal),
            Some(literal) => text.eq_ignore_ascii_case(literal),
            None => self.segment.matches(text),
        }
    }

    /// The place of the first match.
    fn find(&self, text: &[u8]) -> Option<usize> {
        if let Some(finder) = &self.finder {
            return finder.find(text);
        }
        let Some(literal) = &self.literal else { return self.segment.find(text) };
        let first = literal.first()?;
        let mut windows = text.windows(literal.len());
        windows.position(|window| window[0].eq_ignore_ascii_case(first) && window.eq_ignore_ascii_case(literal))
    }
}

/// Whether two texts are equal, without a call if they are short: most patterns begin with a few plain bytes, which are
/// compared with each key.
#[inline]
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let (eight, four) = (
        |text: &[u8]| [text.first_chunk::<8>().copied(), text.last_chunk().copied()],
        |text: &[u8]| [text.first_chunk::<4>().copied(), text.last_chunk().copied()],
    );
    one.len() == other.len()
        && match one.len() {
            0..4 => one.iter().eq(other),
            4..8 => four(one) == four(other),
            8..=16 => eight(one) == eight(other),
            // Keys often begin alike, so that the last byte decides most.
            _ => one.last() == other.last() && one == other,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pattern_with_too_many_stars_to_be_taken_apart_matches_as_well() {
        let stars = b"*a".repeat(MAX_SEGMENTS + 1);
        assert!(Pattern::new(&stars, false).matches(&b"ba".repeat(MAX_SEGMENTS + 1)));
        assert!(!Pattern::new(&stars, false).matches(&b"ba".repeat(MAX_SEGMENTS)));
    }

    #[test]
    fn texts_of_any_length_are_equal_if_all_their_bytes_are() {
        for length in 0..40 {
            let text: Vec<u8> = (0..length).collect();
            assert!(are_equal(&text, &text.clone()));
            assert!(!are_equal(&text, &[&text[..], b"x"].concat()));
            for place in 0..text.len() {
                let mut other = text.clone();
                other[place] ^= 0x80;
                assert!(!are_equal(&text, &other), "byte {place} of {length}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn a_pattern_taken_apart_matches_as_one_that_is_not(
            pattern in r"[abAB*?\[\]^\\-]{0,12}",
            texts in prop::collection::vec(r"[abAB\]\\^-]{0,8}", 1..8),
            ignore_case: bool,
        ) {
            let compiled = Pattern::new(pattern.as_bytes(), ignore_case);
            for text in texts {
                let expected = matches(pattern.as_bytes(), text.as_bytes(), ignore_case);
                prop_assert_eq!(compiled.matches(text.as_bytes()), expected, "{} on {}", pattern, text);
            }
        }

        #[test]
        fn plain_parts_between_stars_are_found_in_their_order(
            parts in prop::collection::vec("[abA]{0,3}", 1..6),
            text in "[abA]{0,14}",
            ignore_case: bool,
        ) {
            let pattern = parts.join("*");
            let expected = matches(pattern.as_bytes(), text.as_bytes(), ignore_case);
            prop_assert_eq!(Pattern::new(pattern.as_bytes(), ignore_case).matches(text.as_bytes()), expected);
        }
    }
}
