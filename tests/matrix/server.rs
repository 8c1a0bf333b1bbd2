//! A server that is asked one request at a time, each from the same start.

use dunlin::engine::Family;

use crate::reply::{self, Reply};
use crate::shape::{Sameness, line};
use crate::words::quote;

/// The data that every request meets, as commands. Each type is there three times, for requests with several keys.
pub(crate) const DATA: &[&[&str]] = &[
    &["MSET", "text", "hello", "text2", "hello", "text3", "hello", "number", "10", "number2", "10", "number3", "10"],
    &["ZADD", "zset", "1", "a", "2", "b", "3", "c"],
    &["ZADD", "zset2", "1", "a", "2", "b", "3", "c"],
    &["ZADD", "zset3", "1", "a", "2", "b", "3", "c"],
];

/// What a key holds; `none` is not there.
pub(crate) const TYPES: [&str; 4] = ["text", "number", "zset", "none"];

/// The type that the commands of a family work on.
pub(crate) fn natural_type(family: Family) -> &'static str {
    if family == Family::String { "number" } else { "zset" }
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
