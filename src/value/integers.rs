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
    /// The set of numbers, which must ascend, each in at least `width` bytes.
    pub(super) fn of(width: usize, numbers: &[i64]) -> Integers {
        debug_assert!(numbers.is_sorted_by(|a, b| a < b), "numbers must ascend");
        let fits = |most: i64| numbers.iter().all(|&number| (-most - 1..=most).contains(&number));
        if width <= 2 && fits(i16::MAX.into()) {
            Integers::Narrow(numbers.iter().map(|&number| number as i16).collect())
        } else if width <= 4 && fits(i32::MAX.into()) {
            Integers::Middle(numbers.iter().map(|&number| number as i32).collect())
        } else {
            Integers::Wide(numbers.into())
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
                prop_assert!(!model.iter().any(|&number| !integers.contains(number)));
            }
        }
    }
}
