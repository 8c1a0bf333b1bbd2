//! Structures against simple models of themselves.

mod hash;
mod keyspace;
mod list;
mod set;
mod soak;
mod stream;
mod zset;
