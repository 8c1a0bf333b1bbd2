//! The words of a walk: for each argument of a syntax line some valid ones, some nearly valid ones, and some invalid
//! ones.
//!
//! There are few words, so that requests use the keys of others; and returned values (ids, payloads) are used again.

use crate::sampler::{Role, Word};

/// The words for an argument, by its name.
const BY_NAME: &[(&[&str], &[&str])] = &[
    (&["timeout"], &["0", "0", "1000", "-1", "x"]),
    (&["maxage"], &["100000", "-1", "x"]),
    (&["index", "index1", "index2", "db", "destination-db"], &["0", "0", "1", "1", "2", "-1", "99", "x"]),
    (&["group"], &["g1", "g1", "g2", "nosuch"]),
    (&["consumer"], &["ann", "bob"]),
    (&["min-idle-time"], &["0", "0", "1000000000", "-1", "x"]),
    (&["ms"], &["0", "1000000", "-1", "x"]),
    (&["entries-added", "entries-read"], &["0", "3", "100", "-1", "x"]),
    (&["threshold"], &["0", "1", "3", "2-0", "-1", "x"]),
    (&["channel", "shardchannel", "event"], &["news", "sport", "a", "command"]),
    (&["pattern", "library-name-pattern"], &["*", "n*", "a", "[a-c]", "?", "\\"]),
    (&["prefix"], &["", "a", "b", "ab", "c"]),
    (&["client-id"], &["@client", "@client", "@client", "99999", "0", "-1", "x"]),
    (&["username"], &["ann", "bob", "default", "nobody"]),
    (&["password"], &["secret", "wrong", ""]),
    (&["rule"], RULES),
    (&["protover"], &["2", "3", "3", "1", "x"]),
    (&["connection-name", "clientname", "libname", "libver"], &["ann", "bob", "a b", ""]),
    (&["bits"], &["1", "8", "4097", "0", "x"]),
    (&["category"], &["read", "write", "nosuch"]),
    (&["command", "command-name"], &["get", "set", "xadd", "nosuch", "config", "client|kill"]),
    (&["script"], SCRIPTS),
    (&["sha1"], &["@sha", "@sha", "ffffffffffffffffffffffffffffffffffffffff", "x"]),
    (&["function-code"], LIBRARIES),
    (&["function"], &["f1", "f2", "nosuch"]),
    (&["library-name"], &["lib1", "lib2", "nosuch"]),
    (&["parameter"], &["hash-max-listpack-entries", "timeout", "nosuch", "maxmemory*"]),
    (&["serialized-value"], &["@payload", "@payload", "@payload", "x", ""]),
    (&["frequency"], &["0", "5", "255", "256", "-1", "x"]),
    (&["ttl"], &["0", "0", "100000", "-1", "x"]),
    (&["encoding"], &["u8", "i8", "u1", "i64", "u63", "u64", "i5", "x"]),
    (&["offset"], &["0", "1", "2", "7", "100", "#1", "-1", "x", "9223372036854775807"]),
    (&["bit"], &["0", "1", "2", "x"]),
    (&["longitude"], &["13.361389", "15.087269", "-180", "180", "181", "x"]),
    (&["latitude"], &["38.115556", "37.502669", "-85.05", "85.06", "x"]),
    (&["radius", "width", "height"], &["200", "1", "0", "100000", "-1", "x"]),
    // DECODE of a truncated sketch shows bytes after it in Redis's memory.
    (&["subcommand"], &["GETREG", "ENCODING", "TODENSE", "x"]),
    (&["section"], &["keyspace", "nosuch"]),
    (&["seconds"], &["100000", "100000", "100000", "-1", "0", "x", "9223372036854775807"]),
    (&["milliseconds"], &["10000000", "10000000", "10000000", "-1", "0", "x", "9223372036854775807"]),
    // No moment that has passed: SET with one leaves a key that Redis removes when it meets it, and we at once.
    (&["unix-time-seconds"], &["32503680000", "32503680000", "-1", "x", "9223372036854775807"]),
    (&["unix-time-milliseconds"], &["32503680000000", "32503680000000", "-1", "x", "9223372036854775807"]),
];

