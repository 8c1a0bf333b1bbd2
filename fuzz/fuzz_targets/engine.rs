//! The command engine, played by choices made of bytes. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::play;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| play::run(bytes));
