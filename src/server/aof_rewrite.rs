//! Rewriting the append-only file (BGREWRITEAOF), on the thread of a save.
//!
//! The next incremental file is created and made durable in the manifest before the base is taken. So whenever the
//! server is killed, the files in the manifest together hold all changes. A fresh incremental file is listed together
//! with its base if the append-only file was just switched on, or if its files cannot be relied on.
//!
//! No base is taken while a script is suspended: it would have a part of what the script does.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::background_saver::{FAULT, STOPPED, TestDelay, announce_temporary_file, wait_or_stop};
use super::contain::contain;
use super::os_host::reason;
use super::processors::at_low_priority;
use super::progress::after_each_key;
use super::shared::Shared;
use crate::aof::decisions::NextFile;
use crate::engine::exec::aof;
use crate::engine::{Checkpoint, Engine};
use crate::storage::{StorageFile, replace};

/// Rewrites the append-only file, and tells the engine how that ended.
pub(super) fn rewrite(shared: &Shared, id: u64, delay: TestDelay, is_stopped: &AtomicBool) {
    let result = contain("the thread that saves", || try_rewrite(shared, id, delay, is_stopped));
    let result = result.unwrap_or_else(|| Err(FAULT.to_owned()));
    shared.act(|engine| aof::end_rewrite(engine, id, result));
}

/// Has an append-only file that begins anew get its base before the server ends.
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
    let storage = shared.worlds().storage();
    let _announced = announce_temporary_file();
    let file = writer.prepare_rewrite(storage, &settings, next, rewrite.commands)?;
    let temporary = writer.temporary_base(id)?;
    if let Some(shared) = shared.worlds().first() {
        writer.start(&shared).map_err(|error| reason(&error))?;
    }
    let base = take_base(shared, id, file.zip(next), is_stopped);
    let Some(base) = base else { return Err(STOPPED.to_owned()) };
    let write = |out: &mut dyn Write| base.write_base(out, &settings.files, after_each_key(&base, delay, is_stopped));
    let written = at_low_priority(|| replace::create(&**storage, &temporary, write));
    drop(base);
    let written = written.flatten().map_err(|error| reason(&error));
    written.and_then(|_| writer.publish_base(&temporary, &settings.files, is_stopped)).inspect_err(|_| {
        // There may be nothing to remove.
        let _ = storage.remove(&temporary);
    })
}

/// Takes the base of the rewrite of that number as soon as no script is suspended, and has the stream behind it go into
/// `file`, if it has a new one. `None` if the rewrite was stopped before.
fn take_base(
    shared: &Shared,
    id: u64,
    file: Option<(Arc<dyn StorageFile>, NextFile)>,
    is_stopped: &AtomicBool,
) -> Option<Checkpoint> {
    let writer = shared.worlds().aof();
    let take = |engine: &mut Engine| {
        writer.append(engine);
        let base = aof::take_base(engine, id)?;
        if let Some((file, next)) = &file {
            writer.switch(Arc::clone(file), *next);
        }
        Some(base)
    };
    loop {
        if let Some(base) = shared.act(|engine| aof::may_take_base(engine).then(|| take(engine))) {
            return base;
        }
        wait_or_stop(is_stopped).ok()?;
    }
}
