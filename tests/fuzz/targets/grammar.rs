//! Generates random requests from the command table: names, the literal words of each syntax line, a few keys, unusual
//! numbers. All commands are included, except those that are listed here with a reason.

use crate::support::choices::Choices;
use dunlin::engine::{Arity, Entry};
use dunlin::rdb;

/// Commands that are never made, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("debug", "it fills the memory when asked to, and has tests of its own"),
    ("shutdown", "it ends everything"),
    ("module|load", "a setting of the start refuses it before it runs"),
    ("module|loadex", "a setting of the start refuses it before it runs"),
    ("module|unload", "a setting of the start refuses it before it runs"),
];

/// Requests that many others only make sense after: transactions, waiting, listening, the other protocol.
const OFTEN: &[&[&str]] = &[
    &["MULTI"],
    &["EXEC"],
    &["EXEC"],
    &["WATCH", "k1"],
    &["BLPOP", "k1", "k2", "0"],
    &["BZPOPMIN", "k1", "0.5"],
    &["RPUSH", "k1", "a", "b"],
    &["ZADD", "k1", "1", "a"],
    &["DEL", "k1"],
    &["FLUSHALL"],
    &["SUBSCRIBE", "a"],
    &["PUBLISH", "a", "b"],
    &["UNSUBSCRIBE"],
    &["HELLO", "3"],
    &["RESET"],
];

const KEYS: &[&[u8]] = &[b"k1", b"k2", b"k3", b"k4", b"k5", b"k\r\n6", b""];

/// Numbers at the edges of what fits, and texts that look like numbers.
const NUMBERS: &[&[u8]] = &[
    b"-9223372036854775808",
    b"-9223372036854775807",
    b"-4294967297",
    b"-2147483649",
    b"-1",
    b"-0",
    b"0",
    b"1",
    b"2",
    b"3",
    b"10",
    b"2147483647",
    b"4294967296",
    b"9007199254740993",
    b"8070450532247928833",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"1e308",
    b"1.5",
    b"inf",
    b"-inf",
    b"nan",
    b"0x10",
    b"+1",
    b"01",
    b" 1",
    b"(1",
    b"[a",
    b"(b",
    b"-",
    b"+",
    b"",
];

const TEXTS: &[&[u8]] = &[b"a", b"b", b"c", b"member", b"*", b"k?", b"a\r\n-ERR b", b"\0\xff", b"GET", b"0123456789"];

/// Payloads for RESTORE, without footer: a string, a list, a set of integers.
const PAYLOADS: &[&[u8]] =
    &[b"\0\x01v", b"\x12\x01\x02\x0d\x0d\0\0\0\x02\0\x81a\x02\x07\x01\xff", b"\x0b\x0a\x02\0\0\0\x01\0\0\0\x05\0"];

/// Sources of scripts: what they are given becomes calls, values and the input of every library.
const SCRIPTS: &[&[u8]] = &[
    b"return redis.call(unpack(ARGV))",
    b"return redis.pcall(unpack(ARGV))",
    b"redis.setresp(3) return redis.pcall(unpack(ARGV))",
    b"return {pcall(redis.call, unpack(ARGV))}",
    b"for i = 1, #KEYS do redis.pcall('SET', KEYS[i], i) redis.pcall('LPUSH', KEYS[i], i) end \
      return redis.status_reply('OK')",
    b"return {tonumber(ARGV[1]) or 0, {ok = ARGV[1]}, {err = ARGV[2]}, {double = 1.5}, \
      {map = {a = 1}}, {set = {b = true}}}",
    b"return cjson.encode(cjson.decode(ARGV[1]))",
    b"return cmsgpack.pack(cmsgpack.unpack(ARGV[1]))",
    b"return {struct.unpack(ARGV[1], ARGV[2])}",
    b"return {string.find(ARGV[1], ARGV[2])}",
    b"return string.gsub(ARGV[1], ARGV[2], ARGV[3])",
    b"return string.rep(ARGV[1], tonumber(ARGV[2]) or 3):len()",
    b"return loadstring(ARGV[1] or '')()",
    b"#!lua flags=no-writes\nreturn redis.call(unpack(ARGV))",
    b"error(ARGV[1])",
    b"return",
];

