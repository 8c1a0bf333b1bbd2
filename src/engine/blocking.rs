//! Blocked commands: parks them, resumes them when a key is ready, ends them at a timeout or by CLIENT UNBLOCK.
//!
//! A blocked command is stored as its request and run again from the start, through the gates, when one of its keys is
//! ready. So it does exactly what it would do if it arrived at that moment, whatever happened to its other keys, and
//! there is only one way to pop an element. Clients are served after the outermost command: a transaction is one step.
//!
//! If a pause (CLIENT PAUSE) holds the command back, it stays blocked, and its key stays ready, until the pause ends.

use std::sync::Arc;

use crate::engine::dispatch::Admitted;
use crate::engine::scripts::Ending;
use crate::engine::stages::{Call, Caller};
use crate::engine::{Block, CommandId, Engine, Error, Flags, Now, Session, SessionId, Wait};
use crate::resp::{Protocol, Reply, Request};
use crate::value::View;

impl Engine {
    /// True while the session is blocked in a command and runs no other.
    pub fn is_blocked(&self, session: SessionId) -> bool {
        self.scripts.is_busy_with(session) || self.is_waiting(session)
    }

    /// True while a fault of the test kit delays the session's request.
    fn is_delayed(&self, session: SessionId) -> bool {
        self.observers.kit.as_ref().is_some_and(|kit| kit.delays(session))
    }

    fn is_waiting(&self, session: SessionId) -> bool {
        !self.observers.waiting.is_empty() && self.observers.waiting.get(session).is_some()
    }

    /// True while a pause (CLIENT PAUSE) holds the session's last request back.
    pub fn is_held_back(&self, session: &Session) -> bool {
        session.held_back.is_some() && self.timing.pause.holds(self.now())
    }

    /// The number of sessions without an answer for now: blocked in a command, or held back by a pause.
    pub fn blocked_sessions(&self) -> usize {
        let held_back = self.sessions.iter().filter(|session| self.is_held_back(session)).count();
        let delayed = self.observers.kit.as_ref().map_or(0, |kit| kit.delayed_sessions());
        held_back + self.observers.waiting.sessions() - delayed.min(self.observers.waiting.sessions())
    }

    /// Records that a pause holds a session's request back.
    pub(super) fn hold_back(&mut self, session: SessionId) {
        let turn = self.timing.pause.next_turn();
        if let Some(client) = self.sessions.get_mut(session) {
            client.held_back = Some(turn);
        }
    }

    /// The sessions that a pause holds or held back, in the order of their requests.
    pub fn held_back(&self) -> Vec<SessionId> {
        let mut turns: Vec<_> =
            self.sessions.iter().filter_map(|session| Some((session.held_back?, session.id))).collect();
        turns.sort_unstable();
        turns.into_iter().map(|(_, session)| session).collect()
    }

    /// Blocks a session, whose command has run for `spent_us` microseconds so far.
    pub(super) fn park(
        &mut self,
        session: SessionId,
        command: CommandId,
        request: Request<'_>,
        block: Block,
        spent_us: u64,
    ) {
        let Some(client) = self.sessions.get(session) else { return };
        let mut wait = Wait::new(command, request, client.database, block);
        wait.spent_us = spent_us;
        self.observers.waiting.join(session, wait);
    }

    /// A key changed: if it no longer holds a stream, its blocked stream readers become ready, to fail.
    pub(super) fn signal_loss(&mut self, database: usize, key: &[u8]) {
        if self.observers.waiting.awaits(database, key) {
            let data = self.databases.get(database);
            if !data.find(key).is_some_and(|slot| matches!(data.view(slot), View::Stream(_))) {
                self.observers.waiting.signal(database, key);
            }
        }
    }

    /// Serves the sessions whose keys are ready, in the order in which the keys became ready. Keys that become ready by
    /// that are served too.
    pub fn unblock_ready(&mut self) {
        if self.scripts.is_busy() {
            return;
        }
        let mut held_back = Vec::new();
        while let Some((database, key)) = self.observers.waiting.next_ready() {
            if self.unblock_on_key(database, &key) == Served::LaterSome {
                held_back.push((database, key));
            }
        }
        for (database, key) in held_back {
            self.observers.waiting.signal(database, &key);
        }
    }

    /// Serves the sessions that wait for a key, first come first served, as long as the key has something for them. A
    /// session that blocks again goes to the end of the queue, and is not tried twice.
    fn unblock_on_key(&mut self, database: usize, key: &[u8]) -> Served {
        let (mut tickets, mut served) = (self.observers.waiting.tickets(), Served::All);
        while let Some((ticket, session)) = self.observers.waiting.first(database, key, tickets.clone()) {
            tickets.start = ticket + 1;
            self.notice_time(database, key);
            let slot = self.live(database, key);
            if slot.is_none() && !self.observers.waiting.heeds_loss(database, key) {
                break;
            }
            let Some(wait) = self.observers.waiting.get(session) else { break };
            if !(wait.is_served_by)(slot.map(|slot| self.databases.get(database).view(slot))) {
                continue;
            }
            let writes = self.table.entry(wait.command).command.flags.has(Flags::WRITE);
            if self.timing.pause.holds_back(self.now(), writes).is_some() {
                served = Served::LaterSome;
            } else {
                self.resume(session);
            }
        }
        served
    }

