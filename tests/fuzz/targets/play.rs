//! Fuzzes the command engine: several clients send random requests, one after the other, while time passes.
//!
//! Checks after every request: its reply is exactly one well-formed frame, and so is every push; a refused request
//! changed nothing; nothing panicked. Clients block, subscribe, queue transactions and use either protocol. A client
//! whose replies can no longer be counted (it sent a command that has more or less than one reply, or was closed) is
//! replaced by a new one.

use super::frame::frame_length;
use super::grammar::{Grammar, is_made};
use crate::support::choices::Choices;
use crate::support::limits;
use crate::support::node::join_alone;
use crate::support::world::World;
use dunlin::engine::exec::snapshots;
use dunlin::engine::{Flow, SessionId};

const CLIENTS: usize = 3;

/// A client and what is known of it.
struct Client {
    id: SessionId,
    /// The client gets pushes besides the replies to its requests.
    listens: bool,
    /// The client has no reply to its last request yet.
    waits: bool,
}

/// A game that can be played on without end.
pub struct Play {
    pub world: World,
    /// Requests that are made as often as all others together.
    pub lines: &'static [&'static str],
    /// The request of the last round.
    pub last_request: String,
    /// The bytes that all clients received in the last round.
    pub received: Vec<u8>,
    grammar: Grammar,
    clients: Vec<Client>,
    rounds: u64,
    /// Whether each command ran, in the order of the table: counters can be reset.
    reached: Vec<bool>,
}

/// Plays until the bytes are used up.
pub fn run(bytes: &[u8]) {
    let (mut choices, mut play) = (Choices::Bytes(bytes), Play::new(1));
    while !choices.is_empty() {
        play.step(&mut choices, "");
    }
    play.check();
}

impl Play {
    pub fn new(seed: u64) -> Play {
        Play::of(World::seeded(seed, |settings| settings.max_bulk_bytes = 1 << 20))
    }

    /// A game with a node of a cluster, which owns all slots and keeps them.
    pub fn of_node(seed: u64) -> Play {
        let mut world = World::seeded(seed, |settings| {
            settings.max_bulk_bytes = 1 << 20;
            settings.cluster_mut().is_enabled = true;
        });
        join_alone(&mut world);
        assert_eq!(world.ask("ACL SETUSER default -cluster"), "+OK\r\n");
        Play::of(world)
    }

    fn of(mut world: World) -> Play {
        let grammar = Grammar::new(world.engine.table.entries());
        let clients = (0..CLIENTS).map(|_| Client { id: world.join(), listens: false, waits: false }).collect();
        let reached = vec![false; world.engine.table.entries().len()];
        Play {
            world,
            lines: &[],
            last_request: String::new(),
            received: Vec::new(),
            grammar,
            clients,
            rounds: 0,
            reached,
        }
    }

    /// One request of one client, and what follows from it.
    pub fn step(&mut self, choices: &mut Choices<'_>, context: &str) {
        self.last_request.clear();
        self.received.clear();
        let who = choices.below(2 * CLIENTS).saturating_sub(CLIENTS);
        if self.clients[who].waits {
            if choices.below(4) == 0 {
                self.replace(who);
            }
        } else {
            let words = self.request(choices);
            let printed: Vec<String> = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            self.last_request = format!("client {who} {printed:?}");
            self.ask(who, &words, &format!("{context} {}", self.last_request));
        }
        self.world.pass_ms(choices.below(3) as i64);
        self.world.expire();
        self.take_pushes(context);
        self.world.engine.effects.take();
        self.rounds += 1;
        if self.rounds.is_multiple_of(50) {
            self.record_reached();
        }
        if self.rounds.is_multiple_of(1000) {
            self.check();
        }
    }

    /// A request of the grammar or a line, in which each `#` is replaced by a number.
    fn request(&self, choices: &mut Choices<'_>) -> Vec<Vec<u8>> {
        if self.lines.is_empty() || choices.below(2) == 0 {
            return self.grammar.request(choices);
        }
        let words = self.lines[choices.below(self.lines.len())].split(' ');
        words.map(|word| word.replace('#', &choices.below(1000).to_string()).into_bytes()).collect()
    }

    /// Rolls back, the clock of the world too.
    pub fn roll_back(&mut self, name: &str) {
        snapshots::roll_back(&mut self.world.engine, name.as_bytes()).expect("it was taken, and no script runs");
        let later_us = self.world.now().unix_us - self.world.engine.now().unix_us;
        self.world.pass_ms(-later_us / 1000);
    }

