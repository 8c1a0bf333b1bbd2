//! `coroutine.resume` and `coroutine.wrap`, which call Lua's and do two things that Lua does not.
//!
//! - While a coroutine runs, [`super::Context`] names it, so that the code that counts work interrupts that one.
//! - The stack of the coroutine grows here, where allocation does not fail, to hold the arguments. A coroutine that is
//!   not running has no protected call around it: memory that runs out while Lua grows its stack ends the process in
//!   the original 5.1, and raises an error in the caller of `resume` with the sources that we build. Now it runs out
//!   in the coroutine itself, and `resume` returns that.
//!
//! Invariants: no frame here owns anything, as errors of Lua jump over them. The state that the context names is
//! alive: the function that catches an error sets it to the one that goes on ([`catch`], [`super::Stack::call`], and
//! [`resume`] when it returns).

use std::ffi::c_int;
use std::mem;

use mlua_sys as ffi;

use super::context;

/// `pcall` and `xpcall`; Lua's function is the upvalue.
///
/// # Safety
/// As for [`resume`].
pub(super) unsafe extern "C-unwind" fn catch(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let original = ffi::lua_touserdata(raw, ffi::lua_upvalueindex(1));
        let count = mem::transmute::<*mut _, ffi::lua_CFunction>(original)(raw);
        context(raw).name_current(raw);
        count
    }
}

/// `coroutine.resume`; Lua's function is the upvalue.
///
/// # Safety
/// Called by Lua, for a closure whose upvalue is a C function without upvalues.
pub(super) unsafe extern "C-unwind" fn resume(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let original = ffi::lua_touserdata(raw, ffi::lua_upvalueindex(1));
        resume_with(raw, mem::transmute::<*mut _, ffi::lua_CFunction>(original))
    }
}

/// Resumes the coroutine that is the first argument.
///
/// # Safety
/// Called within a function that Lua calls; `original` is Lua's `resume`.
unsafe fn resume_with(raw: *mut ffi::lua_State, original: ffi::lua_CFunction) -> c_int {
    // SAFETY: the caller's promise. While the coroutine runs it is on the stack. If its results do not fit there,
    // `original` raises, and the function that catches that error sets the state that goes on.
    unsafe {
        let context = context(raw);
        let coroutine = ffi::lua_tothread(raw, 1);
        let can_run = !coroutine.is_null() && coroutine != raw && {
            let _within = context.account.within_rust();
            ffi::lua_checkstack(coroutine, ffi::lua_gettop(raw) - 1) != 0
        };
        if can_run {
            context.name_current(coroutine);
        }
        let count = original(raw);
        context.name_current(raw);
        count
    }
}

/// `coroutine.wrap`; Lua's `resume` and `create` are the upvalues.
///
/// # Safety
/// As for [`resume`].
pub(super) unsafe extern "C-unwind" fn wrap(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: the caller's promise. `create` leaves the coroutine on top.
    unsafe {
        let create = ffi::lua_touserdata(raw, ffi::lua_upvalueindex(2));
        mem::transmute::<*mut _, ffi::lua_CFunction>(create)(raw);
        ffi::lua_pushvalue(raw, ffi::lua_upvalueindex(1));
        ffi::lua_insert(raw, -2);
        ffi::lua_pushcclosure(raw, go_on, 2);
    }
    1
}

/// The function that `coroutine.wrap` returns; Lua's `resume` and the coroutine are the upvalues.
///
/// # Safety
/// As for [`resume`].
unsafe extern "C-unwind" fn go_on(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: the caller's promise. There is room for some values above the arguments.
    unsafe {
        ffi::lua_pushvalue(raw, ffi::lua_upvalueindex(2));
        ffi::lua_insert(raw, 1);
        let original = ffi::lua_touserdata(raw, ffi::lua_upvalueindex(1));
        let count = resume_with(raw, mem::transmute::<*mut _, ffi::lua_CFunction>(original));
        if ffi::lua_toboolean(raw, -count) != 0 {
            return count - 1;
        }
        if ffi::lua_isstring(raw, -1) != 0 {
            ffi::luaL_where(raw, 1);
            ffi::lua_insert(raw, -2);
            ffi::lua_concat(raw, 2);
        }
        ffi::lua_error(raw)
    }
}
