//! Saving the data: SAVE, BGSAVE, the save points, the save before the end, and DEBUG RELOAD.
//!
//! A save takes a checkpoint, which shares the data with the databases, and hands it to the server as an effect, which
//! writes it on a thread and then calls [`Engine::end_save`]. The client of SAVE is blocked until then, while others
//! are served; Redis serves nobody. A SAVE or BGSAVE that is called meanwhile comes after it, as it would there.
//!
//! The save of FLUSHALL, of DEBUG RELOAD and before the end is written at once, by the host, while everybody waits.

use std::io::{Cursor, Read};

use crate::engine::Engine;
use crate::engine::exec::aof::{self, ONE_FILE};
use crate::engine::exec::blocking;
use crate::engine::exec::ctx::databases;
use crate::engine::exec::loading::Load;
use crate::engine::exec::scripts::load;
use crate::engine::exec::{snapshots, tracking};
use crate::engine::spec::{Error, Now, ServerError};
use crate::engine::state::{
    BackgroundSave, Checkpoint, Effect, FIRST_WORLD, LateReply, LoadCounts, LogLevel, SaveWait, Saving,
};

/// Takes a checkpoint of the present data. The databases share it until [`reclaim`] is called.
pub fn checkpoint(engine: &mut Engine) -> Checkpoint {
    let databases = engine.databases.freeze();
    let libraries = engine.scripts.functions.registry.sources();
    let used_bytes = engine.databases.memory_bytes();
    Checkpoint::new(
        engine.persistence.next_checkpoint(),
        databases,
        libraries,
        &engine.settings,
        engine.now(),
        used_bytes,
    )
}

/// Gives the databases back what a checkpoint or another frozen copy that was dropped had shared.
pub fn reclaim(engine: &mut Engine) {
    for lazy_free in engine.databases.thaw() {
        engine.free(lazy_free);
    }
}

/// Saves the data now, while everybody waits (SHUTDOWN SAVE). Clients that wait for a save have it then.
///
/// # Errors
/// The file could not be written; the log has the reason.
pub fn save(engine: &mut Engine) -> Result<(), Error> {
    let checkpoint = checkpoint(engine);
    let path = engine.settings.dump_path();
    let (host, delay_us) = (&engine.host, engine.settings.files.save_delay_us);
    let pace = || host.pace_dump(delay_us);
    let written = host.write_dump(&path, checkpoint.id(), &mut |out| checkpoint.write_in_parallel(out, pace));
    drop(checkpoint);
    reclaim(engine);
    if written.is_ok() {
        engine.persistence.saved(engine.stats.changes, engine.timing.now);
    }
    let waits = std::mem::take(&mut engine.persistence.next_waits);
    end_awaited_save(engine, waits, written)
}

/// Logs how a SAVE, or a save in the foreground, has ended, and replies to the clients that waited for it.
fn end_awaited_save(engine: &mut Engine, waits: Vec<SaveWait>, written: Result<(), String>) -> Result<(), Error> {
    let result = written.map_err(|reason| not_saved(engine, &reason));
    if result.is_ok() {
        log(engine, LogLevel::Notice, "DB saved on disk".to_owned());
    }
    for SaveWait { session, command } in waits {
        blocking::complete(engine, session, command, result.clone().map(|()| LateReply::Ok));
    }
    result
}

/// Begins to save the data for a client that waits for it (SAVE), or has it wait for the save that follows the one of
/// another client.
///
/// # Errors
/// A BGSAVE is in progress, or this is not the first world, which alone has a file.
pub fn begin_awaited_save(engine: &mut Engine, wait: SaveWait) -> Result<(), Error> {
    match &engine.persistence.saving {
        Some(saving) if !saving.is_awaited() => return Err(ServerError::SaveInProgress.into()),
        Some(_) => engine.persistence.next_waits.push(wait),
        None if is_first_world(engine) => begin(engine, vec![wait]),
        None => return Err(not_saved(engine, ONE_FILE)),
    }
    Ok(())
}

/// Begins to save the data in the background (BGSAVE, save points). None may be in progress.
///
/// # Errors
/// This is not the first world, which alone has a file.
pub fn begin_save(engine: &mut Engine) -> Result<(), Error> {
    engine.persistence.is_scheduled = false;
    if !is_first_world(engine) {
        log(engine, LogLevel::Warning, format!("Background saving error: {ONE_FILE}"));
        return Err(ServerError::Unspecified.into());
    }
    begin(engine, Vec::new());
    log(engine, LogLevel::Notice, "Background saving started".to_owned());
    Ok(())
}

