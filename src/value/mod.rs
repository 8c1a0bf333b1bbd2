//! x
pub mod number;
pub mod zset;
