//! Positions on earth as scores: what is near on the map mostly has scores that are near.
//!
//! Longitude and latitude are cut into 2^26 steps each, and the bits of both numbers are interleaved: 52 bits, which
//! a double holds exactly, so a sorted set keeps positions as scores. A [`Cell`] is all positions that begin with the
//! same bits, a range of scores; an [`Area`] to search in is up to nine cells and a test of each position in them.
//!
//! Latitudes end at 85 degrees, where the Mercator map does. Distances are on a sphere, by the haversine formula. The
//! arithmetic is Redis's, operation by operation, because its replies show the last digit of the result.
//!
//! Sources: Gustavo Niemeyer's geohash; the replies of Redis 8.0.6.

mod area;
mod cell;
pub mod nearest;

pub use area::{Area, Shape};
pub use cell::Cell;

/// The steps, per direction, of a position as exact as a score.
const STEPS: u32 = 26;
const LONGITUDES: Span = Span { min: -180.0, max: 180.0 };
const LATITUDES: Span = Span { min: -85.051_128_78, max: 85.051_128_78 };
const POLES: Span = Span { min: -90.0, max: 90.0 };
/// The radius of the sphere.
const EARTH_M: f64 = 6_372_797.560_856;
/// The factor by which a lower bound of a distance must exceed the limit to rule a position out; rounding errors are
/// far smaller.
const ROUNDING: f64 = 1.0 + 1e-6;
/// One degree in radians.
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// A position on earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Longitude: degrees east of Greenwich.
    pub longitude: f64,
    /// Latitude: degrees north of the equator.
    pub latitude: f64,
}

/// A range of numbers, from `min` to `max`.
#[derive(Clone, Copy, Debug)]
struct Span {
    min: f64,
    max: f64,
}

impl Span {
    fn contains(self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    /// The step that contains a number; the end of the span is a step of its own behind the last.
    fn step(self, value: f64, steps: u32) -> u32 {
        let share = (value - self.min) / (self.max - self.min);
        (share * (1u64 << steps) as f64) as u32
    }

    /// The number at which a step begins.
    fn at(self, step: u32, steps: u32) -> f64 {
        self.min + f64::from(step) / (1u64 << steps) as f64 * (self.max - self.min)
    }
}

impl Position {
    /// Whether the position is on the map.
    pub fn is_valid(self) -> bool {
        LONGITUDES.contains(self.longitude) && LATITUDES.contains(self.latitude)
    }

    /// The score of a position that is on the map.
    pub fn score(self) -> f64 {
        self.bits() as f64
    }

    /// The score before it is rounded to a double: at the eastern edge of the map it has more than 53 bits.
    pub fn bits(self) -> u64 {
        Cell::of(self, STEPS).first_score()
    }

    /// The middle of the smallest cell that a score stands for. Every score stands for one: those that no position
    /// has are cut to 64 bits as a processor does it, the even bits of which are used as a latitude, the odd ones as
    /// a longitude.
    pub fn of_score(score: f64) -> Position {
        Cell::of_bits(whole_bits(score), STEPS).middle()
    }

    /// The distance to another position, in metres.
    pub fn distance_m(self, to: Position) -> f64 {
        self.distance_within_m(to, f64::INFINITY).unwrap_or(f64::INFINITY)
    }

    /// The distance to another position, in metres, if it is at most `most_m`. A position that is much farther away is
    /// rejected early, by two lower bounds: the distance along the meridian, and the straight line through the earth.
    pub fn distance_within_m(self, to: Position, most_m: f64) -> Option<f64> {
        let is_beyond = |shorter_m: f64| shorter_m > most_m * ROUNDING;
        let mut distance_m = self.north_south_m(to);
        if is_beyond(distance_m) {
            return None;
        }
        let half_sine = ((to.longitude * DEGREE - self.longitude * DEGREE) / 2.0).sin();
        if half_sine != 0.0 {
            let (latitude, other) = (self.latitude * DEGREE, to.latitude * DEGREE);
            let rise = ((other - latitude) / 2.0).sin();
            let haversine = rise * rise + latitude.cos() * other.cos() * half_sine * half_sine;
            // Rounding beyond 1, as for opposite ends of the earth, would have no arc sine.
            let half_line = haversine.sqrt().min(1.0);
            if is_beyond(2.0 * EARTH_M * half_line) {
                return None;
            }
            distance_m = 2.0 * EARTH_M * half_line.asin();
        }
        (distance_m <= most_m).then_some(distance_m)
    }

