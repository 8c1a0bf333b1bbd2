//! Matches text against the patterns of KEYS, SCAN, PSUBSCRIBE and the like.
//!
//! | in a pattern | stands for |
//! |---|---|
//! | `*` | any bytes, or none |
//! | `?` | one byte |
//! | `[abc]` `[a-z]` `[^a-z]` | one byte of the class, or one outside of it |
//! | `\x` | the byte `x`, also in a class |
//!
//! The odd cases are those of Redis: a range may be written backwards; a class that is not closed goes to the end of
//! the pattern; a `]` right after a `-` is the end of a range, so `[a-]` is such a class; `[]` has no byte and `[^]`
//! has every; a lone `\` at the end is itself; bytes of 128 and more come *before* 0 in a range; case is ignored only
//! after the ends of a range are put in order; **empty text matches only the empty pattern**, not even `*` (commands
//! for which `*` means everything do not call this); and past 1000 stars nothing matches.
//!
//! How: the part between two stars, a segment, matches text of one fixed length. The first segment must match at the
//! start and the last at the end; for each of the others the first match is the best, so nothing is ever tried twice.
//! No recursion.
//!
//! Costs: the length of the pattern and the text, while segments are plain bytes. A segment with `?` or a class, or
//! any segment if case is ignored, is tried position by position while that takes a few steps a position, which is
//! nearly always enough and allocates nothing; beyond that it is searched by bits ([`search`]), at worst its length
//! times the text's divided by 512. [`Pattern`] takes a pattern apart once, for many texts.
//!
//! Sources: the replies of Redis 8.0.6 to every pattern of up to five bytes out of nine, and to the tests below.

mod pattern;
mod search;

pub use pattern::Pattern;

use memchr::memmem;

/// The number of stars after which Redis gives up.
const MAX_STARS: usize = 1000;

/// The steps that the search for a segment may take per position, and again that many for all of them together.
const STEPS: usize = 32;

/// Whether the whole of `text` matches `pattern`; `ignore_case` is for ASCII letters.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let Some((head, after)) = Segment::take(pattern, text.len(), ignore_case) else { return false };
    let Some(mut pattern) = after else { return head.matches(text) };
    let (start, mut text) = text.split_at(head.length);
    if !head.matches(start) {
        return false;
    }
    for _ in 0..MAX_STARS {
        let Some((segment, after)) = Segment::take(pattern, text.len(), ignore_case) else { return false };
        let Some(next) = after else { return segment.matches(&text[text.len() - segment.length..]) };
        let Some(at) = segment.find(text) else { return false };
        text = &text[at + segment.length..];
        pattern = next;
    }
    // One more star, at the end, does not matter.
    pattern.is_empty()
}

/// The part of a pattern between two stars. It matches text of exactly `length` bytes.
#[derive(Clone, Copy, Debug)]
struct Segment<'a> {
    pattern: &'a [u8],
    length: usize,
    /// Whether every byte matches only itself.
    plain: bool,
    ignore_case: bool,
}

impl<'a> Segment<'a> {
    /// The pattern up to its first star, and the rest behind that star and those right behind it, if there is one.
    /// `None` if the segment needs more bytes than the text has, so that a long pattern costs no more than the text
    /// is long.
    fn take(pattern: &'a [u8], text_bytes: usize, ignore_case: bool) -> Option<(Segment<'a>, Option<&'a [u8]>)> {
        let (mut rest, mut length, mut plain) = (pattern, 0, !ignore_case);
        while let Some((token, after)) = Token::take(rest) {
            plain &= matches!(token, Token::Byte(_)) && rest.len() - after.len() == 1;
            length += 1;
            rest = after;
            if length > text_bytes {
                return None;
            }
        }
        let segment = Segment { pattern: &pattern[..pattern.len() - rest.len()], length, plain, ignore_case };
        let stars = rest.iter().take_while(|&&byte| byte == b'*').count();
        Some((segment, (stars > 0).then(|| &rest[stars..])))
    }

    /// The bytes that the segment matches, in lower case if case is ignored; `None` if it matches several texts.
    fn literal(&self) -> Option<Vec<u8>> {
        let (mut bytes, mut rest) = (Vec::new(), self.pattern);
        while let Some((token, after)) = Token::take(rest) {
            let Token::Byte(byte) = token else { return None };
            bytes.push(if self.ignore_case { byte.to_ascii_lowercase() } else { byte });
            rest = after;
        }
        Some(bytes)
    }

