//! A random walk: many requests of several clients, one after the other, sent to a real server and to ours.
//!
//! The other sheets send every request with the same initial data; here each request follows all those before it: a
//! client is subscribed, blocked, in a transaction, tracking or has few permissions, scripts and functions exist,
//! payloads of values are restored. The requests are samples of every command with random words, now and then with one
//! too many or too few, and lines that build on them. After every request, everything that each client receives is
//! compared, and from time to time the whole state.
//!
//! A walk has many outings, each with new servers and its own seed. The seed of an outing that finds a difference is
//! printed with the last requests, so that it can be repeated.

mod lines;
mod pair;
mod remains;
mod said;
mod tally;
mod vocabulary;
mod volatile;

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use dunlin::commands::FAMILIES;
use dunlin::engine::{Entry, Table};

use crate::left_out;
use crate::process::{Process, Program};
use crate::reply::Reply;
use crate::sampler::{Sample, is_by_member, pairs_of_options, samples};
use crate::words::{quote, split};
use lines::{DUE_AT_ONCE, LINES};
use pair::{OWN, Pair};
use said::{Said, Verdict, compared};
use tally::Tally;
use vocabulary::Vocabulary;

/// The clients of each server, the walk's own among them.
const CLIENTS: usize = 5;

/// The number of requests in an outing.
const OUTING: usize = 2500;

/// The number of last requests that are printed when replies differ, unless DUNLIN_WALK_TOLD sets it.
const TOLD: usize = 40;

/// The number of requests between comparisons of the whole state, unless DUNLIN_WALK_LOOKS sets it: 1 finds the exact
/// request.
const LOOKS: usize = 50;

/// How often clients get their permissions and modes back.
const AMENDS: usize = 40;

/// How rarely a request with an immediate deadline is sent, and the time that passes then: several times as long.
const DUE: usize = 60;
const LONG_ENOUGH: Duration = Duration::from_millis(40);

/// Walks for this number of requests, beginning with the outing of that seed. Further outings replace the requests of
/// those that ended early; one that finds a difference counts as complete.
pub(crate) fn compare(real: &Program, seed: u64, requests: usize) {
    let table = Table::of(FAMILIES);
    let (mut faults, mut whole) = (Vec::new(), Tally::default());
    let mut left = requests;
    for seed in seed.. {
        if left == 0 {
            break;
        }
        let (mut outing, planned) = (Outing::new(real, &table, seed), left.min(OUTING));
        let fault = outing.take(planned);
        left -= if fault.is_some() { planned } else { outing.tally.steps().clamp(1, planned) };
        faults.extend(fault);
        if outing.tally.has_compared_nothing() {
            faults.push(format!("seed {seed}: no request was compared to the byte"));
        }
        whole.add(&outing.tally);
    }
    writeln!(io::stderr(), "the random walk from seed {seed}: {whole}").expect("stderr can be written");
    let again = format!("DUNLIN_WALK_REQUESTS={OUTING} DUNLIN_WALK_SEED=<seed> takes an outing again");
    assert!(faults.is_empty(), "{} outings differ; {again}\n\n{}", faults.len(), faults.join("\n\n"));
}

/// A number that the environment may set.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise).max(1)
}

/// A word of a request as it is printed.
fn told(word: &[u8]) -> String {
    if word.len() > 64 && word.iter().all(|byte| *byte == word[0]) {
        return format!("{{{}*{}}}", char::from(word[0]), word.len());
    }
    quote(word)
}

/// One outing.
struct Outing<'t> {
    table: &'t Table,
    shapes: Vec<(&'t Entry, Vec<Sample>)>,
    seed: u64,
    pair: Pair,
    words: Vocabulary,
    said: Vec<Said<'t>>,
    told: Vec<String>,
    tally: Tally,
}

