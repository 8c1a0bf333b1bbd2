//! Cells of the map: all places that begin with the same bits.

use super::{LATITUDES, LONGITUDES, Position, STEPS};

/// A cell: its steps north and east when both directions are cut into 2^steps. At the eastern and the northern end of
/// the map a position is on a step behind the last, in a cell of no width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    north: u32,
    east: u32,
    steps: u32,
}

/// The bounds of a cell, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

impl Cell {
    /// The cell that contains a position of the map.
    pub(super) fn of(position: Position, steps: u32) -> Cell {
        let north = LATITUDES.step(position.latitude, steps);
        Cell { north, east: LONGITUDES.step(position.longitude, steps), steps }
    }

    pub(super) fn of_bits(bits: u64, steps: u32) -> Cell {
        Cell { north: gathered(bits), east: gathered(bits >> 1), steps }
    }

    /// The cell that is that many cells north and east of this one; the map is cyclic in both directions.
    pub(super) fn moved(self, north: i32, east: i32) -> Cell {
        let last = (1 << self.steps) - 1;
        let moved = |step: u32, by: i32| if by == 0 { step } else { step.wrapping_add_signed(by) & last };
        Cell { north: moved(self.north, north), east: moved(self.east, east), ..self }
    }

    /// The lowest score of the cell.
    pub fn first_score(self) -> u64 {
        interleaved(self.north, self.east) << (2 * (STEPS - self.steps))
    }

    /// The lowest score behind the cell.
    pub fn end_score(self) -> u64 {
        (interleaved(self.north, self.east) + 1) << (2 * (STEPS - self.steps))
    }

    pub(super) fn bounds(self) -> Bounds {
        Bounds {
            west: LONGITUDES.at(self.east, self.steps),
            east: LONGITUDES.at(self.east.wrapping_add(1), self.steps),
            south: LATITUDES.at(self.north, self.steps),
            north: LATITUDES.at(self.north.wrapping_add(1), self.steps),
        }
    }

    pub(super) fn middle(self) -> Position {
        let Bounds { west, east, south, north } = self.bounds();
        Position {
            longitude: ((west + east) / 2.0).clamp(LONGITUDES.min, LONGITUDES.max),
            latitude: ((south + north) / 2.0).clamp(LATITUDES.min, LATITUDES.max),
        }
    }
}

/// Interleaves the bits of two numbers: those of the first at the even positions.
pub(super) fn interleaved(even: u32, odd: u32) -> u64 {
    scattered(even) | scattered(odd) << 1
}

const SPREADS: [(u32, u64); 5] = [
    (16, 0x0000_ffff_0000_ffff),
    (8, 0x00ff_00ff_00ff_00ff),
    (4, 0x0f0f_0f0f_0f0f_0f0f),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];

/// Moves the bits of a number to the even positions: halves, quarters and so on move apart.
fn scattered(bits: u32) -> u64 {
    SPREADS.iter().fold(u64::from(bits), |bits, (by, mask)| (bits | bits << by) & mask)
}

/// The number whose bits are at the even positions.
fn gathered(bits: u64) -> u32 {
    let pairs = SPREADS.iter().rev().fold(bits, |bits, (by, mask)| {
        let kept = bits & mask;
        kept | kept >> by
    });
    pairs as u32
}

#[cfg(test)]
mod tests {
    use super::super::tests::positions;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn interleaved_bits_can_be_separated_again(even: u32, odd: u32) {
            let bits = interleaved(even, odd);
            prop_assert_eq!((gathered(bits), gathered(bits >> 1)), (even, odd));
        }

        #[test]
        fn a_position_is_in_its_cell_and_its_score_in_the_range_of_the_cell(position in positions(), steps in 1..=STEPS) {
            let cell = Cell::of(position, steps);
            let Bounds { west, east, south, north } = cell.bounds();
            prop_assert!(west <= position.longitude && position.longitude < east);
            prop_assert!(south <= position.latitude && position.latitude < north);
            let score = position.score() as u64;
            prop_assert!(cell.first_score() <= score && score < cell.end_score());
        }

        #[test]
        fn a_step_to_a_neighbour_and_back_returns_to_the_cell(
            position in positions(),
            steps in 1..=STEPS,
            north in -1..=1,
            east in -1..=1,
        ) {
            let cell = Cell::of(position, steps);
            prop_assert_eq!(cell.moved(north, east).moved(-north, -east), cell);
        }
    }
}