/// Begins to save the data on a thread; these clients wait for it.
fn begin(engine: &mut Engine, waits: Vec<SaveWait>) {
    let start_us = engine.host.elapsed_us();
    let mut checkpoint = checkpoint(engine);
    checkpoint.is_awaited = !waits.is_empty();
    engine.persistence.last_checkpoint_us = engine.host.elapsed_us().saturating_sub(start_us);
    engine.persistence.begin_saving(engine.stats.changes, &checkpoint, engine.timing.now, waits);
    engine.effects.push(Effect::Save(Box::new(checkpoint)));
}

/// Begins the save that has to wait for the one of a SAVE, or else the one that is due, if there is one. While a script
/// is suspended none begins, as it would have a part of what the script does.
pub(super) fn begin_next(engine: &mut Engine) {
    if engine.persistence.saving.is_some() || engine.scripts.is_busy() {
        return;
    }
    let waits = std::mem::take(&mut engine.persistence.next_waits);
    if waits.is_empty() {
        save_if_due(engine);
    } else {
        begin(engine, waits);
    }
}

/// Whether this is the first world, the only one whose data are in files.
pub(super) fn is_first_world(engine: &Engine) -> bool {
    engine.host.facts().name_of_world() == FIRST_WORLD
}

/// Follows up on the emptying of all databases: a save in progress would save what is gone, and with save points the
/// file is emptied, too.
pub fn save_flushed(engine: &mut Engine) {
    let has_points = !engine.settings.files.save_points.is_empty();
    let is_awaited = engine.persistence.saving.as_deref().is_some_and(Saving::is_awaited);
    // A SAVE in progress was called before the flush: it goes on, unless the file is emptied anyway.
    if has_points || !is_awaited {
        stop_save(engine);
    }
    if has_points {
        // The log has the reason why it fails, and FLUSHALL succeeds all the same, as in Redis.
        let _ = save(engine);
    }
}

/// Stops the save in progress. The caller saves the data itself if clients wait for that.
pub(super) fn stop_save(engine: &mut Engine) {
    if let Some(id) = engine.persistence.stop_saving() {
        engine.effects.push(Effect::StopSave(BackgroundSave::Dump(id)));
    }
}

/// The options of DEBUG RELOAD.
#[derive(Clone, Copy, Debug)]
pub struct ReloadOptions {
    /// The data are saved first.
    pub saves: bool,
    /// The present data are removed before the others are loaded.
    pub flushes: bool,
    /// Keys of the file replace present ones of the same name.
    pub replaces: bool,
}

/// Saves all data, and loads them again (DEBUG RELOAD). A server without files does so in memory, unless the file is
/// to be loaded that is there.
///
/// # Errors
/// The file could not be written or loaded; the log has the reason.
pub fn reload(engine: &mut Engine, options: ReloadOptions) -> Result<(), Error> {
    let source: Result<Box<dyn Read>, String> = if options.saves && !engine.settings.files.loads_at_start {
        Ok(Box::new(Cursor::new(dump(engine)?)))
    } else {
        if options.saves {
            save(engine)?;
        }
        engine.host.open_dump(&engine.settings.dump_path())
    };
    if options.flushes {
        remove_all(engine);
    }
    let loaded = source.and_then(|source| load_from(engine, source, options.replaces));
    match loaded {
        Ok(counts) => {
            engine.end_load(counts);
            log(engine, LogLevel::Warning, "DB reloaded by DEBUG RELOAD".to_owned());
            Ok(())
        }
        Err(reason) => {
            log(engine, LogLevel::Warning, reason);
            Err(Error::NotLoaded)
        }
    }
}

/// Removes all keys and libraries, before others are loaded.
pub(super) fn remove_all(engine: &mut Engine) {
    snapshots::before_functions_change(engine);
    tracking::invalidate_all(engine);
    (0..engine.databases.count()).for_each(|number| databases::flush(engine, number));
    load::restore_functions(engine, Vec::new());
}

/// All data as an RDB file, in memory.
///
/// # Errors
/// The version of the file has no form for some of them; the log says so.
fn dump(engine: &mut Engine) -> Result<Vec<u8>, Error> {
    let (checkpoint, mut bytes) = (checkpoint(engine), Vec::new());
    let written = checkpoint.write_in_parallel(&mut bytes, || Ok(()));
    drop(checkpoint);
    reclaim(engine);
    written.map(|_| bytes).map_err(|error| not_saved(engine, &error.to_string()))
}

/// Logs why the data cannot be saved; returns the error for the client.
fn not_saved(engine: &mut Engine, reason: &str) -> Error {
    log(engine, LogLevel::Warning, format!("Error saving DB on disk: {reason}"));
    ServerError::Unspecified.into()
}

fn load_from(engine: &mut Engine, source: impl Read, replaces: bool) -> Result<LoadCounts, String> {
    let load = Load::begin(source, engine.settings.files.has_checksum).map_err(|fault| fault.to_string())?;
    load.replacing(replaces).finish(engine).map_err(|fault| fault.to_string())
}

