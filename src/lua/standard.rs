//! The libraries that come with Lua.

use std::ffi::CStr;

use mlua_sys as ffi;

use super::Stack;

/// Which ones, under the names that their functions expect. There is no `io`, `package` or `debug`.
const LIBRARIES: &[(&CStr, ffi::lua_CFunction)] = &[
    (c"", ffi::luaopen_base),
    (c"table", ffi::luaopen_table),
    (c"string", ffi::luaopen_string),
    (c"math", ffi::luaopen_math),
    (c"os", ffi::luaopen_os),
];

impl Stack<'_> {
    /// Makes the libraries of Lua global, coroutines among them.
    pub fn open_standard(&mut self) {
        for (name, open) in LIBRARIES {
            self.ensure(2);
            // SAFETY: as Lua's own `luaL_openlibs` calls them; `call` catches errors.
            unsafe {
                ffi::lua_pushcfunction(self.raw(), *open);
                ffi::lua_pushstring(self.raw(), name.as_ptr());
            }
            assert!(self.call(1, Some(0)), "the libraries of Lua open with the memory there is");
        }
    }
}
