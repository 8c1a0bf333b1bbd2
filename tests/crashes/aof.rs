//! The append-only file: no durable change is lost and none is invented, whatever happens before the restart.
//!
//! Disks differ in what they do to names. Of what was appended and not synced, the first bytes survive, and perhaps
//! zeros: the file's format has no checksum with which other damage could be found.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use dunlin::engine::SyncPolicy;
use dunlin::storage::Storage;
use dunlin::storage::simulated::{DataLoss, Fault, Freedom, NameLoss, SimulatedDisk};

use crate::machine::{History, Machine, Sites};

/// How many seeds are run, unless DUNLIN_CRASHES says it.
const SEEDS: u64 = 1000;
/// How often the machine is restarted on the same files.
const CRASHES: usize = 4;
/// The most seeds until one notices that a sync is left out.
const SEEDS_TO_NOTICE: u64 = 40_000;

/// What a server before Redis 7 had as its only file.
const SINGLE_FILE: (&str, &str) = ("SET text:0 old", "*3\r\n$3\r\nSET\r\n$6\r\ntext:0\r\n$3\r\nold\r\n");

/// A run of a machine that is restarted several times.
struct Run {
    disk: SimulatedDisk,
    random: fastrand::Rng,
    policy: SyncPolicy,
    sites: Sites,
    history: History,
    /// Whether calls may fail.
    has_faults: bool,
    /// Whether much is done before anything is written.
    writes_rarely: bool,
    /// The number of the client's request, with which it makes different ones.
    number: usize,
}

