//! Blocked clients, and everything that can happen meanwhile: 1,000 random histories, compared with a simple model. A
//! history that fails prints its seed.

use std::collections::{BTreeMap, VecDeque};

use crate::world::World;
use dunlin::engine::{Flow, SessionId};

const HISTORIES: u64 = 1_000;
const STEPS: usize = 60;
const CLIENTS: usize = 6;
const KEYS: usize = 4;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
const NOTHING: &str = "*-1\r\n";
const UNBLOCKED: &str = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    List(VecDeque<u32>),
    Text,
}

#[derive(Clone, Debug)]
enum Wish {
    Pop { keys: Vec<usize>, from_tail: bool },
    Move { from: usize, to: usize },
}

impl Wish {
    fn keys(&self) -> Vec<usize> {
        match self {
            Wish::Pop { keys, .. } => keys.clone(),
            Wish::Move { from, .. } => vec![*from],
        }
    }

    fn command(&self, timeout_ms: i64) -> String {
        let timeout = format!("{}.{:03}", timeout_ms / 1000, timeout_ms % 1000);
        match self {
            Wish::Pop { keys, from_tail } => {
                let keys: String = keys.iter().map(|key| format!("k{key} ")).collect();
                format!("{} {keys}{timeout}", if *from_tail { "BRPOP" } else { "BLPOP" })
            }
            Wish::Move { from, to } => format!("BLMOVE k{from} k{to} LEFT RIGHT {timeout}"),
        }
    }
}

#[derive(Debug)]
struct Waiter {
    client: usize,
    wish: Wish,
    deadline_ms: Option<i64>,
}

/// The model: a server in its simplest form.
#[derive(Debug, Default)]
struct Model {
    keys: BTreeMap<usize, Held>,
    /// In the order of their arrival.
    waiting: Vec<Waiter>,
    arrived: Vec<usize>,
    delivered: BTreeMap<usize, String>,
    now_ms: i64,
}

impl Model {
    fn ask(&mut self, client: usize, wish: Wish, timeout_ms: i64) -> String {
        let answer = self.attempt(&wish);
        self.serve();
        answer.unwrap_or_else(|| {
            let deadline_ms = (timeout_ms > 0).then_some(self.now_ms + timeout_ms);
            self.waiting.push(Waiter { client, wish, deadline_ms });
            String::new()
        })
    }

    /// The answer, if there is one now.
    fn attempt(&mut self, wish: &Wish) -> Option<String> {
        match wish {
            Wish::Pop { keys, from_tail } => {
                let key = *keys.iter().find(|key| self.keys.contains_key(key))?;
                Some(match self.take(key, *from_tail) {
                    Some(element) => format!("*2\r\n$2\r\nk{key}\r\n{}", bulk(element)),
                    None => WRONG_TYPE.to_owned(),
                })
            }
            Wish::Move { from, to } => {
                self.keys.get(from)?;
                if self.keys.get(from) == Some(&Held::Text) || self.keys.get(to) == Some(&Held::Text) {
                    return Some(WRONG_TYPE.to_owned());
                }
                let element = self.take(*from, false)?;
                self.push(*to, element);
                Some(bulk(element))
            }
        }
    }

    fn take(&mut self, key: usize, from_tail: bool) -> Option<u32> {
        let Some(Held::List(list)) = self.keys.get_mut(&key) else { return None };
        let element = if from_tail { list.pop_back() } else { list.pop_front() };
        if list.is_empty() {
            self.keys.remove(&key);
        }
        element
    }

    fn push(&mut self, key: usize, element: u32) {
        match self.keys.get_mut(&key) {
            Some(Held::List(list)) => list.push_back(element),
            Some(Held::Text) => {}
            None => {
                self.keys.insert(key, Held::List(VecDeque::from([element])));
                self.arrive(key);
            }
        }
    }

    fn rename(&mut self, from: usize, to: usize) {
        if from != to
            && let Some(held) = self.keys.remove(&from)
        {
            self.keys.insert(to, held);
            self.arrive(to);
        }
    }

    fn arrive(&mut self, key: usize) {
        if !self.arrived.contains(&key) {
            self.arrived.push(key);
        }
    }

    /// A command, or a whole transaction, is done.
    fn serve(&mut self) {
        while !self.arrived.is_empty() {
            let key = self.arrived.remove(0);
            let interested = self.waiting.iter().filter(|waiter| waiter.wish.keys().contains(&key));
            for client in interested.map(|waiter| waiter.client).collect::<Vec<_>>() {
                if let Some(Held::List(_)) = self.keys.get(&key)
                    && let Some(waiter) = self.leave(client)
                    && let Some(answer) = self.attempt(&waiter.wish)
                {
                    self.delivered.insert(client, answer);
                }
            }
        }
    }

