//! Compares data structures with simple models of them.

mod hash;
mod keyspace;
mod list;
mod set;
mod soak;
mod stream;
mod zset;
