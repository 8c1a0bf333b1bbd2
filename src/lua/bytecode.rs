//! Analysis of compiled code: its use of global names, read from the form in which Lua 5.1 would save it.
//!
//! Lua shows a function's instructions only in that form (`lua_dump`), so it is read here: the code of the function
//! and of all nested functions. It never leaves the process, and none is ever loaded.
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

use std::collections::BTreeSet;

/// The use of global names in compiled code, with all nested functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GlobalUse {
    /// Whether it may assign a global.
    pub assigns: bool,
    /// The globals whose values it may use in any way. From all other globals it only reads an element or the length,
    /// and it looks the global up each time.
    pub takes: BTreeSet<Vec<u8>>,
}

const HEADER_BYTES: usize = 12;
/// The deepest nesting of functions; the compiler allows no more.
const MAX_DEPTH: usize = 256;

/// The use of global names in the code of a dump; `None` if that cannot be determined.
pub(super) fn global_use(dump: &[u8]) -> Option<GlobalUse> {
    let mut reader = Reader { rest: dump };
    let mut found = GlobalUse::default();
    reader.skip(HEADER_BYTES)?;
    reader.function(0, &mut found)?;
    reader.rest.is_empty().then_some(found)
}

/// An instruction: from its lowest bit the opcode (6 bits), a register (8), and two numbers (9 each) or one (18).
#[derive(Clone, Copy)]
struct Instruction(u32);

impl Instruction {
    const GET_GLOBAL: u32 = 5;
    const GET_ELEMENT: u32 = 6;
    const SET_GLOBAL: u32 = 7;
    const LENGTH: u32 = 20;

    fn operation(self) -> u32 {
        self.0 & 0x3f
    }

    /// The register that it changes.
    fn target(self) -> u32 {
        self.0 >> 6 & 0xff
    }

    /// The register whose element or length it reads.
    fn source(self) -> u32 {
        self.0 >> 23
    }

    /// The index of the constant that it uses.
    fn constant(self) -> usize {
        (self.0 >> 14) as usize
    }

    /// Whether it reads an element or the length of a register's value and puts the result into the same register.
    fn reads_from(self, register: u32) -> bool {
        matches!(self.operation(), Instruction::GET_ELEMENT | Instruction::LENGTH)
            && (self.target(), self.source()) == (register, register)
    }
}

struct Reader<'d> {
    rest: &'d [u8],
}

impl<'d> Reader<'d> {
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

    /// Reads a text with the NUL behind it.
    fn text(&mut self) -> Option<&'d [u8]> {
        let length = usize::from_ne_bytes(self.word()?);
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text)
    }

    /// Skips as many entries as a count states.
    fn each(&mut self, mut skip: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        (0..self.count()?).try_for_each(|_| skip(self))
    }

    fn function(&mut self, depth: usize, found: &mut GlobalUse) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.text()?;
        self.skip(2 * size_of::<i32>() + 4)?;
        let (mut code, mut constants) = (Vec::new(), Vec::new());
        self.each(|reader| {
            code.push(Instruction(u32::from_ne_bytes(reader.word()?)));
            Some(())
        })?;
        self.each(|reader| {
            constants.push(reader.constant()?);
            Some(())
        })?;
        add_global_use(&code, &constants, found)?;
        self.each(|reader| reader.function(depth + 1, found))?;
        self.each(|reader| reader.skip(size_of::<i32>()))?;
        self.each(|reader| reader.text().and_then(|_| reader.skip(2 * size_of::<i32>())))?;
        self.each(|reader| reader.text().map(drop))
    }

    /// Reads a constant, and returns it if it is a text.
    fn constant(&mut self) -> Option<Option<&'d [u8]>> {
        match i32::from(self.byte()?) {
            mlua_sys::LUA_TNIL => Some(None),
            mlua_sys::LUA_TBOOLEAN => self.skip(1).map(|()| None),
            mlua_sys::LUA_TNUMBER => self.skip(size_of::<f64>()).map(|()| None),
            mlua_sys::LUA_TSTRING => self.text().map(Some),
            _ => None,
        }
    }
}

