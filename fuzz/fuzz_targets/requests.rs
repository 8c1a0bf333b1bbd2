//! Any bytes as what a client sends. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::requests;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| requests::run(bytes));