    /// Reads the clock if a key has a deadline: the transaction or script that made the key may have stalled the engine
    /// until after that deadline.
    fn notice_time(&mut self, database: usize, key: &[u8]) {
        let data = self.databases.get(database);
        if data.find(key).is_some_and(|slot| data.deadline(slot).is_some()) {
            let stalled_us = i64::try_from(self.coming_stall_us()).unwrap_or(i64::MAX);
            let now = Now::from_us(self.clock().unix_us.max(self.now().unix_us).saturating_add(stalled_us));
            self.at(now);
        }
    }

    /// Runs a blocked command again. If it blocks again, its timeout does not restart.
    fn resume(&mut self, session: SessionId) {
        let Some(wait) = self.observers.waiting.leave(session) else { return };
        let Some(asked) = wait.request.iter().next() else { return };
        let Some(request) = wait.again.as_ref().unwrap_or(&wait.request).iter().next() else { return };
        let told = self.frames_of(session);
        let mut out = Vec::new();
        let timer = self.start_timer();
        match self.admit(session, request) {
            Ok(Admitted::Now(found)) => {
                let id = found.0;
                let mut call = Call::new(session, found, request, Caller::Unblocked);
                let reply = Reply::new(&mut out, self.protocol_of(session));
                let ending = self.run_call(&mut call, reply);
                self.observers.tracking.end_turn();
                let spent_us = wait.spent_us.saturating_add(self.elapsed_us(timer));
                if let Ending::Waits(block) = ending {
                    let again = block.again.or(wait.again);
                    let block = Block { deadline_ms: wait.deadline_ms, again, ..*block };
                    return self.park(session, id, asked, block, spent_us);
                }
                self.note_time(session, id, asked, spent_us);
            }
            Ok(Admitted::Later(_) | Admitted::Queued) => return self.observers.waiting.join(session, wait),
            Err(error) => self.refuse(error, &mut Reply::new(&mut out, self.protocol_of(session))),
        }
        self.answer(session, told, out);
    }

    /// Ends waits whose timeout has passed, at most `limit`; returns how many it ended.
    pub(super) fn time_out(&mut self, limit: usize) -> usize {
        let mut ended = 0;
        while ended < limit
            && let Some(session) = self.observers.waiting.overdue(self.now().unix_ms())
        {
            if self.is_delayed(session) {
                self.run_delayed(session);
            } else {
                self.unblock(session, false);
            }
            ended += 1;
        }
        ended
    }

    /// Ends the wait of a session with the reply of a timeout, or an error. False when it does not wait.
    pub(super) fn unblock(&mut self, session: SessionId, with_error: bool) -> bool {
        if self.is_delayed(session) {
            return false;
        }
        let Some(wait) = self.observers.waiting.leave(session) else { return false };
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, self.protocol_of(session));
        if with_error {
            self.refuse(Error::Unblocked, &mut reply);
        } else {
            (wait.at_last)(&mut reply);
        }
        self.count(wait.command, with_error);
        if with_error {
            self.count_unblocking(wait.keys.is_empty().then_some(wait.command));
        }
        if let Some(request) = wait.request.iter().next() {
            self.note_time(session, wait.command, request, wait.spent_us);
        }
        self.answer(session, self.frames_of(session), out);
        true
    }

    /// Counts as Redis does when a wait ends with an error: the command that ended it counts as failed, and a command
    /// that waits for no key counts twice.
    fn count_unblocking(&mut self, keyless: Option<CommandId>) {
        if let Some(running) = self.running_command() {
            self.stats.command_mut(running).failed += 1;
        }
        if let Some(command) = keyless {
            self.count(command, false);
        }
    }

    /// Ends the wait of a session that disconnected. As in Redis, a command that waits for no key (WAIT) counts as
    /// having run; others as never called.
    pub(super) fn stop_waiting(&mut self, session: SessionId) {
        if self.observers.waiting.get(session).is_none_or(|wait| !wait.keys.is_empty()) || self.is_delayed(session) {
            return;
        }
        let Some(wait) = self.observers.waiting.leave(session) else { return };
        self.count(wait.command, false);
        if let Some(request) = wait.request.iter().next() {
            self.note_time(session, wait.command, request, wait.spent_us);
        }
    }

    pub(super) fn frames_of(&self, session: SessionId) -> usize {
        self.sessions.get(session).map_or(0, |client| client.push_queue.frames())
    }

    fn protocol_of(&self, session: SessionId) -> Protocol {
        self.sessions.get(session).map_or(Protocol::Resp2, |client| client.protocol)
    }

    /// Replies to a session that waited, behind the `told` frames that were queued before it resumed; from now on it
    /// runs commands again.
    pub(super) fn answer(&mut self, session: SessionId, told: usize, mut out: Vec<u8>) {
        let now = self.now();
        let Some(client) = self.sessions.get_mut(session) else { return };
        client.active = now;
        if !client.wants_reply() {
            out.clear();
        }
        client.has_replied();
        if self.observers.kit.is_some() && !self.note_late_reply(session, &mut out) {
            return;
        }
        self.listening().1.tell_after(told, session, Arc::from(out));
    }
}

/// Whether all waiters of a ready key were served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    All,
    /// A pause holds some of them back; the key must stay ready.
    LaterSome,
}