/// Adds the global names that the code of one function uses.
fn add_global_use(code: &[Instruction], constants: &[Option<&[u8]>], found: &mut GlobalUse) -> Option<()> {
    for (place, instruction) in code.iter().enumerate() {
        let next = code.get(place + 1);
        match instruction.operation() {
            Instruction::SET_GLOBAL => found.assigns = true,
            Instruction::GET_GLOBAL if !next.is_some_and(|next| next.reads_from(instruction.target())) => {
                let (_nul, name) = (*constants.get(instruction.constant())?)?.split_last()?;
                found.takes.insert(name.to_vec());
            }
            _ => {}
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::GlobalUse;
    use crate::lua::Lua;

    fn global_use(source: &str) -> GlobalUse {
        Lua::new(1 << 20).with(|stack| {
            assert!(stack.compile(source.as_bytes(), c"@test"), "the source is right");
            stack.global_use().expect("it is compiled code")
        })
    }

    fn taken(source: &str) -> String {
        let taken = global_use(source).takes.into_iter().map(|name| String::from_utf8(name).expect("it is a text"));
        taken.collect::<Vec<String>>().join(" ")
    }

    #[test]
    fn code_that_only_reads_globals_assigns_none() {
        for source in [
            "",
            "return KEYS[1]",
            "local x = 1; x = 2; KEYS.x = 5; redis.call = nil; local t = {}; t['y'] = 'long text'",
            "local function f(...) local u = ... return function() u = u + 1.5; return nil, true, false end end",
            "local t = {1, 2, 3, {4}, f(), ...} for k, v in pairs(t) do t[k] = not v end",
        ] {
            assert!(!global_use(source).assigns, "{source}");
        }
    }

    #[test]
    fn an_assignment_to_a_global_is_found_anywhere() {
        for source in [
            "x = 1",
            "local a a, KEYS = 1, 2",
            "function f() end",
            "local x; for i = 1, 2 do y = x end",
            "local function f() return function() if z then z = nil end end end",
            "return function(...) redis = ... end",
        ] {
            assert!(global_use(source).assigns, "{source}");
        }
    }

    #[test]
    fn reading_an_element_or_the_length_uses_no_global_as_a_value() {
        for source in [
            "return KEYS[1] .. ARGV[2], #ARGV",
            "local key = KEYS[1] local i = 2 if ARGV[i] == 'x' then key = key .. ARGV[3] end return key",
            "local function f() return function() for i = 1, #KEYS do local key = KEYS[i] end end end",
            "local k = KEYS k = k[1]",
        ] {
            assert_eq!(taken(source), "", "{source}");
        }
    }

    #[test]
    fn globals_used_as_values_are_found() {
        for (source, expected) in [
            ("return KEYS", "KEYS"),
            ("local k = KEYS return k[1]", "KEYS"),
            ("local k k = KEYS[1]", "KEYS"),
            ("local k = KEYS local x = k[1]", "KEYS"),
            ("local k = ARGV k.x = 1", "ARGV"),
            ("ARGV[1] = 2", "ARGV"),
            ("KEYS.x.y = 2", ""),
            ("KEYS:f()", "KEYS"),
            ("local k = x and KEYS", "KEYS x"),
            ("local k = KEYS or x", "KEYS x"),
            ("return KEYS[KEYS]", "KEYS"),
            ("return unpack(KEYS)", "KEYS unpack"),
            ("for i, key in ipairs(KEYS) do redis.call('GET', key) end", "KEYS ipairs"),
            ("local t = {KEYS} return {k = ARGV}", "ARGV KEYS"),
            ("return function() return function() return #_G, _G end end", "_G"),
            ("return (KEYS)", "KEYS"),
            ("return -KEYS", "KEYS"),
            ("return KEYS == 1, ARGV .. 'x'", "ARGV KEYS"),
        ] {
            assert_eq!(taken(source), expected, "{source}");
        }
    }

    #[test]
    fn code_that_cannot_be_read_has_no_known_global_use() {
        for dump in [&b""[..], b"\x1bLua", &[0; 12], &[0xff; 200]] {
            assert_eq!(super::global_use(dump), None, "{dump:?}");
        }
    }
}
