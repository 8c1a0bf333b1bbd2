//! The engine's host on a real operating system: facts about machine and process for INFO and CONFIG SET, and the calls
//! that [`crate::engine::state::host`] lists.
//!
//! A fact that the system does not report is empty or 0, never made up.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tracing::warn;

use super::aof_writer::AofWriter;
use super::background_saver::{TestDelay, pause_or_stop};
use super::clock::{Clock, monotonic_us};
use super::config_file;
use super::dump_file::{self, OwnDump, Save};
use super::listeners::Listeners;
use super::loops::Loops;
use super::migrate_client::MigrateClient;
use super::nodes::Cluster;
use super::oom_score;
use super::shared::Shared;
use crate::aof::decisions::NextFile;
use crate::engine::cluster::{Disagreement, NodeId};
use crate::engine::exec::aof::ONE_FILE;
use crate::engine::state::host::{self, Facts, ProcessorTime, ProcessorTimes, Usage};
use crate::engine::state::kit::DiskFaults;
use crate::engine::{Host, Now, Process, RemoteRequest, RemoteResult, Settings};
use crate::storage::Storage;
pub(crate) use crate::storage::reason;

/// The engine's host: the process and machine, as one world of a server sees them.
#[derive(Debug)]
pub(crate) struct OsHost {
    facts: Facts,
    clock: Arc<Clock>,
    migrate_client: Arc<MigrateClient>,
    /// The cluster of the node that this is the host of, if it is one.
    cluster: Option<Arc<Cluster>>,
    /// The listeners; `None` for worlds beside the first, which cannot change them.
    listeners: Option<Arc<Listeners>>,
    loops: Arc<Loops>,
    files: HostFiles,
    resident_memory: ResidentMemory,
}

/// The files of a host.
#[derive(Clone, Debug)]
pub(crate) struct HostFiles {
    /// The file system of the data.
    pub(crate) storage: Arc<dyn Storage>,
    /// The RDB file, which the server's background saves share.
    pub(crate) own_dump: Arc<OwnDump>,
    /// The append-only file, which only the first world has.
    pub(crate) aof: Option<Arc<AofWriter>>,
    /// The rules by which the file system fails, which only a first world with the test kit has.
    pub(crate) faults: Option<DiskFaults>,
}

impl HostFiles {
    /// The files of a server that has saved nothing yet.
    pub(crate) fn new(storage: Arc<dyn Storage>, aof: Option<Arc<AofWriter>>, faults: Option<DiskFaults>) -> HostFiles {
        HostFiles { storage, own_dump: Arc::default(), aof, faults }
    }
}

impl OsHost {
    /// Makes a host of its parts.
    pub(crate) fn new(
        facts: Facts,
        clock: Arc<Clock>,
        migrate_client: Arc<MigrateClient>,
        cluster: Option<Arc<Cluster>>,
        listeners: Option<Arc<Listeners>>,
        loops: Arc<Loops>,
        files: HostFiles,
    ) -> OsHost {
        let resident_memory = ResidentMemory::default();
        OsHost { facts, clock, migrate_client, cluster, listeners, loops, files, resident_memory }
    }

    /// The node of the same cluster that listens at this host and port.
    fn node_at(&self, host: &str, port: u16) -> Option<Arc<Shared>> {
        self.cluster.as_ref()?.node_at(host, port)
    }
}

/// Completes `facts` with those that are the same for every server in this process.
pub(crate) fn completed(facts: Facts) -> Facts {
    static OF_PROCESS: OnceLock<Facts> = OnceLock::new();
    let known = OF_PROCESS.get_or_init(|| {
        let executable = env::current_exe().map_or_else(|_| String::new(), |path| path.display().to_string());
        Facts {
            executable: executable.into(),
            system: system().into(),
            total_memory: total_memory(),
            ..Facts::default()
        }
    });
    Facts {
        process_id: process::id(),
        executable: Arc::clone(&known.executable),
        system: Arc::clone(&known.system),
        total_memory: known.total_memory,
        ..facts
    }
}

impl Host for OsHost {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn usage(&self) -> Usage {
        Usage {
            allocated_bytes: 0,
            resident_bytes: self.resident_memory.bytes(monotonic_us()),
            kept_connections: self.migrate_client.kept(),
        }
    }

    fn processor_time(&self) -> ProcessorTimes {
        ProcessorTimes { process: processor_time(Whose::Process), thread: processor_time(Whose::Thread) }
    }

    fn loop_cycles(&self) -> host::LoopCycles {
        self.loops.cycles()
    }

    fn elapsed_us(&self) -> u64 {
        monotonic_us()
    }

    fn now(&self) -> Option<Now> {
        Some(self.clock.now())
    }

    fn clock_speed(&self) -> f64 {
        self.clock.speed()
    }

    fn read_config(&self) -> Result<Vec<u8>, String> {
        config_file::read(Path::new(&self.facts.config_file)).map_err(|error| reason(&error))
    }

