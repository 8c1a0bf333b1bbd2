//! Any bytes as a pattern and a text. See `tests/fuzz`, where the target is.
#![no_main]

#[path = "../../tests/fuzz/patterns.rs"]
mod patterns;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| patterns::run(bytes));
