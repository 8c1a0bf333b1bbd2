//! A real server for comparison, on a Unix socket.

use redis::{Connection, Value};

use crate::process::{Process, Program};

/// A real server with one client.
pub struct Oracle {
    connection: Connection,
    _process: Process,
}

impl Oracle {
    /// Starts the real server and connects to it.
    pub fn start(program: &Program) -> Oracle {
        let process = Process::start_on_socket(program).expect("the real server starts");
        let address = format!("unix://{}", process.socket().display());
        let client = redis::Client::open(address).expect("the address is right");
        let connection = client.get_connection().expect("the real server accepts");
        Oracle { connection, _process: process }
    }

    /// Sends a request and returns the reply.
    pub fn ask(&mut self, words: &[&str]) -> Value {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut self.connection).expect("the server knows the command")
    }
}
