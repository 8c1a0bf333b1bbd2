//! Lua values to JSON.
//!
//! Unfinished tables are in a list, not on the native stack. A table whose keys are all integers from 1 on is an
//! array, with `null` in its holes; if there are too many holes, it is refused, or an object.

use super::settings::{Setting, value_of};
use super::{accept_one_argument, number};
use crate::lua::{Kind, Raise, Stack};
use crate::script::arguments::to_i32;
use crate::script::interrupt_check::InterruptCheck;

pub(super) fn encode(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    accept_one_argument(stack)?;
    let mut encoder = Encoder::new(stack);
    stack.push_copy(1);
    encoder.write(stack)?;
    stack.push_bytes(&encoder.out)?;
    Ok(1)
}

/// An unfinished table.
enum Level {
    Array { length: usize, written: usize },
    Object { is_empty: bool },
}

struct Encoder {
    out: Vec<u8>,
    levels: Vec<Level>,
    interrupt_check: InterruptCheck,
    max_depth: usize,
    is_sparse_converted: bool,
    sparse_ratio: i32,
    sparse_safe: i32,
    precision: usize,
    invalid_numbers: i32,
}

impl Encoder {
    fn new(stack: &mut Stack<'_>) -> Encoder {
        let size = |value: i32| usize::try_from(value).unwrap_or(0);
        Encoder {
            out: Vec::new(),
            levels: Vec::new(),
            interrupt_check: InterruptCheck::default(),
            max_depth: size(value_of(stack, Setting::EncodeDepth)),
            is_sparse_converted: value_of(stack, Setting::SparseConvert) != 0,
            sparse_ratio: value_of(stack, Setting::SparseRatio),
            sparse_safe: value_of(stack, Setting::SparseSafe),
            precision: size(value_of(stack, Setting::Precision)),
            invalid_numbers: value_of(stack, Setting::EncodeInvalid),
        }
    }

    /// Writes the value on top.
    fn write(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        self.value(stack)?;
        while let Some(level) = self.levels.last_mut() {
            let is_ended = match level {
                Level::Array { length, written } => {
                    if *written > 0 {
                        stack.pop(1);
                    }
                    let is_ended = written == length;
                    if !is_ended {
                        self.out.extend_from_slice(if *written > 0 { b"," } else { b"" });
                        *written += 1;
                        stack.get_element(-1, *written);
                    }
                    is_ended
                }
                Level::Object { is_empty } => {
                    let is_ended = !stack.next();
                    if !is_ended {
                        self.out.extend_from_slice(if *is_empty { b"" } else { b"," });
                        *is_empty = false;
                        self.key(stack)?;
                    }
                    is_ended
                }
            };
            if !is_ended {
                self.value(stack)?;
            } else if let Some(level) = self.levels.pop() {
                self.out.push(if matches!(level, Level::Array { .. }) { b']' } else { b'}' });
            }
        }
        Ok(())
    }

    /// Writes the value on top, or the beginning of a table.
    fn value(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        self.interrupt_check.check(stack, &self.out)?;
        match stack.kind(-1) {
            Kind::String => self.text(stack, -1),
            Kind::Number => self.number(stack, -1),
            Kind::Boolean => {
                self.out.extend_from_slice(if stack.truth(-1) { b"true" } else { b"false" });
                Ok(())
            }
            Kind::Table => self.begin(stack),
            Kind::Nil => {
                self.out.extend_from_slice(b"null");
                Ok(())
            }
            Kind::LightUserdata if stack.identity(-1) == 0 => {
                self.out.extend_from_slice(b"null");
                Ok(())
            }
            _ => Err(refuse(stack, -1, "type not supported")),
        }
    }

    /// Writes the string at `at`. An escaped byte becomes up to six bytes, so a large string is written in parts,
    /// each of which memory must allow.
    fn text(&mut self, stack: &Stack<'_>, at: i32) -> Result<(), Raise> {
        const PART_BYTES: usize = 64 << 10;
        self.out.push(b'"');
        for part in stack.bytes(at).unwrap_or_default().chunks(PART_BYTES) {
            write_escaped(&mut self.out, part);
            self.interrupt_check.check(stack, &self.out)?;
        }
        self.out.push(b'"');
        Ok(())
    }

    fn begin(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        let depth = self.levels.len() + 1;
        if depth > self.max_depth || stack.reserve(3).is_err() {
            return Err(Raise::here(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.array_length(stack)? {
            Some(length) => {
                self.out.push(b'[');
                self.levels.push(Level::Array { length, written: 0 });
            }
            None => {
                self.out.push(b'{');
                stack.walk(-1)?;
                self.levels.push(Level::Object { is_empty: true });
            }
        }
        Ok(())
    }

    /// The length of the table on top if it is an array. An empty table is none.
    fn array_length(&mut self, stack: &mut Stack<'_>) -> Result<Option<usize>, Raise> {
        let (mut longest, mut count) = (0_i32, 0_i32);
        stack.walk(-1)?;
        while stack.next() {
            let key = if stack.kind(-2) == Kind::Number { stack.number(-2) } else { None };
            let Some(key) = key.filter(|&key| key >= 1.0 && key.floor() == key) else {
                stack.leave();
                return Ok(None);
            };
            if key > longest.into() {
                longest = to_i32(key);
            }
            count = count.wrapping_add(1);
            stack.step(1)?;
        }
        let is_sparse =
            self.sparse_ratio > 0 && longest > count.wrapping_mul(self.sparse_ratio) && longest > self.sparse_safe;
        if is_sparse && !self.is_sparse_converted {
            return Err(refuse(stack, -1, "excessively sparse array"));
        }
        Ok(usize::try_from(longest).ok().filter(|&length| length > 0 && !is_sparse))
    }

    fn key(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        match stack.kind(-2) {
            Kind::String => self.text(stack, -2)?,
            Kind::Number => {
                self.out.push(b'"');
                self.number(stack, -2)?;
                self.out.push(b'"');
            }
            _ => return Err(refuse(stack, -2, "table key must be a number or string")),
        }
        self.out.push(b':');
        Ok(())
    }

    fn number(&mut self, stack: &Stack<'_>, at: i32) -> Result<(), Raise> {
        let value = stack.number(at).unwrap_or(0.0);
        if !value.is_finite() {
            match self.invalid_numbers {
                0 => return Err(refuse(stack, at, "must not be NaN or Inf")),
                1 if value.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                1 => {}
                _ => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
            }
        }
        number::write(&mut self.out, value, self.precision);
        Ok(())
    }
}

fn refuse(stack: &Stack<'_>, at: i32, reason: &str) -> Raise {
    Raise::here(format!("Cannot serialise {}: {reason}", stack.type_name(at)))
}

/// Appends a text in the form that it has between quotes.
fn write_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| is_escaped(byte)) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte @ (b'"' | b'\\' | b'/') => out.extend_from_slice(&[b'\\', byte]),
            byte => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

fn is_escaped(byte: u8) -> bool {
    byte < b' ' || matches!(byte, b'"' | b'\\' | b'/' | 0x7f)
}
