//! Any bytes as the payload of RESTORE. See `tests/fuzz`, where the target is.
#![no_main]

#[path = "../../tests/fuzz/payloads.rs"]
mod payloads;
#[path = "../../tests/fuzz/watch.rs"]
#[allow(dead_code, reason = "libFuzzer itself finds who never ends")]
mod watch;
#[path = "../../tests/engine/world.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| payloads::run(bytes));
