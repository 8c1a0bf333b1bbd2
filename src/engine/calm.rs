//! The short way of a request: while nothing is on that concerns more than the data, a command about data is found, run
//! and counted, and that is all.
//!
//! Nearly always nobody watches commands, tests, tracks keys, is paused, short of memory or restricted, and the client
//! is in no transaction and listens to nothing. Then every gate lets a command about data pass, and nothing follows it
//! ([`super::dispatch`]). So that is asked in one place instead of one after the other, and in a batch once: the answer
//! stays while only such commands run and leave no wish behind, as nobody else has the engine meanwhile. Debug builds
//! ask all the same, and compare.
//!
//! The way leaves out what would do nothing and does nothing of its own: it calls what [`super::dispatch`] calls, and
//! goes over to it as soon as a command leaves more than its reply.
//!
//! Invariant: whatever the gates and the end of a turn look at beside request and data, [`Engine::is_calm`] looks at.
//!
//! Costs: about sixty instructions for the first request of a batch, three for each further one.

use crate::engine::dispatch::Turn;
use crate::engine::scripts::Ending;
use crate::engine::{Args, ClientsLimit, Command, CommandId, Engine, Family, Flags, Flow, Now, Session, SessionId};
use crate::resp::{Output, Reply, Request};

/// What a brief command has and answers, in bytes, at most.
const BRIEF_BYTES: usize = 1 << 10;

/// Whether it is known that nothing is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Calm {
    /// It is not kept: outside of a batch anybody may change it between two requests.
    #[default]
    NotKept,
    /// It is to be asked.
    Unknown,
    /// Nothing is, for that session.
    For(SessionId),
}

/// A command that may go the short way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    id: CommandId,
    /// It may be timed together with others, unless its answer is long.
    is_brief: bool,
}

impl Calm {
    /// It may be otherwise now.
    pub(super) fn forget(&mut self) {
        if *self != Calm::NotKept {
            *self = Calm::Unknown;
        }
    }
}

impl Command {
    /// True when it does nothing but to data, or tell a message, and does it at once.
    pub(super) fn is_plain(&self) -> bool {
        const MEANT: [Flags; 3] = [Flags::READONLY, Flags::WRITE, Flags::MAY_REPLICATE];
        const ELSE: [Flags; 8] = [
            Flags::BLOCKING,
            Flags::NOSCRIPT,
            Flags::DANGEROUS,
            Flags::ADMIN,
            Flags::PROTECTED,
            Flags::EXTENDS,
            Flags::NO_MULTI,
            Flags::TEST_KIT,
        ];
        let has = |flag: &Flags| self.flags.has(*flag);
        let may_be_more = ELSE.iter().any(has) || self.flags_of.is_some() || self.family == Family::Scripting;
        MEANT.iter().any(has) && !may_be_more && !self.is_container()
    }

    /// True when a short request takes next to no time, unless its answer is long.
    pub(super) fn is_brief(&self) -> bool {
        // Whatever XADD trims is gone at once.
        self.is_plain() && self.flags.has(Flags::FAST) && self.family != Family::Stream || self.is_quick
    }
}

impl Engine {
    /// The command that a request names, if it may go the short way.
    #[inline]
    pub(super) fn plain_command(&mut self, session: SessionId, request: Request<'_>) -> Option<Plain> {
        let is_known = self.interest.calm == Calm::For(session);
        debug_assert!(!is_known || self.is_calm(session), "what a plain command does changes nothing of this");
        if !is_known && !self.is_calm(session) {
            return None;
        }
        let found = self.table.find(request.get(0).unwrap_or_default()).and_then(|id| {
            let entry = self.table.entry(id);
            let is_wanted = entry.is_plain && entry.command.arity.admits(request.len());
            is_wanted.then(|| Plain { id, is_brief: entry.is_brief && self.is_brief(request) })
        });
        match found {
            Some(_) if self.interest.calm == Calm::Unknown => self.interest.calm = Calm::For(session),
            Some(_) => {}
            None => self.interest.calm.forget(),
        }
        found
    }

    /// Runs a plain command for whom nothing else is on.
    #[inline]
    pub(super) fn run_calmly(
        &mut self,
        now: Now,
        session: SessionId,
        Plain { id, is_brief }: Plain,
        request: Request<'_>,
        output: &mut Output,
    ) -> Flow {
        let now = if is_brief { now } else { self.catch_up(now) };
        self.at(now);
        let Some(client) = self.sessions.get_mut(session) else { return Flow::Close };
        client.active = now;
        let (turn, protocol) = (Turn::of(client, output.written()), client.protocol);
        self.begin(session, id);
        let ending = self.execute(session, id, Args::new(request, 1), false, Reply::lending(output, protocol));
        if matches!(ending, Ending::Answered) && self.effects.is_empty() && !self.interest.waiting.is_anything_ready() {
            if is_brief && output.written().len() - turn.start <= BRIEF_BYTES {
                self.put_off(id);
            }
            return Flow::Next;
        }
        self.interest.calm.forget();
        self.end_command(session, id, request, ending, turn, output.settle(turn.start))
    }

    /// Whether the request of a brief command may be timed together with others, as far as can be told before it has
    /// run. The first of a batch is timed by itself, as it may be the only one.
    #[inline]
    fn is_brief(&self, request: Request<'_>) -> bool {
        matches!(self.interest.calm, Calm::For(_)) && request.is_shorter_than(BRIEF_BYTES) && self.may_put_off()
    }

    /// True when nothing is on that a gate or the end of a turn asks for, as far as this session is concerned.
    fn is_calm(&self, session: SessionId) -> bool {
        let users = &self.sessions.guard.users;
        let client = self.sessions.get(session);
        client.is_some_and(|client| {
            users.are_unrestricted()
                && (client.authenticated || !users.must_log_in())
                && self.is_quiet_around()
                && self.is_undisturbed(client)
        })
    }

    /// True when nothing is on for everybody.
    fn is_quiet_around(&self) -> bool {
        let (interest, settings) = (&self.interest, &self.settings);
        let is_unwatched = interest.kit.is_none() && interest.monitors.is_empty() && !interest.tracking.is_on();
        let is_unlimited = settings.max_memory_bytes == 0
            && settings.max_client_bytes == ClientsLimit::Bytes(0)
            && !settings.counts_replicas()
            && !self.databases.pressure.is_short;
        is_unwatched && is_unlimited && !self.scripts.is_any_running() && !self.timing.pause.holds(self.timing.now)
    }

    /// True when a client sends commands and reads replies, and no more.
    fn is_undisturbed(&self, client: &Session) -> bool {
        let is_apart = client.transaction.is_none() && client.subscribed.is_empty() && !client.monitors;
        let goes_on = !client.closing && !client.cut_off && client.held_back.is_none();
        let reads_all = client.wants_reply() && !client.skips_next && client.outgoing.is_empty();
        is_apart && goes_on && reads_all && !self.settings.output_limits.concern(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_plain_if_it_does_nothing_but_to_data() {
        let with = |flags| Command { flags, ..Command::ROW };
        assert!(with(Flags::READONLY.and(Flags::FAST)).is_plain());
        assert!(with(Flags::WRITE.and(Flags::DENYOOM)).is_plain());
        for flags in
            [Flags::NONE, Flags::FAST, Flags::WRITE.and(Flags::BLOCKING), Flags::READONLY.and(Flags::DANGEROUS)]
        {
            assert!(!with(flags).is_plain(), "{flags:?}");
        }
    }
}
