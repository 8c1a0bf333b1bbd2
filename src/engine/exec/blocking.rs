//! Blocked commands: parks them, resumes them when a key is ready, ends them at a timeout or by CLIENT UNBLOCK.
//!
//! A blocked command is stored as its request and run again from the start, through the gates, when one of its keys is
//! ready. So it does exactly what it would do if it arrived at that moment, whatever happened to its other keys, and
//! there is only one way to pop an element. Clients are served after the outermost command: a transaction is one step.
//!
//! If a pause (CLIENT PAUSE) holds the command back, it stays blocked, and its key is tried again when the pause ends
//! or holds back other commands.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::dispatch::Admitted;
use crate::engine::exec::stages::{Call, Caller, Ending, ReplyState};
use crate::engine::exec::{access, cluster, delivery, dispatch, kit, sleep, stages, timing};
use crate::engine::spec::{CommandId, Error, Flags, Now};
use crate::engine::state::{Block, Effect, LateReply, PendingHostCall, Session, SessionId, Wait};
use crate::resp::Request;
use crate::value::View;

impl Engine {
    /// True while the session is blocked in a command and runs no other.
    pub fn is_blocked(&self, session: SessionId) -> bool {
        self.scripts.is_busy_with(session) || self.observers.is_waiting(session) || sleep::is_sleeper(self, session)
    }

    /// Serves the sessions whose keys are ready, in the order in which the keys became ready. Keys that become ready by
    /// that are served too.
    pub fn unblock_ready(&mut self) {
        if self.scripts.is_busy() {
            return;
        }
        self.observers.waiting.release(self.timing.pause.scope(self.timing.now));
        while let Some((database, key)) = self.observers.waiting.next_ready() {
            if unblock_on_key(self, database, &key) == ServeOutcome::HeldBack {
                self.observers.waiting.hold_back(database, key);
            }
        }
    }
}

/// True while a pause (CLIENT PAUSE) holds the session's last request back.
pub fn is_held_back(engine: &Engine, session: &Session) -> bool {
    session.hold_number.is_some() && engine.timing.pause.holds(engine.now())
}

/// The number of blocked sessions (INFO's `blocked_clients`): those that wait in a command, and those that a pause
/// holds back.
pub fn blocked_sessions(engine: &Engine) -> usize {
    let held_back = if engine.timing.pause.holds(engine.now()) {
        engine.sessions.iter().filter(|session| session.hold_number.is_some()).count()
    } else {
        0
    };
    let delayed = engine.observers.kit.as_ref().map_or(0, |kit| kit.delayed_sessions());
    held_back + engine.observers.waiting.sessions() - delayed.min(engine.observers.waiting.sessions())
}

/// Records that a pause holds a session's request back.
pub(super) fn hold_back(engine: &mut Engine, session: SessionId) {
    let number = engine.timing.pause.next_number();
    if let Some(client) = engine.sessions.get_mut(session) {
        client.hold_number = Some(number);
    }
}

/// Pauses this node of a cluster, which then answers no request, or lets it go on with those that came meanwhile.
pub fn set_node_paused(engine: &mut Engine, is_paused: bool) {
    let is_paused = is_paused || sleep::ends(engine).is_some();
    engine.timing.pause.set_node_paused(is_paused);
    engine.observers.fast_path.forget();
    if !is_paused {
        engine.effects.push(Effect::Resume);
        kit::waits::wake_waiters(engine);
    }
}

/// Moves the ends of what clients wait for back, before the clock is set to an earlier moment: each waits for as long
/// as was left.
pub fn move_ends_back(engine: &mut Engine, to: Now) {
    let by_us = engine.timing.now.unix_us.saturating_sub(to.unix_us);
    if by_us <= 0 {
        return;
    }
    engine.observers.waiting.move_deadlines_back(by_us / 1000);
    if let Some(kit) = &mut engine.observers.kit {
        kit.move_deadlines_back(by_us / 1000);
    }
    engine.timing.pause.move_back(by_us);
    engine.observers.overfull.ends.clear();
    for session in engine.sessions.iter_mut() {
        session.active = session.active.before_us(by_us);
        if let Some(end) = &mut session.overfull_until {
            *end = end.before_us(by_us);
            engine.observers.overfull.ends.insert((*end, session.id));
        }
    }
}