impl Run {
    fn new(seed: u64, has_faults: bool) -> Run {
        let disk = SimulatedDisk::with(Freedom {
            names: if seed.is_multiple_of(3) { NameLoss::InOrder } else { NameLoss::Any },
            data: DataLoss::InOrder,
            sync_keeps_new_names: seed.is_multiple_of(5),
        });
        disk.add_folder("data");
        let mut history = History::default();
        if seed.is_multiple_of(7) {
            let file = disk.create(Path::new("data/appendonly.aof")).expect("the disk works");
            file.write(SINGLE_FILE.1.as_bytes()).expect("the disk works");
            let is_durable = seed.is_multiple_of(2);
            if is_durable {
                file.sync().and_then(|()| disk.sync_folder(Path::new("data"))).expect("the disk works");
            }
            history = History::of(SINGLE_FILE.0, is_durable);
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let policy = if random.bool() { SyncPolicy::Always } else { SyncPolicy::EverySecond };
        Run {
            disk,
            random,
            policy,
            sites: Sites::default(),
            history,
            has_faults,
            writes_rarely: seed % 4 == 1,
            number: 0,
        }
    }

    /// Starts the server, works, and crashes, several times in a row; then starts it once more.
    fn run(&mut self) -> Result<(), String> {
        for _ in 0..CRASHES {
            self.prepare_faults();
            let mut machine = self.start()?;
            self.work(&mut machine);
            // What a failed sync has lost is still in memory, and a start takes it for durable.
            let keeps_power = !self.has_faults && self.random.bool();
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
            let started = Machine::start(&self.disk, self.policy, &self.sites, &mut self.history);
            if started.is_ok() || !(may_fail || self.disk.is_stopped()) {
                return started;
            }
            // What is to fail is forgotten.
            self.lose_power();
            may_fail = false;
        }
    }

    fn lose_power(&mut self) {
        self.disk.power_loss(self.random.u64(..));
        self.history.lose_power();
    }

    /// Has the disk stop or fail at a call to come.
    fn prepare_faults(&mut self) {
        let most = [20, 60, 150][self.random.usize(0..3)];
        if self.random.u8(0..8) > 0 {
            self.disk.stop_at_call(self.random.u64(0..most));
        }
        if self.has_faults {
            let faults = [Fault::InputOutput, Fault::Full, Fault::Short, Fault::Interrupted];
            for _ in 0..self.random.u8(0..3) {
                let fault = faults[self.random.usize(..faults.len())];
                self.disk.fail_call(self.random.u64(0..most), fault);
            }
        }
    }

    /// Does one thing after the other until the machine stops, or for a while.
    fn work(&mut self, machine: &mut Machine) {
        for _ in 0..self.random.usize(0..60) {
            match self.random.u8(0..40) {
                0..12 => {
                    let requests = self.requests();
                    machine.run(&requests);
                }
                12..22 if self.writes_rarely && self.random.u8(0..8) > 0 => {}
                12..22 => machine.write(),
                22..30 => machine.sync(),
                30..38 => machine.rewrite(),
                _ => machine.begin_anew(),
            }
            if self.disk.is_stopped() {
                return;
            }
        }
        if self.random.u8(0..3) == 0 {
            // When the disk fails, nothing more is durable.
            let _ = machine.end();
        }
    }

    /// The requests of a client: one, or a transaction.
    fn requests(&mut self) -> Vec<String> {
        self.number += 1;
        match self.random.u8(0..6) {
            0 => {
                let mut requests = vec!["MULTI".to_owned(), format!("SELECT {}", self.random.u8(0..2))];
                requests.extend((0..self.random.usize(2..5)).map(|_| self.request()));
                requests.push("EXEC".to_owned());
                requests
            }
            1 => vec![format!("SELECT {}", self.random.u8(0..3)), self.request()],
            _ => vec![self.request()],
        }
    }

    fn request(&mut self) -> String {
        let (key, number) = (self.random.u8(0..4), self.number);
        match self.random.u8(0..16) {
            0 => format!("SET text:{key} {number}"),
            1 => format!("APPEND text:{key} {}", "x".repeat(self.random.usize(1..700))),
            2 => format!("INCRBY number:{key} {number}"),
            3 => format!("RPUSH list:{key} {number} {number}"),
            4 => format!("LPOP list:{key}"),
            5 => format!("HSET hash:{key} field:{} {number}", number % 7),
            6 => format!("HPEXPIREAT hash:{key} {} FIELDS 1 field:1", 4_000_000_000_000 + number),
            7 => format!("SADD set:{key} {number} {}", number % 5),
            8 => format!("SPOP set:{key}"),
            9 => format!("ZADD zset:{key} {number} member:{}", number % 9),
            10 => format!("XADD stream:{key} * number {number}"),
            11 => format!("XTRIM stream:{key} MAXLEN 3"),
            12 => format!("PEXPIREAT text:{key} {}", 4_000_000_000_000 + number),
            13 => format!("DEL text:{key} list:{key}"),
            14 => format!("COPY list:{key} list:{} REPLACE", (key + 1) % 4),
            _ => format!("RENAME text:{key} text:{}", (key + 1) % 4),
        }
    }
}

fn run_seeds(has_faults: bool) {
    let wanted = std::env::var("DUNLIN_CRASHES").map(|seeds| seeds.parse().expect("DUNLIN_CRASHES is a number"));
    for seed in 0..wanted.unwrap_or(SEEDS) {
        Run::new(seed, has_faults).run().unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    }
}

#[test]
fn no_durable_change_is_lost_and_none_is_invented_by_power_losses() {
    run_seeds(false);
}

#[test]
fn no_durable_change_is_lost_and_none_is_invented_by_a_disk_that_fails() {
    run_seeds(true);
}

/// The syncs without which something durable is lost, or a start is refused: where the code is, what is synced, and
/// which of several such syncs it is.
const NEEDED: &[&str] = &[
    "base: the base 1",
    "cut: the single file 1",
    "end: the log",
    "end: the manifest 1",
    "first base: its folder 1",
    "first base: the base 1",
    "first base: the manifest 1",
    "go on: its folder 1",
    "go on: its folder 2",
    "go on: the log",
    "go on: the manifest 1",
    "next file: its folder 1",
    "next file: its folder 2",
    "next file: the manifest 1",
    "open: its folder 1",
    "open: its folder 2",
    "open: the folder above 1",
    "open: the manifest 1",
    "open: the single file 1",
    "publish: its folder 1",
    "publish: its folder 2",
    "publish: the manifest 1",
    "publish: the manifest 2",
    "switch: the log",
    "sync: the log",
    "write: the log",
];

/// The other syncs, each with the reason why nothing is lost without it.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("cut: the log", "the file is synced once more before the server goes on with it"),
    ("end: its folder 1", "only the end offset is lost, which nothing needs"),
    ("first base: its folder 2", "the folder is synced once more before the first change"),
    ("open: its folder 3", "a disk with a journal moves a file as a whole; the next start moves it again"),
    ("open: the folder above 2", "the single file is in its old place, too, where nothing reads it any more"),
    ("publish: its folder 3", "only the lines of removed files are back"),
];

#[test]
fn no_sync_can_be_left_out() {
    let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    for seed in 0..300 {
        let (mut run, seen) = (Run::new(seed, false), Arc::clone(&seen));
        let sites = run.sites.clone();
        run.disk.ignore_syncs(move |call| {
            seen.lock().expect("nothing panics").insert(sites.name(call));
            false
        });
        run.run().expect("no sync is left out");
    }
    let seen = seen.lock().expect("nothing panics").clone();
    let listed = NEEDED.iter().copied().chain(NOT_NEEDED.iter().map(|(site, _)| *site));
    assert_eq!(seen, listed.map(str::to_owned).collect(), "the lists have all syncs");
    let first = |site: &str| (0..SEEDS_TO_NOTICE).find(|&seed| notices(seed, site));
    let unnoticed: Vec<&&str> = NEEDED.iter().filter(|site| first(site).is_none()).collect();
    assert!(unnoticed.is_empty(), "nothing is lost without {unnoticed:?}");
}

/// Whether a run fails when that sync is left out. In half of the runs, the machine stops soon after it.
fn notices(seed: u64, site: &str) -> bool {
    let mut run = Run::new(seed, false);
    let (sites, site) = (run.sites.clone(), site.to_owned());
    run.disk.ignore_syncs(move |call| sites.name(call) == site);
    if run.random.bool() {
        run.disk.stop_behind_ignored_sync(run.random.u64(0..6));
    }
    run.run().is_err()
}
