//! The test kit: the journal of commands, injected faults, strict mode, and waits for conditions.
//!
//! All of it is behind one pointer ([`crate::engine::Observers::kit`]). While that is empty a command pays for two
//! predictable branches; the kit runs only after a test has used it. Commands of the test kit itself pass untouched:
//! they are neither recorded nor disturbed.
//!
//! Not here: the syntax of DUNLIN (`commands/dunlin`).

mod faults;
mod journal;
mod shown;
mod strict;
mod transcript;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

pub use faults::{Disturbance, Failure, Fault, Faults, State};
pub use journal::{Bound, Entry, Filter, Journal, MOST_ENTRIES, Source, USUAL_ENTRIES};
pub use shown::quoted;
pub use strict::{CheckRule, CheckedCommand, Finding, Level, Rule, Setting, Strict, Violation};
pub use waits::{Condition, Waiter};

use crate::engine::measure::Stopwatch;
use crate::engine::{Block, CommandId, Effect, Engine, Flags, Flow, KitError, Now, Session, SessionId, Transport};
use crate::resp::Request;

/// The state of the test kit.
#[derive(Debug, Default)]
pub struct Kit {
    /// The journal of commands, once a test has started it.
    pub journal: Option<Journal>,
    /// The fault rules.
    pub faults: Faults,
    /// Strict mode, once a test has set a rule.
    pub strict: Option<Box<Strict>>,
    /// The clients that wait for conditions.
    waiters: Vec<Waiter>,
    /// Requests that run or are blocked, by session.
    begun: BTreeMap<SessionId, Begun>,
    /// Sessions whose delayed request runs, or runs again, when their wait ends.
    delayed: BTreeSet<SessionId>,
}

/// A request without a reply so far.
#[derive(Debug)]
struct Begun {
    /// Its entry in the journal.
    number: Option<u64>,
    watch: Stopwatch,
    /// The fault that its reply is to suffer.
    failure: Option<Failure>,
}

impl Kit {
    /// Starts the journal, if it is not on, and returns it.
    pub fn begin_journal(&mut self) -> &mut Journal {
        let journal = self.journal.get_or_insert_with(|| Journal::of(USUAL_ENTRIES));
        journal.is_on = true;
        journal
    }

    /// True when the kit has nothing to do and nothing to report.
    fn is_idle(&self) -> bool {
        let nobody = self.begun.is_empty() && self.delayed.is_empty() && self.waiters.is_empty();
        nobody && self.journal.is_none() && self.faults.is_empty() && self.strict.is_none()
    }

    /// Removes a session that ended.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.begun.remove(&session);
        self.delayed.remove(&session);
        self.waiters.retain(|waiter| waiter.session != session);
    }

    /// True when that session's request runs at the end of its wait.
    pub(super) fn delays(&self, session: SessionId) -> bool {
        self.delayed.contains(&session)
    }

    /// The number of sessions that are delayed, and only seem to be blocked in a command.
    pub(super) fn delayed_sessions(&self) -> usize {
        self.delayed.len()
    }
}

impl Engine {
    /// The kit, created if there is none.
    pub fn kit(&mut self) -> &mut Kit {
        self.observers.kit.get_or_insert_default()
    }

    /// Drops the kit if it is no longer used.
    pub fn put_kit_away(&mut self) {
        if let Some(kit) = &mut self.observers.kit {
            kit.strict.take_if(|strict| strict.is_idle());
        }
        self.observers.kit.take_if(|kit| kit.is_idle());
    }

    /// Runs a request while there is a kit.
    #[cold]
    pub(super) fn run_instrumented(
        &mut self,
        now: Now,
        session: SessionId,
        request: Request<'_>,
        out: &mut Vec<u8>,
    ) -> Flow {
        let flow = if self.is_of_kit(request) || self.is_test_client(session) {
            self.run_full(now, session, request, out)
        } else {
            match self.fire(now, session, request) {
                Some(Failure::Delay { ms }) => self.delay(now, session, request, Some(ms)),
                Some(Failure::Silence) => self.delay(now, session, request, None),
                Some(Failure::DropBefore) => Flow::Close,
                Some(Failure::Error(text)) => self.refuse_instead(now, session, request, text, out),
                failure => self.run_noted(now, session, request, failure, out),
            }
        };
        self.wake_waiters();
        flow
    }

    /// Whether a request passes the first checks: its client may send it now, the settings allow it, and it is well
    /// formed.
    fn comes_to_gates(&self, now: Now, session: SessionId, id: CommandId, request: Request<'_>) -> bool {
        let command = self.table.entry(id).command;
        let Some(client) = self.sessions.get(session) else { return false };
        let is_stranger = !client.authenticated && self.acl.users.must_log_in();
        let writes = command.flags.has(Flags::WRITE) || command.flags.has(Flags::MAY_REPLICATE);
        let is_paused = self.timing.pause.holds_back(now, writes).is_some();
        let is_enabled = self.check_enabled(client, command.flags).is_ok();
        !is_stranger && !is_paused && is_enabled && command.arity.admits(request.len())
    }

    fn is_of_kit(&self, request: Request<'_>) -> bool {
        let found = self.table.find(request.get(0).unwrap_or_default());
        found.is_some_and(|id| self.table.entry(id).command.flags.has(Flags::TEST_KIT))
    }

    /// Whether a session belongs to the test itself.
    fn is_test_client(&self, session: SessionId) -> bool {
        self.sessions.get(session).is_some_and(|client| client.origin.is_test_client)
    }

