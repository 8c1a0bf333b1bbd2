//! [`Host`]: the engine's interface to the machine and the process that it runs in.
//!
//! INFO shows a process id, a port, memory and processor time, and `maxclients` is limited by the descriptors that a
//! process may have: facts from outside, which the engine cannot look up without losing its determinism. The server
//! implements this interface; an engine on its own gets the fixed results of [`NoHost`].

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::cluster::{Disagreement, NodeId};
use crate::engine::spec::Now;
use crate::engine::state::kit::DiskFaults;
use crate::engine::state::{FIRST_WORLD, Process, RemoteFault, RemoteRequest, RemoteResult, Settings, Supervisor};

/// Facts that stay the same while the process runs.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The process id.
    pub process_id: u32,
    /// The id of this run: 40 hexadecimal digits.
    pub run_id: String,
    /// The program's path.
    pub executable: Arc<str>,
    /// The configuration file's path, empty without one.
    pub config_file: String,
    /// The port in that file if it is another server's, as all nodes of a cluster share the file of the first one.
    pub port_in_config_file: Option<u16>,
    /// The operating system, as `uname` names it.
    pub system: Arc<str>,
    /// The Unix socket's path, empty without one.
    pub unix_socket: String,
    /// The supervisor of the process.
    pub supervisor: Supervisor,
    /// The name of the memory allocator.
    pub allocator: &'static str,
    /// Memory of the machine, in bytes.
    pub total_memory: u64,
    /// The name of this world of the server; empty for the one that it starts with.
    pub world: String,
}

impl Facts {
    /// The name of this world as clients use it.
    pub fn name_of_world(&self) -> &str {
        if self.world.is_empty() { FIRST_WORLD } else { &self.world }
    }
}

/// Figures that change while the process runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Bytes that the allocator has handed out, or 0 where they are not counted.
    pub allocated_bytes: u64,
    /// Resident memory of the process, in bytes; up to a tenth of a second old.
    pub resident_bytes: u64,
    /// The number of connections to other servers that are kept open.
    pub kept_connections: usize,
}

/// Processor time, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTime {
    /// The time in the kernel.
    pub system_us: u64,
    /// The time in the program.
    pub user_us: u64,
}

/// The processor time that the server has taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTimes {
    /// The time of the whole process.
    pub process: ProcessorTime,
    /// The time of the calling thread.
    pub thread: ProcessorTime,
}

/// The cycles of the event loops, each from waking up to having nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCycles {
    /// The number of cycles.
    pub count: u64,
    /// The total time of the cycles, in microseconds.
    pub busy_us: u64,
    /// The time of the longest cycle, in microseconds.
    pub longest_us: u64,
}

impl LoopCycles {
    /// The cycles since `before`.
    pub fn since(self, before: LoopCycles) -> LoopCycles {
        LoopCycles {
            count: self.count.saturating_sub(before.count),
            busy_us: self.busy_us.saturating_sub(before.busy_us),
            longest_us: self.longest_us,
        }
    }
}

/// Writes the contents of a file, and returns how many bytes these are.
pub type WriteDump<'a> = &'a mut dyn FnMut(&mut dyn io::Write) -> io::Result<u64>;

/// A file of the append-only file, to be loaded.
pub struct AofSource {
    /// The name of the file, for messages.
    pub name: String,
    /// Whether it is the base, which may be an RDB file.
    pub is_base: bool,
    /// Its contents.
    pub bytes: Box<dyn io::Read + Send>,
}

