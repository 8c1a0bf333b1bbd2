//! Bytes as text in hexadecimal digits, two per byte, in lower case: for hashes, and for secrets that a user types.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The digits of `bytes`, as text.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    digits(bytes).for_each(|digit| text.push(char::from(digit)));
    text
}

/// The digits of `bytes`, one after the other.
pub fn digits(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().flat_map(|byte| pair(*byte))
}

/// Writes the digits of `bytes` to `digits`, as far as there is room.
pub fn write(bytes: &[u8], digits: &mut [u8]) {
    digits.as_chunks_mut().0.iter_mut().zip(bytes).for_each(|(place, byte)| *place = pair(*byte));
}

fn pair(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(text(&[0, 9, 0x0a, 0x5f, 0xff]), "00090a5fff");
        assert_eq!(text(&[]), "");
        let mut digits = [b'-'; 4];
        write(&[0x3c, 0xf0], &mut digits);
        assert_eq!(&digits, b"3cf0");
    }
}
