//! What the engine may ask about the machine and the process it runs in.
//!
//! INFO tells a process id, a port, memory and processor time, and `maxclients` is limited by the descriptors that a
//! process may have: facts of the world outside, which the engine cannot look up without losing its determinism. The
//! server answers these questions; an engine on its own gets the fixed answers of [`NoHost`].

use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::{FIRST_WORLD, Now, Process, RemoteFault, RemoteRequest, RemoteResult, Settings, Supervisor};

/// Facts that stay the same while the process runs.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The process id.
    pub process_id: u32,
    /// 40 hexadecimal digits that name this run.
    pub run_id: String,
    /// The program's path.
    pub executable: String,
    /// The configuration file's path, empty without one.
    pub config_file: String,
    /// The operating system, as `uname` tells it.
    pub system: String,
    /// The Unix socket's path, empty without one.
    pub unix_socket: String,
    /// Who watches over the process.
    pub supervisor: Supervisor,
    /// The name of the memory allocator.
    pub allocator: &'static str,
    /// Memory of the machine, in bytes.
    pub total_memory: u64,
    /// Which of the server's worlds this is; empty for the one that it starts with.
    pub world: String,
}

impl Facts {
    /// The name by which clients know the world that this is.
    pub fn name_of_world(&self) -> &str {
        if self.world.is_empty() { FIRST_WORLD } else { &self.world }
    }
}

/// Figures that change while the process runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Bytes that the allocator has handed out, or 0 where nobody counts them.
    pub allocated_bytes: u64,
    /// Bytes of the process that are in memory.
    pub resident_bytes: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: u64,
    /// Processor time in the program, in microseconds.
    pub user_us: u64,
    /// Processor time of the calling thread in the kernel, in microseconds.
    pub thread_system_us: u64,
    /// Processor time of the calling thread in the program, in microseconds.
    pub thread_user_us: u64,
    /// Connections to other servers that are kept.
    pub kept_connections: usize,
}

/// Turns of the event loops: from waking up to having nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// How many there were.
    pub count: u64,
    /// How long they took together, in microseconds.
    pub busy_us: u64,
    /// The longest of all, in microseconds.
    pub longest_us: u64,
}

impl Turns {
    /// Those since `before`.
    pub fn since(self, before: Turns) -> Turns {
        Turns {
            count: self.count.saturating_sub(before.count),
            busy_us: self.busy_us.saturating_sub(before.busy_us),
            longest_us: self.longest_us,
        }
    }
}

/// The world outside, as far as INFO tells of it and CONFIG SET depends on it.
pub trait Host: Send + std::fmt::Debug {
    /// What stays the same.
    fn facts(&self) -> &Facts;
    /// What changes, looked up now.
    fn usage(&self) -> Usage;
    /// The turns of the event loops since the start.
    fn turns(&self) -> Turns;
    /// Microseconds since some moment, by a clock that nobody sets; 0 in a world without a clock.
    fn elapsed_us(&self) -> u64;
    /// The time on the clock that the caller reads before each request, to measure parts of a batch or a transaction;
    /// `None` where only the caller knows the time: it stands still then, until the caller hands in a later one.
    fn now(&self) -> Option<Now>;
    /// How many times as fast as time passes that clock runs; 0 where it stands still.
    fn clock_speed(&self) -> f64;
    /// The text of the configuration file that the server was started with, empty if it is gone.
    ///
    /// # Errors
    /// Why it cannot be read, in the words of the system.
    fn read_config(&self) -> Result<Vec<u8>, String>;
    /// Puts this text in the place of the configuration file's: all of it, or nothing.
    ///
    /// # Errors
    /// Why it cannot be written, in the words of the system.
    fn write_config(&self, text: &[u8]) -> Result<(), String>;
    /// Makes room for so many clients, as far as the system allows. Answers for how many of them there is room.
    fn make_room_for(&self, clients: usize) -> usize;
    /// Listens where `after` says instead of where `before` did. False when it cannot: it listens where it did.
    fn listen(&self, before: &Settings, after: &Settings) -> bool;
    /// Sets the score by which the system, when it is out of memory, picks the process that ends. False when it cannot.
    fn set_oom_score(&self, process: &Process) -> bool;
    /// What the file of users holds (ACL LOAD).
    ///
    /// # Errors
    /// Why it cannot be read, in the words of the system.
    fn read_users(&self, path: &str) -> Result<Vec<u8>, String>;
    /// Writes the file of users, all of it or nothing (ACL SAVE).
    ///
    /// # Errors
    /// Why it cannot be written, in the words of the system.
    fn write_users(&self, path: &str, text: &[u8]) -> Result<(), String>;
    /// Sends requests to another server, and waits for the result.
    fn send_remote(&self, remote: RemoteRequest) -> RemoteResult;
    /// Bytes that nobody can guess; `None` in a world without such chance.
    fn secret(&self) -> Option<[u8; 32]>;
}

const NO_FILES: &str = "No such file or directory";

/// A world without a machine: every answer is fixed, unless its clock goes on whenever somebody looks at it.
#[derive(Debug, Default)]
pub struct NoHost {
    facts: Facts,
    elapsed_us: AtomicU64,
    step_us: u64,
}

impl NoHost {
    /// One in which so many microseconds more have passed with each look at the clock, so that all takes long.
    pub fn advancing(step_us: u64) -> NoHost {
        NoHost { step_us, ..NoHost::default() }
    }
}

impl Host for NoHost {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }

    fn turns(&self) -> Turns {
        Turns::default()
    }

    fn elapsed_us(&self) -> u64 {
        self.elapsed_us.fetch_add(self.step_us, Ordering::Relaxed)
    }

    fn now(&self) -> Option<Now> {
        None
    }

    fn clock_speed(&self) -> f64 {
        0.0
    }

    fn read_config(&self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    fn write_config(&self, _: &[u8]) -> Result<(), String> {
        Err("Read-only file system".to_owned())
    }

    fn make_room_for(&self, clients: usize) -> usize {
        clients
    }

    fn listen(&self, _: &Settings, _: &Settings) -> bool {
        true
    }

    fn set_oom_score(&self, _: &Process) -> bool {
        true
    }

    fn read_users(&self, _: &str) -> Result<Vec<u8>, String> {
        Err(NO_FILES.to_owned())
    }

    fn write_users(&self, _: &str, _: &[u8]) -> Result<(), String> {
        Err(NO_FILES.to_owned())
    }

    fn send_remote(&self, _: RemoteRequest) -> RemoteResult {
        RemoteResult::of(RemoteFault::Connecting)
    }

    fn secret(&self) -> Option<[u8; 32]> {
        None
    }
}
