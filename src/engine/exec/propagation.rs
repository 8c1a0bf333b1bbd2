//! The stage that records a command for the log of changes, after it ran ([`crate::engine::state::propagation`]).
//!
//! A command is propagated if it counted a change, as its row says ([`Propagated`]): as its request, or as the command
//! that its handler queued in the place of it ([`propagate_instead`]). What a command causes beside its own change,
//! such as the deletion of an expired key that it met, is propagated before it, in its execution unit
//! ([`propagate_also`], [`deletion`]).
//!
//! This is no row of [`super::stages`]: the fast path stays open while changes are recorded.

use crate::engine::exec::Ctx;
use crate::engine::exec::stages::{Call, Caller, Ending};
use crate::engine::spec::{Command, Family, Flags, KeyFlags, KeySpec, Propagated};
use crate::engine::state::SyncPolicy;
use crate::engine::{Engine, SessionId};

/// The state of the data before a command, to see whether it changed them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recording {
    changes: u64,
    offset: u64,
    owns_unit: bool,
}

/// Begins to record a command, if changes are recorded.
#[inline]
pub(super) fn begin(engine: &mut Engine, call: &Call<'_>) -> Option<Recording> {
    if engine.effects.propagation.is_on() { Some(begin_recording(engine, call)) } else { None }
}

fn begin_recording(engine: &mut Engine, call: &Call<'_>) -> Recording {
    let (changes, offset) = (engine.stats.changes, engine.effects.propagation.offset());
    note_second(engine);
    engine.effects.propagation.has_own_words = false;
    if call.is_nested() {
        return Recording { changes, offset, owns_unit: false };
    }
    if !engine.scripts.is_busy() {
        // A command that panicked has left its unit open.
        end_unit(engine);
    }
    let is_loose = engine.table.entry(call.id).command.propagated == Propagated::Loose;
    Recording { changes, offset, owns_unit: engine.effects.propagation.begin_unit(is_loose) }
}

/// Records a command that has run, and ends its execution unit.
pub(super) fn end(engine: &mut Engine, call: &Call<'_>, recording: Recording, ending: &Ending, has_failed: bool) {
    let command = engine.table.entry(call.id).command;
    let goes_out = match command.propagated {
        Propagated::Verbatim => engine.stats.changes != recording.changes,
        Propagated::Always => !has_failed,
        Propagated::OwnWords | Propagated::Never | Propagated::Loose => false,
    };
    let has_own_words = std::mem::take(&mut engine.effects.propagation.has_own_words);
    if goes_out && !has_own_words && (call.caller != Caller::Script || may_script(engine)) {
        let database = engine.sessions.get(call.session).map_or(0, |session| session.database);
        engine.effects.propagation.push_request(database, call.request);
    }
    if is_synced_always(engine) {
        hold_reply(engine, call, recording);
    }
    if recording.owns_unit && !matches!(ending, Ending::Suspended) {
        engine.effects.propagation.end_unit();
        note_written(engine, call.session, recording.offset);
    }
}

/// Notes how far the stream goes with what a session has written, if it is now beyond `before`.
fn note_written(engine: &mut Engine, session: SessionId, before: u64) {
    let offset = engine.effects.propagation.offset();
    if offset != before
        && let Some(session) = engine.sessions.get_mut(session)
    {
        session.written_offset = offset;
    }
}

/// Whether replies wait until what they show is synced. Changes are recorded also for replicas, without a file.
fn is_synced_always(engine: &Engine) -> bool {
    engine.settings.files.syncs == SyncPolicy::Always && engine.persistence.aof.is_on()
}

/// Notes that a key changes, which is durable when the unit that is open has been synced.
pub(super) fn note_change(engine: &mut Engine, database: usize, key: &[u8]) {
    if is_synced_always(engine) {
        let (offset, aof) = (engine.effects.propagation.offset(), &mut *engine.persistence.aof);
        aof.unsynced.note(database, key, offset, aof.progress.synced());
    }
}

/// Holds the reply of a command until what it shows is durable: the command's own change, and the values of keys
/// that it read. A command that may show anything waits for all that was changed before it.
fn hold_reply(engine: &mut Engine, call: &Call<'_>, recording: Recording) {
    let command = engine.table.entry(call.id).command;
    if command.flags.has(Flags::WRITE) && !command.has_keys() {
        engine.persistence.aof.unsynced.note_all(engine.effects.propagation.offset());
    }
    if call.is_nested() || command.family == Family::Connection || !command.shows_data {
        return;
    }
    let has_changed = engine.stats.changes != recording.changes || engine.effects.propagation.has_open_commands();
    let database = engine.sessions.get(call.session).map_or(0, |session| session.database);
    let aof = &mut *engine.persistence.aof;
    let needed = if has_changed || !shows_only_its_keys(command) {
        u64::MAX
    } else {
        let keys = command.keys_of(call.request).into_iter();
        let keys = keys.filter_map(|(place, _)| call.request.get(place));
        keys.map(|key| aof.unsynced.offset_needed(database, key)).max().unwrap_or(0)
    };
    if needed > aof.progress.synced() {
        aof.hold_replies(needed);
    }
}

