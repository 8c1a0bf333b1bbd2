//! Compares replies with the expectations of a transcript.

use crate::reply::Protocol;

/// One expected line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// This text.
    Exact(String),
    /// `? `: text that this glob matches.
    Glob(String),
    /// `~ `: this text, but with a wall clock its numbers may be a little less, for time passes between two commands.
    Near(String),
    /// `? ...`: any lines, or none, to the end.
    Rest,
}

impl Expectation {
    pub(crate) fn parse(line: &str) -> Self {
        match line.split_once(' ') {
            Some(("?", "...")) => Self::Rest,
            Some(("?", glob)) => Self::Glob(glob.to_owned()),
            Some(("~", text)) => Self::Near(text.to_owned()),
            _ => Self::Exact(line.to_owned()),
        }
    }

    /// The line that [`Expectation::parse`] reads back.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::Exact(text) => text.clone(),
            Self::Glob(glob) => format!("? {glob}"),
            Self::Near(text) => format!("~ {text}"),
            Self::Rest => "? ...".to_owned(),
        }
    }

    fn accepts(&self, line: &str, clock: Clock) -> bool {
        match self {
            Self::Exact(text) => text == line,
            Self::Glob(glob) => glob_matches(glob.as_bytes(), line.as_bytes()),
            Self::Near(text) => text == line || clock == Clock::Wall && nearly_equal(text, line),
            Self::Rest => true,
        }
    }
}

/// The clock that the server under test reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The clock moves only when the transcript moves it: times are exact.
    Injected,
    /// Moves by itself.
    Wall,
}

/// The expectation of a step: lines for a reply, or bytes.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    resp2: Vec<Expectation>,
    /// Empty where both protocols give the same.
    resp3: Vec<Expectation>,
    pub(crate) bytes: Vec<u8>,
    /// Whether the server closes the connection after the bytes.
    pub(crate) closed: bool,
}

impl Expected {
    /// The lines that hold under `protocol`.
    pub(crate) fn lines(&self, protocol: Protocol) -> &[Expectation] {
        match protocol {
            Protocol::Resp3 if !self.resp3.is_empty() => &self.resp3,
            _ => &self.resp2,
        }
    }

    /// The lines written for `protocol` itself.
    pub(crate) fn lines_mut(&mut self, protocol: Protocol) -> &mut Vec<Expectation> {
        match protocol {
            Protocol::Resp2 => &mut self.resp2,
            Protocol::Resp3 => &mut self.resp3,
        }
    }

    /// Whether the command is expected to be refused because there is no such `kind`: command or subcommand.
    pub(crate) fn is_unknown(&self, kind: &str) -> bool {
        let start = format!("(error) ERR unknown {kind} ");
        matches!(self.resp2.first(), Some(Expectation::Exact(text)) if text.starts_with(&start))
    }

    pub(crate) fn is_silence(&self, protocol: Protocol) -> bool {
        matches!(self.lines(protocol), [Expectation::Exact(text)] if text == super::play::SILENCE)
    }
}

/// Whether `lines` are what is expected.
pub(crate) fn accepts(expected: &[Expectation], lines: &[String], clock: Clock) -> bool {
    let (fixed, lines) = match expected.split_last() {
        Some((Expectation::Rest, fixed)) => (fixed, &lines[..lines.len().min(fixed.len())]),
        _ => (expected, lines),
    };
    fixed.len() == lines.len() && fixed.iter().zip(lines).all(|(one, line)| one.accepts(line, clock))
}

/// The amount by which a number may be smaller with a real clock.
const SLACK: i64 = 400;

/// Whether two lines are equal but for numbers, and the numbers of `actual` are the expected ones or a little less.
fn nearly_equal(expected: &str, actual: &str) -> bool {
    let (expected, actual) = (pieces(expected), pieces(actual));
    expected.len() == actual.len()
        && expected.iter().zip(&actual).all(|(one, other)| match (one.parse::<i64>(), other.parse::<i64>()) {
            (Ok(one), Ok(other)) => (one.saturating_sub(SLACK)..=one).contains(&other),
            _ => one == other,
        })
}

/// The runs of digits in `text`, and what is between them.
fn pieces(text: &str) -> Vec<&str> {
    text.as_bytes()
        .chunk_by(|one, other| one.is_ascii_digit() == other.is_ascii_digit())
        .map(|run| std::str::from_utf8(run).expect("a run ends only beside an ASCII digit"))
        .collect()
}

/// `*` any text, `?` any byte, `[a-z]` one of, `\` takes the next byte as it is.
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    match (glob, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|skipped| glob_matches(rest, &text[skipped..])),
        (_, []) => false,
        ([b'?', rest @ ..], [_, after @ ..]) => glob_matches(rest, after),
        ([b'[', rest @ ..], [byte, after @ ..]) => match rest.iter().position(|&end| end == b']') {
            Some(end) => in_class(&rest[..end], *byte) && glob_matches(&rest[end + 1..], after),
            None => false,
        },
        ([b'\\', literal, rest @ ..], [byte, after @ ..]) | ([literal, rest @ ..], [byte, after @ ..]) => {
            literal == byte && glob_matches(rest, after)
        }
    }
}

fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        [low, b'-', high, rest @ ..] => (*low..=*high).contains(&byte) || in_class(rest, byte),
        [one, rest @ ..] => *one == byte || in_class(rest, byte),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(expected: &[&str], lines: &[&str], clock: Clock) -> bool {
        let expected: Vec<_> = expected.iter().map(|line| Expectation::parse(line)).collect();
        let lines: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
        accepts(&expected, &lines, clock)
    }

    #[test]
    fn globs_match_whole_lines() {
        assert!(fits(&["? \"8.*\""], &["\"8.0.6\""], Clock::Injected));
        assert!(fits(&["? (integer) [1-9]*"], &["(integer) 42"], Clock::Injected));
        assert!(!fits(&["? a*c"], &["abcd"], Clock::Injected));
        assert!(fits(&["? \\*?"], &["*x"], Clock::Injected));
    }

    #[test]
    fn numbers_marked_near_are_exact_where_the_clock_is_injected() {
        assert!(fits(&["~ (integer) 1500"], &["(integer) 1488"], Clock::Wall));
        assert!(!fits(&["~ (integer) 1500"], &["(integer) 1501"], Clock::Wall));
        assert!(!fits(&["~ (integer) 1500"], &["(integer) 1488"], Clock::Injected));
        assert!(!fits(&["~ (integer) 1500"], &["(nil)"], Clock::Wall));
    }

    #[test]
    fn a_final_pattern_matches_any_number_of_lines() {
        assert!(fits(&["1) \"a\"", "? ..."], &["1) \"a\"", "2) \"b\""], Clock::Injected));
        assert!(!fits(&["1) \"a\"", "? ..."], &[], Clock::Injected));
        assert!(!fits(&[], &["OK"], Clock::Injected));
    }
}
