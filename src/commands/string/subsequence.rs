//! The longest common subsequence of two strings: bytes that occur in both in the same order, possibly with gaps.
//!
//! If several are equally long, the walk back from the ends decides: equal bytes belong to the sequence; of two equally
//! good steps, the one that drops the second string's last byte is taken. Redis chooses so, and clients can see it.
//!
//! The textbook table holds a length for each pair of prefixes. Lengths in a row grow by 0 or 1 from one column to the
//! next, so a row is stored as bits, and a machine word at a time is computed from the row above: 64 columns with an
//! addition and three logical operations. The walk back counts bits to recover the lengths that it compares.
//!
//! Costs: O(N*M/64) time, and N*M bits for the sequence; its length alone needs one row of M bits.
//!
//! Source: H. Hyyrö, "Bit-parallel LCS-length computation revisited", AWOCA 2004.

/// The length of the longest common subsequence, in bytes.
pub(super) fn common_length(one: &[u8], other: &[u8]) -> usize {
    let columns = Columns::new(one, other);
    let mut row = columns.first_row();
    one.iter().for_each(|byte| columns.advance(&mut row, *byte));
    lengths_up_to(&row, other.len())
}

/// A longest common subsequence.
#[derive(Debug)]
pub(super) struct Common<'a> {
    one: &'a [u8],
    /// Its runs, the last one first.
    runs: Vec<Run>,
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
    /// Computes the longest common subsequence of `one` and `other`.
    pub(super) fn find(one: &'a [u8], other: &'a [u8]) -> Common<'a> {
        let columns = Columns::new(one, other);
        let words = columns.words;
        let mut rows = Vec::with_capacity((one.len() + 1) * words);
        rows.extend(columns.first_row());
        for (index, byte) in one.iter().enumerate() {
            rows.extend_from_within(index * words..);
            columns.advance(&mut rows[(index + 1) * words..], *byte);
        }
        let row = |index: usize| &rows[index * words..(index + 1) * words];
        Common { one, runs: walk_back(one, other, row) }
    }

    /// The length of the subsequence in bytes.
    pub(super) fn len(&self) -> usize {
        self.runs.iter().map(|run| run.length).sum()
    }

    /// The bytes of the subsequence.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let bytes = self.runs.iter().rev().flat_map(|run| &self.one[run.in_one..run.in_one + run.length]);
        bytes.copied().collect()
    }

    /// The runs of the subsequence, the last one first.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }
}

/// The columns in which each byte of the first string occurs in the second one, as bits.
struct Columns {
    /// The number of words of a row.
    words: usize,
    /// The place in `masks` of each byte of the first string.
    places: [Option<u8>; 256],
    masks: Vec<u64>,
}

impl Columns {
    fn new(one: &[u8], other: &[u8]) -> Columns {
        let words = other.len().div_ceil(64);
        let (mut places, mut bytes) = ([None; 256], 0);
        for &byte in one {
            if places[usize::from(byte)].is_none() {
                places[usize::from(byte)] = Some(bytes as u8);
                bytes += 1;
            }
        }
        let mut masks = vec![0; bytes * words];
        for (column, &byte) in other.iter().enumerate() {
            if let Some(place) = places[usize::from(byte)] {
                masks[usize::from(place) * words + column / 64] |= 1 << (column % 64);
            }
        }
        Columns { words, places, masks }
    }

    /// The row of an empty first string: no length grows. A bit is 0 where the length grows by one.
    fn first_row(&self) -> Vec<u64> {
        vec![u64::MAX; self.words]
    }

    /// Turns a row into the next one, whose first string is longer by `byte`.
    fn advance(&self, row: &mut [u64], byte: u8) {
        let Some(place) = self.places[usize::from(byte)] else { return };
        let mask = &self.masks[usize::from(place) * self.words..];
        let mut carry = false;
        for (word, mask) in row.iter_mut().zip(mask) {
            let matching = *word & mask;
            let (sum, first) = word.overflowing_add(matching);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first | second;
            *word = sum | (*word & !mask);
        }
    }
}

