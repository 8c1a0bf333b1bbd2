//! Code and references: compiling, calling, guarding functions, and values that outlive a call.

use std::ffi::{CStr, c_char, c_int, c_void};

use mlua_sys as ffi;

use super::run::work;
use super::stack::index;
use super::{Function, GlobalUse, Reference, Stack, bytecode, calls};

/// References to values.
impl Stack<'_> {
    /// Pops the value on top and stores it in the registry.
    pub fn make_ref(&mut self) -> Reference {
        self.assert_at_rest();
        // SAFETY: nobody else changes the registry; Rust code runs, so that memory allocation does not fail.
        Reference(unsafe { ffi::luaL_ref(self.raw(), ffi::LUA_REGISTRYINDEX) })
    }

    /// Pushes the value of a reference.
    pub fn push_ref(&mut self, reference: &Reference) {
        self.ensure(1);
        // SAFETY: there is room for one value, and the registry is a table; reading it without metatables raises no
        // error.
        unsafe { ffi::lua_rawgeti_(self.raw(), ffi::LUA_REGISTRYINDEX, reference.0) };
    }

    /// Removes the value of a reference from the registry.
    pub fn release(&mut self, reference: Reference) {
        // SAFETY: the reference came from `make_ref` and is consumed here.
        unsafe { ffi::luaL_unref(self.raw(), ffi::LUA_REGISTRYINDEX, reference.0) };
    }
}