/// Whether the node is paused, so that anything a session sends, a request or not, is held back. The test's own clients
/// are answered, and so is the client that has paused the node.
pub fn is_held_by_node(engine: &mut Engine, session: SessionId) -> bool {
    if !engine.timing.pause.is_node_paused() || engine.sessions.is_test_client(session) {
        return false;
    }
    let call = engine.sessions.get(session).and_then(|client| client.host_call.as_deref());
    if matches!(call, Some(PendingHostCall::Answered(..))) {
        return false;
    }
    hold_back(engine, session);
    true
}

/// Blocks a session, whose command has run for `spent_us` microseconds so far.
pub(super) fn park(
    engine: &mut Engine,
    session: SessionId,
    command: CommandId,
    request: Request<'_>,
    block: Block,
    spent_us: u64,
) {
    let Some(client) = engine.sessions.get(session) else { return };
    let mut wait = Wait::new(command, request, client.database, block);
    wait.spent_us = spent_us;
    join(engine, session, wait);
}

/// Blocks a session. Its memory counts, as a request may be large, and its client sends no more while it waits.
fn join(engine: &mut Engine, session: SessionId, wait: Wait) {
    if let Some(client) = engine.sessions.get_mut(session) {
        client.blocked_bytes = wait.memory_bytes();
    }
    engine.sessions.account_memory(session);
    engine.observers.waiting.join(session, wait);
}

/// Ends the wait of a session, and returns it.
pub(super) fn leave(engine: &mut Engine, session: SessionId) -> Option<Wait> {
    let wait = engine.observers.waiting.leave(session)?;
    if let Some(client) = engine.sessions.get_mut(session) {
        client.blocked_bytes = 0;
    }
    engine.sessions.account_memory(session);
    Some(wait)
}

/// Marks a changed key as ready for its blocked stream readers if it no longer holds a stream: they then fail.
pub(super) fn signal_nokey(engine: &mut Engine, database: usize, key: &[u8]) {
    if engine.observers.waiting.unblocks_on_nokey(database, key) {
        let data = engine.databases.get(database);
        if !data.find(key).is_some_and(|slot| matches!(data.view(slot), View::Stream(_))) {
            engine.observers.waiting.signal(database, key);
        }
    }
}

/// Marks a new key as ready if it holds a type that commands wait for: the clients blocked on it may go on when the
/// command is done. A key of another type is not marked, so it takes its place in the order only if it gets such a
/// value before the end.
pub(super) fn signal_key_ready(engine: &mut Engine, database: usize, key: &[u8]) {
    if engine.observers.waiting.awaits(database, key) {
        let data = engine.databases.get(database);
        let view = data.find(key).map(|slot| data.view(slot));
        if matches!(view, Some(View::List(_) | View::Zset(_) | View::Stream(_))) {
            engine.observers.waiting.signal(database, key);
        }
    }
}

/// Marks all keys of a database that clients wait for as ready, after its keys were replaced or removed.
pub(super) fn signal_all(engine: &mut Engine, database: usize) {
    for key in engine.observers.waiting.keys_of(database) {
        signal_key_ready(engine, database, &key);
        signal_nokey(engine, database, &key);
    }
}

/// Serves the sessions that wait for a key, first come first served, as long as the key has something for them. A
/// session that blocks again goes to the end of the queue, and is not tried twice.
fn unblock_on_key(engine: &mut Engine, database: usize, key: &[u8]) -> ServeOutcome {
    let (mut tickets, mut served) = (engine.observers.waiting.tickets(), ServeOutcome::All);
    while let Some((ticket, session)) = engine.observers.waiting.first(database, key, tickets.clone()) {
        tickets.start = ticket + 1;
        notice_time(engine, database, key);
        let slot = access::live(engine, database, key);
        if slot.is_none() && !engine.observers.waiting.unblocks_on_nokey(database, key) {
            break;
        }
        let Some(wait) = engine.observers.waiting.get(session) else { break };
        if !(wait.is_served_by)(slot.map(|slot| engine.databases.get(database).view(slot))) {
            continue;
        }
        let writes = engine.table.entry(wait.command).command.flags.has(Flags::WRITE);
        if engine.timing.pause.holds_back(engine.now(), writes).is_some() {
            served = ServeOutcome::HeldBack;
        } else {
            resume(engine, session);
        }
    }
    served
}

/// Reads the clock if a key has a deadline: the transaction or script that made the key may have stalled the engine
/// until after that deadline.
fn notice_time(engine: &mut Engine, database: usize, key: &[u8]) {
    let data = engine.databases.get(database);
    if data.find(key).is_some_and(|slot| data.deadline(slot).is_some()) {
        let stalled_us = i64::try_from(engine.timing.coming_stall_us()).unwrap_or(i64::MAX);
        let now = Now::from_us(timing::clock(engine).unix_us.max(engine.now().unix_us).saturating_add(stalled_us));
        engine.at(now);
    }
}