    fn leave(&mut self, client: usize) -> Option<Waiter> {
        let place = self.waiting.iter().position(|waiter| waiter.client == client)?;
        Some(self.waiting.remove(place))
    }

    fn unblock(&mut self, client: usize, answer: &str) -> bool {
        let waited = self.leave(client).is_some();
        if waited {
            self.delivered.insert(client, answer.to_owned());
        }
        waited
    }

    fn pass(&mut self, by_ms: i64) {
        self.now_ms += by_ms;
        let now_ms = self.now_ms;
        let is_over = |waiter: &&Waiter| waiter.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms);
        for client in self.waiting.iter().filter(is_over).map(|waiter| waiter.client).collect::<Vec<_>>() {
            self.unblock(client, NOTHING);
        }
    }
}

fn bulk(element: u32) -> String {
    let text = element.to_string();
    format!("${}\r\n{text}\r\n", text.len())
}

/// The engine and the model, side by side.
struct Pair {
    world: World,
    clients: Vec<SessionId>,
    model: Model,
    generator: fastrand::Rng,
    elements: u32,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let mut world = World::seeded(seed, |_| ());
        let clients = (0..CLIENTS).map(|_| world.join()).collect();
        let generator = fastrand::Rng::with_seed(seed);
        Pair { world, clients, model: Model::default(), generator, elements: 0 }
    }

    fn key(&mut self) -> usize {
        self.generator.usize(..KEYS)
    }

    fn step(&mut self) {
        match self.generator.u32(..20) {
            0..7 => self.wish(),
            7..12 => self.write(),
            12..14 => self.transact(),
            14..16 => self.pass(),
            16 => self.kill(),
            17..19 => self.unblock(),
            _ => self.flush(),
        }
        self.compare();
    }

    /// Lets a client that is not blocked send a request.
    fn wish(&mut self) {
        let client = self.generator.usize(..CLIENTS);
        if self.world.engine.is_blocked(self.clients[client]) {
            return;
        }
        let wish = if self.generator.bool() {
            let keys = (0..self.generator.usize(1..4)).map(|_| self.key()).collect();
            Wish::Pop { keys, from_tail: self.generator.bool() }
        } else {
            Wish::Move { from: self.key(), to: self.key() }
        };
        let timeout_ms = [0, 1, 40, 90][self.generator.usize(..4)];
        let (answer, flow) = self.world.ask_as(self.clients[client], &wish.command(timeout_ms));
        assert_eq!(answer, self.model.ask(client, wish, timeout_ms));
        assert_eq!(flow == Flow::Block, answer.is_empty());
    }

    fn write(&mut self) {
        let command = self.change();
        self.world.ask(&command);
        self.model.serve();
    }

    fn transact(&mut self) {
        self.world.ask("MULTI");
        for _ in 0..self.generator.usize(..5) {
            let command = self.change();
            assert_eq!(self.world.ask(&command), "+QUEUED\r\n");
        }
        self.world.ask("EXEC");
        self.model.serve();
    }

    /// A command that changes keys; the model has done it already.
    fn change(&mut self) -> String {
        let (key, other) = (self.key(), self.key());
        match self.generator.u32(..10) {
            0..6 => {
                let elements: Vec<u32> = (0..self.generator.u32(1..4)).map(|index| self.elements + index).collect();
                self.elements += 4;
                elements.iter().for_each(|element| self.model.push(key, *element));
                let words: Vec<String> = elements.iter().map(u32::to_string).collect();
                format!("RPUSH k{key} {}", words.join(" "))
            }
            6 => {
                self.model.keys.insert(key, Held::Text);
                format!("SET k{key} text")
            }
            7 => {
                self.model.keys.remove(&key);
                format!("DEL k{key}")
            }
            8 => {
                self.model.rename(key, other);
                format!("RENAME k{key} k{other}")
            }
            _ => {
                self.model.take(key, false);
                format!("LPOP k{key}")
            }
        }
    }

    fn pass(&mut self) {
        let by_ms = self.generator.i64(1..60);
        self.world.pass_ms(by_ms);
        self.world.expire();
        self.model.pass(by_ms);
    }

    fn kill(&mut self) {
        let client = self.generator.usize(..CLIENTS);
        let session = self.clients[client];
        if self.generator.bool() {
            assert_eq!(self.world.ask(&format!("CLIENT KILL ID {}", session.number)), ":1\r\n");
        }
        self.world.engine.disconnect(session);
        self.model.leave(client);
        self.clients[client] = self.world.join();
    }

    fn unblock(&mut self) {
        let client = self.generator.usize(..CLIENTS);
        let (reason, answer) = if self.generator.bool() { ("TIMEOUT", NOTHING) } else { ("ERROR", UNBLOCKED) };
        let waited = self.model.unblock(client, answer);
        let answer = self.world.ask(&format!("CLIENT UNBLOCK {} {reason}", self.clients[client].number));
        assert_eq!(answer, format!(":{}\r\n", u8::from(waited)));
    }

    fn flush(&mut self) {
        self.world.ask("FLUSHALL");
        self.model.keys.clear();
    }

    fn compare(&mut self) {
        for (client, session) in self.clients.clone().into_iter().enumerate() {
            let mut pushes = Vec::new();
            let state = self.world.engine.sessions.get_mut(session).expect("it is connected");
            state.push_queue.take(&mut pushes, usize::MAX);
            let expected = self.model.delivered.remove(&client).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&pushes), expected, "client {client}");
            let waits = self.model.waiting.iter().any(|waiter| waiter.client == client);
            assert_eq!(self.world.engine.is_blocked(session), waits, "client {client}");
        }
        for key in 0..KEYS {
            let expected = match self.model.keys.get(&key) {
                None => "*0\r\n".to_owned(),
                Some(Held::Text) => WRONG_TYPE.to_owned(),
                Some(Held::List(list)) => {
                    format!("*{}\r\n{}", list.len(), list.iter().copied().map(bulk).collect::<String>())
                }
            };
            assert_eq!(self.world.ask(&format!("LRANGE k{key} 0 -1")), expected, "k{key}");
        }
        assert_eq!(self.world.engine.observers.waiting.sessions(), self.model.waiting.len());
    }
}

