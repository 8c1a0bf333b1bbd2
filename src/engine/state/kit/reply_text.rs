//! Replies as text, as the transcripts of this project write them: like redis-cli, but more precisely.
//!
//! The input was written by the server's own writer, for a client or for a script. An incomplete reply is one that a
//! connection never got whole; it has no text. Attributes are left out, as the decoder skips them.

use crate::resp::{DecodeError, Frame, Protocol, ReplyValue, Values, write_escaped};
use crate::value::number;

/// The text of one reply.
#[derive(Debug)]
enum Text {
    Line(String),
    /// Elements behind their numbers and this mark; the last text if there are none.
    Elements(Vec<Text>, &'static str, &'static str),
    Pairs(Vec<(Text, Text)>),
}

/// The lines of all replies in `bytes`, which were written for a script or for a client.
pub(in crate::engine) fn reply_lines(bytes: &[u8], is_for_script: bool, protocol: Protocol) -> Vec<String> {
    let mut lines = Vec::new();
    if is_for_script {
        let mut values = Values::new(bytes);
        while let Some(text) = of_value(&mut values) {
            lines.extend(text.lines());
        }
        return lines;
    }
    let mut rest = bytes;
    loop {
        match Frame::decode(rest) {
            Ok(Some((frame, length))) => {
                lines.extend(of_frame(frame, protocol).lines());
                rest = &rest[length..];
            }
            Err(DecodeError::TooDeep) => {
                lines.push("(nested too deep)".to_owned());
                return lines;
            }
            Ok(None) | Err(DecodeError::Malformed) => return lines,
        }
    }
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

fn in_quotes(bytes: &[u8]) -> Text {
    let mut text = vec![b'"'];
    write_escaped(bytes, &mut text);
    text.push(b'"');
    Text::Line(String::from_utf8_lossy(&text).into_owned())
}

/// Text without quotes, with invisible characters and a space at the end escaped.
fn escaped(text: &[u8]) -> String {
    let mut escaped = String::new();
    for &byte in text {
        match byte {
            b' '..=b'~' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("\\x{byte:02x}")),
        }
    }
    match escaped.strip_suffix(' ') {
        Some(start) => format!("{start}\\x20"),
        None => escaped,
    }
}

fn simple(text: &[u8]) -> Text {
    Text::Line(if text.is_empty() { "(empty simple string)".to_owned() } else { escaped(text) })
}

fn verbatim(bytes: &[u8]) -> Text {
    let (form, text) = bytes.split_at_checked(4).unwrap_or((b"", bytes));
    let Text::Line(text) = in_quotes(text) else { return Text::Line(String::new()) };
    Text::Line(format!("(verbatim {}) {text}", escaped(form.strip_suffix(b":").unwrap_or(form))))
}

fn double(value: f64) -> Text {
    let mut digits = Vec::new();
    number::write_f64(&mut digits, value);
    line("double", &digits)
}

fn line(kind: &str, text: &[u8]) -> Text {
    Text::Line(format!("({kind}) {}", escaped(text)))
}

