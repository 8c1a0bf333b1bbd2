//! Counters behind INFO: what happened since the start or since CONFIG RESETSTAT.
//!
//! The counters of commands are in pages of a few neighbours in the table, allocated when one of them first runs: of
//! hundreds of commands a program uses a dozen, and there may be thousands of engines.

use crate::acl::Reason;
use crate::engine::spec::CommandId;
use crate::engine::state::host::LoopCycles;
use crate::engine::state::{CoarseHistogram, ErrorCounts, InstantMetrics, LatencyHistogram, LatencyMonitor, SlowLog};

/// The counters of one command (INFO commandstats).
#[derive(Clone, Debug, Default)]
pub struct CommandStats {
    /// The number of calls.
    pub calls: u64,
    /// The total time of its calls, in microseconds.
    pub elapsed_us: u64,
    /// The number of requests that a gate refused before the command ran.
    pub rejected: u64,
    /// The number of calls that replied with an error.
    pub failed: u64,
    /// The histogram of its calls, while `latency-tracking` is on.
    pub latency_histogram: LatencyHistogram,
}

impl CommandStats {
    /// The counters of a command that was never called.
    const NONE: CommandStats =
        CommandStats { calls: 0, elapsed_us: 0, rejected: 0, failed: 0, latency_histogram: LatencyHistogram::NONE };
}

/// A page of commands that were never called.
const BLANK: Page = [const { CommandStats::NONE }; PAGE];

#[cold]
fn first_page() -> Box<Page> {
    Box::new(BLANK)
}

fn page(page: &Option<Box<Page>>) -> &Page {
    static NEVER_CALLED: Page = BLANK;
    page.as_deref().unwrap_or(&NEVER_CALLED)
}

/// The socket reads and writes of an event loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transfers {
    /// Reads that returned bytes.
    pub reads: u64,
    /// Writes that sent bytes.
    pub writes: u64,
}

/// The counters of what requests do, as they were at a moment.
#[derive(Debug, Default)]
struct RequestCounts {
    commands: u64,
    keyspace_hits: u64,
    keyspace_misses: u64,
    errors: u64,
    errors_by_code: ErrorCounts,
    by_command: Vec<Option<Box<Page>>>,
}

/// All counters of the engine.
#[derive(Debug, Default)]
pub struct Stats {
    /// Commands that ran.
    pub commands: u64,
    /// Sessions that were opened.
    pub connections: u64,
    /// Clients refused because there were too many.
    pub connections_refused: u64,
    /// Keys that expired.
    pub expired_keys: u64,
    /// Fields of hashes that expired.
    pub expired_fields: u64,
    /// How late the timer removed keys and fields.
    pub expiry_lag: CoarseHistogram,
    /// Keys that were evicted.
    pub evicted_keys: u64,
    /// Clients that were evicted for the memory they took.
    pub evicted_clients: u64,
    /// Clients that got all data: replicas by a full synchronization, and others by SYNC.
    pub full_syncs: u64,
    /// Replicas that got only what they had missed.
    pub partial_syncs: u64,
    /// Replicas that asked for what they had missed, and had to get all data.
    pub refused_partial_syncs: u64,
    /// The total time of past periods in which memory was short, in microseconds.
    pub short_of_memory_us: u64,
    /// Reads that found their key.
    pub keyspace_hits: u64,
    /// Reads that did not find their key.
    pub keyspace_misses: u64,
    /// All changes to the data; the persistence state counts those since the last save.
    pub changes: u64,
    /// Operations that a cluster would refuse, as far as they were looked at.
    pub cluster_incompatible_operations: u64,
    /// Error replies.
    pub errors: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Clients closed for their unfinished requests.
    pub query_buffer_disconnections: u64,
    /// Clients closed for replies they did not read.
    pub output_buffer_disconnections: u64,
    /// Errors by their code, such as `ERR`.
    pub errors_by_code: ErrorCounts,
    /// Reads and writes of sockets, by event loop.
    pub transfers: Vec<Transfers>,
    /// The time spent on removing expired keys and fields, in microseconds.
    pub expiring_us: u64,
    /// Values, keys and functions that Redis frees in the background: what UNLINK and the FLUSH commands remove.
    pub freed_lazily: u64,
    /// The most commands of one batch, read at once from one client.
    pub most_commands: u64,
    /// The number of commands that had run before the current batch.
    pub(in crate::engine) commands_before: u64,
    /// Memory of the server at its start, in bytes.
    pub startup_bytes: u64,
    /// The time spent on running requests, in microseconds.
    pub running_us: u64,
    /// The cycles of the event loops before the counters were reset.
    pub cycles_before: LoopCycles,
    /// Rates and peaks.
    pub instant_metrics: InstantMetrics,
    /// The slow log.
    pub slow_log: SlowLog,
    /// The latency monitor.
    pub latency_monitor: LatencyMonitor,
    by_command: Vec<Option<Box<Page>>>,
    denials: [u64; 4],
    /// The counters before the request that is not counted.
    before_uncounted: Option<Box<RequestCounts>>,
}

