//! The settings that scripts can change: numbers in a table that the functions of one library share and no script can
//! reach.

use std::ops::RangeInclusive;

use super::SETTINGS;
use crate::lua::{Kind, Raise, Stack};
use crate::script::arguments::{integer, lower_half};

/// The words of a setting that is on or off; their indices are its numbers.
pub(super) const SWITCH: &[&str] = &["off", "on"];
/// The words for the encoding of numbers that JSON does not have.
pub(super) const INVALID_NUMBERS: &[&str] = &["off", "on", "null"];

/// The settings; their order is that in the table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Setting {
    SparseConvert = 1,
    SparseRatio,
    SparseSafe,
    EncodeDepth,
    DecodeDepth,
    EncodeInvalid,
    DecodeInvalid,
    KeepBuffer,
    Precision,
}

/// The initial settings, in the same order.
const DEFAULTS: [i32; 9] = [0, 2, 10, 1000, 1000, 0, 1, 1, 14];

/// Pushes a table of settings.
pub(super) fn push_defaults(stack: &mut Stack<'_>) -> Result<(), Raise> {
    stack.push_table(DEFAULTS.len(), 0)?;
    set_defaults(stack)
}

/// Stores the initial settings in the table on top.
pub(super) fn set_defaults(stack: &mut Stack<'_>) -> Result<(), Raise> {
    for (number, value) in (1..).zip(DEFAULTS) {
        stack.push_number(value.into());
        stack.set_element(-2, number)?;
    }
    Ok(())
}

/// A setting of the running function.
pub(super) fn value_of(stack: &mut Stack<'_>, setting: Setting) -> i32 {
    stack.get_element(Stack::upvalue(SETTINGS), setting as usize);
    let value = stack.number(-1).unwrap_or(0.0) as i32;
    stack.pop(1);
    value
}

/// Changes settings of the running function.
pub(super) struct Values<'s, 'c> {
    stack: &'s mut Stack<'c>,
}

impl<'s, 'c> Values<'s, 'c> {
    pub(super) fn of(stack: &'s mut Stack<'c>) -> Values<'s, 'c> {
        Values { stack }
    }

    fn store(&mut self, setting: Setting, value: i32) -> Result<(), Raise> {
        self.stack.push_number(value.into());
        self.stack.set_element(Stack::upvalue(SETTINGS), setting as usize)
    }

    /// Stores the argument if there is one, and pushes the setting's new value.
    pub(super) fn change_number(
        &mut self,
        argument: usize,
        setting: Setting,
        allowed: &RangeInclusive<i32>,
    ) -> Result<(), Raise> {
        if argument <= self.given() && !self.stack.lacks(argument) {
            let value = lower_half(integer(self.stack, argument)?);
            if !allowed.contains(&value) {
                let (least, most) = (allowed.start(), allowed.end());
                // The number 1 whichever argument it was, as in Redis.
                return Err(Raise::argument(1, format!("expected integer between {least} and {most}")));
            }
            self.store(setting, value)?;
        }
        let value = value_of(self.stack, setting);
        self.stack.push_number(value.into());
        Ok(())
    }

    /// Like [`Values::change_number`], for one of `words` or a boolean.
    pub(super) fn change_word(&mut self, argument: usize, setting: Setting, words: &[&str]) -> Result<(), Raise> {
        if argument <= self.given() && !self.stack.lacks(argument) {
            let value = self.word(argument, words)?;
            self.store(setting, value)?;
        }
        let value = value_of(self.stack, setting);
        match usize::try_from(value).ok().and_then(|value| words.get(value)) {
            Some(word) if value > 1 => self.stack.push_plain(word.as_bytes()),
            _ => self.stack.push_boolean(value != 0),
        }
        Ok(())
    }

    fn word(&mut self, argument: usize, words: &[&str]) -> Result<i32, Raise> {
        let place = i32::try_from(argument).unwrap_or(i32::MAX);
        if self.stack.kind(place) == Kind::Boolean {
            return Ok(self.stack.truth(place).into());
        }
        let text = self.stack.text_argument(argument)?;
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        let number = words.iter().position(|word| word.as_bytes() == text);
        let number = number.and_then(|number| i32::try_from(number).ok());
        number.ok_or_else(|| Raise::argument(argument, [b"invalid option '", text, b"'"].concat()))
    }

    /// The number of arguments; results are above them.
    fn given(&self) -> usize {
        self.stack.arguments()
    }
}
