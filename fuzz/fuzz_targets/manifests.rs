//! Any bytes as the manifest of an AOF. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::manifests;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| manifests::run(bytes));