/// Runs a blocked command again. If it blocks again, its timeout does not restart.
fn resume(engine: &mut Engine, session: SessionId) {
    let Some(wait) = leave(engine, session) else { return };
    let Some(client_request) = wait.request.iter().next() else { return };
    let Some(request) = wait.again.as_ref().unwrap_or(&wait.request).iter().next() else { return };
    let frames_before = engine.sessions.frames_of(session);
    let mut out = Vec::new();
    let timer = timing::start_timer(engine);
    match dispatch::admit(engine, session, request) {
        Ok(Admitted::Now(found)) => {
            let id = found.0;
            let mut call = Call::new(session, found, request, Caller::Unblocked);
            let reply = engine.sessions.reply_to(session, &mut out);
            let ending = stages::run_call(engine, &mut call, reply);
            engine.observers.tracking.end_request();
            let spent_us = wait.spent_us.saturating_add(timing::elapsed_us(engine, timer));
            if let Ending::Blocked(block) = ending {
                let again = block.again.or(wait.again);
                let block = Block { deadline_ms: wait.deadline_ms, again, ..*block };
                return park(engine, session, id, client_request, block, spent_us);
            }
            timing::record_time(engine, session, id, client_request, spent_us);
        }
        Ok(Admitted::HeldBack(_) | Admitted::Queued) => return join(engine, session, wait),
        Err(error) => dispatch::refuse(engine, error, &mut engine.sessions.reply_to(session, &mut out)),
    }
    answer(engine, session, frames_before, out);
}

/// Ends waits whose timeout has passed, at most `limit`; returns how many it ended.
pub(super) fn time_out(engine: &mut Engine, limit: usize) -> usize {
    let mut ended = 0;
    while ended < limit
        && let Some(session) = engine.observers.waiting.overdue(engine.now().unix_ms())
    {
        if engine.observers.is_delayed(session) {
            kit::run_delayed(engine, session);
        } else {
            unblock(engine, session, false);
        }
        ended += 1;
    }
    ended
}

/// Ends the wait of a session with the reply of a timeout, or an error. False when it does not wait.
pub(super) fn unblock(engine: &mut Engine, session: SessionId, with_error: bool) -> bool {
    if !is_blocked_as_in_redis(engine, session) {
        return false;
    }
    let Some(wait) = leave(engine, session) else { return false };
    let keyless = wait.keys.is_empty().then_some(wait.command);
    let reply = wait.timeout_reply;
    finish(engine, session, wait, if with_error { Err(Error::Unblocked) } else { Ok(reply) });
    if with_error {
        count_unblocking(engine, keyless);
    }
    true
}

/// Whether a session that waits would be blocked in Redis, too: not one that a fault rule delays, nor one in SAVE,
/// which Redis ends before it serves anybody else.
fn is_blocked_as_in_redis(engine: &Engine, session: SessionId) -> bool {
    !engine.observers.is_delayed(session) && !engine.persistence.awaits_save(session)
}

/// Ends the waits for keys that this node of a cluster no longer serves.
pub(super) fn redirect_waiting(engine: &mut Engine) {
    let refused = |(session, key)| cluster::refusal_of_wait(engine, session, key).map(|refusal| (session, refusal));
    let all: Vec<(SessionId, Error)> = engine.observers.waiting.first_keys().filter_map(refused).collect();
    for (session, refusal) in all {
        if let Some(wait) = leave(engine, session) {
            finish(engine, session, wait, Err(refusal));
        }
    }
}

/// Ends all waits of clients with an error, and their connections: the server has another role now.
pub(super) fn end_all(engine: &mut Engine, error: &Error) {
    let sessions = engine.sessions.iter().map(|session| session.id);
    let waiting: Vec<SessionId> = sessions.filter(|&session| is_blocked_as_in_redis(engine, session)).collect();
    for session in waiting {
        if let Some(wait) = leave(engine, session) {
            if let Some(client) = engine.sessions.get_mut(session) {
                client.hangs_up = true;
            }
            finish(engine, session, wait, Err(error.clone()));
        }
    }
}

/// Ends the wait of a session in that command, which waits for no key: with a reply, or with an error.
pub(super) fn complete(engine: &mut Engine, session: SessionId, command: CommandId, result: Result<LateReply, Error>) {
    let waits = engine.observers.waiting.get(session).is_some_and(|wait| wait.command == command);
    if waits && let Some(wait) = leave(engine, session) {
        finish(engine, session, wait, result);
    }
}

