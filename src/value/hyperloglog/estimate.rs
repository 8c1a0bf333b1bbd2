//! From registers to a number of elements.
//!
//! Only how many registers hold each value matters. Ertl's estimator is right from one element on to far beyond what
//! can be counted, where the first papers switched between three formulas and corrected them by tables.
//!
//! Source: Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", arXiv:1702.01284, algorithm 6.

use super::{Histogram, MAX, REGISTERS};

/// The constant of infinitely many registers, 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The estimated number of elements for such a histogram of registers.
pub(super) fn count(histogram: &Histogram) -> u64 {
    let all = REGISTERS as f64;
    let share = |registers: f64| registers / all;
    let full = f64::from(histogram[usize::from(MAX)]);
    let mut sum = all * of_full(share(all - full));
    for value in (1..MAX).rev() {
        sum = (sum + f64::from(histogram[usize::from(value)])) * 0.5;
    }
    sum += all * of_empty(share(f64::from(histogram[0])));
    let estimate = (ALPHA * all * all / sum).round();
    // Registers that no elements can have produced may mean more than 63 bits: Redis replies the lowest number then.
    if estimate < i64::MAX as f64 { estimate as u64 } else { 1 << 63 }
}

/// The contribution of the empty registers, `share` of all: x + x^2 + 2 x^4 + 4 x^8 + ...
fn of_empty(share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// The contribution of the registers that are full, all but `share` of them.
fn of_full(share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - root) * (1.0 - root) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}
