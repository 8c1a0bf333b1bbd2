//! Loops over many bytes with the wide instructions of the processor at hand.
//!
//! Each loop has a form with the instructions of AVX2, AVX-512 or PCLMULQDQ written down, which a processor of the
//! x86-64 kind runs if it has them, and a portable form that a test holds equal, which all others run. The instructions
//! are written down since a compiler does not find them, or no longer does after a change elsewhere.
//!
//! Invariant: the unsafe code here and in `dot_product` calls a function that was compiled for a feature of the
//! processor after that has been found ([`has_avx2`]), and turns bytes into a vector and back.
//!
//! Costs: a load and a branch for each call, so it pays from some hundred bytes on.

mod dot_product;

pub(crate) use dot_product::{dot_product, hamming_distance};

/// Whether the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

/// The bytes that [`fold`] leaves of many.
pub(crate) const FOLDED: usize = 16;

/// The multipliers with which 16 bytes are moved by 16 bytes and by 64 in a text that is a polynomial.
#[derive(Debug)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "nothing is folded there"))]
pub(crate) struct Folding {
    near: [u64; 2],
    far: [u64; 2],
}

impl Folding {
    /// The multipliers for remainders by a polynomial of degree 64, reflected and without its highest term.
    pub(crate) const fn by(polynomial: u64) -> Folding {
        let bits = 8 * FOLDED as u32;
        Folding { near: multipliers(bits, polynomial), far: multipliers(4 * bits, polynomial) }
    }
}

/// The multipliers of the first and the second eight bytes of 16 that move by that many bits. The product of two
/// reflected numbers is one bit too far to the right, hence the 1.
const fn multipliers(bits: u32, polynomial: u64) -> [u64; 2] {
    [remainder_of_power(bits + 64 - 1, polynomial), remainder_of_power(bits - 1, polynomial)]
}

/// The remainder of a power of x by the polynomial; both reflected.
const fn remainder_of_power(power: u32, polynomial: u64) -> u64 {
    let (mut remainder, mut done) = (1 << 63, 0);
    while done < power {
        remainder = remainder >> 1 ^ if remainder & 1 == 1 { polynomial } else { 0 };
        done += 1;
    }
    remainder
}

/// Folds a text into 16 bytes and its last ones, fewer than 16, which have the same remainder as a reflected
/// polynomial, with the remainder `before` of what comes before the text; `None` if the text is short, or the processor
/// cannot multiply without carries.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "nothing is folded there"))]
pub(crate) fn fold<'b>(before: u64, bytes: &'b [u8], by: &Folding) -> Option<([u8; FOLDED], &'b [u8])> {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= carryless::FOLDED_TOGETHER && is_x86_feature_detected!("pclmulqdq") {
        #[expect(unsafe_code, reason = "a function that needs features is unsafe until they are found")]
        // SAFETY: the processor has PCLMULQDQ.
        return unsafe { carryless::fold(before, bytes, by) };
    }
    None
}

#[cfg(target_arch = "x86_64")]
mod carryless {
    use std::arch::x86_64::{
        __m128i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_unpackhi_epi64, _mm_xor_si128,
    };
    use std::iter;

    use super::{FOLDED, Folding};

    /// The bytes that are folded at a time.
    pub(super) const FOLDED_TOGETHER: usize = 4 * FOLDED;

