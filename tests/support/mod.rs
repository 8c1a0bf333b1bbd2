//! Code that several test crates share. Each of them includes this module whole, under the same name, and so do the
//! fuzz targets; `tests/tidy` allows no other way to share code.
//!
//! It is a module and not a crate, because such a crate would depend on this one, and `cargo test --lib` would then
//! build the library twice: once for its unit tests, and once for the crate that they do not use.

#![allow(dead_code, reason = "each test crate uses a part of it")]

pub(crate) mod choices;
pub(crate) mod crash;
pub(crate) mod heap;
pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod node;
pub(crate) mod process;
pub(crate) mod processor_time;
pub(crate) mod reply;
pub(crate) mod timeout;
pub(crate) mod words;
pub(crate) mod world;