    /// Runs a request and records its result; `failure` is the fault that its reply suffers.
    fn run_noted(
        &mut self,
        now: Now,
        session: SessionId,
        request: Request<'_>,
        failure: Option<Failure>,
        out: &mut Vec<u8>,
    ) -> Flow {
        self.at(now);
        if let Some(line) = self.check_request(now, session, request) {
            return self.refuse_instead(now, session, request, line, out);
        }
        let ends = failure.as_ref().is_some_and(Failure::ends_connection);
        let number = self.begin_entry(session, request, Source::Client);
        let begun = Begun { number, watch: self.start_timer(), failure };
        self.kit().begun.insert(session, begun);
        let flow = self.run_full(now, session, request, out);
        match flow {
            // The request runs again later: a pause holds it back, or it has called the host.
            Flow::Wait(_) | Flow::CallHost => self.unbegin(session),
            Flow::Next if ends => return Flow::Close,
            _ => {}
        }
        flow
    }

    fn unbegin(&mut self, session: SessionId) {
        let Some(kit) = &mut self.observers.kit else { return };
        let number = kit.begun.remove(&session).and_then(|begun| begun.number);
        if let (Some(number), Some(journal)) = (number, &mut kit.journal) {
            journal.take_back(number);
        }
    }

    /// Records the reply of a session's request, in `out` from `start` on, or that it is still to come.
    #[cold]
    pub(super) fn note_reply(&mut self, session: SessionId, start: usize, is_blocked: bool, out: &mut Vec<u8>) {
        let is_queued = self.sessions.get(session).is_some_and(|client| client.transaction.is_some());
        let Some(kit) = &mut self.observers.kit else { return };
        if is_blocked {
            if let (Some(begun), Some(journal)) = (kit.begun.get(&session), &mut kit.journal) {
                begun.number.into_iter().for_each(|number| journal.waits(number));
            }
            return;
        }
        let Some(begun) = kit.begun.remove(&session) else { return };
        self.end_entry(begun.number, begun.watch, &out[start..]);
        if is_queued && out[start..] == *b"+QUEUED\r\n" {
            self.mark_queued(begun.number);
        }
        match begun.failure {
            Some(Failure::DropAfter) => out.truncate(start),
            Some(Failure::HalfReply) => out.truncate(start + (out.len() - start) / 2),
            Some(Failure::SplitReply) => self.split(session),
            _ => {}
        }
    }

    /// Records the reply of a request that was blocked. False when a fault suppresses the reply.
    #[cold]
    pub(super) fn note_late_reply(&mut self, session: SessionId, out: &mut Vec<u8>) -> bool {
        let Some(begun) = self.observers.kit.as_mut().and_then(|kit| kit.begun.remove(&session)) else { return true };
        self.end_entry(begun.number, begun.watch, out);
        match begun.failure {
            Some(Failure::DropAfter) => {
                self.drop_session(session);
                return false;
            }
            Some(Failure::HalfReply) => {
                out.truncate(out.len() / 2);
                self.hang_up(session);
            }
            Some(Failure::SplitReply) => self.split(session),
            _ => {}
        }
        true
    }

    fn split(&mut self, session: SessionId) {
        if let Some(client) = self.sessions.get_mut(session) {
            client.in_bytes = true;
        }
    }

    /// Closes a session's connection when its queued pushes are sent.
    fn hang_up(&mut self, session: SessionId) {
        match self.sessions.get_mut(session) {
            Some(client) if client.origin.transport == Transport::Direct => self.drop_session(session),
            Some(client) => client.hangs_up = true,
            None => {}
        }
    }

    /// Delays a request before it runs; without a time, for ever.
    fn delay(&mut self, now: Now, session: SessionId, request: Request<'_>, delay_ms: Option<i64>) -> Flow {
        self.at(now);
        let Ok((id, _)) = self.table.resolve(request) else { return Flow::Next };
        let deadline_ms = delay_ms.map(|delay_ms| now.wait_end_ms(delay_ms).unwrap_or(Now::LAST_MS));
        if let Some(client) = self.sessions.get_mut(session) {
            client.active = now;
        }
        let nothing = BTreeSet::new();
        let block = Block { keys: nothing, is_served_by: |_| false, deadline_ms, at_last: |_| {}, again: None };
        self.park(session, id, request, block, 0);
        self.kit().delayed.insert(session);
        Flow::Block
    }

    /// Runs the request of a session whose delay is over, or whose condition is to be checked again.
    #[cold]
    pub(super) fn run_delayed(&mut self, session: SessionId) {
        self.kit().delayed.remove(&session);
        let Some(wait) = self.observers.waiting.leave(session) else { return };
        let Some(request) = wait.request.iter().next() else { return };
        let (now, mut out) = (self.now(), Vec::new());
        let flow = if self.is_of_kit(request) {
            self.run_full(now, session, request, &mut out)
        } else {
            self.run_noted(now, session, request, None, &mut out)
        };
        self.finish(now, request);
        match flow {
            Flow::Block => {}
            Flow::Wait(moment) => {
                _ = self.delay(now, session, request, Some((moment.unix_us - now.unix_us) / 1000 + 1))
            }
            Flow::CallHost => {
                // The connection no longer has that request, so it cannot send it again.
                _ = self.take_host_call(session);
                let text = KitError::WorldTooLate.to_string();
                self.tell(session, format!("-{text}\r\n").into_bytes().into());
            }
            Flow::Next => self.tell(session, out.into()),
            Flow::Close => {
                self.tell(session, out.into());
                self.hang_up(session);
            }
            Flow::Abort => self.effects.push(Effect::Close(session)),
        }
        self.wake_waiters();
    }
}

/// The name of the client, by which rules and filters select requests.
fn is_named(client: &Session, name: Option<&[u8]>) -> bool {
    name.is_none_or(|name| client.name == name)
}
