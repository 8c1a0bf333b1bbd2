//! GEORADIUS and GEORADIUSBYMEMBER, which GEOSEARCH replaces, and their read-only forms.

use super::query::Kind;
use super::search::search;
use crate::engine::{Arity, Begin, Change, Command, Family, Find, Flags, KeyFlags, KeySpec};

pub(super) const GEORADIUS: Command = Command {
    name: "GEORADIUS",
    syntax: "key longitude latitude radius unit:<M|KM|FT|MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
             count-block:[COUNT count [ANY]] order:[ASC|DESC] store:[STORE storekey:key|STOREDIST storedistkey:key]",
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[SEARCHED, stored_behind("STORE", 6), stored_behind("STOREDIST", 6)],
    since: "3.2.0",
    about: "Returns the members in a circle around a point, or stores them in a key.",
    deprecated: Some(("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument")),
    run: |cx, args| search(cx, args, Kind::Radius),
    ..GEORADIUS_RO
};

pub(super) const GEORADIUS_RO: Command = Command {
    name: "GEORADIUS_RO",
    syntax: "key longitude latitude radius unit:<M|KM|FT|MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
             count-block:[COUNT count [ANY]] order:[ASC|DESC]",
    family: Family::Geo,
    arity: Arity::AtLeast(6),
    flags: Flags::READONLY,
    keys: &[SEARCHED],
    since: "3.2.10",
    history: &[Change::brings("6.2.0", &["ANY"]), UNITS],
    cost: "O(N+log(M)), N being the members in and around the circle and M those that are answered.",
    about: "Returns the members in a circle around a point.",
    deprecated: Some(("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")),
    run: |cx, args| search(cx, args, Kind::RadiusReadOnly),
    ..Command::ROW
};

pub(super) const GEORADIUSBYMEMBER: Command = Command {
    name: "GEORADIUSBYMEMBER",
    syntax: "key member radius unit:<M|KM|FT|MI> [WITHCOORD] [WITHDIST] [WITHHASH] count-block:[COUNT count [ANY]] \
             order:[ASC|DESC] store:[STORE storekey:key|STOREDIST storedistkey:key]",
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[SEARCHED, stored_behind("STORE", 5), stored_behind("STOREDIST", 5)],
    since: "3.2.0",
    about: "Returns the members in a circle around another member, or stores them in a key.",
    deprecated: Some(("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments")),
    run: |cx, args| search(cx, args, Kind::Member),
    ..GEORADIUSBYMEMBER_RO
};

pub(super) const GEORADIUSBYMEMBER_RO: Command = Command {
    name: "GEORADIUSBYMEMBER_RO",
    syntax: "key member radius unit:<M|KM|FT|MI> [WITHCOORD] [WITHDIST] [WITHHASH] count-block:[COUNT count [ANY]] \
             order:[ASC|DESC]",
    arity: Arity::AtLeast(5),
    history: &[Change::says("6.2.0", "Accepts `ANY`."), UNITS],
    about: "Returns the members in a circle around another member.",
    deprecated: Some(("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments")),
    run: |cx, args| search(cx, args, Kind::MemberReadOnly),
    ..GEORADIUS_RO
};

const UNITS: Change = Change::says("7.0.0", "Units may be in upper case.");

const SEARCHED: KeySpec = KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS));

/// The destination key: after a keyword, which is searched from a given word on.
const fn stored_behind(keyword: &'static str, from: i32) -> KeySpec {
    KeySpec {
        begin: Begin::EachKeyword(keyword, from),
        find: Find::Range { last: 0, step: 1, limit: 0 },
        access: KeyFlags::OW.and(KeyFlags::UPDATE),
        notes: "",
    }
}
