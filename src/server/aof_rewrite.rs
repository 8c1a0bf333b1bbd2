//! Rewriting the append-only file (BGREWRITEAOF), on the thread of a save.
//!
//! The next incremental file is created and made durable in the manifest before the base is taken. So whenever the
//! server is killed, the files in the manifest together hold all changes. A fresh incremental file is listed together
//! with its base if the append-only file was just switched on, or if its files cannot be relied on.
//!
//! No base is taken while a script is suspended: it would have a part of what the script does. One that waits is taken
//! where the script ends ([`take_awaited_base`]).

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};

use super::background_saver::{FAULT, PAUSE_PART, STOPPED, TestDelay, announce_temporary_file, goes_on};
use super::contain::contain;
use super::os_host::reason;
use super::processors::at_low_priority;
use super::progress::after_each_key;
use super::shared::Shared;
use crate::aof::decisions::NextFile;
use crate::aof::files::VerifiedBase;
use crate::engine::exec::aof;
use crate::engine::state::{BackgroundSave, Rewrite};
use crate::engine::{Checkpoint, Engine, Settings};
use crate::storage::{StorageFile, replace};

/// Starts to rewrite the append-only file in the background.
pub(super) fn start(shared: &Shared, engine: &mut Engine, id: u64) {
    let delay = TestDelay::of_us(engine.settings.files.save_delay_us);
    let write = move |shared: &Shared, stop: &AtomicBool| rewrite(shared, id, delay, stop);
    if let Err(reason) = shared.start_save(BackgroundSave::Rewrite(id), write) {
        aof::end_rewrite(engine, id, Err(reason));
    }
}

/// Rewrites the append-only file, and tells the engine how that ended.
fn rewrite(shared: &Shared, id: u64, delay: TestDelay, is_stopped: &AtomicBool) {
    let result = contain("the thread that saves", || try_rewrite(shared, id, delay, is_stopped));
    let result = result.unwrap_or_else(|| Err(FAULT.to_owned()));
    shared.act(|engine| aof::end_rewrite(engine, id, result));
}

/// Takes the base of an append-only file that begins anew, before the server ends.
pub(super) fn wait_for_last_base(shared: &Shared) {
    if shared.act(aof::begin_last_base) {
        shared.worlds().saver().wait();
    }
}

fn try_rewrite(shared: &Shared, id: u64, delay: TestDelay, is_stopped: &AtomicBool) -> Result<(), String> {
    let writer = shared.worlds().aof();
    let (next, settings, rewrite) = {
        let engine = shared.engine();
        let aof = &engine.persistence.aof;
        (aof.state.next_file(), engine.settings.clone(), aof.rewrite.filter(|rewrite| rewrite.id == id))
    };
    let Some(rewrite) = rewrite else { return Err(STOPPED.to_owned()) };
    make_files(shared, &settings, next, rewrite, delay, is_stopped).inspect_err(|_| {
        if next.is_none() {
            writer.close_unpublished(is_stopped);
        }
    })
}

/// Makes the next incremental file, if changes go into the files, and the base.
fn make_files(
    shared: &Shared,
    settings: &Settings,
    next: Option<NextFile>,
    Rewrite { id, commands, .. }: Rewrite,
    delay: TestDelay,
    is_stopped: &AtomicBool,
) -> Result<(), String> {
    let writer = shared.worlds().aof();
    let storage = shared.worlds().storage();
    let _announced = announce_temporary_file();
    let file = writer.prepare_rewrite(storage, settings, next, commands, is_stopped)?;
    let temporary = writer.temporary_base(id)?;
    if let Some(shared) = shared.worlds().first() {
        writer.start(&shared).map_err(|error| reason(&error))?;
    }
    let base = take_base(shared, id, file.zip(next), is_stopped);
    let Some(base) = base else { return Err(STOPPED.to_owned()) };
    let write = |out: &mut dyn Write| base.write_base(out, &settings.files, after_each_key(&base, delay, is_stopped));
    let written = at_low_priority(|| replace::create(&**storage, &temporary, write));
    drop(base);
    let written = written.flatten();
    let verify = |_| VerifiedBase::read(&**storage, temporary.clone(), settings.files.has_rdb_base);
    let verified = written.and_then(verify).map_err(|error| reason(&error));
    verified.and_then(|base| writer.publish_base(&base, &settings.files, is_stopped)).inspect_err(|_| {
        // There may be nothing to remove.
        let _ = storage.remove(&temporary);
    })
}

