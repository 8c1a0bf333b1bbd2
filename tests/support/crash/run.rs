//! A run of a server with an append-only file: work, a crash, a restart on the same files, several times in a row. What
//! happens, and how the disk fails, is chosen by a seed or by a fuzzer.

use std::path::Path;

use dunlin::engine::SyncPolicy;
use dunlin::storage::Storage;
use dunlin::storage::simulated::{DataLoss, Fault, NameLoss, PowerLossModel, SimulatedDisk};

use super::machine::{History, Machine, Setup, Sites};
use super::requests::Requests;
use crate::support::choices::Choices;

/// How often the machine is restarted on the same files.
const CRASHES: usize = 4;
/// The only file of a server before Redis 7.
const SINGLE_FILE: (&str, &str) = ("SET text:0 old", "*3\r\n$3\r\nSET\r\n$6\r\ntext:0\r\n$3\r\nold\r\n");

/// A run of a machine that is restarted several times.
pub(crate) struct Run<'b> {
    pub(crate) disk: SimulatedDisk,
    pub(crate) choices: Choices<'b>,
    setup: Setup,
    pub(crate) sites: Sites,
    history: History,
    /// Whether calls may fail.
    has_faults: bool,
    /// Whether much is done before anything is written.
    writes_rarely: bool,
    requests: Requests,
}

impl<'b> Run<'b> {
    /// A run on a disk that keeps the first bytes of what was not synced: without checksums no other damage can be
    /// found.
    pub(crate) fn new(choices: Choices<'b>, has_faults: bool) -> Run<'b> {
        Run::with(choices, has_faults, DataLoss::InOrder)
    }

    /// A run with checksums on a disk that may keep any sectors of what was not synced.
    pub(crate) fn with_checksums(choices: Choices<'b>) -> Run<'b> {
        Run::with(choices, false, DataLoss::Any)
    }

    fn with(mut choices: Choices<'b>, has_faults: bool, data: DataLoss) -> Run<'b> {
        let disk = SimulatedDisk::with(PowerLossModel {
            names: if choices.below(3) == 0 { NameLoss::InOrder } else { NameLoss::Any },
            data,
            sync_keeps_new_names: choices.below(5) == 0,
        });
        disk.add_folder("data");
        let mut history = History::default();
        if choices.below(7) == 0 {
            let file = disk.create(Path::new("data/appendonly.aof")).expect("the disk works");
            file.write(SINGLE_FILE.1.as_bytes()).expect("the disk works");
            let is_durable = choices.below(2) == 0;
            if is_durable {
                file.sync().and_then(|()| disk.sync_folder(Path::new("data"))).expect("the disk works");
            }
            history = History::of(SINGLE_FILE.0, is_durable);
        }
        let policy = if choices.below(2) == 0 { SyncPolicy::Always } else { SyncPolicy::EverySecond };
        let writes_rarely = choices.below(4) == 1;
        let setup = Setup { policy, has_checksums: data == DataLoss::Any };
        Run {
            disk,
            choices,
            setup,
            sites: Sites::default(),
            history,
            has_faults,
            writes_rarely,
            requests: Requests::default(),
        }
    }

    /// Starts the server, works, and crashes, several times in a row; then starts it once more.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        for _ in 0..CRASHES {
            self.prepare_faults();
            let mut machine = self.start()?;
            self.work(&mut machine);
            // What a failed sync has lost is still in memory, and a start takes it for durable.
            let keeps_power = !self.has_faults && self.choices.below(2) == 0;
            if keeps_power {
                machine.outlive_process();
            }
            self.history = std::mem::take(&mut machine.history);
            drop(machine);
            if keeps_power { self.disk.process_end() } else { self.lose_power() }
        }
        self.start().map(drop)
    }

    /// Starts the server. With a disk that works, it has to start.
    fn start(&mut self) -> Result<Machine, String> {
        let mut may_fail = self.has_faults;
        loop {
            let started = Machine::start(&self.disk, self.setup, &self.sites, &mut self.history);
            if started.is_ok() || !(may_fail || self.disk.is_stopped()) {
                return started;
            }
            // What is to fail is forgotten.
            self.lose_power();
            may_fail = false;
        }
    }

    fn lose_power(&mut self) {
        self.disk.power_loss(self.choices.below(u32::MAX as usize) as u64);
        self.history.lose_power();
    }

    /// Cuts off what stands behind the last checksum of each log, which nothing checks; false if there is nothing.
    pub(crate) fn cut_unchecked_tails(&self) -> bool {
        let mut has_cut = false;
        for path in self.disk.paths().iter().filter(|path| path.to_string_lossy().ends_with(".incr.aof")) {
            let log = self.disk.read(path).unwrap_or_default();
            let last = log.windows(5).rposition(|bytes| bytes == b"#CRC:").unwrap_or(0);
            let end = log[last..].iter().position(|&byte| byte == b'\n').map_or(last, |length| last + length + 1);
            has_cut |= end < log.len();
            self.disk.write(path, &log[..end]);
        }
        has_cut
    }

    /// Starts the server once more, as [`Run::run`] does at its end.
    pub(crate) fn start_again(&mut self) -> Result<(), String> {
        self.disk.process_end();
        self.start().map(drop)
    }

    /// Makes the disk stop or fail at a call to come.
    fn prepare_faults(&mut self) {
        let most = [20, 60, 150][self.choices.below(3)];
        if self.choices.below(8) > 0 {
            self.disk.stop_at_call(self.choices.below(most) as u64);
        }
        if self.has_faults {
            let faults = [Fault::InputOutput, Fault::Full, Fault::Short, Fault::Interrupted];
            for _ in 0..self.choices.below(3) {
                let fault = faults[self.choices.below(faults.len())];
                self.disk.fail_call(self.choices.below(most) as u64, fault);
            }
        }
    }

    /// Does one thing after the other until the machine stops, or for a while.
    fn work(&mut self, machine: &mut Machine) {
        for _ in 0..self.choices.below(60) {
            match self.choices.below(45) {
                0..12 => {
                    let requests = self.requests();
                    machine.run(&requests);
                }
                12..22 if self.writes_rarely && self.choices.below(8) > 0 => {}
                12..22 => machine.write(),
                22..30 => machine.sync(),
                30..38 => machine.rewrite(),
                38..40 => machine.pass_ms(1 + self.choices.below(50)),
                42..45 => {
                    let request = self.requests.make(&mut self.choices);
                    machine.run_and_wait(&request);
                }
                _ => machine.begin_anew(),
            }
            if self.disk.is_stopped() {
                return;
            }
        }
        if self.choices.below(3) == 0 {
            // When the disk fails, nothing more is durable.
            let _ = machine.end();
        }
    }

    /// The requests of a client: one, or a transaction.
    fn requests(&mut self) -> Vec<String> {
        match self.choices.below(6) {
            0 => {
                let mut requests = vec!["MULTI".to_owned(), format!("SELECT {}", self.choices.below(2))];
                requests.extend((0..2 + self.choices.below(3)).map(|_| self.requests.make(&mut self.choices)));
                requests.push("EXEC".to_owned());
                requests
            }
            1 => vec![format!("SELECT {}", self.choices.below(3)), self.requests.make(&mut self.choices)],
            _ => vec![self.requests.make(&mut self.choices)],
        }
    }
}
