//! x
pub mod number;