    fn write_config(&self, text: &[u8]) -> Result<(), String> {
        config_file::replace(Path::new(&self.facts.config_file), text).map_err(|error| reason(&error))
    }

    fn make_room_for(&self, clients: usize) -> usize {
        make_room_for(clients)
    }

    fn listen(&self, before: &Settings, after: &Settings) -> bool {
        // Nodes of a cluster stay where the others know them.
        let is_node = after.cluster.nodes() > 0;
        !is_node && self.listeners.as_ref().is_some_and(|listeners| listeners.change(before, after))
    }

    fn set_oom_score(&self, process: &Process) -> bool {
        // Only the first world, which has the listeners, may change the process.
        self.listeners.is_some() && set_oom_score(process)
    }

    fn read_users(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(path).map_err(|error| reason(&error))
    }

    fn write_users(&self, path: &str, text: &[u8]) -> Result<(), String> {
        config_file::replace(Path::new(path), text).map_err(|error| reason(&error))
    }

    fn find_directory(&self, path: &str) -> Result<String, String> {
        let found = fs::canonicalize(path).and_then(|path| fs::read_dir(&path).map(|_| path));
        found.map(|path| path.display().to_string()).map_err(|error| reason(&error))
    }

    fn write_dump(&self, path: &Path, number: u64, write: host::WriteDump<'_>) -> Result<(), String> {
        if self.listeners.is_none() {
            return Err(ONE_FILE.to_owned());
        }
        let HostFiles { storage, own_dump, .. } = &self.files;
        dump_file::write(&**storage, own_dump, path, Save { number, is_in_foreground: true }, write)
    }

    fn pace_dump(&self, delay_us: i64) -> io::Result<()> {
        pause_or_stop(TestDelay::of_us(delay_us), &AtomicBool::new(false))
    }

    fn open_dump(&self, path: &Path) -> Result<Box<dyn io::Read>, String> {
        let file = self.files.storage.open(path).map_err(|error| reason(&error))?;
        Ok(file)
    }

    fn prepare_aof(&self, settings: &Settings) -> Result<(), String> {
        let Some(aof) = &self.files.aof else { return Err(ONE_FILE.to_owned()) };
        let goes_on = AtomicBool::new(false);
        aof.prepare_rewrite(&self.files.storage, settings, Some(NextFile::Anew), 0, &goes_on).map(drop)
    }

    fn open_aof(&self, settings: &Settings, rest: Vec<u8>) -> Result<Vec<host::AofSource>, String> {
        let Some(aof) = &self.files.aof else { return Err(ONE_FILE.to_owned()) };
        aof.open_for_reading(&self.files.storage, settings, rest)
    }

    fn disk_faults(&self) -> Option<&DiskFaults> {
        self.files.faults.as_ref()
    }

    fn send_remote(&self, remote: RemoteRequest) -> RemoteResult {
        match self.node_at(&remote.host, remote.port) {
            Some(node) => node.restore(&remote),
            None => self.migrate_client.send(remote),
        }
    }

    fn has_node_at(&self, ip: &str, port: u16) -> bool {
        self.node_at(ip, port).is_some()
    }

    fn offset_of_node(&self, node: NodeId, asking: NodeId) -> Option<u64> {
        self.cluster.as_ref()?.offset_of(node, asking)
    }

    fn disagreement(&self) -> Option<Disagreement> {
        self.cluster.as_ref()?.disagreement()
    }

    fn count_journals(&self) {
        self.cluster.iter().for_each(|cluster| cluster.await_journals());
    }

    fn next_order(&self) -> u64 {
        self.cluster.as_ref().map_or(0, |cluster| cluster.next_order())
    }

    fn secret(&self) -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).ok().map(|()| bytes)
    }
}

/// Sets the score by which the system picks a process to end when it is out of memory. Returns false, and logs why, if
/// it cannot be set.
pub(crate) fn set_oom_score(process: &Process) -> bool {
    oom_score::set(process).map_err(|error| warn!("Unable to set oom_score_adj: {}", reason(&error))).is_ok()
}

/// A new run id: 40 hexadecimal digits.
pub(crate) fn run_id(generator: &mut fastrand::Rng) -> String {
    (0..40).map(|_| generator.digit(16)).collect()
}

/// Raises the limit on open descriptors, as far as the system allows, to what `clients` clients and the server itself
/// need. Returns the number of clients for which the limit is enough.
#[cfg(unix)]
pub(crate) fn make_room_for(clients: usize) -> usize {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    /// The descriptors for everything but clients: listening sockets, the event loops, the log.
    const OTHERS: u64 = 32;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return clients };
    let wanted = (clients as u64).saturating_add(OTHERS);
    let mut limit = soft;
    if soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).is_ok() {
        limit = wanted.min(hard);
    }
    usize::try_from(limit.saturating_sub(OTHERS)).unwrap_or(clients).clamp(1, clients.max(1))
}

