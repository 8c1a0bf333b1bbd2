//! The append-only file (AOF): switching it on and off, rewriting it, and waiting for it (WAITAOF).
//!
//! The engine decides and has no files. A rewrite is an effect: the server makes the next incremental file, and then
//! has the engine take a checkpoint, behind which the stream of commands goes into that file ([`take_base`]).
//! The checkpoint is written on a thread, and becomes the base of the files ([`end_rewrite`]).
//!
//! While data are saved in the background no rewrite begins, and the other way round, as in Redis.

use std::mem;

use crate::engine::Engine;
use crate::engine::exec::aof_load::AofLoad;
use crate::engine::exec::persistence::{checkpoint, is_first_world, log, reclaim, remove_all, stop_save};
use crate::engine::exec::{Ctx, blocking};
use crate::engine::spec::{Error, Now, ServerError};
use crate::engine::state::host::AofSource;
use crate::engine::state::{
    AofState, BackgroundSave, Checkpoint, Effect, LateReply, LoadCounts, LogLevel, SessionId, SyncWait,
};

/// Begins to rewrite the file, now or, while data are being saved or within a transaction, as soon as that is over
/// (BGREWRITEAOF). Returns whether it begins now.
///
/// # Errors
/// A rewrite is in progress, or this is not the first world, which alone has files.
pub fn request_rewrite(engine: &mut Engine, is_nested: bool) -> Result<bool, Error> {
    if engine.persistence.aof.rewrite.is_some() {
        return Err(ServerError::RewriteInProgress.into());
    }
    if engine.persistence.saving.is_some() || is_nested {
        engine.persistence.aof.rewrite_scheduled = true;
        engine.persistence.aof.forget_failures();
        return Ok(false);
    }
    begin_rewrite(engine)?;
    Ok(true)
}

/// Begins to rewrite the file. Nothing may be in progress.
fn begin_rewrite(engine: &mut Engine) -> Result<(), Error> {
    engine.persistence.aof.rewrite_scheduled = false;
    if !is_first_world(engine) {
        log(engine, LogLevel::Warning, "Can't rewrite the AOF: only the first world has a file".to_owned());
        return Err(ServerError::RewriteFailed.into());
    }
    let now = engine.timing.now;
    let commands = engine.effects.propagation.commands();
    let id = engine.persistence.aof.begin_rewrite(now, commands);
    log(engine, LogLevel::Notice, "Background append only file rewriting started".to_owned());
    engine.effects.push(Effect::Rewrite(id));
    Ok(())
}

/// Stops the rewrite in progress.
fn stop_rewrite(engine: &mut Engine) {
    if let Some(rewrite) = engine.persistence.aof.rewrite.take() {
        let process_id = engine.host.facts().process_id;
        log(engine, LogLevel::Notice, format!("Killing running AOF rewrite child: {process_id}"));
        engine.effects.push(Effect::StopSave(BackgroundSave::Rewrite(rewrite.id)));
    }
}

