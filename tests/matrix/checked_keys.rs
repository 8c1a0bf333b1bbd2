//! Every key that a command uses was checked for the user's permission.
//!
//! The tests find keys by the syntax lines, and by changes of the data, but never by the key specifications of a row,
//! by which permissions are checked: these tests exist to find a row that misses a key. The user has permission for the
//! key `a` only; `b` belongs to another user.
//!
//! Not here: keys that a script uses without being given them, which are checked as those of any command.

use dunlin::commands::FAMILIES;
use dunlin::engine::{Entry, Flow, SessionId, Table};
use fastrand::Rng;

use crate::sampler::{Role, Sample, Word, pairs_of_options, samples};
use crate::world::World;

const NO_KEY: &str = "-NOPERM No permissions to access a key\r\n";

/// Rounds of the walk, each with new servers, and the requests of each.
const ROUNDS: usize = 1500;
const REQUESTS: usize = 60;

/// Values of every type, of which `k` is the key.
const VALUES: &[&str] = &[
    "SET k 12",
    "RPUSH k 1 2 a",
    "RPUSH k 3 1 2",
    "SADD k 1 a",
    "SADD k 1 2",
    "ZADD k 1 1 2 a",
    "GEOADD k 1 1 member 1 2 a",
    "HSET k 1 a field 2",
    "XADD k 2-1 field value",
];

/// Words that take the place of others.
const WORDS: &[&str] = &[
    "a",
    "a",
    "b",
    "b",
    "0",
    "1",
    "2",
    "-1",
    "STORE",
    "STOREDIST",
    "BY",
    "GET",
    "LIMIT",
    "WEIGHTS",
    "AGGREGATE",
    "KEYS",
    "STREAMS",
    "COUNT",
    "LEFT",
    "MIN",
    "DB",
    "REPLACE",
    "GROUP",
    "nosort",
    "b*",
    "#",
    "$",
    "*",
    "",
];

/// The command table's entries with samples that have keys, but DEBUG, which is made to harm.
pub(crate) fn entries_with_keys(table: &Table) -> impl Iterator<Item = (&Entry, Vec<Sample>)> {
    let with_samples = table.entries().iter().map(|entry| (entry, samples(entry)));
    with_samples.filter(|(entry, samples)| {
        !entry.name.starts_with("debug") && samples.iter().flatten().any(|word| word.role == Role::Key)
    })
}

/// The words of a sample whose keys have the names that `name` gives them by their numbers.
fn words_of(sample: &Sample, mut name: impl FnMut(usize) -> &'static str) -> Vec<Vec<u8>> {
    let mut keys = 0..;
    let word = |word: &Word| match word.role {
        Role::Key => name(keys.next().unwrap_or(0)).as_bytes().to_vec(),
        _ => word.bytes.clone(),
    };
    sample.iter().map(word).collect()
}

pub(crate) fn printed(words: &[Vec<u8>]) -> String {
    words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
}

/// A server with a user who has these rules as well as a right to `a`, and that user's client.
struct Place {
    world: World,
    client: SessionId,
}

impl Place {
    fn new(rules: &str, values: &[(&str, usize)]) -> Place {
        let mut world = World::seeded(7, |_| ());
        for (key, value) in values {
            let reply = world.ask(&VALUES[*value].replacen('k', key, 1));
            assert!(!reply.starts_with('-'), "{reply}");
        }
        world.ask(&format!("ACL SETUSER ann on nopass +@all ~a {rules}"));
        world.engine.switches.records_key_events = true;
        let client = world.client;
        let mut place = Place { world, client };
        place.come();
        place
    }

    /// Goes on with another client.
    fn come(&mut self) {
        if self.client != self.world.client {
            self.world.engine.disconnect(self.client);
        }
        self.client = self.world.join();
        assert_eq!(self.world.ask_as(self.client, "AUTH ann x").0, "+OK\r\n");
    }

    fn send(&mut self, words: &[Vec<u8>]) -> (String, Flow) {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let (reply, flow) = self.world.send(self.client, &words);
        (String::from_utf8_lossy(&reply).into_owned(), flow)
    }

    /// No event of `b` was published.
    fn check_events(&mut self, what: &str) {
        for event in self.world.events() {
            assert!(!event.ends_with(" b"), "{event} by {what}");
        }
    }
}

/// Builds the request with `foreign` for each of its keys in turn, and `own` for the others.
pub(crate) fn with_foreign_keys(
    entry: &Entry,
    sample: &Sample,
    own: &'static str,
    foreign: &'static str,
) -> Vec<Vec<Vec<u8>>> {
    let position_of = |literal: &[u8]| sample.iter().position(|word| word.bytes == literal);
    let keys = sample.iter().filter(|word| word.role == Role::Key).count();
    // MIGRATE takes either one key, or an empty one and a list.
    let empty = usize::from(entry.name == "migrate" && position_of(b"KEYS").is_some());
    let with = |place: usize| {
        let mut words = words_of(sample, |number| match number {
            _ if number < empty => "",
            _ if number == place => foreign,
            _ => own,
        });
        // XREAD takes an id for each key.
        if let Some(streams) = position_of(b"STREAMS") {
            words.resize(streams + 1 + 2 * keys, b"0".to_vec());
        }
        words
    };
    (empty..keys).map(with).collect()
}