    /// Folds four lanes of 16 bytes by themselves, then the lanes, then what is left.
    #[target_feature(enable = "pclmulqdq")]
    pub(super) fn fold<'b>(before: u64, bytes: &'b [u8], by: &Folding) -> Option<([u8; FOLDED], &'b [u8])> {
        let (near, far) = (vector(by.near), vector(by.far));
        let (blocks, rest) = bytes.as_chunks::<FOLDED_TOGETHER>();
        let (head, blocks) = blocks.split_first()?;
        let mut head = *head;
        head.iter_mut().zip(before.to_le_bytes()).for_each(|(byte, before)| *byte ^= before);
        // Nothing is in front of the first bytes: moving zeros leaves zeros.
        let [mut first, mut second, mut third, mut fourth] = [vector([0, 0]); 4];
        for block in iter::once(&head).chain(blocks) {
            let [one, two, three, four] = block.as_chunks().0 else { continue };
            first = moved_to(first, far, vector_of(one));
            second = moved_to(second, far, vector_of(two));
            third = moved_to(third, far, vector_of(three));
            fourth = moved_to(fourth, far, vector_of(four));
        }
        let mut folded = moved_to(moved_to(moved_to(first, near, second), near, third), near, fourth);
        let (blocks, rest) = rest.as_chunks();
        for bytes in blocks {
            folded = moved_to(folded, near, vector_of(bytes));
        }
        let (low, high) = (_mm_cvtsi128_si64(folded), _mm_cvtsi128_si64(_mm_unpackhi_epi64(folded, folded)));
        let mut result = [0; FOLDED];
        result[..8].copy_from_slice(&low.to_le_bytes());
        result[8..].copy_from_slice(&high.to_le_bytes());
        Some((result, rest))
    }

    /// The lane, moved to the place of `next` and added to it.
    #[target_feature(enable = "pclmulqdq")]
    #[inline]
    fn moved_to(lane: __m128i, multipliers: __m128i, next: __m128i) -> __m128i {
        let first = _mm_clmulepi64_si128::<0x00>(lane, multipliers);
        let second = _mm_clmulepi64_si128::<0x11>(lane, multipliers);
        _mm_xor_si128(_mm_xor_si128(first, second), next)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn vector([low, high]: [u64; 2]) -> __m128i {
        _mm_set_epi64x(high.cast_signed(), low.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn vector_of(bytes: &[u8; FOLDED]) -> __m128i {
        let word = u128::from_le_bytes(*bytes);
        vector([word as u64, (word >> 64) as u64])
    }
}

/// The number of bits that are set.
pub fn count_ones(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(count) = count_with_avx512(bytes).or_else(|| count_with_avx2(bytes)) {
        return count;
    }
    count_portably(bytes)
}

/// The number of bits that are set in many bytes; `None` without AVX512VPOPCNTDQ.
#[cfg(target_arch = "x86_64")]
#[inline]
fn count_with_avx512(bytes: &[u8]) -> Option<u64> {
    (bytes.len() >= avx512::BLOCK && is_x86_feature_detected!("avx512vpopcntdq")).then(|| {
        #[expect(unsafe_code, reason = "a function that needs features is unsafe until they are found")]
        // SAFETY: the processor has AVX512VPOPCNTDQ, and with it AVX512F.
        unsafe {
            avx512::count_ones(bytes)
        }
    })
}

/// The number of bits that are set in many bytes; `None` without AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
fn count_with_avx2(bytes: &[u8]) -> Option<u64> {
    (bytes.len() >= BYTE_BLOCK && has_avx2()).then(|| {
        #[expect(unsafe_code, reason = "a function that needs features is unsafe until they are found")]
        // SAFETY: the processor has AVX2.
        unsafe {
            avx2::count_ones(bytes)
        }
    })
}

fn count_portably(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    in_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// Numbers of six bits that are read together, 24 bytes, and the bytes that they become.
const SIX_BIT_BLOCK: usize = 24;
const BYTE_BLOCK: usize = 32;

/// Raises each of `bytes` to the number of six bits at its place in `packed`, if that is greater. The first number is
/// in the lowest bits of the first byte. Both slices are of whole blocks of 32 numbers.
pub(crate) fn raise_to_six_bits(bytes: &mut [u8], packed: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        #[expect(unsafe_code, reason = "a function that needs features is unsafe until they are found")]
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::raise_to_six_bits(bytes, packed) };
    }
    raise_portably(bytes, packed);
}

fn raise_portably(bytes: &mut [u8], packed: &[u8]) {
    let blocks = bytes.as_chunks_mut::<BYTE_BLOCK>().0.iter_mut();
    for (block, packed) in blocks.zip(packed.as_chunks::<SIX_BIT_BLOCK>().0) {
        for (four, three) in block.as_chunks_mut::<4>().0.iter_mut().zip(packed.as_chunks::<3>().0) {
            let word = u32::from_le_bytes([three[0], three[1], three[2], 0]);
            for (index, byte) in four.iter_mut().enumerate() {
                *byte = (*byte).max((word >> (6 * index)) as u8 & 0x3f);
            }
        }
    }
}

/// Writes numbers of six bits, a byte each, side by side: [`raise_to_six_bits`] reads them. Both slices are of whole
/// blocks of 32 numbers, and no number is above 63.
pub(crate) fn pack_six_bits(packed: &mut [u8], bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        #[expect(unsafe_code, reason = "a function that needs features is unsafe until they are found")]
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::pack_six_bits(packed, bytes) };
    }
    pack_portably(packed, bytes);
}