/// Prints the seed if the history fails.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the history of seed {} fails", self.0);
        }
    }
}

#[test]
fn blocked_clients_get_what_the_model_gives_them() {
    for seed in 0..HISTORIES {
        let _seed = SeedOnPanic(seed);
        let mut pair = Pair::new(seed);
        for _ in 0..STEPS {
            pair.step();
        }
        for session in pair.clients {
            pair.world.engine.disconnect(session);
        }
        let waiting = &pair.world.engine.observers.waiting;
        assert_eq!((waiting.keys(), waiting.deadlines(), waiting.is_empty()), (0, 0, true));
    }
}

#[test]
fn a_timeout_is_answered_at_its_millisecond() {
    let mut world = World::fresh();
    let client = world.join();
    world.ask_as(client, "BLPOP list 0.25");
    let start_ms = world.now().unix_ms();
    assert_eq!(world.next_due_ms(), Some(start_ms + 250));
    world.pass_ms(249);
    world.expire();
    assert!(world.engine.is_blocked(client));
    world.pass_ms(1);
    world.expire();
    assert!(!world.engine.is_blocked(client));
    assert_eq!(world.next_due_ms(), None);
}

/// Random clients that block, and leave in any way, while elements are pushed and removed.
struct Crowd {
    world: World,
    rng: fastrand::Rng,
    waiting: Vec<SessionId>,
    pushed: u32,
    /// The client that got each element, or that it was removed.
    seen: BTreeMap<String, &'static str>,
}

impl Crowd {
    fn new(seed: u64) -> Crowd {
        let mut world = World::fresh();
        world.ask("CLIENT NO-EVICT ON");
        Crowd { world, rng: fastrand::Rng::with_seed(seed), waiting: Vec::new(), pushed: 0, seen: BTreeMap::new() }
    }

    fn step(&mut self) {
        match self.rng.u8(..14) {
            0..5 => self.add_client(),
            5 | 6 => self.push("RPUSH list"),
            7 => self.push("EVAL return{redis.call('RPUSH','list',ARGV[1]),redis.call('EXISTS','list')} 0"),
            8 => self.end_one(),
            9 => {
                self.remove_elements();
                self.world.ask("FLUSHALL");
            }
            10 => {
                self.remove_elements();
                self.world.ask("SET list text");
                self.world.ask("DEL list");
            }
            11 => self.transaction(),
            12 => _ = self.world.ask("ACL DELUSER ann"),
            _ => {
                self.world.ask("CONFIG SET maxmemory-clients 8kb");
                self.world.ask("PING");
                self.world.ask("CONFIG SET maxmemory-clients 0");
            }
        }
        self.take_replies();
    }

    /// Lets another client block, as the default user or as ann.
    fn add_client(&mut self) {
        const WAYS: [&str; 6] = [
            "BLPOP other list 0",
            "BRPOP list list 0",
            "BLMPOP 0 2 other list LEFT COUNT 2",
            "BLMOVE list other LEFT RIGHT 0",
            "BRPOPLPUSH list list 0",
            "XREADGROUP GROUP group ann BLOCK 0 STREAMS stream >",
        ];
        let client = self.world.join();
        self.world.ask("XGROUP CREATE stream group $ MKSTREAM");
        if self.rng.bool() {
            self.world.ask("ACL SETUSER ann on nopass +@all ~* &*");
            self.world.ask_as(client, "AUTH ann any");
        }
        let way = *self.rng.choice(&WAYS).expect("the list is not empty");
        let (reply, flow) = self.world.ask_as(client, way);
        if !is_of_move(&reply) {
            self.record_delivered(&reply, "a client that did not wait");
        }
        match flow {
            Flow::Block => self.waiting.push(client),
            _ => self.world.engine.disconnect(client),
        }
    }