    fn matches(&self, text: &[u8]) -> bool {
        if self.plain {
            return self.pattern == text;
        }
        text.len() == self.length && self.try_on(text).0
    }

    /// The position of the first match. The segment is not empty.
    fn find(&self, text: &[u8]) -> Option<usize> {
        if self.plain {
            return memmem::find(text, self.pattern);
        }
        let mut steps = 0;
        for (at, window) in text.windows(self.length).enumerate() {
            let (matches, looked_at) = self.try_on(window);
            if matches {
                return Some(at);
            }
            steps += looked_at;
            if steps > STEPS * (at + self.length + STEPS) {
                let found = search::find(self.pattern, self.length, &text[at + 1..], self.ignore_case);
                return found.map(|more| at + 1 + more);
            }
        }
        None
    }

    /// Whether the segment matches a text of its length, and how many bytes of the pattern were read to decide that.
    fn try_on(&self, text: &[u8]) -> (bool, usize) {
        let mut rest = self.pattern;
        for &byte in text {
            let Some((token, after)) = Token::take(rest) else { break };
            rest = after;
            if !token.matches(byte, self.ignore_case) {
                return (false, self.pattern.len() - rest.len());
            }
        }
        (rest.is_empty(), self.pattern.len())
    }
}

/// A part of a pattern that matches one byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Token<'a> {
    Any,
    Byte(u8),
    Class { members: &'a [u8], negated: bool },
}

impl<'a> Token<'a> {
    /// The first token of a pattern and the rest; none at a star or at the end.
    fn take(pattern: &'a [u8]) -> Option<(Token<'a>, &'a [u8])> {
        match pattern {
            [] | [b'*', ..] => None,
            [b'?', rest @ ..] => Some((Token::Any, rest)),
            [b'[', b'^', rest @ ..] => Some(Token::take_class(rest, true)),
            [b'[', rest @ ..] => Some(Token::take_class(rest, false)),
            [b'\\', byte, rest @ ..] | [byte, rest @ ..] => Some((Token::Byte(*byte), rest)),
        }
    }

    fn take_class(pattern: &'a [u8], negated: bool) -> (Token<'a>, &'a [u8]) {
        let mut rest = pattern;
        while let Some((_, after)) = take_range(rest) {
            rest = after;
        }
        let members = &pattern[..pattern.len() - rest.len()];
        (Token::Class { members, negated }, rest.get(1..).unwrap_or_default())
    }

    fn matches(self, byte: u8, ignore_case: bool) -> bool {
        match self {
            Token::Any => true,
            Token::Byte(expected) if ignore_case => expected.eq_ignore_ascii_case(&byte),
            Token::Byte(expected) => expected == byte,
            Token::Class { members, negated } => is_member(members, byte, ignore_case) != negated,
        }
    }
}

fn is_member(mut members: &[u8], byte: u8, ignore_case: bool) -> bool {
    while let Some((range, after)) = take_range(members) {
        if range.contains(byte, ignore_case) {
            return true;
        }
        members = after;
    }
    false
}

/// A range of a class: the bytes from one end to the other, in either order.
#[derive(Clone, Copy)]
struct Range(u8, u8);

/// The first range of a class and the rest; none at its `]` or at the end of the pattern.
fn take_range(class: &[u8]) -> Option<(Range, &[u8])> {
    match class {
        [] | [b']', ..] => None,
        [b'\\', byte, rest @ ..] => Some((Range(*byte, *byte), rest)),
        [first, b'-', last, rest @ ..] => Some((Range(*first, *last), rest)),
        [byte, rest @ ..] => Some((Range(*byte, *byte), rest)),
    }
}

