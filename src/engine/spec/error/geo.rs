//! Errors of the geospatial commands.

use thiserror::Error as Texts;

/// The reason why a geospatial command failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum GeoError {
    /// A longitude or latitude is out of range; both, as C prints them.
    #[error("ERR invalid longitude,latitude pair {0}")]
    InvalidPosition(String),
    /// A unit of length is none of m, km, ft and mi.
    #[error("ERR unsupported unit provided. please use M, KM, FT, MI")]
    Unit,
    /// The radius of BYRADIUS or GEORADIUS is not a number.
    #[error("ERR need numeric radius")]
    RadiusNotANumber,
    /// The radius of BYRADIUS or GEORADIUS is negative.
    #[error("ERR radius cannot be negative")]
    NegativeRadius,
    /// The width of BYBOX is not a number.
    #[error("ERR need numeric width")]
    WidthNotANumber,
    /// The height of BYBOX is not a number.
    #[error("ERR need numeric height")]
    HeightNotANumber,
    /// The width or height of BYBOX is negative.
    #[error("ERR height or width cannot be negative")]
    NegativeBox,
    /// The member to search around does not exist (FROMMEMBER, GEORADIUSBYMEMBER).
    #[error("ERR could not decode requested zset member")]
    NoSuchMember,
    /// COUNT of GEOSEARCH or GEORADIUS is not positive.
    #[error("ERR COUNT must be > 0")]
    CountNotPositive,
    /// GEOSEARCH or GEORADIUS has ANY without COUNT.
    #[error("ERR the ANY argument requires COUNT argument")]
    AnyWithoutCount,
    /// WITHDIST, WITHHASH or WITHCOORD is used where the result is stored; the command or option that stores it.
    #[error("ERR {0} is not compatible with WITHDIST, WITHHASH and WITHCOORD options")]
    DetailsStored(&'static str),
    /// A search has neither FROMMEMBER nor FROMLONLAT, or both; the command as the client sent it.
    #[error("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {0}")]
    NoCenter(String),
    /// A search has neither BYRADIUS nor BYBOX, or both; the command as the client sent it.
    #[error("ERR exactly one of BYRADIUS and BYBOX can be specified for {0}")]
    NoShape(String),
}
