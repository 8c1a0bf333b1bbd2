//! Random numbers of scripts: the numbers of `math.random` in Redis for the same seed.
//!
//! The generator is the linear congruence of `lrand48`, which POSIX defines.

/// A sequence of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drand48 {
    state: u64,
}

const BITS: u64 = (1 << 48) - 1;
/// The upper bound of the numbers, which are scaled to a fraction of it.
const LARGEST: u64 = i32::MAX as u64;

impl Drand48 {
    /// The sequence for a seed, of which 32 bits count.
    pub fn of(seed: u64) -> Drand48 {
        Drand48 { state: ((seed & 0xffff_ffff) << 16) | 0x330e }
    }

    /// The next number: at least 0, and less than 1.
    pub fn next_f64(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & BITS;
        ((self.state >> 17) % LARGEST) as f64 / LARGEST as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_random_numbers_as_in_redis() {
        assert_eq!((Drand48::of(5).next_f64() * 100_000.0).floor() + 1.0, 52_484.0);
    }
}
