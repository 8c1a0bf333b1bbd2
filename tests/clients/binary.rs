//! Runs the program for the time of a test.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The program that is tested: the one that cargo has built, unless DUNLIN_TEST_PROGRAM names another one, such as that
/// of the packages.
pub fn program() -> PathBuf {
    std::env::var_os("DUNLIN_TEST_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_dunlin").into(), PathBuf::from)
}

/// A running `dunlin` on a port of its own; ended when dropped.
pub struct Binary {
    process: Child,
    port: u16,
    log: BufReader<ChildStdout>,
}

impl Binary {
    /// Starts the program on a free port, with the test kit so that its clients can move the clock, and waits until it
    /// reports that it is ready.
    pub fn start() -> Binary {
        Binary::start_with(&[])
    }

    /// Starts it with more arguments.
    pub fn start_with(arguments: &[&str]) -> Binary {
        Binary::begin(Command::new(program()).args(["--port", "0", "--test-kit", "yes"]).args(arguments))
    }

    /// Starts it with a configuration file.
    pub fn start_with_file(file: &Path) -> Binary {
        Binary::begin(Command::new(program()).arg(file))
    }

    fn begin(command: &mut Command) -> Binary {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let mut log = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        let port = log.by_ref().lines().map_while(Result::ok).find_map(|line| port_in(&line));
        Binary { process, port: port.expect("it names its port"), log }
    }

    /// The address of its page, which the log names next.
    pub fn page(&mut self) -> SocketAddr {
        let address = |line: String| line.split("http://").nth(1)?.split('/').next()?.parse().ok();
        self.log.by_ref().lines().map_while(Result::ok).find_map(address).expect("it names its page")
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
