//! JSON to Lua values.
//!
//! Unfinished arrays and objects are in a list, not on the native stack; their tables are on Lua's stack, whose limit
//! is a limit of deep nesting even if scripts allow it.

use super::accept_one_argument;
use super::settings::{Setting, value_of};
use super::token::{Reader, Token};
use crate::lua::{Raise, Stack};

pub(super) fn decode(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    accept_one_argument(stack)?;
    let text = stack.text_argument(1)?;
    if matches!(&*text, [0, _, ..] | [_, 0, ..]) {
        return Err(Raise::here("JSON parser does not support UTF-16 or UTF-32"));
    }
    let takes_invalid_numbers = value_of(stack, Setting::DecodeInvalid) != 0;
    let max_depth = usize::try_from(value_of(stack, Setting::DecodeDepth)).unwrap_or(0);
    let mut decoder = Decoder { reader: Reader::new(&text, takes_invalid_numbers), levels: Vec::new(), max_depth };
    decoder.read(stack)?;
    Ok(1)
}

/// An unfinished table.
enum Level {
    /// An array, with the number of its elements so far.
    Array(usize),
    Object,
}

struct Decoder<'t> {
    reader: Reader<'t>,
    levels: Vec<Level>,
    max_depth: usize,
}

impl<'t> Decoder<'t> {
    /// Pushes the value of the whole text.
    fn read(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        let mut token = self.reader.next();
        loop {
            stack.step(1)?;
            if let Some(first) = self.value(stack, token)? {
                token = first;
                continue;
            }
            match self.store(stack)? {
                Some(next) => token = next,
                None => return self.expect_end(),
            }
        }
    }

    fn expect_end(&mut self) -> Result<(), Raise> {
        match self.reader.next() {
            Token::End => Ok(()),
            other => Err(self.unexpected("the end", &other)),
        }
    }

    fn unexpected(&self, expected: &str, found: &Token<'_>) -> Raise {
        let position = self.reader.token_at + 1;
        Raise::here(format!("Expected {expected} but found {} at character {position}", found.name()))
    }

    /// Pushes the value of a token; or the table that it begins, and returns the first token of its first value.
    fn value(&mut self, stack: &mut Stack<'_>, token: Token<'t>) -> Result<Option<Token<'t>>, Raise> {
        match token {
            Token::Text(text) => stack.push_bytes(&text)?,
            Token::Number(number) => stack.push_number(number),
            Token::Boolean(value) => stack.push_boolean(value),
            Token::Null => stack.push_null(),
            Token::ObjectBegin => {
                self.begin(stack, 3)?;
                let token = self.reader.next();
                if token != Token::ObjectEnd {
                    self.levels.push(Level::Object);
                    return self.key(stack, &token).map(Some);
                }
            }
            Token::ArrayBegin => {
                self.begin(stack, 2)?;
                let token = self.reader.next();
                if token != Token::ArrayEnd {
                    self.levels.push(Level::Array(0));
                    return Ok(Some(token));
                }
            }
            other => return Err(self.unexpected("value", &other)),
        }
        Ok(None)
    }

    fn begin(&self, stack: &mut Stack<'_>, slots: usize) -> Result<(), Raise> {
        let depth = self.levels.len() + 1;
        if depth > self.max_depth || stack.reserve(slots).is_err() {
            let position = self.reader.position();
            let text = format!("Found too many nested data structures ({depth}) at character {position}");
            return Err(Raise::here(text));
        }
        stack.push_table(0, 0)
    }

    /// Pushes a key, and returns the first token of its value.
    fn key(&mut self, stack: &mut Stack<'_>, token: &Token<'t>) -> Result<Token<'t>, Raise> {
        let Token::Text(key) = token else { return Err(self.unexpected("object key string", token)) };
        stack.push_bytes(key)?;
        match self.reader.next() {
            Token::Colon => Ok(self.reader.next()),
            other => Err(self.unexpected("colon", &other)),
        }
    }

    /// Stores the value on top in its table; if that is complete, stores it in its own, and so on. Returns the first
    /// token of the next value; `None` if the outermost is complete.
    fn store(&mut self, stack: &mut Stack<'_>) -> Result<Option<Token<'t>>, Raise> {
        while let Some(level) = self.levels.last_mut() {
            let (end, expected) = match level {
                Level::Array(count) => {
                    *count += 1;
                    stack.set_element(-2, *count)?;
                    (Token::ArrayEnd, "comma or array end")
                }
                Level::Object => {
                    stack.set(-3)?;
                    (Token::ObjectEnd, "comma or object end")
                }
            };
            let is_object = matches!(level, Level::Object);
            match self.reader.next() {
                Token::Comma => {
                    let token = self.reader.next();
                    return if is_object { self.key(stack, &token).map(Some) } else { Ok(Some(token)) };
                }
                token if token == end => drop(self.levels.pop()),
                other => return Err(self.unexpected(expected, &other)),
            }
        }
        Ok(None)
    }
}