/// The number of commands whose counters are in one page.
const PAGE: usize = 8;

type Page = [CommandStats; PAGE];

impl Stats {
    /// Counters for a table of `commands` entries.
    pub fn new(commands: usize) -> Stats {
        Stats { by_command: vec![None; commands.div_ceil(PAGE)], ..Stats::default() }
    }

    /// The counters of that command.
    pub fn command(&self, id: CommandId) -> &CommandStats {
        &page(&self.by_command[id.index() / PAGE])[id.index() % PAGE]
    }

    /// The counters of all commands, in the order of the table.
    pub fn by_command(&self) -> impl Iterator<Item = &CommandStats> {
        self.by_command.iter().flat_map(page)
    }

    /// The counters of that command, to be changed.
    #[inline]
    pub fn command_mut(&mut self, id: CommandId) -> &mut CommandStats {
        let page = self.by_command[id.index() / PAGE].get_or_insert_with(first_page);
        &mut page[id.index() % PAGE]
    }

    /// Counts errors by the code that the line starts with.
    ///
    /// # Errors
    /// There are too many codes, so none is counted any more; returns the codes so far, for the log.
    pub fn count_errors(&mut self, line: &str, times: u64) -> Result<(), String> {
        self.errors += times;
        self.errors_by_code.count(line, times)
    }

    /// The number of denials for that reason, to be changed.
    pub(in crate::engine) fn denials_mut(&mut self, reason: Reason) -> &mut u64 {
        &mut self.denials[reason as usize]
    }

    /// The number of denials for that reason.
    pub fn denials(&self, reason: Reason) -> u64 {
        self.denials[reason as usize]
    }

    /// Begins a request that is not counted: a command of the page, which would change the counters that the page
    /// shows. They are copied, so that requests that count need not ask whether they do.
    #[cold]
    pub(in crate::engine) fn begin_uncounted(&mut self) {
        self.before_uncounted = Some(Box::new(RequestCounts {
            commands: self.commands,
            keyspace_hits: self.keyspace_hits,
            keyspace_misses: self.keyspace_misses,
            errors: self.errors,
            errors_by_code: self.errors_by_code.clone(),
            by_command: self.by_command.clone(),
        }));
    }

    /// Ends a request that is not counted, if one has begun; what comes behind it, such as a client that it has
    /// unblocked, counts again.
    pub(in crate::engine) fn end_uncounted(&mut self) {
        if let Some(before) = self.before_uncounted.take() {
            let RequestCounts { commands, keyspace_hits, keyspace_misses, errors, errors_by_code, by_command } =
                *before;
            (self.commands, self.keyspace_hits, self.keyspace_misses) = (commands, keyspace_hits, keyspace_misses);
            (self.errors, self.errors_by_code, self.by_command) = (errors, errors_by_code, by_command);
        }
    }

    /// The reads and writes of that event loop, to be changed.
    pub fn transfers_mut(&mut self, event_loop: usize) -> &mut Transfers {
        if self.transfers.len() <= event_loop {
            self.transfers.resize(event_loop + 1, Transfers::default());
        }
        &mut self.transfers[event_loop]
    }

    /// Resets the counters (CONFIG RESETSTAT), except the changes to the data, which are about the data, the logs,
    /// which are not counters, and the denials, as in Redis. `cycles` are all cycles so far.
    pub fn reset(&mut self, cycles: LoopCycles) {
        let old = std::mem::replace(self, Stats::new(self.by_command.len() * PAGE));
        self.cycles_before = cycles;
        (self.changes, self.instant_metrics, self.startup_bytes) =
            (old.changes, old.instant_metrics, old.startup_bytes);
        self.instant_metrics.forget();
        if old.before_uncounted.is_some() {
            self.begin_uncounted();
        }
        (self.slow_log, self.latency_monitor, self.denials) = (old.slow_log, old.latency_monitor, old.denials);
    }
}
