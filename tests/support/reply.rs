//! Decodes RESP2 and RESP3 replies strictly, and writes them as an interactive redis-cli would.
//!
//! It shares no code with the server under test: a mistake in the server's own writer must not be hidden by the same
//! mistake here. The text keeps apart what redis-cli mixes up: a null bulk is `(nil)` and a null array `(nil array)`, a
//! simple string has no quotes and a bulk string has, a verbatim string names its format.

use super::words::quote;

/// The protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

/// One decoded reply; numbers stay in the text that the server chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    BulkError(Vec<u8>),
    Integer(String),
    Double(String),
    BigNumber(String),
    Boolean(bool),
    Bulk(Vec<u8>),
    Verbatim(Vec<u8>),
    Null,
    NullBulk,
    NullArray,
    Array(Vec<Reply>),
    Set(Vec<Reply>),
    Push(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    Attribute(Vec<(Reply, Reply)>),
}

/// Why no reply could be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undecoded {
    /// The bytes so far are the beginning of a reply.
    Incomplete,
    /// The bytes break the protocol, for the reason given.
    Malformed(String),
}

type Decoded<T> = Result<T, Undecoded>;

/// Decodes the first reply in `bytes`; gives it with the number of bytes it took.
pub(crate) fn decode(bytes: &[u8]) -> Decoded<(Reply, usize)> {
    let mut decoder = Decoder { bytes, at: 0 };
    let reply = decoder.reply()?;
    Ok((reply, decoder.at))
}

struct Decoder<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Decoder<'b> {
    fn reply(&mut self) -> Decoded<Reply> {
        let kind = *self.bytes.get(self.at).ok_or(Undecoded::Incomplete)?;
        self.at += 1;
        let line = self.line()?;
        Ok(match kind {
            b'+' => Reply::Simple(line.to_vec()),
            b'-' => Reply::Error(line.to_vec()),
            b':' => Reply::Integer(integer(line)?.to_string()),
            b',' => Reply::Double(text(line)?),
            b'(' => Reply::BigNumber(text(line)?),
            b'#' if line == b"t" => Reply::Boolean(true),
            b'#' if line == b"f" => Reply::Boolean(false),
            b'_' if line.is_empty() => Reply::Null,
            b'$' if line == b"-1" => Reply::NullBulk,
            b'*' if line == b"-1" => Reply::NullArray,
            b'$' => Reply::Bulk(self.body(line)?),
            b'=' => Reply::Verbatim(self.body(line)?),
            b'!' => Reply::BulkError(self.body(line)?),
            b'*' => Reply::Array(self.elements(line)?),
            b'~' => Reply::Set(self.elements(line)?),
            b'>' => Reply::Push(self.elements(line)?),
            b'%' => Reply::Map(self.pairs(line)?),
            b'|' => Reply::Attribute(self.pairs(line)?),
            _ => return Err(malformed("a reply cannot start so", &self.bytes[self.at - line.len() - 3..])),
        })
    }

    /// The rest of this line, without its CRLF.
    fn line(&mut self) -> Decoded<&'b [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\r' || byte == b'\n').ok_or(Undecoded::Incomplete)?;
        match &rest[end..] {
            [b'\r'] => Err(Undecoded::Incomplete),
            [b'\r', b'\n', ..] => {
                self.at += end + 2;
                Ok(&rest[..end])
            }
            _ => Err(malformed("a line must end with CRLF", rest)),
        }
    }

    fn body(&mut self, length: &[u8]) -> Decoded<Vec<u8>> {
        let length = size(length)?;
        let rest = &self.bytes[self.at..];
        if rest.len() < length + 2 {
            return Err(Undecoded::Incomplete);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return Err(malformed("a bulk must end with CRLF", rest));
        }
        self.at += length + 2;
        Ok(rest[..length].to_vec())
    }

    fn elements(&mut self, count: &[u8]) -> Decoded<Vec<Reply>> {
        (0..size(count)?).map(|_| self.reply()).collect()
    }

    fn pairs(&mut self, count: &[u8]) -> Decoded<Vec<(Reply, Reply)>> {
        (0..size(count)?).map(|_| Ok((self.reply()?, self.reply()?))).collect()
    }
}

fn malformed(reason: &str, bytes: &[u8]) -> Undecoded {
    Undecoded::Malformed(format!("{reason}: {}", quote(&bytes[..bytes.len().min(60)])))
}