/// How the server is to end (SHUTDOWN, signals).
#[derive(Clone, Copy, Debug, Default)]
pub struct ShutdownOptions {
    /// The data are saved although there are no save points (SAVE).
    pub saves: bool,
    /// The data are not saved (NOSAVE).
    pub skips_save: bool,
    /// It ends even if the data cannot be saved (FORCE).
    pub is_forced: bool,
}

/// Prepares the end of the server: saves the data if it is to be. Only the first world has a file.
///
/// While a script is suspended nothing is saved, as the file would have a part of what the script does. SHUTDOWN is
/// refused then, and a signal waits, so only the end of an embedded server comes here.
///
/// # Errors
/// The data cannot be saved, so the server goes on.
pub fn prepare_shutdown(engine: &mut Engine, options: ShutdownOptions) -> Result<(), Error> {
    save_before_shutdown(engine, options)?;
    // The server has more to do until its connections are closed.
    let keeps_data = is_to_save(engine, options) || engine.persistence.aof.is_on();
    engine.persistence.shutdown.has_begun = is_first_world(engine) && keeps_data;
    Ok(())
}

/// Stops running requests if the append-only file is about to be closed: their changes would be lost.
pub fn end_requests(engine: &mut Engine) {
    engine.persistence.shutdown.has_begun |= engine.persistence.aof.is_on();
}

/// Whether the end of the server is to save the data, unless it was told not to.
fn is_to_save(engine: &Engine, options: ShutdownOptions) -> bool {
    options.saves || !engine.settings.files.save_points.is_empty()
}

/// Saves the data before the server ends, if they are to be.
fn save_before_shutdown(engine: &mut Engine, options: ShutdownOptions) -> Result<(), Error> {
    if !is_first_world(engine) {
        return if options.saves { Err(Error::ShutdownFailed) } else { Ok(()) };
    }
    log(engine, LogLevel::Notice, "User requested shutdown...".to_owned());
    aof::prepare_shutdown(engine, options.is_forced)?;
    let is_awaited = !engine.persistence.next_waits.is_empty();
    let saves = is_awaited || (is_to_save(engine, options) && !options.skips_save);
    // While a file is being loaded, a save would replace it by a part of its data.
    if !saves || engine.persistence.loading.is_some() || engine.scripts.is_busy() {
        return Ok(());
    }
    log(engine, LogLevel::Notice, "Saving the final RDB snapshot before exiting.".to_owned());
    if save(engine).is_ok() {
        return Ok(());
    }
    if options.is_forced {
        log(engine, LogLevel::Warning, "Error trying to save the DB. Exit anyway.".to_owned());
        return Ok(());
    }
    log(engine, LogLevel::Warning, "Error trying to save the DB, can't exit.".to_owned());
    Err(Error::ShutdownFailed)
}

/// The moment at which the next save in the background is to begin by itself.
pub(super) fn next_save(engine: &Engine) -> Option<Now> {
    let next = engine.persistence.next_save(&engine.settings, engine.stats.changes)?;
    (!engine.switches.cron_paused && is_first_world(engine)).then_some(next)
}

/// Begins the save that is due, if one is.
fn save_if_due(engine: &mut Engine) {
    if next_save(engine).is_none_or(|moment| moment > engine.now()) {
        return;
    }
    if !engine.persistence.is_scheduled {
        let unsaved = engine.persistence.unsaved(engine.stats.changes);
        let elapsed_s = engine.now().unix_s() - engine.persistence.last_save.unix_s();
        let mut points = engine.settings.files.save_points.iter();
        let reached = points.find(|point| unsaved >= point.changes && elapsed_s > point.seconds);
        if let Some(point) = reached {
            let line = format!("{} changes in {} seconds. Saving...", point.changes, point.seconds);
            log(engine, LogLevel::Notice, line);
        }
    }
    // The log has the reason if it does not begin.
    let _ = begin_save(engine);
}

impl Engine {
    /// Ends the save of that number, whose checkpoint was dropped; `result` says why it failed if it did.
    pub fn end_save(&mut self, id: u64, result: Result<(), String>) {
        let copied_bytes = self.databases.copied_bytes();
        reclaim(self);
        let now = self.now();
        let Some(saving) = self.persistence.end_saving(id, result.is_ok(), now) else { return };
        self.persistence.last_copied_bytes = copied_bytes;
        if saving.is_awaited() {
            // The clients have the error.
            let _ = end_awaited_save(self, saving.waits, result);
            return begin_next(self);
        }
        match result {
            Ok(()) => log(self, LogLevel::Notice, "Background saving terminated with success".to_owned()),
            Err(reason) => {
                log(self, LogLevel::Warning, format!("Background saving error: {reason}"));
            }
        }
    }
}

pub(super) fn log(engine: &mut Engine, level: LogLevel, line: String) {
    engine.effects.push(Effect::Log(level, line));
}
