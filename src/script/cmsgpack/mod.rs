//! The library `cmsgpack`: values as MessagePack and back, with the bytes of Redis 8.0 (lua-cmsgpack 0.4.0).

mod pack;
#[cfg(test)]
mod tests;
mod unpack;

use super::arguments::{describe, register};
use crate::lua::{Raise, Stack};

/// Pushes the library.
///
/// # Errors
/// If memory has run out.
pub(crate) fn open(stack: &mut Stack<'_>) -> Result<(), Raise> {
    stack.push_table(0, 8)?;
    register(
        stack,
        &[
            ("pack", pack::pack),
            ("unpack", unpack::unpack),
            ("unpack_one", unpack::unpack_one),
            ("unpack_limit", unpack::unpack_limit),
        ],
    )?;
    describe(
        stack,
        &[
            ("_NAME", "cmsgpack"),
            ("_VERSION", "lua-cmsgpack 0.4.0"),
            ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
            ("_DESCRIPTION", "MessagePack C implementation for Lua"),
        ],
    )
}
