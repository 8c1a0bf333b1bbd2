//! Lua 5.1 behind a safe interface: the interpreter that scripts were written for, with what could harm a server taken
//! out of their reach.
//!
//! It is the original interpreter in C, because scripts of the field rest on its number formats, its error texts and
//! its standard library. This module and nothing else of the project is `unsafe`: it wraps C pointers. It knows no
//! command and no reply; what scripts may call is registered from outside as a [`Function`].
//!
//! ```text
//!   Lua::start / Lua::go_on(host)      on the caller's stack
//!        | switches to a stack of its own ([`run`])
//!        v
//!   the interpreter (C) --calls--> Function(&mut Stack) --Stack::host--> the host's &mut
//!        |
//!        +--every so many instructions--> the hook: check_interrupt says go on, let others run, or end
//!           and bytes of work
//! ```
//!
//! A run has a stack of its own, so that it can be put aside in the middle and taken up again: that is how a server
//! goes on answering while a script runs for too long. No step of a run takes long by itself: what Lua's own library
//! does in a loop is done by functions of ours that ask the host meanwhile ([`table_functions`]), what C code makes
//! between two instructions counts as work that calls the hook ([`memory`]), and the more memory there is that one
//! instruction could look at, the fewer instructions lie between two hooks ([`run`]).
//!
//! # Why it is sound
//!
//! - **Errors.** Lua raises an error by jumping over C frames. No jump passes over a Rust frame that owns anything: an
//!   operation of [`Stack`] either cannot raise (the allocator never fails while Rust code runs, and every call checks
//!   what Lua would complain about), or runs under `lua_pcall`. A [`Function`] returns its error, and the trampoline
//!   raises it after all Rust values are gone ([`calls`]).
//! - **Pointers.** Bytes of a Lua string are borrowed from the [`Stack`], or for as long as a call runs from its
//!   arguments, which stay where they are until it ends. Lua moves no string.
//! - **The host** is a pointer that is set while [`Lua::start`] or [`Lua::resume`] borrow the host, cleared when they
//!   return, and taken out while somebody uses it, so that there is never a second one.
//! - **Threads.** An interpreter and its stack may go from one thread to another as a whole, as it is only reached
//!   through `&mut Lua`, and neither knows anything of threads.
//! - **Known faults of Lua 5.1** are out of reach: no binary chunks, the collector stands still while source is
//!   compiled, a coroutine that is resumed has room for what it is given ([`coroutines`]), and functions that are
//!   unsafe with some arguments are replaced by [`crate::script`].
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

/// What an interpreter asks whoever runs it.
pub trait ScriptHost: Any {
    /// Asked every some thousand instructions, or after as much work of another kind: how shall it go on?
    fn check_interrupt(&mut self) -> Interrupt;
}

/// How a run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// As before.
    Continue,
    /// Others first: [`Lua::resume`] continues it.
    Suspend,
    /// Not at all: with an error, again and again until the script gives up.
    Abort,
}

/// An interpreter with its globals.
#[derive(Debug)]
pub struct Lua {
    raw: NonNull<ffi::lua_State>,
    context: Box<Context>,
    run: run::Run,
}

/// What the functions behind C pointers find their way by. Lua keeps a pointer to it, so it never moves.
struct Context {
    account: memory::Account,
    host: Cell<Option<NonNull<dyn ScriptHost>>>,
    yielder: Cell<Option<NonNull<run::Yielder>>>,
    /// The coroutine that runs, or the main state of the run.
    current: Cell<Option<NonNull<ffi::lua_State>>>,
    panic: RefCell<Option<Box<dyn Any + Send>>>,
    /// Where the script was told to end, once it was.
    ended: RefCell<Option<Option<SourceLine>>>,
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
    /// An interpreter without any globals, whose values may take so many bytes together.
    pub fn new(memory_bytes: usize) -> Lua {
        let context = Box::new(Context {
            account: memory::Account::new(memory_bytes),
            host: Cell::new(None),
            yielder: Cell::new(None),
            current: Cell::new(None),
            panic: RefCell::new(None),
            ended: RefCell::new(None),
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

    /// Works on the interpreter's values from outside of a run. What was pushed and is not taken away is dropped.
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

    /// Bytes that the interpreter takes, values and garbage.
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

/// The place of the `count`th value kept with a function.
fn upvalue(count: c_int) -> c_int {
    ffi::lua_upvalueindex(count)
}
