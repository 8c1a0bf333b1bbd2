//! Integers of 1 to 64 bits at any place in a string, highest bit first.
//!
//! A [`Field`] is the kind of integer: how wide, with a sign or without. If a number does not fit, [`Overflow`] says
//! how it is changed. Numbers are exact in 128 bits until they are fitted, so nothing overflows on the way.

/// The kind of an integer: `i5`, `u63`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Whether the integer is signed (`i`): half of its values are negative.
    pub is_signed: bool,
    /// The width in bits, 1 to 64; at most 63 if unsigned, so that every value is an `i64`.
    pub width: u8,
}

/// The treatment of a number that does not fit (BITFIELD's OVERFLOW).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Wraps around: its low bits are kept.
    #[default]
    Wrap,
    /// Becomes the nearest number that fits.
    Saturate,
    /// Fails: there is no result.
    Fail,
}

/// The most bytes that a field touches.
const WINDOW_BYTES: usize = 9;

impl Field {
    /// Reads the number at a bit offset.
    pub fn read(self, bytes: &[u8], place: u64) -> i64 {
        let window = usize::try_from(place / 8).map_or(0, |first| window_of(bytes, first));
        let bits = window << (place % 8) >> (128 - u32::from(self.width));
        self.wrap(bits as i128)
    }

    /// Writes a number that fits at a bit offset within the string.
    pub fn write(self, bytes: &mut [u8], place: u64, number: i64) {
        let Ok(first) = usize::try_from(place / 8) else { return };
        let shift = 128 - u32::from(self.width) - (place % 8) as u32;
        let mask = (u128::MAX >> (128 - u32::from(self.width))) << shift;
        let window = window_of(bytes, first) & !mask | (i128::from(number) as u128) << shift & mask;
        let rest = bytes.get_mut(first..).unwrap_or_default();
        rest.iter_mut().zip(window.to_be_bytes()).take(WINDOW_BYTES).for_each(|(byte, with)| *byte = with);
    }

    /// Fits a number into the field by the overflow rule; `None` if the rule is [`Overflow::Fail`] and it does not fit.
    pub fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = self.bounds();
        match overflow {
            _ if (least..=most).contains(&number) => Some(number as i64),
            Overflow::Wrap => Some(self.wrap(number)),
            Overflow::Saturate => Some(number.clamp(least, most) as i64),
            Overflow::Fail => None,
        }
    }

    /// Whether a number is so far below the greatest that fits that their distance is no `i64`. Numbers of 64 bits
    /// are never that far below.
    pub fn is_far_below(self, number: i64) -> bool {
        self.width < 64 && i64::try_from(self.bounds().1 - i128::from(number)).is_err()
    }

    fn bounds(self) -> (i128, i128) {
        if self.is_signed {
            let half = 1i128 << (self.width - 1);
            (-half, half - 1)
        } else {
            (0, (1 << self.width) - 1)
        }
    }

    /// The number that the low bits represent.
    fn wrap(self, number: i128) -> i64 {
        let unused = 128 - u32::from(self.width);
        let high = number << unused;
        if self.is_signed { (high >> unused) as i64 } else { (high as u128 >> unused) as i64 }
    }
}

/// Nine bytes from `first` on, as the highest bits of a word; bytes behind the end are zero.
fn window_of(bytes: &[u8], first: usize) -> u128 {
    let mut window = [0; 16];
    let rest = bytes.get(first..).unwrap_or_default();
    window.iter_mut().zip(rest).take(WINDOW_BYTES).for_each(|(byte, from)| *byte = *from);
    u128::from_be_bytes(window)
}

#[cfg(test)]
mod tests {
    use super::super::get;
    use super::*;
    use proptest::prelude::*;

    fn fields() -> impl Strategy<Value = Field> {
        (any::<bool>(), 1u8..=64)
            .prop_map(|(is_signed, width)| Field { is_signed, width: width.min(63 + u8::from(is_signed)) })
    }

    proptest! {
        #[test]
        fn a_field_is_read_with_its_highest_bit_first(bytes: [u8; 12], field in fields(), place in 0u64..120) {
            let bits = (place..place + u64::from(field.width)).map(|place| get(&bytes, place));
            let number = bits.fold(0i128, |number, bit| number << 1 | i128::from(bit));
            let top = 1i128 << (field.width - 1);
            let expected = if field.is_signed && number >= top { number - 2 * top } else { number };
            prop_assert_eq!(i128::from(field.read(&bytes, place)), expected);
        }

        #[test]
        fn a_written_field_reads_back_and_no_other_bit_changes(
            bytes: [u8; 12], field in fields(), place in 0u64..32, number: i64,
        ) {
            let number = field.fit(number.into(), Overflow::Wrap).expect("wrapping always fits");
            let mut changed = bytes;
            field.write(&mut changed, place, number);
            prop_assert_eq!(field.read(&changed, place), number);
            let outside = |other: &u64| !(place..place + u64::from(field.width)).contains(other);
            for other in (0..96).filter(outside) {
                prop_assert_eq!(get(&changed, other), get(&bytes, other));
            }
        }

        #[test]
        fn a_number_that_fits_stays_and_others_wrap_saturate_or_fail(field in fields(), number: i64, more: i64) {
            let number = i128::from(number) + i128::from(more);
            let wrapped = field.fit(number, Overflow::Wrap).map(i128::from).expect("wrapping always fits");
            let nearest = field.fit(number, Overflow::Saturate).map(i128::from).expect("the nearest always fits");
            prop_assert_eq!((number - wrapped) % (1i128 << field.width), 0);
            match field.fit(number, Overflow::Fail) {
                Some(fitted) => prop_assert!(i128::from(fitted) == number && wrapped == number && nearest == number),
                None => prop_assert_ne!(nearest, number),
            }
        }
    }

    #[test]
    fn a_field_at_an_offset_beyond_every_string_is_zero() {
        assert_eq!(Field { is_signed: false, width: 63 }.read(&[0xff; 4], u64::MAX), 0);
        Field { is_signed: true, width: 64 }.write(&mut [], u64::MAX, -1);
    }
}
