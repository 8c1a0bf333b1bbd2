//! Replaying a log of changes (the AOF) or a stream of them (replication): the commands run as they did at first.
//!
//! The commands bypass what concerns clients: permissions, limits, the test kit, and the log itself. Those of a
//! primary's stream count as commands of this server, as in Redis: in the statistics, the slow log, and for MONITOR. No
//! key and no field expires meanwhile, whatever the clock says, since the log has the deletion of each one that did. A
//! transaction runs when its EXEC has come, so one whose end is missing changes nothing.
//!
//! A command that replies with an error is skipped, as in Redis: its client got that error, too. One that does not
//! exist, or has the wrong number of arguments, ends the replay: the file is not what it seems.
//!
//! Logs of older servers contain scripts instead of their effects. A script that takes long is suspended, as for a
//! client, so that the caller can answer other clients meanwhile, and is then resumed ([`Replay::go_on`]).

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::{Ctx, dispatch, monitor, timing};
use crate::engine::spec::{Args, CommandId, Error, shown};
use crate::engine::state::timing::Stopwatch;
use crate::engine::state::{Origin, SessionId};
use crate::resp::{Protocol, Reply, Request, Requests};

/// A log that is being replayed.
#[derive(Debug)]
pub struct Replay {
    /// The session whose selected database the commands use.
    session: SessionId,
    /// The commands of a transaction that has begun.
    queue: Option<Requests>,
    /// The commands of a transaction whose EXEC has come, and how many of them have run.
    transaction: Requests,
    done: usize,
    output: Vec<u8>,
    /// Whether it is the stream of a primary.
    is_stream: bool,
}

/// Why a log cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayFault {
    /// No command has that name.
    #[error("Unknown command '{0}'")]
    UnknownCommand(String),
    /// A command has too few or too many arguments.
    #[error("Wrong number of arguments for '{0}'")]
    Arity(String),
}

impl Replay {
    /// Begins to replay a log of changes.
    pub fn begin(engine: &mut Engine) -> Replay {
        let user = Arc::clone(engine.acl.users.default_user());
        let origin = Origin { is_test_client: true, ..Origin::default() };
        let session = engine.sessions.open(origin, user, true, engine.timing.now);
        Replay::new(engine, session, false)
    }

    /// Begins to replay a part of a stream of changes in a session that stays: the link of a replica to its primary.
    pub fn begin_in(engine: &mut Engine, session: SessionId) -> Replay {
        Replay::new(engine, session, true)
    }

    fn new(engine: &mut Engine, session: SessionId, is_stream: bool) -> Replay {
        engine.effects.propagation.begin_loading();
        engine.timing.set_replaying(true);
        let (transaction, output) = (Requests::default(), Vec::new());
        Replay { session, queue: None, transaction, done: 0, output, is_stream }
    }

    /// Begins another file, in which no database is selected yet.
    pub fn begin_file(&mut self, engine: &mut Engine) {
        self.queue = None;
        if let Some(session) = engine.sessions.get_mut(self.session) {
            session.database = 0;
        }
    }

    /// Replays a command. Before the next one, [`Replay::go_on`] must have returned false.
    ///
    /// # Errors
    /// It cannot be a command of this log.
    pub fn run(&mut self, engine: &mut Engine, request: Request<'_>) -> Result<(), ReplayFault> {
        let name = request.get(0).unwrap_or_default();
        if name.eq_ignore_ascii_case(b"MULTI") {
            if self.queue.is_some() {
                // As in Redis: it would be refused with the other commands of the transaction, without an effect.
                return Ok(());
            }
            let timer = self.start_timer(engine);
            self.queue = Some(Requests::default());
            self.count_multi_or_exec(engine, request, timer);
        } else if name.eq_ignore_ascii_case(b"EXEC") {
            let timer = self.start_timer(engine);
            (self.transaction, self.done) = (self.queue.take().unwrap_or_default(), 0);
            self.run_transaction(engine)?;
            self.count_multi_or_exec(engine, request, timer);
        } else if let Some(queue) = &mut self.queue {
            queue.push(request);
        } else {
            execute(engine, self.session, request, &mut self.output, self.is_stream)?;
        }
        Ok(())
    }

