//! The `dunlin` program: a Redis-compatible server on the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    dunlin::server::program()
}