    /// The distance to the other's latitude, in metres.
    fn north_south_m(self, to: Position) -> f64 {
        EARTH_M * (to.latitude * DEGREE - self.latitude * DEGREE).abs()
    }

    /// The geohash in letters, in the usual form, for which latitudes go from pole to pole. The last letter carries
    /// no information, as 52 bits are ten letters of five bits and two more bits.
    pub fn geohash(self) -> [u8; 11] {
        const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let latitude = POLES.step(self.latitude, STEPS);
        let bits = cell::interleaved(latitude, LONGITUDES.step(self.longitude, STEPS));
        std::array::from_fn(|index| match index {
            10 => LETTERS[0],
            _ => LETTERS[(bits >> (47 - 5 * index) & 0x1f) as usize],
        })
    }
}

/// A double cut to 64 bits: the result of x86-64 where C leaves it undefined.
fn whole_bits(score: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    match score {
        score if score < HALF => (score as i64).cast_unsigned(),
        score if score < 2.0 * HALF => (score - HALF) as u64 ^ 1 << 63,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn positions() -> impl Strategy<Value = Position> {
        (-180.0..=180.0, -85.051_128_78..=85.051_128_78)
            .prop_map(|(longitude, latitude)| Position { longitude, latitude })
    }

    const PALERMO: Position = Position { longitude: 13.361_389, latitude: 38.115_556 };
    const CATANIA: Position = Position { longitude: 15.087_269, latitude: 37.502_669 };

    /// Expected: GEOADD and GEOHASH of Redis 8.0.6.
    #[test]
    fn positions_have_the_scores_and_geohashes_of_redis() {
        assert_eq!(PALERMO.score(), 3_479_099_956_230_698.0);
        assert_eq!(CATANIA.score(), 3_479_447_370_796_909.0);
        assert_eq!(&Position::of_score(PALERMO.score()).geohash(), b"sqc8b49rny0");
        assert_eq!(Position { longitude: 180.0, latitude: 10.0 }.score(), 10_138_940_401_276_180.0);
    }

    #[test]
    fn a_distance_is_that_of_the_great_circle() {
        let distance_m = Position::of_score(PALERMO.score()).distance_m(Position::of_score(CATANIA.score()));
        assert!((distance_m - 166_274.151_6).abs() < 0.0001, "{distance_m}");
        let west = Position { longitude: -180.0, latitude: 0.0 };
        assert!(west.distance_m(Position { longitude: 180.0, ..west }) < 1e-6);
    }

    #[test]
    fn every_score_decodes_to_a_valid_position() {
        for score in [f64::NEG_INFINITY, -1e300, -1.5, -0.0, 1e300, 9.3e18, 1.8e19, 2e19, f64::INFINITY] {
            assert!(Position::of_score(score).is_valid(), "{score}");
        }
    }

    proptest! {
        #[test]
        fn a_position_is_stored_to_less_than_a_metre(position in positions()) {
            let kept = Position::of_score(position.score());
            prop_assert!(position.distance_m(kept) < 1.0);
            prop_assert_eq!(kept.score(), position.score());
        }

        #[test]
        fn a_distance_is_found_within_itself_and_within_more_but_not_within_less(
            one in positions(), other in positions(), nearness in 0.0..1.0f64, more in 0.0..2.0f64,
        ) {
            let between = |from: f64, to: f64| from + (to - from) * nearness.powi(8);
            let to = Position {
                longitude: between(one.longitude, other.longitude),
                latitude: between(one.latitude, other.latitude),
            };
            let distance_m = one.distance_m(to);
            for most_m in [distance_m, distance_m.next_up(), distance_m.next_down(), distance_m * more] {
                prop_assert_eq!(one.distance_within_m(to, most_m), (distance_m <= most_m).then_some(distance_m));
            }
        }

        #[test]
        fn every_distance_is_a_number_of_at_most_half_the_earth(one in positions(), other in positions()) {
            let longitude = one.longitude.signum() * -180.0 + one.longitude;
            let opposite = Position { longitude, latitude: -one.latitude };
            for to in [one, other, opposite] {
                prop_assert!((0.0..=EARTH_M * (std::f64::consts::PI + 1e-5)).contains(&one.distance_m(to)));
            }
        }
    }
}