impl std::fmt::Debug for AofSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AofSource").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The world outside the engine, as far as commands depend on it.
pub trait Host: Send + std::fmt::Debug {
    /// The facts that do not change.
    fn facts(&self) -> &Facts;
    /// The figures that change, as of now.
    fn usage(&self) -> Usage;
    /// The processor time taken so far.
    fn processor_time(&self) -> ProcessorTimes;
    /// The cycles of the event loops since the start.
    fn loop_cycles(&self) -> LoopCycles;
    /// Microseconds since some moment, by a monotonic clock; 0 for a host without a clock.
    fn elapsed_us(&self) -> u64;
    /// The time on the clock that the caller reads before each request, to measure parts of a batch or a transaction;
    /// `None` where only the caller knows the time, which then stays unchanged until the caller passes a later one.
    fn now(&self) -> Option<Now>;
    /// The speed of that clock, as a multiple of real time; 0 when it is stopped.
    fn clock_speed(&self) -> f64;
    /// The text of the configuration file that the server was started with, empty if the file is missing.
    ///
    /// # Errors
    /// The system's message why it cannot be read.
    fn read_config(&self) -> Result<Vec<u8>, String>;
    /// Replaces the text of the configuration file, atomically.
    ///
    /// # Errors
    /// The system's message why it cannot be written.
    fn write_config(&self, text: &[u8]) -> Result<(), String>;
    /// Raises the descriptor limit for this number of clients, as far as the system allows. Returns the number of
    /// clients that there is room for.
    fn make_room_for(&self, clients: usize) -> usize;
    /// Listens where `after` says instead of where `before` did. False when that fails; the listeners stay then.
    fn listen(&self, before: &Settings, after: &Settings) -> bool;
    /// Sets the score by which the system, when out of memory, chooses a process to kill. False when that fails.
    fn set_oom_score(&self, process: &Process) -> bool;
    /// Reads the ACL file (ACL LOAD).
    ///
    /// # Errors
    /// The system's message why it cannot be read.
    fn read_users(&self, path: &str) -> Result<Vec<u8>, String>;
    /// Replaces the ACL file, atomically (ACL SAVE).
    ///
    /// # Errors
    /// The system's message why it cannot be written.
    fn write_users(&self, path: &str, text: &[u8]) -> Result<(), String>;
    /// The full path of a directory (CONFIG SET `dir`).
    ///
    /// # Errors
    /// The system's message why it cannot be entered.
    fn find_directory(&self, _path: &str) -> Result<String, String> {
        Err(NO_FILES.to_owned())
    }
    /// Replaces an RDB file, atomically and durably, by what `write` writes of the checkpoint of that number.
    ///
    /// # Errors
    /// The message why it cannot be written; the file is unchanged then.
    fn write_dump(&self, _path: &Path, _number: u64, _write: WriteDump<'_>) -> Result<(), String> {
        Err(READ_ONLY.to_owned())
    }
    /// Waits after a key that is written to an RDB file in the foreground, for `delay_us` (`rdb-key-save-delay`).
    ///
    /// # Errors
    /// The save is to end without a file.
    fn pace_dump(&self, _delay_us: i64) -> io::Result<()> {
        Ok(())
    }
    /// Opens an RDB file.
    ///
    /// # Errors
    /// The system's message why it cannot be read.
    fn open_dump(&self, _path: &Path) -> Result<Box<dyn io::Read>, String> {
        Err(NO_FILES.to_owned())
    }
    /// Makes the folder of the append-only file, and sees that files can be made there (CONFIG SET appendonly).
    ///
    /// # Errors
    /// The system's message why they cannot.
    fn prepare_aof(&self, _settings: &Settings) -> Result<(), String> {
        Err(READ_ONLY.to_owned())
    }
    /// Writes the rest of the stream of commands, and opens the files of the append-only file, in their order (DEBUG
    /// LOADAOF).
    ///
    /// # Errors
    /// The message why they cannot be read.
    fn open_aof(&self, _settings: &Settings, _rest: Vec<u8>) -> Result<Vec<AofSource>, String> {
        Err(NO_FILES.to_owned())
    }
    /// The rules by which calls of the file system fail (DUNLIN FAULT); `None` where there are no files, or no rules.
    fn disk_faults(&self) -> Option<&DiskFaults> {
        None
    }
    /// Sends requests to another server, and waits for the result.
    fn send_remote(&self, remote: RemoteRequest) -> RemoteResult;
    /// Whether another node of a cluster listens there for clients, in this process.
    fn has_node_at(&self, _ip: &str, _port: u16) -> bool {
        false
    }
    /// How much of the replication stream a node of this process has; `None` if `asking`, another node, could not have
    /// heard it.
    fn offset_of_node(&self, _node: NodeId, _asking: NodeId) -> Option<u64> {
        None
    }
    /// The reason why the nodes of this node's cluster that are up do not agree; `None` if they do.
    fn disagreement(&self) -> Option<Disagreement> {
        None
    }
    /// Begins to count what clients wait for in the journals of all nodes of this node's cluster
    /// ([`crate::engine::exec::kit::waits::note_found`]).
    fn count_journals(&self) {}
    /// The next number for a recorded command, which tells the order of those of all nodes of a cluster.
    fn next_order(&self) -> u64 {
        0
    }
    /// Bytes that cannot be guessed; `None` for a host without entropy.
    fn secret(&self) -> Option<[u8; 32]>;
}

const NO_FILES: &str = "No such file or directory";
const READ_ONLY: &str = "Read-only file system";

/// A host without a machine: every result is fixed, except its clock if it advances with each reading.
#[derive(Debug, Default)]
pub struct NoHost {
    facts: Facts,
    elapsed_us: AtomicU64,
    step_us: u64,
}

impl NoHost {
    /// A host whose clock advances by this many microseconds with each reading, so that everything takes long.
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

    fn processor_time(&self) -> ProcessorTimes {
        ProcessorTimes::default()
    }

    fn loop_cycles(&self) -> LoopCycles {
        LoopCycles::default()
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
        Err(READ_ONLY.to_owned())
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
