//! The interface of a server that gets one request at a time, each with the same initial data.

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
    &["SADD", "set", "a", "b", "member"],
    &["SADD", "set2", "a", "b", "member"],
    &["SADD", "set3", "a", "b", "member"],
    &["HSET", "hash", "field", "10", "a", "text"],
    &["HSET", "hash2", "field", "10", "a", "text"],
    &["HSET", "hash3", "field", "10", "a", "text"],
    &["XADD", "stream", "1-1", "field", "10"],
    &["XADD", "stream", "2-1", "field", "text"],
    &["XGROUP", "CREATE", "stream", "group", "0"],
    &["XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "STREAMS", "stream", ">"],
    &["COPY", "stream", "stream2"],
    &["COPY", "stream", "stream3"],
    &["VADD", "vectorset", "VALUES", "2", "1", "2", "element", "SETATTR", "{}"],
    &["VADD", "vectorset2", "VALUES", "2", "1", "2", "element", "SETATTR", "{}"],
    &["VADD", "vectorset3", "VALUES", "2", "1", "2", "element", "SETATTR", "{}"],
    // Whether a command is slow depends on the machine: here none is.
    &["CONFIG", "SET", "slowlog-log-slower-than", "-1"],
    &["SLOWLOG", "RESET"],
];

/// The value of a key: `timed` is a number with a deadline, `none` does not exist.
pub(crate) const TYPES: [&str; 10] =
    ["text", "number", "timed", "zset", "list", "set", "hash", "stream", "vectorset", "none"];

/// The type that the commands of a family work on.
pub(crate) fn natural_type(family: Family) -> &'static str {
    match family {
        Family::String => "number",
        Family::List => "list",
        Family::Set => "set",
        Family::Hash => "hash",
        Family::Stream => "stream",
        Family::VectorSet => "vectorset",
        _ => "zset",
    }
}

/// The key of that type for the `nth` key of a request, from 0 on.
pub(crate) fn key(holding: &str, nth: usize) -> String {
    if nth == 0 { holding.to_owned() } else { format!("{holding}{}", nth + 1) }
}

/// The form in which a request is sent, and the protocol of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Resp2,
    Resp3,
    Inline,
}

/// The context in which a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The request alone; its replies come at once.
    Alone,
    /// The request within a transaction, where nothing blocks. The transaction itself undoes a lasting effect: a pause.
    Queued,
    /// The request, followed by a reset of the client: the replies come before that of the reset, whatever the client's
    /// state.
    Reset,
}

impl Manner {
    /// The requests that are sent before and after this one.
    pub(crate) fn around(self) -> (&'static [&'static [&'static str]], &'static [&'static [&'static str]]) {
        match self {
            Manner::Alone => (&[], &[]),
            Manner::Queued => (&[&["MULTI"]], &[&["CLIENT", "UNPAUSE"], &["EXEC"]]),
            Manner::Reset => (&[], &[&["RESET"]]),
        }
    }
}

/// The reply of a server to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// The server hung up.
    pub(crate) closed: bool,
    /// The reply may come later.
    pub(crate) waits: bool,
}

/// The server that gets the requests.
pub(crate) trait Server {
    /// Returns the reply to one request of a new client on a server that has [`DATA`].
    fn answer(&mut self, manner: Manner, form: Form, words: &[Vec<u8>]) -> Answer;
    /// Answers one more request of the same client.
    fn next_answer(&mut self, words: &[Vec<u8>]) -> Answer;
}

const YEAR_2500_MS: &str = "16725225600000";

const STREAM_AT_FIRST: &str = "[[\"1-1\" [\"field\" \"10\"]] [\"2-1\" [\"field\" \"text\"]]] [[\"name\" \"group\" \
    \"consumers\" 1 \"pending\" 1 \"last-delivered-id\" \"1-1\" \"entries-read\" 1 \"lag\" 1]]";