fn pack_portably(packed: &mut [u8], bytes: &[u8]) {
    for (three, four) in packed.as_chunks_mut::<3>().0.iter_mut().zip(bytes.as_chunks::<4>().0) {
        let word = four.iter().rev().fold(0, |word: u32, byte| word << 6 | u32::from(*byte));
        let [first, second, third, _] = word.to_le_bytes();
        *three = [first, second, third];
    }
}

/// Counts how many bytes are equal to each of `values`. Bytes behind the last whole block of 32 are not counted.
pub(crate) fn count_each<const N: usize>(bytes: &[u8], values: [u8; N]) -> [u32; N] {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        #[expect(unsafe_code, reason = "a function that needs features is unsafe until they are found")]
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::count_each(bytes, values) };
    }
    count_each_portably(bytes, values)
}

fn count_each_portably<const N: usize>(bytes: &[u8], values: [u8; N]) -> [u32; N] {
    let mut totals = [0_u32; N];
    for blocks in bytes.as_chunks::<BYTE_BLOCK>().0.chunks(MAX_COUNTED) {
        let mut counts = [[0_u8; BYTE_BLOCK]; N];
        for block in blocks {
            for (counts, value) in counts.iter_mut().zip(&values) {
                for lane in 0..BYTE_BLOCK {
                    counts[lane] = counts[lane].wrapping_add(u8::from(block[lane] == *value));
                }
            }
        }
        for (total, counts) in totals.iter_mut().zip(&counts) {
            *total = counts.iter().fold(*total, |sum, count| sum.wrapping_add(u32::from(*count)));
        }
    }
    totals
}

