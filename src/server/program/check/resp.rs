//! Reads a command as redis-check-aof does: more strictly than a server that loads it, with its words for what is
//! wrong.

use crate::aof::leading_integer;

/// The outcome of reading the bytes of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Examined {
    /// The lines that were read, where a word is one.
    pub(super) lines: usize,
    /// Where the last reading of a number or a word began.
    pub(super) last_read: usize,
    /// The fault; `None` for a whole command, and for one that ends between two lines.
    pub(super) fault: Option<String>,
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    found: Examined,
}

/// Reads the command that the bytes begin with, as far as it is there.
pub(super) fn examine(bytes: &[u8]) -> Examined {
    let mut reader = Reader { bytes, at: 0, found: Examined::default() };
    reader.command();
    reader.found
}

impl Reader<'_> {
    /// Reads the command; `None` if it is not whole.
    fn command(&mut self) -> Option<()> {
        let count = self.number(b'*')?;
        for _ in 0..count {
            let length = self.number(b'$')?;
            self.word(length)?;
        }
        Some(())
    }

    /// Reads a line with a number.
    fn number(&mut self, prefix: u8) -> Option<i64> {
        let rest = &self.bytes[self.at..];
        self.found.last_read = self.at;
        let first = *rest.first()?;
        if first != prefix {
            return self.fail(format!("Expected prefix '{}', got: '{}'", char::from(prefix), char::from(first)));
        }
        let line_bytes = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
        let number = &rest[1..line_bytes];
        let blanks = number.iter().take_while(|&&byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
        let sign = usize::from(matches!(number.get(blanks), Some(b'-' | b'+')));
        let digits = number[blanks + sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = if digits == 0 { 0 } else { blanks + sign + digits };
        self.line_end(&number[end..])?;
        self.at += 1 + end + 2;
        self.found.lines += 1;
        Some(leading_integer(number))
    }

    /// Reads a word and its line end.
    fn word(&mut self, length: i64) -> Option<()> {
        let Some(wanted) = usize::try_from(length).ok().and_then(|length| length.checked_add(2)) else {
            return self.fail(format!("Expected to read string of {length} bytes, which is not in the suitable range"));
        };
        self.found.last_read = self.at;
        let rest = &self.bytes[self.at..];
        let Some(word) = rest.get(..wanted) else {
            return self.fail(format!("Expected to read {wanted} bytes, got {} bytes", rest.len()));
        };
        self.line_end(&word[wanted - 2..])?;
        self.at += wanted;
        self.found.lines += 1;
        Some(())
    }

    fn line_end(&mut self, bytes: &[u8]) -> Option<()> {
        let got = [0, 1].map(|at| bytes.get(at).copied().unwrap_or(0));
        if got == *b"\r\n" {
            Some(())
        } else {
            // The tool prints bytes as signed numbers.
            let [first, second] = got.map(|byte| i32::from(byte.cast_signed()));
            self.fail(format!("Expected \\r\\n, got: {first:02x}{second:02x}"))
        }
    }

    fn fail<T>(&mut self, fault: String) -> Option<T> {
        self.found.fault = Some(fault);
        None
    }
}
