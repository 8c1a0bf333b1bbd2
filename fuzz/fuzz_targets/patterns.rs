//! Any bytes as a pattern and a text. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::patterns;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| patterns::run(bytes));
