//! A real Redis as a target, whose replies are the expectations.
//!
//! One server process serves one file. Its data is removed between two sections; it is restarted where a section used a
//! command whose effects FLUSHALL does not undo. Its clock cannot be moved, so time passes by waiting.

use super::format::Section;
use super::matching::Clock;
use super::target::{Link, Target, TcpLink, exchange, wait_until_read};
use crate::support::process::{Process, Program, wait};
use std::io;
use std::time::Duration;

/// The longest time that a transcript may make a real server wait.
const LONGEST_WAIT: Duration = Duration::from_secs(6);

/// Commands that leave traces which FLUSHALL does not remove.
const LASTING: [&str; 13] = [
    "ACL",
    "CLIENT",
    "CLUSTER",
    "CONFIG",
    "DEBUG",
    "FAILOVER",
    "FUNCTION",
    "LATENCY",
    "MEMORY",
    "REPLICAOF",
    "SCRIPT",
    "SHUTDOWN",
    "SLAVEOF",
];

/// A `redis-server` process of our own.
pub(crate) struct Oracle {
    program: Program,
    process: Process,
    tainted: bool,
}

impl Oracle {
    /// Starts `program` on a free port.
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        Ok(Self { program: program.clone(), process: Process::start(program)?, tainted: false })
    }

    /// Sends commands that cannot fail.
    fn instruct(&self, commands: &str) -> io::Result<()> {
        let answers = exchange(self.process.address, commands, Duration::from_secs(5))?;
        match answers.ends_with(b"+OK\r\n") && !answers.contains(&b'-') {
            true => Ok(()),
            false => Err(io::Error::other(format!("{commands:?}: {}", String::from_utf8_lossy(&answers)))),
        }
    }
}

impl Target for Oracle {
    fn clock(&self) -> Clock {
        Clock::Wall
    }

    fn fresh(&mut self, section: &Section) -> io::Result<()> {
        if self.tainted {
            self.process = Process::start(&self.program)?;
        }
        self.tainted = section.commands().any(|name| LASTING.contains(&&*name));
        self.instruct("CLIENT KILL TYPE normal\r\nCLIENT KILL TYPE pubsub\r\nFLUSHALL\r\n")
    }

    fn connect(&mut self) -> io::Result<Box<dyn Link>> {
        Ok(Box::new(TcpLink::open(self.process.address)?))
    }

    fn advance(&mut self, by: Duration) -> io::Result<bool> {
        let possible = by <= LONGEST_WAIT;
        if possible {
            wait(by);
        }
        Ok(possible)
    }

    fn wait_until_read(&mut self) -> io::Result<()> {
        wait_until_read(self.process.address)
    }
}