/// The result of [`state`] for a key when only [`DATA`] was sent.
pub(crate) fn state_at_first(key: &[u8]) -> &'static str {
    match key.strip_suffix(b"2").or(key.strip_suffix(b"3")).unwrap_or(key) {
        b"text" => "\"hello\"",
        b"number" => "\"10\"",
        b"timed" => "\"10\" until 40000000000000",
        b"zset" => "[\"a\" \"1\" \"b\" \"2\" \"c\" \"3\"]",
        b"list" => "[\"element\" \"pivot\" \"3\" \"element\"]",
        b"set" => "[\"a\" \"b\" \"member\"]",
        b"hash" => "[\"10\" \"a\" \"field\" \"text\"]",
        b"stream" => STREAM_AT_FIRST,
        b"vectorset" => "[\"element\" \"0.9984313547611237\" \"{}\"]",
        _ => "gone",
    }
}

/// A short description of the current value of a key.
pub(crate) fn state(server: &mut dyn Server, key: &[u8]) -> String {
    let mut ask = |words: &[&[u8]], sameness| line_of(server, words, sameness);
    let held = match ask(&[b"TYPE", key], Sameness::Exact).as_str() {
        "+none" => return "gone".to_owned(),
        "+string" => ask(&[b"GET", key], Sameness::Exact),
        "+zset" => ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], Sameness::Exact),
        "+list" => ask(&[b"LRANGE", key, b"0", b"-1"], Sameness::Exact),
        "+set" => ask(&[b"SMEMBERS", key], Sameness::Unordered),
        "+hash" => {
            let fields = ask(&[b"HGETALL", key], Sameness::Unordered);
            let ends = [b"field".as_slice(), b"a"].map(|field| {
                let end = ask(&[b"HPEXPIRETIME", key, b"FIELDS", b"1", field], Sameness::Exact);
                until(end.trim_matches(['[', ']']))
            });
            format!("{fields}{}", ends.concat())
        }
        "+stream" => {
            let entries = ask(&[b"XRANGE", key, b"-", b"+"], Sameness::Exact);
            format!("{entries} {}", ask(&[b"XINFO", b"GROUPS", key], Sameness::Exact))
        }
        "+vectorset" => {
            ask(&[b"VSIM", key, b"VALUES", b"2", b"1", b"2", b"WITHSCORES", b"WITHATTRIBS"], Sameness::Exact)
        }
        other => other.to_owned(),
    };
    held + &until(&ask(&[b"PEXPIRETIME", key], Sameness::Exact))
}

fn line_of(server: &mut dyn Server, words: &[&[u8]], sameness: Sameness) -> String {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
    server.next_answer(&words).line(sameness)
}

/// The description of a deadline: an absolute one is the same everywhere; one relative to now is not.
fn until(unix_ms: &str) -> String {
    match unix_ms {
        "-1" | "-2" => String::new(),
        far if far.len() >= YEAR_2500_MS.len() => format!(" until {far}"),
        _ => " for a time".to_owned(),
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
    /// The reply as one line of text.
    pub(crate) fn line(&self, sameness: Sameness) -> String {
        let mut lines: Vec<String> = self.replies().iter().map(|reply| line(reply, sameness)).collect();
        lines.extend(self.waits.then(|| "(waits)".to_owned()));
        lines.extend(self.closed.then(|| "(closed)".to_owned()));
        if lines.is_empty() { "(silence)".to_owned() } else { lines.join(" then ") }
    }

    /// The answer to the request alone, without what the manner has put around it. A request that was not queued was
    /// answered at once, any other by EXEC.
    pub(crate) fn within(mut self, manner: Manner) -> Answer {
        const STARTED: &[u8] = b"+OK\r\n";
        const RAN: &[u8] = b"+QUEUED\r\n+QUEUED\r\n*2\r\n";
        const RESET: &[u8] = b"+RESET\r\n";
        let bytes = self.bytes.as_slice();
        let kept = match manner {
            Manner::Alone => bytes,
            Manner::Reset => bytes.strip_suffix(RESET).unwrap_or(bytes),
            Manner::Queued => {
                let rest = bytes.strip_prefix(STARTED).expect("a transaction begins");
                let rest = rest.strip_prefix(RAN).unwrap_or(rest);
                let (_, length) = reply::decode(rest).expect("a request is answered");
                &rest[..length]
            }
        };
        self.bytes = kept.to_vec();
        self
    }

    pub(crate) fn is_null(&self) -> bool {
        [&b"$-1\r\n"[..], b"*-1\r\n", b"_\r\n"].contains(&self.bytes.as_slice())
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