impl Text {
    fn lines(self) -> Vec<String> {
        match self {
            Text::Line(line) => vec![line],
            Text::Elements(items, mark, empty) => numbered(items.into_iter().map(Text::lines).collect(), mark, empty),
            Text::Pairs(pairs) => {
                let block = |(key, value): (Text, Text)| {
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

/// One reply to a client.
fn of_frame(frame: Frame<'_>, protocol: Protocol) -> Text {
    let is_resp2 = protocol == Protocol::Resp2;
    let constant = |text: &str| Text::Line(text.to_owned());
    match frame {
        Frame::Null => constant(if is_resp2 { "(null)" } else { "(nil)" }),
        Frame::NullBytes => constant(if is_resp2 { "(nil)" } else { "(nil bulk)" }),
        Frame::NullArray => constant("(nil array)"),
        Frame::Status(text) => simple(text),
        Frame::Error(text) => line("error", text),
        Frame::Bytes(bytes) => in_quotes(bytes),
        Frame::Verbatim(bytes) => verbatim(bytes),
        Frame::Integer(integer) => Text::Line(format!("(integer) {integer}")),
        Frame::Double(value) => double(value),
        Frame::Boolean(is_true) => Text::Line(format!("({is_true})")),
        Frame::BigNumber(digits) => line("big number", digits),
        Frame::Array(items) => Text::Elements(of_frames(items, protocol), ") ", "(empty array)"),
        Frame::Set(items) => Text::Elements(of_frames(items, protocol), "~ ", "(empty set)"),
        Frame::Push(items) => Text::Elements(of_frames(items, protocol), "> ", "(empty push)"),
        Frame::Map(items) => {
            let mut texts = of_frames(items, protocol).into_iter();
            Text::Pairs(std::iter::from_fn(|| Some((texts.next()?, texts.next()?))).collect())
        }
    }
}

fn of_frames(frames: Vec<Frame<'_>>, protocol: Protocol) -> Vec<Text> {
    frames.into_iter().map(|frame| of_frame(frame, protocol)).collect()
}

/// One reply to a script.
fn of_value(values: &mut Values<'_>) -> Option<Text> {
    Some(match values.next()? {
        ReplyValue::Integer(integer) => Text::Line(format!("(integer) {integer}")),
        ReplyValue::Double(value) => double(value),
        ReplyValue::Boolean(is_true) => Text::Line(format!("({is_true})")),
        ReplyValue::Null => Text::Line("(nil)".to_owned()),
        ReplyValue::Bulk(bytes) => in_quotes(bytes),
        ReplyValue::Simple(text) => simple(text),
        ReplyValue::Error(text) => line("error", text),
        ReplyValue::Verbatim(bytes) => verbatim(bytes),
        ReplyValue::BigNumber(digits) => line("big number", digits),
        ReplyValue::Array(count) => Text::Elements(of_values(values, count)?, ") ", "(empty array)"),
        ReplyValue::Set(count) => Text::Elements(of_values(values, count)?, "~ ", "(empty set)"),
        ReplyValue::Map(count) | ReplyValue::Attribute(count) => {
            let pairs = (0..count).map(|_| Some((of_value(values)?, of_value(values)?)));
            Text::Pairs(pairs.collect::<Option<_>>()?)
        }
    })
}

fn of_values(values: &mut Values<'_>, count: usize) -> Option<Vec<Text>> {
    (0..count).map(|_| of_value(values)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{DEEPEST, Reply};

    fn write(reply: &mut Reply<'_>) {
        reply.array(5);
        reply.integer(-7);
        reply.double(1e300);
        reply.verbatim("txt", b"v");
        reply.bulk(b"a\"\n");
        reply.map(1);
        reply.simple("key");
        reply.set(0);
    }

    #[test]
    fn a_reply_to_a_script_has_the_same_text_as_one_to_a_client() {
        let (mut wire, mut values) = (Vec::new(), Vec::new());
        write(&mut Reply::new(&mut wire, Protocol::Resp3));
        write(&mut Reply::of_values(&mut values, Protocol::Resp3));
        let expected = [
            "1) (integer) -7",
            "2) (double) 1e+300",
            "3) (verbatim txt) \"v\"",
            "4) \"a\\\"\\n\"",
            "5) 1# key => (empty set)",
        ];
        assert_eq!(reply_lines(&wire, false, Protocol::Resp3), expected);
        assert_eq!(reply_lines(&values, true, Protocol::Resp3), expected);
    }

    #[test]
    fn an_incomplete_reply_has_no_text() {
        for end in 0..6 {
            assert!(reply_lines(&b"$1\r\na\r\n"[..end], false, Protocol::Resp2).is_empty());
        }
    }

    #[test]
    fn each_null_has_its_own_text() {
        let nulls = b"*-1\r\n$-1\r\n_\r\n";
        assert_eq!(reply_lines(nulls, false, Protocol::Resp2), ["(nil array)", "(nil)", "(null)"]);
        assert_eq!(reply_lines(nulls, false, Protocol::Resp3), ["(nil array)", "(nil bulk)", "(nil)"]);
    }

    #[test]
    fn a_reply_that_nests_too_deep_to_be_decoded_is_named() {
        let deep = [b":1\r\n".to_vec(), b"*1\r\n".repeat(DEEPEST + 1)].concat();
        assert_eq!(reply_lines(&deep, false, Protocol::Resp3), ["(integer) 1", "(nested too deep)"]);
    }

    #[test]
    fn an_attribute_is_left_out_and_shifts_no_element() {
        let bytes = b"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n";
        assert_eq!(reply_lines(bytes, false, Protocol::Resp3), ["1) (integer) 1", "2) (integer) 2"]);
    }

    #[test]
    fn words_are_quoted_where_they_must_be() {
        let words: [&[u8]; 4] = [b"user:1", b"a b", b"", b"{x*3}"];
        assert_eq!(words.map(quoted), ["user:1", "\"a b\"", "\"\"", "\"{x*3}\""]);
    }
}
