//! Rust functions that scripts call: how Lua calls them, and how their errors get to Lua.
//!
//! A [`Function`] is a plain function; its pointer is the first upvalue of the Lua function, and one trampoline calls
//! them all. A function returns results, or an error that the trampoline raises when no Rust value is alive any more
//! in its frame. A panic is caught there, too, since it must not pass through C; it continues in the caller that
//! started the run.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mlua_sys as ffi;

use super::{Stack, context};

/// A function that scripts can call. Its arguments are the first values of the stack; it pushes its results and
/// returns their number.
pub type Function = for<'c> fn(&mut Stack<'c>) -> Result<usize, Raise>;

/// An error that a function raises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raise {
    /// This text behind the position in the script that called the function, such as `user_script:1: `.
    Here(Vec<u8>),
    /// This text unchanged.
    Text(Vec<u8>),
    /// The value on top of the stack.
    Top,
    /// The argument with that number is wrong, for this reason.
    Argument(usize, Vec<u8>),
}

impl Raise {
    /// [`Raise::Here`] of a text.
    pub fn here(text: impl Into<Vec<u8>>) -> Raise {
        Raise::Here(text.into())
    }

    /// [`Raise::Text`] of a text.
    pub fn text(text: impl Into<Vec<u8>>) -> Raise {
        Raise::Text(text.into())
    }

    /// [`Raise::Argument`] of a number, from 1, and a reason.
    pub fn argument(number: usize, reason: impl Into<Vec<u8>>) -> Raise {
        Raise::Argument(number, reason.into())
    }
}

/// The result of `call`, otherwise a count, that makes the trampoline raise the value on top.
const RAISES: c_int = -1;

pub(super) fn as_pointer(function: Function) -> *mut c_void {
    function as *mut c_void
}

/// The C function that Lua calls for every Rust function.
///
/// # Safety
/// Called by Lua, for a closure made by [`Stack::push_function`], whose first upvalue is a [`Function`].
pub(super) unsafe extern "C-unwind" fn trampoline(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: the caller's promise; `call` owns nothing when it has returned, so the jump passes over nothing.
    unsafe {
        let function = ffi::lua_touserdata(raw, ffi::lua_upvalueindex(1));
        let count = call(raw, mem::transmute::<*mut c_void, Function>(function));
        if count == RAISES { ffi::lua_error(raw) } else { count }
    }
}

/// The C function that Lua calls for a guarded function of its own: the guard checks the arguments, and the function
/// runs if the guard has no result and raises no error.
///
/// # Safety
/// Called by Lua, for a closure made by [`Stack::guard`], whose upvalues are a [`Function`], that function's own
/// upvalue, and the C function.
pub(super) unsafe extern "C-unwind" fn guarded(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: as for `trampoline`. The C function is one without upvalues, so it can run in our frame.
    unsafe {
        let guard = ffi::lua_touserdata(raw, ffi::lua_upvalueindex(1));
        match call(raw, mem::transmute::<*mut c_void, Function>(guard)) {
            RAISES => ffi::lua_error(raw),
            0 => {}
            count => return count,
        }
        let original = ffi::lua_touserdata(raw, ffi::lua_upvalueindex(3));
        mem::transmute::<*mut c_void, ffi::lua_CFunction>(original)(raw)
    }
}

/// The C function that looks the second argument up in the first, a table, in protected mode.
///
/// # Safety
/// Called by Lua.
pub(super) unsafe extern "C-unwind" fn look_up(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: this frame owns nothing, so that errors may jump over it.
    unsafe { ffi::lua_gettable(raw, 1) };
    1
}

/// Calls a function and pushes the error that it returns.
unsafe fn call(raw: *mut ffi::lua_State, function: Function) -> c_int {
    // SAFETY: Lua calls us, so the state is open.
    let context = unsafe { context(raw) };
    let _within = context.account.within_rust();
    // SAFETY: as above.
    let arguments = unsafe { ffi::lua_gettop(raw) };
    let mut stack = Stack::of_call(raw, context, arguments);
    let outcome = catch_unwind(AssertUnwindSafe(|| function(&mut stack)));
    if context.account.is_due() {
        context.interrupt();
    }
    match outcome {
        Ok(Ok(count)) => c_int::try_from(count).expect("a stack has at most some thousand values"),
        Ok(Err(raised)) => {
            if raised != Raise::Top {
                make_room(raw, arguments);
            }
            push_raised(&mut stack, raised);
            RAISES
        }
        Err(panic) => {
            context.panic.replace(Some(panic));
            context.interrupt();
            make_room(raw, arguments);
            stack.push_plain(b"internal error");
            RAISES
        }
    }
}

/// Removes the values of a function that has failed: its stack may be full.
fn make_room(raw: *mut ffi::lua_State, arguments: c_int) {
    // SAFETY: `call` has got an open state, and the function has returned, so that nothing of its stack is borrowed.
    unsafe { ffi::lua_settop(raw, arguments) };
}

fn push_raised(stack: &mut Stack<'_>, raised: Raise) {
    match raised {
        Raise::Top => {}
        Raise::Text(text) => stack.push_plain(&text),
        Raise::Here(text) => push_here(stack, &text),
        Raise::Argument(number, reason) => {
            let text = stack.argument_error(number, &reason);
            push_here(stack, &text);
        }
    }
}

fn push_here(stack: &mut Stack<'_>, text: &[u8]) {
    let mut line = stack.location(1);
    line.extend_from_slice(text);
    stack.push_plain(&line);
}

/// The C function that Lua calls for an error outside of any protected call, which cannot happen, as [`super`] shows.
///
/// # Safety
/// Called by Lua.
pub(super) unsafe extern "C-unwind" fn unprotected_error(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is open, and nothing is known of its stack but that the error is on top.
    let text = unsafe { text_or_nothing(ffi::lua_tolstring(raw, -1, std::ptr::null_mut())) };
    eprintln!("Lua raised an error outside of any call: {text}");
    std::process::abort();
}

/// # Safety
/// `text` is null or ends with NUL.
pub(super) unsafe fn text_or_nothing<'t>(text: *const c_char) -> std::borrow::Cow<'t, str> {
    if text.is_null() {
        return "".into();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}
