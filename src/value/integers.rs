//! A sorted set of integers, each in as few bytes as the widest of them needs: 2, 4 or 8.
//!
//! It knows no limit. A wide number widens all; the width never gets smaller, as in Redis.
//!
//! - Invariant: numbers ascend, so no two are equal.
//! - Memory: the width per number, and nothing to spare.
//!
//! Costs: look-up O(log n); a change moves the numbers behind its position, and reallocates for one number more or
//! less.

/// A sorted set of numbers.
#[derive(Clone, Debug)]
pub(super) enum Integers {
    Narrow(Box<[i16]>),
    Middle(Box<[i32]>),
    Wide(Box<[i64]>),
}

/// Runs the same code for each width.
macro_rules! each {
    ($integers:expr, $numbers:ident => $code:expr) => {
        match $integers {
            Integers::Narrow($numbers) => $code,
            Integers::Middle($numbers) => $code,
            Integers::Wide($numbers) => $code,
        }
    };
}

impl Default for Integers {
    fn default() -> Integers {
        Integers::Narrow(Box::default())
    }
}

impl Integers {
    /// The set of numbers of `width` bytes each, low byte first; `None` if they do not ascend, or there is no such
    /// width.
    pub(super) fn from_bytes(width: usize, bytes: &[u8]) -> Option<Integers> {
        match width {
            2 => ascending(bytes.as_chunks(), i16::from_le_bytes).map(Integers::Narrow),
            4 => ascending(bytes.as_chunks(), i32::from_le_bytes).map(Integers::Middle),
            8 => ascending(bytes.as_chunks(), i64::from_le_bytes).map(Integers::Wide),
            _ => None,
        }
    }

    /// The set of some numbers that differ.
    pub(super) fn of(mut numbers: Vec<i64>) -> Integers {
        numbers.sort_unstable();
        let narrow = narrowed(&numbers).map(Integers::Narrow);
        narrow.or_else(|| narrowed(&numbers).map(Integers::Middle)).unwrap_or_else(|| Integers::Wide(numbers.into()))
    }

    /// Appends the numbers as [`Integers::from_bytes`] reads them.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.memory(), 0);
        let target = &mut out[start..];
        match self {
            Integers::Narrow(numbers) => fill(target.as_chunks_mut(), numbers, i16::to_le_bytes),
            Integers::Middle(numbers) => fill(target.as_chunks_mut(), numbers, i32::to_le_bytes),
            Integers::Wide(numbers) => fill(target.as_chunks_mut(), numbers, i64::to_le_bytes),
        }
    }

    /// The number of bytes that each number takes.
    pub(super) fn width(&self) -> usize {
        match self {
            Integers::Narrow(_) => 2,
            Integers::Middle(_) => 4,
            Integers::Wide(_) => 8,
        }
    }

    pub(super) fn len(&self) -> usize {
        each!(self, numbers => numbers.len())
    }

    pub(super) fn memory(&self) -> usize {
        each!(self, numbers => size_of_val(&**numbers))
    }

    /// The number at a position that exists; position 0 has the least.
    pub(super) fn get(&self, position: usize) -> i64 {
        each!(self, numbers => at(numbers, position))
    }

    pub(super) fn contains(&self, number: i64) -> bool {
        each!(self, numbers => search(numbers, number)).is_ok()
    }

    /// The length of the longest number in decimal digits.
    pub(super) fn longest(&self) -> usize {
        let ends = [0, self.len().saturating_sub(1)];
        let digits = |position: usize| itoa::Buffer::new().format(self.get(position)).len();
        ends.into_iter().filter(|&position| position < self.len()).map(digits).max().unwrap_or(0)
    }

    /// Inserts a number; returns whether it is new.
    pub(super) fn insert(&mut self, number: i64) -> bool {
        match self {
            Integers::Narrow(numbers) => match i16::try_from(number) {
                Ok(number) => return put(numbers, number),
                Err(_) if i32::try_from(number).is_ok() => *self = Integers::Middle(widened(numbers)),
                Err(_) => *self = Integers::Wide(widened(numbers)),
            },
            Integers::Middle(numbers) => match i32::try_from(number) {
                Ok(number) => return put(numbers, number),
                Err(_) => *self = Integers::Wide(widened(numbers)),
            },
            Integers::Wide(numbers) => return put(numbers, number),
        }
        self.insert(number)
    }

    /// Removes a number; returns whether it was in the set.
    pub(super) fn remove(&mut self, number: i64) -> bool {
        each!(self, numbers => {
            let found = search(numbers, number);
            if let Ok(position) = found {
                let mut owned = std::mem::take(numbers).into_vec();
                owned.remove(position);
                *numbers = owned.into_boxed_slice();
            }
            found.is_ok()
        })
    }

    /// All numbers, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = i64> + Clone {
        (0..self.len()).map(|position| self.get(position))
    }

    /// Panics unless the invariant holds.
    pub(super) fn check(&self) {
        assert!(self.iter().zip(self.iter().skip(1)).all(|(a, b)| a < b), "numbers must ascend");
    }
}

