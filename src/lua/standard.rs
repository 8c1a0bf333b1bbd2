//! Lua's standard libraries, as far as scripts get them.

use std::ffi::CStr;

use mlua_sys as ffi;

use super::{Stack, coroutines, table_functions};

/// The libraries, under the names that their functions expect. There is no `io`, `package` or `debug`.
const LIBRARIES: &[(&CStr, ffi::lua_CFunction)] = &[
    (c"", ffi::luaopen_base),
    (c"table", ffi::luaopen_table),
    (c"string", ffi::luaopen_string),
    (c"math", ffi::luaopen_math),
    (c"os", ffi::luaopen_os),
];

impl Stack<'_> {
    /// Opens Lua's standard libraries as globals, coroutines among them. Functions that could run for ever in C are
    /// replaced.
    pub fn open_standard(&mut self) {
        for (name, open) in LIBRARIES {
            self.ensure(2);
            // SAFETY: as Lua's own `luaL_openlibs` calls them; `call` catches errors.
            unsafe {
                ffi::lua_pushcfunction(self.raw(), *open);
                ffi::lua_pushstring(self.raw(), name.as_ptr());
            }
            assert!(self.call(1, Some(0)), "there is memory for the libraries of Lua");
        }
        self.replace_functions(c"table", table_functions::FUNCTIONS);
        self.replace_coroutines();
        self.replace_catchers();
    }

    /// Adds C functions without upvalues to a library.
    fn replace_functions(&mut self, library: &CStr, functions: &[(&CStr, ffi::lua_CFunction)]) {
        self.ensure(2);
        // SAFETY: there is room; the library is a table, as it was just opened, and Rust code runs, so that memory does
        // not fail.
        unsafe {
            ffi::lua_getfield(self.raw(), ffi::LUA_GLOBALSINDEX, library.as_ptr());
            for (name, function) in functions {
                ffi::lua_pushcfunction(self.raw(), *function);
                ffi::lua_setfield(self.raw(), -2, name.as_ptr());
            }
            ffi::lua_pop(self.raw(), 1);
        }
    }

    /// Replaces `pcall` and `xpcall` by functions that record which state runs after an error.
    fn replace_catchers(&mut self) {
        self.ensure(2);
        for name in [c"pcall", c"xpcall"] {
            // SAFETY: as above; the closure has the upvalues that it expects.
            unsafe {
                ffi::lua_getfield(self.raw(), ffi::LUA_GLOBALSINDEX, name.as_ptr());
                let original = ffi::lua_tocfunction(self.raw(), -1).expect("it is a C function");
                ffi::lua_pop(self.raw(), 1);
                ffi::lua_pushlightuserdata(self.raw(), original as *mut _);
                ffi::lua_pushcclosure(self.raw(), coroutines::catch, 1);
                ffi::lua_setfield(self.raw(), ffi::LUA_GLOBALSINDEX, name.as_ptr());
            }
        }
    }

    /// Replaces `coroutine.resume` and `coroutine.wrap` by functions that record which coroutine runs.
    fn replace_coroutines(&mut self) {
        self.ensure(4);
        // SAFETY: as above; both functions have the upvalues that they expect.
        unsafe {
            ffi::lua_getfield(self.raw(), ffi::LUA_GLOBALSINDEX, c"coroutine".as_ptr());
            ffi::lua_getfield(self.raw(), -1, c"resume".as_ptr());
            let resume = ffi::lua_tocfunction(self.raw(), -1).expect("it is a C function");
            ffi::lua_pop(self.raw(), 1);
            ffi::lua_getfield(self.raw(), -1, c"create".as_ptr());
            let create = ffi::lua_tocfunction(self.raw(), -1).expect("it is a C function");
            ffi::lua_pop(self.raw(), 1);
            ffi::lua_pushlightuserdata(self.raw(), resume as *mut _);
            ffi::lua_pushcclosure(self.raw(), coroutines::resume, 1);
            ffi::lua_setfield(self.raw(), -2, c"resume".as_ptr());
            ffi::lua_pushlightuserdata(self.raw(), resume as *mut _);
            ffi::lua_pushlightuserdata(self.raw(), create as *mut _);
            ffi::lua_pushcclosure(self.raw(), coroutines::wrap, 2);
            ffi::lua_setfield(self.raw(), -2, c"wrap".as_ptr());
            ffi::lua_pop(self.raw(), 1);
        }
    }
}