/// The most blocks whose equal bytes are counted in one byte for each lane.
const MAX_COUNTED: usize = 255;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_popcnt_epi64, _mm512_reduce_add_epi64, _mm512_setzero_si512,
    };

    use super::count_portably;

    /// The bytes of a vector.
    pub(super) const BLOCK: usize = 64;
    /// The vectors that are counted side by side, so that none waits for the sum of the one before.
    const LANES: usize = 4;

    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub(super) fn count_ones(bytes: &[u8]) -> u64 {
        let (groups, rest) = bytes.as_chunks::<{ LANES * BLOCK }>();
        let (blocks, rest) = rest.as_chunks::<BLOCK>();
        let mut sums = [_mm512_setzero_si512(); LANES];
        for group in groups {
            add_counts(&mut sums, group.as_chunks().0);
        }
        add_counts(&mut sums, blocks);
        let in_vectors = sums.map(|sum| _mm512_reduce_add_epi64(sum).cast_unsigned());
        in_vectors.into_iter().fold(count_portably(rest), u64::wrapping_add)
    }

    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    #[inline]
    fn add_counts(sums: &mut [__m512i; LANES], blocks: &[[u8; BLOCK]]) {
        for (sum, block) in sums.iter_mut().zip(blocks) {
            *sum = _mm512_add_epi64(*sum, _mm512_popcnt_epi64(vector_of(block)));
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn vector_of(bytes: &[u8; BLOCK]) -> __m512i {
        #[expect(unsafe_code, reason = "the safe way into a vector is a lane at a time")]
        // SAFETY: both types have 64 bytes, of which every value is valid.
        unsafe {
            std::mem::transmute(*bytes)
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi8, _mm256_add_epi64, _mm256_and_si256, _mm256_blend_epi16, _mm256_cmpeq_epi8,
        _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_max_epu8, _mm256_or_si256, _mm256_permutevar8x32_epi32,
        _mm256_sad_epu8, _mm256_set_epi64x, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setr_epi8,
        _mm256_setr_epi32, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_srli_epi16,
        _mm256_sub_epi8, _mm256_xor_si256,
    };

    use super::{BYTE_BLOCK, MAX_COUNTED, SIX_BIT_BLOCK, count_portably};

    /// The vectors whose bits are counted before the sums of their bytes, at most 8 for each, are added up.
    const SUMMED: usize = 31;

    /// The blocks whose bits are added up before they are counted, and the bytes from which that is faster.
    const GROUP: usize = 16;
    const MANY: usize = 1 << 13;

    /// Adds up the bits at each place of 16 blocks in binary, by the gates of an adder, so that only the carry of the
    /// highest digit, one vector for 16, has to be counted.
    #[target_feature(enable = "avx2")]
    pub(super) fn count_ones(bytes: &[u8]) -> u64 {
        if bytes.len() < MANY {
            return count_one_by_one(bytes);
        }
        let (groups, rest) = bytes.as_chunks::<{ GROUP * BYTE_BLOCK }>();
        let (mut digits, zero) = ([_mm256_setzero_si256(); 4], _mm256_setzero_si256());
        let mut sixteens = zero;
        for group in groups {
            let [low, high] = group.as_chunks().0 else { continue };
            let carries = (add_eight(&mut digits, low), add_eight(&mut digits, high));
            let carry = add(&mut digits[3], carries.0, carries.1);
            sixteens = _mm256_add_epi64(sixteens, _mm256_sad_epu8(bits_of_bytes(carry), zero));
        }
        let mut count = count_one_by_one(rest).wrapping_add(sum_of_words(sixteens).wrapping_mul(GROUP as u64));
        for (place, digit) in digits.into_iter().enumerate() {
            count = count.wrapping_add(count_portably(&bytes_of(digit)) << place);
        }
        count
    }

    /// Adds two bits to the digit at each place; returns the carries.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(digit: &mut __m256i, one: __m256i, other: __m256i) -> __m256i {
        let either = _mm256_xor_si256(*digit, one);
        let carry = _mm256_or_si256(_mm256_and_si256(*digit, one), _mm256_and_si256(either, other));
        *digit = _mm256_xor_si256(either, other);
        carry
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add_two(digits: &mut [__m256i; 4], [one, other]: [&[u8; BYTE_BLOCK]; 2]) -> __m256i {
        add(&mut digits[0], vector_of(one), vector_of(other))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add_four(digits: &mut [__m256i; 4], [a, b, c, d]: [&[u8; BYTE_BLOCK]; 4]) -> __m256i {
        let carries = (add_two(digits, [a, b]), add_two(digits, [c, d]));
        add(&mut digits[1], carries.0, carries.1)
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add_eight(digits: &mut [__m256i; 4], blocks: &[u8; 8 * BYTE_BLOCK]) -> __m256i {
        let [a, b, c, d, e, f, g, h] = blocks.as_chunks().0 else { return _mm256_setzero_si256() };
        let carries = (add_four(digits, [a, b, c, d]), add_four(digits, [e, f, g, h]));
        add(&mut digits[2], carries.0, carries.1)
    }

    /// The number of bits of each byte, from a table of those of each half byte.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn bits_of_bytes(vector: __m256i) -> __m256i {
        let table = _mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
        );
        let low_halves = _mm256_set1_epi8(0x0f);
        let low = _mm256_and_si256(vector, low_halves);
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(vector), low_halves);
        _mm256_add_epi8(_mm256_shuffle_epi8(table, low), _mm256_shuffle_epi8(table, high))
    }

    #[target_feature(enable = "avx2")]
    fn count_one_by_one(bytes: &[u8]) -> u64 {
        let (blocks, rest) = bytes.as_chunks::<BYTE_BLOCK>();
        let zero = _mm256_setzero_si256();
        let mut sum = zero;
        for blocks in blocks.chunks(SUMMED) {
            let mut bits = zero;
            for block in blocks {
                bits = _mm256_add_epi8(bits, bits_of_bytes(vector_of(block)));
            }
            sum = _mm256_add_epi64(sum, _mm256_sad_epu8(bits, zero));
        }
        count_portably(rest).wrapping_add(sum_of_words(sum))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn sum_of_words(vector: __m256i) -> u64 {
        bytes_of(vector).as_chunks().0.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)))
    }

    /// A lane that is equal is all ones, which is -1.
    #[target_feature(enable = "avx2")]
    pub(super) fn count_each<const N: usize>(bytes: &[u8], values: [u8; N]) -> [u32; N] {
        let (values, zero) = (values.map(|value| _mm256_set1_epi8(value.cast_signed())), _mm256_setzero_si256());
        let mut sums = [zero; N];
        for blocks in bytes.as_chunks::<BYTE_BLOCK>().0.chunks(MAX_COUNTED) {
            let mut counts = [zero; N];
            for block in blocks {
                let vector = vector_of(block);
                for index in 0..N {
                    counts[index] = _mm256_sub_epi8(counts[index], _mm256_cmpeq_epi8(vector, values[index]));
                }
            }
            for index in 0..N {
                sums[index] = _mm256_add_epi64(sums[index], _mm256_sad_epu8(counts[index], zero));
            }
        }
        sums.map(|sum| {
            let words = bytes_of(sum);
            words.as_chunks::<8>().0.iter().fold(0, |sum: u32, word| sum.wrapping_add(u64::from_le_bytes(*word) as u32))
        })
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn raise_to_six_bits(bytes: &mut [u8], packed: &[u8]) {
        let blocks = bytes.as_chunks_mut::<BYTE_BLOCK>().0.iter_mut();
        for (block, packed) in blocks.zip(packed.as_chunks::<SIX_BIT_BLOCK>().0) {
            *block = bytes_of(_mm256_max_epu8(vector_of(block), spread_six_bits(packed)));
        }
    }

    /// The numbers of a block, a byte each: each lane of four gets the two bytes of its first two numbers and those of
    /// its last two, and the numbers of each pair move apart.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn spread_six_bits(packed: &[u8; SIX_BIT_BLOCK]) -> __m256i {
        let words = packed.as_chunks::<8>().0;
        let (low, middle, high) =
            (i64::from_le_bytes(words[0]), i64::from_le_bytes(words[1]), i64::from_le_bytes(words[2]));
        // A shuffle does not cross the halves of a vector, so each half gets the 12 bytes of its numbers.
        let halves = _mm256_set_epi64x(high, middle, middle, low);
        let order = _mm256_setr_epi8(
            0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, //
            4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15,
        );
        let pairs = _mm256_shuffle_epi8(halves, order);
        // The last pair of four begins four bits into its two bytes, the first pair at once.
        let pairs = _mm256_blend_epi16::<0b1010_1010>(pairs, _mm256_srli_epi16::<4>(pairs));
        let first = _mm256_and_si256(pairs, _mm256_set1_epi16(0x3f));
        let second = _mm256_and_si256(_mm256_slli_epi16::<2>(pairs), _mm256_set1_epi16(0x3f << 8));
        _mm256_or_si256(first, second)
    }

    /// Two numbers become one of 12 bits, two of those one of 24, and these move together.
    #[target_feature(enable = "avx2")]
    pub(super) fn pack_six_bits(packed: &mut [u8], bytes: &[u8]) {
        let (pair, four) = (_mm256_set1_epi16(1 << 14 | 1), _mm256_set1_epi32(1 << 28 | 1));
        let order = _mm256_setr_epi8(
            0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, //
            0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
        );
        let halves = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
        let blocks = packed.as_chunks_mut::<SIX_BIT_BLOCK>().0.iter_mut();
        for (packed, block) in blocks.zip(bytes.as_chunks::<BYTE_BLOCK>().0) {
            let fours = _mm256_madd_epi16(_mm256_maddubs_epi16(vector_of(block), pair), four);
            let joined = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(fours, order), halves);
            if let Some(joined) = bytes_of(joined).first_chunk() {
                *packed = *joined;
            }
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn vector_of(bytes: &[u8; BYTE_BLOCK]) -> __m256i {
        #[expect(unsafe_code, reason = "the safe way into a vector is a lane at a time")]
        // SAFETY: both types have 32 bytes, of which every value is valid.
        unsafe {
            std::mem::transmute(*bytes)
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn bytes_of(vector: __m256i) -> [u8; BYTE_BLOCK] {
        #[expect(unsafe_code, reason = "the safe way out of a vector is a lane at a time")]
        // SAFETY: both types have 32 bytes, of which every value is valid.
        unsafe {
            std::mem::transmute(vector)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_are_counted_as_one_by_one(bytes in prop::collection::vec(any::<u8>(), 0..20_000)) {
            let expected = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
            prop_assert_eq!(count_ones(&bytes), expected);
            prop_assert_eq!(count_portably(&bytes), expected);
            #[cfg(target_arch = "x86_64")]
            for count in [count_with_avx512(&bytes), count_with_avx2(&bytes)].into_iter().flatten() {
                prop_assert_eq!(count, expected);
            }
            prop_assert_eq!(count_ones(&[0xff].repeat(bytes.len())), 8 * bytes.len() as u64);
        }

        #[test]
        fn bytes_of_each_value_are_counted_as_one_by_one(
            bytes in prop::collection::vec(0..8_u8, 0..12_000),
            values in any::<[u8; 4]>().prop_map(|values| values.map(|value| value % 8)),
        ) {
            let counted = &bytes[..bytes.len() / BYTE_BLOCK * BYTE_BLOCK];
            let expected = values.map(|value| counted.iter().filter(|byte| **byte == value).count() as u32);
            prop_assert_eq!(count_each(&bytes, values), expected);
            prop_assert_eq!(count_each_portably(&bytes, values), expected);
        }

        #[test]
        fn six_bits_are_read_alike_with_wide_instructions_and_without(
            packed in prop::collection::vec(any::<u8>(), 4 * SIX_BIT_BLOCK),
            bytes in prop::collection::vec(0..64_u8, 4 * BYTE_BLOCK),
        ) {
            let number = |index: usize| {
                (0..6).filter(|bit| packed[(6 * index + bit) / 8] >> ((6 * index + bit) % 8) & 1 == 1)
                    .map(|bit| 1 << bit).sum::<u8>()
            };
            let expected: Vec<u8> = bytes.iter().enumerate().map(|(index, byte)| number(index).max(*byte)).collect();
            let (mut widely, mut portably) = (bytes.clone(), bytes);
            raise_to_six_bits(&mut widely, &packed);
            raise_portably(&mut portably, &packed);
            prop_assert_eq!(&widely, &expected);
            prop_assert_eq!(&portably, &expected);
        }

        #[test]
        fn six_bits_are_written_as_they_are_read(packed in prop::collection::vec(any::<u8>(), 4 * SIX_BIT_BLOCK)) {
            let mut bytes = [0; 4 * BYTE_BLOCK];
            raise_portably(&mut bytes, &packed);
            let (mut widely, mut portably) = ([0; 4 * SIX_BIT_BLOCK], [0; 4 * SIX_BIT_BLOCK]);
            pack_six_bits(&mut widely, &bytes);
            pack_portably(&mut portably, &bytes);
            prop_assert_eq!(&widely[..], &packed[..]);
            prop_assert_eq!(&portably[..], &packed[..]);
        }
    }
}
