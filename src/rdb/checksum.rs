//! The checksum of payloads and files: CRC-64 with Jones' polynomial, reflected, with the initial value 0.
//!
//! Costs: a multiplication without carries for each eight bytes where the processor has one. Elsewhere, and for the
//! last bytes, 16 tables of 2 KiB, computed at compile time, and 16 bytes at a time.

use crc::{CRC_64_REDIS, Crc, Table};

use crate::value::simd::{FOLDED, Folding, fold};

/// Computes the checksum of bytes.
pub fn crc64(bytes: &[u8]) -> u64 {
    continued(0, bytes)
}

/// Computes the checksum of bytes that come after others, whose checksum is `before`.
pub fn continued(before: u64, bytes: &[u8]) -> u64 {
    static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);
    const FOLDING: Folding = Folding::by(CRC_64_REDIS.poly.reverse_bits());
    if let Some((folded, rest)) = fold(before, bytes, &FOLDING) {
        let mut last = [0; 2 * FOLDED];
        let end = FOLDED + rest.len();
        last[..FOLDED].copy_from_slice(&folded);
        last[FOLDED..end].copy_from_slice(rest);
        return CRC.checksum(&last[..end]);
    }
    let mut digest = CRC.digest_with_initial(before.reverse_bits());
    digest.update(bytes);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_nine_digits_is_the_published_one() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn a_checksum_continues_where_it_ended() {
        let mut generator = fastrand::Rng::with_seed(4);
        let bytes: Vec<u8> = (0..1000).map(|_| generator.u8(..)).collect();
        for middle in (0..200).chain(800..1000) {
            let (one, other) = bytes.split_at(middle);
            assert_eq!(continued(crc64(one), other), crc64(&bytes), "{middle}");
        }
    }

    #[test]
    fn the_checksum_of_many_bytes_is_that_of_one_after_the_other() {
        let plain = Crc::<u64, Table<1>>::new(&CRC_64_REDIS);
        let mut generator = fastrand::Rng::with_seed(3);
        let bytes: Vec<u8> = (0..2000).map(|_| generator.u8(..)).collect();
        for start in [0, 1, 7] {
            for end in (start..400).chain(1000..1100).chain([bytes.len()]) {
                assert_eq!(crc64(&bytes[start..end]), plain.checksum(&bytes[start..end]), "{start}..{end}");
            }
        }
    }
}
