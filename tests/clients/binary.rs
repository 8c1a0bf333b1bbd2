//! Runs the program for the time of a test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running `dunlin` on a port of its own; ended when dropped.
pub struct Binary {
    process: Child,
    port: u16,
}

impl Binary {
    /// Starts the program on a free port, with the test kit so that its clients can move the clock, and waits until it
    /// reports that it is ready.
    pub fn start() -> Binary {
        let mut process = Command::new(env!("CARGO_BIN_EXE_dunlin"))
            .args(["--port", "0", "--test-kit", "yes"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        let port = output.lines().map_while(Result::ok).find_map(|line| port_in(&line)).expect("it names its port");
        Binary { process, port }
    }

    /// The port as an argument for a command line.
    pub fn port(&self) -> String {
        self.port.to_string()
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The port in a line such as `... ready on 127.0.0.1:6379`.
fn port_in(line: &str) -> Option<u16> {
    let address = line.split("ready on ").nth(1)?.split([' ', ',']).next()?;
    address.rsplit(':').next()?.parse().ok()
}
