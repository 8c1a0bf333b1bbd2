//! Any bytes as what a server sends. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::replies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| replies::run_alone(bytes));
