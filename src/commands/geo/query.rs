//! The parser of searches.
//!
//! All six commands take the same options in any order; [`Kind`] defines what a command's name implies or excludes. If
//! there is no sorted set to search, the centre member is not looked up, and the older commands do not check the radius
//! either.

use super::member::position_of;
use super::{position, unit};
use crate::engine::{Args, Error, GeoError, shown};
use crate::value::Zset;
use crate::value::geo::{Area, Position, Shape};

/// The commands, distinguished by the words that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// GEOSEARCH.
    Search,
    /// GEOSEARCHSTORE.
    Store,
    /// GEORADIUS, which may store.
    Radius,
    /// GEORADIUS_RO.
    RadiusReadOnly,
    /// GEORADIUSBYMEMBER, which may store.
    Member,
    /// GEORADIUSBYMEMBER_RO.
    MemberReadOnly,
}

impl Kind {
    fn is_search(self) -> bool {
        matches!(self, Kind::Search | Kind::Store)
    }

    fn takes_target(self) -> bool {
        matches!(self, Kind::Radius | Kind::Member)
    }
}

/// The order in which members are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The nearest first.
    Ascending,
    /// The farthest first.
    Descending,
}

/// The destination of the members that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) key: &'a [u8],
    /// The stored scores are the distances, not the encoded positions.
    pub(super) with_distances: bool,
}

/// A parsed search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'a> {
    center: Option<Center>,
    shape: Option<Shape>,
    /// The unit of returned distances, in metres.
    pub(super) unit_m: f64,
    pub(super) order: Option<Order>,
    /// The maximum number of members, if limited.
    pub(super) count: Option<usize>,
    /// Any members up to the maximum, not the nearest.
    pub(super) any: bool,
    pub(super) with_distance: bool,
    pub(super) with_score: bool,
    pub(super) with_position: bool,
    pub(super) target: Option<Target<'a>>,
}

