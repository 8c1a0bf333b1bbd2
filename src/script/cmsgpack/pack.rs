//! Lua values to MessagePack.
//!
//! Tables nest up to sixteen levels; deeper ones become nil, as do values that MessagePack has no type for. A table
//! whose keys are the integers from 1 to its length is an array, and so is an empty one. Whole numbers become
//! integers of the shortest form, others a float if that represents them exactly, or a double.

use crate::lua::{Kind, Raise, Stack};
use crate::script::arguments::{to_i32, to_i64};
use crate::script::interrupt_check::InterruptCheck;

const MAX_NESTING: usize = 16;

pub(super) fn pack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let count = stack.top();
    if count == 0 {
        return Err(Raise::argument(0, "MessagePack pack needs input."));
    }
    stack.reserve(count).map_err(|_| Raise::argument(0, "Too many arguments for MessagePack pack."))?;
    let mut packer = Packer { out: Vec::new(), interrupt_check: InterruptCheck::default() };
    for argument in 1..=count {
        stack.push_copy(i32::try_from(argument).unwrap_or(i32::MAX));
        packer.value(stack, 0)?;
        stack.pop(1);
    }
    stack.push_bytes(&packer.out)?;
    Ok(1)
}

struct Packer {
    out: Vec<u8>,
    interrupt_check: InterruptCheck,
}

impl Packer {
    /// Writes the value on top.
    fn value(&mut self, stack: &mut Stack<'_>, depth: usize) -> Result<(), Raise> {
        self.interrupt_check.check(stack, &self.out)?;
        match stack.kind(-1) {
            Kind::String => self.text(stack.bytes(-1).unwrap_or_default()),
            Kind::Boolean => self.out.push(if stack.truth(-1) { 0xc3 } else { 0xc2 }),
            Kind::Number => self.number(stack.number(-1).unwrap_or(0.0)),
            Kind::Table if depth < MAX_NESTING => {
                stack.reserve(4).map_err(|_| Raise::here("stack overflow (in function mp_check)"))?;
                return match self.array_length(stack)? {
                    Some(length) => self.array(stack, length, depth),
                    None => self.map(stack, depth),
                };
            }
            _ => self.out.push(0xc0),
        }
        Ok(())
    }

    fn text(&mut self, text: &[u8]) {
        match text.len() {
            length @ 0..32 => self.out.push(0xa0 | length as u8),
            length @ 32..0x100 => self.out.extend_from_slice(&[0xd9, length as u8]),
            length => self.length(length, 0xda),
        }
        self.out.extend_from_slice(text);
    }

    /// Writes a length in two or four bytes behind a type; the one for four bytes comes after `kind`.
    fn length(&mut self, length: usize, kind: u8) {
        match u16::try_from(length) {
            Ok(length) => self.typed(kind, &length.to_be_bytes()),
            // Lengths of more than 32 bits do not fit the format, and keep their lower half as in Redis.
            Err(_) => self.typed(kind + 1, &(length as u32).to_be_bytes()),
        }
    }

    fn typed(&mut self, kind: u8, bytes: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(bytes);
    }

    fn number(&mut self, number: f64) {
        let whole = to_i64(number);
        if whole as f64 == number && number.is_finite() {
            self.integer(whole);
        } else if f64::from(number as f32) == number {
            self.typed(0xca, &(number as f32).to_be_bytes());
        } else {
            self.typed(0xcb, &number.to_be_bytes());
        }
    }

    fn integer(&mut self, number: i64) {
        let bytes = number.to_be_bytes();
        match number {
            -32..=0x7f => self.out.push(bytes[7]),
            0x80..=0xff => self.typed(0xcc, &bytes[7..]),
            0x100..=0xffff => self.typed(0xcd, &bytes[6..]),
            0x1_0000..=0xffff_ffff => self.typed(0xce, &bytes[4..]),
            0x1_0000_0000.. => self.typed(0xcf, &bytes),
            -0x80..-32 => self.typed(0xd0, &bytes[7..]),
            -0x8000..-0x80 => self.typed(0xd1, &bytes[6..]),
            -0x8000_0000..-0x8000 => self.typed(0xd2, &bytes[4..]),
            _ => self.typed(0xd3, &bytes),
        }
    }

    /// The length of the table on top if it is an array.
    fn array_length(&mut self, stack: &mut Stack<'_>) -> Result<Option<usize>, Raise> {
        let (mut largest, mut count) = (0_i32, 0_i32);
        stack.walk(-1)?;
        while stack.next() {
            let key = if stack.kind(-2) == Kind::Number { stack.number(-2) } else { None };
            let Some(key) = key.filter(|&key| key > 0.0 && f64::from(to_i32(key)) == key) else {
                stack.leave();
                return Ok(None);
            };
            largest = largest.max(to_i32(key));
            count = count.wrapping_add(1);
            stack.step(1)?;
        }
        Ok((largest == count).then(|| stack.length(-1)))
    }

    fn array(&mut self, stack: &mut Stack<'_>, length: usize, depth: usize) -> Result<(), Raise> {
        match length {
            0..16 => self.out.push(0x90 | length as u8),
            _ => self.length(length, 0xdc),
        }
        for number in 1..=length {
            stack.get_element(-1, number);
            self.value(stack, depth + 1)?;
            stack.pop(1);
        }
        Ok(())
    }

    fn map(&mut self, stack: &mut Stack<'_>, depth: usize) -> Result<(), Raise> {
        let mut length = 0_usize;
        stack.walk(-1)?;
        while stack.next() {
            length += 1;
            stack.step(1)?;
        }
        match length {
            0..16 => self.out.push(0x80 | length as u8),
            _ => self.length(length, 0xde),
        }
        stack.walk(-1)?;
        while stack.next() {
            stack.push_copy(-2);
            self.value(stack, depth + 1)?;
            stack.pop(1);
            self.value(stack, depth + 1)?;
        }
        Ok(())
    }
}