/// Makes requests.
pub struct Grammar {
    commands: Vec<Shape>,
    payloads: Vec<Vec<u8>>,
}

struct Shape {
    name: Vec<Vec<u8>>,
    least_words: usize,
    literals: Vec<Vec<u8>>,
    runs_script: bool,
    takes_payload: bool,
}

/// Whether requests call that command.
pub fn is_made(entry: &Entry) -> bool {
    let is_left_out = |(name, _): &(&str, &str)| entry.name == *name || entry.name.split('|').next() == Some(name);
    !LEFT_OUT.iter().any(is_left_out) && !entry.command.is_container()
}

impl Grammar {
    /// A grammar of all `entries` but those left out.
    pub fn new(entries: &[Entry]) -> Grammar {
        Grammar {
            commands: entries.iter().filter(|entry| is_made(entry)).map(Shape::of).collect(),
            payloads: PAYLOADS.iter().map(|payload| rdb::with_footer(payload.to_vec())).collect(),
        }
    }

    /// A request: a name and words that may or may not fit.
    pub fn request(&self, choices: &mut Choices<'_>) -> Vec<Vec<u8>> {
        if choices.below(12) == 0 {
            return OFTEN[choices.below(OFTEN.len())].iter().map(|word| word.as_bytes().to_vec()).collect();
        }
        let command = &self.commands[choices.below(self.commands.len())];
        let mut words = command.name.clone();
        if command.runs_script {
            words.extend(self.script(choices));
        }
        let least = command.least_words.saturating_sub(words.len());
        let extra = choices.below(8).saturating_sub(3);
        for position in 0..least + extra {
            words.push(self.word(choices, command, position));
        }
        words
    }

    /// A script, no keys, and often the words of a request as its arguments.
    fn script(&self, choices: &mut Choices<'_>) -> Vec<Vec<u8>> {
        let mut words = vec![one_of(choices, SCRIPTS), b"0".to_vec()];
        let inner = &self.commands[choices.below(self.commands.len())];
        if !inner.runs_script {
            words.extend(inner.name.clone());
        }
        words
    }

    fn word(&self, choices: &mut Choices<'_>, command: &Shape, position: usize) -> Vec<u8> {
        match choices.below(10) {
            0..=4 if position == 0 => one_of(choices, KEYS),
            0..=2 => one_of(choices, NUMBERS),
            3..=5 if command.takes_payload => self.payloads[choices.below(self.payloads.len())].clone(),
            3 | 4 if !command.literals.is_empty() => command.literals[choices.below(command.literals.len())].clone(),
            3..=6 => one_of(choices, KEYS),
            7 => (choices.below(200) as i64 - 100).to_string().into_bytes(),
            _ => one_of(choices, TEXTS),
        }
    }
}

fn one_of(choices: &mut Choices<'_>, words: &[&[u8]]) -> Vec<u8> {
    words[choices.below(words.len())].to_vec()
}

impl Shape {
    fn of(entry: &Entry) -> Shape {
        let (Arity::Exactly(words) | Arity::AtLeast(words)) = entry.command.arity;
        let is_literal = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '-');
        let literals = entry.command.syntax.split([' ', '[', ']', '|', '<', '>']).filter(is_literal);
        Shape {
            name: entry.name.split('|').map(|word| word.as_bytes().to_vec()).collect(),
            least_words: usize::from(words),
            runs_script: entry.command.syntax.starts_with("script numkeys"),
            takes_payload: entry.command.syntax.contains("serialized-value"),
            literals: literals.map(|word| word.as_bytes().to_vec()).collect(),
        }
    }
}
