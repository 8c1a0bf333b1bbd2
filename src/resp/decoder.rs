//! The decoder of replies: finds them in the bytes that a server sends, RESP2 and RESP3 alike.
//!
//! The in-process client of the test kit reads its replies with it, so it is on the path of every direct call; the
//! journal prints replies with it. A [`Frame`] borrows its strings from the bytes; only frames with elements allocate.
//!
//! Nesting costs no stack: incomplete aggregates are in a list, at most [`DEEPEST`] of them. Memory is reserved for a
//! few elements at most, whatever count the bytes claim, and arithmetic on lengths is checked.
//!
//! Both versions are read at once, as nothing in one means something else in the other: each has its own form of null.
//! Attributes are read and dropped. Maps and sets keep the order and the repetitions that were sent.
//!
//! Not here: aggregates and strings of unknown length (`$?`, `*?`), which no Redis sends. Strict where the protocol
//! is: a string ends with CRLF, a null and a boolean hold nothing else, and an integer is written in one way only.
//! The digits of a big number are not checked, since a script may send any text there.
//!
//! Source: the RESP specification. `tests/fuzz/replies.rs` compares it with another decoder.

use memchr::memchr;
use thiserror::Error;

use crate::value::number::parse_i64;

/// The deepest nesting of aggregates that is read: a reply is compared, shown and dropped by recursion later on.
pub const DEEPEST: usize = 1024;
/// The length of a line that is searched byte by byte.
const SHORT_LINE_BYTES: usize = 4;
/// The most elements for which room is made before they have arrived.
const RESERVED_ELEMENTS: usize = 16;

