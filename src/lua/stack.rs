//! The stack of values through which Rust and Lua exchange everything.
//!
//! Indexes count as in Lua: from 1 for the first argument of a call, from -1 for what lies on top. A call's arguments
//! stay where they are until it ends, so what is borrowed from them lasts as long.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ops::Range;
use std::slice;

use mlua_sys as ffi;

use super::calls::{self, Raise};
use super::{OUT_OF_MEMORY, context, upvalue};

/// What a value is.
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

/// A value that is kept although no script can reach it.
#[derive(Debug, PartialEq, Eq)]
pub struct Reference(pub(super) c_int);

/// A place in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the chunk, as it was given to [`Stack::compile`].
    pub source: String,
    /// The line; `None` in a function that is not a script's.
    pub line: Option<i64>,
}

/// A table that is walked, and the key at which the walk has come.
#[derive(Clone, Copy, Debug)]
struct Path {
    table: c_int,
    key: c_int,
}

/// The values of one call.
#[derive(Debug)]
pub struct Stack<'c> {
    raw: *mut ffi::lua_State,
    /// How many values lie at the bottom that must stay.
    arguments: c_int,
    /// How many tables are being walked by [`Stack::each`], during which none may change.
    walks: u32,
    /// The tables that are being walked by [`Stack::walk`], the innermost last.
    paths: Vec<Path>,
    call: PhantomData<&'c ()>,
}

/// Places that Lua promises a C function above its arguments.
const LEAST_PLACES: usize = ffi::LUA_MINSTACK as usize;

pub(super) fn index(number: usize) -> c_int {
    c_int::try_from(number).expect("a stack has at most some thousand values")
}

