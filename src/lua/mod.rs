//! Lua 5.1 behind a safe interface: the interpreter for which scripts were written, without the parts that could harm
//! a server.
//!
//! It is the original interpreter in C, because existing scripts depend on its number formats, its error texts and its
//! standard library. It wraps C pointers, so it needs `unsafe` code (ARCHITECTURE.md lists the few other places
//! that have some). It knows no command and no reply; the functions that scripts may call are registered from outside
//! as [`Function`]s.
//!
//! ```text
//!   Lua::start / Lua::resume(host)     on the caller's stack
//!        | switches to a stack of its own ([`run`])
//!        v
//!   the interpreter (C) --calls--> Function(&mut Stack) --Stack::host--> the host's &mut
//!        |
//!        +--every N instructions--> the hook: check_interrupt returns go on, let others run, or end
//!           and bytes of work
//! ```
//!
//! A run has a stack of its own, so that it can be suspended in the middle and resumed: so a server can reply to
//! others while a script runs for too long. No step of a run takes long by itself: our own functions replace the
//! loops of Lua's library and call the interrupt check meanwhile ([`table_functions`]), the bytes that C code
//! allocates between two instructions count as work that calls the hook ([`memory`]), and the more memory one
//! instruction could read, the fewer instructions run between two hooks ([`run`]).
//!
//! # Why it is sound
//!
//! - **Errors.** Lua raises an error by jumping over C frames. No jump passes over a Rust frame that owns anything:
//!   an operation of [`Stack`] either cannot raise (the allocator never fails while Rust code runs, and every call
//!   checks the conditions under which Lua would raise one), or runs under `lua_pcall`. A [`Function`] returns its
//!   error, and the trampoline raises it after all Rust values are gone ([`calls`]).
//! - **Pointers.** Bytes of a Lua string are borrowed from the [`Stack`], or, while a call runs, from its arguments,
//!   which do not move until it ends. Lua moves no string.
//! - **The host** is a pointer that is set while [`Lua::start`] or [`Lua::resume`] borrow the host, cleared when they
//!   return, and taken out while it is used, so that there is never a second reference.
//! - **Threads.** An interpreter and its stack may go from one thread to another as a whole, as it is only reached
//!   through `&mut Lua`, and neither depends on the thread.
//! - **Known faults of Lua 5.1** cannot be triggered: no binary chunks, the collector is stopped while source is
//!   compiled, a coroutine that is resumed has room for its arguments ([`coroutines`]), and functions that are unsafe
//!   with some arguments are replaced by [`crate::script`].
//!
//! CI runs the tests of this module and of `script` under the address sanitizer (`tests/sanitize`).

#![expect(unsafe_code, reason = "this module wraps the pointers of the C library; its head says why that is sound")]

mod bytecode;
mod calls;
mod code;
mod coroutines;
mod location;
mod memory;
mod run;
mod stack;
mod standard;
mod table_functions;
mod tables;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use mlua_sys as ffi;

pub use bytecode::GlobalUse;
pub use calls::{Function, Raise};
pub use memory::OUT_OF_MEMORY;
pub use run::Progress;
pub use stack::{Kind, Reference, Scalar, SourceLine, Stack};

/// The callbacks of an interpreter to the code that runs it.
pub trait ScriptHost: Any {
    /// The interrupt check: called every some thousand instructions, or after as much work of another kind, to decide
    /// how the run goes on.
    fn check_interrupt(&mut self) -> Interrupt;
}

/// The decision of an interrupt check about the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The run continues.
    Continue,
    /// The run is suspended; [`Lua::resume`] continues it.
    Suspend,
    /// The run ends with an error, which is raised again and again until the script gives up.
    Abort,
}

/// An interpreter with its globals.
#[derive(Debug)]
pub struct Lua {
    raw: NonNull<ffi::lua_State>,
    context: Box<Context>,
    run: run::Run,
}

