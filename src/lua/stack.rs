//! The stack of values through which Rust and Lua exchange everything.
//!
//! Indexes count as in Lua: from 1 for the first argument of a call, from -1 for what lies on top. A call's arguments
//! stay where they are until it ends, so what is borrowed from them lasts as long.

use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::ops::Range;
use std::slice;

use mlua_sys as ffi;

use super::calls::{self, Raise, text_or_nothing};
use super::{Function, OUT_OF_MEMORY, context, upvalue};

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
pub struct Reference(c_int);

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

fn index(number: usize) -> c_int {
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
    fn valid(&self, at: i32) -> c_int {
        let top = index(self.top());
        let is_within = at > 0 || (-top..0).contains(&at) || at <= ffi::LUA_REGISTRYINDEX;
        if is_within { at } else { top + 1 }
    }
}

/// Pushing values.
impl Stack<'_> {
    /// Makes room for so many values.
    ///
    /// # Errors
    /// When a stack cannot hold as many.
    pub fn reserve(&mut self, count: usize) -> Result<(), Raise> {
        let has_room = c_int::try_from(count).is_ok_and(|count| unsafe { ffi::lua_checkstack(self.raw, count) != 0 });
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
    fn floor(&self) -> c_int {
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
    fn assert_table(&self, at: i32) {
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

/// Values that are kept.
impl Stack<'_> {
    /// Takes the value on top away and keeps it.
    pub fn keep(&mut self) -> Reference {
        self.assert_at_rest();
        // SAFETY: the registry is changed by nobody else; Rust code runs, so that memory does not fail.
        Reference(unsafe { ffi::luaL_ref(self.raw, ffi::LUA_REGISTRYINDEX) })
    }

    /// Pushes a kept value.
    pub fn push_kept(&mut self, kept: &Reference) {
        self.ensure(1);
        unsafe { ffi::lua_rawgeti(self.raw, ffi::LUA_REGISTRYINDEX, kept.0.into()) };
    }

    /// Keeps a value no longer.
    pub fn release(&mut self, kept: Reference) {
        // SAFETY: the reference came from `keep` and is gone now.
        unsafe { ffi::luaL_unref(self.raw, ffi::LUA_REGISTRYINDEX, kept.0) };
    }
}

/// Code.
impl Stack<'_> {
    /// Compiles source and pushes the function; or pushes what is wrong with it, and answers false. `chunk` names the
    /// source in errors: `@name` as `name`, other text as the beginning of the source itself.
    pub fn compile(&mut self, source: &[u8], chunk: &CStr) -> bool {
        const BINARY: u8 = 0x1b;
        self.assert_at_rest();
        self.ensure(1);
        // What begins like a compiled chunk is read as source, and is wrong as such.
        let escaped = if source.first() == Some(&BINARY) { [b" ", source].concat() } else { Vec::new() };
        let source = if escaped.is_empty() { source } else { &escaped };
        // SAFETY: `luaL_loadbuffer` catches what is raised. The collector stands still meanwhile, as the compiler of
        // Lua 5.1 holds values that the collector does not see.
        unsafe {
            ffi::lua_gc(self.raw, ffi::LUA_GCSTOP, 0);
            let status = ffi::luaL_loadbuffer(self.raw, source.as_ptr().cast(), source.len(), chunk.as_ptr());
            ffi::lua_gc(self.raw, ffi::LUA_GCRESTART, 0);
            status == ffi::LUA_OK
        }
    }

    /// Calls the function that lies below its `arguments` arguments, and leaves `results` results in their place, or all
    /// with `None`; or leaves the error, and answers false.
    pub fn call(&mut self, arguments: usize, results: Option<usize>) -> bool {
        self.assert_at_rest();
        let results = results.map_or(ffi::LUA_MULTRET, index);
        // SAFETY: the state is open; errors are caught.
        unsafe {
            let _within = context(self.raw).account.within_c();
            ffi::lua_pcall(self.raw, index(arguments), results, 0) == ffi::LUA_OK
        }
    }

    /// Makes the table on top the one in which the function at `at` looks global names up, and takes it away.
    pub fn set_environment(&mut self, at: i32) {
        self.assert_at_rest();
        self.assert_table(-1);
        unsafe { ffi::lua_setfenv(self.raw, at) };
    }

    /// Replaces the C function on top by one that calls `guard` with the same arguments first, and does not run if that
    /// raises an error. The function must keep no values of its own.
    pub fn guard(&mut self, guard: Function) {
        self.assert_at_rest();
        self.ensure(2);
        // SAFETY: the pointer is checked; it goes with the guard's behind it, as `guarded` takes them.
        unsafe {
            let original = ffi::lua_tocfunction(self.raw, -1).expect("a C function lies on top");
            ffi::lua_pushlightuserdata(self.raw, calls::as_pointer(guard));
            ffi::lua_pushlightuserdata(self.raw, original as *mut _);
            ffi::lua_pushcclosure(self.raw, calls::guarded, 2);
            ffi::lua_replace(self.raw, -2);
        }
    }
}

/// Where a script stands, for errors.
impl Stack<'_> {
    /// The function that is `level` calls up from the one that runs, with what `what` asks for.
    fn frame(&self, level: usize, what: &CStr) -> Option<ffi::lua_Debug> {
        // SAFETY: `lua_getinfo` is asked only about a frame that `lua_getstack` found; the record is plain data.
        unsafe {
            let mut record: ffi::lua_Debug = std::mem::zeroed();
            let is_there = ffi::lua_getstack(self.raw, index(level), &raw mut record) != 0;
            (is_there && ffi::lua_getinfo(self.raw, what.as_ptr(), &raw mut record) != 0).then_some(record)
        }
    }

    /// Where the function stands that is `level` calls up, as errors begin: `user_script:1: `, or nothing.
    pub fn place(&self, level: usize) -> Vec<u8> {
        let Some(frame) = self.frame(level, c"Sl").filter(|frame| frame.currentline > 0) else { return Vec::new() };
        // SAFETY: Lua ends the name with NUL.
        let source = unsafe { CStr::from_ptr(frame.short_src.as_ptr()) };
        [source.to_bytes(), b":", frame.currentline.to_string().as_bytes(), b": "].concat()
    }

    /// The place that is `level` calls up; `None` when there are not as many.
    pub fn caller(&self, level: usize) -> Option<Place> {
        let frame = self.frame(level, c"Sl")?;
        // SAFETY: Lua ends both texts with NUL.
        let (what, source) = unsafe { (text_or_nothing(frame.what), text_or_nothing(frame.source)) };
        let line = (what != "C").then(|| frame.currentline.into());
        Some(Place { source: source.into_owned(), line })
    }

    /// What Lua says of a wrong argument.
    pub(super) fn complaint(&self, number: usize, reason: &str) -> Vec<u8> {
        let Some(frame) = self.frame(0, c"n") else {
            return format!("bad argument #{number} ({reason})").into_bytes();
        };
        // SAFETY: Lua ends both texts with NUL.
        let (name, kind) = unsafe { (text_or_nothing(frame.name), text_or_nothing(frame.namewhat)) };
        let name = if frame.name.is_null() { "?".into() } else { name };
        match (&*kind, number) {
            ("method", 1) => format!("calling '{name}' on bad self ({reason})"),
            ("method", _) => format!("bad argument #{} to '{name}' ({reason})", number - 1),
            _ => format!("bad argument #{number} to '{name}' ({reason})"),
        }
        .into_bytes()
    }
}

/// Arguments, with Lua's complaints about wrong ones.
impl<'c> Stack<'c> {
    fn wrong_type(&self, number: usize, expected: &str) -> Raise {
        Raise::argument(number, format!("{expected} expected, got {}", self.type_name(index(number))))
    }

    /// An argument that must be a string or a number, as text.
    ///
    /// # Errors
    /// When it is something else.
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
    /// When it is something else.
    pub fn number_argument(&self, number: usize) -> Result<f64, Raise> {
        self.number(index(number)).ok_or_else(|| self.wrong_type(number, "number"))
    }

    /// An argument that must be a table.
    ///
    /// # Errors
    /// When it is something else.
    pub fn table_argument(&self, number: usize) -> Result<i32, Raise> {
        if self.kind(index(number)) == Kind::Table { Ok(index(number)) } else { Err(self.wrong_type(number, "table")) }
    }

    /// True when the argument is left out or nil.
    pub fn lacks(&self, number: usize) -> bool {
        matches!(self.kind(index(number)), Kind::None | Kind::Nil)
    }
}