/// Ids of streams, in addition to those of entries.
const IDS: &[&str] =
    &["0", "-", "+", "$", ">", "0-0", "5", "7-*", "(5-0", "18446744073709551615-18446744073709551615", "x"];

const RULES: &[&str] = &[
    "on",
    "off",
    "+@all",
    "-@all",
    "+get",
    "-set",
    "+@read",
    "-@write",
    "~*",
    "~a",
    "%R~b",
    "%W~c",
    "&*",
    "&n*",
    "nopass",
    ">secret",
    "<secret",
    "resetpass",
    "resetkeys",
    "resetchannels",
    "reset",
    "allkeys",
    "allchannels",
    "(+get ~d)",
    "clearselectors",
    "+config|get",
    "-client|kill",
    "+nosuch",
    "%X~a",
    "x",
];

const SCRIPTS: &[&str] = &[
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "redis.setresp(3) return redis.pcall(unpack(ARGV))",
    "return {KEYS, ARGV}",
    "for i = 1, #KEYS do redis.pcall('SET', KEYS[i], i) redis.pcall('RPUSH', KEYS[i], i) end return #KEYS",
    "return {1.5, true, false, {ok = 'x'}, {double = 1.5}}",
    "#!lua flags=no-writes\nreturn redis.call('SET', 'a', 1)",
    "return {err = ARGV[1]}",
    "error(ARGV[1])",
    "return cjson.encode({KEYS, ARGV})",
    "return (",
];

const LIBRARIES: &[&str] = &[
    "#!lua name=lib1\nredis.register_function('f1', function(keys, args) return redis.call(unpack(args)) end)",
    "#!lua name=lib1\nredis.register_function{function_name='f1', \
     callback=function(k, a) return k end, flags={'no-writes'}}",
    "#!lua name=lib2\nredis.register_function('f2', function(keys, args) return redis.pcall('SET', keys[1], 1) end)",
    "#!lua name=lib2\nredis.register_function('f1', function() return 1 end)",
    "#!lua name=lib1\nreturn (",
    "x",
];

/// The names of keys.
pub(crate) const KEYS: &[&str] = &["a", "b", "c", "d", "e"];

const NUMBERS: &[&str] =
    &["0", "1", "2", "3", "-1", "-2", "10", "1.5", "-0.5", "1e3", "inf", "-inf", "x", "9223372036854775807"];

/// Without numbers of which Redis reads only the first digits when it searches for keys (tracking).
const COUNTS_OF_KEYS: &[&str] = &["0", "1", "2", "3", "-1", "x"];

const BOUNDS: &[&str] = &["-inf", "+inf", "(1", "1", "2", "0", "-1", "-2", "[a", "(b", "[c", "-", "+", "(x"];

const TEXTS: &[&str] =
    &["a", "b", "c", "d", "", "7", "3.5", "a longer word, one that is not kept in a number", "@long"];

/// The length of a long text in bytes: more than the limits of a packed element, of a node of a list, and of a packet.
const LONG: &[usize] = &[65, 600, 5000, 70_000];

/// The number of returned words of a kind that are kept.
const KEPT: usize = 8;

/// The words, and those that came back.
pub(crate) struct Vocabulary {
    chance: fastrand::Rng,
    /// The numbers of the clients, and how many words of one kind came by: ids ascend with it.
    pub(crate) clients: Vec<String>,
    steps: u64,
    ids: Vec<Vec<u8>>,
    payloads: Vec<Vec<u8>>,
    hashes: Vec<Vec<u8>>,
}

impl Vocabulary {
    pub(crate) fn new(seed: u64) -> Vocabulary {
        let chance = fastrand::Rng::with_seed(seed);
        Vocabulary { chance, clients: Vec::new(), steps: 0, ids: Vec::new(), payloads: Vec::new(), hashes: Vec::new() }
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.chance.usize(..bound)
    }

