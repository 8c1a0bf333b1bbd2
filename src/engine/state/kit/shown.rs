//! Replies as text, as the transcripts of this project write them: like redis-cli, but more precisely.
//!
//! The input was written by the server's own writer, for a client or for a script, so an incomplete reply is one that
//! a connection never got whole: it is shown as far as it goes.

use crate::resp::{Protocol, ReplyValue, Values, write_escaped};

/// The lines of a shown reply.
#[derive(Debug)]
enum Shown {
    Line(String),
    /// Elements behind their numbers and this mark; the text if there are none.
    Elements(Vec<Shown>, &'static str, &'static str),
    Pairs(Vec<(Shown, Shown)>),
}

/// The lines of all replies in `bytes`, which were written for a script or for a client.
pub(in crate::engine) fn shown_lines(bytes: &[u8], is_for_script: bool, protocol: Protocol) -> Vec<String> {
    let mut lines = Vec::new();
    if is_for_script {
        let mut values = Values::new(bytes);
        while let Some(shown) = of_value(&mut values) {
            lines.extend(shown.lines());
        }
    } else {
        let mut wire = Wire { rest: bytes, protocol };
        while let Some(shown) = wire.reply() {
            lines.extend(shown.lines());
        }
    }
    lines
}

/// A word in double quotes, unless it needs none.
pub fn quoted(word: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-:.,/*@|+=()".contains(byte);
    let mut text = Vec::new();
    if !word.is_empty() && word.iter().all(is_plain) {
        return String::from_utf8_lossy(word).into_owned();
    }
    text.push(b'"');
    write_escaped(word, &mut text);
    text.push(b'"');
    String::from_utf8_lossy(&text).into_owned()
}

fn in_quotes(bytes: &[u8]) -> Shown {
    let mut text = vec![b'"'];
    write_escaped(bytes, &mut text);
    text.push(b'"');
    Shown::Line(String::from_utf8_lossy(&text).into_owned())
}

/// Text without quotes, with invisible characters and a space at the end escaped.
fn plain(text: &[u8]) -> String {
    let mut shown = String::new();
    for &byte in text {
        match byte {
            b' '..=b'~' => shown.push(char::from(byte)),
            _ => shown.push_str(&format!("\\x{byte:02x}")),
        }
    }
    match shown.strip_suffix(' ') {
        Some(start) => format!("{start}\\x20"),
        None => shown,
    }
}

fn simple(text: &[u8]) -> Shown {
    Shown::Line(if text.is_empty() { "(empty simple string)".to_owned() } else { plain(text) })
}

fn verbatim(bytes: &[u8]) -> Shown {
    let (form, text) = bytes.split_at_checked(4).unwrap_or((b"", bytes));
    let Shown::Line(text) = in_quotes(text) else { return Shown::Line(String::new()) };
    Shown::Line(format!("(verbatim {}) {text}", plain(form.strip_suffix(b":").unwrap_or(form))))
}

fn line(kind: &str, text: &[u8]) -> Shown {
    Shown::Line(format!("({kind}) {}", plain(text)))
}

impl Shown {
    fn lines(self) -> Vec<String> {
        match self {
            Shown::Line(line) => vec![line],
            Shown::Elements(items, mark, empty) => numbered(items.into_iter().map(Shown::lines).collect(), mark, empty),
            Shown::Pairs(pairs) => {
                let block = |(key, value): (Shown, Shown)| {
                    let (mut lines, mut value) = (key.lines(), value.lines().into_iter());
                    if let (Some(last), Some(first)) = (lines.last_mut(), value.next()) {
                        last.push_str(&format!(" => {first}"));
                    }
                    lines.extend(value);
                    lines
                };
                numbered(pairs.into_iter().map(block).collect(), "# ", "(empty hash)")
            }
        }
    }
}

fn numbered(blocks: Vec<Vec<String>>, mark: &str, empty: &str) -> Vec<String> {
    if blocks.is_empty() {
        return vec![empty.to_owned()];
    }
    let width = blocks.len().to_string().len();
    let mut lines = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        for (row, line) in block.into_iter().enumerate() {
            lines.push(match row {
                0 => format!("{:>width$}{mark}{line}", index + 1),
                _ => format!("{:indent$}{line}", "", indent = width + mark.len()),
            });
        }
    }
    lines
}

/// Replies to a client.
struct Wire<'b> {
    rest: &'b [u8],
    protocol: Protocol,
}

impl<'b> Wire<'b> {
    fn reply(&mut self) -> Option<Shown> {
        let (&kind, after) = self.rest.split_first()?;
        self.rest = after;
        let text = self.line()?;
        let is_resp2 = self.protocol == Protocol::Resp2;
        Some(match kind {
            b'+' => simple(text),
            b'-' => line("error", text),
            b':' => line("integer", text),
            b',' => line("double", text),
            b'(' => line("big number", text),
            b'#' => Shown::Line(if text == b"t" { "(true)" } else { "(false)" }.to_owned()),
            b'_' => Shown::Line(if is_resp2 { "(null)" } else { "(nil)" }.to_owned()),
            b'$' if text == b"-1" => Shown::Line(if is_resp2 { "(nil)" } else { "(nil bulk)" }.to_owned()),
            b'*' if text == b"-1" => Shown::Line("(nil array)".to_owned()),
            b'$' => in_quotes(self.body(text)?),
            b'=' => verbatim(self.body(text)?),
            b'*' => self.elements(text, ") ", "(empty array)")?,
            b'~' => self.elements(text, "~ ", "(empty set)")?,
            b'>' => self.elements(text, "> ", "(empty push)")?,
            b'%' | b'|' => {
                let pairs = (0..number(text)?).map(|_| Some((self.reply()?, self.reply()?)));
                Shown::Pairs(pairs.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    fn line(&mut self) -> Option<&'b [u8]> {
        let end = memchr::memmem::find(self.rest, b"\r\n")?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 2..];
        Some(text)
    }

    fn body(&mut self, length: &[u8]) -> Option<&'b [u8]> {
        let (body, rest) = self.rest.split_at_checked(number(length)?)?;
        self.rest = rest.strip_prefix(b"\r\n")?;
        Some(body)
    }

    fn elements(&mut self, count: &[u8], mark: &'static str, empty: &'static str) -> Option<Shown> {
        let items = (0..number(count)?).map(|_| self.reply()).collect::<Option<_>>()?;
        Some(Shown::Elements(items, mark, empty))
    }
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// One reply to a script.
fn of_value(values: &mut Values<'_>) -> Option<Shown> {
    Some(match values.next()? {
        ReplyValue::Integer(integer) => Shown::Line(format!("(integer) {integer}")),
        ReplyValue::Double(double) => Shown::Line(format!("(double) {double}")),
        ReplyValue::Boolean(is_true) => Shown::Line(format!("({is_true})")),
        ReplyValue::Null => Shown::Line("(nil)".to_owned()),
        ReplyValue::Bulk(bytes) => in_quotes(bytes),
        ReplyValue::Simple(text) => simple(text),
        ReplyValue::Error(text) => line("error", text),
        ReplyValue::Verbatim(bytes) => verbatim(bytes),
        ReplyValue::BigNumber(digits) => line("big number", digits),
        ReplyValue::Array(count) => Shown::Elements(of_values(values, count)?, ") ", "(empty array)"),
        ReplyValue::Set(count) => Shown::Elements(of_values(values, count)?, "~ ", "(empty set)"),
        ReplyValue::Map(count) | ReplyValue::Attribute(count) => {
            let pairs = (0..count).map(|_| Some((of_value(values)?, of_value(values)?)));
            Shown::Pairs(pairs.collect::<Option<_>>()?)
        }
    })
}

fn of_values(values: &mut Values<'_>, count: usize) -> Option<Vec<Shown>> {
    (0..count).map(|_| of_value(values)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::Reply;

    fn write(reply: &mut Reply<'_>) {
        reply.array(3);
        reply.integer(-7);
        reply.bulk(b"a\"\n");
        reply.map(1);
        reply.simple("key");
        reply.set(0);
    }

    #[test]
    fn a_script_and_a_client_get_the_same_words_for_a_reply() {
        let (mut wire, mut values) = (Vec::new(), Vec::new());
        write(&mut Reply::new(&mut wire, Protocol::Resp3));
        write(&mut Reply::of_values(&mut values, Protocol::Resp3));
        let expected = ["1) (integer) -7", "2) \"a\\\"\\n\"", "3) 1# key => (empty set)"];
        assert_eq!(shown_lines(&wire, false, Protocol::Resp3), expected);
        assert_eq!(shown_lines(&values, true, Protocol::Resp3), expected);
    }

    #[test]
    fn an_incomplete_reply_has_no_words() {
        for end in 0..6 {
            assert!(shown_lines(&b"$1\r\na\r\n"[..end], false, Protocol::Resp2).is_empty());
        }
        assert_eq!(shown_lines(b"*-1\r\n$-1\r\n", false, Protocol::Resp2), ["(nil array)", "(nil)"]);
    }

    #[test]
    fn words_are_quoted_where_they_must_be() {
        let words: [&[u8]; 4] = [b"user:1", b"a b", b"", b"{x*3}"];
        assert_eq!(words.map(quoted), ["user:1", "\"a b\"", "\"\"", "\"{x*3}\""]);
    }
}
