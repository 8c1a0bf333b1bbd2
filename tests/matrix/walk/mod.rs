//! A random walk: many requests of several clients, one after the other, sent to a real server and to ours.
//!
//! The other sheets send every request with the same initial data; here each request follows all those before it: a
//! client is subscribed, blocked, in a transaction, tracking or has few permissions, scripts and functions exist,
//! payloads of values are restored. The requests are samples of every command with random words, now and then with one
//! too many or too few, and lines that build on them. After every request, everything that each client receives is
//! compared, and from time to time the whole state.
//!
//! A walk has many runs, each with new servers and its own seed. The seed of a run that finds a difference is
//! printed with the last requests, so that it can be repeated.

mod client_state;
mod lines;
mod log;
mod pair;
mod state;
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
use client_state::{ClientState, Verdict, compared};
use lines::{DUE_AT_ONCE, LINES};
use log::{LOGGING, Log};
use pair::{OWN, Pair};
use tally::Tally;
use vocabulary::Vocabulary;

/// The clients of each server, the walk's own among them.
const CLIENTS: usize = 5;

/// The number of requests in a run.
const RUN_REQUESTS: usize = 2500;

/// The number of last requests that are printed when replies differ, unless DUNLIN_WALK_PRINTED sets it.
const PRINTED: usize = 40;

/// The number of requests between comparisons of the whole state, unless DUNLIN_WALK_COMPARE_EVERY sets it: 1 finds the
/// exact request.
const COMPARE_EVERY: usize = 50;

/// The number of requests after which clients get their permissions and modes back.
const RESTORE_EVERY: usize = 40;

/// How rarely a request with an immediate deadline is sent, and the time that passes then: several times as long.
const DUE: usize = 60;
const DUE_IN_LOGS: usize = 25;
const LONG_ENOUGH: Duration = Duration::from_millis(40);

/// The outputs that a walk compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Everything that clients receive, and the whole state.
    Replies,
    /// The logs of changes that both servers write. A real server that has a log answers differently.
    Log,
}

/// Walks for this number of requests, beginning with the run of that seed. Further runs replace the requests of those
/// that ended early; one that finds a difference counts as complete.
pub(crate) fn compare(real: &Program, subject: Subject, seed: u64, requests: usize) {
    let table = Table::of(FAMILIES);
    let (mut faults, mut whole, mut logged) = (Vec::new(), Tally::default(), 0);
    let mut left = requests;
    for seed in seed.. {
        if left == 0 {
            break;
        }
        let (mut run, planned) = (Run::new(real, &table, subject, seed), left.min(RUN_REQUESTS));
        let fault = run.take(planned);
        left -= if fault.is_some() { planned } else { run.tally.steps().clamp(1, planned) };
        faults.extend(fault);
        if run.tally.has_compared_nothing() {
            faults.push(format!("seed {seed}: no request was compared to the byte"));
        }
        logged += run.logs.as_ref().map_or(0, |logs| logs.compared);
        whole.add(&run.tally);
    }
    writeln!(io::stderr(), "the random walk ({subject:?}) from seed {seed}: {whole}; {logged} commands in the log")
        .expect("stderr can be written");
    let again = format!("DUNLIN_WALK_REQUESTS={RUN_REQUESTS} DUNLIN_WALK_SEED=<seed> repeats a run");
    assert!(faults.is_empty(), "{} runs differ; {again}\n\n{}", faults.len(), faults.join("\n\n"));
    assert!(subject == Subject::Replies || logged > requests / 10, "only {logged} commands were in the log");
}

/// A number that the environment may set.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise).max(1)
}

/// A word of a request as it is printed.
fn printed(word: &[u8]) -> String {
    if word.len() > 64 && word.iter().all(|byte| *byte == word[0]) {
        return format!("{{{}*{}}}", char::from(word[0]), word.len());
    }
    quote(word)
}

/// One run.
struct Run<'t> {
    table: &'t Table,
    shapes: Vec<(&'t Entry, Vec<Sample>)>,
    seed: u64,
    pair: Pair,
    /// The logs, if they are what is compared.
    logs: Option<Log>,
    words: Vocabulary,
    states: Vec<ClientState<'t>>,
    log: Vec<String>,
    tally: Tally,
}

