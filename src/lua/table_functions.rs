//! Replacements for those functions of `table` that go through a table or call back.
//!
//! They behave as those of Lua 5.1, including the texts of their errors and the order in which `sort` compares, which
//! decides the result if comparisons contradict each other. Unlike those they count their steps and call the
//! interrupt check ([`work`]): one call can go on for ever, if a function is its own callback, or for hours.
//!
//! Invariant: no frame here owns anything, as errors of Lua jump over them.
//!
//! Source: the manual of Lua 5.1; Lua 5.1.5 for the order of comparisons.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

use mlua_sys as ffi;

use super::run::{STEP_BYTES, work};

/// The functions, by their names in `table`.
pub(super) const FUNCTIONS: &[(&CStr, ffi::lua_CFunction)] = &[
    (c"concat", concat),
    (c"foreach", foreach),
    (c"foreachi", foreachi),
    (c"insert", insert),
    (c"maxn", maxn),
    (c"remove", remove),
    (c"sort", sort),
];

/// The index of the table, the first argument of all of them.
const TABLE: c_int = 1;

/// The number of elements of the first argument, which must be a table.
///
/// # Safety (here and below)
/// Called by Lua, so that the state is open and the arguments are on its stack, with room for twenty more values. The
/// frames own nothing, so that errors may jump over them.
unsafe fn length(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: the function's own promise, above.
    unsafe {
        ffi::luaL_checktype(raw, TABLE, ffi::LUA_TTABLE);
        ffi::lua_objlen(raw, TABLE) as c_int
    }
}

/// An argument as C's `int`.
unsafe fn int(raw: *mut ffi::lua_State, argument: c_int) -> c_int {
    // SAFETY: see `length`.
    unsafe { ffi::luaL_checkinteger(raw, argument) as c_int }
}

/// An argument as C's `int`, or `default` if it is missing.
unsafe fn int_or(raw: *mut ffi::lua_State, argument: c_int, default: c_int) -> c_int {
    // SAFETY: see `length`.
    unsafe { if ffi::lua_isnoneornil(raw, argument) != 0 { default } else { int(raw, argument) } }
}

/// Copies the element at `from` to the position `to`.
unsafe fn copy(raw: *mut ffi::lua_State, from: c_int, to: c_int) {
    // SAFETY: see `length`; the first argument is a table.
    unsafe {
        ffi::lua_rawgeti_(raw, TABLE, from);
        ffi::lua_rawseti_(raw, TABLE, to);
        work(raw, STEP_BYTES);
    }
}

unsafe extern "C-unwind" fn foreach(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: see `length`. Lua itself detects that the callback has removed the key.
    unsafe {
        ffi::luaL_checktype(raw, TABLE, ffi::LUA_TTABLE);
        ffi::luaL_checktype(raw, 2, ffi::LUA_TFUNCTION);
        ffi::lua_pushnil(raw);
        while ffi::lua_next(raw, TABLE) != 0 {
            work(raw, STEP_BYTES);
            ffi::lua_pushvalue(raw, 2);
            ffi::lua_pushvalue(raw, -3);
            ffi::lua_pushvalue(raw, -3);
            ffi::lua_call(raw, 2, 1);
            if ffi::lua_isnil(raw, -1) == 0 {
                return 1;
            }
            ffi::lua_pop(raw, 2);
        }
    }
    0
}

unsafe extern "C-unwind" fn foreachi(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: see `length`.
    unsafe {
        let length = length(raw);
        ffi::luaL_checktype(raw, 2, ffi::LUA_TFUNCTION);
        for number in 1..=length {
            work(raw, STEP_BYTES);
            ffi::lua_pushvalue(raw, 2);
            ffi::lua_pushnumber(raw, number.into());
            ffi::lua_rawgeti_(raw, TABLE, number);
            ffi::lua_call(raw, 2, 1);
            if ffi::lua_isnil(raw, -1) == 0 {
                return 1;
            }
            ffi::lua_pop(raw, 1);
        }
    }
    0
}

