//! Any bytes as a script, and as what the libraries of scripts decode. See `tests/fuzz`, where the target is.
#![no_main]

#[path = "../../tests/fuzz/scripts.rs"]
mod scripts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scripts::run(bytes));
