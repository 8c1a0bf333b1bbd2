//! Splits a line of text into words, the way a person types a command into a terminal.
//!
//! The rules are those of Redis's inline requests, and of the lines of its configuration file:
//!
//! - words are separated by blanks; a word may be empty only if it is quoted;
//! - within `"double quotes"`, the escapes are `\n \r \t \b \a`, `\xHH` with two hex digits, and `\` before any other
//!   byte for that byte;
//! - within `'single quotes'`, the only escape is `\'`;
//! - a quote may open in the middle of a word (`a"b"` is `ab`), but a blank or the end must follow where it closes;
//! - outside quotes a backslash is a plain byte.
//!
//! Blanks between words are the six of C's `isspace`, but only space, tab, CR and LF end a bare word.
//!
//! It does not search for the end of the line and gives NUL no meaning: the caller does both. Cost: one pass, and
//! never more bytes out than in. Source: the replies of Redis 8.0.6 to the lines in the tests below.

use super::request::Span;

/// An error: a quote was opened and not closed, or closed in the middle of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnbalancedQuotes;

/// Appends the unquoted words of `line` to `text`, and their spans in `text` to `words`.
///
/// # Errors
///
/// [`UnbalancedQuotes`]; `text` and `words` then hold the words before the fault.
pub fn split_words(line: &[u8], text: &mut Vec<u8>, words: &mut Vec<Span>) -> Result<(), UnbalancedQuotes> {
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|&&byte| is_blank(byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Ok(());
        }
        let start = text.len();
        rest = take_word(rest, text)?;
        words.push(Span { start, end: text.len() });
    }
}

/// Whether C's `isspace` holds for the byte, in the C locale.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Appends one word to `text` and returns the rest of the line.
fn take_word<'a>(line: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    let bare =
        line.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'')).unwrap_or(line.len());
    text.extend_from_slice(&line[..bare]);
    match &line[bare..] {
        [b'"', quoted @ ..] => take_double_quoted(quoted, text),
        [b'\'', quoted @ ..] => take_single_quoted(quoted, text),
        rest => Ok(rest),
    }
}

fn take_double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        let (byte, after) = match rest {
            [b'"', after @ ..] => return close(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex_digit(*high) << 4 | hex_digit(*low), after)
            }
            [b'\\', letter, after @ ..] => (escaped(*letter), after),
            [byte, after @ ..] => (*byte, after),
            [] => return Err(UnbalancedQuotes),
        };
        text.push(byte);
        rest = after;
    }
}

fn take_single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        let (byte, after) = match rest {
            [b'\'', after @ ..] => return close(after),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [byte, after @ ..] => (*byte, after),
            [] => return Err(UnbalancedQuotes),
        };
        text.push(byte);
        rest = after;
    }
}

/// Ends a word at a closing quote: a blank must follow, or nothing.
fn close(after: &[u8]) -> Result<&[u8], UnbalancedQuotes> {
    match after.first() {
        Some(&byte) if !is_blank(byte) => Err(UnbalancedQuotes),
        _ => Ok(after),
    }
}

fn escaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// The value of a hex digit.
fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Appends `word`, escaped so that it stays on one line and can be read back between double quotes.
pub fn write_escaped(word: &[u8], text: &mut Vec<u8>) {
    for &byte in word {
        match byte {
            b'\\' | b'"' => text.extend_from_slice(&[b'\\', byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\r' => text.extend_from_slice(b"\\r"),
            b'\t' => text.extend_from_slice(b"\\t"),
            7 => text.extend_from_slice(b"\\a"),
            8 => text.extend_from_slice(b"\\b"),
            b' '..=b'~' => text.push(byte),
            _ => text.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_of_any_bytes_is_on_one_line() {
        let mut line = Vec::new();
        write_escaped(b"a\0\r\n\t\x07\x08\"\\\xff z'", &mut line);
        assert_eq!(line, br#"a\x00\r\n\t\a\b\"\\\xff z'"#);
    }

    #[test]
    fn an_escaped_and_quoted_word_reads_as_it_was() {
        let word: Vec<u8> = (0..=u8::MAX).collect();
        let mut line = b"\"".to_vec();
        write_escaped(&word, &mut line);
        line.push(b'"');
        let (mut text, mut words) = (Vec::new(), Vec::new());
        assert_eq!(split_words(&line, &mut text, &mut words), Ok(()));
        assert_eq!((text, words.len()), (word, 1));
    }

    fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (mut text, mut words) = (Vec::new(), Vec::new());
        split_words(line, &mut text, &mut words).ok()?;
        Some(words.iter().map(|word| text[word.start..word.end].to_vec()).collect())
    }

    /// Each line was sent after `ECHO ` to Redis 8.0.6 and is paired with the reply.
    #[test]
    fn one_word_is_parsed_as_in_redis() {
        let table: [(&[u8], &[u8]); 27] = [
            (br#""\x41\x4a\x4A""#, b"AJJ"),
            (br#""\x4""#, b"x4"),
            (br#""\x4g""#, b"x4g"),
            (br#""\x""#, b"x"),
            (br#""\x00""#, b"\0"),
            (br#""\X41""#, b"X41"),
            (br#""\n\r\t\b\a\q\\\"""#, b"\n\r\t\x08\x07q\\\""),
            (br#""""#, b""),
            (b"''", b""),
            (br#"a"b""#, b"ab"),
            (b"a'b' ", b"ab"),
            (br"'a\'b'", b"a'b"),
            (br"'a\nb'", br"a\nb"),
            (br"'a\\b'", br"a\\b"),
            (br"a\nb", br"a\nb"),
            (br"a\", br"a\"),
            (b"a\x0bb", b"a\x0bb"),
            (b"a\x0b", b"a\x0b"),
            (b"\"a\"\x0b", b"a"),
            (b"\"a\rb\"", b"a\rb"),
            (b"\"a\"\r", b"a"),
            (b"\"\x80\xff\"", b"\x80\xff"),
            (b"\x1ca", b"\x1ca"),
            (b"a\x1c", b"a\x1c"),
            (b" \x0b\x0ca", b"a"),
            (b"\x85\xa0", b"\x85\xa0"),
            (b"\ta\t", b"a"),
        ];
        for (line, word) in table {
            assert_eq!(split(line), Some(vec![word.to_vec()]), "{}", line.escape_ascii());
        }
    }

    /// Each line was sent after `ECHO ` to Redis 8.0.6, which replied "unbalanced quotes in request".
    #[test]
    fn quotes_that_do_not_close_at_a_blank_are_refused() {
        let table: [&[u8]; 14] = [
            b"\"a",
            b"'a",
            b"\"a\"b",
            b"'a'b",
            b"a\"b\"c",
            b"\"a\\\"",
            b"'a\\'",
            b"\"a\r",
            b"\"\\",
            b"'\\",
            b"\"a\" \"b",
            b"a\"",
            b"\"a\"\x1c",
            b"\"a\"\x85",
        ];
        for line in table {
            assert_eq!(split(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn blanks_separate_words_and_a_blank_line_has_none() {
        assert_eq!(split(b""), Some(vec![]));
        assert_eq!(split(b" \t\r\n\x0b\x0c"), Some(vec![]));
        assert_eq!(split(b"\"a\"\x0bb\rc"), Some(vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()]));
    }
}