unsafe extern "C-unwind" fn maxn(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: see `length`; the table does not change meanwhile.
    unsafe {
        ffi::luaL_checktype(raw, TABLE, ffi::LUA_TTABLE);
        let mut most = 0.0;
        ffi::lua_pushnil(raw);
        while ffi::lua_next(raw, TABLE) != 0 {
            work(raw, STEP_BYTES);
            ffi::lua_pop(raw, 1);
            if ffi::lua_type(raw, -1) == ffi::LUA_TNUMBER {
                let key = ffi::lua_tonumber(raw, -1);
                most = if key > most { key } else { most };
            }
        }
        ffi::lua_pushnumber(raw, most);
    }
    1
}

unsafe extern "C-unwind" fn insert(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: see `length`.
    unsafe {
        let mut free = length(raw).wrapping_add(1);
        let place = match ffi::lua_gettop(raw) {
            2 => free,
            3 => int(raw, 2),
            _ => return ffi::luaL_error(raw, c"wrong number of arguments to 'insert'".as_ptr()),
        };
        while free > place {
            copy(raw, free - 1, free);
            free -= 1;
        }
        ffi::lua_rawseti_(raw, TABLE, place);
    }
    0
}

unsafe extern "C-unwind" fn remove(raw: *mut ffi::lua_State) -> c_int {
    // SAFETY: see `length`.
    unsafe {
        let last = length(raw);
        let place = int_or(raw, 2, last);
        if !(1..=last).contains(&place) {
            return 0;
        }
        ffi::lua_rawgeti_(raw, TABLE, place);
        for number in place..last {
            copy(raw, number + 1, number);
        }
        ffi::lua_pushnil(raw);
        ffi::lua_rawseti_(raw, TABLE, last);
    }
    1
}

unsafe extern "C-unwind" fn concat(raw: *mut ffi::lua_State) -> c_int {
    let mut buffer = MaybeUninit::uninit();
    let buffer = buffer.as_mut_ptr();
    let mut separator_length = 0;
    // SAFETY: see `length`. The buffer is initialized before it is used, and the values that it keeps on the stack
    // are above those that are read.
    unsafe {
        let separator = ffi::luaL_optlstring(raw, 2, c"".as_ptr(), &raw mut separator_length);
        ffi::luaL_checktype(raw, TABLE, ffi::LUA_TTABLE);
        let first = int_or(raw, 3, 1);
        let last = if ffi::lua_isnoneornil(raw, 4) != 0 { length(raw) } else { int(raw, 4) };
        ffi::luaL_buffinit(raw, buffer);
        for number in first..=last {
            work(raw, STEP_BYTES);
            ffi::lua_rawgeti_(raw, TABLE, number);
            if ffi::lua_isstring(raw, -1) == 0 {
                let kind = ffi::lua_typename(raw, ffi::lua_type(raw, -1));
                let text = c"invalid value (%s) at index %d in table for 'concat'";
                return ffi::luaL_error(raw, text.as_ptr(), kind, number);
            }
            ffi::luaL_addvalue(buffer);
            if number < last {
                ffi::luaL_addlstring(buffer, separator, separator_length);
            }
        }
        ffi::luaL_pushresult(buffer);
    }
    1
}

unsafe extern "C-unwind" fn sort(raw: *mut ffi::lua_State) -> c_int {
    /// The most values on the stack at any time, and those that a call of the comparison needs.
    const VALUES: c_int = 40;
    // SAFETY: see `length`.
    unsafe {
        let length = length(raw);
        ffi::luaL_checkstack(raw, VALUES, c"".as_ptr());
        if ffi::lua_isnoneornil(raw, 2) == 0 {
            ffi::luaL_checktype(raw, 2, ffi::LUA_TFUNCTION);
        }
        ffi::lua_settop(raw, 2);
        sort_range(raw, 1, length);
    }
    0
}

