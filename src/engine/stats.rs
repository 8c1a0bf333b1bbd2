//! Counters behind INFO: what happened since the start or since CONFIG RESETSTAT.
//!
//! What is counted by command stands in pages of a few neighbours in the table, made when one of them first runs: of
//! hundreds of commands a program uses a dozen, and there may be thousands of engines.

use crate::acl::Reason;
use crate::engine::host::Turns;
use crate::engine::{CommandId, ErrorCounts, InstantMetrics, LatencyHistogram, LatencyMonitor, SlowLog};

/// How one command fared.
#[derive(Clone, Debug, Default)]
pub struct CommandStats {
    /// How often it ran.
    pub calls: u64,
    /// How long it ran, in microseconds.
    pub elapsed_us: u64,
    /// How often a gate refused it before it ran.
    pub rejected: u64,
    /// How often it ran and answered an error.
    pub failed: u64,
    /// How long its calls took, while `latency-tracking` is on.
    pub latency_histogram: LatencyHistogram,
}

impl CommandStats {
    /// Of a command that nobody called.
    const NONE: CommandStats =
        CommandStats { calls: 0, elapsed_us: 0, rejected: 0, failed: 0, latency_histogram: LatencyHistogram::NONE };
}

/// A page of commands that nobody called.
const BLANK: Page = [const { CommandStats::NONE }; PAGE];

#[cold]
fn first_page() -> Box<Page> {
    Box::new(BLANK)
}

fn page(page: &Option<Box<Page>>) -> &Page {
    static NEVER_CALLED: Page = BLANK;
    page.as_deref().unwrap_or(&NEVER_CALLED)
}

/// What an event loop has read and written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transfers {
    /// Reads that brought something.
    pub reads: u64,
    /// Times that something was sent.
    pub writes: u64,
}

/// All counters.
#[derive(Debug, Default)]
pub struct Stats {
    /// Commands that ran.
    pub commands: u64,
    /// Sessions that came.
    pub connections: u64,
    /// Clients turned away because there were too many.
    pub connections_refused: u64,
    /// Keys that ended at their deadline.
    pub expired_keys: u64,
    /// Fields of hashes that ended at theirs.
    pub expired_fields: u64,
    /// Keys that were removed for want of memory.
    pub evicted_keys: u64,
    /// Clients that were closed for the memory they took.
    pub evicted_clients: u64,
    /// For how long memory was short, in microseconds, until it was not.
    pub short_of_memory_us: u64,
    /// Reads that found their key.
    pub keyspace_hits: u64,
    /// Reads that did not.
    pub keyspace_misses: u64,
    /// Changes to the data since the last save.
    pub changes: u64,
    /// Errors answered.
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
    /// How long keys and fields were being removed at their deadlines, in microseconds.
    pub expiring_us: u64,
    /// Values, keys and functions that Redis frees in the background: what UNLINK and the FLUSH commands remove.
    pub freed_lazily: u64,
    /// The most commands that ran together, read at once from one client.
    pub most_commands: u64,
    /// How many commands had run before those that run together now.
    pub(super) commands_before: u64,
    /// Bytes that the server took when it started.
    pub startup_bytes: u64,
    /// How long requests were being run, in microseconds.
    pub running_us: u64,
    /// The turns of the event loops before counting began.
    pub turns_before: Turns,
    /// Rates and peaks.
    pub instant_metrics: InstantMetrics,
    /// The last commands that took long.
    pub slow_log: SlowLog,
    /// What held everybody up.
    pub latency_monitor: LatencyMonitor,
    by_command: Vec<Option<Box<Page>>>,
    refusals: [u64; 4],
}

/// The number of commands whose counters lie in one page.
const PAGE: usize = 8;

type Page = [CommandStats; PAGE];

impl Stats {
    /// Counters for a table of `commands` entries.
    pub fn new(commands: usize) -> Stats {
        Stats { by_command: vec![None; commands.div_ceil(PAGE)], ..Stats::default() }
    }

    /// How that command fared.
    pub fn command(&self, id: CommandId) -> &CommandStats {
        &page(&self.by_command[id.index() / PAGE])[id.index() % PAGE]
    }

    /// All of them, in the order of the table.
    pub fn by_command(&self) -> impl Iterator<Item = &CommandStats> {
        self.by_command.iter().flat_map(page)
    }

    /// How that command fared, to be counted on.
    #[inline]
    pub fn command_mut(&mut self, id: CommandId) -> &mut CommandStats {
        let page = self.by_command[id.index() / PAGE].get_or_insert_with(first_page);
        &mut page[id.index() % PAGE]
    }

    /// Counts errors by the code that the line starts with.
    ///
    /// # Errors
    /// There are too many codes, so none is counted any more; what there were, to be told in the log.
    pub fn count_errors(&mut self, line: &str, times: u64) -> Result<(), String> {
        self.errors += times;
        self.errors_by_code.count(line, times)
    }

    /// How often something was refused for that reason, to be counted on.
    pub(super) fn denied(&mut self, reason: Reason) -> &mut u64 {
        &mut self.refusals[reason as usize]
    }

    /// How often something was refused for that reason.
    pub fn refusals(&self, reason: Reason) -> u64 {
        self.refusals[reason as usize]
    }

    /// What that event loop has read and written, to be counted on.
    pub fn transfers_mut(&mut self, event_loop: usize) -> &mut Transfers {
        if self.transfers.len() <= event_loop {
            self.transfers.resize(event_loop + 1, Transfers::default());
        }
        &mut self.transfers[event_loop]
    }

    /// Starts counting anew (CONFIG RESETSTAT); changes to the data stay counted, as they are about the data, and logs
    /// are not counters. What was refused stays counted as well, as in Redis. `turns` are all so far.
    pub fn reset(&mut self, turns: Turns) {
        let old = std::mem::replace(self, Stats::new(self.by_command.len() * PAGE));
        self.turns_before = turns;
        (self.changes, self.instant_metrics, self.startup_bytes) =
            (old.changes, old.instant_metrics, old.startup_bytes);
        self.instant_metrics.forget();
        (self.slow_log, self.latency_monitor, self.refusals) = (old.slow_log, old.latency_monitor, old.refusals);
    }
}