/// Returns `clients`: on other systems there is no limit on descriptors.
#[cfg(not(unix))]
pub(crate) fn make_room_for(clients: usize) -> usize {
    clients
}

/// Whether the process has only a few descriptors left. The system returns the lowest free one, so the latest shows how
/// many are in use.
#[cfg(unix)]
pub(crate) fn is_last_descriptor(latest: i64) -> bool {
    use nix::sys::resource::{Resource, getrlimit};
    /// For files that commands open.
    const LEFT: u64 = 8;
    let latest = u64::try_from(latest).unwrap_or(0);
    getrlimit(Resource::RLIMIT_NOFILE).is_ok_and(|(soft, _)| latest + LEFT >= soft)
}

/// On other systems there is no limit on descriptors.
#[cfg(not(unix))]
pub(crate) fn is_last_descriptor(_: i64) -> bool {
    false
}

#[cfg(unix)]
fn system() -> String {
    let Ok(name) = nix::sys::utsname::uname() else { return String::new() };
    [name.sysname(), name.release(), name.machine()].map(|part| part.to_string_lossy()).join(" ")
}

#[cfg(not(unix))]
fn system() -> String {
    format!("{} {}", env::consts::OS, env::consts::ARCH)
}

/// The resident memory of the process. To read it takes longer than all else that INFO shows, so it is read at most ten
/// times a second, as often as Redis reads it.
#[derive(Debug, Default)]
struct ResidentMemory {
    bytes: AtomicU64,
    /// The moment from which on it is to be read again, in microseconds.
    due_us: AtomicU64,
}

impl ResidentMemory {
    const BETWEEN_READS_US: u64 = 100_000;

    /// The bytes at `now_us`, or up to a tenth of a second before.
    fn bytes(&self, now_us: u64) -> u64 {
        if now_us >= self.due_us.load(Ordering::Relaxed) {
            self.bytes.store(resident_bytes(), Ordering::Relaxed);
            self.due_us.store(now_us + Self::BETWEEN_READS_US, Ordering::Relaxed);
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Selects the processor time of the process or of this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Process,
    Thread,
}

/// The processor time spent in user code and in the kernel, in microseconds.
#[cfg(unix)]
fn processor_time(whose: Whose) -> ProcessorTime {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let who = match whose {
        #[cfg(target_os = "linux")]
        Whose::Thread => UsageWho::RUSAGE_THREAD,
        _ => UsageWho::RUSAGE_SELF,
    };
    let micros = |time: nix::sys::time::TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0);
    getrusage(who).map_or_else(
        |_| ProcessorTime::default(),
        |usage| ProcessorTime { system_us: micros(usage.system_time()), user_us: micros(usage.user_time()) },
    )
}

#[cfg(not(unix))]
fn processor_time(_: Whose) -> ProcessorTime {
    ProcessorTime::default()
}

#[cfg(target_os = "linux")]
fn resident_bytes() -> u64 {
    kilobytes_in("/proc/self/status", "VmRSS:")
}

/// The most memory that was ever resident: on other Unix systems, safe code can read no more than that.
#[cfg(all(unix, not(target_os = "linux")))]
fn resident_bytes() -> u64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let largest = getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| u64::try_from(usage.max_rss()).unwrap_or(0));
    if cfg!(target_vendor = "apple") { largest } else { largest * 1024 }
}

#[cfg(not(unix))]
fn resident_bytes() -> u64 {
    0
}

#[cfg(target_os = "linux")]
fn total_memory() -> u64 {
    kilobytes_in("/proc/meminfo", "MemTotal:")
}

#[cfg(not(target_os = "linux"))]
fn total_memory() -> u64 {
    0
}

/// The figure of a line such as `VmRSS:   1234 kB`, in bytes.
#[cfg(target_os = "linux")]
fn kilobytes_in(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    figure.map_or(0, |kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::os_storage::OsStorage;

    #[test]
    fn a_run_id_has_forty_hexadecimal_digits() {
        let id = run_id(&mut fastrand::Rng::with_seed(1));
        assert!(id.len() == 40 && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_running_process_uses_memory_and_processor_time() {
        let phase = tokio::sync::watch::Sender::new(crate::server::shared::Phase::Serving);
        let migrate_client = MigrateClient::new(phase.subscribe(), "");
        let event_loop = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("it can be had");
        let listeners = Listeners::new(Vec::new(), event_loop.handle().clone()).expect("there are none");
        let clock = Arc::new(Clock::system());
        let listeners = Some(Arc::new(listeners));
        let (migrate_client, loops) = (Arc::new(migrate_client), Loops::new(1));
        let files = HostFiles::new(Arc::new(OsStorage), None, None);
        let machine = OsHost::new(Facts::default(), clock, migrate_client, None, listeners, loops, files);
        let (usage, time) = (machine.usage(), machine.processor_time().process);
        assert!(usage.resident_bytes > 0 && time.user_us + time.system_us > 0, "{usage:?} {time:?}");
    }
}
