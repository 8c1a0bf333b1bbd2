//! The environment of engine tests: one engine, its clients, and a clock that tests move.

use dunlin::commands::FAMILIES;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::{Effect, Engine, Flow, Now, Origin, Permission, SessionId, Settings, Table};
use dunlin::resp::{Request, Span};

/// An engine with a client, and a clock that is frozen until it is moved.
pub struct World {
    pub engine: Engine,
    pub client: SessionId,
    now: Now,
}

/// Noon of 2026-01-01, in microseconds: any moment would do.
pub const START: Now = Now { unix_us: 1_767_268_800_000_000 };

impl World {
    pub fn fresh() -> World {
        World::with(|_| ())
    }

    pub fn with(adjust: impl FnOnce(&mut Settings)) -> World {
        World::seeded(1, adjust)
    }

    pub fn seeded(seed: u64, adjust: impl FnOnce(&mut Settings)) -> World {
        let mut settings = Settings { debug_command: Permission::Yes, ..Settings::default() };
        adjust(&mut settings);
        World::of_engine(Engine::new(Table::of(FAMILIES), settings, seed, START, Box::new(NoHost::default())))
    }

    /// A server with the test kit.
    pub fn with_kit(settings: Settings) -> World {
        let table = Table::of(dunlin::commands::families(true));
        World::of_engine(Engine::new(table, settings, 1, START, Box::new(NoHost::default())))
    }

    /// Connects a client to an engine that has none yet.
    pub fn of_engine(mut engine: Engine) -> World {
        let client = engine.connect(START, Origin::default()).expect("there is room");
        World { engine, client, now: START }
    }

    /// Each reading of the machine's clock finds that this many microseconds have passed, so every script takes long.
    pub fn with_clock_steps(step_us: u64, adjust: impl FnOnce(&mut Settings)) -> World {
        let mut settings = Settings::default();
        adjust(&mut settings);
        World::of_engine(Engine::new(Table::of(FAMILIES), settings, 1, START, Box::new(NoHost::advancing(step_us))))
    }

    /// Takes the pushes and late replies that a client got since the last call.
    pub fn take_pushes(&mut self, client: SessionId) -> String {
        let mut pushes = Vec::new();
        if let Some(session) = self.engine.sessions.get_mut(client) {
            session.push_queue.take(&mut pushes, usize::MAX);
        }
        String::from_utf8_lossy(&pushes).into_owned()
    }

    /// Another client.
    pub fn join(&mut self) -> SessionId {
        self.engine.connect(self.now, Origin::default()).expect("there is room for another client")
    }

    /// Sends a command whose words are separated by blanks; returns the raw reply.
    pub fn ask(&mut self, command: &str) -> String {
        self.ask_as(self.client, command).0
    }

    /// Sends a request as a given client; returns the reply, and what its connection does next.
    pub fn ask_as(&mut self, client: SessionId, command: &str) -> (String, Flow) {
        let words: Vec<&[u8]> = command.split_ascii_whitespace().map(str::as_bytes).collect();
        let (reply, flow) = self.send(client, &words);
        (String::from_utf8_lossy(&reply).into_owned(), flow)
    }

    /// Sends words of any bytes.
    pub fn send(&mut self, client: SessionId, words: &[&[u8]]) -> (Vec<u8>, Flow) {
        let mut buffer = Vec::new();
        let mut spans = Vec::new();
        for word in words {
            let start = buffer.len();
            buffer.extend_from_slice(word);
            spans.push(Span { start, end: buffer.len() });
        }
        let mut reply = Vec::new();
        let request = Request::new(&buffer, &spans);
        let flow = self.engine.run(self.now, client, request, &mut reply);
        self.engine.finish(self.now, request);
        (reply, flow)
    }

    /// Moves the clock without expiring anything, as if the server had been busy.
    pub fn pass_ms(&mut self, milliseconds: i64) {
        self.now.unix_us += milliseconds * 1000;
    }

    pub fn now(&self) -> Now {
        self.now
    }

    /// Runs everything in the engine that is due.
    pub fn expire(&mut self) -> usize {
        self.engine.run_due(self.now, usize::MAX)
    }

    /// The moment when something falls due in the engine next, in Unix milliseconds.
    pub fn next_due_ms(&self) -> Option<i64> {
        self.engine.next_due().map(Now::unix_ms)
    }

    /// The key events since the last time, as `database name key`.
    pub fn events(&mut self) -> Vec<String> {
        let events = self.engine.effects.take().into_iter().filter_map(|effect| match effect {
            Effect::KeyEvent { database, name, key } => {
                Some(format!("{database} {name} {}", String::from_utf8_lossy(&key)))
            }
            _ => None,
        });
        events.collect()
    }
}