impl<'t> Run<'t> {
    fn new(real: &Program, table: &'t Table, subject: Subject, seed: u64) -> Run<'t> {
        // Every other run goes through the large form of sorted sets, where ranges of members among different scores
        // depend on chance in Redis.
        let is_large = seed % 2 == 1;
        let is_wanted = |entry: &Entry| subject == Subject::Replies || log::concerns(entry);
        let walked = table.entries().iter().filter(|entry| !left_out::of_walks(&entry.name) && is_wanted(entry));
        let shapes = walked.map(|entry| shapes(entry, !is_large)).filter(|(_, samples)| !samples.is_empty()).collect();
        let arguments = if subject == Subject::Log { LOGGING } else { &[] };
        let real = Process::start_with(real, arguments).expect("the real server starts");
        let ours = dunlin::Server::builder().frozen().allow_debug().seed(seed).start().expect("our server starts");
        let logs = (subject == Subject::Log).then(|| Log::begin(&real, &ours));
        let mut run = Run {
            table,
            logs,
            shapes,
            seed,
            pair: Pair::new(real, ours, CLIENTS),
            words: Vocabulary::new(seed),
            states: (0..CLIENTS).map(|_| ClientState::default()).collect(),
            log: Vec::new(),
            tally: Tally::default(),
        };
        run.begin(is_large);
        run
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
        // In every third walk of the log, expired keys are found by requests alone.
        let is_lazy = self.logs.is_some() && self.seed.is_multiple_of(3);
        let lazy = [&["DEBUG", "SET-ACTIVE-EXPIRE", "0"][..]];
        for words in settings.into_iter().chain(lazy.into_iter().filter(|_| is_lazy)) {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(self.pair.ask_own(&words), [Reply::Simple(b"OK".to_vec()), Reply::Simple(b"OK".to_vec())]);
        }
        (1..CLIENTS).for_each(|who| self.learn_number(who));
    }

    /// Stores the number of a new client in the vocabulary. In every third run the client uses RESP3.
    fn learn_number(&mut self, who: usize) {
        if self.seed.is_multiple_of(3) {
            self.pair.ask(who, &[b"HELLO".to_vec(), b"3".to_vec()]);
        }
        let words = [b"CLIENT".to_vec(), b"ID".to_vec()];
        let received = self.pair.ask(who, &words).map(|sides| sides.map(|mut side| side.remove(who).replies));
        assert!(received.as_ref().is_none_or(|sides| sides[0] == sides[1]), "clients have other numbers: {received:?}");
        let number = match received.as_ref().map(|sides| sides[0].as_slice()) {
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
            let fault = if self.states[who].waits() || self.words.below(150) == 0 {
                self.replace_client(who);
                self.tally.not_sent += 1;
                None
            } else {
                match self.step(who) {
                    Ok(fault) => fault,
                    Err(OwnClientGone) => {
                        self.tally.runs_cut_short += 1;
                        return None;
                    }
                }
            };
            if step % RESTORE_EVERY == 0 {
                self.restore_permissions();
            }
            let is_time = step % number("DUNLIN_WALK_COMPARE_EVERY", COMPARE_EVERY) == 0 || step + 1 == requests;
            let fault = fault.or_else(|| if is_time { self.difference_in_state() } else { None });
            if let Some(fault) = fault {
                return Some(self.with_last_requests(step, &fault));
            }
        }
        None
    }

    fn difference_in_state(&mut self) -> Option<String> {
        if self.logs.is_some() {
            let [real, ours] = self.pair.ask_own(&[b"DEBUG", b"DIGEST"]);
            return (real != ours).then(|| "the data".to_owned());
        }
        state::difference(&mut self.pair).or_else(|| state::overall_difference(&mut self.pair))
    }

    /// Restores what clients need to run commands: memory, permissions, and no pause.
    fn restore_permissions(&mut self) {
        self.pair.ask_own(&[b"CONFIG", b"SET", b"maxmemory", b"0", b"maxmemory-policy", b"noeviction"]);
        self.pair.ask_own(&[b"ACL", b"SETUSER", b"default", b"reset", b"on", b"nopass", b"+@all", b"~*", b"&*"]);
        self.pair.ask_own(&[b"CLIENT", b"UNPAUSE"]);
        self.log.push("0: (permissions restored)".to_owned());
    }

    fn with_last_requests(&self, step: usize, fault: &str) -> String {
        let last = &self.log[self.log.len().saturating_sub(number("DUNLIN_WALK_PRINTED", PRINTED))..];
        format!("seed {}, request {step}:\n  {}\n{fault}", self.seed, last.join("\n  "))
    }

    /// Replaces a client by a new one.
    fn replace_client(&mut self, who: usize) {
        if self.words.below(3) == 0 {
            self.pair.ask_own(&[b"CLIENT", b"UNPAUSE"]);
        }
        self.log.push(format!("{who}: (another client)"));
        self.pair.replace(who);
        self.states[who] = ClientState::default();
        self.learn_number(who);
    }

    /// Sends one request, and compares what all clients receive.
    fn step(&mut self, who: usize) -> Result<Option<String>, OwnClientGone> {
        let is_due = self.words.below(if self.logs.is_some() { DUE_IN_LOGS } else { DUE }) == 0
            && !self.states[who].is_in_transaction();
        let mut words =
            if is_due { self.line(DUE_AT_ONCE) } else { self.transaction_bound(who).unwrap_or_else(|| self.request()) };
        if is_due && self.logs.is_some() {
            log::with_own_keys(self.table, &mut words, &mut self.words);
        }
        let is_left_out = self.states[who].monitors() && left_out::of_monitors(&words)
            || self.states[who].is_in_transaction() && left_out::of_transactions(&words);
        if is_left_out {
            self.tally.not_sent += 1;
            return Ok(None);
        }
        self.log.push(format!("{who}: {}", words.iter().map(|word| printed(word)).collect::<Vec<_>>().join(" ")));
        let received = if is_due {
            // A held-back request would fall due when no one waits for it.
            self.pair.ask_own(&[b"CLIENT", b"UNPAUSE"]);
            self.pair.ask_and_wait(who, &words, LONG_ENOUGH)
        } else {
            self.pair.ask(who, &words)
        };
        let [real, ours] = received.ok_or(OwnClientGone)?;
        self.states[who].begin(self.table, &words);
        let (mut is_exact, mut answers) = (true, String::new());
        for (other, (real, ours)) in real.iter().zip(&ours).enumerate() {
            match compared(&self.states[other], other == who, real, ours) {
                Verdict::Exact => {}
                Verdict::Masked => is_exact = false,
                Verdict::Unlike(fault) if self.logs.is_some() => (is_exact, answers) = (false, fault),
                Verdict::Unlike(fault) => return Ok(Some(format!("client {other}: {fault}"))),
            }
        }
        if !answers.is_empty() {
            self.log.push(format!("(answered otherwise: {answers})"));
        }
        if let Some(fault) = self.logs.as_mut().and_then(|logs| logs.difference(self.pair.ours(), is_due)) {
            return Ok(Some(fault));
        }
        self.tally.count(is_exact, self.states[who].command());
        self.keep(who, &real[who].replies);
        for (other, received) in real.iter().enumerate().skip(1) {
            self.states[other].end(received);
            if received.closed {
                self.replace_client(other);
            }
        }
        Ok(None)
    }

    fn keep(&mut self, who: usize, replies: &[Reply]) {
        if let [Reply::Bulk(word)] = replies {
            self.words.keep(self.states[who].command(), word);
        }
    }

    /// In every fourth run most requests are in transactions: returns a request that begins or ends one.
    fn transaction_bound(&mut self, who: usize) -> Option<Vec<Vec<u8>>> {
        let (word, rarely) = if self.states[who].is_in_transaction() { ("EXEC", 6) } else { ("MULTI", 3) };
        (self.seed % 4 == 3 && self.words.below(rarely) == 0).then(|| vec![word.as_bytes().to_vec()])
    }

    /// A random request, or a script that makes one.
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
        let mut words = if self.words.below(2) == 0 { self.line_of_walk() } else { self.sampled() };
        if self.logs.is_some() {
            log::with_own_keys(self.table, &mut words, &mut self.words);
        }
        words
    }

