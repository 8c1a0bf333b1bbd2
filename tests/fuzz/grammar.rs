//! Random requests that know the command table: names, the literal words of each syntax line, few keys, odd numbers.

use dunlin::engine::{Arity, Entry};

/// Commands that do nothing a reply could show, or would fill the memory by design.
const LEFT_OUT: &[&str] = &["debug", "shutdown"];

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

/// Sources of scripts: what they are given becomes calls, values and the input of every library.
const SCRIPTS: &[&[u8]] = &[
    b"return redis.call(unpack(ARGV))",
    b"return redis.pcall(unpack(ARGV))",
    b"redis.setresp(3) return redis.pcall(unpack(ARGV))",
    b"return {pcall(redis.call, unpack(ARGV))}",
    b"for i = 1, #KEYS do redis.pcall('SET', KEYS[i], i) redis.pcall('LPUSH', KEYS[i], i) end return redis.status_reply('OK')",
    b"return {tonumber(ARGV[1]) or 0, {ok = ARGV[1]}, {err = ARGV[2]}, {double = 1.5}, {map = {a = 1}}, {set = {b = true}}}",
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
    state: u64,
    commands: Vec<Shape>,
}

struct Shape {
    name: Vec<Vec<u8>>,
    least_words: usize,
    literals: Vec<Vec<u8>>,
    runs_script: bool,
}

impl Grammar {
    /// A grammar of all `entries` but those left out.
    pub fn new(seed: u64, entries: &[Entry]) -> Grammar {
        let kept = entries.iter().filter(|entry| {
            let is_left_out = LEFT_OUT.iter().any(|name| entry.name.split('|').next() == Some(name));
            !is_left_out && !entry.command.is_container()
        });
        Grammar { state: seed | 1, commands: kept.map(Shape::of).collect() }
    }

    /// A random number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % bound as u64) as usize
    }

    /// A request: a name and words that may or may not fit.
    pub fn request(&mut self) -> Vec<Vec<u8>> {
        let command = self.below(self.commands.len());
        let mut words = self.commands[command].name.clone();
        if self.commands[command].runs_script {
            words.extend(self.script());
        }
        let least = self.commands[command].least_words.saturating_sub(words.len());
        let extra = self.below(8).saturating_sub(3);
        for position in 0..least + extra {
            let word = self.word(command, position);
            words.push(word);
        }
        words
    }

    /// A script, no keys, and often the words of a request as its arguments.
    fn script(&mut self) -> Vec<Vec<u8>> {
        let mut words = vec![self.one_of(SCRIPTS), b"0".to_vec()];
        let inner = self.below(self.commands.len());
        if !self.commands[inner].runs_script {
            words.extend(self.commands[inner].name.clone());
        }
        words
    }

    fn word(&mut self, command: usize, position: usize) -> Vec<u8> {
        let literals = self.commands[command].literals.len();
        match self.below(10) {
            0..=4 if position == 0 => self.one_of(KEYS),
            0..=2 => self.one_of(NUMBERS),
            3 | 4 if literals > 0 => {
                let literal = self.below(literals);
                self.commands[command].literals[literal].clone()
            }
            3..=6 => self.one_of(KEYS),
            7 => (self.below(200) as i64 - 100).to_string().into_bytes(),
            _ => self.one_of(TEXTS),
        }
    }

    fn one_of(&mut self, words: &[&[u8]]) -> Vec<u8> {
        words[self.below(words.len())].to_vec()
    }
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
            literals: literals.map(|word| word.as_bytes().to_vec()).collect(),
        }
    }
}
