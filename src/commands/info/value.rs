//! The values of INFO's lines: each is appended to the text of the reply, without a string of its own.

use std::fmt::Write;

/// The value of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'s> {
    Count(u64),
    /// A number that may be negative.
    Integer(i64),
    Text(&'s str),
    Owned(String),
    /// Bytes in a human-readable form: `710.48K`.
    Human(u64),
    /// A number with two decimals.
    Hundredths(f64),
    /// A percentage with two decimals.
    Percent(f64),
    /// Microseconds, shown in seconds.
    Seconds(u64),
}

impl Value<'_> {
    /// Appends the value to `text`.
    pub(super) fn write(self, text: &mut String) {
        // Writing into a string cannot fail.
        let _ = match self {
            Value::Count(number) => text.write_str(itoa::Buffer::new().format(number)),
            Value::Integer(number) => text.write_str(itoa::Buffer::new().format(number)),
            Value::Text(value) => text.write_str(value),
            Value::Owned(value) => text.write_str(&value),
            Value::Human(bytes) => write_human(text, bytes),
            Value::Hundredths(0.0) => text.write_str("0.00"),
            Value::Hundredths(number) => write!(text, "{number:.2}"),
            Value::Percent(number) => write!(text, "{number:.2}%"),
            Value::Seconds(us) => write!(text, "{}.{:06}", us / 1_000_000, us % 1_000_000),
        };
    }
}

macro_rules! counts {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Value<'_> {
            fn from(number: $kind) -> Self {
                Value::Count(number as u64)
            }
        })*
    };
}

counts!(u8, u16, u32, u64, usize);

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Integer(number)
    }
}

impl<'s> From<&'s str> for Value<'s> {
    fn from(text: &'s str) -> Value<'s> {
        Value::Text(text)
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Owned(text)
    }
}

/// Writes bytes in the largest unit that fits.
fn write_human(text: &mut String, bytes: u64) -> std::fmt::Result {
    const UNITS: [(u32, char); 5] = [(50, 'P'), (40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')];
    match UNITS.into_iter().find(|(bits, _)| bytes >> bits > 0) {
        Some((bits, unit)) => write!(text, "{:.2}{unit}", bytes as f64 / (1_u64 << bits) as f64),
        None => write!(text, "{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: Value<'_>) -> String {
        let mut text = String::new();
        value.write(&mut text);
        text
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_fits() {
        let table = [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (727_536, "710.48K"), (25_276_510_208, "23.54G")];
        for (bytes, text) in table {
            assert_eq!(written(Value::Human(bytes)), text);
        }
    }

    #[test]
    fn processor_time_is_shown_in_seconds() {
        assert_eq!(written(Value::Seconds(1_027_637)), "1.027637");
    }

    #[test]
    fn numbers_have_all_their_digits_and_ratios_have_two_decimals() {
        assert_eq!(written(u64::MAX.into()), "18446744073709551615");
        assert_eq!(written((-1_i64).into()), "-1");
        assert_eq!(written(Value::Hundredths(0.0)), "0.00");
        assert_eq!(written(Value::Hundredths(1.005)), format!("{:.2}", 1.005));
        assert_eq!(written(Value::Percent(12.3456)), "12.35%");
    }
}
