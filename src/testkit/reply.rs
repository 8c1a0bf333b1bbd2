//! Replies, as a test reads them.

use std::borrow::Cow;
use std::fmt::{self, Display};

use crate::resp::{DecodeError, Frame, write_escaped};
use crate::value::number::parse_i64;

/// A reply of the server.
///
/// It can be compared with an expected value: `reply == "text"`, `reply == 7`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Null: no such key, no such element; or the client has switched replies off.
    Null,
    /// A status, such as `OK`.
    Status(String),
    /// A string of any bytes.
    Bytes(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// An integer of any size, in decimal digits.
    BigNumber(String),
    /// An error inside of another reply; an error that is the whole reply is a [`CallError`](super::CallError).
    Error(String),
    /// An array: replies in order.
    Array(Vec<Reply>),
    /// A map: keys with their values, in the order in which they were sent.
    Map(Vec<(Reply, Reply)>),
    /// A set: replies without duplicates.
    Set(Vec<Reply>),
    /// A push: a message that is no reply to a command.
    Push(Vec<Reply>),
}

/// The format of a verbatim string and its colon.
const FORMAT_BYTES: usize = 4;

impl Reply {
    /// Decodes the first reply in `bytes`, and returns it with the remaining bytes; `None` if it is not complete.
    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<(Reply, &[u8])>, DecodeError> {
        let decoded = Frame::decode(bytes)?;
        Ok(decoded.map(|(frame, length)| (Reply::of(frame), bytes.get(length..).unwrap_or_default())))
    }

    /// The reply in `bytes` if they are one string, status, integer or null and nothing else, as the replies of most
    /// calls are. It is made without a [`Frame`], whose way through the memory takes longer than the decoding.
    #[inline(always)]
    pub(super) fn of_simple(bytes: &[u8]) -> Option<Reply> {
        match bytes.first()? {
            b'$' => Frame::only_string(bytes).map(|string| Reply::Bytes(string.to_vec())),
            b'+' => Frame::only_line(bytes).map(|line| Reply::Status(text(line))),
            b':' => Frame::only_line(bytes).and_then(parse_i64).map(Reply::Integer),
            b'_' => Frame::only_line(bytes).filter(|line| line.is_empty()).map(|_| Reply::Null),
            _ => None,
        }
    }

    /// Converts a decoded reply. Inlined but for aggregates, as [`Frame::decode`] is: copies of a reply would take
    /// longer than its decoding.
    #[inline(always)]
    pub(super) fn of(frame: Frame<'_>) -> Reply {
        match frame {
            Frame::Null | Frame::NullBytes | Frame::NullArray => Reply::Null,
            Frame::Status(data) => Reply::Status(text(data)),
            Frame::Error(data) => Reply::Error(text(data)),
            Frame::Bytes(data) => Reply::Bytes(data.to_vec()),
            Frame::Verbatim(data) => Reply::Bytes(data.get(FORMAT_BYTES..).unwrap_or_default().to_vec()),
            Frame::Integer(integer) => Reply::Integer(integer),
            Frame::Double(double) => Reply::Double(double),
            Frame::Boolean(is_true) => Reply::Boolean(is_true),
            Frame::BigNumber(digits) => Reply::BigNumber(text(digits)),
            aggregate => Reply::of_elements(aggregate),
        }
    }

    /// Converts an aggregate with its elements. The recursion is limited: the decoder nests no deeper than
    /// [`resp::DEEPEST`](crate::resp::DEEPEST).
    #[inline(never)]
    fn of_elements(frame: Frame<'_>) -> Reply {
        match frame {
            Frame::Array(frames) => Reply::Array(all(frames)),
            Frame::Set(frames) => Reply::Set(all(frames)),
            Frame::Push(frames) => Reply::Push(all(frames)),
            Frame::Map(frames) => Reply::Map(pairs(frames)),
            scalar => Reply::of(scalar),
        }
    }

    /// Returns the bytes of a string or status.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Reply::Bytes(bytes) => Some(bytes),
            Reply::Status(text) | Reply::BigNumber(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// Returns a string or status as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        self.bytes().map(String::from_utf8_lossy)
    }

    /// Returns the value of an integer.
    pub fn integer(&self) -> Option<i64> {
        if let Reply::Integer(integer) = self { Some(*integer) } else { None }
    }

    /// Returns the elements of an array, set or push message.
    pub fn items(&self) -> Option<&[Reply]> {
        match self {
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => Some(items),
            _ => None,
        }
    }

    /// Returns true for [`Reply::Null`].
    pub fn is_null(&self) -> bool {
        *self == Reply::Null
    }
}

