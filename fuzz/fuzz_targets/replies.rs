//! Any bytes as what a server sends. See `tests/fuzz`, where the target is.
#![no_main]

#[path = "../../tests/fuzz/replies.rs"]
mod replies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| replies::run_alone(bytes));
