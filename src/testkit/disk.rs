//! A simulated disk, as a test in Rust uses it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::storage::Storage;
use crate::storage::simulated::{DataLoss, Freedom, SimulatedDisk};

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
pub struct Disk(SimulatedDisk);

impl Default for Disk {
    fn default() -> Disk {
        Disk::new()
    }
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Disk {
        // The format of an append-only file has no checksum by which other damage of its end could be found.
        let freedom = Freedom { data: DataLoss::InOrder, ..Freedom::default() };
        Disk(SimulatedDisk::with(freedom))
    }

    /// Turns the machine off and on. The server that uses the disk is cut off from it for good, as all its calls fail.
    pub fn power_loss(&self, seed: u64) {
        self.0.power_loss(seed);
    }

    /// Whether the disk has no space left.
    pub fn set_full(&self, is_full: bool) {
        self.0.set_full(is_full);
    }

    /// Has the next sync of a file fail. What it should have made durable is lost for good.
    pub fn fail_next_sync(&self) {
        self.0.fail_next_sync();
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.0.paths()
    }

    /// The contents of a file; `None` if there is no such file.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.0.read(path)
    }

    /// Makes a file with these contents, and the folders above it, all of it durable.
    pub fn write(&self, path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) {
        self.0.write(path, contents);
    }

    /// The disk for a server that starts now, with that folder.
    pub(super) fn attach(&self, folder: &str) -> Arc<dyn Storage> {
        self.0.add_folder(folder);
        Arc::new(self.0.attached())
    }
}