    fn push(&mut self, command: &str) {
        self.pushed += 1;
        self.world.ask(&format!("{command} e{}", self.pushed));
    }

    fn any(&mut self) -> Option<SessionId> {
        self.rng.choice(&self.waiting).copied()
    }

    fn end_one(&mut self) {
        let Some(client) = self.any() else { return };
        match self.rng.u8(..4) {
            0 => self.world.engine.disconnect(client),
            1 => _ = self.world.ask(&format!("CLIENT KILL ID {}", client.number)),
            2 => _ = self.world.ask(&format!("CLIENT UNBLOCK {} ERROR", client.number)),
            _ => _ = self.world.ask(&format!("CLIENT UNBLOCK {}", client.number)),
        }
    }

    /// Pushes elements and closes a client in one transaction.
    fn transaction(&mut self) {
        self.world.ask("MULTI");
        self.push("RPUSH list");
        if let Some(client) = self.any() {
            self.world.ask(&format!("CLIENT KILL ID {}", client.number));
        }
        self.push("LPUSH list");
        self.world.ask("XADD stream * field value");
        self.world.ask("EXEC");
    }

    fn remove_elements(&mut self) {
        for key in ["list", "other"] {
            let held = self.world.ask(&format!("LRANGE {key} 0 -1"));
            let is_removed = key == "list" || self.rng.bool();
            if is_removed {
                self.record_delivered(&held, "nobody");
                self.world.ask(&format!("DEL {key}"));
            }
        }
        let held = self.world.ask("LRANGE other 0 -1");
        self.record_delivered(&held, "nobody");
        self.world.ask("DEL other");
    }

    /// Records that elements were delivered to a client, which none was before.
    fn record_delivered(&mut self, reply: &str, whose: &'static str) {
        let is_element = |word: &&str| word.starts_with('e') && word[1..].parse::<u32>().is_ok();
        for element in reply.split("\r\n").filter(is_element) {
            assert_eq!(self.seen.insert(element.to_owned(), whose), None, "{element} is there twice");
        }
    }

    /// Takes the replies of blocked clients.
    fn take_replies(&mut self) {
        for client in self.waiting.clone() {
            let pushes = self.world.take_pushes(client);
            if !is_of_move(&pushes) {
                self.record_delivered(&pushes, "a blocked client");
            }
            let is_there = self.world.engine.sessions.get(client).is_some_and(|session| !session.closing);
            if !is_there || !pushes.is_empty() {
                self.world.engine.disconnect(client);
                self.waiting.retain(|waiting| *waiting != client);
            }
        }
        assert!(
            self.waiting.iter().all(|client| self.world.engine.is_blocked(*client)),
            "all connected clients are blocked"
        );
        assert_eq!(self.world.engine.observers.waiting.sessions(), self.waiting.len());
    }
}

/// Whether it is the reply of BLMOVE, which returns an element that is still in a list.
fn is_of_move(reply: &str) -> bool {
    reply.starts_with('$')
}

/// CVE-2026-23479: clients that are served again while they are evicted, killed or lose their user.
#[test]
fn blocked_clients_may_leave_in_any_way_and_nothing_is_lost() {
    for seed in 0..HISTORIES {
        let _seed = SeedOnPanic(seed);
        let mut crowd = Crowd::new(seed);
        (0..2 * STEPS).for_each(|_| crowd.step());
        crowd.remove_elements();
        assert_eq!(crowd.seen.len(), crowd.pushed as usize, "every element was delivered or removed");
    }
}

#[test]
fn a_key_that_expires_within_its_transaction_serves_no_blocked_client() {
    for (wait, push) in [
        ("BLPOP key 1", "RPUSH key a"),
        ("BZPOPMIN key 1", "ZADD key 1 a"),
        ("XREAD BLOCK 1000 STREAMS key 0", "XADD key 1-1 field value"),
    ] {
        let mut world = World::fresh();
        let waiter = world.join();
        assert_eq!(world.ask_as(waiter, wait).1, Flow::Block);
        for command in ["MULTI", push, "PEXPIRE key 100", "DEBUG SLEEP 0.2", "EXEC"] {
            world.ask(command);
        }
        assert_eq!((world.take_pushes(waiter), world.engine.is_blocked(waiter)), (String::new(), true), "{wait}");
    }
}