/// A reply, with its strings in the bytes that were received.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'b> {
    /// Null: `_`.
    Null,
    /// Null in place of a bulk string: `$-1`.
    NullBytes,
    /// Null in place of an array: `*-1`.
    NullArray,
    /// A simple string: `+`.
    Status(&'b [u8]),
    /// An error: `-`, or `!`, which may have more than one line.
    Error(&'b [u8]),
    /// A bulk string: `$`.
    Bytes(&'b [u8]),
    /// A verbatim string: `=`, with its format of three letters, a colon, and the text.
    Verbatim(&'b [u8]),
    /// An integer: `:`.
    Integer(i64),
    /// A double: `,`, which may be infinite or not a number.
    Double(f64),
    /// A boolean: `#`.
    Boolean(bool),
    /// A big number: `(`, with the text of its digits.
    BigNumber(&'b [u8]),
    /// An array: `*`.
    Array(Vec<Frame<'b>>),
    /// A map: `%`, keys and values alternate.
    Map(Vec<Frame<'b>>),
    /// A set: `~`.
    Set(Vec<Frame<'b>>),
    /// A push message: `>`.
    Push(Vec<Frame<'b>>),
}

/// The reason why bytes are not the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes violate the protocol.
    #[error("the reply breaks the protocol")]
    Malformed,
    /// More than [`DEEPEST`] aggregates are nested.
    #[error("the reply nests more than {DEEPEST} deep")]
    TooDeep,
}

/// The kind of aggregate whose elements are being read.
#[derive(Clone, Copy)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
    Attributes,
}

/// The part of a reply that one line begins, with the string behind it if it has one.
enum Part<'b> {
    Whole(Frame<'b>),
    Open(Kind, usize),
}

/// An aggregate whose elements have not all arrived.
struct Open<'b> {
    kind: Kind,
    missing: usize,
    items: Vec<Frame<'b>>,
}

impl<'b> Open<'b> {
    fn new(kind: Kind, missing: usize) -> Open<'b> {
        Open { kind, missing, items: Vec::with_capacity(missing.min(RESERVED_ELEMENTS)) }
    }

    /// The finished frame; none for attributes.
    fn close(self) -> Option<Frame<'b>> {
        match self.kind {
            Kind::Array => Some(Frame::Array(self.items)),
            Kind::Map => Some(Frame::Map(self.items)),
            Kind::Set => Some(Frame::Set(self.items)),
            Kind::Push => Some(Frame::Push(self.items)),
            Kind::Attributes => None,
        }
    }
}

impl<'b> Frame<'b> {
    /// The first reply in `bytes` and its length, or `None` if it is not complete.
    ///
    /// ```
    /// use dunlin::resp::Frame;
    ///
    /// assert_eq!(Frame::decode(b"$2\r\nhi\r\n:1\r\n"), Ok(Some((Frame::Bytes(b"hi"), 8))));
    /// assert_eq!(Frame::decode(b"*2\r\n:1\r\n"), Ok(None));
    /// assert!(Frame::decode(b"hi\r\n").is_err());
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] if no further bytes can make these a reply.
    // Inlined, so that its caller has the parts of the frame in registers: a copy would take longer than the rest.
    #[inline(always)]
    pub fn decode(bytes: &'b [u8]) -> Result<Option<(Frame<'b>, usize)>, DecodeError> {
        let mut reader = Reader { bytes, at: 0 };
        let Some(&mark) = bytes.first() else { return Ok(None) };
        if AGGREGATES[usize::from(mark)] {
            return reader.first_aggregate();
        }
        let Some(frame) = reader.scalar(mark)? else { return Ok(None) };
        Ok(Some((frame, reader.at)))
    }

    /// The string in `bytes` if they are one whole bulk string and nothing else, as the replies of most calls are. To
    /// move a [`Frame`] to where it is used takes longer than to read it.
    ///
    /// ```
    /// use dunlin::resp::Frame;
    ///
    /// assert_eq!(Frame::only_string(b"$2\r\nhi\r\n"), Some(&b"hi"[..]));
    /// assert_eq!(Frame::only_string(b"$2\r\nhi\r\n:1\r\n"), None);
    /// ```
    #[inline]
    pub fn only_string(bytes: &'b [u8]) -> Option<&'b [u8]> {
        bytes.strip_prefix(b"$")?;
        let mut reader = Reader { bytes, at: 0 };
        let length = reader.line()?;
        let string = reader.string(length).ok()??;
        (reader.at == bytes.len()).then_some(string)
    }

    /// The line in `bytes`, without its first byte, if they are one line and nothing else.
    ///
    /// ```
    /// use dunlin::resp::Frame;
    ///
    /// assert_eq!(Frame::only_line(b"+OK\r\n"), Some(&b"OK"[..]));
    /// assert_eq!(Frame::only_line(b"+OK\r\n:1\r\n"), None);
    /// ```
    #[inline]
    pub fn only_line(bytes: &'b [u8]) -> Option<&'b [u8]> {
        let mut reader = Reader { bytes, at: 0 };
        let line = reader.line()?;
        (reader.at == bytes.len()).then_some(line)
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    /// Reads the aggregate that the bytes begin with.
    #[inline(never)]
    fn first_aggregate(&mut self) -> Result<Option<(Frame<'b>, usize)>, DecodeError> {
        match self.part()? {
            None => Ok(None),
            Some(Part::Whole(frame)) => Ok(Some((frame, self.at))),
            Some(Part::Open(kind, count)) => self.aggregate(Open::new(kind, count)),
        }
    }

    /// Reads until the frame that `first` begins is complete.
    fn aggregate(&mut self, first: Open<'b>) -> Result<Option<(Frame<'b>, usize)>, DecodeError> {
        let mut open = vec![first];
        loop {
            // A complete aggregate becomes an element of the one around it, which may be complete by that.
            while let Some(done) = open.pop_if(|last| last.missing == 0) {
                let Some(frame) = done.close() else { continue };
                match open.last_mut() {
                    Some(outer) => outer.add(frame),
                    None => return Ok(Some((frame, self.at))),
                }
            }
            match self.part()? {
                None => return Ok(None),
                Some(Part::Open(..)) if open.len() == DEEPEST => return Err(DecodeError::TooDeep),
                Some(Part::Open(kind, count)) => open.push(Open::new(kind, count)),
                Some(Part::Whole(frame)) => match open.last_mut() {
                    Some(outer) => outer.add(frame),
                    // Only attributes were open, and they have been read.
                    None => return Ok(Some((frame, self.at))),
                },
            }
        }
    }

    /// Reads a whole reply without elements, or the line that begins an aggregate.
    fn part(&mut self) -> Result<Option<Part<'b>>, DecodeError> {
        let Some(&mark) = self.bytes.get(self.at) else { return Ok(None) };
        if AGGREGATES[usize::from(mark)] { self.open(mark) } else { Ok(self.scalar(mark)?.map(Part::Whole)) }
    }

    /// Reads a reply without elements, which begins with `mark`.
    #[inline(always)]
    fn scalar(&mut self, mark: u8) -> Result<Option<Frame<'b>>, DecodeError> {
        if !SCALARS[usize::from(mark)] {
            return Err(DecodeError::Malformed);
        }
        let Some(line) = self.line() else { return Ok(None) };
        let frame = match mark {
            b'$' if line == b"-1" => Frame::NullBytes,
            b'$' | b'=' | b'!' => {
                let Some(data) = self.string(line)? else { return Ok(None) };
                match mark {
                    b'$' => Frame::Bytes(data),
                    b'!' => Frame::Error(data),
                    _ if data.get(3) == Some(&b':') => Frame::Verbatim(data),
                    _ => return Err(DecodeError::Malformed),
                }
            }
            b'+' => Frame::Status(line),
            b':' => Frame::Integer(parse_i64(line).ok_or(DecodeError::Malformed)?),
            b'_' if line.is_empty() => Frame::Null,
            b'-' => Frame::Error(line),
            b',' => Frame::Double(double(line)?),
            b'#' if line == b"t" => Frame::Boolean(true),
            b'#' if line == b"f" => Frame::Boolean(false),
            b'(' => Frame::BigNumber(line),
            _ => return Err(DecodeError::Malformed),
        };
        Ok(Some(frame))
    }

    /// Reads the line that begins an aggregate.
    fn open(&mut self, mark: u8) -> Result<Option<Part<'b>>, DecodeError> {
        let Some(line) = self.line() else { return Ok(None) };
        let (kind, parts) = match mark {
            b'*' if line == b"-1" => return Ok(Some(Part::Whole(Frame::NullArray))),
            b'*' => (Kind::Array, 1),
            b'~' => (Kind::Set, 1),
            b'>' => (Kind::Push, 1),
            b'%' => (Kind::Map, 2),
            _ => (Kind::Attributes, 2),
        };
        let elements = count(line)?.checked_mul(parts).ok_or(DecodeError::Malformed)?;
        Ok(Some(Part::Open(kind, elements)))
    }

    /// Reads a line: returns the bytes between its first byte and its CRLF.
    #[inline]
    fn line(&mut self) -> Option<&'b [u8]> {
        let rest = self.bytes.get(self.at + 1..)?;
        let mut from = 0;
        loop {
            let end = from + end_of_line(&rest[from..])?;
            match rest.get(end + 1)? {
                b'\n' => {
                    self.at += end + 3;
                    return Some(&rest[..end]);
                }
                _ => from = end + 1,
            }
        }
    }

    /// Reads the string whose length is in `line`.
    #[inline]
    fn string(&mut self, line: &[u8]) -> Result<Option<&'b [u8]>, DecodeError> {
        let end = self.at.checked_add(count(line)?).ok_or(DecodeError::Malformed)?;
        let Some(data) = self.bytes.get(self.at..end) else { return Ok(None) };
        match &self.bytes[end..] {
            [b'\r', b'\n', ..] => {
                self.at = end + 2;
                Ok(Some(data))
            }
            [] | [b'\r'] => Ok(None),
            _ => Err(DecodeError::Malformed),
        }
    }
}