impl Range {
    fn contains(self, byte: u8, ignore_case: bool) -> bool {
        let order = |byte: u8| byte.cast_signed();
        let (low, high) = if order(self.0) <= order(self.1) { (self.0, self.1) } else { (self.1, self.0) };
        let folded = |byte: u8| order(if ignore_case { byte.to_ascii_lowercase() } else { byte });
        (folded(low)..=folded(high)).contains(&folded(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A pattern, texts that KEYS of Redis 8.0.6 found by it when each was the only key, and texts that it did not
    /// find.
    type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

    fn check(table: &[Case]) {
        for &(pattern, found, missed) in table {
            for (texts, expected) in [(found, true), (missed, false)] {
                for text in texts {
                    assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), expected, "{pattern} on {text}");
                }
            }
        }
    }

    #[test]
    fn stars_question_marks_and_backslashes_match_as_in_redis() {
        check(&[
            ("", &[""], &["a"]),
            ("a", &[], &[""]),
            ("?", &["a"], &["", ""]),
            ("**", &["a"], &[]),
            ("*?", &["a"], &[]),
            ("?*", &["a"], &[]),
            ("??", &[], &["a"]),
            ("\\", &["\\"], &[""]),
            ("\\a", &["a"], &["\\a"]),
            ("\\*", &["*"], &["a"]),
            ("a\\", &["a\\"], &["a"]),
            ("\\\\", &["\\"], &["\\\\"]),
            ("*\\", &["a\\", "\\"], &[]),
            ("*a*b", &["xaxxb"], &["xaxxbc"]),
            ("h*llo", &["heeeello"], &[]),
            ("a*", &["a"], &[]),
            ("*a", &["a"], &[]),
            ("a**b", &["ab"], &[]),
            ("]", &["]"], &[]),
            ("*]", &["a]"], &[]),
            ("*?*", &[], &[""]),
        ]);
    }

    #[test]
    fn closed_classes_match_as_in_redis() {
        check(&[
            ("[a-c]", &["b"], &[]),
            ("[c-a]", &["b"], &[]),
            ("[^a]", &["b"], &["a"]),
            ("[!a]", &["!"], &["b"]),
            ("[]", &[], &["]", "", "a"]),
            ("[]a]", &[], &["a]", "a"]),
            ("[^]", &["a", "]", "^"], &[]),
            ("[a]]", &["a]"], &[]),
            ("[\\]]", &["]"], &["\\"]),
            ("[\\a-c]", &["-", "a"], &["b"]),
            ("[a-\\c]", &["\\"], &["b"]),
            ("[a-\\]]", &[], &["]"]),
            ("[a-\\]", &[], &["b", "["]),
            ("[a-]]", &["]", "^"], &["a]", "b"]),
            ("[-a]", &["-", "a"], &[]),
            ("[--a]", &["5"], &[]),
            ("[a-c-e]", &["-"], &["d"]),
            ("[a]*", &[], &[""]),
            ("h[^e]llo", &["hallo"], &["hello"]),
            ("[*]", &["*"], &[]),
            ("[?]", &[], &["a"]),
            ("[[]", &["["], &[]),
            ("[[]]", &["[]"], &[]),
            ("[^^]", &["a"], &["^"]),
            ("[a^]", &["^"], &[]),
            ("[a-b-]", &["-"], &[]),
            ("[z-a]", &["m", "z"], &[]),
            ("[]-a]", &[], &["a]", "^"]),
            ("[\\^a]", &["^"], &[]),
            ("[^\\^]", &["a"], &["^"]),
            ("[\\\\]", &["\\"], &[]),
            ("[+-\\]]", &[], &["]", "+", "A"]),
            ("[^-a]", &["b"], &["-"]),
            ("[^a-c]", &["d"], &[]),
            ("[^c-a]", &["d"], &["b"]),
            ("[]]", &[], &["]", "]]"]),
        ]);
    }

    #[test]
    fn an_unclosed_class_extends_to_the_end_of_the_pattern() {
        check(&[
            ("[abc", &["a", "c"], &["d", "ab"]),
            ("[a-", &["a", "-"], &["b"]),
            ("[", &[], &["", "[", "a"]),
            ("[^", &["a"], &[""]),
            ("[^a", &["b"], &["a"]),
            ("[\\", &["\\"], &["a"]),
            ("[a\\", &["\\", "a"], &[]),
            ("[a-]", &["a", "]"], &["-", "b"]),
            ("*[a", &["xa"], &["xb"]),
            ("[^\\", &["a"], &["\\"]),
            ("[ab\\", &["b"], &[]),
            ("[a-c", &["b"], &["d"]),
            ("[c-", &["c"], &["b"]),
            ("x[", &[], &["x", "x["]),
            ("x[^", &["xa"], &[]),
            ("[a-\\", &["a", "]"], &["b"]),
        ]);
    }

    /// Expected: KEYS of Redis 8.0.6, like the tables above.
    #[test]
    fn bytes_over_127_come_before_zero_in_a_range() {
        let table: [(&[u8], &[u8], bool); 9] = [
            (b"[a-\xff]", b"b", false),
            (b"[a-\xff]", b"Z", true),
            (b"[a-\xff]", b"\xff", true),
            (b"[a-\xff]", b"\xfe", false),
            (b"[\xff-\x80]", b"\x90", true),
            (b"[\x80-\xff]", b"a", false),
            (b"[\x80-a]", b"\x90", true),
            (b"[\x80-a]", b"b", false),
            (b"a\0*", b"a\0b", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(matches(pattern, text, false), expected, "{}", pattern.escape_ascii());
        }
    }

    /// Expected: which of `get` and `set` COMMAND LIST FILTERBY PATTERN of Redis 8.0.6 lists.
    #[test]
    fn case_is_ignored_once_a_range_is_in_order() {
        let table = [
            ("[a-Z]et", ""),
            ("[A-z]et", "get set"),
            ("[Z-a]et", ""),
            ("[z-A]et", "get set"),
            ("[H-f]et", ""),
            ("[F-h]et", "get"),
            ("[@-G]et", "get"),
            ("[[-g]et", "get"),
            ("[^G]et", "set"),
            ("[\\G]et", "get"),
            ("\\Get", "get"),
            ("gE[t]", "get"),
            ("*E*", "get set"),
        ];
        for (pattern, listed) in table {
            let found: Vec<_> =
                ["get", "set"].into_iter().filter(|name| matches(pattern.as_bytes(), name.as_bytes(), true)).collect();
            assert_eq!(found.join(" "), listed, "{pattern}");
        }
    }

    #[test]
    fn a_thousand_stars_match_and_one_more_matches_only_at_the_end() {
        let text = "a".repeat(2000);
        let on_text = |stars: usize, end: &str| {
            matches(format!("{}{end}", "*a".repeat(stars)).as_bytes(), text.as_bytes(), false)
        };
        assert_eq!(
            [on_text(1000, ""), on_text(1000, "*"), on_text(1001, ""), on_text(1001, "*")],
            [true, true, false, false]
        );
    }

    #[test]
    fn many_stars_and_long_patterns_take_no_exponential_time() {
        let a = |bytes| vec![b'a'; bytes];
        let stars = [b"a*".repeat(20), b"b".to_vec()].concat();
        assert!(!matches(&stars, &a(40), false));
        assert!(!matches(&b"*a".repeat(8 << 20), &a(1 << 20), false));
        assert!(matches(&[&[b'*'; 1 << 20][..], b"b"].concat(), b"b", false));
        let needle = [b"*", &a(1 << 20)[..], b"b*"].concat();
        assert!(!matches(&needle, &a(1 << 21), false));
        for _ in 0..10_000 {
            assert!(!matches(&needle[1..], b"short", false));
        }
    }

    /// Redis 8.0.6 says the same: KEYS with these patterns finds a key of 3,000 times `a` up to a thousand stars.
    #[test]
    fn a_pattern_with_more_than_a_thousand_stars_matches_nothing() {
        let stars = |count: usize, end: &[u8]| matches(&[&b"*a".repeat(count)[..], end].concat(), &[b'a'; 3000], false);
        assert_eq!([999, 1000, 1001, 2000].map(|count| stars(count, b"")), [true, true, false, false]);
        assert_eq!([999, 1000, 1001, 2000].map(|count| stars(count, b"*")), [true, true, false, false]);
    }

    /// A pattern of a million bytes on a text of a million: each has a search that fails late, or never.
    #[test]
    fn a_pattern_of_a_million_bytes_is_searched_in_a_text_of_a_million_bytes() {
        const BYTES: usize = 1_000_000;
        let cycle = |part: &[u8], bytes: usize| part.iter().copied().cycle().take(bytes).collect::<Vec<u8>>();
        let between_stars = |part: &[u8], bytes: usize, end: &[u8]| {
            [b"*", part.repeat(bytes / part.len()).as_slice(), end, b"*"].concat()
        };
        type Trial = (&'static [u8], usize, &'static [u8], &'static [u8], bool);
        let table: [Trial; 9] = [
            (b"[a-z]", BYTES, b"b", b"a", false),
            (b"[a-z]", BYTES, b"[^b]", b"a", true),
            (b"?", BYTES / 2, b"b", b"a", false),
            (b"?", BYTES / 2, b"?", b"a", true),
            (b"a?", BYTES / 2, b"ab", b"ab", true),
            (b"a?", BYTES / 2, b"ac", b"abac", true),
            (b"a?", BYTES / 2, b"cc", b"abac", false),
            (b"[ab][bc][ca]", BYTES, b"a[^a]a", b"abc", false),
            (b"[ab][bc][ca]", BYTES, b"a[^a]c", b"abc", true),
        ];
        for (part, bytes, end, text, expected) in table {
            let (pattern, text) = (between_stars(part, bytes, end), cycle(text, BYTES));
            assert_eq!(matches(&pattern, &text, false), expected, "{}", part.escape_ascii());
        }
        let members = [b"*[", b"xyz".repeat(BYTES / 3).as_slice(), b"]*"].concat();
        assert!(!matches(&members, &cycle(b"abc", BYTES), false));
        let stars = b"*[ab]?????????????????????c".repeat(900);
        assert!(!matches(&[&stars[..], b"*"].concat(), &cycle(b"ab", BYTES), false));
    }

    /// The rules once more, by recursion: for each star, every length is tried.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        let Some(&first) = pattern.first() else { return text.is_empty() };
        if first == b'*' {
            return (0..=text.len()).any(|taken| naive(&pattern[1..], &text[taken..]));
        }
        let Some(&byte) = text.first() else { return false };
        let (fits, used) = match first {
            b'?' => (true, 1),
            b'[' => naive_class(pattern, byte),
            b'\\' if pattern.len() > 1 => (pattern[1] == byte, 2),
            _ => (first == byte, 1),
        };
        fits && naive(&pattern[used..], &text[1..])
    }

    /// Whether `byte` is in the class that `pattern` starts with, and how long the class is.
    fn naive_class(pattern: &[u8], byte: u8) -> (bool, usize) {
        let negated = pattern.get(1) == Some(&b'^');
        let (mut at, mut member) = (1 + usize::from(negated), false);
        while at < pattern.len() && (pattern[at] != b']') {
            let (low, high, used) = match pattern.len() - at {
                2.. if pattern[at] == b'\\' => (pattern[at + 1], pattern[at + 1], 2),
                3.. if pattern[at + 1] == b'-' => (pattern[at], pattern[at + 2], 3),
                _ => (pattern[at], pattern[at], 1),
            };
            member |= (low.min(high)..=low.max(high)).contains(&byte);
            at += used;
        }
        (member != negated, (at + 1).min(pattern.len()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn every_pattern_matches_as_a_naive_matcher(
            pattern in r"[ab*?\[\]^\\-]{0,12}",
            text in r"[ab\]\\^-]{1,8}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text, false), naive(pattern, text));
        }

        /// The search by bits, in patterns of more than one piece on texts of more than one window, and small ones.
        #[test]
        fn a_search_by_bits_agrees_with_a_search_by_position(
            part in r"(a|b|\?|\[ab\]|\[\^a\]|\[b-c\]|\\a){1,9}",
            repeats in prop_oneof![Just(1_usize), 1..200_usize],
            end in r"(a|b|\?|\[\^b\]){0,3}",
            text in "[abc]{1,6}",
            bytes in prop_oneof![1..200_usize, 1000..12_000_usize],
            other in (0..12_000_usize, "[abc]{0,40}"),
            ignore_case: bool,
        ) {
            let pattern = [part.repeat(repeats), end].concat();
            let mut text: Vec<u8> = text.bytes().cycle().take(bytes).collect();
            let at = other.0 % text.len();
            text.splice(at..at, other.1.bytes());
            let (segment, _) = Segment::take(pattern.as_bytes(), usize::MAX, ignore_case).expect("it has no end");
            let mut windows = text.windows(segment.length);
            let expected = windows.position(|window| segment.try_on(window).0);
            prop_assert_eq!(search::find(segment.pattern, segment.length, &text, ignore_case), expected);
            prop_assert_eq!(segment.find(&text), expected);
        }

        #[test]
        fn case_makes_no_difference_when_it_is_ignored(pattern in "[abAB*?]{0,12}", text in "[abAB]{0,8}") {
            let folded = matches(pattern.to_lowercase().as_bytes(), text.to_lowercase().as_bytes(), false);
            prop_assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), true), folded);
        }

        #[test]
        fn an_escaped_text_matches_itself_alone(text in prop::collection::vec(any::<u8>(), 0..12), other: u8) {
            let pattern: Vec<u8> = text.iter().flat_map(|&byte| [b'\\', byte]).collect();
            prop_assert!(matches(&pattern, &text, false));
            let longer = [&text[..], &[other]].concat();
            prop_assert!(!matches(&pattern, &longer, false));
        }
    }
}
