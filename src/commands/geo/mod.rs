//! Geo commands: members of a sorted set whose scores encode a longitude and a latitude.
//!
//! They are no type of their own: ZSCORE returns what GEOADD adds and ZREM removes it, and any score encodes some
//! position. So the members near a point are in a few ranges of the sorted set, whose members are tested one by one
//! ([`crate::value::geo`]).
//!
//! [`add`] adds members, [`member`] reads single ones, and [`search`] finds those in a circle or a box, as parsed by
//! [`query`]. [`radius`] has the four older commands that GEOSEARCH replaces.

mod add;
mod member;
mod query;
mod radius;
mod search;

use crate::engine::{Args, Command, Error, GeoError, says};
use crate::value::geo::Position;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[
    add::GEOADD,
    member::GEODIST,
    member::GEOHASH,
    member::GEOPOS,
    radius::GEORADIUS,
    radius::GEORADIUSBYMEMBER,
    radius::GEORADIUSBYMEMBER_RO,
    radius::GEORADIUS_RO,
    search::GEOSEARCH,
    search::GEOSEARCHSTORE,
];

/// Parses a longitude and a latitude.
fn position(args: &mut Args<'_>) -> Result<Position, Error> {
    let position = Position { longitude: args.float()?, latitude: args.float()? };
    if !position.is_valid() {
        let shown = format!("{:.6},{:.6}", position.longitude, position.latitude);
        return Err(GeoError::InvalidPosition(shown).into());
    }
    Ok(position)
}

/// Parses a unit of length and returns its length in metres.
fn unit(args: &mut Args<'_>) -> Result<f64, Error> {
    const UNITS: [(&str, f64); 4] = [("M", 1.0), ("KM", 1000.0), ("FT", 0.3048), ("MI", 1609.34)];
    let word = args.word()?;
    let unit = UNITS.into_iter().find(|(name, _)| says(word, name));
    Ok(unit.map(|(_, metres)| metres).ok_or(GeoError::Unit)?)
}

/// A distance with the four decimal places that all commands return, rounded as in Redis: ties go to the even digit.
fn format_distance(distance: f64) -> String {
    let parts = (distance * 10_000.0).round_ties_even() as i64;
    format!("{}.{:04}", parts / 10_000, parts % 10_000)
}

#[cfg(test)]
mod tests {
    use super::format_distance;

    #[test]
    fn a_distance_has_four_digits_behind_the_point() {
        for (distance, shown) in [
            (0.0, "0.0000"),
            (0.00004, "0.0000"),
            (0.00005, "0.0000"),
            (0.775, "0.7750"),
            (166_274.151_56, "166274.1516"),
        ] {
            assert_eq!(format_distance(distance), shown);
        }
    }
}
