//! Products and differences of quantized vectors: what the distance of two of them is made of.
//!
//! The integers may be added in any order, so they are added in wide registers where the processor has them.
//!
//! Invariant: the unsafe code here calls a function that was compiled for a feature of the processor after that has
//! been found.

/// The sum of the products of the signed bytes at the same places. The slices have the same length.
pub(crate) fn dot_product(one: &[u8], other: &[u8]) -> i64 {
    #[cfg(target_arch = "x86_64")]
    if one.len() >= avx2::BLOCK && super::has_avx2() {
        #[expect(unsafe_code, reason = "a function that needs features is unsafe until they are found")]
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::dot_product(one, other) };
    }
    dot_product_portably(one, other)
}

fn dot_product_portably(one: &[u8], other: &[u8]) -> i64 {
    let products =
        one.iter().zip(other).map(|(one, other)| i16::from(one.cast_signed()) * i16::from(other.cast_signed()));
    products.fold(0, |sum: i64, product| sum.wrapping_add(i64::from(product)))
}

/// The number of bits that differ. The slices are of whole words of eight bytes, and have the same length.
pub(crate) fn hamming_distance(one: &[u8], other: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        #[expect(unsafe_code, reason = "a function that needs features is unsafe until they are found")]
        // SAFETY: the processor has POPCNT.
        return unsafe { hamming_distance_with_popcnt(one, other) };
    }
    count_differences(one, other)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn hamming_distance_with_popcnt(one: &[u8], other: &[u8]) -> u64 {
    count_differences(one, other)
}

#[inline(always)]
fn count_differences(one: &[u8], other: &[u8]) -> u64 {
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    let differences = words.map(|(one, other)| (u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other)).count_ones());
    differences.fold(0, |sum: u64, count| sum.wrapping_add(count.into()))
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m256i, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_madd_epi16, _mm256_setzero_si256};

    use super::super::{avx2, carryless};
    use super::dot_product_portably;

    /// The integers that are multiplied at a time.
    pub(super) const BLOCK: usize = 32;

    /// The blocks after which the sums of the lanes, of 32 bits, are added up: each block adds at most 2^15 to a lane.
    const BLOCKS_PER_SUM: usize = 1 << 13;

    #[target_feature(enable = "avx2")]
    pub(super) fn dot_product(one: &[u8], other: &[u8]) -> i64 {
        let ((ones, one), (others, other)) = (one.as_chunks::<BLOCK>(), other.as_chunks::<BLOCK>());
        let mut sum = dot_product_portably(one, other);
        for (ones, others) in ones.chunks(BLOCKS_PER_SUM).zip(others.chunks(BLOCKS_PER_SUM)) {
            let mut sums = [_mm256_setzero_si256(); 2];
            for (one, other) in ones.iter().zip(others) {
                for (sum, (one, other)) in sums.iter_mut().zip(one.as_chunks().0.iter().zip(other.as_chunks().0)) {
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(widened(one), widened(other)));
                }
            }
            for sums in sums {
                for lane in avx2::bytes_of(sums).as_chunks().0 {
                    sum = sum.wrapping_add(i32::from_le_bytes(*lane).into());
                }
            }
        }
        sum
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn widened(bytes: &[u8; 16]) -> __m256i {
        _mm256_cvtepi8_epi16(carryless::vector_of(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn the_wide_forms_agree_with_the_portable_ones() {
        let mut generator = Rng::with_seed(1);
        for len in (0..200).chain([1 << 12, (1 << 12) + 5]) {
            let [one, other] = [(); 2].map(|()| (0..len).map(|_| generator.u8(..)).collect::<Vec<u8>>());
            assert_eq!(dot_product(&one, &other), dot_product_portably(&one, &other), "{len}");
            let whole = len / 8 * 8;
            let differences = one[..whole].iter().zip(&other[..whole]).map(|(one, other)| (one ^ other).count_ones());
            assert_eq!(hamming_distance(&one[..whole], &other[..whole]), u64::from(differences.sum::<u32>()), "{len}");
        }
    }

    #[test]
    fn the_longest_products_do_not_overflow() {
        let bytes = vec![0x80; 1 << 20];
        assert_eq!(dot_product(&bytes, &bytes), 128 * 128 * bytes.len() as i64);
    }
}
