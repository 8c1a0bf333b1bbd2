//! Any bytes as a number. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::numbers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| numbers::run(bytes));