/// Switches the file on or off as the settings say (CONFIG SET appendonly).
///
/// # Errors
/// It cannot be made; the log has the reason, and it stays off.
pub fn switch(engine: &mut Engine, is_nested: bool) -> Result<(), ServerError> {
    if engine.persistence.loading.is_some() {
        // It is switched when all data are there.
        return Ok(());
    }
    match (engine.settings.files.appends, engine.persistence.aof.state) {
        (true, AofState::Off) => switch_on(engine, is_nested),
        (false, AofState::WaitsForBase | AofState::On) => {
            switch_off(engine);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn switch_on(engine: &mut Engine, is_nested: bool) -> Result<(), ServerError> {
    let prepared =
        if is_first_world(engine) { engine.host.prepare_aof(&engine.settings) } else { Err(ONE_FILE.to_owned()) };
    if let Err(reason) = prepared {
        log(engine, LogLevel::Warning, format!("Can't switch on the AOF: {reason}"));
        return Err(ServerError::RewriteFailed);
    }
    engine.persistence.aof.forget_error();
    await_base(engine, is_nested);
    Ok(())
}

/// Why the data of a world beside the first are in no file.
pub const ONE_FILE: &str = "only the first world has a file";

/// Starts the files over with a new base, which is taken as soon as nothing else is in progress.
fn await_base(engine: &mut Engine, is_nested: bool) {
    // A rewrite that has taken its base would end as if it had been ours, and the stream were not on.
    stop_rewrite(engine);
    engine.persistence.aof.state = AofState::WaitsForBase;
    if engine.persistence.saving.is_some() || is_nested {
        engine.persistence.aof.rewrite_scheduled = true;
        let what = if is_nested { "during a transaction" } else { "but there is already another background operation" };
        let line = format!("AOF was enabled {what}. An AOF background was scheduled to start when possible.");
        return log(engine, LogLevel::Notice, line);
    }
    // Only the first world gets here, so it begins.
    let _ = begin_rewrite(engine);
}

fn switch_off(engine: &mut Engine) {
    stop_rewrite(engine);
    engine.persistence.aof.rewrite_scheduled = false;
    engine.persistence.aof.state = AofState::Off;
    engine.persistence.aof.forget_error();
    engine.persistence.aof.forget_replaced();
    engine.effects.push(Effect::EndAof);
    for wait in engine.persistence.aof.take_waiting() {
        blocking::complete(engine, wait.session, wait.command, Err(ServerError::WaitWithoutFile.into()));
    }
}

/// Writes the rest of the file, and loads all data from it (DEBUG LOADAOF). The data stay if it cannot be opened, while
/// Redis has removed them by then: the next rewrite would make that durable.
///
/// # Errors
/// The files cannot be loaded; the log has the reason.
pub fn reload(engine: &mut Engine) -> Result<(), Error> {
    let mut rest = Vec::new();
    engine.effects.propagation.take_into(&mut rest);
    let was_on = engine.effects.propagation.is_on();
    let sources = engine.host.open_aof(&engine.settings, rest).and_then(|sources| match sources.is_empty() {
        true => Err("there is no append-only file".to_owned()),
        false => Ok(sources),
    });
    let loaded = sources.and_then(|sources| {
        remove_all(engine);
        load_all(engine, sources)
    });
    if was_on {
        engine.effects.propagation.turn_on();
    }
    match loaded {
        Ok(counts) => {
            // As in Redis, nothing of this counts as a change, while after a start the commands of the file do.
            engine.end_load(LoadCounts { unsaved: 0, ..counts });
            log(engine, LogLevel::Warning, "Append Only File loaded by DEBUG LOADAOF".to_owned());
            Ok(())
        }
        Err(reason) => {
            log(engine, LogLevel::Warning, reason);
            Err(ServerError::AofNotLoaded.into())
        }
    }
}

fn load_all(engine: &mut Engine, sources: Vec<AofSource>) -> Result<LoadCounts, String> {
    let mut load = AofLoad::begin(engine);
    let loaded = sources.into_iter().try_for_each(|source| {
        load.open(engine, source)?;
        while load.step(engine)? {}
        Ok(())
    });
    let counts = load.end(engine);
    loaded.map(|()| counts)
}

/// The moment at which a rewrite is to begin by itself.
pub(super) fn next_rewrite(engine: &Engine) -> Option<Now> {
    let aof = &engine.persistence.aof;
    if !(aof.is_on() || aof.rewrite_scheduled) || engine.persistence.saving.is_some() || engine.switches.cron_paused {
        return None;
    }
    aof.next_rewrite(&engine.settings.files, engine.timing.now)
}

/// Begins the rewrite that is due, if one is.
pub(super) fn rewrite_if_due(engine: &mut Engine) {
    if next_rewrite(engine).is_none_or(|moment| moment > engine.timing.now) {
        return;
    }
    let growth = engine.persistence.aof.growth_percent(&engine.settings.files);
    if let Some(percent) = growth.filter(|_| !engine.persistence.aof.rewrite_scheduled) {
        log(engine, LogLevel::Notice, format!("Starting automatic rewriting of AOF on {percent}% growth"));
    }
    // The log has the reason if it does not begin.
    let _ = begin_rewrite(engine);
}

/// The moment at which the files are to be synced, or a write is to be tried again.
pub(super) fn next_sync(engine: &Engine) -> Option<Now> {
    let aof = &engine.persistence.aof;
    if !aof.is_on() {
        return None;
    }
    let is_deferred = engine.settings.files.skips_sync_while_saving
        && (engine.persistence.saving.is_some() || aof.rewrite.is_some())
        && aof.write_error.is_none();
    if is_deferred { None } else { aof.next_sync(&engine.settings.files) }
}

/// Orders the sync that is due, if one is, also while time stands still for a script that is suspended.
pub(super) fn sync_if_due(engine: &mut Engine, now: Now) {
    if next_sync(engine).is_some_and(|moment| moment <= now) {
        engine.persistence.aof.ordered(now);
        engine.effects.push(Effect::SyncAof);
    }
}

/// Switches the file on or off if the settings have changed while data were loaded.
pub fn switch_after_load(engine: &mut Engine) {
    // The log has the reason if it stays off.
    let _ = switch(engine, false);
}

/// Records changes in the files from now on: they were loaded, or are new.
pub fn begin(engine: &mut Engine) {
    engine.persistence.aof.state = AofState::On;
    engine.effects.propagation.turn_on();
}

/// Takes the first base of the files, which has no stream before it. To be followed by [`reclaim`].
pub fn first_base(engine: &mut Engine) -> Checkpoint {
    checkpoint(engine).into_base()
}

/// Ends the stream of commands: the files are closed.
pub fn end(engine: &mut Engine) {
    engine.effects.propagation.turn_off();
}

/// Starts the files over with the present data, because the stream of commands does not describe how they came about.
/// With `always`, no reply leaves until they are durable.
pub fn restart(engine: &mut Engine) {
    engine.persistence.aof.replace_data();
    start_over(engine);
}

/// Begins the base of files that begin anew as the server ends, unless it is being written: they have nothing of the
/// data, or cannot be relied on. Returns whether the end has to wait for one: not while a script is suspended, which
/// goes on no more.
pub fn begin_last_base(engine: &mut Engine) -> bool {
    if !engine.persistence.aof.begins_anew() {
        return false;
    }
    stop_save(engine);
    if engine.scripts.is_busy() {
        stop_rewrite(engine);
        return false;
    }
    if engine.persistence.aof.rewrite.is_none() {
        // The log has the reason if it does not begin.
        let _ = begin_rewrite(engine);
    }
    engine.persistence.aof.rewrite.is_some()
}

/// Ends the stream of commands until the files have a new base.
fn start_over(engine: &mut Engine) {
    engine.effects.propagation.turn_off();
    await_base(engine, false);
}

/// Whether the base of the rewrite in progress can be taken: not while a script is suspended, as the base would have a
/// part of what the script does, and the stream behind it all of that. [`Effect::TakeBase`] follows when the script
/// ends, before anything else runs.
pub fn may_take_base(engine: &mut Engine) -> bool {
    let is_busy = engine.scripts.is_busy();
    if let Some(rewrite) = &mut engine.persistence.aof.rewrite {
        rewrite.awaits_script = is_busy;
    }
    !is_busy
}

/// Takes the base that waited for the suspended script to end.
pub(super) fn end_script(engine: &mut Engine) {
    if let Some(rewrite) = &mut engine.persistence.aof.rewrite
        && mem::take(&mut rewrite.awaits_script)
    {
        engine.effects.push(Effect::TakeBase);
    }
}

/// Takes the base of a rewrite if [`may_take_base`]: the data of this moment. The stream of commands goes on behind it,
/// readable by itself. `None` if the rewrite was stopped.
pub fn take_base(engine: &mut Engine, id: u64) -> Option<Checkpoint> {
    if !engine.persistence.aof.is_rewriting(id) {
        return None;
    }
    let start_us = engine.host.elapsed_us();
    let base = checkpoint(engine).into_base();
    engine.persistence.last_checkpoint_us = engine.host.elapsed_us().saturating_sub(start_us);
    let state = engine.persistence.aof.state;
    if state == AofState::WaitsForBase {
        engine.effects.propagation.turn_on();
    }
    if state != AofState::Off {
        engine.effects.propagation.begin_file();
    }
    if engine.persistence.aof.lacks_replaced(engine.effects.propagation.offset()) {
        // Bytes for the replies to wait for: they leave when these are synced behind the base.
        engine.effects.propagation.select(0);
    }
    Some(base)
}

/// Ends a rewrite, whose checkpoint was dropped. `result` says why it failed if it did; otherwise the base is in
/// place, and is durable.
pub fn end_rewrite(engine: &mut Engine, id: u64, result: Result<(), String>) {
    let copied_bytes = engine.databases.copied_bytes();
    reclaim(engine);
    if !engine.persistence.aof.is_rewriting(id) {
        return;
    }
    if let Err(reason) = &result
        && engine.persistence.aof.state == AofState::WaitsForBase
        && engine.persistence.aof.unsynced_replaced() > 0
    {
        // Until there is a base, the data that replaced others can be read, and changes are refused.
        engine.persistence.aof.needs_base = true;
        set_error(engine, Some(reason.clone()));
    }
    let now = engine.timing.now;
    let minutes = engine.persistence.aof.end_rewrite(result.is_err(), now);
    engine.persistence.aof.last_copied_bytes = copied_bytes;
    match result {
        Ok(()) => {
            if engine.persistence.aof.state == AofState::WaitsForBase {
                engine.persistence.aof.state = AofState::On;
                engine.persistence.aof.needs_base = false;
                set_error(engine, None);
                end_synced_waits(engine);
            }
            log(engine, LogLevel::Notice, "Background AOF rewrite terminated with success".to_owned());
            log(engine, LogLevel::Notice, "Background AOF rewrite finished successfully".to_owned());
        }
        Err(reason) => {
            log(engine, LogLevel::Warning, format!("Background AOF rewrite terminated with error: {reason}"));
            if engine.persistence.aof.state == AofState::WaitsForBase {
                engine.effects.propagation.turn_off();
                engine.persistence.aof.rewrite_scheduled = true;
            }
        }
    }
    if let Some(minutes) = minutes {
        let line = "Background AOF rewrite has repeatedly failed and triggered the limit, will retry in";
        log(engine, LogLevel::Warning, format!("{line} {minutes} minutes"));
    }
}

/// Notes how a write to the files, or a sync, has ended: `failure` says why it failed if it did, `has_failed_sync`
/// whether any sync has failed since the last base. Then nothing that succeeds counts, and the files begin anew.
pub fn end_write(engine: &mut Engine, failure: Option<String>, has_failed_sync: bool) {
    if engine.persistence.aof.state == AofState::Off {
        // It was switched off while a thread was about to report.
        return;
    }
    let has_failed = failure.is_some();
    if has_failed || !has_failed_sync {
        set_error(engine, failure);
    }
    if has_failed && has_failed_sync {
        heal(engine);
    }
}

/// Begins the files anew because a sync of them has failed, unless they do so already.
fn heal(engine: &mut Engine) {
    if engine.persistence.aof.state == AofState::On {
        engine.persistence.aof.needs_base = true;
        start_over(engine);
    }
}

/// Notes that a write to the files failed, or, with `None`, that all is written again. After a sync that failed, only a
/// base heals the files, though a thread may write to new ones before it is in place.
fn set_error(engine: &mut Engine, reason: Option<String>) {
    let aof = &mut engine.persistence.aof;
    if reason.is_none() && aof.needs_base {
        return;
    }
    let has_failed = aof.write_error.is_some();
    match &reason {
        Some(reason) if !has_failed => {
            let line = format!("Error writing to the AOF file: {reason}");
            log(engine, LogLevel::Warning, line);
        }
        None if has_failed => {
            let line = "AOF write error looks solved, Redis can write again.".to_owned();
            log(engine, LogLevel::Warning, line);
        }
        _ => {}
    }
    engine.persistence.aof.write_error = reason;
    engine.observers.fast_path.forget();
}

/// Ends the waits for what is synced by now.
pub fn end_synced_waits(engine: &mut Engine) {
    for wait in engine.persistence.aof.take_synced() {
        let reply = synced_reply(1, 0);
        if wait.ends {
            blocking::complete(engine, wait.session, wait.command, Ok(reply));
        } else {
            engine.observers.waiting.set_timeout_reply(wait.session, wait.command, reply);
        }
    }
}

/// The reply of WAITAOF: how many servers have the client's writes in their files, of this one and of replicas.
pub fn synced_reply(own: i64, replicas: i64) -> LateReply {
    LateReply::Integers([own, replicas])
}

/// Whether the files have all that a client wrote. Without a base they have nothing.
pub fn has_synced(engine: &Engine, session: SessionId) -> bool {
    let offset = engine.sessions.get(session).map_or(0, |session| session.written_offset);
    engine.persistence.aof.has_synced(offset)
}

/// Makes a client that blocks in the running command wait until its writes are synced. With `ends` the sync ends the
/// wait; without, it only changes the reply at the timeout.
pub fn await_sync(cx: &mut Ctx<'_>, ends: bool) {
    if cx.is_nested() {
        return;
    }
    let (session, command) = (cx.session().id, cx.command);
    let offset = cx.session().written_offset;
    let aof = &mut cx.engine.persistence.aof;
    aof.wait(SyncWait { session, command, offset, ends });
    if aof.has_synced(offset) {
        // A sync has ended just now, on a thread that saw nobody wait.
        cx.engine.effects.push(Effect::SyncAof);
    }
}

/// Prepares the end of the server. A base of files that begin anew is still written ([`begin_last_base`]).
///
/// # Errors
/// The first base is being written: what came before it would be lost.
pub(super) fn prepare_shutdown(engine: &mut Engine, is_forced: bool) -> Result<(), Error> {
    if engine.persistence.aof.rewrite.is_some() && !engine.persistence.aof.begins_anew() {
        if engine.persistence.aof.state == AofState::WaitsForBase {
            if !is_forced {
                log(engine, LogLevel::Warning, "Writing initial AOF, can't exit.".to_owned());
                return Err(Error::ShutdownFailed);
            }
            log(engine, LogLevel::Warning, "Writing initial AOF. Exit anyway.".to_owned());
        }
        log(engine, LogLevel::Warning, "There is a child rewriting the AOF. Killing it!".to_owned());
        stop_rewrite(engine);
    }
    if engine.persistence.aof.is_on() {
        log(engine, LogLevel::Notice, "Calling fsync() on the AOF file.".to_owned());
    }
    stop_save(engine);
    Ok(())
}