    fn line_of_walk(&mut self) -> Vec<Vec<u8>> {
        if self.logs.is_none() {
            return self.line(LINES);
        }
        let table = self.table;
        let lines: Vec<&str> = LINES.iter().copied().filter(|line| log::concerns_line(table, line)).collect();
        self.line(&lines)
    }

    fn sampled(&mut self) -> Vec<Vec<u8>> {
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

    /// The words of a line chosen at random, with their placeholders replaced.
    fn line(&mut self, of: &[&'static str]) -> Vec<Vec<u8>> {
        let line = *self.words.pick::<&str>(of);
        let words = split(line).expect("a line is well formed");
        words.into_iter().map(|word| self.filled_in(word)).collect()
    }

    /// A word of the walk in place of a placeholder (`@` and the name of its kind); any other word as it is.
    fn filled_in(&mut self, word: Vec<u8>) -> Vec<u8> {
        match word.strip_prefix(b"@").and_then(|name| str::from_utf8(name).ok()) {
            Some(name) => self.words.named(name),
            None => word,
        }
    }
}

impl Drop for Run<'_> {
    /// A panic that ends the walk is printed with its requests, too.
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = writeln!(io::stderr(), "{}", self.with_last_requests(self.log.len(), "it went no further"));
        }
    }
}

/// The walk's own client was closed, by a request that closes many: the run ends.
struct OwnClientGone;

/// The samples of a command that a walk uses.
fn shapes(entry: &Entry, with_members: bool) -> (&Entry, Vec<Sample>) {
    let mut samples = [samples(entry), pairs_of_options(entry)].concat();
    samples.retain(|sample| !left_out::sample_of_walks(&entry.name, sample) && (with_members || !is_by_member(sample)));
    (entry, samples)
}