impl Display for Reply {
    /// Writes the reply as redis-cli shows it: with a line for each element.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Null => formatter.write_str("(nil)"),
            Reply::Status(text) => formatter.write_str(text),
            Reply::Bytes(bytes) => write!(formatter, "\"{}\"", escaped(bytes)),
            Reply::Integer(integer) => write!(formatter, "(integer) {integer}"),
            Reply::Double(double) => write!(formatter, "(double) {double}"),
            Reply::Boolean(is_true) => write!(formatter, "({is_true})"),
            Reply::BigNumber(digits) => write!(formatter, "(big number) {digits}"),
            Reply::Error(line) => write!(formatter, "(error) {line}"),
            Reply::Array(items) => write_items(formatter, items, ") ", "(empty array)"),
            Reply::Set(items) => write_items(formatter, items, "~ ", "(empty set)"),
            Reply::Push(items) => write_items(formatter, items, "> ", "(empty push)"),
            Reply::Map(pairs) => {
                let lines: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} => {value}")).collect();
                write_items(formatter, &lines, "# ", "(empty hash)")
            }
        }
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    write_escaped(bytes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn write_items(formatter: &mut fmt::Formatter<'_>, items: &[impl Display], before: &str, none: &str) -> fmt::Result {
    if items.is_empty() {
        return formatter.write_str(none);
    }
    let width = items.len().to_string().len();
    for (place, item) in items.iter().enumerate() {
        let indent = format!("\n{:width$}", "", width = width + before.len());
        let end = if place > 0 { "\n" } else { "" };
        write!(formatter, "{end}{:>width$}{before}{}", place + 1, item.to_string().replace('\n', &indent))?;
    }
    Ok(())
}

impl PartialEq<str> for Reply {
    fn eq(&self, other: &str) -> bool {
        self.bytes() == Some(other.as_bytes())
    }
}

impl PartialEq<&str> for Reply {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl PartialEq<[u8]> for Reply {
    fn eq(&self, other: &[u8]) -> bool {
        self.bytes() == Some(other)
    }
}

impl PartialEq<i64> for Reply {
    fn eq(&self, other: &i64) -> bool {
        self.integer() == Some(*other)
    }
}

fn all(frames: Vec<Frame<'_>>) -> Vec<Reply> {
    frames.into_iter().map(Reply::of).collect()
}

fn pairs(frames: Vec<Frame<'_>>) -> Vec<(Reply, Reply)> {
    let mut replies = frames.into_iter().map(Reply::of);
    std::iter::from_fn(|| replies.next().zip(replies.next())).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reply_is_converted() {
        let bytes = b"*9\r\n+OK\r\n$1\r\na\r\n:-7\r\n,1.5\r\n#t\r\n_\r\n-ERR no\r\n\
            %2\r\n+b\r\n:1\r\n+a\r\n:2\r\n=5\r\ntxt:c\r\n";
        let expected = [
            Reply::Status("OK".to_owned()),
            Reply::Bytes(b"a".to_vec()),
            Reply::Integer(-7),
            Reply::Double(1.5),
            Reply::Boolean(true),
            Reply::Null,
            Reply::Error("ERR no".to_owned()),
            Reply::Map(vec![
                (Reply::Status("b".to_owned()), Reply::Integer(1)),
                (Reply::Status("a".to_owned()), Reply::Integer(2)),
            ]),
            Reply::Bytes(b"c".to_vec()),
        ];
        assert_eq!(Reply::decode(bytes), Ok(Some((Reply::Array(expected.to_vec()), &b""[..]))));
    }

    #[test]
    fn a_reply_is_shown_as_redis_cli_shows_it() {
        let inner = Reply::Array(vec![Reply::Bytes(b"a\"\n".to_vec()), Reply::Null]);
        let map = Reply::Map(vec![(Reply::Status("key".to_owned()), Reply::Double(1.5))]);
        let reply = Reply::Array(vec![Reply::Integer(7), inner, map, Reply::Set(Vec::new())]);
        let expected = "1) (integer) 7\n2) 1) \"a\\\"\\n\"\n   2) (nil)\n3) 1# key => (double) 1.5\n4) (empty set)";
        assert_eq!(reply.to_string(), expected);
    }

    #[test]
    fn a_simple_reply_is_what_the_decoder_makes_of_it() {
        for bytes in [&b"$2\r\nhi\r\n"[..], b"+OK\r\n", b"+a\rb\xff\r\n", b":-7\r\n", b"_\r\n"] {
            let decoded = Reply::decode(bytes);
            assert_eq!(decoded, Ok(Reply::of_simple(bytes).map(|reply| (reply, &b""[..]))));
        }
    }

    #[test]
    fn what_is_more_or_less_than_one_simple_reply_is_left_to_the_decoder() {
        for bytes in
            [&b""[..], b"_", b"_x\r\n", b"_\r\n_\r\n", b":07\r\n", b":7\r", b"+OK\r\n+", b"-ERR no\r\n", b"$-1\r\n"]
        {
            assert_eq!(Reply::of_simple(bytes), None);
        }
    }

    #[test]
    fn the_nulls_of_resp2_are_null() {
        let table: [(&[u8], Reply, &[u8]); 3] = [
            (b"$-1\r\n+x\r\n", Reply::Null, b"+x\r\n"),
            (b"*-1\r\n", Reply::Null, b""),
            (b"*2\r\n$-1\r\n:1\r\n", Reply::Array(vec![Reply::Null, Reply::Integer(1)]), b""),
        ];
        for (bytes, reply, rest) in table {
            assert_eq!(Reply::decode(bytes), Ok(Some((reply, rest))));
        }
        assert_eq!(Reply::decode(b"$5\r\nab"), Ok(None));
    }
}
