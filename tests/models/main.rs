//! Structures against simple models of themselves.

mod hash;
mod keyspace;
mod set;
mod zset;
