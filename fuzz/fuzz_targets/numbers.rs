//! Any bytes as a number. See `tests/fuzz`, where the target is.
#![no_main]

#[path = "../../tests/fuzz/numbers.rs"]
mod numbers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| numbers::run(bytes));
