//! The longest common subsequence of two strings: bytes that occur in both in the same order, possibly with gaps.
//!
//! If several are equally long, the walk back from the ends decides: equal bytes belong to the sequence; of two equally
//! good steps, the one that drops the second string's last byte is taken. Redis chooses so, and clients can see it.
//!
//! The textbook table of lengths needs a number for each pair of positions. The walk back only needs to know for each
//! pair whether dropping the first string's byte is better, so one bit per pair is stored, and two rows of lengths
//! while the table is filled: a thirtieth of the memory. Cost: O(N*M) time, N*M bits.

/// A longest common subsequence.
#[derive(Debug)]
pub(super) struct Common<'a> {
    one: &'a [u8],
    other: &'a [u8],
    length: u32,
    better_without_one: Bits,
}

/// A run: bytes of the subsequence that are adjacent in both strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The position of its first byte in the one string.
    pub(super) in_one: usize,
    /// The position of its first byte in the other.
    pub(super) in_other: usize,
    /// The length of the subsequence in bytes.
    pub(super) length: usize,
}

impl<'a> Common<'a> {
    /// Computes the longest common subsequence of `one` and `other`. Both are shorter than 2^32 bytes.
    pub(super) fn find(one: &'a [u8], other: &'a [u8]) -> Common<'a> {
        let mut better_without_one = Bits::new(one.len() * other.len());
        // lengths[j] is the length for the first i bytes of one and the first j of other; above is the row before.
        let (mut above, mut lengths) = (vec![0_u32; other.len() + 1], vec![0_u32; other.len() + 1]);
        for (i, byte) in one.iter().enumerate() {
            std::mem::swap(&mut above, &mut lengths);
            for (j, other_byte) in other.iter().enumerate() {
                let (without_one, without_other) = (above[j + 1], lengths[j]);
                lengths[j + 1] = if byte == other_byte { above[j] + 1 } else { without_one.max(without_other) };
                if without_one > without_other {
                    better_without_one.set(i * other.len() + j);
                }
            }
        }
        Common { one, other, length: lengths[other.len()], better_without_one }
    }

    /// The length of the subsequence in bytes.
    pub(super) fn len(&self) -> usize {
        self.length as usize
    }

    /// The bytes of the subsequence.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let runs = self.runs();
        let bytes = runs.iter().rev().flat_map(|run| &self.one[run.in_one..run.in_one + run.length]);
        bytes.copied().collect()
    }

    /// The runs of the subsequence, the last one first.
    pub(super) fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let (mut i, mut j) = (self.one.len(), self.other.len());
        while i > 0 && j > 0 {
            if self.one[i - 1] == self.other[j - 1] {
                match runs.last_mut() {
                    Some(run) if run.in_one == i && run.in_other == j => {
                        *run = Run { in_one: i - 1, in_other: j - 1, length: run.length + 1 };
                    }
                    _ => runs.push(Run { in_one: i - 1, in_other: j - 1, length: 1 }),
                }
                (i, j) = (i - 1, j - 1);
            } else if self.better_without_one.get((i - 1) * self.other.len() + j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        runs
    }
}

/// A row of bits, initially 0.
#[derive(Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Bits {
        Bits(vec![0; count.div_ceil(64)])
    }

    fn set(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn get(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_bytes_are_found_with_their_runs_from_the_end() {
        let common = Common::find(b"ohmytext", b"mynewtext");
        assert_eq!(common.bytes(), b"mytext");
        assert_eq!(common.len(), 6);
        let runs = [Run { in_one: 4, in_other: 5, length: 4 }, Run { in_one: 2, in_other: 0, length: 2 }];
        assert_eq!(common.runs(), runs);
    }

    #[test]
    fn strings_with_nothing_in_common_have_no_run() {
        for (one, other) in [(&b""[..], &b""[..]), (b"a", b""), (b"", b"a"), (b"abc", b"xyz")] {
            let common = Common::find(one, other);
            assert_eq!((common.len(), common.bytes(), common.runs()), (0, vec![], vec![]));
        }
    }

    #[test]
    fn the_common_subsequence_is_a_longest_one() {
        let mut generator = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let mut word = || (0..generator.usize(..9)).map(|_| generator.u8(b'a'..b'd')).collect::<Vec<u8>>();
            let (one, other) = (word(), word());
            let common = Common::find(&one, &other);
            assert_eq!(common.bytes().len(), common.len());
            assert!(is_within(&common.bytes(), &one) && is_within(&common.bytes(), &other));
            let longest = subsequences(&one).filter(|sequence| is_within(sequence, &other)).map(|s| s.len()).max();
            assert_eq!(Some(common.len()), longest);
        }
    }

    fn is_within(sequence: &[u8], word: &[u8]) -> bool {
        let mut rest = word.iter();
        sequence.iter().all(|byte| rest.any(|other| other == byte))
    }

    fn subsequences(word: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        (0..1_u32 << word.len()).map(|mask| {
            let kept = word.iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1);
            kept.map(|(_, &byte)| byte).collect()
        })
    }
}
