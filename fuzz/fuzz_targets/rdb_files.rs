//! Any bytes as an RDB file. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::rdb_files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rdb_files::run(bytes));
