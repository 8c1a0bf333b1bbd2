//! A run: a function of Lua that works on a stack of its own, and can be put aside in the middle.
//!
//! Costs: about 50 ns to switch there and back. The stack is reserved with the first run and used again by the next
//! ones; of its 4 MiB the system backs what was touched.
//!
//! A run that is put aside waits inside the hook, between two instructions of the script, or inside [`Stack::pulse`].
//! While it waits, nothing may change the values of the interpreter but [`super::Lua::go_on`]; `start` says so if one
//! is under way. A run that is given up drops nothing: what a [`Function`] owned that waited in a pulse is leaked.

use std::any::Any;
use std::ffi::c_int;
use std::panic::resume_unwind;
use std::ptr::NonNull;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use mlua_sys as ffi;

use super::calls::{self, Function, Raise};
use super::{Host, Lua, OUT_OF_MEMORY, Place, Pulse, Reference, Stack, context};

pub(super) type Yielder = corosensei::Yielder<(), ()>;

/// How far a run has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has returned; its results are on the stack.
    Done,
    /// It has failed; the error is on the stack.
    Failed,
    /// It has been put aside ([`Pulse::Rest`]).
    Resting,
    /// It was ended ([`Pulse::End`]) at that place.
    Ended(Option<Place>),
}

/// Bytes of a run's stack. Lua nests at most 200 C calls, and a library may go 1,000 tables deep.
const STACK_BYTES: usize = 4 << 20;
/// Instructions between two pulses.
const PULSE_INSTRUCTIONS: c_int = 10_000;

/// The run that is under way, and the stack for the next one.
#[derive(Default)]
pub(super) struct Run {
    current: Option<Coroutine<(), (), c_int, DefaultStack>>,
    spare: Option<DefaultStack>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Run").field("is_resting", &self.current.is_some()).finish_non_exhaustive()
    }
}

impl Run {
    /// Gives up a run that rests.
    pub(super) fn abandon(&mut self) {
        if let Some(mut run) = self.current.take() {
            // SAFETY: a run that rests waits in `ask`, below which there are C frames, `run_protected`, which owns
            // nothing, and perhaps a `Function` in a pulse: what that owns and borrows is never used again, and leaks.
            unsafe { run.force_reset() };
            self.spare = Some(run.into_stack());
        }
    }
}

impl Lua {
    /// True while a run has been put aside.
    pub fn is_resting(&self) -> bool {
        self.run.current.is_some()
    }

