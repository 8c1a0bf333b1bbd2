//! The stack of values, through which Rust and Lua exchange everything.
//!
//! Indexes count as in Lua: from 1 for the first argument of a call, from -1 for the value on top. A call's arguments
//! do not move until it ends, so borrows of them are valid as long.

use std::ffi::c_int;
use std::ops::Range;
use std::slice;

use mlua_sys as ffi;

use super::calls::Raise;
use super::{Context, OUT_OF_MEMORY, upvalue};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the types of Lua")]
pub enum Kind {
    None,
    Nil,
    Boolean,
    LightUserdata,
    Number,
    String,
    Table,
    Function,
    Userdata,
    Thread,
}

impl Kind {
    #[inline]
    fn of(number: c_int) -> Kind {
        match number {
            ffi::LUA_TNIL => Kind::Nil,
            ffi::LUA_TBOOLEAN => Kind::Boolean,
            ffi::LUA_TLIGHTUSERDATA => Kind::LightUserdata,
            ffi::LUA_TNUMBER => Kind::Number,
            ffi::LUA_TSTRING => Kind::String,
            ffi::LUA_TTABLE => Kind::Table,
            ffi::LUA_TFUNCTION => Kind::Function,
            ffi::LUA_TUSERDATA => Kind::Userdata,
            ffi::LUA_TTHREAD => Kind::Thread,
            _ => Kind::None,
        }
    }
}

/// A reference to a value in the registry, which no script can reach.
#[derive(Debug, PartialEq, Eq)]
pub struct Reference(pub(super) c_int);

/// A position in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The name of the chunk, as it was passed to [`Stack::compile`].
    pub source: String,
    /// The line; `None` in a function that is not a script's.
    pub line: Option<i64>,
}

/// A table that is being walked, and the key at which the walk is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) table: c_int,
    pub(super) key: c_int,
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'s> {
    /// A string.
    Text(&'s [u8]),
    /// A number.
    Number(f64),
    /// Anything else.
    Other(Kind),
}

/// The values of one call.
#[derive(Debug)]
pub struct Stack<'c> {
    raw: *mut ffi::lua_State,
    context: &'c Context,
    /// The number of values at the bottom that must stay.
    arguments: c_int,
    /// The number of values for which there is certainly room.
    room: usize,
    /// The number of tables that [`Stack::each`] is walking, during which none may change.
    pub(super) walks: u32,
    /// The tables that [`Stack::walk`] is walking, the innermost last.
    pub(super) paths: Vec<Path>,
}

pub(super) fn index(number: usize) -> c_int {
    c_int::try_from(number).expect("a stack has at most some thousand values")
}

/// Reading values.
impl<'c> Stack<'c> {
    /// The values of an open state with its context, of which the first `arguments` must stay.
    pub(super) fn new(raw: *mut ffi::lua_State, context: &'c Context, arguments: c_int) -> Stack<'c> {
        Stack { raw, context, arguments, room: 0, walks: 0, paths: Vec::new() }
    }

    /// The values of a state in which nothing runs: Lua made some room when it was opened.
    pub(super) fn at_rest(raw: *mut ffi::lua_State, context: &'c Context, arguments: c_int) -> Stack<'c> {
        Stack { room: ffi::LUA_MINSTACK as usize, ..Stack::new(raw, context, arguments) }
    }

    /// The values of a call that has just begun. Lua has made some room above its arguments, however many there are.
    pub(super) fn of_call(raw: *mut ffi::lua_State, context: &'c Context, arguments: c_int) -> Stack<'c> {
        let mut stack = Stack::new(raw, context, arguments);
        stack.room = stack.arguments() + ffi::LUA_MINSTACK as usize;
        stack
    }

    #[inline]
    pub(super) fn raw(&self) -> *mut ffi::lua_State {
        self.raw
    }

    #[inline]
    pub(super) fn context(&self) -> &'c Context {
        self.context
    }

    /// The number of values: in a function that was just called, its arguments.
    pub fn top(&self) -> usize {
        // SAFETY: the state of a `Stack` is open; the call raises no error.
        let top = unsafe { ffi::lua_gettop(self.raw) };
        usize::try_from(top).expect("no stack has less than nothing")
    }

    /// The number of arguments of the call: results are above them.
    pub fn arguments(&self) -> usize {
        usize::try_from(self.arguments).expect("no call has less than none")
    }

    /// The type of a value.
    #[inline]
    pub fn kind(&self, at: i32) -> Kind {
        // SAFETY: the state is open and the index is valid, or reads as no value; raises no error.
        Kind::of(unsafe { ffi::lua_type(self.raw, self.valid(at)) })
    }

    /// The name of the value's type, as in Lua's errors.
    pub fn type_name(&self, at: i32) -> &'static str {
        match self.kind(at) {
            Kind::None => "no value",
            Kind::Nil => "nil",
            Kind::Boolean => "boolean",
            Kind::LightUserdata | Kind::Userdata => "userdata",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Table => "table",
            Kind::Function => "function",
            Kind::Thread => "thread",
        }
    }

    /// Whether the value counts as true.
    pub fn truth(&self, at: i32) -> bool {
        // SAFETY: the state is open and the index is valid, or reads as no value; raises no error.
        unsafe { ffi::lua_toboolean(self.raw, self.valid(at)) != 0 }
    }

    /// The number, if the value is one or a text that is a number for Lua.
    pub fn number(&self, at: i32) -> Option<f64> {
        let at = self.valid(at);
        // SAFETY: the state is open and the index is valid, or reads as no value; neither call raises an error.
        unsafe { (ffi::lua_isnumber(self.raw, at) != 0).then(|| ffi::lua_tonumber(self.raw, at)) }
    }

    /// The bytes of a string; `None` for everything else, numbers too.
    pub fn bytes(&self, at: i32) -> Option<&[u8]> {
        self.string(at)
    }

    /// The bytes of an argument that is a string, for as long as the call lasts.
    pub fn argument(&self, number: usize) -> Option<&'c [u8]> {
        (index(number) <= self.arguments).then(|| self.string(index(number))).flatten()
    }

