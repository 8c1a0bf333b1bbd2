//! Any bytes as a script, and as what the libraries of scripts decode. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::scripts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scripts::run(bytes));
