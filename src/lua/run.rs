//! A run: a Lua function that executes on a stack of its own, and can be suspended in the middle.
//!
//! Costs: about 50 ns to switch there and back. The stack is reserved with the first run and used again by the next
//! ones; the system backs only the touched part of its 4 MiB.
//!
//! A suspended run waits inside the hook, between two instructions of the script, or inside
//! [`Stack::check_interrupt`]. While it waits, only [`super::Lua::resume`] may change the values of the interpreter;
//! `start` panics if a run is suspended. A run that is cancelled drops nothing: the values of a [`Function`] that
//! waited in an interrupt check are leaked.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::resume_unwind;
use std::ptr::NonNull;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use mlua_sys as ffi;

use super::calls::{self, Function, Raise};
use super::stack::index;
use super::{Interrupt, Lua, OUT_OF_MEMORY, Reference, ScriptHost, SourceLine, Stack, context};

pub(super) type Yielder = corosensei::Yielder<(), ()>;

/// The progress of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The run has returned; its results are on the stack.
    Done,
    /// The run has failed; the error is on the stack.
    Failed,
    /// The run is suspended ([`Interrupt::Suspend`]).
    Suspended,
    /// The run was ended ([`Interrupt::Abort`]) at that position.
    Ended(Option<SourceLine>),
}

/// The size of a run's stack. Lua nests at most 200 C calls, and a library may go 1,000 tables deep.
const STACK_BYTES: usize = 4 << 20;
/// The number of instructions between two interrupt checks, and the least it may become.
const HOOK_INSTRUCTIONS: c_int = 10_000;
const MIN_INSTRUCTIONS: c_int = 10;
/// The memory that all instructions between two interrupt checks may read together, if each read all there is (as a
/// comparison of two large strings may): a second's worth.
const LOOKED_AT_BYTES: usize = 2 << 30;

/// The work of one step of our own functions: it takes as long as allocating this many bytes.
pub(super) const STEP_BYTES: usize = 32;

/// The current run, and the stack for the next one.
#[derive(Default)]
pub(super) struct Run {
    current: Option<Coroutine<(), (), c_int, DefaultStack>>,
    spare: Option<DefaultStack>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Run").field("is_suspended", &self.current.is_some()).finish_non_exhaustive()
    }
}

impl Run {
    /// Cancels a suspended run.
    pub(super) fn cancel(&mut self) {
        if let Some(mut run) = self.current.take() {
            // SAFETY: a suspended run waits in `ask`, below which there are C frames, `run_protected`, which owns
            // nothing, and perhaps a `Function` in an interrupt check: what that owns and borrows is never used
            // again, and leaks.
            unsafe { run.force_reset() };
            self.spare = Some(run.into_stack());
        }
    }
}

impl Lua {
    /// Whether a run is suspended.
    pub fn is_suspended(&self) -> bool {
        self.run.current.is_some()
    }