    fn record_reached(&mut self) {
        for (reached, stats) in self.reached.iter_mut().zip(self.world.engine.stats.by_command()) {
            *reached |= stats.calls > 0;
        }
    }

    /// The commands that requests call and that never ran.
    pub fn missed(&mut self) -> Vec<&str> {
        self.record_reached();
        let entries = self.world.engine.table.entries().iter().zip(&self.reached);
        entries.filter(|(entry, reached)| is_made(entry) && !**reached).map(|(entry, _)| entry.name.as_str()).collect()
    }

    /// Every structure proves its invariants.
    pub fn check(&self) {
        self.world.engine.databases.iter().for_each(|database| database.check());
    }

    fn ask(&mut self, who: usize, words: &[Vec<u8>], context: &str) {
        let before = self.world.engine.stats.changes;
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let client = self.clients[who].id;
        let given = words.iter().map(|word| word.len()).sum::<usize>() + self.world.engine.databases.memory_bytes();
        let name = words.first().copied().unwrap_or_default();
        let most = |(reply, _): &(Vec<u8>, Flow)| limits::bytes_for(name, given + reply.len());
        let (reply, flow) = limits::within_limits(|| context.to_owned(), most, || self.world.send(client, &words));
        self.received.extend_from_slice(&reply);
        let text = String::from_utf8_lossy(&reply);
        self.clients[who].listens |= listens(&words);
        match flow {
            Flow::HeldBack(until) => {
                assert!(reply.is_empty(), "{context}: a request that waits has no reply yet");
                self.world.pass_ms(until.since_us(self.world.now()).div_ceil(1000).min(1 << 40) as i64);
                self.world.engine.timing.pause_mut().end();
            }
            Flow::Block if !self.clients[who].listens && reply.is_empty() => self.clients[who].waits = true,
            Flow::Close | Flow::Abort | Flow::Block | Flow::CallHost => self.replace(who),
            Flow::Next if reply.is_empty() => self.replace(who),
            Flow::Next if self.clients[who].listens => {
                assert!(frames(&reply).is_some(), "{context}: {text}");
                if self.rounds.is_multiple_of(8) {
                    self.replace(who);
                }
            }
            Flow::Next => assert_eq!(frames(&reply), Some(1), "{context}: {text}"),
        }
        // Changes that a script made before it failed remain.
        let is_script = words.first().is_some_and(|name| name.starts_with(b"EVAL") || name.starts_with(b"FCALL"));
        if reply.first() == Some(&b'-') && !is_script {
            assert_eq!(self.world.engine.stats.changes, before, "{context}: a refused request changed something");
        }
    }

    /// Takes the pushes and late replies of clients.
    fn take_pushes(&mut self, context: &str) {
        for who in 0..CLIENTS {
            let client = &mut self.clients[who];
            let Some(session) = self.world.engine.sessions.get_mut(client.id) else {
                self.replace(who);
                continue;
            };
            let mut pushes = Vec::new();
            session.push_queue.take(&mut pushes, usize::MAX);
            self.received.extend_from_slice(&pushes);
            let is_closing = session.closing;
            let count = frames(&pushes);
            assert!(count.is_some(), "{context}: client {who} got {}", String::from_utf8_lossy(&pushes));
            if client.waits && count > Some(0) {
                assert_eq!(count, Some(1), "{context}: client {who} gets {}", String::from_utf8_lossy(&pushes));
                client.waits = false;
            }
            if is_closing {
                self.replace(who);
            }
        }
    }

    /// A new client in the place of one.
    fn replace(&mut self, who: usize) {
        self.world.engine.disconnect(self.clients[who].id);
        self.clients[who] = Client { id: self.world.join(), listens: false, waits: false };
    }
}

/// The number of well-formed frames in these bytes.
fn frames(mut bytes: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !bytes.is_empty() {
        bytes = bytes.get(frame_length(bytes)?..)?;
        count += 1;
    }
    Some(count)
}

/// True for commands that have a reply for each channel, or after which a client gets pushes.
fn listens(words: &[&[u8]]) -> bool {
    let word = |index: usize| words.get(index).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    word(0).ends_with(b"subscribe") || word(0) == b"monitor" || word(0) == b"client" && word(1) == b"tracking"
}