/// The length in a column of a row: as many as bits before it are 0.
fn lengths_up_to(row: &[u64], column: usize) -> usize {
    let (whole, rest) = (&row[..column / 64], row.get(column / 64));
    let zeros: u32 = whole.iter().map(|word| word.count_zeros()).sum();
    let in_rest = rest.map_or(0, |word| (!word & !(u64::MAX << (column % 64))).count_ones());
    (zeros + in_rest) as usize
}

/// How much the length grows from a column of a row to the next.
fn growth(row: &[u64], column: usize) -> usize {
    usize::from(row[column / 64] >> (column % 64) & 1 == 0)
}

/// The runs of the sequence from its end to its beginning; `row` returns the row of a prefix of `one`.
fn walk_back<'r>(one: &[u8], other: &[u8], row: impl Fn(usize) -> &'r [u64]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut i, mut j) = (one.len(), other.len());
    // The lengths of the prefixes of i and j bytes, and of those of i - 1 and j bytes.
    let mut length = lengths_up_to(row(i), j);
    let mut above = lengths_up_to(row(i.saturating_sub(1)), j);
    while length > 0 {
        let (current, previous) = (row(i), row(i - 1));
        let before = length - growth(current, j - 1);
        if one[i - 1] == other[j - 1] {
            (i, j, length) = (i - 1, j - 1, length - 1);
            match runs.last_mut() {
                Some(run) if run.in_one == i + 1 && run.in_other == j + 1 => {
                    *run = Run { in_one: i, in_other: j, length: run.length + 1 };
                }
                _ => runs.push(Run { in_one: i, in_other: j, length: 1 }),
            }
            above = lengths_up_to(row(i.saturating_sub(1)), j);
        } else if above > before {
            (i, length) = (i - 1, above);
            above = lengths_up_to(row(i.saturating_sub(1)), j);
        } else {
            (j, length) = (j - 1, before);
            above -= growth(previous, j);
        }
    }
    runs
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
        assert_eq!((common.runs(), common_length(b"ohmytext", b"mynewtext")), (&runs[..], 6));
    }

    #[test]
    fn strings_with_nothing_in_common_have_no_run() {
        for (one, other) in [(&b""[..], &b""[..]), (b"a", b""), (b"", b"a"), (b"abc", b"xyz")] {
            let common = Common::find(one, other);
            assert_eq!((common.len(), common.bytes(), common.runs()), (0, vec![], &[][..]));
            assert_eq!(common_length(one, other), 0);
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

    /// The walk through the textbook table of lengths.
    fn runs_by_table(one: &[u8], other: &[u8]) -> Vec<Run> {
        let mut lengths = vec![vec![0_usize; other.len() + 1]; one.len() + 1];
        for i in 1..=one.len() {
            for j in 1..=other.len() {
                let is_equal = one[i - 1] == other[j - 1];
                let longest = lengths[i - 1][j].max(lengths[i][j - 1]);
                lengths[i][j] = if is_equal { lengths[i - 1][j - 1] + 1 } else { longest };
            }
        }
        let (mut i, mut j, mut runs) = (one.len(), other.len(), Vec::<Run>::new());
        while i > 0 && j > 0 {
            if one[i - 1] == other[j - 1] {
                (i, j) = (i - 1, j - 1);
                match runs.last_mut() {
                    Some(run) if (run.in_one, run.in_other) == (i + 1, j + 1) => {
                        *run = Run { in_one: i, in_other: j, length: run.length + 1 };
                    }
                    _ => runs.push(Run { in_one: i, in_other: j, length: 1 }),
                }
            } else if lengths[i - 1][j] > lengths[i][j - 1] {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        runs
    }

    #[test]
    fn runs_are_those_of_the_walk_through_the_table_of_lengths() {
        let mut generator = fastrand::Rng::with_seed(8);
        for round in 0..400 {
            let most = if round % 8 == 0 { 300 } else { 70 };
            let letters = generator.u8(1..6);
            let mut word = || (0..generator.usize(..most)).map(|_| generator.u8(..letters)).collect::<Vec<u8>>();
            let (one, other) = (word(), word());
            let common = Common::find(&one, &other);
            assert_eq!(common.runs(), runs_by_table(&one, &other), "{one:?} {other:?}");
            assert_eq!(common_length(&one, &other), common.len());
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