    fn start_timer(&self, engine: &Engine) -> Option<Stopwatch> {
        self.is_stream.then(|| timing::start_timer(engine))
    }

    fn count_multi_or_exec(&self, engine: &mut Engine, request: Request<'_>, timer: Option<Stopwatch>) {
        if let (Some(timer), Ok((id, _))) = (timer, engine.table.resolve(request)) {
            count(engine, self.session, id, request, Outcome { error: None, timer });
        }
    }

    /// Runs a script that was suspended for one time slice, and then the rest of its transaction. Returns whether
    /// there is more to go on with.
    ///
    /// # Errors
    /// A command of the transaction cannot be one of this log.
    pub fn go_on(&mut self, engine: &mut Engine) -> Result<bool, ReplayFault> {
        if engine.scripts.is_busy() {
            engine.go_on(engine.timing.now);
        }
        self.run_transaction(engine)?;
        Ok(engine.scripts.is_busy())
    }

    /// Runs the commands of a transaction up to one that is suspended.
    fn run_transaction(&mut self, engine: &mut Engine) -> Result<(), ReplayFault> {
        for request in self.transaction.iter().skip(self.done) {
            if engine.scripts.is_busy() {
                return Ok(());
            }
            self.done += 1;
            execute(engine, self.session, request, &mut self.output, self.is_stream)?;
        }
        if self.done > 0 {
            (self.transaction, self.done) = (Requests::default(), 0);
        }
        Ok(())
    }

    /// Ends the replay: keys expire again.
    pub fn end(self, engine: &mut Engine) {
        engine.sessions.close(self.session);
        self.end_part(engine);
    }

    /// Ends the replay of a part of a stream; its session stays.
    pub fn end_part(self, engine: &mut Engine) {
        engine.effects.propagation.turn_off();
        engine.timing.set_replaying(false);
    }
}

/// How a command ended, and the timer that began with it.
struct Outcome {
    error: Option<Error>,
    timer: Stopwatch,
}

/// Counts a command of a stream that has run, and shows it to MONITOR.
fn count(engine: &mut Engine, session: SessionId, id: CommandId, request: Request<'_>, outcome: Outcome) {
    dispatch::count(engine, id, outcome.error.is_some());
    outcome.error.into_iter().for_each(|error| dispatch::count_error(engine, &error.to_string()));
    let (now, elapsed_us) = (engine.now(), timing::elapsed_us(engine, outcome.timer));
    if let Some(link) = engine.sessions.get_mut(session) {
        (link.last_command, link.active) = (Some(id), now);
        link.commands += 1;
    }
    timing::record_time(engine, session, id, request, elapsed_us);
    monitor::show(engine, session, id, request);
}

/// Runs a command, which may be a script that is suspended, and counts it if it is of a stream.
fn execute(
    engine: &mut Engine,
    session: SessionId,
    request: Request<'_>,
    output: &mut Vec<u8>,
    is_stream: bool,
) -> Result<(), ReplayFault> {
    let (id, name_words) = engine.table.resolve(request).map_err(|error| match error {
        Error::WrongArity(name) => ReplayFault::Arity(name),
        _ => ReplayFault::UnknownCommand(shown(request.get(0).unwrap_or_default())),
    })?;
    let entry = engine.table.entry(id);
    if !entry.command.arity.admits(request.len()) {
        return Err(ReplayFault::Arity(entry.name.clone()));
    }
    let run = entry.command.run;
    output.clear();
    let timer = is_stream.then(|| timing::start_timer(engine));
    let mut ctx = Ctx::new(engine, session, id, Reply::new(output, Protocol::Resp2), true);
    // An error was the answer to the client, too.
    let error = run(&mut ctx, Args::new(request, name_words)).err();
    if let Some(timer) = timer {
        count(engine, session, id, request, Outcome { error, timer });
    }
    Ok(())
}
