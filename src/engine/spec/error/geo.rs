//! What commands on places on earth refuse.

use thiserror::Error as Texts;

/// Why a command on places on earth was refused.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum GeoError {
    /// A longitude or latitude out of range: both, as C prints them.
    #[error("ERR invalid longitude,latitude pair {0}")]
    InvalidPosition(String),
    /// No unit of length.
    #[error("ERR unsupported unit provided. please use M, KM, FT, MI")]
    Unit,
    /// A radius that is no number.
    #[error("ERR need numeric radius")]
    RadiusNotANumber,
    /// A radius below 0.
    #[error("ERR radius cannot be negative")]
    NegativeRadius,
    /// A width that is no number.
    #[error("ERR need numeric width")]
    WidthNotANumber,
    /// A height that is no number.
    #[error("ERR need numeric height")]
    HeightNotANumber,
    /// A width or height below 0.
    #[error("ERR height or width cannot be negative")]
    NegativeBox,
    /// The member to search around is not there.
    #[error("ERR could not decode requested zset member")]
    NoSuchMember,
    /// COUNT of nothing.
    #[error("ERR COUNT must be > 0")]
    CountNotPositive,
    /// ANY without COUNT.
    #[error("ERR the ANY argument requires COUNT argument")]
    AnyWithoutCount,
    /// Details were asked for where the result is stored: by what.
    #[error("ERR {0} is not compatible with WITHDIST, WITHHASH and WITHCOORD options")]
    DetailsStored(&'static str),
    /// A search without its middle; the command as the client sent it.
    #[error("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {0}")]
    NoMiddle(String),
    /// A search without its shape; the command as the client sent it.
    #[error("ERR exactly one of BYRADIUS and BYBOX can be specified for {0}")]
    NoShape(String),
}
