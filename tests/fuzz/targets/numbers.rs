//! Fuzzes the parsers of numbers: no panic, and a number that is written is parsed as the same number.

use dunlin::value::number::{self, LongDouble};

pub fn run(bytes: &[u8]) {
    if let Some(value) = number::parse_i64(bytes) {
        let mut written = Vec::new();
        number::write_i64(&mut written, value);
        assert_eq!(written, bytes);
    }
    if let Some(value) = number::parse_f64(bytes) {
        for write in [number::write_f64, number::write_f64_by_digits] {
            let mut written = Vec::new();
            write(&mut written, value);
            let again = number::parse_f64(&written);
            assert!(again.is_some_and(|again| again.to_bits() == value.to_bits() || value.is_nan() && again.is_nan()));
        }
    }
    let _ = number::parse_f64_bound(bytes);
    let _ = LongDouble::parse(bytes).map(|value| value.to_ms_rounded_up());
}
