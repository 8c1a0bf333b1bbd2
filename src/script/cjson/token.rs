//! JSON as a sequence of tokens. JSON ends at the end of the text, or at a NUL.

use std::borrow::Cow;

use super::number;

/// A token of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Colon,
    Comma,
    Text(Cow<'t, [u8]>),
    Number(f64),
    Boolean(bool),
    Null,
    End,
    /// No valid token, for this reason.
    Invalid(&'static str),
}

impl Token<'_> {
    /// The name of the token in error messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::Text(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::End => "T_END",
            Token::Invalid(reason) => reason,
        }
    }
}

/// Reads tokens one by one.
pub(super) struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    /// The offset of the last token, or of the fault in it.
    pub(super) token_at: usize,
    takes_invalid_numbers: bool,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t [u8], takes_invalid_numbers: bool) -> Reader<'t> {
        Reader { text, at: 0, token_at: 0, takes_invalid_numbers }
    }

    /// The offset up to which it has read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    pub(super) fn next(&mut self) -> Token<'t> {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.token_at = self.at;
        let token = match self.byte(self.at) {
            0 => return Token::End,
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            b'"' => return self.text(),
            b'-' | b'0'..=b'9' => return self.number(),
            _ => return self.word(),
        };
        self.at += 1;
        token
    }

    fn invalid(&mut self, reason: &'static str) -> Token<'t> {
        self.token_at = self.at;
        Token::Invalid(reason)
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn word(&mut self) -> Token<'t> {
        let rest = self.rest();
        let words = [("true", Token::Boolean(true)), ("false", Token::Boolean(false)), ("null", Token::Null)];
        for (word, token) in words {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return token;
            }
        }
        let may_be_number = matches!(rest.first(), Some(b'+' | b'i' | b'I' | b'n' | b'N'));
        if may_be_number && self.takes_invalid_numbers && is_invalid_number(rest) {
            return self.read_number();
        }
        self.invalid("invalid token")
    }

    fn number(&mut self) -> Token<'t> {
        if !self.takes_invalid_numbers && is_invalid_number(self.rest()) {
            return self.invalid("invalid number");
        }
        self.read_number()
    }

    fn read_number(&mut self) -> Token<'t> {
        let Some((value, length)) = number::read(self.rest()) else { return self.invalid("invalid number") };
        self.at += length;
        Token::Number(value)
    }

    fn text(&mut self) -> Token<'t> {
        self.at += 1;
        let mut unescaped = Vec::new();
        loop {
            let start = self.at;
            let length = self.rest().iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0)).count();
            self.at += length;
            let part = &self.text[start..self.at];
            match self.byte(self.at) {
                b'"' => {
                    self.at += 1;
                    if unescaped.is_empty() {
                        return Token::Text(part.into());
                    }
                    unescaped.extend_from_slice(part);
                    return Token::Text(unescaped.into());
                }
                b'\\' => {
                    unescaped.extend_from_slice(part);
                    if let Err(reason) = self.escape(&mut unescaped) {
                        return self.invalid(reason);
                    }
                }
                _ => return self.invalid("unexpected end of string"),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), &'static str> {
        let byte = match self.byte(self.at + 1) {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 0x0c,
            b'r' => b'\r',
            b'u' => {
                let (letter, length) = self.unicode().ok_or("invalid unicode escape code")?;
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                self.at += length;
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        };
        out.push(byte);
        self.at += 2;
        Ok(())
    }

    /// The character of an escape or of a pair of them, and its length.
    fn unicode(&self) -> Option<(char, usize)> {
        let unit = self.unit(self.at)?;
        if let Some(letter) = char::from_u32(unit.into()) {
            return Some((letter, 6));
        }
        let units = [unit, self.unit(self.at + 6)?];
        let letter = char::decode_utf16(units).next()?.ok()?;
        Some((letter, 12))
    }

    /// The number of a `\u` with four hexadecimal digits.
    fn unit(&self, at: usize) -> Option<u16> {
        let [b'\\', b'u', digits @ ..] = self.text.get(at..at + 6)? else { return None };
        digits.iter().try_fold(0, |unit: u16, &digit| {
            let value = char::from(digit).to_digit(16)?;
            Some(unit << 4 | u16::try_from(value).ok()?)
        })
    }
}

/// Whether a number is not valid in JSON: with a plus, a leading zero, hexadecimal, or not a number at all.
fn is_invalid_number(text: &[u8]) -> bool {
    let unsigned = match text {
        [b'+', ..] => return true,
        [b'-', rest @ ..] => rest,
        rest => rest,
    };
    match unsigned {
        [b'0', b'x' | b'X' | b'0'..=b'9', ..] => true,
        _ => {
            unsigned.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan"))
        }
    }
}
