//! A random walk: many requests, one after the other, to a real server and to ours, on the same few keys.
//!
//! Where the other sheets ask every request from the same start, here each one meets what those before it have left. The
//! requests are samples with other words in their places, now and then with a word too many or too few. A walk is seeded,
//! so one that finds a difference can be taken again.

use dunlin::commands::FAMILIES;
use dunlin::engine::{Entry, Family, Flags, Table};

use crate::left_out;
use crate::sampler::{Role, Sample, is_by_member, pairs_of_options, samples};
use crate::server::{Form, Manner, Server, state};
use crate::shape::Sameness;
use crate::words::quote;

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

const NUMBERS: [&str; 14] =
    ["0", "1", "2", "3", "-1", "-2", "10", "1.5", "-0.5", "1e3", "inf", "-inf", "x", "9223372036854775807"];

const BOUNDS: [&str; 14] = ["-inf", "+inf", "(1", "1", "2", "0", "-1", "-2", "[a", "(b", "[c", "-", "+", "(x"];

const TEXTS: [&str; 8] = ["a", "b", "c", "d", "", "7", "3.5", "a longer word, one that is not kept in a number"];

/// How many of the last requests are told when answers differ.
const TOLD: usize = 12;

/// Walks for so many requests on a real server and on ours, and from time to time compares all keys.
pub(crate) fn compare(mut servers: [&mut dyn Server; 2], seed: u64, requests: usize) {
    let table = Table::of(FAMILIES);
    // Every other walk goes through the large form of sorted sets, where ranges of members among different scores depend
    // on chance in Redis.
    let is_large = seed % 2 == 1;
    let walked = table.entries().iter().filter(|entry| is_walked(entry)).map(|entry| shapes(entry, !is_large));
    let shapes: Vec<(&Entry, Vec<Sample>)> = walked.filter(|(_, samples)| !samples.is_empty()).collect();
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut told: Vec<String> = Vec::new();
    let form = if seed % 4 < 2 { Form::Resp2 } else { Form::Resp3 };
    for server in &mut servers {
        server.answer(Manner::Alone, form, &[b"FLUSHALL".to_vec()]);
        let limit = if is_large { "1" } else { "128" };
        let limits = ["CONFIG", "SET", "zset-max-listpack-entries", limit, "list-max-listpack-size", limit];
        let words = limits.map(|word| word.as_bytes().to_vec());
        assert_eq!(server.next_answer(&words).bytes, b"+OK\r\n");
    }
    for step in 0..requests {
        let (entry, samples) = &shapes[chance.usize(..shapes.len())];
        let words = varied(&samples[chance.usize(..samples.len())], &mut chance);
        told.push(words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "));
        let told = &told[told.len().saturating_sub(TOLD)..].join("\n  ");
        let context = format!("seed {seed}, request {step}, the last of\n  {told}\n");
        let answers = servers.each_mut().map(|server| server.next_answer(&words).line(sameness(entry)));
        assert_eq!(answers[0], answers[1], "{context}");
        if step % 10 == 0 {
            for key in KEYS {
                let states = servers.each_mut().map(|server| state(*server, key.as_bytes()));
                assert_eq!(states[0], states[1], "{key}: {context}");
            }
        }
    }
}

/// The commands about keys, and none that empties everything, for a walk shall meet something; nor one that changes a key
/// by chance.
fn is_walked(entry: &Entry) -> bool {
    let is_timed = entry.name == "object|idletime";
    let is_chance = entry.command.flags.has(Flags::WRITE) && entry.command.tips.contains(&"nondeterministic_output");
    !left_out::command(&entry.name)
        && left_out::manner(entry) == Manner::Alone
        && !is_timed
        && !is_chance
        && !entry.command.keys.is_empty()
        && entry.command.family != Family::Server
}

fn shapes(entry: &Entry, with_members: bool) -> (&Entry, Vec<Sample>) {
    let mut samples = [samples(entry), pairs_of_options(entry)].concat();
    samples.retain(|sample| !compares_spans(sample) && (with_members || !is_by_member(sample)));
    (entry, samples)
}

/// EXPIRE with GT or LT: a span that begins a little later ends a little later, but only on a clock that runs.
fn compares_spans(sample: &Sample) -> bool {
    let says = |word: &[u8]| sample.iter().any(|other| other.bytes == word);
    (says(b"EXPIRE") || says(b"PEXPIRE")) && (says(b"GT") || says(b"LT"))
}

/// Deadlines are counted from moments that differ.
fn sameness(entry: &Entry) -> Sameness {
    if entry.name.ends_with("expiretime") { Sameness::Kind } else { left_out::sameness(entry) }
}

fn varied(sample: &Sample, chance: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    for word in sample {
        let keep = chance.u8(..3) == 0;
        let other = match word.role {
            Role::Key => Some(*pick(&KEYS, chance)),
            Role::Number if !keep && !is_moment(&word.bytes) => Some(*pick(&NUMBERS, chance)),
            Role::Bound if !keep => Some(*pick(&BOUNDS, chance)),
            Role::Text if !keep => Some(*pick(&TEXTS, chance)),
            _ => None,
        };
        words.push(other.map_or_else(|| word.bytes.clone(), |other| other.as_bytes().to_vec()));
    }
    match chance.u8(..40) {
        0 => drop(words.pop_if(|_| sample.len() > 1)),
        1 => words.push(pick(&TEXTS, chance).as_bytes().to_vec()),
        _ => {}
    }
    words
}

/// Moments and spans stay as they are: what ends soon would end at other times.
fn is_moment(word: &[u8]) -> bool {
    word.len() > 5
}

fn pick<'w, T>(words: &'w [T], chance: &mut fastrand::Rng) -> &'w T {
    &words[chance.usize(..words.len())]
}