    /// Runs a function with the arguments that `push` pushes behind it (it returns their number), until it ends or
    /// the host suspends it. Errors pass through `handler` while the position where they were raised is still known.
    ///
    /// `finish` takes the one result, or the error, from the top of the stack.
    ///
    /// # Errors
    /// That of `push`; nothing runs then.
    ///
    /// # Panics
    /// If a run is suspended; and with the panic of a [`Function`].
    pub fn start<H: ScriptHost, R>(
        &mut self,
        host: &mut H,
        handler: &Reference,
        push: impl FnOnce(&mut Stack<'_>) -> Result<usize, Raise>,
        finish: impl FnOnce(&mut H, Progress, &mut Stack<'_>) -> R,
    ) -> Result<R, Raise> {
        assert!(!self.is_suspended(), "a run is under way");
        let raw = self.raw.as_ptr();
        let within = self.context.account.within_rust();
        // SAFETY: the state is open.
        let top = unsafe { ffi::lua_gettop(raw) };
        let mut stack = Stack::at_rest(raw, &self.context, top);
        stack.push_ref(handler);
        let arguments = match push(&mut stack) {
            Ok(count) => index(count),
            Err(raised) => {
                // SAFETY: the state is open; what was pushed is dropped.
                unsafe { ffi::lua_settop(raw, top) };
                return Err(raised);
            }
        };
        drop(within);
        let state = StateHandle(raw);
        let spare = self.run.spare.take();
        let own = spare.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("there are addresses for a stack"));
        self.run.current =
            Some(Coroutine::with_stack(own, move |yielder, ()| run_protected(state, yielder, arguments)));
        Ok(self.resume(host, finish))
    }

    /// Continues a suspended run.
    ///
    /// # Panics
    /// If no run is suspended; and with the panic of a [`Function`].
    pub fn resume<H: ScriptHost, R>(
        &mut self,
        host: &mut H,
        finish: impl FnOnce(&mut H, Progress, &mut Stack<'_>) -> R,
    ) -> R {
        let raw = self.raw.as_ptr();
        let progress = self.switch_to_run(host);
        if let Some(panic) = self.context.panic.take() {
            resume_unwind(panic);
        }
        let _within = self.context.account.within_rust();
        if progress == Progress::Suspended {
            // The values on the stack are the run's.
            return finish(host, progress, &mut Stack::new(raw, &self.context, 0));
        }
        // SAFETY: the run has ended, so the state is as `start` left it: below the result is the handler.
        let top = unsafe { ffi::lua_gettop(raw) };
        let result = finish(host, progress, &mut Stack::at_rest(raw, &self.context, top));
        // SAFETY: as above; on top are the handler and the value that `finish` left.
        unsafe { ffi::lua_settop(raw, top - 2) };
        if self.context.account.is_collection_due_after_run() {
            self.context.collect(raw);
            self.context.account.schedule_collection_after_run();
        }
        result
    }

    fn switch_to_run<H: ScriptHost>(&mut self, host: &mut H) -> Progress {
        let run = self.run.current.as_mut().expect("a run is under way");
        let host: NonNull<dyn ScriptHost> = NonNull::from(host);
        self.context.host.set(Some(host));
        let result = run.resume(());
        self.context.host.set(None);
        let CoroutineResult::Return(status) = result else { return Progress::Suspended };
        self.context.yielder.set(None);
        self.context.current.set(None);
        if let Some(ended) = self.run.current.take() {
            self.run.spare = Some(ended.into_stack());
        }
        match (status, self.context.ended.take()) {
            (ffi::LUA_OK, _) => Progress::Done,
            (_, None) => Progress::Failed,
            (_, Some(place)) => Progress::Ended(place),
        }
    }
}

/// A state that is passed to another stack of the same thread.
struct StateHandle(*mut ffi::lua_State);

/// The outermost frame of a run: calls the function on the stack.
fn run_protected(state: StateHandle, yielder: &Yielder, arguments: c_int) -> c_int {
    let StateHandle(raw) = state;
    // SAFETY: `Lua::start` put the handler, the function and its arguments on the stack of an open state, and nobody
    // else uses that until the run is suspended or ends. The yielder lives as long as the run.
    unsafe {
        context(raw).yielder.set(Some(NonNull::from(yielder)));
        let handler = ffi::lua_gettop(raw) - arguments - 1;
        context(raw).name_current(raw);
        context(raw).start_collector(raw);
        context(raw).account.reset_work();
        call_hook_after(raw, context(raw).account.instructions());
        ffi::lua_pcall(raw, arguments, 1, handler)
    }
}

/// Sets the hook to run after `instructions` instructions.
///
/// # Safety
/// The state is open.
unsafe fn call_hook_after(raw: *mut ffi::lua_State, instructions: c_int) {
    // SAFETY: the caller's promise. Setting a hook changes some fields of the state and nothing else, so that it may
    // happen at any time, even while the state asks for memory.
    unsafe { ffi::lua_sethook(raw, Some(hook), ffi::LUA_MASKCOUNT, instructions) };
}

impl super::memory::Account {
    /// The number of instructions between two interrupt checks.
    fn instructions(&self) -> c_int {
        let count = LOOKED_AT_BYTES / self.used().max(1);
        c_int::try_from(count).unwrap_or(c_int::MAX).clamp(MIN_INSTRUCTIONS, HOOK_INSTRUCTIONS)
    }
}

impl super::Context {
    /// Sets the state that is running, if there is a run.
    pub(super) fn name_current(&self, raw: *mut ffi::lua_State) {
        if self.yielder.get().is_some() {
            self.current.set(NonNull::new(raw));
        }
    }

    /// Starts the collector if compiling has stopped it.
    pub(super) fn start_collector(&self, raw: *mut ffi::lua_State) {
        if self.is_collector_stopped.take() {
            // SAFETY: `raw` is a state of this interpreter, which is open; a number in it changes, and nothing else.
            unsafe { ffi::lua_gc(raw, ffi::LUA_GCRESTART, 0) };
        }
    }

    /// Collects all garbage.
    #[cold]
    pub(super) fn collect(&self, raw: *mut ffi::lua_State) {
        let _within = self.account.within_rust();
        // SAFETY: `raw` is a state of this interpreter, which is open. The collector runs between two instructions, or
        // within a function of ours, where any new value could start it; it makes some of its own tables smaller, for
        // which memory does not fail while Rust code runs. There are no finalizers, so none of our functions run.
        unsafe { ffi::lua_gc(raw, ffi::LUA_GCCOLLECT, 0) };
        self.account.schedule_collection();
    }

    /// Makes the hook run with the next instruction of the current run.
    pub(super) fn interrupt(&self) {
        if let Some(raw) = self.current.get() {
            // SAFETY: `current` is the state that runs, or one that ran until an error was raised which has not been
            // caught yet (`coroutines`), so that it has not been collected. It is none when the run has ended.
            unsafe { call_hook_after(raw.as_ptr(), 1) };
        }
    }
}

/// Raises the error that memory has run out: the only error that bypasses the error handlers of the script.
///
/// # Safety
/// Called by a function that Lua has called, which owns nothing.
pub(super) unsafe fn raise_out_of_memory(raw: *mut ffi::lua_State) {
    // SAFETY: the caller's promise; C code runs, so that the refused allocation raises.
    unsafe {
        context(raw).account.refuse_next();
        ffi::lua_newuserdata(raw, 1);
    }
}

/// Counts work of a C function, and calls the interrupt check after much work; raises an error if the run has to end.
///
/// # Safety
/// As for [`raise_out_of_memory`].
pub(super) unsafe fn work(raw: *mut ffi::lua_State, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if context(raw).account.charge(bytes) && ask(raw, 1) {
            raise_out_of_memory(raw);
        }
    }
}

/// The count hook: Lua calls it after the number of instructions that was set.
///
/// # Safety
/// Called by Lua.
unsafe extern "C-unwind" fn hook(raw: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: Lua calls us within a run, so the state is open; `ask` owns nothing when it has returned. A script's
    // error handlers could go on for ever, as there are no hooks within a hook: so the error is one that bypasses
    // them.
    unsafe {
        let context = context(raw);
        context.name_current(raw);
        if context.account.is_collection_due() {
            context.collect(raw);
        }
        if ask(raw, 0) {
            raise_out_of_memory(raw);
            return;
        }
        let instructions = context.account.instructions();
        if ffi::lua_gethookcount(raw) != instructions {
            call_hook_after(raw, instructions);
        }
    }
}

/// Calls the host's interrupt check, and suspends the run if the host wants that. True if the run has to end; its
/// position is then that in the function `level` calls up.
unsafe fn ask(raw: *mut ffi::lua_State, level: usize) -> bool {
    // SAFETY: the state is open.
    let context = unsafe { context(raw) };
    if context.panic.borrow().is_some() {
        // The caller that started the run waits for the panic. SAFETY: the state is open.
        unsafe { call_hook_after(raw, 1) };
        return true;
    }
    loop {
        let Some(mut host) = context.host.get() else { return false };
        context.account.reset_work();
        // SAFETY: `resume` borrows the host until it returns. It is not in use now: a user would have taken it out.
        match unsafe { host.as_mut() }.check_interrupt() {
            Interrupt::Continue => return false,
            Interrupt::Suspend => {
                let Some(yielder) = context.yielder.get() else { return false };
                // SAFETY: set by `run_protected`, on whose stack we are, so that it is alive.
                unsafe { yielder.as_ref() }.suspend(());
            }
            Interrupt::Abort => {
                if context.ended.borrow().is_none() {
                    context.ended.replace(Some(Stack::new(raw, context, 0).caller(level)));
                }
                // A script that catches this error gets no further than the next instruction. SAFETY: the state is
                // open.
                unsafe { call_hook_after(raw, 1) };
                return true;
            }
        }
    }
}

impl Stack<'_> {
    /// Calls the interrupt check, as the hook does between instructions: functions that may take long call it every
    /// some thousand steps.
    ///
    /// # Errors
    /// If the host decides that the script has to end.
    pub fn check_interrupt(&self) -> Result<(), Raise> {
        // SAFETY: a stack's state is open. While the run is suspended nobody changes its values, so borrowed values
        // stay valid.
        if unsafe { ask(self.raw(), 1) } { Err(Raise::text(OUT_OF_MEMORY)) } else { Ok(()) }
    }