    /// Runs a function with the arguments that `push` puts on the stack behind it (it says how many), until it ends or
    /// the host has it rest. Errors pass through `handler` while the place where they were raised can still be told.
    ///
    /// `finish` takes the one result, or the error, from the top of the stack.
    ///
    /// # Panics
    /// When a run rests; and with what a [`Function`] panicked with.
    pub fn start<H: Host, R>(
        &mut self,
        host: &mut H,
        handler: &Reference,
        push: impl FnOnce(&mut Stack<'_>) -> usize,
        finish: impl FnOnce(&mut H, Progress, &mut Stack<'_>) -> R,
    ) -> R {
        assert!(!self.is_resting(), "a run is under way");
        let raw = self.raw.as_ptr();
        let within = self.context.account.within_rust();
        // SAFETY: the state is open.
        let top = unsafe { ffi::lua_gettop(raw) };
        let mut stack = Stack::at_rest(raw, &self.context, top);
        stack.push_kept(handler);
        let arguments = c_int::try_from(push(&mut stack)).expect("a stack has at most some thousand values");
        drop(within);
        let state = StateHandle(raw);
        let spare = self.run.spare.take();
        let own = spare.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("there are addresses for a stack"));
        self.run.current =
            Some(Coroutine::with_stack(own, move |yielder, ()| run_protected(state, yielder, arguments)));
        self.go_on(host, finish)
    }

    /// Continues a run that rests.
    ///
    /// # Panics
    /// When none does; and with what a [`Function`] panicked with.
    pub fn go_on<H: Host, R>(&mut self, host: &mut H, finish: impl FnOnce(&mut H, Progress, &mut Stack<'_>) -> R) -> R {
        let raw = self.raw.as_ptr();
        let progress = self.resume(host);
        if let Some(panic) = self.context.panic.take() {
            resume_unwind(panic);
        }
        let _within = self.context.account.within_rust();
        if progress == Progress::Resting {
            // The values on the stack are the run's.
            return finish(host, progress, &mut Stack::new(raw, &self.context, 0));
        }
        // SAFETY: the run has ended, so the state is as `start` left it: below the result lies the handler.
        let top = unsafe { ffi::lua_gettop(raw) };
        let result = finish(host, progress, &mut Stack::at_rest(raw, &self.context, top));
        // SAFETY: as above; what lies there are the handler and what `finish` left.
        unsafe { ffi::lua_settop(raw, top - 2) };
        result
    }

    fn resume<H: Host>(&mut self, host: &mut H) -> Progress {
        let run = self.run.current.as_mut().expect("a run is under way");
        let host: NonNull<dyn Host> = NonNull::from(host);
        self.context.host.set(Some(host));
        let result = run.resume(());
        self.context.host.set(None);
        let CoroutineResult::Return(status) = result else { return Progress::Resting };
        self.context.yielder.set(None);
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

/// A state that goes to another stack of the same thread.
struct StateHandle(*mut ffi::lua_State);

/// The outermost frame of a run: calls the function that lies on the stack.
fn run_protected(state: StateHandle, yielder: &Yielder, arguments: c_int) -> c_int {
    let StateHandle(raw) = state;
    // SAFETY: `Lua::start` put the handler, the function and its arguments on the stack of an open state, and nobody
    // else uses that until the run rests or ends. The yielder lives as long as the run.
    unsafe {
        context(raw).yielder.set(Some(NonNull::from(yielder)));
        let handler = ffi::lua_gettop(raw) - arguments - 1;
        ffi::lua_sethook(raw, Some(hook), ffi::LUA_MASKCOUNT, PULSE_INSTRUCTIONS);
        ffi::lua_pcall(raw, arguments, 1, handler)
    }
}

/// What Lua calls every so many instructions.
///
/// # Safety
/// Called by Lua.
unsafe extern "C-unwind" fn hook(raw: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: Lua calls us within a run, so the state is open; `ask` owns nothing when it has returned. Of all errors
    // only that of missing memory passes by the handlers of the script, which could go on for ever, as there are no
    // hooks within a hook. So that is the one we make.
    unsafe {
        if ask(raw, 0) {
            context(raw).account.refuse_next();
            ffi::lua_newuserdata(raw, 1);
        }
    }
}

/// Asks the host how to go on, and rests when it says so. True when what runs has to end; the place where it stood is
/// told of the function that is `level` calls up.
unsafe fn ask(raw: *mut ffi::lua_State, level: usize) -> bool {
    // SAFETY: the state is open.
    let context = unsafe { context(raw) };
    loop {
        let Some(mut host) = context.host.get() else { return false };
        // SAFETY: `resume` borrows the host until it returns. It is not used now: whoever uses it has taken it out.
        match unsafe { host.as_mut() }.pulse() {
            Pulse::GoOn => return false,
            Pulse::Rest => {
                let Some(yielder) = context.yielder.get() else { return false };
                // SAFETY: set by `run_protected` on whose stack we are, so that it is alive.
                unsafe { yielder.as_ref() }.suspend(());
            }
            Pulse::End => {
                if context.ended.borrow().is_none() {
                    context.ended.replace(Some(Stack::new(raw, context, 0).caller(level)));
                }
                // A script that catches this one shall get no further than to the next instruction.
                // SAFETY: the state is open.
                unsafe { ffi::lua_sethook(raw, Some(hook), ffi::LUA_MASKCOUNT, 1) };
                return true;
            }
        }
    }
}

impl Stack<'_> {
    /// Asks the host how to go on, as Lua does between its instructions: functions that may take long do so every some
    /// thousand steps.
    ///
    /// # Errors
    /// When the host says that the script has to end.
    pub fn pulse(&self) -> Result<(), Raise> {
        // SAFETY: a stack's state is open. While the run rests nobody changes its values, so what is borrowed stays.
        if unsafe { ask(self.raw(), 1) } { Err(Raise::text(OUT_OF_MEMORY)) } else { Ok(()) }
    }

    /// Gives `act` the host of this run; `None` outside of a run, or when somebody uses the host already.
    pub fn host<H: Host, R>(&mut self, act: impl FnOnce(&mut H, &mut Stack<'_>) -> R) -> Option<R> {
        let context = self.context();
        let mut pointer = context.host.take()?;
        // SAFETY: `resume` borrows the host until it returns, and as the pointer was taken, this is the only use of it.
        let host: &mut dyn Any = unsafe { pointer.as_mut() };
        let result = host.downcast_mut::<H>().map(|host| act(host, self));
        context.host.set(Some(pointer));
        result
    }
}

/// Registers what Lua calls when a function of ours was called with its arguments on the stack.
impl Stack<'_> {
    /// Pushes a function.
    pub fn push_function(&mut self, function: Function) {
        self.push_closure(function, 0);
    }

    /// Pushes a function that keeps the `count` values on top of the stack ([`Stack::upvalue`]).
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
