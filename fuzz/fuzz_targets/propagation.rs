//! The log of changes of a game that bytes play. See `tests/fuzz`, where the target is.
#![no_main]

use dunlin_fuzz::targets::propagation;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| propagation::run(bytes));
