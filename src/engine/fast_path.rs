//! The fast path: when no feature is active that concerns more than the data, a data command is looked up, run and
//! counted, and skips the gates.
//!
//! Nearly always there are no monitors, test kit, key tracking, pause, memory limit, restricted users, and the client
//! is in no transaction and subscribed to nothing. Then every gate lets a data command pass, and nothing has to happen
//! after it ([`super::dispatch`]). So the engine checks this in one place instead of one gate after the other, and
//! once for a batch: the result holds while only such commands run and leave no effect, as nobody else has the engine
//! meanwhile. Debug builds check again for each command, and also ask the gates themselves.
//!
//! The fast path skips only steps that would be no-ops, and adds none: it calls what [`super::dispatch`] calls, and
//! goes over to it as soon as a command leaves more than its reply.
//!
//! Invariant: [`Engine::is_fast_path_open`] asks each gate and each stage whether it is active, from their own lists,
//! and [`Engine::needs_no_conclusion`] checks what the end of a request checks about the client.
//!
//! Costs: about 130 instructions for the first request of a batch, three for each further one.

use crate::engine::dispatch::Turn;
#[cfg(debug_assertions)]
use crate::engine::gates::Asked;
use crate::engine::gates::has_gate_of_its_own;
use crate::engine::scripts::Ending;
use crate::engine::stages::{Call, Caller};
use crate::engine::{Command, CommandId, Engine, Family, Flags, Flow, Now, SessionId};
use crate::resp::{Reply, ReplyBuffer, Request};

/// The most bytes of the request and of the reply of a brief command.
const BRIEF_BYTES: usize = 1 << 10;

/// The cached answer to whether the fast path is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FastPath {
    /// No answer is cached: outside of a batch it may change between two requests.
    #[default]
    NotKept,
    /// The next request of the batch checks.
    Unknown,
    /// The fast path is open for that session until the batch ends or [`FastPath::forget`] is called.
    For(SessionId),
}

/// A command that may take the fast path.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastCommand {
    id: CommandId,
    /// Whether it may be timed together with others, unless its reply is long.
    is_brief: bool,
}

impl FastPath {
    /// Drops the cached answer: a command may have changed it.
    pub(super) fn forget(&mut self) {
        if *self != FastPath::NotKept {
            *self = FastPath::Unknown;
        }
    }
}

impl Command {
    /// Whether the command only reads or changes data, or publishes a message, and replies at once.
    pub(super) fn may_run_fast(&self) -> bool {
        const MEANT: [Flags; 3] = [Flags::READONLY, Flags::WRITE, Flags::MAY_REPLICATE];
        const ELSE: [Flags; 5] = [Flags::BLOCKING, Flags::NOSCRIPT, Flags::DANGEROUS, Flags::ADMIN, Flags::TEST_KIT];
        let has = |flag: &Flags| self.flags.has(*flag);
        let may_be_more = ELSE.iter().any(has)
            || has_gate_of_its_own(self.flags)
            || self.flags_of.is_some()
            || self.family == Family::Scripting;
        MEANT.iter().any(has) && !may_be_more && !self.is_container()
    }

    /// Whether a short request takes next to no time, unless its reply is long.
    pub(super) fn is_brief(&self) -> bool {
        // Whatever XADD trims is gone at once.
        self.may_run_fast() && self.flags.has(Flags::FAST) && self.family != Family::Stream || self.is_quick
    }
}

impl Engine {
    /// The command that a request names, if it may take the fast path now.
    #[inline]
    pub(super) fn command_for_fast_path(&mut self, session: SessionId, request: Request<'_>) -> Option<FastCommand> {
        let is_known = self.observers.fast_path == FastPath::For(session);
        debug_assert!(!is_known || self.is_fast_path_open(session), "a command of the fast path does not close it");
        if !is_known && !self.is_fast_path_open(session) {
            return None;
        }
        let found = self.table.find(request.get(0).unwrap_or_default()).and_then(|id| {
            let entry = self.table.entry(id);
            let is_wanted = entry.may_run_fast && entry.command.arity.admits(request.len());
            is_wanted.then(|| FastCommand { id, is_brief: entry.is_brief && self.is_brief(request) })
        });
        match found {
            Some(_) if self.observers.fast_path == FastPath::Unknown => {
                self.observers.fast_path = FastPath::For(session)
            }
            Some(_) => {}
            None => self.observers.fast_path.forget(),
        }
        found
    }

    /// Runs a command on the fast path, which is open for the session.
    #[inline]
    pub(super) fn run_fast(
        &mut self,
        now: Now,
        session: SessionId,
        FastCommand { id, is_brief }: FastCommand,
        request: Request<'_>,
        output: &mut ReplyBuffer,
    ) -> Flow {
        let now = if is_brief { now } else { self.catch_up(now) };
        self.at(now);
        #[cfg(debug_assertions)]
        self.assert_gates_pass(&Asked { session, id, flags: self.table.entry(id).command.flags, request });
        let Some(client) = self.sessions.get_mut(session) else { return Flow::Close };
        client.active = now;
        let (turn, protocol) = (Turn::of(client, output.written()), client.protocol);
        self.begin(session, id);
        let call = Call::new(session, (id, 1), request, Caller::Client);
        let ending = self.execute(&call, Reply::zero_copy(output, protocol));
        if matches!(ending, Ending::Answered) && self.effects.is_empty() && !self.observers.waiting.is_anything_ready()
        {
            #[cfg(debug_assertions)]
            self.assert_nothing_to_conclude(session, turn, output.written_mut());
            if is_brief && output.written().len() - turn.start <= BRIEF_BYTES {
                self.put_off(id);
            }
            return Flow::Next;
        }
        self.observers.fast_path.forget();
        self.end_command(&call, ending, turn, output.flatten(turn.start))
    }

    /// Whether the request of a brief command may be timed together with others, as far as can be told before it has
    /// run. The first of a batch is timed by itself, as it may be the only one.
    #[inline]
    fn is_brief(&self, request: Request<'_>) -> bool {
        matches!(self.observers.fast_path, FastPath::For(_))
            && request.is_shorter_than(BRIEF_BYTES)
            && self.may_put_off()
    }

    /// Whether no gate and no stage is active for a session, and its replies go out as they are written.
    fn is_fast_path_open(&self, session: SessionId) -> bool {
        self.sessions.get(session).is_some_and(|client| {
            self.are_gates_open(client) && self.are_stages_idle() && self.needs_no_conclusion(client)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_take_the_fast_path_if_it_only_reads_or_changes_data() {
        let with = |flags| Command { flags, ..Command::ROW };
        assert!(with(Flags::READONLY.and(Flags::FAST)).may_run_fast());
        assert!(with(Flags::WRITE.and(Flags::DENYOOM)).may_run_fast());
        for flags in
            [Flags::NONE, Flags::FAST, Flags::WRITE.and(Flags::BLOCKING), Flags::READONLY.and(Flags::DANGEROUS)]
        {
            assert!(!with(flags).may_run_fast(), "{flags:?}");
        }
    }
}
