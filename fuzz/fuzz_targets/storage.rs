//! The append-only file on a disk that loses power and fails, as bytes say. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::storage;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| storage::run(bytes));
