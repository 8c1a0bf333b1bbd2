//! Numbers of a fixed width, up to eight bytes, low byte first: the columns of packed collections consist of them.
//!
//! A number is read as the word that *ends* with it, shifted down: one load and one bounds check, whatever the width.
//! A collection with such columns therefore has a head of at least eight bytes in front of them.

/// The number in the `width <= 8` bytes that end at `end >= 8`.
#[inline]
pub(super) fn number(bytes: &[u8], end: usize, width: usize) -> u64 {
    let word = bytes[..end].last_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    if width == 0 { 0 } else { word >> (64 - 8 * width) }
}

/// The last `width <= 8` bytes of a slice, as [`number`] reads them.
#[inline]
pub(super) fn tail(bytes: &[u8], width: usize) -> u64 {
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[bytes.len() - width..]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_reads_numbers_of_every_width() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        for width in 0..=8 {
            let expected = (0..width).fold(0, |sum, place| sum | u64::from(bytes[9 - width + place]) << (8 * place));
            assert_eq!(number(&bytes, 9, width), expected, "{width}");
            assert_eq!(tail(&bytes, width), expected, "{width}");
        }
    }
}
