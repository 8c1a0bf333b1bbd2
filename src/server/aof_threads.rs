//! The threads of the append-only file: one writes, the other syncs (`everysec`), so that writes continue during a
//! sync. They report failures and recoveries to the engine.

use std::io;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use super::aof_writer::{AofWriter, OnFailureHook};
use super::clock::monotonic_us;
use super::contain::contain;
use super::os_host::reason;
use super::shared::Shared;
use crate::aof::decisions::{PATIENCE_US, SyncBehind, SyncPolicy};
use crate::engine::exec::aof;

/// A thread that waits for the disk, and its orders.
#[derive(Debug, Default)]
pub(super) struct DiskThread {
    orders: Mutex<Orders>,
    order_came: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The work that a thread is to do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Orders {
    /// Write what was appended.
    pub(super) writes: bool,
    /// Sync it, too.
    pub(super) syncs: bool,
    /// End.
    ends: bool,
}

impl DiskThread {
    /// Gives orders, which `set` adds to those that are open.
    pub(super) fn order(&self, set: impl FnOnce(&mut Orders)) {
        set(&mut self.orders.lock());
        self.order_came.notify_one();
    }

    /// Waits for orders, and takes them.
    fn next_orders(&self) -> Orders {
        let mut orders = self.orders.lock();
        while !(orders.writes || orders.syncs || orders.ends) {
            self.order_came.wait(&mut orders);
        }
        mem::take(&mut *orders)
    }

    /// Ends the thread.
    fn end(&self) {
        self.order(|orders| orders.ends = true);
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread was logged when it happened.
            drop(thread.join());
        }
    }
}

impl AofWriter {
    /// Starts the threads, unless they run.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start(self: &Arc<AofWriter>, shared: &Arc<Shared>) -> io::Result<()> {
        let mut thread = self.syncing.thread.lock();
        if thread.is_none() {
            let (writer, shared) = (Arc::clone(self), Arc::downgrade(shared));
            let run = move || writer.run(&writer.syncing, &shared, AofWriter::sync_as_ordered);
            *thread = Some(thread::Builder::new().name("dunlin-sync".to_owned()).spawn(run)?);
        }
        drop(thread);
        let mut thread = self.writing.thread.lock();
        if thread.is_none() {
            let (writer, shared) = (Arc::clone(self), Arc::downgrade(shared));
            let run = move || writer.run(&writer.writing, &shared, AofWriter::write_as_ordered);
            *thread = Some(thread::Builder::new().name("dunlin-aof".to_owned()).spawn(run)?);
        }
        Ok(())
    }

    /// A thread: carries out orders until the server ends.
    fn run(&self, thread: &DiskThread, shared: &Weak<Shared>, carry_out: fn(&AofWriter, Orders, &Shared)) {
        loop {
            let orders = thread.next_orders();
            if orders.ends {
                return;
            }
            let Some(shared) = shared.upgrade() else { return };
            contain("a thread of the append-only file", || {
                carry_out(self, orders, &shared);
                if self.progress.is_awaited() {
                    shared.act(aof::end_synced_waits);
                }
            });
        }
    }

    /// Writes what was appended, and publishes since when these bytes have waited (`write_began_us`).
    fn timed_write(&self) -> io::Result<()> {
        let began_us = monotonic_us();
        let (last_began_us, last_end_us) = *self.last_write_us.lock();
        let has_waited = began_us.saturating_sub(last_end_us) < PATIENCE_US;
        self.write_began_us.store(if has_waited { last_began_us } else { began_us }, Ordering::SeqCst);
        let written = self.write();
        self.write_began_us.store(0, Ordering::SeqCst);
        *self.last_write_us.lock() = (began_us, monotonic_us());
        written
    }

    fn write_as_ordered(&self, orders: Orders, shared: &Shared) {
        let policy = *self.policy.lock();
        let written = self.timed_write();
        let mut synced = Ok(());
        if written.is_ok() {
            match policy.sync_behind_write(orders.syncs) {
                SyncBehind::SameThread => {
                    synced = self.sync();
                    // What came during the sync, and whose replies wait.
                    let _ = self.write();
                }
                SyncBehind::OtherThread => self.syncing.order(|orders| orders.syncs = true),
                SyncBehind::None => {}
            }
        }
        self.report(shared, policy, written, synced);
    }

    fn sync_as_ordered(&self, _: Orders, shared: &Shared) {
        let synced = self.sync();
        // Only the thread that writes reports whether writes work.
        if synced.is_err() {
            // The engine's lock, which a report takes, comes before that of the policy.
            let policy = *self.policy.lock();
            self.report(shared, policy, Ok(()), synced);
        }
    }

    /// Tells the engine what has failed, or works again.
    fn report(&self, shared: &Shared, policy: SyncPolicy, written: io::Result<()>, synced: io::Result<()>) {
        let failure = written.and(synced).err().map(|error| reason(&error));
        // A failure is reported as it was: there may be new files by the time the engine learns of it.
        let has_failed_sync = self.has_failed_sync();
        let had_failed = self.has_failed.load(Ordering::Acquire);
        let after = policy.after_write(failure.as_deref(), has_failed_sync, had_failed);
        self.has_failed.store(after.has_failed, Ordering::Release);
        if let Some(last_words) = &after.ends_program
            && let Some(OnFailureHook(end)) = &*self.on_failure.lock()
        {
            end(last_words);
        }
        if after.tells_engine {
            let works_again = failure.is_none();
            shared.act(|engine| {
                // The other thread's sync may have failed meanwhile.
                let has_failed_sync = if works_again { self.has_failed_sync() } else { has_failed_sync };
                aof::end_write(engine, failure, has_failed_sync);
            });
        }
    }

    /// Whether a sync has failed: only a new base heals that, and the engine knows when it is in place.
    fn has_failed_sync(&self) -> bool {
        self.log().as_ref().is_some_and(|log| log.sync_error().is_some())
    }

    /// Ends the threads.
    pub(crate) fn end(&self) {
        self.writing.end();
        self.syncing.end();
    }
}