impl<'t> Outing<'t> {
    fn new(real: &Program, table: &'t Table, seed: u64) -> Outing<'t> {
        // Every other outing goes through the large form of sorted sets, where ranges of members among different scores
        // depend on chance in Redis.
        let is_large = seed % 2 == 1;
        let walked = table.entries().iter().filter(|entry| !left_out::of_walks(&entry.name));
        let shapes = walked.map(|entry| shapes(entry, !is_large)).filter(|(_, samples)| !samples.is_empty()).collect();
        let real = Process::start(real).expect("the real server starts");
        let ours = dunlin::Server::builder().frozen().allow_debug().seed(seed).start().expect("our server starts");
        let mut outing = Outing {
            table,
            shapes,
            seed,
            pair: Pair::new(real, ours, CLIENTS),
            words: Vocabulary::new(seed),
            said: (0..CLIENTS).map(|_| Said::default()).collect(),
            told: Vec::new(),
            tally: Tally::default(),
        };
        outing.begin(is_large);
        outing
    }

    fn begin(&mut self, is_large: bool) {
        let limit = if is_large { "1" } else { "128" };
        // Whether a request is slow depends on the machine: every one is, or none.
        let slow = if self.seed % 4 < 2 { "0" } else { "-1" };
        let settings = [
            &["ACL", "SETUSER", "walker", "on", "nopass", "+@all", "allkeys", "allchannels"][..],
            &["AUTH", "walker", "any"],
            &["CONFIG", "SET", "zset-max-listpack-entries", limit, "zset-max-listpack-value", "100000"],
            &["CONFIG", "SET", "slowlog-log-slower-than", slow],
            // The rate at which a real server searches for due keys.
            &["CONFIG", "SET", "hz", "500", "slowlog-max-len", "2000"],
            &["CONFIG", "RESETSTAT"],
        ];
        for words in settings {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(self.pair.ask_own(&words), [Reply::Simple(b"OK".to_vec()), Reply::Simple(b"OK".to_vec())]);
        }
        (1..CLIENTS).for_each(|who| self.learn_number(who));
    }

    /// A new client begins: in every third outing with RESP3. The vocabulary knows its number then.
    fn learn_number(&mut self, who: usize) {
        if self.seed.is_multiple_of(3) {
            self.pair.ask(who, &[b"HELLO".to_vec(), b"3".to_vec()]);
        }
        let words = [b"CLIENT".to_vec(), b"ID".to_vec()];
        let heard = self.pair.ask(who, &words).map(|sides| sides.map(|mut side| side.remove(who).replies));
        assert!(heard.as_ref().is_none_or(|sides| sides[0] == sides[1]), "clients have other numbers: {heard:?}");
        let number = match heard.as_ref().map(|sides| sides[0].as_slice()) {
            Some([Reply::Integer(number)]) => number.clone(),
            // A client that has to log in, or has few permissions, does not get its number.
            _ => "1".to_owned(),
        };
        self.words.clients.resize(CLIENTS, String::new());
        self.words.clients[who] = number;
        self.words.clients[OWN] = "99999".to_owned();
    }

    /// Continues for this number of requests. Returns the difference, if there is one.
    fn take(&mut self, requests: usize) -> Option<String> {
        for step in 0..requests {
            let who = 1 + self.words.below(CLIENTS - 1);
            let fault = if self.said[who].waits() || self.words.below(150) == 0 {
                self.come_again(who);
                self.tally.not_asked += 1;
                None
            } else {
                match self.step(who) {
                    Ok(fault) => fault,
                    Err(OwnIsGone) => {
                        self.tally.outings_cut_short += 1;
                        return None;
                    }
                }
            };
            if step % AMENDS == 0 {
                self.make_amends();
            }
            let is_time = step % number("DUNLIN_WALK_LOOKS", LOOKS) == 0 || step + 1 == requests;
            let fault = fault.or_else(|| if is_time { self.difference_in_what_is_left() } else { None });
            if let Some(fault) = fault {
                return Some(self.told_of(step, &fault));
            }
        }
        None
    }

    fn difference_in_what_is_left(&mut self) -> Option<String> {
        remains::difference(&mut self.pair).or_else(|| remains::overall_difference(&mut self.pair))
    }

    /// Lets clients do something again, if there was no memory left or no right.
    fn make_amends(&mut self) {
        self.pair.ask_own(&[b"CONFIG", b"SET", b"maxmemory", b"0", b"maxmemory-policy", b"noeviction"]);
        self.pair.ask_own(&[b"ACL", b"SETUSER", b"default", b"reset", b"on", b"nopass", b"+@all", b"~*", b"&*"]);
        self.pair.ask_own(&[b"CLIENT", b"UNPAUSE"]);
        self.told.push("0: (amends)".to_owned());
    }

    fn told_of(&self, step: usize, fault: &str) -> String {
        let last = &self.told[self.told.len().saturating_sub(number("DUNLIN_WALK_TOLD", TOLD))..];
        format!("seed {}, request {step}:\n  {}\n{fault}", self.seed, last.join("\n  "))
    }

    /// Another client comes in the place of one.
    fn come_again(&mut self, who: usize) {
        if self.words.below(3) == 0 {
            self.pair.ask_own(&[b"CLIENT", b"UNPAUSE"]);
        }
        self.told.push(format!("{who}: (another client)"));
        self.pair.replace(who);
        self.said[who] = Said::default();
        self.learn_number(who);
    }

    /// One request.
    fn step(&mut self, who: usize) -> Result<Option<String>, OwnIsGone> {
        let is_due = self.words.below(DUE) == 0 && !self.said[who].is_in_transaction();
        let words = if is_due { self.line(DUE_AT_ONCE) } else { self.bracket(who).unwrap_or_else(|| self.request()) };
        let is_left_out = self.said[who].monitors() && left_out::of_monitors(&words)
            || self.said[who].is_in_transaction() && left_out::of_transactions(&words);
        if is_left_out {
            self.tally.not_asked += 1;
            return Ok(None);
        }
        self.told.push(format!("{who}: {}", words.iter().map(|word| told(word)).collect::<Vec<_>>().join(" ")));
        let heard = if is_due {
            // A held-back request would fall due when no one waits for it.
            self.pair.ask_own(&[b"CLIENT", b"UNPAUSE"]);
            self.pair.ask_and_wait(who, &words, LONG_ENOUGH)
        } else {
            self.pair.ask(who, &words)
        };
        let [real, ours] = heard.ok_or(OwnIsGone)?;
        self.said[who].begin(self.table, &words);
        let mut is_exact = true;
        for (other, (real, ours)) in real.iter().zip(&ours).enumerate() {
            match compared(&self.said[other], other == who, real, ours) {
                Verdict::Exact => {}
                Verdict::Masked => is_exact = false,
                Verdict::Unlike(fault) => return Ok(Some(format!("client {other}: {fault}"))),
            }
        }
        self.tally.count(is_exact, self.said[who].command());
        self.keep(who, &real[who].replies);
        for (other, heard) in real.iter().enumerate().skip(1) {
            self.said[other].end(heard);
            if heard.closed {
                self.come_again(other);
            }
        }
        Ok(None)
    }

    fn keep(&mut self, who: usize, replies: &[Reply]) {
        if let [Reply::Bulk(word)] = replies {
            self.words.keep(self.said[who].command(), word);
        }
    }

    /// In every fourth outing most requests are in transactions: returns a request that begins or ends one.
    fn bracket(&mut self, who: usize) -> Option<Vec<Vec<u8>>> {
        let (word, rarely) = if self.said[who].is_in_transaction() { ("EXEC", 6) } else { ("MULTI", 3) };
        (self.seed % 4 == 3 && self.words.below(rarely) == 0).then(|| vec![word.as_bytes().to_vec()])
    }

    /// Some request, or one that a script makes.
    fn request(&mut self) -> Vec<Vec<u8>> {
        let mut words = match self.words.below(15) {
            0 => vec![b"EVAL".to_vec(), self.words.named("calling"), b"0".to_vec()],
            1 => vec![b"FCALL".to_vec(), self.words.named("function"), b"0".to_vec()],
            _ => Vec::new(),
        };
        words.extend(self.plain_request());
        words
    }

    fn plain_request(&mut self) -> Vec<Vec<u8>> {
        if self.words.below(2) == 0 {
            return self.line(LINES);
        }
        let place = self.words.below(self.shapes.len());
        let (entry, samples) = &self.shapes[place];
        let sample = &samples[self.words.below(samples.len())];
        let mut words: Vec<Vec<u8>> = sample.iter().map(|word| self.words.instead_of(&entry.name, word)).collect();
        match self.words.below(40) {
            0 => drop(words.pop_if(|_| sample.len() > 1)),
            1 => words.push(self.words.named("text")),
            _ => {}
        }
        words
    }

    /// One of these lines, with words in its places.
    fn line(&mut self, of: &[&'static str]) -> Vec<Vec<u8>> {
        let line = *self.words.pick::<&str>(of);
        let words = split(line).expect("a line is well formed");
        words.into_iter().map(|word| self.filled_in(word)).collect()
    }

    /// A word of a line.
    fn filled_in(&mut self, word: Vec<u8>) -> Vec<u8> {
        match word.strip_prefix(b"@").and_then(|name| str::from_utf8(name).ok()) {
            Some(name) => self.words.named(name),
            None => word,
        }
    }
}

impl Drop for Outing<'_> {
    /// A panic that ends the walk is printed with its requests, too.
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = writeln!(io::stderr(), "{}", self.told_of(self.told.len(), "it went no further"));
        }
    }
}

/// The walk's own client was closed, by a request that closes many: the outing ends.
struct OwnIsGone;

/// The samples of a command that are walked.
fn shapes(entry: &Entry, with_members: bool) -> (&Entry, Vec<Sample>) {
    let mut samples = [samples(entry), pairs_of_options(entry)].concat();
    samples.retain(|sample| !left_out::sample_of_walks(&entry.name, sample) && (with_members || !is_by_member(sample)));
    (entry, samples)
}
