//! Any bytes as the payload of RESTORE. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::payloads;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| payloads::run(bytes));
