//! Any bytes as a file of an AOF. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::aof_files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| aof_files::run(bytes));
