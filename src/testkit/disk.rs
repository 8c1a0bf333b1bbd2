//! A simulated disk, and rules by which a disk fails, as a test in Rust uses them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::engine::state::kit::{DiskCalls, DiskFailure, DiskFault, DiskFaults, Trigger};
use crate::storage::Storage;
use crate::storage::simulated::{DataLoss, PowerLossModel, SimulatedDisk};

/// A disk in memory for the files of a server ([`Builder::disk`](super::Builder::disk)): it fills up, fails, and loses
/// power when a test wants that.
///
/// At a power loss a seed chooses what is left of all that was not synced: writes whole, in part, as zeros or not at
/// all, and names in any order. The server that ran then is cut off from the disk, and the next one starts with what is
/// left. Its clones are the same disk.
///
/// ```
/// let disk = dunlin::Disk::new();
/// let start = || dunlin::Server::builder().disk(&disk).set("appendonly", "yes").set("appendfsync", "always").start();
/// let server = start()?;
/// server.client()?.call(["SET", "greeting", "hello"])?;
/// disk.power_loss(7);
/// drop(server);
/// assert_eq!(start()?.client()?.call(["GET", "greeting"])?, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Disk {
    simulated: SimulatedDisk,
    faults: DiskFaults,
}

impl Default for Disk {
    fn default() -> Disk {
        Disk::new()
    }
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Disk {
        // The format of an append-only file has no checksum by which other damage of its end could be found.
        let model = PowerLossModel { data: DataLoss::InOrder, ..PowerLossModel::default() };
        Disk { simulated: SimulatedDisk::with(model), faults: DiskFaults::default() }
    }

    /// Turns the machine off and on. The server that uses the disk is cut off from it for good, as all its calls fail.
    pub fn power_loss(&self, seed: u64) {
        self.simulated.power_loss(seed);
    }

    /// Starts a rule by which the disk fails, as [`Server::disk_fault`](super::Server::disk_fault) does. Rules stay
    /// when the power is lost, and when a server ends.
    pub fn fault(&self, name: &str) -> DiskFaultRule {
        DiskFaultRule::of(&self.faults, name)
    }

    /// Removes a rule; returns false if no rule has this name.
    pub fn remove_fault(&self, name: &str) -> bool {
        self.faults.remove(name.as_bytes())
    }

    /// Fills the disk, or frees it again, by a rule named `full`.
    pub fn set_full(&self, is_full: bool) {
        if is_full {
            self.fault("full").writes().full();
        } else {
            self.remove_fault("full");
        }
    }

    /// Makes the next sync fail: a rule with the name `next sync`. What the sync should have made durable is lost for
    /// good.
    pub fn fail_next_sync(&self) {
        self.fault("next sync").syncs().times(1).input_output_error();
    }

    /// Returns the paths of all files, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.simulated.paths()
    }

    /// Returns the contents of a file; `None` if there is no such file.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.simulated.read(path)
    }

    /// Makes a file with these contents, and the folders above it, all of it durable.
    pub fn write(&self, path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) {
        self.simulated.write(path, contents);
    }

    /// The disk for a server that starts now, with that folder.
    pub(super) fn attach(&self, folder: &str) -> Arc<dyn Storage> {
        self.simulated.add_folder(folder);
        Arc::new(self.simulated.attached())
    }

    /// The rules by which it fails.
    pub(super) fn faults(&self) -> &DiskFaults {
        &self.faults
    }
}

/// The builder of a rule by which a disk fails: first the calls of the file system that it matches, all by default;
/// then, as the last call, the failure.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("dunlin-disk-fault-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let server = dunlin::Server::builder().set("dir", &folder.to_string_lossy()).start()?;
/// server.disk_fault("full").writes().times(1).full();
/// let mut client = server.client()?;
/// assert!(client.call(["SAVE"]).is_err());
/// assert!(client.call(["SAVE"]).is_ok());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a rule has no effect until its failure is set, as by `.full()`"]
pub struct DiskFaultRule {
    faults: DiskFaults,
    rule: DiskFault,
}

impl DiskFaultRule {
    pub(super) fn of(faults: &DiskFaults, name: &str) -> DiskFaultRule {
        let (calls, failure) = (DiskCalls::Any, DiskFailure::InputOutput);
        let rule =
            DiskFault { name: name.as_bytes().to_vec(), calls, file: None, trigger: Trigger::default(), failure };
        DiskFaultRule { faults: faults.clone(), rule }
    }

    /// Matches only reads of files and folders.
    pub fn reads(mut self) -> DiskFaultRule {
        self.rule.calls = DiskCalls::Read;
        self
    }

    /// Matches only writes, and the creation of files and folders.
    pub fn writes(mut self) -> DiskFaultRule {
        self.rule.calls = DiskCalls::Write;
        self
    }

    /// Matches only syncs of files and folders.
    pub fn syncs(mut self) -> DiskFaultRule {
        self.rule.calls = DiskCalls::Sync;
        self
    }

    /// Matches only the renaming of files.
    pub fn renames(mut self) -> DiskFaultRule {
        self.rule.calls = DiskCalls::Rename;
        self
    }

    /// Matches only files and folders whose names, without their paths, match the glob.
    pub fn file(mut self, pattern: &str) -> DiskFaultRule {
        self.rule.file = Some(pattern.as_bytes().to_vec());
        self
    }

    /// Fires from the n-th match on, counted from 1, and once unless [`DiskFaultRule::times`] sets another number.
    pub fn nth(mut self, nth: u64) -> DiskFaultRule {
        self.rule.trigger.set_nth(nth);
        self
    }

    /// Fires at most this many times.
    pub fn times(mut self, times: u64) -> DiskFaultRule {
        self.rule.trigger.times = Some(times);
        self
    }

    /// Fires with this probability, from 0 to 100 percent.
    pub fn percent(mut self, percent: f64) -> DiskFaultRule {
        self.rule.trigger.percent = Some(percent);
        self
    }

    /// Adds the rule: matching calls fail with an error of the device (EIO). What a sync of a [`Disk`] should have made
    /// durable is lost.
    pub fn input_output_error(self) {
        self.fail(DiskFailure::InputOutput);
    }

    /// Adds the rule: matching calls fail because the disk is full (ENOSPC).
    pub fn full(self) {
        self.fail(DiskFailure::Full);
    }

    /// Adds the rule: the disk takes this many bytes more and is full then. The last write takes what fits.
    pub fn space(self, bytes: u64) {
        self.writes().fail(DiskFailure::Space { bytes });
    }

    /// Adds the rule: matching calls take this much longer, in real time, but end when the rule is removed or the
    /// server ends.
    pub fn delay(self, by: Duration) {
        self.fail(DiskFailure::Delay { ms: u64::try_from(by.as_millis()).unwrap_or(u64::MAX) });
    }

    fn fail(mut self, failure: DiskFailure) {
        self.rule.failure = failure;
        self.faults.add(self.rule, 0);
    }
}