    /// The type of a value, and the value itself unless it has parts.
    #[inline]
    pub fn scalar(&self, at: i32) -> Scalar<'_> {
        // SAFETY: it is the type of that value.
        unsafe { self.scalar_of(self.kind(at), at) }
    }

    /// As [`Stack::scalar`], for the value on top, of which the caller knows that there is one.
    #[inline]
    pub(super) fn scalar_on_top(&self) -> Scalar<'_> {
        debug_assert!(self.top() > 0, "there is a value on top");
        // SAFETY: the state is open and has a value on top, which has that type.
        unsafe { self.scalar_of(Kind::of(ffi::lua_type(self.raw, -1)), -1) }
    }

    /// # Safety
    /// The value at `at` has that type.
    #[inline]
    unsafe fn scalar_of(&self, kind: Kind, at: i32) -> Scalar<'_> {
        match kind {
            // SAFETY: it is a string, as the caller promises.
            Kind::String => Scalar::Text(unsafe { self.string_at(at) }),
            // SAFETY: the state is open and the value at `at` is a number, which is only read.
            Kind::Number => Scalar::Number(unsafe { ffi::lua_tonumber(self.raw, at) }),
            kind => Scalar::Other(kind),
        }
    }

    fn string<'s>(&self, at: i32) -> Option<&'s [u8]> {
        // SAFETY: it is a string.
        (self.kind(at) == Kind::String).then(|| unsafe { self.string_at(at) })
    }

    /// The bytes of a string.
    ///
    /// # Safety
    /// The value is a string. Lua keeps its bytes in place while it is on the stack; the callers ensure that the
    /// result does not live longer.
    #[inline]
    unsafe fn string_at<'s>(&self, at: i32) -> &'s [u8] {
        let mut length = 0;
        // SAFETY: the caller's promise, so that nothing is converted.
        unsafe {
            let start = ffi::lua_tolstring(self.raw, at, &raw mut length);
            slice::from_raw_parts(start.cast(), length)
        }
    }

    /// Appends the text of a string or number to `out`; false for everything else.
    pub fn write_text(&mut self, at: i32, out: &mut Vec<u8>) -> bool {
        match self.kind(at) {
            Kind::String => out.extend_from_slice(self.bytes(at).unwrap_or_default()),
            Kind::Number => {
                // A copy is converted: Lua would convert the value itself to a string.
                self.push_copy(at);
                let mut length = 0;
                // SAFETY: a number is converted; Rust code runs, so that memory does not fail.
                unsafe {
                    let start = ffi::lua_tolstring(self.raw, -1, &raw mut length);
                    out.extend_from_slice(slice::from_raw_parts(start.cast(), length));
                }
                self.pop(1);
            }
            _ => return false,
        }
        true
    }

    /// Appends the result of Lua's `tostring` for a value without a metatable.
    pub fn write_tostring(&mut self, at: i32, out: &mut Vec<u8>) {
        if self.write_text(at, out) {
            return;
        }
        let shown = match self.kind(at) {
            Kind::None | Kind::Nil => "nil".to_owned(),
            Kind::Boolean => self.truth(at).to_string(),
            _ => format!("{}: {:#x}", self.type_name(at), self.identity(at)),
        };
        out.extend_from_slice(shown.as_bytes());
    }

    /// The length of a string or table, as `#` returns it.
    pub fn length(&self, at: i32) -> usize {
        // SAFETY: the index is valid, or reads as no value. The length of a number would convert it to a string: the
        // allocation for that does not fail while Rust code runs.
        unsafe { ffi::lua_objlen(self.raw, self.valid(at)) }
    }

    /// Whether two values are the same, without calling their metatables.
    pub fn is_same(&self, one: i32, other: i32) -> bool {
        // SAFETY: both indexes are valid, or read as no value; a raw comparison calls no metatable and raises no
        // error.
        unsafe { ffi::lua_rawequal(self.raw, self.valid(one), self.valid(other)) != 0 }
    }

    /// A number that identifies a table, function or userdata.
    pub fn identity(&self, at: i32) -> usize {
        // SAFETY: the index is valid, or reads as no value; the pointer is only used as a number.
        unsafe { ffi::lua_topointer(self.raw, self.valid(at)) as usize }
    }

    /// The index of an upvalue of the running function, from 1 ([`Stack::push_closure`]).
    pub fn upvalue(number: i32) -> i32 {
        // The first upvalue is the function's own pointer.
        upvalue(number + 1)
    }

    /// The index of the value, counted from the bottom.
    pub fn absolute(&self, at: i32) -> i32 {
        if (ffi::LUA_REGISTRYINDEX + 1..0).contains(&at) { index(self.top()) + 1 + at } else { at }
    }

    /// An index that is safe to read: for one out of range, an index without a value.
    pub(super) fn valid(&self, at: i32) -> c_int {
        if at > 0 || at <= ffi::LUA_REGISTRYINDEX {
            // Lua itself finds that there is nothing above the top.
            return at;
        }
        let top = index(self.top());
        if (-top..0).contains(&at) { at } else { top + 1 }
    }
}

