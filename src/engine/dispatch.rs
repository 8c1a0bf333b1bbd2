//! From a request to its handler: the gates, in Redis's order, so that a request with two faults is refused for the
//! same one: is the command known, does its length fit, is it enabled, is the client logged in, is everyone paused.
//!
//! Source for the order: the behaviour of Redis 8.0, asked with requests that fail at two gates at once.

use crate::engine::{Args, Command, CommandId, Ctx, Engine, Error, Flags, Now, Permission, ReplyMode, SessionId};
use crate::resp::{ProtocolError, Reply, Request};

/// What the connection does after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on with the next request.
    Next,
    /// Sends what is written and ends.
    Close,
    /// Ends at once. Replies that were not sent yet are lost.
    Abort,
    /// Keeps this request and brings it again at that moment, or when [`crate::engine::Effect::Resume`] comes.
    Wait(Now),
    /// Runs no further request until the session's command has been answered: its reply comes as what the session is
    /// told ([`crate::engine::Outgoing`]).
    Block,
}

impl Engine {
    /// Runs one request of a session and appends its reply to `out`.
    pub fn run(&mut self, now: Now, session: SessionId, request: Request<'_>, out: &mut Vec<u8>) -> Flow {
        self.finish(now);
        let Some(client) = self.sessions.get_mut(session) else { return Flow::Close };
        client.outgoing.take(out, usize::MAX);
        let start = out.len();
        client.active = now;
        let (protocol, database) = (client.protocol, client.database);
        if speaks_http(request) {
            return Flow::Abort;
        }
        let admitted = self.admit(session, request);
        let flow = match admitted {
            Ok(Admitted::Later(moment)) => return Flow::Wait(moment),
            Ok(Admitted::Now(id, command, words)) => {
                self.begin(session, id);
                let reply = Reply::new(out, protocol);
                let mut ctx = Ctx::new(self, session, database, reply);
                let result = (command.run)(&mut ctx, Args::new(request, words));
                if result.is_err() {
                    ctx.reply().rewind(start);
                }
                self.count(id, result.is_err());
                if let Err(error) = result {
                    self.refuse(error, &mut Reply::new(out, protocol));
                }
                self.flow_of(session)
            }
            Err(error) => {
                self.refuse(error, &mut Reply::new(out, protocol));
                Flow::Next
            }
        };
        self.conclude(session, start, out);
        flow
    }

    /// Tells that the last request of a batch is done, so that its time can be counted.
    pub fn finish(&mut self, now: Now) {
        if let Some((id, started)) = self.timing.running.take() {
            self.stats.command_mut(id).elapsed_us += now.since_us(started);
        }
        self.timing.now = now;
        if self.stats.recent.is_due(now) {
            self.stats.sample(now, self.databases.memory_bytes());
        }
    }

    /// Answers bytes of a session that are no request, unless it wants no answers. The connection ends after it.
    pub fn reject(&mut self, session: SessionId, fault: ProtocolError, out: &mut Vec<u8>) {
        self.stats.count_error("ERR");
        if self.sessions.get(session).is_some_and(|client| client.reply_mode == ReplyMode::On) {
            out.extend_from_slice(b"-ERR ");
            out.extend_from_slice(&fault.text());
            out.extend_from_slice(b"\r\n");
        }
    }

    fn admit(&mut self, session: SessionId, request: Request<'_>) -> Result<Admitted, Error> {
        let (id, words) = self.table.resolve(request)?;
        let entry = self.table.entry(id);
        let command = entry.command;
        let admitted = if command.arity.admits(request.len()) {
            self.pass_gates(session, command)
        } else {
            Err(Error::WrongArity(entry.name.clone()))
        };
        match admitted {
            Ok(None) => Ok(Admitted::Now(id, command, words)),
            Ok(Some(moment)) => Ok(Admitted::Later(moment)),
            Err(error) => {
                self.stats.command_mut(id).rejected += 1;
                Err(error)
            }
        }
    }

    fn pass_gates(&self, session: SessionId, command: &Command) -> Result<Option<Now>, Error> {
        let Some(client) = self.sessions.get(session) else { return Ok(None) };
        if command.flags.has(Flags::PROTECTED) && !self.may_debug(client.origin.is_local) {
            return Err(Error::DebugDisabled);
        }
        if !client.authenticated && !self.settings.password.is_empty() && !command.flags.has(Flags::NO_AUTH) {
            return Err(Error::NoAuth);
        }
        let writes = command.flags.has(Flags::WRITE) || command.flags.has(Flags::MAY_REPLICATE);
        Ok(self.pause.holds_back(self.timing.now, writes))
    }

    fn may_debug(&self, is_local: bool) -> bool {
        match self.settings.debug_command {
            Permission::No => false,
            Permission::Local => is_local,
            Permission::Yes => true,
        }
    }

    fn begin(&mut self, session: SessionId, id: CommandId) {
        self.timing.running = Some((id, self.timing.now));
        if let Some(client) = self.sessions.get_mut(session) {
            client.commands += 1;
            client.last_command = Some(id);
        }
    }

    /// Counts a command that has run: INFO does not count itself, and CONFIG RESETSTAT is the first that counts again.
    fn count(&mut self, id: CommandId, failed: bool) {
        self.stats.commands += 1;
        let command = self.stats.command_mut(id);
        command.calls += 1;
        command.failed += u64::from(failed);
    }

    fn refuse(&mut self, error: Error, reply: &mut Reply<'_>) {
        let line = error.to_string();
        self.stats.count_error(&line);
        reply.error(&line);
    }

    fn flow_of(&self, session: SessionId) -> Flow {
        match self.sessions.get(session) {
            Some(client) if client.closing => Flow::Close,
            Some(client) if client.blocked => Flow::Block,
            Some(_) => Flow::Next,
            None => Flow::Close,
        }
    }

    /// Takes back the reply of a command whose client wants none, and puts behind it what the client was told meanwhile.
    fn conclude(&mut self, session: SessionId, start: usize, out: &mut Vec<u8>) {
        let Some(client) = self.sessions.get_mut(session) else { return };
        if client.reply_mode != ReplyMode::On {
            out.truncate(start);
            client.reply_mode = match client.reply_mode {
                ReplyMode::SkipNext => ReplyMode::Skip,
                ReplyMode::Skip | ReplyMode::On => ReplyMode::On,
                ReplyMode::Off => ReplyMode::Off,
            };
        }
        client.outgoing.take(out, usize::MAX);
    }
}

/// A request that passed the gates, or waits before the last one.
enum Admitted {
    Now(CommandId, &'static Command, usize),
    Later(Now),
}

/// True for the first line or a header of an HTTP request: a web page that was made to talk to us. Such a client is
/// closed before anything it sends can be taken for a command.
fn speaks_http(request: Request<'_>) -> bool {
    let name = request.get(0).unwrap_or_default();
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}
