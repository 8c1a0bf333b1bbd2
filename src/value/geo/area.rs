//! Areas to search in: a circle or a box around a position.
//!
//! An area is covered by the cell of its center and the eight cells around it: small enough that few positions
//! outside are checked, and large enough that none inside is missed. An unsorted search replies in the order of the
//! cells.
//!
//! A box is as many metres wide at its center's latitude as at any other: its sides are measured along the latitude
//! of the position that is tested.

use super::cell::{Bounds, Cell};
use super::{DEGREE, EARTH_M, Position};

/// The shape of an area, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// All positions within a radius.
    Circle {
        /// The radius.
        radius_m: f64,
    },
    /// A box whose sides run along the directions of the compass.
    Box {
        /// The extent from west to east.
        width_m: f64,
        /// The extent from south to north.
        height_m: f64,
    },
}

/// A shape around a position on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// The center of the area.
    pub center: Position,
    /// The shape around it.
    pub shape: Shape,
}

/// Half the length of the equator on the Mercator map.
const MAP_M: f64 = 20_037_726.37;
/// The neighbours of a cell, in the order in which they are searched: north and east.
const AROUND: [(i32, i32); 8] = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)];

impl Area {
    /// The distance of a position from the center, in metres, if it is in the area.
    pub fn distance_m(&self, position: Position) -> Option<f64> {
        match self.shape {
            Shape::Circle { radius_m } => self.center.distance_within_m(position, radius_m),
            Shape::Box { width_m, height_m } => {
                let beside = Position { longitude: self.center.longitude, ..position };
                let is_within = position.north_south_m(self.center) <= height_m / 2.0
                    && position.distance_within_m(beside, width_m / 2.0).is_some();
                is_within.then(|| self.center.distance_m(position))
            }
        }
    }

    /// The cells to search, each once.
    pub fn cells(&self) -> Vec<Cell> {
        let bounds = self.bounds();
        let mut steps = self.steps();
        let mut center = Cell::of(self.center, steps);
        if steps > 1 && !reaches(center, &bounds) {
            steps -= 1;
            center = Cell::of(self.center, steps);
        }
        let own = center.bounds();
        // Where a cell reaches beyond the area in one direction, its neighbour in that direction has nothing to find.
        let is_useless = |(north, east): (i32, i32)| {
            steps >= 2
                && (north < 0 && own.south < bounds.south
                    || north > 0 && own.north > bounds.north
                    || east < 0 && own.west < bounds.west
                    || east > 0 && own.east > bounds.east)
        };
        let mut cells = vec![center];
        for (north, east) in AROUND.into_iter().filter(|way| !is_useless(*way)) {
            let cell = center.moved(north, east);
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells
    }

    /// The steps per direction for cells that are about as large as the area.
    fn steps(&self) -> u32 {
        let mut reach_m = match self.shape {
            Shape::Circle { radius_m } => radius_m,
            Shape::Box { width_m, height_m } => {
                ((width_m / 2.0) * (width_m / 2.0) + (height_m / 2.0) * (height_m / 2.0)).sqrt()
            }
        };
        if reach_m == 0.0 {
            return super::STEPS;
        }
        let mut steps = 1i32;
        while reach_m < MAP_M {
            reach_m *= 2.0;
            steps += 1;
        }
        // The map stretches areas near the poles.
        let stretched = [66.0, 80.0].into_iter().filter(|latitude| self.center.latitude.abs() > *latitude).count();
        (steps - 2 - stretched as i32).clamp(1, super::STEPS as i32).cast_unsigned()
    }

    /// The bounds of the area in degrees, as wide as where it is widest.
    fn bounds(&self) -> Bounds {
        let (width_m, height_m) = match self.shape {
            Shape::Circle { radius_m } => (radius_m, radius_m),
            Shape::Box { width_m, height_m } => (width_m / 2.0, height_m / 2.0),
        };
        let Position { longitude, latitude } = self.center;
        let rise = height_m / EARTH_M / DEGREE;
        let farthest = if latitude < 0.0 { latitude - rise } else { latitude + rise };
        let reach = width_m / EARTH_M / (farthest * DEGREE).cos() / DEGREE;
        Bounds { west: longitude - reach, east: longitude + reach, south: latitude - rise, north: latitude + rise }
    }
}

/// Whether a cell and those around it reach as far as the area in all directions.
fn reaches(center: Cell, bounds: &Bounds) -> bool {
    !(center.moved(1, 0).bounds().north < bounds.north
        || center.moved(-1, 0).bounds().south > bounds.south
        || center.moved(0, 1).bounds().east < bounds.east
        || center.moved(0, -1).bounds().west > bounds.west)
}

#[cfg(test)]
mod tests {
    use super::super::tests::positions;
    use super::*;
    use proptest::prelude::*;

    fn is_covered(area: &Area, position: Position) -> bool {
        let score = position.score() as u64;
        area.cells().iter().any(|cell| cell.first_score() <= score && score < cell.end_score())
    }

    fn shapes() -> impl Strategy<Value = Shape> {
        let length = || (0.0..25.0f64).prop_map(f64::exp2);
        prop_oneof![
            length().prop_map(|radius_m| Shape::Circle { radius_m }),
            (length(), length()).prop_map(|(width_m, height_m)| Shape::Box { width_m, height_m }),
        ]
    }

    proptest! {
        #[test]
        fn no_cell_is_searched_twice(center in positions(), shape in shapes()) {
            let mut firsts: Vec<u64> = Area { center, shape }.cells().into_iter().map(Cell::first_score).collect();
            firsts.sort_unstable();
            let count = firsts.len();
            firsts.dedup();
            prop_assert_eq!(firsts.len(), count);
        }

        #[test]
        fn a_near_position_away_from_the_poles_is_in_a_searched_cell(
            center in (-120.0..120.0, -60.0..60.0), east in -1.0..1.0f64, north in -1.0..1.0f64, reach in 1.0..20.0f64,
        ) {
            let center = Position { longitude: center.0, latitude: center.1 };
            let radius_m = reach.exp2();
            let degrees = radius_m / EARTH_M / DEGREE;
            let position = Position {
                longitude: center.longitude + east * degrees,
                latitude: center.latitude + north * degrees,
            };
            let area = Area { center, shape: Shape::Circle { radius_m } };
            prop_assert!(area.distance_m(position).is_none() || is_covered(&area, position));
        }

        #[test]
        fn every_shape_has_one_to_nine_cells(center in positions(), one: f64, other: f64) {
            let (one, other) = (one.abs(), other.abs());
            for shape in [Shape::Circle { radius_m: one }, Shape::Box { width_m: one, height_m: other }] {
                let area = Area { center, shape };
                prop_assert!((1..=9).contains(&area.cells().len()));
            }
        }
    }

    #[test]
    fn a_circle_of_infinite_radius_covers_the_whole_map() {
        let center = Position { longitude: 10.0, latitude: 10.0 };
        let area = Area { center, shape: Shape::Circle { radius_m: f64::INFINITY } };
        assert_eq!(area.cells().len(), 4);
        assert!(area.distance_m(Position { longitude: -170.0, latitude: -10.0 }).is_some());
    }
}