impl<'a> Query<'a> {
    /// Parses the words after the key; `name` is the command as the client wrote it.
    ///
    /// # Errors
    /// The first fault in the words.
    pub(super) fn parse(
        args: &mut Args<'a>,
        kind: Kind,
        name: &[u8],
        target: Option<&'a [u8]>,
        zset: Option<&Zset>,
    ) -> Result<Query<'a>, Error> {
        let mut query = Query {
            center: None,
            shape: None,
            unit_m: 1.0,
            order: None,
            count: None,
            any: false,
            with_distance: false,
            with_score: false,
            with_position: false,
            target: target.map(|key| Target { key, with_distances: false }),
        };
        query.take_fixed(args, kind, zset)?;
        while !args.is_empty() {
            let is_known = query.take_flag(args)
                || query.take_count(args)?
                || query.take_target(args, kind)
                || kind.is_search() && (query.take_center(args, zset)? || query.take_shape(args)?);
            if !is_known {
                return Err(Error::Syntax);
            }
        }
        query.check(kind, name)?;
        Ok(query)
    }

    /// The area to search; `None` if there is nothing to search in.
    pub(super) fn area(&self) -> Option<Area> {
        let center = match self.center? {
            Center::Member(position) => position?,
            Center::Place(position) => position,
        };
        Some(Area { center, shape: self.shape? })
    }

    /// Parses the positional arguments of the older commands.
    fn take_fixed(&mut self, args: &mut Args<'a>, kind: Kind, zset: Option<&Zset>) -> Result<(), Error> {
        match (kind, zset) {
            (Kind::Search | Kind::Store, _) => return Ok(()),
            (Kind::Radius | Kind::RadiusReadOnly, _) => self.center = Some(Center::Place(position(args)?)),
            (Kind::Member | Kind::MemberReadOnly, Some(_)) => self.center = Some(Center::Member(member(args, zset)?)),
            (Kind::Member | Kind::MemberReadOnly, None) => {
                args.words(3)?;
                return Ok(());
            }
        }
        self.take_radius(args)
    }

    fn take_flag(&mut self, args: &mut Args<'a>) -> bool {
        let flags = [
            ("WITHDIST", &mut self.with_distance),
            ("WITHHASH", &mut self.with_score),
            ("WITHCOORD", &mut self.with_position),
            ("ANY", &mut self.any),
        ];
        for (name, flag) in flags {
            if args.take(name) {
                *flag = true;
                return true;
            }
        }
        for (name, order) in [("ASC", Order::Ascending), ("DESC", Order::Descending)] {
            if args.take(name) {
                self.order = Some(order);
                return true;
            }
        }
        false
    }

    fn take_count(&mut self, args: &mut Args<'a>) -> Result<bool, Error> {
        if !args.take_with("COUNT", 1) {
            return Ok(false);
        }
        let count = usize::try_from(args.integer()?).ok().filter(|count| *count > 0);
        self.count = Some(count.ok_or(GeoError::CountNotPositive)?);
        Ok(true)
    }

    fn take_target(&mut self, args: &mut Args<'a>, kind: Kind) -> bool {
        if kind == Kind::Store
            && args.take("STOREDIST")
            && let Some(target) = &mut self.target
        {
            target.with_distances = true;
            return true;
        }
        for (name, with_distances) in [("STORE", false), ("STOREDIST", true)] {
            if kind.takes_target()
                && args.take_with(name, 1)
                && let Ok(key) = args.key()
            {
                self.target = Some(Target { key, with_distances });
                return true;
            }
        }
        false
    }

    fn take_center(&mut self, args: &mut Args<'a>, zset: Option<&Zset>) -> Result<bool, Error> {
        if !matches!(self.center, Some(Center::Place(_))) && args.take_with("FROMMEMBER", 1) {
            self.center = Some(Center::Member(member(args, zset)?));
        } else if !matches!(self.center, Some(Center::Member(_))) && args.take_with("FROMLONLAT", 2) {
            self.center = Some(Center::Place(position(args)?));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn take_shape(&mut self, args: &mut Args<'a>) -> Result<bool, Error> {
        if !matches!(self.shape, Some(Shape::Box { .. })) && args.take_with("BYRADIUS", 2) {
            self.take_radius(args)?;
        } else if !matches!(self.shape, Some(Shape::Circle { .. })) && args.take_with("BYBOX", 3) {
            self.take_box(args)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn take_radius(&mut self, args: &mut Args<'a>) -> Result<(), Error> {
        let radius = args.float().map_err(|_| GeoError::RadiusNotANumber)?;
        if radius < 0.0 {
            return Err(GeoError::NegativeRadius.into());
        }
        self.unit_m = unit(args)?;
        self.shape = Some(Shape::Circle { radius_m: radius * self.unit_m });
        Ok(())
    }

    fn take_box(&mut self, args: &mut Args<'a>) -> Result<(), Error> {
        let width = args.float().map_err(|_| GeoError::WidthNotANumber)?;
        let height = args.float().map_err(|_| GeoError::HeightNotANumber)?;
        if width < 0.0 || height < 0.0 {
            return Err(GeoError::NegativeBox.into());
        }
        self.unit_m = unit(args)?;
        self.shape = Some(Shape::Box { width_m: width * self.unit_m, height_m: height * self.unit_m });
        Ok(())
    }

    /// Refuses missing options and contradictory ones.
    fn check(&self, kind: Kind, name: &[u8]) -> Result<(), Error> {
        if self.target.is_some() && (self.with_distance || self.with_score || self.with_position) {
            let what = if kind == Kind::Store { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(GeoError::DetailsStored(what).into());
        }
        if kind.is_search() && self.center.is_none() {
            return Err(GeoError::NoCenter(shown(name)).into());
        }
        if kind.is_search() && self.shape.is_none() {
            return Err(GeoError::NoShape(shown(name)).into());
        }
        if self.any && self.count.is_none() {
            return Err(GeoError::AnyWithoutCount.into());
        }
        Ok(())
    }
}

/// The centre of a search.
#[derive(Clone, Copy, Debug)]
enum Center {
    /// A member; without a position if there is no sorted set that could contain it.
    Member(Option<Position>),
    Place(Position),
}

/// Parses a member and returns its position.
fn member(args: &mut Args<'_>, zset: Option<&Zset>) -> Result<Option<Position>, Error> {
    let member = args.word()?;
    match zset {
        Some(_) => Ok(Some(position_of(zset, member).ok_or(GeoError::NoSuchMember)?)),
        None => Ok(None),
    }
}