/// Compiling and calling code.
impl Stack<'_> {
    /// Compiles source and pushes the function; or pushes the error, and returns false. `chunk` names the source in
    /// errors: `@name` as `name`, other text as the beginning of the source itself.
    ///
    /// Within a run the compiler calls the interrupt check meanwhile.
    pub fn compile(&mut self, source: &[u8], chunk: &CStr) -> bool {
        self.assert_at_rest();
        self.ensure(1);
        let mut status = self.load(source, chunk);
        if status == ffi::LUA_ERRMEM {
            // The memory that has run out may be garbage.
            self.pop(1);
            self.collect();
            status = self.load(source, chunk);
        }
        status == ffi::LUA_OK
    }

    fn load(&mut self, source: &[u8], chunk: &CStr) -> c_int {
        const BINARY: u8 = 0x1b;
        // Source that begins like a compiled chunk is read as source, and is an error as such.
        let first: &[u8] = if source.first() == Some(&BINARY) { b" " } else { b"" };
        let mut unread = Unread { first, rest: source };
        let before = self.memory_bytes();
        self.context().is_collector_stopped.set(true);
        // SAFETY: `lua_load` catches errors, and calls `read` with the pointer given here. The collector is stopped
        // meanwhile, as the compiler of Lua 5.1 holds values that the collector does not see.
        unsafe {
            let within = self.context().account.within_c();
            ffi::lua_gc(self.raw(), ffi::LUA_GCSTOP, 0);
            let status = ffi::lua_load(self.raw(), read, (&raw mut unread).cast(), chunk.as_ptr());
            drop(within);
            self.catch_up(self.memory_bytes().saturating_sub(before));
            status
        }
    }

    /// Runs the collector for a while after `made` bytes were compiled: many sources that are never run would leave
    /// much garbage. Outside of a run it rests until the memory in use has doubled since its last round, which is Lua's
    /// own rule, forgotten when the collector is stopped; or has grown by [`MAX_GROWTH`], so that thousands of
    /// libraries take about as much memory as in Redis, wherever the collector stands. A round walks all of the memory,
    /// so where there is much, that limit is a part of it: else each script would cost more than the one before.
    fn catch_up(&mut self, made: usize) {
        let (context, used) = (self.context(), self.memory_bytes());
        let is_within_run = context.yielder.get().is_some();
        if used < context.collected_from.get() && !is_within_run {
            return;
        }
        context.start_collector(self.raw());
        let made_kb = c_int::try_from(made >> 10).unwrap_or(MAX_STEP_KB).min(MAX_STEP_KB);
        let step_kb = (2 * (made_kb + 1)).min(MAX_STEP_KB);
        // SAFETY: the state is open; there are no finalizers, so none of our functions run.
        let has_ended_round = unsafe { ffi::lua_gc(self.raw(), ffi::LUA_GCSTEP, step_kb) } != 0;
        if has_ended_round {
            let used = self.memory_bytes();
            context.collected_from.set(used.saturating_add(used.min(MAX_GROWTH.max(used / MAX_GROWTH_PART))));
        }
    }

    /// Calls the function below its `arguments` arguments, and leaves `results` results in their place, or all with
    /// `None`; or leaves the error, and returns false.
    pub fn call(&mut self, arguments: usize, results: Option<usize>) -> bool {
        self.assert_at_rest();
        let results = results.map_or(ffi::LUA_MULTRET, index);
        // SAFETY: the state is open, and the function and its arguments are on the stack; errors are caught.
        unsafe {
            let _within = self.context().account.within_c();
            let status = ffi::lua_pcall(self.raw(), index(arguments), results, 0);
            self.context().name_current(self.raw());
            status == ffi::LUA_OK
        }
    }

    /// The bytes of memory in use by the interpreter.
    pub fn memory_bytes(&self) -> usize {
        self.context().account.used()
    }

    /// Runs a full garbage collection.
    pub fn collect(&mut self) {
        self.context().collect(self.raw());
    }

    /// Collects the garbage, as there is not enough memory for that many further bytes. False if there never is.
    #[cold]
    pub(super) fn collect_for(&self, bytes: usize) -> bool {
        let account = &self.context().account;
        if !account.is_within_limit(bytes) {
            return false;
        }
        // A script may catch the error and try again: the time counts.
        account.charge(account.used());
        self.context().collect(self.raw());
        true
    }

    /// Pops the table on top and makes it the environment of the function at `at`: its table of global names.
    pub fn set_environment(&mut self, at: i32) {
        self.assert_at_rest();
        self.assert_table(-1);
        // SAFETY: the state is open and the top is a table, as asserted; a value at `at` that has no environment is
        // left as it is.
        unsafe { ffi::lua_setfenv(self.raw(), at) };
    }

    /// The use of global names in the function on top, which was just compiled; `None` if that cannot be determined.
    pub fn global_use(&mut self) -> Option<GlobalUse> {
        let mut dump: Vec<u8> = Vec::with_capacity(TYPICAL_DUMP_BYTES);
        // SAFETY: `append` gets the vector, which lives until `lua_dump` returns; that raises no error.
        let status = unsafe { ffi::lua_dump_(self.raw(), append, (&raw mut dump).cast()) };
        if status == ffi::LUA_OK { bytecode::global_use(&dump) } else { None }
    }

    /// Replaces the C function on top by one that calls `guard` with the same arguments first. If that raises an
    /// error or has results, these are the outcome, and the function does not run. The guard gets the value below the
    /// function, which is popped, as its upvalue. The function must have no upvalues of its own.
    pub fn guard(&mut self, guard: Function) {
        self.assert_at_rest();
        self.ensure(2);
        // SAFETY: the pointer of the function is checked; the three upvalues are those that `guarded` expects.
        unsafe {
            let original = ffi::lua_tocfunction(self.raw(), -1).expect("a C function is on top");
            ffi::lua_pop(self.raw(), 1);
            ffi::lua_pushlightuserdata(self.raw(), calls::as_pointer(guard));
            ffi::lua_insert(self.raw(), -2);
            ffi::lua_pushlightuserdata(self.raw(), original as *mut _);
            ffi::lua_pushcclosure(self.raw(), calls::guarded, 3);
        }
    }
}

/// More than the dump of a short function takes.
const TYPICAL_DUMP_BYTES: usize = 1 << 10;

/// Source that the compiler has not read yet.
struct Unread<'s> {
    first: &'s [u8],
    rest: &'s [u8],
}

/// The size of the parts in which the compiler gets a source, and the work that a part counts as.
const PART_BYTES: usize = 1 << 10;
const PART_WORK: usize = 64 * PART_BYTES;

/// The most that the collector catches up after a source was compiled: a large source is most likely run next.
const MAX_STEP_KB: c_int = 8;

/// The most by which the memory in use grows, in bytes or as this part of it, before the collector begins its next
/// round.
const MAX_GROWTH: usize = 512 << 10;
const MAX_GROWTH_PART: usize = 2;

/// The reader of `lua_load`: returns the next part of a source.
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

/// The writer of `lua_dump`: appends a part of the dump.
///
/// # Safety
/// As Lua promises its writers: `part` has `length` bytes, and `out` is the vector that was given to `lua_dump`.
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
