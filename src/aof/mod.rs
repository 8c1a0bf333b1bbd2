//! The append-only file (AOF): the commands that changed the data, and the files that they are in.
//!
//! An AOF is a base, which is the data of a moment, and the commands since then in one or more incremental files. A
//! manifest lists them. All of it is Redis's format, byte for byte, so either server starts with the other's files.
//!
//! This room knows files only as [`crate::storage::Storage`], and no command.

pub mod appended;
pub mod checksum;
pub mod decisions;
pub mod files;
pub mod log;
pub mod manifest;
pub mod rewrite;
pub mod scan;

/// The integer that a text begins with, as C's `strtoll` reads it: blanks, a sign, digits; 0 if there is none. What
/// follows does not matter.
pub(crate) fn leading_integer(text: &[u8]) -> i64 {
    let blanks = text.iter().take_while(|&&byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let (is_negative, digits) = match &text[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0_i64, |number, &digit| {
        let digit = i64::from(digit - b'0');
        let number = number.saturating_mul(10);
        if is_negative { number.saturating_sub(digit) } else { number.saturating_add(digit) }
    })
}

#[cfg(test)]
mod tests {
    use super::leading_integer;

    #[test]
    fn an_integer_ends_where_its_digits_end() {
        let table: [(&[u8], i64); 9] = [
            (b"12", 12),
            (b" \t+7x8", 7),
            (b"-3\r\n", -3),
            (b"", 0),
            (b"x1", 0),
            (b"--1", 0),
            (b"000000000000000000000000000000009", 9),
            (b"99999999999999999999", i64::MAX),
            (b"-99999999999999999999", i64::MIN),
        ];
        for (text, number) in table {
            assert_eq!(leading_integer(text), number, "{}", text.escape_ascii());
        }
    }
}
