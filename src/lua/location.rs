//! Positions in a script, and errors about wrong arguments, in the words of Lua's errors.

use std::ffi::CStr;

use mlua_sys as ffi;

use super::calls::{Raise, text_or_nothing};
use super::stack::index;
use super::{Kind, SourceLine, Stack};

/// Positions in a script, for errors.
impl Stack<'_> {
    /// The record of the function `level` calls up from the running one, with the fields that `what` selects.
    fn frame(&self, level: usize, what: &CStr) -> Option<ffi::lua_Debug> {
        // SAFETY: `lua_getinfo` is asked only about a frame that `lua_getstack` found; the record is plain data.
        unsafe {
            let mut record: ffi::lua_Debug = std::mem::zeroed();
            let is_there = ffi::lua_getstack(self.raw(), index(level), &raw mut record) != 0;
            (is_there && ffi::lua_getinfo(self.raw(), what.as_ptr(), &raw mut record) != 0).then_some(record)
        }
    }

    /// The position in the function `level` calls up, as errors begin: `user_script:1: `, or nothing.
    pub fn location(&self, level: usize) -> Vec<u8> {
        let Some(frame) = self.frame(level, c"Sl").filter(|frame| frame.currentline > 0) else { return Vec::new() };
        // SAFETY: Lua ends the name with NUL.
        let source = unsafe { CStr::from_ptr(frame.short_src.as_ptr()) };
        [source.to_bytes(), b":", frame.currentline.to_string().as_bytes(), b": "].concat()
    }

    /// The position in the function `level` calls up; `None` if there are fewer calls.
    pub fn caller(&self, level: usize) -> Option<SourceLine> {
        let frame = self.frame(level, c"Sl")?;
        // SAFETY: Lua ends both texts with NUL.
        let (what, source) = unsafe { (text_or_nothing(frame.what), text_or_nothing(frame.source)) };
        let line = (what != "C").then(|| frame.currentline.into());
        Some(SourceLine { source: source.into_owned(), line })
    }

    /// The text of Lua's error for a wrong argument.
    pub(super) fn argument_error(&self, number: usize, reason: &[u8]) -> Vec<u8> {
        let Some(frame) = self.frame(0, c"n") else {
            return [format!("bad argument #{number} (").as_bytes(), reason, b")"].concat();
        };
        // SAFETY: Lua ends both texts with NUL.
        let (name, kind) = unsafe { (text_or_nothing(frame.name), text_or_nothing(frame.namewhat)) };
        let name = if frame.name.is_null() { "?".into() } else { name };
        let beginning = match (&*kind, number) {
            ("method", 1) => format!("calling '{name}' on bad self ("),
            ("method", 2..) => format!("bad argument #{} to '{name}' (", number - 1),
            _ => format!("bad argument #{number} to '{name}' ("),
        };
        [beginning.as_bytes(), reason, b")"].concat()
    }
}

/// Arguments, with Lua's errors for wrong ones.
impl<'c> Stack<'c> {
    fn wrong_type(&self, number: usize, expected: &str) -> Raise {
        Raise::argument(number, format!("{expected} expected, got {}", self.type_name(index(number))))
    }

    /// An argument that must be a string or a number, as text.
    ///
    /// # Errors
    /// If it is something else.
    pub fn text_argument(&mut self, number: usize) -> Result<std::borrow::Cow<'c, [u8]>, Raise> {
        if let Some(bytes) = self.argument(number) {
            return Ok(bytes.into());
        }
        let mut text = Vec::new();
        if self.write_text(index(number), &mut text) { Ok(text.into()) } else { Err(self.wrong_type(number, "string")) }
    }

    /// An argument that must be a number, or a text that reads as one.
    ///
    /// # Errors
    /// If it is something else.
    pub fn number_argument(&self, number: usize) -> Result<f64, Raise> {
        self.number(index(number)).ok_or_else(|| self.wrong_type(number, "number"))
    }

    /// An argument that must be a table.
    ///
    /// # Errors
    /// If it is something else.
    pub fn table_argument(&self, number: usize) -> Result<i32, Raise> {
        if self.kind(index(number)) == Kind::Table { Ok(index(number)) } else { Err(self.wrong_type(number, "table")) }
    }

    /// Whether the argument is missing or nil.
    pub fn lacks(&self, number: usize) -> bool {
        matches!(self.kind(index(number)), Kind::None | Kind::Nil)
    }
}