    /// Counts `count` steps of some nanoseconds each, and calls the interrupt check when there were many: functions
    /// that may take long call this in every loop.
    ///
    /// # Errors
    /// If the host decides that the script has to end.
    #[inline]
    pub fn step(&self, count: usize) -> Result<(), Raise> {
        self.work(count.saturating_mul(STEP_BYTES))
    }

    /// Counts work on that many bytes, and calls the interrupt check when there was much, as [`Stack::step`] does.
    ///
    /// # Errors
    /// If the host decides that the script has to end.
    #[inline]
    pub fn work(&self, bytes: usize) -> Result<(), Raise> {
        if self.context().account.charge(bytes) { self.check_interrupt() } else { Ok(()) }
    }

    /// Calls `act` with the host of this run; `None` outside of a run, or if the host is already in use.
    pub fn host<H: ScriptHost, R>(&mut self, act: impl FnOnce(&mut H, &mut Stack<'_>) -> R) -> Option<R> {
        let context = self.context();
        let mut pointer = context.host.take()?;
        let _back = PutBack { place: &context.host, pointer };
        // SAFETY: `resume` borrows the host until it returns, and as the pointer was taken, this is the only use of it.
        let host: &mut dyn Any = unsafe { pointer.as_mut() };
        host.downcast_mut::<H>().map(|host| act(host, self))
    }
}

/// Puts the host back after use, even after a panic: the run must still be able to call its interrupt check.
struct PutBack<'c> {
    place: &'c Cell<Option<NonNull<dyn ScriptHost>>>,
    pointer: NonNull<dyn ScriptHost>,
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        self.place.set(Some(self.pointer));
    }
}

/// Functions that Lua calls.
impl Stack<'_> {
    /// Pushes a function.
    pub fn push_function(&mut self, function: Function) {
        self.push_closure(function, 0);
    }

    /// Pushes a function with the `count` values on top of the stack as its upvalues ([`Stack::upvalue`]).
    pub fn push_closure(&mut self, function: Function, count: usize) {
        self.assert_at_rest();
        let count = c_int::try_from(count).expect("a function keeps some values");
        self.ensure(1);
        // SAFETY: there is room for one; the pointer goes below the kept values.
        unsafe {
            ffi::lua_pushlightuserdata(self.raw(), calls::as_pointer(function));
            ffi::lua_insert(self.raw(), -1 - count);
            ffi::lua_pushcclosure(self.raw(), calls::trampoline, count + 1);
        }
    }
}
