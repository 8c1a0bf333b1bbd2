//! Our engine as a target, without a socket: the bytes that a session sends are parsed and run at once.
//!
//! Every section has its own engine. The clock is frozen until a transcript moves it, so times are exact, and no test
//! ever waits: when the engine has no reply now, there is none.

use super::format::Section;
use super::log;
use super::matching::Clock;
use super::target::{Link, Received, Target};
use dunlin::commands::FAMILIES;
use dunlin::engine::exec::tracking;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::{Effect, Engine, Flow, Now, Origin, Permission, SessionId, Settings, Table};
use dunlin::resp::{Limits, Parser};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// Noon of 2026-01-01: any moment would do.
const START: Now = Now { unix_us: 1_767_268_800_000_000 };

/// Engines of our own, one after the other.
pub(crate) struct InProcess {
    table: Table,
    state: Rc<RefCell<EngineState>>,
}

impl InProcess {
    pub(crate) fn new() -> Self {
        Self { table: Table::of(FAMILIES), state: Rc::new(RefCell::new(EngineState::new())) }
    }
}

/// Whether `table` has the command, or subcommand, that `words` name.
pub(crate) fn knows(table: &Table, words: &[Vec<u8>]) -> bool {
    let Some(id) = words.first().and_then(|name| table.find(name)) else { return false };
    match words.get(1) {
        Some(name) if !table.entry(id).command.subcommands.is_empty() => table.find_subcommand(id, name).is_some(),
        _ => true,
    }
}

impl Target for InProcess {
    fn clock(&self) -> Clock {
        Clock::Injected
    }

    fn knows(&self, words: &[Vec<u8>]) -> bool {
        knows(&self.table, words)
    }

    fn fresh(&mut self, section: &Section) -> io::Result<()> {
        let mut state = EngineState::new();
        if section.reads_log() {
            state.begin_log();
        }
        self.state = Rc::new(RefCell::new(state));
        Ok(())
    }

    fn connect(&mut self) -> io::Result<Box<dyn Link>> {
        let session = self.state.borrow_mut().join()?;
        Ok(Box::new(SessionLink { state: Rc::clone(&self.state), session }))
    }

    fn advance(&mut self, by: Duration) -> io::Result<bool> {
        self.state.borrow_mut().advance(by);
        Ok(true)
    }

    fn log(&mut self) -> io::Result<Option<Vec<String>>> {
        let mut state = self.state.borrow_mut();
        let now_ms = state.now.unix_ms();
        Ok(Some(log::lines(&state.engine.effects.propagation.take().bytes, now_ms, 1)))
    }

    fn wait_until_read(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct EngineState {
    engine: Engine,
    now: Now,
    clients: BTreeMap<u64, Client>,
}

/// The state of one session outside of the engine.
struct Client {
    session: SessionId,
    parser: Parser,
    unread: Vec<u8>,
    output: Vec<u8>,
    closed: bool,
}

impl EngineState {
    fn new() -> Self {
        let settings = Settings { debug_command: Permission::Yes, ..Settings::default() };
        let engine = Engine::new(Table::of(FAMILIES), settings, 1, START, Box::new(NoHost::default()));
        Self { engine, now: START, clients: BTreeMap::new() }
    }

    /// Records changes from now on, with database 0 selected: a real server begins each section with FLUSHALL.
    fn begin_log(&mut self) {
        self.engine.effects.propagation.turn_on();
        self.engine.effects.propagation.push(0, [&b"FLUSHALL"[..]].into_iter());
        self.engine.effects.propagation.take();
    }

    fn join(&mut self) -> io::Result<SessionId> {
        let origin = Origin { is_local: true, ..Origin::default() };
        let session = self.engine.connect(self.now, origin).ok_or_else(|| io::Error::other("too many sessions"))?;
        let (parser, unread, output) = (Parser::new(), Vec::new(), Vec::new());
        self.clients.insert(session.number, Client { session, parser, unread, output, closed: false });
        Ok(session)
    }

    fn advance(&mut self, by: Duration) {
        self.now.unix_us += i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.engine.run_due(self.now, usize::MAX);
        self.run_all();
    }

    fn run_all(&mut self) {
        for number in self.clients.keys().copied().collect::<Vec<_>>() {
            self.run(number);
        }
    }

    /// Runs what `number` has sent, as far as it is complete and nothing holds it back.
    fn run(&mut self, number: u64) {
        while self.run_one(number) {
            self.carry_out();
        }
        self.carry_out();
    }

    fn run_one(&mut self, number: u64) -> bool {
        let Some(client) = self.clients.get_mut(&number).filter(|client| !client.closed) else { return false };
        let session = client.session;
        if self.engine.is_blocked(session) {
            return false;
        }
        let limits = Limits {
            max_bulk_bytes: self.engine.settings.max_bulk_bytes,
            authenticated: self.engine.sessions.get(session).is_some_and(|session| session.authenticated),
        };
        let flow = match client.parser.next(&client.unread, &limits) {
            Ok(Some(request)) => {
                let flow = self.engine.run(self.now, session, request, &mut client.output);
                self.engine.finish(self.now, request);
                flow
            }
            Ok(None) => {
                client.unread.drain(..client.parser.consumed());
                return false;
            }
            Err(error) => {
                self.engine.reject(session, error, &mut client.output);
                Flow::Close
            }
        };
        match flow {
            Flow::Next | Flow::Block => client.unread.drain(..client.parser.consumed()),
            Flow::Close => return self.leave(number),
            Flow::Abort => {
                client.output.clear();
                return self.leave(number);
            }
            Flow::HeldBack(_) | Flow::CallHost => return false,
        };
        true
    }

    /// Delivers the pushes of a session, and runs the requests that it sent while it was blocked.
    fn deliver(&mut self, session: SessionId) {
        if let Some(client) = self.clients.get_mut(&session.number)
            && let Some(receiver) = self.engine.sessions.get_mut(session)
        {
            receiver.push_queue.take(&mut client.output, usize::MAX);
            self.run(session.number);
        }
    }

    fn leave(&mut self, number: u64) -> bool {
        if let Some(client) = self.clients.get_mut(&number) {
            client.closed = true;
            self.engine.disconnect(client.session);
        }
        false
    }

    fn carry_out(&mut self) {
        tracking::broadcast(&mut self.engine);
        for effect in self.engine.effects.take() {
            match effect {
                Effect::Close(session) => {
                    self.leave(session.number);
                }
                Effect::Resume => self.run_all(),
                Effect::Wake(session) => self.deliver(session),
                Effect::Stall(time_us) => self.now.unix_us = self.now.unix_us.saturating_add_unsigned(time_us),
                _ => {}
            }
        }
    }
}

struct SessionLink {
    state: Rc<RefCell<EngineState>>,
    session: SessionId,
}

impl Link for SessionLink {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if let Some(client) = state.clients.get_mut(&self.session.number) {
            client.unread.extend_from_slice(bytes);
        }
        state.run(self.session.number);
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, _patience: Duration) -> io::Result<Received> {
        let mut state = self.state.borrow_mut();
        let Some(client) = state.clients.get_mut(&self.session.number) else { return Ok(Received::Closed) };
        Ok(match (client.output.is_empty(), client.closed) {
            (true, true) => Received::Closed,
            (true, false) => Received::Nothing,
            (false, _) => {
                buffer.append(&mut client.output);
                Received::Bytes
            }
        })
    }
}

impl Drop for SessionLink {
    fn drop(&mut self) {
        self.state.borrow_mut().leave(self.session.number);
    }
}