/// Looking at values.
impl<'c> Stack<'c> {
    pub(super) fn new(raw: *mut ffi::lua_State, arguments: c_int) -> Stack<'c> {
        Stack { raw, arguments, walks: 0, paths: Vec::new(), call: PhantomData }
    }

    pub(super) fn raw(&self) -> *mut ffi::lua_State {
        self.raw
    }

    /// How many values there are: in a function that was just called, its arguments.
    pub fn top(&self) -> usize {
        // SAFETY (here and below, where nothing else is said): the state of a `Stack` is open, an index that is out of
        // range reads as none, and what is called raises no error.
        let top = unsafe { ffi::lua_gettop(self.raw) };
        usize::try_from(top).expect("no stack has less than nothing")
    }

    /// How many arguments the call has: results lie above them.
    pub fn arguments(&self) -> usize {
        usize::try_from(self.arguments).expect("no call has less than none")
    }

    /// What the value is.
    pub fn kind(&self, at: i32) -> Kind {
        match unsafe { ffi::lua_type(self.raw, self.valid(at)) } {
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

    /// The name of the value's type, as Lua's errors tell it.
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
        unsafe { ffi::lua_toboolean(self.raw, self.valid(at)) != 0 }
    }

    /// The number, if the value is one or a text that reads as one.
    pub fn number(&self, at: i32) -> Option<f64> {
        let at = self.valid(at);
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

    fn string<'s>(&self, at: i32) -> Option<&'s [u8]> {
        if self.kind(at) != Kind::String {
            return None;
        }
        let mut length = 0;
        // SAFETY: the value is a string, so that nothing is converted; Lua keeps its bytes in place for as long as it
        // lies on the stack. The callers see to it that what they give away does not live longer.
        unsafe {
            let start = ffi::lua_tolstring(self.raw, at, &raw mut length);
            Some(slice::from_raw_parts(start.cast(), length))
        }
    }

    /// Appends the text of a string or number to `out`; false for everything else.
    pub fn write_text(&mut self, at: i32, out: &mut Vec<u8>) -> bool {
        match self.kind(at) {
            Kind::String => out.extend_from_slice(self.bytes(at).unwrap_or_default()),
            Kind::Number => {
                // Converted as a copy: Lua would make the value itself a string.
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

    /// Appends what Lua's `tostring` shows of a value without asking its metatable.
    pub fn write_shown(&mut self, at: i32, out: &mut Vec<u8>) {
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

    /// The length of a string or table, as `#` tells it.
    pub fn length(&self, at: i32) -> usize {
        unsafe { ffi::lua_objlen(self.raw, self.valid(at)) }
    }

    /// Whether two values are the same, without asking their metatables.
    pub fn is_same(&self, one: i32, other: i32) -> bool {
        unsafe { ffi::lua_rawequal(self.raw, self.valid(one), self.valid(other)) != 0 }
    }

    /// What tells one table, function or userdata from all others.
    pub fn identity(&self, at: i32) -> usize {
        unsafe { ffi::lua_topointer(self.raw, self.valid(at)) as usize }
    }

    /// The place of the value that a function keeps, from 1 ([`Stack::push_closure`]).
    pub fn upvalue(number: i32) -> i32 {
        // The first is the function's own pointer.
        upvalue(number + 1)
    }

    /// The place of a value, told from the bottom.
    pub fn absolute(&self, at: i32) -> i32 {
        if (ffi::LUA_REGISTRYINDEX + 1..0).contains(&at) { index(self.top()) + 1 + at } else { at }
    }

    /// A place that may be asked for: of what is out of range one that holds nothing.
    pub(super) fn valid(&self, at: i32) -> c_int {
        if at > 0 || at <= ffi::LUA_REGISTRYINDEX {
            // Lua itself knows that nothing lies above the top.
            return at;
        }
        let top = index(self.top());
        if (-top..0).contains(&at) { at } else { top + 1 }
    }
}

/// Pushing values.
impl Stack<'_> {
    /// Makes room for so many values.
    ///
    /// # Errors
    /// When a stack cannot hold as many.
    pub fn reserve(&mut self, count: usize) -> Result<(), Raise> {
        let fits = |count| unsafe { ffi::lua_checkstack(self.raw, count) != 0 };
        // A call has some places above its arguments, however many those are.
        let has_places = || self.top() + count <= self.arguments() + LEAST_PLACES;
        let has_room = c_int::try_from(count).is_ok_and(fits) || has_places();
        if has_room { Ok(()) } else { Err(Raise::text("stack overflow")) }
    }

    pub(super) fn ensure(&mut self, count: usize) {
        self.reserve(count).expect("who pushes many values reserves their room");
    }

    /// Looks whether there is memory for so many more bytes.
    ///
    /// # Errors
    /// When it has run out.
    pub fn afford(&self, bytes: usize) -> Result<(), Raise> {
        // SAFETY: the state is open.
        let account = unsafe { &context(self.raw).account };
        if account.is_over(bytes) { Err(Raise::text(OUT_OF_MEMORY)) } else { Ok(()) }
    }

    /// Pushes nil.
    pub fn push_nil(&mut self) {
        self.ensure(1);
        unsafe { ffi::lua_pushnil(self.raw) };
    }

    /// Pushes a boolean.
    pub fn push_boolean(&mut self, value: bool) {
        self.ensure(1);
        unsafe { ffi::lua_pushboolean(self.raw, value.into()) };
    }

    /// Pushes a number.
    pub fn push_number(&mut self, value: f64) {
        self.ensure(1);
        unsafe { ffi::lua_pushnumber(self.raw, value) };
    }

    /// Pushes the value that JSON's null becomes: unlike nil, it can be an element of a table.
    pub fn push_null(&mut self) {
        self.ensure(1);
        unsafe { ffi::lua_pushlightuserdata(self.raw, std::ptr::null_mut()) };
    }

    /// Pushes a string.
    ///
    /// # Errors
    /// When memory has run out.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Raise> {
        self.afford(bytes.len())?;
        self.push_plain(bytes);
        Ok(())
    }

    /// Pushes a string that is short or made by ourselves.
    pub fn push_plain(&mut self, bytes: &[u8]) {
        self.ensure(1);
        // SAFETY: the bytes are copied; Rust code runs, so that memory does not fail.
        unsafe { ffi::lua_pushlstring(self.raw, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Pushes a part of the string at `at`.
    ///
    /// # Errors
    /// When memory has run out.
    pub fn push_part(&mut self, at: i32, part: Range<usize>) -> Result<(), Raise> {
        self.afford(part.len())?;
        self.ensure(1);
        let part = self.string(at).and_then(|whole| whole.get(part)).expect("the string has this part");
        // SAFETY: the bytes are copied before Lua collects anything, and the string lies on the stack until then.
        unsafe { ffi::lua_pushlstring(self.raw, part.as_ptr().cast(), part.len()) };
        Ok(())
    }

    /// Pushes what lies at `at` once more.
    pub fn push_copy(&mut self, at: i32) {
        self.ensure(1);
        unsafe { ffi::lua_pushvalue(self.raw, self.valid(at)) };
    }

    /// Pushes the table of global names.
    pub fn push_globals(&mut self) {
        self.ensure(1);
        unsafe { ffi::lua_pushvalue(self.raw, ffi::LUA_GLOBALSINDEX) };
    }

    /// Pushes a table with room for so many elements and fields.
    ///
    /// # Errors
    /// When memory has run out.
    pub fn push_table(&mut self, elements: usize, fields: usize) -> Result<(), Raise> {
        self.afford(elements.saturating_add(fields.saturating_mul(3)).saturating_mul(16))?;
        self.ensure(1);
        let (elements, fields) = (c_int::try_from(elements), c_int::try_from(fields));
        let (Ok(elements), Ok(fields)) = (elements, fields) else { return Err(Raise::text(OUT_OF_MEMORY)) };
        unsafe { ffi::lua_createtable(self.raw, elements, fields) };
        Ok(())
    }

    /// How many values lie at the bottom that must stay.
    pub(super) fn floor(&self) -> c_int {
        self.paths.last().map_or(self.arguments, |path| path.key)
    }

    /// Takes so many values away.
    pub fn pop(&mut self, count: usize) {
        let top = index(self.top()) - index(count);
        assert!(top >= self.floor(), "the arguments of a call stay where they are");
        unsafe { ffi::lua_settop(self.raw, top) };
    }

    /// Takes away what lies above the first `count` values.
    pub fn truncate(&mut self, count: usize) {
        let top = self.top();
        if count < top {
            self.pop(top - count);
        }
    }

    /// Puts the value on top to the place `at`, moving what is there upwards. Not below a call's arguments.
    pub fn insert(&mut self, at: i32) {
        assert!(self.absolute(at) > self.floor(), "the arguments of a call stay where they are");
        unsafe { ffi::lua_insert(self.raw, at) };
    }

    /// Lets the value on top take the place of an argument that is not a string (those may be borrowed), or of a value
    /// that the function keeps.
    pub fn replace(&mut self, at: i32) {
        assert!(self.paths.is_empty(), "what is walked stays where it is");
        assert!(self.kind(at) != Kind::String || at < ffi::LUA_REGISTRYINDEX, "a string that may be borrowed stays");
        unsafe { ffi::lua_replace(self.raw, at) };
    }
}

/// Tables. None of these asks a metatable.
impl Stack<'_> {
    pub(super) fn assert_table(&self, at: i32) {
        assert!(self.kind(at) == Kind::Table, "the place holds a table");
    }

    pub(super) fn assert_at_rest(&self) {
        assert!(self.walks == 0 && self.paths.is_empty(), "a table that is walked does not change");
    }

    /// Replaces the key on top by its value.
    pub fn get(&mut self, table: i32) {
        self.assert_table(table);
        assert!(index(self.top()) > self.floor(), "the key on top may be replaced");
        unsafe { ffi::lua_rawget(self.raw, table) };
    }

    /// Pushes the value of a field.
    pub fn get_field(&mut self, table: i32, name: &str) {
        let table = self.absolute(table);
        self.push_plain(name.as_bytes());
        self.get(table);
    }

    /// Pushes an element, counted from 1.
    pub fn get_element(&mut self, table: i32, number: usize) {
        self.assert_table(table);
        self.ensure(1);
        let Ok(number) = c_int::try_from(number) else { return self.push_nil() };
        unsafe { ffi::lua_rawgeti(self.raw, table, number.into()) };
    }

    /// Gives the key below the top the value on top, and takes both away.
    ///
    /// # Errors
    /// When the key is nil or no number, or memory has run out.
    pub fn set(&mut self, table: i32) -> Result<(), Raise> {
        self.assert_table(table);
        self.assert_at_rest();
        if self.kind(-2) == Kind::Nil {
            return Err(Raise::text("table index is nil"));
        }
        if self.kind(-2) == Kind::Number && self.number(-2).is_some_and(f64::is_nan) {
            return Err(Raise::text("table index is NaN"));
        }
        self.afford(0)?;
        unsafe { ffi::lua_rawset(self.raw, table) };
        Ok(())
    }

    /// Gives a field the value on top, and takes that away.
    ///
    /// # Errors
    /// When memory has run out.
    pub fn set_field(&mut self, table: i32, name: &str) -> Result<(), Raise> {
        let table = self.absolute(table);
        self.push_plain(name.as_bytes());
        self.ensure(1);
        unsafe { ffi::lua_insert(self.raw, -2) };
        self.set(table)
    }

    /// Gives an element, counted from 1, the value on top, and takes that away.
    ///
    /// # Errors
    /// When memory has run out, or the number is too large.
    pub fn set_element(&mut self, table: i32, number: usize) -> Result<(), Raise> {
        self.assert_table(table);
        self.assert_at_rest();
        self.afford(0)?;
        let number = c_int::try_from(number).map_err(|_| Raise::text("table overflow"))?;
        unsafe { ffi::lua_rawseti(self.raw, table, number.into()) };
        Ok(())
    }

    /// Calls `act` for each entry, its key below its value on top. Meanwhile no table may change, and nothing of Lua may
    /// run.
    ///
    /// # Errors
    /// Those of `act`, which end the walk.
    pub fn each(&mut self, table: i32, mut act: impl FnMut(&mut Self) -> Result<(), Raise>) -> Result<(), Raise> {
        self.assert_table(table);
        self.reserve(3)?;
        let table = self.absolute(table);
        let start = self.top();
        self.walks += 1;
        self.push_nil();
        let mut result = Ok(());
        // SAFETY: the key on top is nil or one that `lua_next` gave, and as no table has changed since, it is valid.
        while result.is_ok() && unsafe { ffi::lua_next(self.raw, table) != 0 } {
            result = act(self);
            if result.is_ok() {
                self.truncate(start + 1);
            }
        }
        self.walks -= 1;
        result
    }

    /// Begins to walk a table without a closure, so that tables in it can be walked too, however deep they nest. Until
    /// [`Stack::next`] has come to its end, or [`Stack::leave`], no table may change, and nothing of Lua may run.
    ///
    /// # Errors
    /// When the stack is full.
    pub fn walk(&mut self, table: i32) -> Result<(), Raise> {
        self.assert_table(table);
        self.reserve(3)?;
        let table = self.absolute(table);
        self.push_nil();
        self.paths.push(Path { table, key: index(self.top()) });
        Ok(())
    }

    /// Goes on with the innermost walk: takes away what lies above its key, and puts the next key and its value there.
    /// False at its end.
    #[expect(clippy::should_implement_trait, reason = "what it goes through are tables of Lua")]
    pub fn next(&mut self) -> bool {
        let Some(path) = self.paths.last().copied() else { return false };
        // SAFETY: the key on top is nil or one that `lua_next` gave: `floor` and the assertions of `replace` keep its
        // place and the table's as they are. As no table has changed since, the key is valid.
        let is_there = unsafe {
            ffi::lua_settop(self.raw, path.key);
            ffi::lua_next(self.raw, path.table) != 0
        };
        if !is_there {
            self.paths.pop();
        }
        is_there
    }

    /// Ends the innermost walk, and takes away its key and what lies above.
    pub fn leave(&mut self) {
        if let Some(path) = self.paths.pop() {
            // SAFETY: the key's place is within the stack.
            unsafe { ffi::lua_settop(self.raw, path.key - 1) };
        }
    }

    /// Replaces the key on top by what a script would find there, asking the table's metatable; or by the error of that,
    /// and answers false.
    pub fn look_up(&mut self, table: i32) -> bool {
        self.assert_at_rest();
        assert!(index(self.top()) > self.floor(), "the key on top may be replaced");
        self.ensure(2);
        let table = self.absolute(table);
        // SAFETY: there is room. The call takes the function, the table and the key, and catches errors.
        unsafe {
            ffi::lua_pushcfunction(self.raw, calls::look_up);
            ffi::lua_insert(self.raw, -2);
            ffi::lua_pushvalue(self.raw, self.valid(table));
            ffi::lua_insert(self.raw, -2);
        }
        self.call(2, Some(1))
    }

    /// Pushes a table that holds the keys and values of another in a row; answers how many of each there are.
    ///
    /// # Errors
    /// When memory has run out; what was pushed is empty then.
    pub fn push_entries(&mut self, table: i32) -> Result<usize, Raise> {
        self.assert_table(table);
        self.reserve(4)?;
        let table = self.absolute(table);
        self.push_table(0, 0)?;
        let (entries, mut count) = (self.absolute(-1), 0);
        self.push_nil();
        // SAFETY: the key on top is nil or one that `lua_next` gave, and that table does not change meanwhile.
        while unsafe { ffi::lua_next(self.raw, table) != 0 } {
            self.push_copy(-2);
            self.set_element(entries, count * 2 + 1)?;
            self.set_element(entries, count * 2 + 2)?;
            count += 1;
        }
        Ok(count)
    }

    /// Takes away the value below the top.
    pub fn remove_below(&mut self) {
        let below = index(self.top()) - 1;
        assert!(below > self.floor(), "the arguments of a call stay where they are");
        unsafe { ffi::lua_remove(self.raw, below) };
    }

    /// Pushes the value's metatable; false, with nothing pushed, when it has none.
    pub fn get_metatable(&mut self, at: i32) -> bool {
        self.ensure(1);
        unsafe { ffi::lua_getmetatable(self.raw, self.valid(at)) != 0 }
    }

    /// Makes the table on top the metatable of the value at `at`, and takes it away.
    pub fn set_metatable(&mut self, at: i32) {
        self.assert_table(-1);
        self.assert_at_rest();
        unsafe { ffi::lua_setmetatable(self.raw, at) };
    }
}
