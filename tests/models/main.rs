//! Structures against simple models of themselves.

mod keyspace;
mod zset;