/// Pushing values.
impl Stack<'_> {
    /// Makes room for `count` values.
    ///
    /// # Errors
    /// If the stack cannot hold that many.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Result<(), Raise> {
        let has_room = self.top().checked_add(count).is_some_and(|top| top <= self.room);
        if has_room { Ok(()) } else { self.ask_for_room(count) }
    }

    fn ask_for_room(&mut self, count: usize) -> Result<(), Raise> {
        // SAFETY: the state is open. If the stack has to grow, the allocation does not fail while Rust code runs;
        // beyond the limit of the stack the call returns 0.
        let fits = |count| unsafe { ffi::lua_checkstack(self.raw, count) != 0 };
        if !c_int::try_from(count).is_ok_and(fits) {
            return Err(Raise::text("stack overflow"));
        }
        // Lua keeps the room until the call ends.
        self.room = self.top() + count;
        Ok(())
    }

    #[inline]
    pub(super) fn ensure(&mut self, count: usize) {
        self.reserve(count).expect("callers that push many values reserve room for them");
    }

    /// Checks that the limit allows that many further bytes, when the garbage is collected if need be.
    ///
    /// # Errors
    /// If memory has run out.
    #[inline]
    pub fn check_memory(&self, bytes: usize) -> Result<(), Raise> {
        let account = &self.context.account;
        let fits = !account.is_over(bytes) || (self.collect_for(bytes) && !account.is_over(bytes));
        if fits { Ok(()) } else { Err(Raise::text(OUT_OF_MEMORY)) }
    }

    /// Checks that there is memory for a value of that many bytes: within the limit, and in the system.
    #[inline]
    pub(super) fn obtain(&self, bytes: usize) -> Result<(), Raise> {
        let account = &self.context.account;
        let fits = account.has_room_for(bytes) || (self.collect_for(bytes) && account.has_room_for(bytes));
        if fits { Ok(()) } else { Err(Raise::text(OUT_OF_MEMORY)) }
    }

    /// An empty buffer with room for that many bytes, which are to become a text: they are there twice then, so both
    /// count towards the limit.
    ///
    /// # Errors
    /// If memory has run out.
    pub fn buffer(&self, bytes: usize) -> Result<Vec<u8>, Raise> {
        self.check_memory(bytes.saturating_mul(2))?;
        let mut buffer = Vec::new();
        if buffer.try_reserve_exact(bytes).is_err() {
            self.collect_for(bytes);
            buffer.try_reserve_exact(bytes).map_err(|_| Raise::text(OUT_OF_MEMORY))?;
        }
        Ok(buffer)
    }

    /// Pushes nil.
    pub fn push_nil(&mut self) {
        self.ensure(1);
        // SAFETY: the state is open, and there is room for one value.
        unsafe { ffi::lua_pushnil(self.raw) };
    }

    /// Pushes a boolean.
    pub fn push_boolean(&mut self, value: bool) {
        self.ensure(1);
        // SAFETY: the state is open, and there is room for one value.
        unsafe { ffi::lua_pushboolean(self.raw, value.into()) };
    }

    /// Pushes a number.
    pub fn push_number(&mut self, value: f64) {
        self.ensure(1);
        // SAFETY: the state is open, and there is room for one value.
        unsafe { ffi::lua_pushnumber(self.raw, value) };
    }

    /// Pushes the value that represents JSON's null: unlike nil, it can be an element of a table.
    pub fn push_null(&mut self) {
        self.ensure(1);
        // SAFETY: the state is open, and there is room for one value; Lua never dereferences the pointer.
        unsafe { ffi::lua_pushlightuserdata(self.raw, std::ptr::null_mut()) };
    }

    /// Pushes a string.
    ///
    /// # Errors
    /// If memory has run out.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Raise> {
        self.obtain(bytes.len())?;
        self.push_plain(bytes);
        Ok(())
    }

    /// Pushes a string that is short, or not made by a script.
    pub fn push_plain(&mut self, bytes: &[u8]) {
        self.ensure(1);
        // SAFETY: the bytes are copied; Rust code runs, so that memory allocation does not fail.
        unsafe { ffi::lua_pushlstring(self.raw, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Pushes a part of the string at `at`.
    ///
    /// # Errors
    /// If memory has run out.
    pub fn push_part(&mut self, at: i32, part: Range<usize>) -> Result<(), Raise> {
        self.obtain(part.len())?;
        self.ensure(1);
        let part = self.string(at).and_then(|whole| whole.get(part)).expect("the string has this part");
        // SAFETY: the bytes are copied before Lua collects anything, and the string is on the stack until then.
        unsafe { ffi::lua_pushlstring(self.raw, part.as_ptr().cast(), part.len()) };
        Ok(())
    }

    /// Pushes a copy of the value at `at`.
    pub fn push_copy(&mut self, at: i32) {
        self.ensure(1);
        // SAFETY: there is room for one value, and the index is valid, or reads as no value.
        unsafe { ffi::lua_pushvalue(self.raw, self.valid(at)) };
    }

    /// Pushes the table of global names.
    pub fn push_globals(&mut self) {
        self.ensure(1);
        // SAFETY: there is room for one value, and every state has a table of globals.
        unsafe { ffi::lua_pushvalue(self.raw, ffi::LUA_GLOBALSINDEX) };
    }

    /// The number of values at the bottom that must stay.
    pub(super) fn floor(&self) -> c_int {
        self.paths.last().map_or(self.arguments, |path| path.key)
    }

    /// Pops `count` values.
    pub fn pop(&mut self, count: usize) {
        let top = index(self.top()) - index(count);
        assert!(top >= self.floor(), "the arguments of a call must not move");
        // SAFETY: the new top is not above the present one, as `count` is not negative, and not below the floor, as
        // asserted.
        unsafe { ffi::lua_settop(self.raw, top) };
    }

    /// Pops the values above the first `count`.
    pub fn truncate(&mut self, count: usize) {
        let top = self.top();
        if count < top {
            self.pop(top - count);
        }
    }

    /// Moves the value on top to the index `at`, and those from there on up by one. Not below a call's arguments.
    pub fn insert(&mut self, at: i32) {
        assert!(self.absolute(at) > self.floor(), "the arguments of a call must not move");
        // SAFETY: the index is above the floor, as asserted, and callers pass that of a value on the stack.
        unsafe { ffi::lua_insert(self.raw, at) };
    }

    /// Replaces an argument that is not a string (those may be borrowed), or an upvalue of the function, by the value
    /// on top, which is popped.
    pub fn replace(&mut self, at: i32) {
        assert!(self.paths.is_empty(), "a table that is walked must not move");
        assert!(self.kind(at) != Kind::String || at < ffi::LUA_REGISTRYINDEX, "a string that may be borrowed stays");
        // SAFETY: callers pass the index of an argument or upvalue that exists; the replaced value is not one that
        // may be borrowed, as asserted.
        unsafe { ffi::lua_replace(self.raw, at) };
    }
}
