//! A server that is asked one request at a time, each from the same start.

use dunlin::engine::Family;

use crate::reply::{self, Reply};
use crate::shape::{Sameness, line};
use crate::words::quote;

/// The data that every request meets, as commands. Each type is there three times, for requests with several keys.
pub(crate) const DATA: &[&[&str]] = &[
    &["MSET", "text", "hello", "text2", "hello", "text3", "hello", "number", "10", "number2", "10", "number3", "10"],
    &["SET", "timed", "10", "PXAT", "40000000000000"],
    &["SET", "timed2", "10", "PXAT", "40000000000000"],
    &["SET", "timed3", "10", "PXAT", "40000000000000"],
    &["ZADD", "zset", "1", "a", "2", "b", "3", "c"],
    &["ZADD", "zset2", "1", "a", "2", "b", "3", "c"],
    &["ZADD", "zset3", "1", "a", "2", "b", "3", "c"],
    &["RPUSH", "list", "element", "pivot", "3", "element"],
    &["RPUSH", "list2", "element", "pivot", "3", "element"],
    &["RPUSH", "list3", "element", "pivot", "3", "element"],
];

/// What a key holds: `timed` is a number with a deadline, `none` is not there.
pub(crate) const TYPES: [&str; 6] = ["text", "number", "timed", "zset", "list", "none"];

/// The type that the commands of a family work on.
pub(crate) fn natural_type(family: Family) -> &'static str {
    match family {
        Family::String => "number",
        Family::List => "list",
        _ => "zset",
    }
}

/// The key of that type for the `nth` key of a request, from 0 on.
pub(crate) fn key(holding: &str, nth: usize) -> String {
    if nth == 0 { holding.to_owned() } else { format!("{holding}{}", nth + 1) }
}

/// How a request is written, and in which protocol it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Resp2,
    Resp3,
    Inline,
}

/// What a server says to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// The server hung up.
    pub(crate) closed: bool,
    /// It may answer later.
    pub(crate) waits: bool,
}

/// Someone who answers requests.
pub(crate) trait Server {
    /// Answers one request, asked by a new client of a server that holds [`DATA`].
    fn answer(&mut self, form: Form, words: &[Vec<u8>]) -> Answer;
    /// Answers one more request of the same client.
    fn next_answer(&mut self, words: &[Vec<u8>]) -> Answer;
}

const YEAR_2500_MS: &str = "16725225600000";

/// What [`state`] tells of a key while nothing but [`DATA`] came.
pub(crate) fn state_at_first(key: &[u8]) -> &'static str {
    match key.strip_suffix(b"2").or(key.strip_suffix(b"3")).unwrap_or(key) {
        b"text" => "\"hello\"",
        b"number" => "\"10\"",
        b"timed" => "\"10\" until 40000000000000",
        b"zset" => "[\"a\" \"1\" \"b\" \"2\" \"c\" \"3\"]",
        b"list" => "[\"element\" \"pivot\" \"3\" \"element\"]",
        _ => "gone",
    }
}

/// What a key holds now, in few words.
pub(crate) fn state(server: &mut dyn Server, key: &[u8]) -> String {
    let mut ask = |words: &[&[u8]]| {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        server.next_answer(&words).line(Sameness::Exact)
    };
    let held = match ask(&[b"TYPE", key]).as_str() {
        "+none" => return "gone".to_owned(),
        "+string" => ask(&[b"GET", key]),
        "+zset" => ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]),
        "+list" => ask(&[b"LRANGE", key, b"0", b"-1"]),
        other => other.to_owned(),
    };
    match ask(&[b"PEXPIRETIME", key]).as_str() {
        "-1" => held,
        // What a request told in full is the same everywhere; what is counted from now on is not.
        far if far.len() >= YEAR_2500_MS.len() => format!("{held} until {far}"),
        _ => format!("{held} for a time"),
    }
}

/// The bytes of a request.
pub(crate) fn encoded(form: Form, words: &[Vec<u8>]) -> Vec<u8> {
    if form == Form::Inline {
        let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
        return format!("{}\r\n", words.join(" ")).into_bytes();
    }
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl Answer {
    /// The answer as one line of text.
    pub(crate) fn line(&self, sameness: Sameness) -> String {
        let mut lines: Vec<String> = self.replies().iter().map(|reply| line(reply, sameness)).collect();
        lines.extend(self.waits.then(|| "(waits)".to_owned()));
        lines.extend(self.closed.then(|| "(closed)".to_owned()));
        if lines.is_empty() { "(silence)".to_owned() } else { lines.join(" then ") }
    }

    pub(crate) fn is_refusal(&self) -> bool {
        self.bytes.first() == Some(&b'-')
    }

    fn replies(&self) -> Vec<Reply> {
        let mut replies = Vec::new();
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let (reply, length) = reply::decode(rest).expect("a server answers in whole, well-formed replies");
            replies.push(reply);
            rest = &rest[length..];
        }
        replies
    }
}