fn text(line: &[u8]) -> Decoded<String> {
    match std::str::from_utf8(line) {
        Ok(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(malformed("not a number", line)),
    }
}

/// A number in its one right form: no sign but `-`, no leading zeros.
fn integer(line: &[u8]) -> Decoded<i64> {
    let written = text(line)?;
    match written.parse::<i64>() {
        Ok(number) if number.to_string() == written => Ok(number),
        _ => Err(malformed("not an integer", line)),
    }
}

fn size(line: &[u8]) -> Decoded<usize> {
    usize::try_from(integer(line)?).map_err(|_| malformed("a negative length", line))
}

/// In which order the elements of a reply are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In the order in which they arrived.
    Given,
    /// The elements of the reply sorted.
    Sorted,
    /// The reply as it came, the elements of each aggregate in it sorted.
    InnerSorted,
}

/// The lines that represent `reply` on a connection that uses `protocol`.
pub(crate) fn render(reply: &Reply, protocol: Protocol, order: Order) -> Vec<String> {
    match reply {
        Reply::Array(items) => elements(items, ") ", "(empty array)", protocol, order),
        Reply::Set(items) => elements(items, "~ ", "(empty set)", protocol, order),
        Reply::Push(items) => elements(items, "> ", "(empty push)", protocol, order),
        Reply::Map(items) => pairs(items, "# ", "(empty hash)", protocol, order),
        Reply::Attribute(items) => pairs(items, "| ", "(empty attribute)", protocol, order),
        leaf => vec![render_leaf(leaf, protocol)],
    }
}

fn render_leaf(reply: &Reply, protocol: Protocol) -> String {
    match reply {
        Reply::Simple(text) if text.is_empty() => "(empty simple string)".to_owned(),
        Reply::Simple(text) => plain(text),
        Reply::Error(text) => format!("(error) {}", plain(text)),
        Reply::BulkError(text) => format!("(bulk error) {}", quote(text)),
        Reply::Integer(number) => format!("(integer) {number}"),
        Reply::Double(number) => format!("(double) {number}"),
        Reply::BigNumber(number) => format!("(big number) {number}"),
        Reply::Boolean(value) => format!("({value})"),
        Reply::Bulk(bytes) => quote(bytes),
        Reply::Verbatim(bytes) if bytes.get(3) == Some(&b':') => {
            format!("(verbatim {}) {}", plain(&bytes[..3]), quote(&bytes[4..]))
        }
        Reply::Verbatim(bytes) => format!("(verbatim without format) {}", quote(bytes)),
        Reply::Null if protocol == Protocol::Resp3 => "(nil)".to_owned(),
        Reply::NullBulk if protocol == Protocol::Resp2 => "(nil)".to_owned(),
        Reply::Null => "(null)".to_owned(),
        Reply::NullBulk => "(nil bulk)".to_owned(),
        _ => "(nil array)".to_owned(),
    }
}

/// Text without quotes: what cannot be seen is escaped, a space at the end too.
fn plain(text: &[u8]) -> String {
    let shown: String = text
        .iter()
        .map(|&byte| match byte {
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        })
        .collect();
    match shown.strip_suffix(' ') {
        Some(start) => format!("{start}\\x20"),
        None => shown,
    }
}

fn elements(items: &[Reply], mark: &str, empty: &str, protocol: Protocol, order: Order) -> Vec<String> {
    numbered(items.iter().map(|item| render(item, protocol, inner(order))).collect(), mark, empty, order)
}

fn pairs(items: &[(Reply, Reply)], mark: &str, empty: &str, protocol: Protocol, order: Order) -> Vec<String> {
    let blocks = items.iter().map(|(key, value)| {
        let mut lines = render(key, protocol, inner(order));
        let mut value = render(value, protocol, inner(order)).into_iter();
        if let (Some(last), Some(first)) = (lines.last_mut(), value.next()) {
            last.push_str(" => ");
            last.push_str(&first);
        }
        lines.extend(value);
        lines
    });
    numbered(blocks.collect(), mark, empty, order)
}

fn inner(order: Order) -> Order {
    match order {
        Order::InnerSorted => Order::Sorted,
        _ => Order::Given,
    }
}

fn numbered(mut blocks: Vec<Vec<String>>, mark: &str, empty: &str, order: Order) -> Vec<String> {
    if blocks.is_empty() {
        return vec![empty.to_owned()];
    }
    if order == Order::Sorted {
        blocks.sort();
    }
    let width = blocks.len().to_string().len();
    let mut lines = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        for (row, line) in block.into_iter().enumerate() {
            match row {
                0 => lines.push(format!("{:>width$}{mark}{line}", index + 1)),
                _ => lines.push(format!("{:indent$}{line}", "", indent = width + mark.len())),
            }
        }
    }
    lines
}