/// The base of a rewrite, whose thread waits for it.
#[derive(Debug)]
pub(super) struct AwaitedBase {
    rewrite: u64,
    /// The file into which the stream behind the base goes, if it is a new one.
    next: Option<(Arc<dyn StorageFile>, NextFile)>,
    /// `None` if the rewrite was stopped before.
    taken: mpsc::Sender<Option<Checkpoint>>,
}

impl AwaitedBase {
    fn take(self, shared: &Shared, engine: &mut Engine) {
        let writer = shared.worlds().aof();
        // Where the data were replaced meanwhile, that stops the rewrite, and another one begins.
        shared.append_to_aof(engine);
        let base = aof::take_base(engine, self.rewrite);
        if let (Some(_), Some((file, next))) = (&base, self.next) {
            writer.switch(file, next);
        }
        // Nobody waits any more when the process ends.
        drop(self.taken.send(base));
    }
}

/// Takes the base that waits for the end of a script. It is taken in the same step of the server as that end: were it
/// left to the waiting thread, scripts that follow each other would put it off for ever.
pub(super) fn take_awaited_base(shared: &Shared, engine: &mut Engine) {
    if let Some(awaited) = shared.worlds().aof().awaited_base.lock().take() {
        awaited.take(shared, engine);
    }
}

/// Takes the base of the rewrite of that number as soon as no script is suspended. `None` if the rewrite was stopped
/// before.
fn take_base(
    shared: &Shared,
    rewrite: u64,
    next: Option<(Arc<dyn StorageFile>, NextFile)>,
    is_stopped: &AtomicBool,
) -> Option<Checkpoint> {
    let slot = &shared.worlds().aof().awaited_base;
    let (sender, taken) = mpsc::channel();
    let awaited = AwaitedBase { rewrite, next, taken: sender };
    shared.act(|engine| {
        if aof::may_take_base(engine) {
            awaited.take(shared, engine);
        } else {
            *slot.lock() = Some(awaited);
        }
    });
    loop {
        match taken.recv_timeout(PAUSE_PART) {
            Ok(base) => return base,
            Err(RecvTimeoutError::Timeout) if goes_on(is_stopped) => {}
            Err(_) => {
                slot.lock().take_if(|awaited| awaited.rewrite == rewrite);
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::server::aof_writer::AofWriter;
    use crate::storage::Storage;
    use crate::storage::simulated::{CallKind, SimulatedDisk};

    /// It was stopped by `appendonly no`, behind which no file may be listed.
    #[test]
    fn a_rewrite_that_was_stopped_makes_no_file() {
        let disk = SimulatedDisk::new();
        let settings = Settings { directory: "/data".to_owned(), ..Settings::default() };
        disk.add_folder("/data");
        let (writer, storage) = (AofWriter::default(), Arc::new(disk.clone()) as Arc<dyn Storage>);
        let prepare = |is_stopped: bool| {
            writer.prepare_rewrite(&storage, &settings, Some(NextFile::Following), 0, &AtomicBool::new(is_stopped))
        };
        assert_eq!(prepare(true).err().as_deref(), Some(STOPPED));
        assert!(disk.paths().is_empty());
        assert!(prepare(false).is_ok());
        assert!(!disk.paths().is_empty());
    }

    /// The engine is locked while the stream is switched, so that would stop all clients.
    #[test]
    fn the_stream_is_switched_to_the_next_file_while_the_disk_takes_its_time_for_the_one_before() {
        let disk = SimulatedDisk::new();
        let writer = AofWriter::default();
        let switch = |file| writer.switch(file, NextFile::Following);
        let [first, second, third] = ["1", "2", "3"].map(|name| disk.create(Path::new(name)).expect("the disk works"));
        switch(first);
        writer.write().expect("the disk works");
        switch(second);
        disk.hold(|call| call.kind == CallKind::Sync);
        let (sender, switched) = mpsc::channel();
        thread::scope(|threads| {
            threads.spawn(|| writer.write());
            disk.wait_until_held();
            threads.spawn(move || {
                switch(third);
                sender.send(())
            });
            let is_switched = switched.recv_timeout(Duration::from_secs(10));
            disk.release();
            assert_eq!(is_switched, Ok(()));
        });
    }
}
