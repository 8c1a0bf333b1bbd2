//! Counts of error replies, by the code that each begins with (INFO's `errorstats`).
//!
//! Scripts can invent codes. When there are too many, all are dropped and no error is counted until CONFIG RESETSTAT,
//! as in Redis.

use std::collections::BTreeMap;

/// The maximum number of different codes.
pub(in crate::engine) const MAX_CODES: usize = 128;

/// The length of the longest code, in characters.
const CODE_LETTERS: usize = 30;

/// The only entry after there were too many codes.
const GIVEN_UP: &str = "ERRORSTATS_DISABLED";

/// The counts of error replies, by code.
#[derive(Clone, Debug, Default)]
pub struct ErrorCounts {
    by_code: BTreeMap<String, u64>,
    has_given_up: bool,
}

impl ErrorCounts {
    /// Counts an error line `times` times.
    ///
    /// # Errors
    /// The code is one too many: the list of all previous codes. From now on no error is counted.
    pub fn count(&mut self, line: &str, times: u64) -> Result<(), String> {
        if self.has_given_up {
            return Ok(());
        }
        let code = code_of(line);
        if let Some(count) = self.by_code.get_mut(code) {
            *count += times;
            return Ok(());
        }
        if self.by_code.len() < MAX_CODES {
            self.by_code.insert(code.to_owned(), times);
            return Ok(());
        }
        self.has_given_up = true;
        let before = std::mem::replace(&mut self.by_code, [(GIVEN_UP.to_owned(), times)].into());
        Err(before.into_keys().collect::<Vec<_>>().join(", "))
    }

    /// The codes in alphabetical order, and the count of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.by_code.iter().map(|(code, count)| (code.as_str(), *count))
    }
}

/// The code of an error line, which is its first word. A line whose first word is too long, or its only one, counts as
/// `ERR`.
fn code_of(line: &str) -> &str {
    let end = line.char_indices().take(CODE_LETTERS + 1).find(|(_, letter)| matches!(letter, ' ' | '\r' | '\n'));
    end.map_or("ERR", |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_error_is_its_first_word_unless_it_is_long_or_alone() {
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
    fn error_counting_stops_when_there_are_too_many_codes() {
        let mut counts = ErrorCounts::default();
        for number in 0..MAX_CODES {
            assert_eq!(counts.count(&format!("E{number} made up"), 1), Ok(()));
        }
        assert_eq!(counts.count("E7 made up", 1), Ok(()));
        assert_eq!(counts.iter().count(), MAX_CODES);
        assert!(counts.iter().any(|pair| pair == ("E7", 2)));
        let before = counts.count("ERR one more", 1).expect_err("it is one too many");
        assert!(before.starts_with("E0, E1, E10, E100, ") && before.ends_with(", E99"), "{before}");
        assert_eq!(counts.count("E7 made up", 1), Ok(()));
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(GIVEN_UP, 1)]);
    }
}
