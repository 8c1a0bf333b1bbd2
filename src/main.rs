//! The `dunlin` program: a Redis-compatible server on the command line.
fn main() {}
