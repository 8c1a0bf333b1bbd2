//! How often which error was answered, by the code that it begins with (INFO's `errorstats`).
//!
//! Scripts make codes up. When there are more than anybody can have meant, all are forgotten and none is counted any
//! more until CONFIG RESETSTAT, as Redis does it.

use std::collections::BTreeMap;

/// How many codes are told apart.
const MOST_CODES: usize = 128;
/// Letters of the longest code.
const CODE_LETTERS: usize = 30;
/// What stands in the place of codes once there were too many.
const GIVEN_UP: &str = "ERRORSTATS_DISABLED";

/// Counts of errors.
#[derive(Debug, Default)]
pub struct ErrorCounts {
    by_code: BTreeMap<String, u64>,
    has_given_up: bool,
}

impl ErrorCounts {
    /// Counts errors of that line.
    pub fn count(&mut self, line: &str, times: u64) {
        if self.has_given_up {
            return;
        }
        let code = code_of(line);
        if let Some(count) = self.by_code.get_mut(code) {
            *count += times;
            return;
        }
        self.has_given_up = self.by_code.len() >= MOST_CODES;
        if self.has_given_up {
            self.by_code.clear();
        }
        self.by_code.insert(if self.has_given_up { GIVEN_UP } else { code }.to_owned(), times);
    }

    /// The codes, in order, and how often each was answered.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.by_code.iter().map(|(code, count)| (code.as_str(), *count))
    }
}

/// The first word of a line. One that is too long, or alone, is none, and the line counts as an `ERR`.
fn code_of(line: &str) -> &str {
    let end = line.char_indices().take(CODE_LETTERS + 1).find(|(_, letter)| matches!(letter, ' ' | '\r' | '\n'));
    end.map_or("ERR", |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_the_first_word_unless_it_is_long_or_alone() {
        let (longest, too_long) = ("x".repeat(30), "x".repeat(31));
        for (line, code) in [
            ("WRONGTYPE Operation against", "WRONGTYPE"),
            ("MY\nline", "MY"),
            ("alone", "ERR"),
            ("", "ERR"),
            (" blank", ""),
            (&format!("{longest} y"), &longest),
            (&format!("{too_long} y"), "ERR"),
        ] {
            assert_eq!(code_of(line), code, "{line}");
        }
    }

    #[test]
    fn too_many_codes_are_not_counted_at_all() {
        let mut counts = ErrorCounts::default();
        for number in 0..MOST_CODES {
            counts.count(&format!("E{number} made up"), 1);
        }
        counts.count("E7 made up", 1);
        assert_eq!(counts.iter().count(), MOST_CODES);
        assert!(counts.iter().any(|pair| pair == ("E7", 2)));
        counts.count("ERR one more", 1);
        counts.count("E7 made up", 1);
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(GIVEN_UP, 1)]);
    }
}
