//! MessagePack to Lua values.
//!
//! Unfinished arrays and maps are in a list, not on the native stack; their tables are on Lua's stack, whose limit is
//! a limit of deep nesting. A declared length allocates nothing: each element has to exist.

use crate::lua::{Raise, Stack};
use crate::script::arguments::{integer, integer_or};

pub(super) fn unpack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    unpack_some(stack, 0, 0)
}

pub(super) fn unpack_one(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let offset = integer_or(stack, 2, 0)?;
    unpack_some(stack, 1, offset)
}

pub(super) fn unpack_limit(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (limit, offset) = (integer(stack, 2)?, integer_or(stack, 3, 0)?);
    unpack_some(stack, limit, offset)
}

/// Pushes the offset behind `limit` values, -1 at the end, and the values from `offset` on; if both are 0, all values
/// only.
fn unpack_some(stack: &mut Stack<'_>, limit: i64, offset: i64) -> Result<usize, Raise> {
    let is_all = limit == 0 && offset == 0;
    let text = stack.text_argument(1)?;
    let length = text.len();
    let (Ok(offset), Ok(limit)) = (usize::try_from(offset), usize::try_from(limit)) else {
        let (offset, length) = (offset as i32, length as i32);
        let message = format!("Invalid request to unpack with offset of {offset} and limit of {length}.");
        return Err(Raise::here(message));
    };
    let Some(rest) = text.get(offset..) else {
        let message = format!("Start offset {} greater than input length {}.", offset as i32, length as i32);
        return Err(Raise::here(message));
    };
    let limit = if is_all { i32::MAX as usize } else { limit };
    let mut unpacker = Unpacker { rest, levels: Vec::new() };
    let mut count = 0;
    while !unpacker.rest.is_empty() && count < limit {
        unpacker.value(stack)?;
        count += 1;
    }
    if is_all {
        return Ok(count);
    }
    reserve(stack, "in function mp_unpack_full")?;
    stack.push_number(if unpacker.rest.is_empty() { -1.0 } else { (length - unpacker.rest.len()) as f64 });
    stack.insert(-1 - i32::try_from(count).unwrap_or(0));
    Ok(count + 1)
}

fn reserve(stack: &mut Stack<'_>, whose: &str) -> Result<(), Raise> {
    stack.reserve(1).map_err(|_| Raise::here(format!("stack overflow ({whose})")))
}

/// An unfinished table.
enum Level {
    Array { left: u32 },
    Map { left: u32, has_key: bool },
}

struct Unpacker<'d> {
    rest: &'d [u8],
    levels: Vec<Level>,
}

impl<'d> Unpacker<'d> {
    /// Pushes one value.
    fn value(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        loop {
            stack.step(1)?;
            if self.begin(stack)? && self.store(stack)? {
                return Ok(());
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<&'d [u8], Raise> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| Raise::here("Missing bytes in input."))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Raise> {
        Ok(self.take(N)?.try_into().expect("as many were taken"))
    }

    fn short(&mut self) -> Result<u32, Raise> {
        Ok(u16::from_be_bytes(self.array()?).into())
    }

    fn long(&mut self) -> Result<u32, Raise> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Pushes the next value, and returns true; or the table of one that has elements.
    fn begin(&mut self, stack: &mut Stack<'_>) -> Result<bool, Raise> {
        let [kind] = self.array()?;
        reserve(stack, "too many return values at once; use unpack_one or unpack_limit instead.")?;
        match kind {
            0x00..=0x7f => stack.push_number(kind.into()),
            0xe0..=0xff => stack.push_number(f64::from(kind as i8)),
            0xc0 => stack.push_nil(),
            0xc2 | 0xc3 => stack.push_boolean(kind == 0xc3),
            0xca => stack.push_number(f32::from_be_bytes(self.array()?).into()),
            0xcb => stack.push_number(f64::from_be_bytes(self.array()?)),
            0xcc..=0xd3 => {
                let number = self.integer(kind)?;
                stack.push_number(number);
            }
            0xa0..=0xbf | 0xd9..=0xdb => {
                let length = match kind {
                    0xd9 => self.take(1)?[0].into(),
                    0xda => self.short()?,
                    0xdb => self.long()?,
                    _ => u32::from(kind & 0x1f),
                };
                let text = self.take(length as usize)?;
                stack.push_bytes(text)?;
            }
            0x90..=0x9f => return self.begin_array(stack, u32::from(kind & 0x0f)),
            0xdc => {
                let length = self.short()?;
                return self.begin_array(stack, length);
            }
            0xdd => {
                let length = self.long()?;
                return self.begin_array(stack, length);
            }
            0x80..=0x8f => return self.begin_map(stack, u32::from(kind & 0x0f)),
            0xde => {
                let length = self.short()?;
                return self.begin_map(stack, length);
            }
            0xdf => {
                let length = self.long()?;
                return self.begin_map(stack, length);
            }
            _ => return Err(Raise::here("Bad data format in input.")),
        }
        Ok(true)
    }

    fn integer(&mut self, kind: u8) -> Result<f64, Raise> {
        Ok(match kind {
            0xcc => u8::from_be_bytes(self.array()?).into(),
            0xcd => u16::from_be_bytes(self.array()?).into(),
            0xce => u32::from_be_bytes(self.array()?).into(),
            0xd0 => i8::from_be_bytes(self.array()?).into(),
            0xd1 => i16::from_be_bytes(self.array()?).into(),
            0xd2 => i32::from_be_bytes(self.array()?).into(),
            // Unsigned or signed: Redis reads both as signed.
            _ => i64::from_be_bytes(self.array()?) as f64,
        })
    }

    fn begin_array(&mut self, stack: &mut Stack<'_>, left: u32) -> Result<bool, Raise> {
        stack.push_table(0, 0)?;
        reserve(stack, "in function mp_decode_to_lua_array")?;
        if left == 0 {
            return Ok(true);
        }
        // Each element is above its number.
        stack.push_number(1.0);
        self.levels.push(Level::Array { left });
        Ok(false)
    }

    fn begin_map(&mut self, stack: &mut Stack<'_>, left: u32) -> Result<bool, Raise> {
        stack.push_table(0, 0)?;
        if left == 0 {
            return Ok(true);
        }
        self.levels.push(Level::Map { left, has_key: false });
        Ok(false)
    }

    /// Stores the value on top in its table; if that is complete, stores it in its own, and so on. True if the
    /// outermost is complete.
    fn store(&mut self, stack: &mut Stack<'_>) -> Result<bool, Raise> {
        while let Some(level) = self.levels.last_mut() {
            match level {
                Level::Map { has_key: has_key @ false, .. } => {
                    *has_key = true;
                    return Ok(false);
                }
                Level::Map { left, has_key } => {
                    *has_key = false;
                    *left -= 1;
                    stack.set(-3)?;
                    if *left > 0 {
                        return Ok(false);
                    }
                }
                Level::Array { left } => {
                    let next = stack.number(-2).unwrap_or(0.0) + 1.0;
                    *left -= 1;
                    stack.set(-3)?;
                    if *left > 0 {
                        stack.push_number(next);
                        return Ok(false);
                    }
                }
            }
            self.levels.pop();
        }
        Ok(true)
    }
}
