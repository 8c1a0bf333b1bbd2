//! What compiled code does with global names, read from the form in which Lua 5.1 would save it.
//!
//! Lua tells nothing about a function's instructions but that form (`lua_dump`), so it is read here: the code of the
//! function and of all functions within. It never leaves the process, and none is ever loaded.
//!
//! ```text
//!   header  signature 4, version, format, is little, sizes of int, size_t, instruction and number, are integers
//!   function  source text, first and last line (int), upvalues, parameters, variadic, stack (a byte each)
//!             code: count (int), instructions; constants: count, kind and value each; functions within: count, each
//!             lines: count, ints; names of variables: count, text and two ints each; of upvalues: count, text each
//!   text  length (size_t), bytes
//! ```
//!
//! Source: the behaviour of Lua 5.1.5 on the machine that it was built for.

/// The instruction that gives a global name a value, in the lowest six bits of a word.
const SET_GLOBAL: u32 = 7;
const OPERATION: u32 = 0x3f;
const HEADER_BYTES: usize = 12;
/// Functions nest no deeper than the compiler does.
const MOST_DEPTH: usize = 256;

/// Whether a function, or one within it, may give a global name a value; also true when that cannot be told.
pub(super) fn assigns_globals(dump: &[u8]) -> bool {
    let mut reader = Reader { rest: dump };
    let has_header = reader.skip(HEADER_BYTES).is_some();
    !has_header || reader.function(0).unwrap_or(true) || !reader.rest.is_empty()
}

struct Reader<'d> {
    rest: &'d [u8],
}

impl Reader<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.rest = self.rest.get(count..)?;
        Some(())
    }

    fn word<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*word)
    }

    fn byte(&mut self) -> Option<u8> {
        self.word().map(|[byte]| byte)
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(i32::from_ne_bytes(self.word()?)).ok()
    }

    fn text(&mut self) -> Option<()> {
        let length = usize::from_ne_bytes(self.word()?);
        self.skip(length)
    }

    /// Skips so many entries as a count says.
    fn each(&mut self, mut skip: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        (0..self.count()?).try_for_each(|_| skip(self))
    }

    fn function(&mut self, depth: usize) -> Option<bool> {
        if depth > MOST_DEPTH {
            return None;
        }
        self.text()?;
        self.skip(2 * size_of::<i32>() + 4)?;
        let mut assigns = false;
        self.each(|reader| {
            assigns |= u32::from_ne_bytes(reader.word()?) & OPERATION == SET_GLOBAL;
            Some(())
        })?;
        self.each(Reader::constant)?;
        self.each(|reader| {
            assigns |= reader.function(depth + 1)?;
            Some(())
        })?;
        self.each(|reader| reader.skip(size_of::<i32>()))?;
        self.each(|reader| reader.text().and_then(|()| reader.skip(2 * size_of::<i32>())))?;
        self.each(Reader::text)?;
        Some(assigns)
    }

    fn constant(&mut self) -> Option<()> {
        match i32::from(self.byte()?) {
            mlua_sys::LUA_TNIL => Some(()),
            mlua_sys::LUA_TBOOLEAN => self.skip(1),
            mlua_sys::LUA_TNUMBER => self.skip(size_of::<f64>()),
            mlua_sys::LUA_TSTRING => self.text(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lua::Lua;

    fn assigns(source: &str) -> bool {
        Lua::new(1 << 20).with(|stack| {
            assert!(stack.compile(source.as_bytes(), c"@test"), "the source is right");
            stack.assigns_globals()
        })
    }

    #[test]
    fn who_only_reads_globals_assigns_none() {
        for source in [
            "",
            "return KEYS[1]",
            "local x = 1; x = 2; KEYS.x = 5; redis.call = nil; local t = {}; t['y'] = 'long text'",
            "local function f(...) local u = ... return function() u = u + 1.5; return nil, true, false end end",
            "local t = {1, 2, 3, {4}, f(), ...} for k, v in pairs(t) do t[k] = not v end",
        ] {
            assert!(!assigns(source), "{source}");
        }
    }

    #[test]
    fn who_assigns_a_global_anywhere_is_found() {
        for source in [
            "x = 1",
            "local a a, KEYS = 1, 2",
            "function f() end",
            "local x; for i = 1, 2 do y = x end",
            "local function f() return function() if z then z = nil end end end",
            "return function(...) redis = ... end",
        ] {
            assert!(assigns(source), "{source}");
        }
    }

    #[test]
    fn what_cannot_be_read_may_assign() {
        for dump in [&b""[..], b"\x1bLua", &[0; 12], &[0xff; 200]] {
            assert!(super::assigns_globals(dump), "{dump:?}");
        }
    }
}