/// Whether all that a reply of a command shows of the data are the keys that its request names.
fn shows_only_its_keys(command: &Command) -> bool {
    let is_whole = |spec: &KeySpec| !spec.access.has(KeyFlags::INCOMPLETE);
    command.flags.has(Flags::READONLY)
        && command.has_keys()
        && command.keys.iter().all(is_whole)
        && command.family != Family::Scripting
}

/// Puts the time into the stream before the next command, if `aof-timestamp-enabled` is on.
fn note_second(engine: &mut Engine) {
    if engine.settings.files.has_timestamps {
        let second = engine.timing.now.unix_s();
        engine.effects.propagation.note_second(second);
    }
}

/// Ends the execution unit of a session's script that was suspended.
pub(super) fn end_suspended_unit(engine: &mut Engine, session: SessionId) {
    let before = engine.effects.propagation.offset();
    end_unit(engine);
    note_written(engine, session, before);
}

fn end_unit(engine: &mut Engine) {
    if engine.effects.propagation.is_on() {
        engine.effects.propagation.end_unit();
    }
}

/// Whether the running script, if there is one, lets its commands be propagated (`redis.set_repl`).
fn may_script(engine: &Engine) -> bool {
    engine.scripts.running.as_ref().is_none_or(|running| running.propagates)
}

/// Records the deletion of a key that no command asked for, of an expired or evicted one; as UNLINK if `is_lazy`.
#[inline]
pub(super) fn deletion(engine: &mut Engine, database: usize, key: &[u8], is_lazy: bool) {
    if engine.effects.propagation.is_on() {
        let name = if is_lazy { &b"UNLINK"[..] } else { b"DEL" };
        note_second(engine);
        engine.effects.propagation.push(database, [name, key].into_iter());
    }
}

/// Records the deletion of a field that no command asked for.
pub(super) fn field_deletion(engine: &mut Engine, database: usize, key: &[u8], field: &[u8]) {
    note_second(engine);
    engine.effects.propagation.push(database, [&b"HDEL"[..], key, field].into_iter());
}

/// Whether changes are recorded, so that a handler has to queue its words.
#[inline]
pub fn is_propagating(cx: &Ctx<'_>) -> bool {
    cx.engine.effects.propagation.is_on()
}

/// Whether a log of changes is being replayed, which has requests that no client may send.
pub fn is_loading(cx: &Ctx<'_>) -> bool {
    cx.engine.effects.propagation.is_loading()
}

/// Queues words in place of the running command's request. To be called when the command has made its change.
pub fn propagate_instead(cx: &mut Ctx<'_>, words: &[&[u8]]) {
    if !cx.is_in_script() || may_script(cx.engine) {
        propagate_also(cx, words);
    }
    cx.engine.effects.propagation.has_own_words = true;
}

/// Keeps the running command's request from going out: what it did is queued already.
pub fn propagate_nothing(cx: &mut Ctx<'_>) {
    cx.engine.effects.propagation.has_own_words = true;
}

/// Queues a command beside the running one, whatever a script says about its commands.
pub fn propagate_also(cx: &mut Ctx<'_>, words: &[&[u8]]) {
    cx.engine.effects.propagation.push(cx.database, words.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::exec::aof;
    use crate::engine::spec::Now;
    use crate::engine::state::host::NoHost;
    use crate::engine::{Settings, Table};

    #[test]
    fn only_a_server_with_a_file_keeps_which_keys_are_not_synced() {
        let mut settings = Settings::default();
        settings.files_mut().syncs = SyncPolicy::Always;
        let mut engine = Engine::new(Table::of(&[]), settings, 0, Now::default(), Box::new(NoHost::default()));
        let needed = |engine: &mut Engine| {
            note_change(engine, 0, b"key");
            engine.persistence.aof.unsynced.offset_needed(0, b"key")
        };
        engine.effects.propagation.turn_on();
        assert_eq!(needed(&mut engine), 0, "it has replicas alone");
        aof::begin(&mut engine);
        assert!(needed(&mut engine) > 0);
    }
}
