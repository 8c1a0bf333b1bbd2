//! dunlin
pub mod keyspace;
pub mod resp;
pub mod value;
