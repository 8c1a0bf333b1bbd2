//! A real server to ask, behind a socket that is a file: the one that DUNLIN_ORACLE names.

use std::process::{Child, Command, Stdio};

use redis::{Connection, Value};

use crate::patience::wait_until;

/// A real server, which ends with this value.
pub struct Oracle {
    process: Child,
    connection: Option<Connection>,
}

impl Oracle {
    /// Starts one, and returns when it answers.
    pub fn start(name: &str) -> Oracle {
        let program = std::env::var_os("DUNLIN_ORACLE").expect("DUNLIN_ORACLE names a redis-server");
        let socket = std::env::temp_dir().join(format!("dunlin-{name}-{}.sock", std::process::id()));
        let path = socket.to_str().expect("the path is text");
        let arguments = ["--port", "0", "--save", "", "--unixsocket", path];
        let process = Command::new(program).args(arguments).stdout(Stdio::null()).spawn().expect("the server starts");
        let mut oracle = Oracle { process, connection: None };
        let client = redis::Client::open(format!("unix://{path}")).expect("the address is right");
        wait_until("the real server answers", || {
            oracle.connection = client.get_connection().ok();
            oracle.connection.is_some()
        });
        oracle
    }

    /// What it answers.
    pub fn ask(&mut self, words: &[&str]) -> Value {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(self.connection.as_mut().expect("it was waited for")).expect("the server knows the command")
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
