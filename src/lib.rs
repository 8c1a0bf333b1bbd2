//! dunlin
pub mod commands;
pub mod engine;
pub mod keyspace;
pub mod resp;
pub mod value;
