//! A real Redis as a target, whose replies are the expectations.
//!
//! One server process serves one file. Its data is removed between two sections; it is restarted where a section used a
//! command whose effects FLUSHALL does not undo. Its clock cannot be moved, so time passes by waiting.

use super::format::Section;
use super::log;
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
    /// The length of the log of changes that was read, if the process writes one.
    log_read: Option<usize>,
}

/// The log of changes, as commands, written before each reply.
const LOGGING: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"];
const LOG_FILE: &str = "appendonlydir/appendonly.aof.1.incr.aof";
/// The times in a log are rounded up to this many milliseconds, as a real clock moves on until the log is read.
const LOG_STEP_MS: i64 = 100;

impl Oracle {
    /// Starts `program` on a free port.
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        Ok(Self { program: program.clone(), process: Process::start(program)?, tainted: false, log_read: None })
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
        if self.tainted || self.log_read.is_some() != section.reads_log() {
            let arguments = if section.reads_log() { &LOGGING[..] } else { &[] };
            self.process = Process::start_with(&self.program, arguments)?;
            self.log_read = section.reads_log().then_some(0);
        }
        self.tainted = section.commands().any(|name| LASTING.contains(&&*name));
        self.instruct("CLIENT KILL TYPE normal\r\nCLIENT KILL TYPE pubsub\r\nFLUSHALL\r\n")?;
        self.log().map(|_| ())
    }

    fn log(&mut self) -> io::Result<Option<Vec<String>>> {
        let Some(read) = self.log_read else { return Ok(None) };
        let reply = exchange(self.process.address, "TIME\r\n", Duration::from_secs(5))?;
        let words = String::from_utf8_lossy(&reply).into_owned();
        let mut words = words.split("\r\n").skip(2).step_by(2).map(|word| word.parse::<i64>().unwrap_or_default());
        let now_ms = words.next().unwrap_or_default() * 1000 + words.next().unwrap_or_default() / 1000;
        let bytes = std::fs::read(self.process.folder().join(LOG_FILE))?;
        self.log_read = Some(bytes.len());
        Ok(Some(log::lines(&bytes[read..], now_ms, LOG_STEP_MS)))
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
