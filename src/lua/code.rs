//! Code and what is kept of it: compiling, calling, guarding functions, and values that outlive a call.

use std::ffi::{CStr, c_char, c_int, c_void};

use mlua_sys as ffi;

use super::run::work;
use super::stack::index;
use super::{Function, GlobalUse, Reference, Stack, bytecode, calls};

/// Values that are kept.
impl Stack<'_> {
    /// Takes the value on top away and keeps it.
    pub fn make_ref(&mut self) -> Reference {
        self.assert_at_rest();
        // SAFETY: the registry is changed by nobody else; Rust code runs, so that memory does not fail.
        Reference(unsafe { ffi::luaL_ref(self.raw(), ffi::LUA_REGISTRYINDEX) })
    }

    /// Pushes a kept value.
    pub fn push_ref(&mut self, reference: &Reference) {
        self.ensure(1);
        unsafe { ffi::lua_rawgeti_(self.raw(), ffi::LUA_REGISTRYINDEX, reference.0) };
    }

    /// Keeps a value no longer.
    pub fn release(&mut self, reference: Reference) {
        // SAFETY: the reference came from `keep` and is gone now.
        unsafe { ffi::luaL_unref(self.raw(), ffi::LUA_REGISTRYINDEX, reference.0) };
    }
}

/// Code.
impl Stack<'_> {
    /// Compiles source and pushes the function; or pushes what is wrong with it, and answers false. `chunk` names the
    /// source in errors: `@name` as `name`, other text as the beginning of the source itself.
    ///
    /// Within a run the host is asked meanwhile how to go on.
    pub fn compile(&mut self, source: &[u8], chunk: &CStr) -> bool {
        self.assert_at_rest();
        self.ensure(1);
        let mut status = self.load(source, chunk);
        if status == ffi::LUA_ERRMEM {
            // What has run out may be garbage.
            self.pop(1);
            self.collect();
            status = self.load(source, chunk);
        }
        status == ffi::LUA_OK
    }

    fn load(&mut self, source: &[u8], chunk: &CStr) -> c_int {
        const BINARY: u8 = 0x1b;
        // What begins like a compiled chunk is read as source, and is wrong as such.
        let first: &[u8] = if source.first() == Some(&BINARY) { b" " } else { b"" };
        let mut unread = Unread { first, rest: source };
        let before = self.memory_bytes();
        // SAFETY: `lua_load` catches what is raised, and calls `read` with what it was given. The collector stands
        // still meanwhile, as the compiler of Lua 5.1 holds values that the collector does not see.
        unsafe {
            let within = self.context().account.within_c();
            ffi::lua_gc(self.raw(), ffi::LUA_GCSTOP, 0);
            let status = ffi::lua_load(self.raw(), read, (&raw mut unread).cast(), chunk.as_ptr());
            ffi::lua_gc(self.raw(), ffi::LUA_GCRESTART, 0);
            drop(within);
            // It catches up afterwards: many sources that are compiled and never run would leave much garbage.
            let made = self.memory_bytes().saturating_sub(before) >> 10;
            ffi::lua_gc(
                self.raw(),
                ffi::LUA_GCSTEP,
                c_int::try_from(made).map_or(MOST_STEP_KB, |kb| (kb + 1).min(MOST_STEP_KB)),
            );
            status
        }
    }

    /// Calls the function that lies below its `arguments` arguments, and leaves `results` results in their place, or
    /// all with `None`; or leaves the error, and answers false.
    pub fn call(&mut self, arguments: usize, results: Option<usize>) -> bool {
        self.assert_at_rest();
        let results = results.map_or(ffi::LUA_MULTRET, index);
        // SAFETY: the state is open; errors are caught.
        unsafe {
            let _within = self.context().account.within_c();
            let status = ffi::lua_pcall(self.raw(), index(arguments), results, 0);
            self.context().name_current(self.raw());
            status == ffi::LUA_OK
        }
    }

    /// Bytes that the interpreter takes.
    pub fn memory_bytes(&self) -> usize {
        self.context().account.used()
    }

    /// Collects all garbage.
    pub fn collect(&mut self) {
        // SAFETY: the state is open; there are no finalizers, so nothing of ours runs.
        unsafe { ffi::lua_gc(self.raw(), ffi::LUA_GCCOLLECT, 0) };
    }

    /// Makes the table on top the one in which the function at `at` looks global names up, and takes it away.
    pub fn set_environment(&mut self, at: i32) {
        self.assert_at_rest();
        self.assert_table(-1);
        unsafe { ffi::lua_setfenv(self.raw(), at) };
    }

    /// What the function on top, which was just compiled, does with global names; `None` when that cannot be told.
    pub fn global_use(&mut self) -> Option<GlobalUse> {
        let mut dump: Vec<u8> = Vec::new();
        // SAFETY: `append` is given the vector, which lives until `lua_dump` returns; that raises no error.
        let status = unsafe { ffi::lua_dump_(self.raw(), append, (&raw mut dump).cast()) };
        if status == ffi::LUA_OK { bytecode::global_use(&dump) } else { None }
    }

    /// Replaces the C function on top by one that calls `guard` with the same arguments first, and does not run if that
    /// raises an error or has results, which are its own then. The guard keeps the value below the function, which is
    /// taken away. The function must keep none of its own.
    pub fn guard(&mut self, guard: Function) {
        self.assert_at_rest();
        self.ensure(2);
        // SAFETY: the pointer of the function is checked; the three upvalues are as `guarded` takes them.
        unsafe {
            let original = ffi::lua_tocfunction(self.raw(), -1).expect("a C function lies on top");
            ffi::lua_pop(self.raw(), 1);
            ffi::lua_pushlightuserdata(self.raw(), calls::as_pointer(guard));
            ffi::lua_insert(self.raw(), -2);
            ffi::lua_pushlightuserdata(self.raw(), original as *mut _);
            ffi::lua_pushcclosure(self.raw(), calls::guarded, 3);
        }
    }
}

/// Source that the compiler has not asked for yet.
struct Unread<'s> {
    first: &'s [u8],
    rest: &'s [u8],
}

/// How much of a source the compiler is given at a time, and how much work that is.
const PART_BYTES: usize = 1 << 10;
const PART_WORK: usize = 64 * PART_BYTES;

/// How much the collector catches up after a source was compiled, at most: what is large is most likely run next.
const MOST_STEP_KB: c_int = 8;

/// Gives the compiler the next part of a source.
///
/// # Safety
/// Called by `lua_load` for [`Stack::load`], which gave it an [`Unread`]. Owns nothing, as it may raise.
unsafe extern "C-unwind" fn read(raw: *mut ffi::lua_State, unread: *mut c_void, size: *mut usize) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe {
        work(raw, PART_WORK);
        let unread = &mut *unread.cast::<Unread<'_>>();
        let from = if unread.first.is_empty() { &mut unread.rest } else { &mut unread.first };
        let (part, rest) = from.split_at(from.len().min(PART_BYTES));
        *from = rest;
        *size = part.len();
        part.as_ptr().cast()
    }
}

/// Appends a part of what Lua would save.
///
/// # Safety
/// As Lua promises its writers: there are so many bytes at `part`, and `out` is the
/// vector that was given to `lua_dump`.
unsafe extern "C-unwind" fn append(
    _: *mut ffi::lua_State,
    part: *const c_void,
    length: usize,
    out: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (*out.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(part.cast(), length)) };
    0
}
