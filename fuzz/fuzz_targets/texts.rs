//! Any bytes as a number or a pattern: no panic, and what is written is read back as the same number.
#![no_main]

use dunlin::value::{glob, number};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (one, other) = input;
    let _ = glob::matches(one, other, other.len() % 2 == 0);
    if let Some(value) = number::parse_i64(one) {
        let mut written = Vec::new();
        number::write_i64(&mut written, value);
        assert_eq!(written, one);
    }
    if let Some(value) = number::parse_f64(one) {
        let mut written = Vec::new();
        number::write_f64(&mut written, value);
        assert_eq!(number::parse_f64(&written), Some(value));
    }
});