/// Replies to a session whose wait has ended, and counts its command.
fn finish(engine: &mut Engine, session: SessionId, wait: Wait, result: Result<LateReply, Error>) {
    let (mut out, has_failed) = (Vec::new(), result.is_err());
    let mut reply = engine.sessions.reply_to(session, &mut out);
    match result {
        Ok(late) => late.write(&mut reply),
        Err(error) => dispatch::refuse(engine, error, &mut reply),
    }
    dispatch::count(engine, wait.command, has_failed);
    if let Some(request) = wait.request.iter().next() {
        timing::record_time(engine, session, wait.command, request, wait.spent_us);
    }
    answer(engine, session, engine.sessions.frames_of(session), out);
}

/// Counts as Redis does when a wait ends with an error: the command that ended it counts as failed, and a command
/// that waits for no key counts twice.
fn count_unblocking(engine: &mut Engine, keyless: Option<CommandId>) {
    if let Some(running) = engine.timing.running_command() {
        engine.stats.command_mut(running).failed += 1;
    }
    if let Some(command) = keyless {
        dispatch::count(engine, command, false);
    }
}

/// Ends the wait of a session that disconnected. As in Redis, a command that waits for no key (WAIT) counts as
/// having run; others as never called.
pub(in crate::engine) fn stop_waiting(engine: &mut Engine, session: SessionId) {
    forget_conditions(engine, session);
    if engine.observers.waiting.get(session).is_none_or(|wait| !wait.keys.is_empty())
        || engine.observers.is_delayed(session)
    {
        return;
    }
    let Some(wait) = leave(engine, session) else { return };
    dispatch::count(engine, wait.command, false);
    if let Some(request) = wait.request.iter().next() {
        timing::record_time(engine, session, wait.command, request, wait.spent_us);
    }
}

/// Forgets what a session waits for in WAIT or WAITAOF, or has waited for until its timeout: it may never come.
fn forget_conditions(engine: &mut Engine, session: SessionId) {
    if engine.persistence.aof.progress.is_awaited() {
        engine.persistence.aof.forget_wait(session);
    }
    if let Some(replication) = &mut engine.peers.replication {
        replication.waits.retain(|wait| wait.session != session);
    }
}

/// Replies to a session that was blocked, after the `frames_before` frames that were queued before it resumed; from
/// now on it runs commands again.
pub(super) fn answer(engine: &mut Engine, session: SessionId, frames_before: usize, mut out: Vec<u8>) {
    let now = engine.now();
    let Some(client) = engine.sessions.get_mut(session) else { return };
    client.active = now;
    if !client.wants_reply() {
        out.clear();
    }
    client.has_replied();
    stages::reply(engine, session, ReplyState::Late, &mut out);
    delivery::of(engine).send_after(frames_before, session, Arc::from(out));
}

/// Whether all waiters of a ready key were served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServeOutcome {
    All,
    /// A pause holds some of them back; the key must stay ready.
    HeldBack,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::exec::{aof, replication};
    use crate::engine::state::SyncWait;
    use crate::engine::state::host::NoHost;
    use crate::engine::state::replication::ReplicaWait;
    use crate::engine::{Origin, Settings, Table};

    /// Nothing is synced under `appendfsync no`, and replicas may have gone.
    #[test]
    fn what_a_client_waits_for_is_forgotten_when_it_disconnects() {
        let host = Box::new(NoHost::default());
        let mut engine = Engine::new(Table::of(&[]), Settings::default(), 0, Now::default(), host);
        aof::begin(&mut engine);
        let wait = |engine: &mut Engine| {
            let session = engine.connect(Now::default(), Origin::default()).expect("there is room");
            let command = CommandId::default();
            engine.persistence.aof.wait(SyncWait { session, command, offset: 1, ends: true });
            replication::replication(engine).waits.push(ReplicaWait { session, command, count: 1, offset: 1 });
            session
        };
        let (stays, leaves) = (wait(&mut engine), wait(&mut engine));
        engine.disconnect(leaves);
        let waits = &replication::replication(&mut engine).waits;
        assert_eq!(waits.iter().map(|wait| wait.session).collect::<Vec<_>>(), [stays]);
        assert!(engine.persistence.aof.progress.is_awaited());
        engine.disconnect(stays);
        assert!(!engine.persistence.aof.progress.is_awaited());
        assert!(engine.persistence.aof.take_waiting().is_empty());
        assert!(replication::replication(&mut engine).waits.is_empty());
    }
}