    /// One of these.
    pub(crate) fn pick<'w, T>(&mut self, of: &'w [T]) -> &'w T {
        &of[self.below(of.len())]
    }

    /// Keeps what came back to a request of that command, to be used again.
    pub(crate) fn keep(&mut self, command: &str, word: &[u8]) {
        let kept = match command {
            "xadd" => &mut self.ids,
            "dump" | "function|dump" => &mut self.payloads,
            "script|load" => &mut self.hashes,
            _ => return,
        };
        kept.push(word.to_vec());
        if kept.len() > KEPT {
            kept.remove(0);
        }
    }

    /// A word in the place of that of a sample of a command, by its full name.
    pub(crate) fn instead_of(&mut self, command: &str, word: &Word) -> Vec<u8> {
        let is_stream = command.starts_with('x');
        let name = word.argument.as_str();
        match word.role {
            Role::Literal => word.bytes.clone(),
            Role::Key => self.named("key"),
            _ if command == "xadd" && name == "id" => self.named("next-id"),
            _ if is_stream && matches!(name, "id" | "start" | "end" | "last-id" | "max-deleted-id") => self.id(),
            _ if BY_NAME.iter().any(|(names, _)| names.contains(&name)) => self.named(name),
            Role::KeyCount if self.below(8) > 0 => word.bytes.clone(),
            Role::KeyCount => self.mostly(word, COUNTS_OF_KEYS),
            Role::Number => self.mostly(word, NUMBERS),
            Role::Bound => self.mostly(word, BOUNDS),
            _ => self.mostly(word, TEXTS),
        }
    }

    fn mostly(&mut self, word: &Word, others: &[&str]) -> Vec<u8> {
        if self.below(3) == 0 {
            return word.bytes.clone();
        }
        let other = *self.pick(others);
        self.meant(other)
    }

    /// A word for an argument of that name.
    pub(crate) fn named(&mut self, name: &str) -> Vec<u8> {
        let known = match name {
            "key" => Some(KEYS),
            "text" => Some(TEXTS),
            // A script returns the elements of a map in random order.
            "calling" => Some(&SCRIPTS[..2]),
            "number" => Some(NUMBERS),
            "next-id" => return self.next_id(),
            "id" => return self.id(),
            _ => BY_NAME.iter().find(|(names, _)| names.contains(&name)).map(|(_, words)| *words),
        };
        let word = *self.pick(known.unwrap_or_else(|| panic!("no words for {name}")));
        self.meant(word)
    }

    /// The text that a word of the lists above represents.
    fn meant(&mut self, word: &str) -> Vec<u8> {
        match word {
            "@long" => vec![b'l'; *self.pick(LONG)],
            "@client" => self.pick(&self.clients.clone()).as_bytes().to_vec(),
            "@payload" => self.again(|words| &words.payloads, b"no payload yet"),
            "@sha" => self.again(|words| &words.hashes, b"no script yet"),
            word => word.as_bytes().to_vec(),
        }
    }

    fn again(&mut self, kept: fn(&Vocabulary) -> &Vec<Vec<u8>>, otherwise: &[u8]) -> Vec<u8> {
        let count = kept(self).len();
        if count == 0 {
            return otherwise.to_vec();
        }
        let place = self.below(count);
        kept(self)[place].clone()
    }

    fn id(&mut self) -> Vec<u8> {
        if self.below(2) == 0 { self.again(|words| &words.ids, b"1-1") } else { self.pick(IDS).as_bytes().to_vec() }
    }

    /// An id for a new entry. Which one Redis makes from the time is not the same twice.
    fn next_id(&mut self) -> Vec<u8> {
        self.steps += 1;
        match self.below(8) {
            0 => self.id(),
            1 => format!("{}-*", self.steps).into_bytes(),
            2 => format!("{}", self.steps).into_bytes(),
            _ => format!("{}-{}", self.steps, self.steps % 3).into_bytes(),
        }
    }
}