impl<'b> Open<'b> {
    fn add(&mut self, frame: Frame<'b>) {
        self.missing -= 1;
        self.items.push(frame);
    }
}

/// The place of the first CR. Most lines are a few digits, for which a call of `memchr` takes longer than a look.
#[inline]
fn end_of_line(bytes: &[u8]) -> Option<usize> {
    let short = bytes.iter().take(SHORT_LINE_BYTES).position(|&byte| byte == b'\r');
    short.or_else(|| memchr(b'\r', bytes))
}

/// For each byte, whether a reply without elements may begin with it.
const SCALARS: [bool; 256] = marks(b"$+:_-,#(=!");
/// For each byte, whether an aggregate may begin with it.
const AGGREGATES: [bool; 256] = marks(b"*%~>|");

/// For each byte, whether it is one of these.
const fn marks(marks: &[u8]) -> [bool; 256] {
    let (mut are_marks, mut index) = ([false; 256], 0);
    while index < marks.len() {
        are_marks[marks[index] as usize] = true;
        index += 1;
    }
    are_marks
}

#[inline]
fn count(line: &[u8]) -> Result<usize, DecodeError> {
    parse_i64(line).and_then(|count| usize::try_from(count).ok()).ok_or(DecodeError::Malformed)
}

fn double(line: &[u8]) -> Result<f64, DecodeError> {
    str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or(DecodeError::Malformed)
}

#[cfg(test)]
mod tests;