/// The numbers in fewer bytes each; `None` if one needs more.
fn narrowed<T: TryFrom<i64>>(numbers: &[i64]) -> Option<Box<[T]>> {
    let mut narrow = Vec::with_capacity(numbers.len());
    for number in numbers {
        narrow.push(T::try_from(*number).ok()?);
    }
    Some(narrow.into())
}

/// The numbers in some chunks; `None` if they do not ascend, or bytes are left over.
fn ascending<T: Copy + Ord, const N: usize>(
    (chunks, rest): (&[[u8; N]], &[u8]),
    read: impl Fn([u8; N]) -> T,
) -> Option<Box<[T]>> {
    let numbers: Box<[T]> = chunks.iter().map(|chunk| read(*chunk)).collect();
    // All pairs are compared, not only those before a wrong one, so that many are at a time.
    let next = numbers.get(1..).unwrap_or_default();
    let ascend = numbers.iter().zip(next).fold(true, |ascend, (number, next)| ascend & (number < next));
    (ascend && rest.is_empty()).then_some(numbers)
}

fn fill<T: Copy, const N: usize>(
    (chunks, _): (&mut [[u8; N]], &mut [u8]),
    numbers: &[T],
    write: impl Fn(T) -> [u8; N],
) {
    chunks.iter_mut().zip(numbers).for_each(|(chunk, number)| *chunk = write(*number));
}

fn at<T: Copy + Into<i64>>(numbers: &[T], position: usize) -> i64 {
    numbers[position].into()
}

/// The position of a number, or else the position to insert it at.
fn search<T: Copy + Into<i64>>(numbers: &[T], number: i64) -> Result<usize, usize> {
    match numbers.last() {
        Some(&last) if last.into() < number => Err(numbers.len()),
        _ => numbers.binary_search_by_key(&number, |&other| other.into()),
    }
}

fn put<T: Copy + Into<i64>>(numbers: &mut Box<[T]>, number: T) -> bool {
    let Err(position) = search(numbers, number.into()) else { return false };
    let mut owned = std::mem::take(numbers).into_vec();
    owned.reserve_exact(1);
    owned.insert(position, number);
    *numbers = owned.into_boxed_slice();
    true
}

fn widened<N: Copy, W: From<N>>(numbers: &[N]) -> Box<[W]> {
    numbers.iter().map(|&number| number.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn one_wide_number_widens_all_numbers() {
        let mut integers = Integers::default();
        for (number, width) in [(7, 2), (-32_768, 2), (32_768, 4), (-2_147_483_649, 8), (1, 8)] {
            assert!(integers.insert(number));
            assert!(!integers.insert(number));
            integers.check();
            assert_eq!(integers.memory(), integers.len() * width);
        }
        assert_eq!(integers.iter().collect::<Vec<_>>(), [-2_147_483_649, -32_768, 1, 7, 32_768]);
        assert_eq!(integers.longest(), 11);
    }

    #[test]
    fn numbers_that_do_not_ascend_or_have_a_strange_width_are_refused() {
        let bytes = |numbers: &[i32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        assert!(Integers::from_bytes(4, &bytes(&[-70_000, 0, 5])).is_some());
        for (width, bytes) in [
            (4, bytes(&[0, 5, 5])),
            (4, bytes(&[6, 5])),
            (4, bytes(&[5])[..3].to_vec()),
            (3, bytes(&[5])),
            (0, Vec::new()),
        ] {
            assert!(Integers::from_bytes(width, &bytes).is_none(), "{width}: {bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn a_set_of_integers_holds_the_numbers_of_a_model(
            steps in prop::collection::vec((any::<bool>(), any::<i64>(), 0..64_u32), 0..99),
        ) {
            let (mut integers, mut model) = (Integers::default(), BTreeSet::new());
            for (insert, number, shift) in steps {
                let number = number >> shift;
                if insert {
                    prop_assert_eq!(integers.insert(number), model.insert(number));
                } else {
                    prop_assert_eq!(integers.remove(number), model.remove(&number));
                }
                integers.check();
                prop_assert!(integers.iter().eq(model.iter().copied()));
                let mut bytes = vec![7];
                integers.append_to(&mut bytes);
                let read = Integers::from_bytes(integers.width(), &bytes[1..]).expect("they ascend");
                prop_assert_eq!(read.width(), integers.width());
                prop_assert!(read.iter().eq(integers.iter()));
                prop_assert!(!model.iter().any(|&number| !integers.contains(number)));
            }
        }
    }
}