/// Whether the value at `one` comes before that at `other`, both indices counted from the top.
unsafe fn is_before(raw: *mut ffi::lua_State, one: c_int, other: c_int) -> bool {
    // SAFETY: see `length`; the second argument is the comparison, or nil.
    unsafe {
        work(raw, STEP_BYTES);
        if ffi::lua_isnil(raw, 2) != 0 {
            return ffi::lua_lessthan(raw, one, other) != 0;
        }
        ffi::lua_pushvalue(raw, 2);
        ffi::lua_pushvalue(raw, one - 1);
        ffi::lua_pushvalue(raw, other - 2);
        ffi::lua_call(raw, 2, 1);
        let is_before = ffi::lua_toboolean(raw, -1) != 0;
        ffi::lua_pop(raw, 1);
        is_before
    }
}

/// Stores the value on top at the position `first`, and the one below at `second`.
unsafe fn place(raw: *mut ffi::lua_State, first: c_int, second: c_int) {
    // SAFETY: see `length`.
    unsafe {
        ffi::lua_rawseti_(raw, TABLE, first);
        ffi::lua_rawseti_(raw, TABLE, second);
    }
}

/// Swaps two elements if the one at `late` comes before that at `early`.
unsafe fn order(raw: *mut ffi::lua_State, early: c_int, late: c_int) -> bool {
    // SAFETY: see `length`.
    unsafe {
        ffi::lua_rawgeti_(raw, TABLE, early);
        ffi::lua_rawgeti_(raw, TABLE, late);
        let is_wrong = is_before(raw, -1, -2);
        if is_wrong {
            place(raw, early, late);
        } else {
            ffi::lua_pop(raw, 2);
        }
        is_wrong
    }
}

/// Sorts the elements from `low` to `high`.
unsafe fn sort_range(raw: *mut ffi::lua_State, mut low: c_int, mut high: c_int) {
    // SAFETY: see `length`. The smaller part is sorted by recursion, so that the nesting is at most the number of
    // binary digits of the length.
    unsafe {
        while low < high {
            order(raw, low, high);
            if high - low == 1 {
                return;
            }
            let middle = low + (high - low) / 2;
            if !order(raw, low, middle) {
                order(raw, middle, high);
            }
            if high - low == 2 {
                return;
            }
            let pivot = part(raw, low, middle, high);
            if pivot - low < high - pivot {
                sort_range(raw, low, pivot - 1);
                low = pivot + 1;
            } else {
                sort_range(raw, pivot + 1, high);
                high = pivot - 1;
            }
        }
    }
}

unsafe fn refuse_order(raw: *mut ffi::lua_State) {
    // SAFETY: see `length`.
    unsafe { ffi::luaL_error(raw, c"invalid order function for sorting".as_ptr()) };
}

/// Moves elements that come before the one at `middle` before it, and the others behind; returns its new position.
/// The three at `low`, `middle` and `high` are in order.
unsafe fn part(raw: *mut ffi::lua_State, low: c_int, middle: c_int, high: c_int) -> c_int {
    // SAFETY: see `length`.
    unsafe {
        // The pivot stays on the stack, and in the table it is stored next to the last.
        ffi::lua_rawgeti_(raw, TABLE, middle);
        ffi::lua_pushvalue(raw, -1);
        ffi::lua_rawgeti_(raw, TABLE, high - 1);
        place(raw, middle, high - 1);
        let (mut left, mut right) = (low, high - 1);
        loop {
            left += 1;
            ffi::lua_rawgeti_(raw, TABLE, left);
            while is_before(raw, -1, -2) {
                if left > high {
                    refuse_order(raw);
                }
                ffi::lua_pop(raw, 1);
                left += 1;
                ffi::lua_rawgeti_(raw, TABLE, left);
            }
            right -= 1;
            ffi::lua_rawgeti_(raw, TABLE, right);
            while is_before(raw, -3, -1) {
                if right < low {
                    refuse_order(raw);
                }
                ffi::lua_pop(raw, 1);
                right -= 1;
                ffi::lua_rawgeti_(raw, TABLE, right);
            }
            if right < left {
                break;
            }
            place(raw, left, right);
        }
        ffi::lua_pop(raw, 3);
        ffi::lua_rawgeti_(raw, TABLE, high - 1);
        ffi::lua_rawgeti_(raw, TABLE, left);
        place(raw, high - 1, left);
        left
    }
}
