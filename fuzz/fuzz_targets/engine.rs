//! The command engine, played by choices made of bytes. See `tests/fuzz`, where the target is.
#![no_main]

#[path = "../../tests/fuzz/choices.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod choices;
#[path = "../../tests/fuzz/frame.rs"]
mod frame;
#[path = "../../tests/fuzz/grammar.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod grammar;
#[path = "../../tests/fuzz/play.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod play;
#[path = "../../tests/fuzz/watch.rs"]
#[allow(dead_code, reason = "libFuzzer itself finds who never ends")]
mod watch;
#[path = "../../tests/engine/world.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| play::run(bytes));