/// The data of an interpreter that functions called by C need. Lua keeps a pointer to it, so it never moves.
struct Context {
    account: memory::Account,
    host: Cell<Option<NonNull<dyn ScriptHost>>>,
    yielder: Cell<Option<NonNull<run::Yielder>>>,
    /// The coroutine that is running, or the main state of the run.
    current: Cell<Option<NonNull<ffi::lua_State>>>,
    panic: RefCell<Option<Box<dyn Any + Send>>>,
    /// The position at which the script was ended, once it was.
    ended: RefCell<Option<Option<SourceLine>>>,
    /// The bytes in use from which on compiling starts the collector.
    collected_from: Cell<usize>,
    /// The collector is stopped until the next run.
    is_collector_stopped: Cell<bool>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Context").field("account", &self.account).finish_non_exhaustive()
    }
}

// SAFETY: nothing in it belongs to a thread. The state, its context and a run's stack are only reached through `&mut
// Lua`, so they go from thread to thread together; the host is set only while a run borrows it; yielders point into the
// run's own stack. `Function`s are plain code.
unsafe impl Send for Lua {}

impl Lua {
    /// An interpreter without any globals, whose values may take up to `memory_bytes` together.
    pub fn new(memory_bytes: usize) -> Lua {
        let context = Box::new(Context {
            account: memory::Account::new(memory_bytes),
            host: Cell::new(None),
            yielder: Cell::new(None),
            current: Cell::new(None),
            panic: RefCell::new(None),
            ended: RefCell::new(None),
            collected_from: Cell::new(0),
            is_collector_stopped: Cell::new(false),
        });
        let _within = context.account.within_rust();
        // SAFETY: `allocate` keeps the contract of a Lua allocator, and the context lives in its box until the state
        // is closed in `drop`.
        let raw = unsafe { ffi::lua_newstate(memory::allocate, (&raw const *context).cast_mut().cast()) };
        let raw = NonNull::new(raw).expect("the allocator has memory, or it would have ended the process");
        // SAFETY: the state was just made.
        unsafe { ffi::lua_atpanic(raw.as_ptr(), calls::unprotected_error) };
        drop(_within);
        Lua { raw, context, run: run::Run::default() }
    }

    /// Works on the interpreter's values outside of a run. Values that were pushed and not popped are dropped.
    pub fn with<R>(&mut self, act: impl FnOnce(&mut Stack<'_>) -> R) -> R {
        let _within = self.context.account.within_rust();
        let raw = self.raw.as_ptr();
        // SAFETY: the state is ours and open.
        let top = unsafe { ffi::lua_gettop(raw) };
        let values = if self.is_suspended() { Stack::new } else { Stack::at_rest };
        let result = act(&mut values(raw, &self.context, top));
        // SAFETY: `top` values were there before, and a `Stack` takes none of those away.
        unsafe { ffi::lua_settop(raw, top) };
        result
    }

    /// The bytes in use by the interpreter, values and garbage.
    pub fn memory_bytes(&self) -> usize {
        self.context.account.used()
    }
}

impl Drop for Lua {
    fn drop(&mut self) {
        self.run.cancel();
        let _within = self.context.account.within_rust();
        // SAFETY: the state is open and no run is left in it; nobody uses it after this.
        unsafe { ffi::lua_close(self.raw.as_ptr()) };
    }
}

/// The context of a state.
///
/// # Safety
/// The state was made by [`Lua::new`] and is open.
unsafe fn context<'c>(raw: *mut ffi::lua_State) -> &'c Context {
    let mut data: *mut c_void = std::ptr::null_mut();
    // SAFETY: the caller's promise: the data of the allocator is the context, in its box for as long as the state is
    // open; all of it is interior-mutable, and nobody has a `&mut` to it.
    unsafe {
        ffi::lua_getallocf(raw, &raw mut data);
        &*data.cast::<Context>()
    }
}

/// The index of the `count`th upvalue of the running function.
fn upvalue(count: c_int) -> c_int {
    ffi::lua_upvalueindex(count)
}
