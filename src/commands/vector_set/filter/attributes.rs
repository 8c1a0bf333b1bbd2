//! The fields of attributes, a JSON text that is read as far as it is needed.
//!
//! Only the fields of the outermost object count, and of its values those that an expression can compare: numbers,
//! texts, booleans as 1 and 0, null, and lists of these. What is behind the field is not looked at, so the text may be
//! broken there. Names of fields are compared as they are written, with their escapes.

use super::parse::is_space;
use super::{MAX_DIGITS, Value, whole_number};

/// The lists in lists that are read. Redis has no limit, and uses its stack for each.
const MAX_DEPTH: usize = 128;

/// The value of a field; `None` if there is none of that name, or one that is not read.
pub(super) fn field(attributes: &[u8], name: &[u8]) -> Option<Value> {
    if name.is_empty() {
        return None;
    }
    let mut text = Text { rest: attributes };
    text.skip_spaces();
    text.take(b'{')?;
    loop {
        text.skip_spaces();
        let found = text.string()?;
        text.skip_spaces();
        text.take(b':')?;
        text.skip_spaces();
        if found == name {
            return text.value(0);
        }
        text.skip_value()?;
        text.skip_spaces();
        text.take(b',')?;
    }
}

/// What is left of the text.
struct Text<'t> {
    rest: &'t [u8],
}

impl<'t> Text<'t> {
    fn skip_spaces(&mut self) {
        let spaces = self.rest.iter().take_while(|byte| is_space(**byte)).count();
        self.rest = &self.rest[spaces..];
    }

    /// Takes this byte; `None` if another one is next.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    /// Takes a word that ends there.
    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.rest.strip_prefix(word.as_bytes())?;
        let is_end = rest.first().is_none_or(|byte| is_space(*byte) || b",]}".contains(byte));
        self.rest = rest;
        is_end.then_some(())
    }

    /// Takes a text between quotes, with its escapes.
    fn string(&mut self) -> Option<&'t [u8]> {
        self.take(b'"')?;
        let (start, mut length) = (self.rest, 0);
        loop {
            match start.get(length)? {
                b'"' => break,
                b'\\' => length += 2,
                _ => length += 1,
            }
        }
        self.rest = &start[length + 1..];
        Some(&start[..length])
    }

    fn digits(&mut self) -> &'t [u8] {
        let is_of_number = |byte: &&u8| byte.is_ascii_digit() || b"-+.eE".contains(byte);
        let (digits, rest) = self.rest.split_at(self.rest.iter().take_while(is_of_number).count());
        self.rest = rest;
        digits
    }

    fn skip_value(&mut self) -> Option<()> {
        match self.rest.first()? {
            b'"' => self.string().map(drop),
            b'{' => self.skip_brackets(b'{', b'}'),
            b'[' => self.skip_brackets(b'[', b']'),
            b't' => self.skip_word(b"true"),
            b'f' => self.skip_word(b"false"),
            b'n' => self.skip_word(b"null"),
            _ => (!self.digits().is_empty()).then_some(()),
        }
    }

    fn skip_word(&mut self, word: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    /// Skips an object or a list. Only brackets of its own kind are counted.
    fn skip_brackets(&mut self, open: u8, close: u8) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match *self.rest.first()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                byte if byte == open => depth += 1,
                byte if byte == close => depth -= 1,
                _ => {}
            }
            self.rest = &self.rest[1..];
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.rest.first()? {
            b'"' => self.string().map(|text| Value::Text(unescaped(text))),
            b'[' => self.list(depth),
            b't' => self.word("true").map(|()| Value::Number(1.0)),
            b'f' => self.word("false").map(|()| Value::Number(0.0)),
            b'n' => self.word("null").map(|()| Value::Null),
            byte if byte.is_ascii_digit() || b"-+".contains(byte) => self.number(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Value> {
        let before = self.rest;
        let digits = self.digits();
        // What is behind the longest number is no part of it.
        let digits = &digits[..digits.len().min(MAX_DIGITS)];
        self.rest = &before[digits.len()..];
        whole_number(digits).map(Value::Number)
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.take(b'[')?;
        self.skip_spaces();
        let mut values = Vec::new();
        if self.take(b']').is_some() {
            return Some(Value::List(values));
        }
        (depth < MAX_DEPTH).then_some(())?;
        loop {
            self.skip_spaces();
            values.push(self.value(depth + 1)?);
            self.skip_spaces();
            if self.take(b']').is_some() {
                return Some(Value::List(values));
            }
            self.take(b',')?;
        }
    }
}

/// A text without its escapes; an unknown escape stands for its last byte.
fn unescaped(text: &[u8]) -> Box<[u8]> {
    let (mut bytes, mut plain) = (text.iter(), Vec::with_capacity(text.len()));
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(&other) => other,
                None => break,
            },
            byte => byte,
        });
    }
    plain.into()
}
