//! Chance in scripts: numbers as `math.random` of Redis gives them for the same seed.
//!
//! It is the linear congruence of `lrand48`, which POSIX defines.

/// A row of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drand48 {
    state: u64,
}

const BITS: u64 = (1 << 48) - 1;
/// Numbers are below this, of which a part is taken.
const LARGEST: u64 = i32::MAX as u64;

impl Drand48 {
    /// The row that begins with a seed, of which 32 bits count.
    pub fn of(seed: u64) -> Drand48 {
        Drand48 { state: ((seed & 0xffff_ffff) << 16) | 0x330e }
    }

    /// The next number, from 0 to below 1.
    pub fn next_f64(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & BITS;
        ((self.state >> 17) % LARGEST) as f64 / LARGEST as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_numbers_that_it_gives_in_redis() {
        assert_eq!((Drand48::of(5).next_f64() * 100_000.0).floor() + 1.0, 52_484.0);
    }
}