#[test]
fn every_key_of_every_syntax_is_checked() {
    let table = Table::of(FAMILIES);
    let mut place = Place::new("", &[("a", 0), ("b", 0)]);
    let mut checked = 0;
    for (entry, samples) in entries_with_keys(&table) {
        for words in samples.iter().flat_map(|sample| with_foreign_keys(entry, sample, "a", "b")) {
            assert_eq!(place.send(&words).0, NO_KEY, "{}", printed(&words));
            checked += 1;
        }
    }
    assert!(checked > 500, "{checked} keys");
}

/// Makes requests of samples: with other words in some places, some too many and some too few, and within others.
struct Requests<'t> {
    /// Each command with its samples, those that have several keys twice.
    commands: Vec<(&'t Entry, Vec<Sample>)>,
    chance: Rng,
}

impl<'t> Requests<'t> {
    fn new(table: &'t Table, seed: u64) -> Requests<'t> {
        let keys = |sample: &Sample| sample.iter().filter(|word| word.role == Role::Key).count();
        let mut commands = Vec::new();
        for (entry, samples) in entries_with_keys(table) {
            let several: Vec<Sample> = samples.iter().filter(|sample| keys(sample) > 1).cloned().collect();
            if !several.is_empty() {
                commands.push((entry, several));
            }
            commands.push((entry, [samples, pairs_of_options(entry)].concat()));
        }
        Requests { commands, chance: Rng::with_seed(seed) }
    }
}

impl Requests<'_> {
    /// Requests that are sent one after the other.
    fn some(&mut self) -> Vec<Vec<Vec<u8>>> {
        let plain = self.one();
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        match self.chance.u8(..10) {
            0 => vec![words("MULTI"), plain, words("EXEC")],
            1 => {
                let script = b"return redis.pcall(unpack(ARGV))".to_vec();
                vec![[vec![b"EVAL".to_vec(), script, b"0".to_vec()], plain].concat()]
            }
            _ => vec![plain],
        }
    }

    fn one(&mut self) -> Vec<Vec<u8>> {
        let chance = &mut self.chance;
        let (entry, samples) = &self.commands[chance.usize(..self.commands.len())];
        let sample = &samples[chance.usize(..samples.len())];
        let mut words = words_of(sample, |_| if chance.u8(..3) == 0 { "b" } else { "a" });
        let name = entry.name.split('|').count();
        for _ in 0..chance.u8(..6).saturating_sub(2) {
            let at = chance.usize(name..=words.len());
            let word = WORDS[chance.usize(..WORDS.len())].as_bytes().to_vec();
            match chance.u8(..5) {
                0 => words.insert(at, word),
                _ if at == words.len() => {}
                1 => _ = words.remove(at),
                2 => words.swap(at, name),
                3 => words[at].make_ascii_lowercase(),
                _ => words[at] = word,
            }
        }
        words
    }
}

/// The types of both values in a round: every second time the same type, so that commands accept both.
fn kinds(round: usize) -> (usize, usize) {
    let (kind, other) = (round / 2 % VALUES.len(), round / 2 / VALUES.len() % VALUES.len());
    (kind, if round.is_multiple_of(2) { other } else { kind })
}

#[test]
fn keys_that_are_used_are_keys_that_were_checked() {
    // CVE-2023-41053: a server with a key `b` replies as one without it, and `b` never changes.
    let table = Table::of(FAMILIES);
    let mut requests = Requests::new(&table, 11);
    for round in 0..ROUNDS {
        let (kind, other) = kinds(round);
        let mut with = Place::new("", &[("a", kind), ("b", other)]);
        let mut without = Place::new("", &[("a", kind)]);
        for _ in 0..REQUESTS {
            for words in requests.some() {
                let ((reply, flow), (other_reply, _)) = (with.send(&words), without.send(&words));
                let what = printed(&words);
                assert_eq!(reply, other_reply, "{what}");
                with.check_events(&what);
                without.check_events(&what);
                if flow != Flow::Next {
                    with.come();
                    without.come();
                }
            }
        }
        assert_eq!(without.world.ask("EXISTS b"), ":0\r\n");
    }
}

#[test]
fn read_only_keys_are_not_changed() {
    let table = Table::of(FAMILIES);
    let mut requests = Requests::new(&table, 12);
    for round in 0..ROUNDS {
        let (kind, other) = kinds(round);
        let mut place = Place::new("%R~b", &[("a", kind), ("b", other)]);
        let digest = place.world.ask("DEBUG DIGEST-VALUE b");
        for _ in 0..REQUESTS {
            for words in requests.some() {
                let (_, flow) = place.send(&words);
                place.check_events(&printed(&words));
                if flow != Flow::Next {
                    place.come();
                }
            }
        }
        assert_eq!(place.world.ask("DEBUG DIGEST-VALUE b"), digest, "round {round}");
    }
}
