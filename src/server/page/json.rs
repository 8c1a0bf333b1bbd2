//! Commands from JSON, and replies to JSON.
//!
//! Bytes that are no UTF-8 are `{"base64":".."}`. A reply keeps its type: what JSON has no type for, or would round, is
//! an object with one field that is named after the type.

use std::num::NonZeroU32;
use std::str;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::engine::WorldName;
use crate::resp::{CutString, Frame, Requests};
use crate::value::number::write_f64;

/// Commands that are run one after the other.
#[derive(Debug)]
pub(super) struct Batch {
    /// The world that they are run in; the first one if none is named.
    pub(super) world: WorldName,
    pub(super) database: usize,
    /// The most bytes of a bulk string in a reply; `None` for any number.
    pub(super) cut: Option<NonZeroU32>,
    /// Each is one request.
    pub(super) commands: Vec<Requests>,
}

impl Batch {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// The sentence why it is not one.
    pub(super) fn read(body: &[u8]) -> Result<Batch, &'static str> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
            return Err("The body must be a JSON object.");
        };
        if fields.keys().any(|name| !matches!(name.as_str(), "world" | "database" | "cut" | "commands")) {
            return Err("The fields are 'world', 'database', 'cut' and 'commands'.");
        }
        let (world, database) = (world(&fields)?, database(&fields)?);
        Ok(Batch { world, database, cut: cut(&fields)?, commands: commands(&fields)? })
    }
}

fn world(fields: &Map<String, Value>) -> Result<WorldName, &'static str> {
    let Some(name) = fields.get("world") else { return Ok(WorldName::first()) };
    let name = name.as_str().and_then(|name| WorldName::parse(name.as_bytes()).ok());
    name.ok_or("'world' must be the name of a world.")
}

fn database(fields: &Map<String, Value>) -> Result<usize, &'static str> {
    let Some(number) = fields.get("database") else { return Ok(0) };
    let number = number.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or("'database' must be the number of a database.")
}

fn cut(fields: &Map<String, Value>) -> Result<Option<NonZeroU32>, &'static str> {
    let Some(bytes) = fields.get("cut") else { return Ok(None) };
    let bytes = bytes.as_u64().and_then(|bytes| u32::try_from(bytes).ok()).and_then(NonZeroU32::new);
    bytes.map(Some).ok_or("'cut' must be a number of bytes, at least one.")
}

fn commands(fields: &Map<String, Value>) -> Result<Vec<Requests>, &'static str> {
    let commands = fields.get("commands").and_then(Value::as_array).ok_or("'commands' must be an array.")?;
    commands.iter().map(command).collect()
}

fn command(words: &Value) -> Result<Requests, &'static str> {
    let words = words.as_array().filter(|words| !words.is_empty());
    let words = words.ok_or("A command must be an array of words, at least one.")?;
    let words = words.iter().map(|word| read_word(word).ok_or("A word must be a string or {\"base64\":\"..\"}."));
    let words: Vec<Vec<u8>> = words.collect::<Result<_, _>>()?;
    Ok(Requests::of(words.iter().map(Vec::as_slice)))
}

fn read_word(word: &Value) -> Option<Vec<u8>> {
    match word {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Object(fields) if fields.len() == 1 => STANDARD.decode(fields.get("base64")?.as_str()?).ok(),
        _ => None,
    }
}

/// `{"error":".."}`.
pub(super) fn error(why: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_named(&mut out, "error", why.as_bytes());
    out
}

/// Appends a reply.
pub(super) fn put_reply(out: &mut Vec<u8>, reply: &Frame<'_>) {
    match reply {
        Frame::Null | Frame::NullBytes | Frame::NullArray => out.extend_from_slice(b"null"),
        Frame::Boolean(true) => out.extend_from_slice(b"true"),
        Frame::Boolean(false) => out.extend_from_slice(b"false"),
        Frame::Status(text) => put_named(out, "status", text),
        Frame::Error(line) => put_named(out, "error", line),
        Frame::Bytes(bytes) => put_bytes(out, bytes),
        Frame::Integer(number) => put_named(out, "integer", number.to_string().as_bytes()),
        Frame::Double(number) => {
            let mut digits = Vec::new();
            write_f64(&mut digits, *number);
            put_named(out, "double", &digits);
        }
        Frame::BigNumber(digits) => put_named(out, "big", digits),
        Frame::Verbatim(text) => {
            if let Some(cut) = CutString::read(text) {
                return put_cut(out, &cut.shown, cut.length);
            }
            let (format, text) = text.split_at_checked(4).unwrap_or((b"txt:", text));
            out.extend_from_slice(b"{\"verbatim\":");
            put_bytes(out, &format[..3]);
            out.extend_from_slice(b",\"text\":");
            put_bytes(out, text);
            out.push(b'}');
        }
        Frame::Array(items) => put_array(out, items),
        Frame::Map(items) => {
            out.extend_from_slice(b"{\"map\":[");
            put_separated(out, items.chunks(2), |out, pair| put_array(out, pair));
            out.extend_from_slice(b"]}");
        }
        Frame::Set(items) => put_named_array(out, "set", items),
        Frame::Push(items) => put_named_array(out, "push", items),
    }
}

/// Appends `{"name":bytes}`.
fn put_named(out: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    put_name(out, name);
    put_bytes(out, bytes);
    out.push(b'}');
}

fn put_named_array(out: &mut Vec<u8>, name: &str, items: &[Frame<'_>]) {
    put_name(out, name);
    put_array(out, items);
    out.push(b'}');
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends replies as an array.
pub(super) fn put_array(out: &mut Vec<u8>, items: &[Frame<'_>]) {
    out.push(b'[');
    put_separated(out, items.iter(), put_reply);
    out.push(b']');
}

/// Appends items with commas between them.
pub(super) fn put_separated<T>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = T>,
    mut put: impl FnMut(&mut Vec<u8>, T),
) {
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        put(out, item);
    }
}

/// Appends bytes: a string if they are UTF-8, else an object.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        // Writing to memory does not fail.
        Ok(text) => drop(serde_json::to_writer(out, text)),
        Err(_) => {
            put_name(out, "base64");
            out.push(b'"');
            out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            out.extend_from_slice(b"\"}");
        }
    }
}

/// Appends the first bytes of a string, and the number of all. A character that was cut is left out.
pub(super) fn put_cut(out: &mut Vec<u8>, bytes: &[u8], length: usize) {
    let whole = match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    put_name(out, "cut");
    put_bytes(out, &bytes[..whole]);
    out.extend_from_slice(format!(",\"length\":{length}}}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(body: &str) -> Result<Vec<Vec<Vec<u8>>>, &'static str> {
        let words = |requests: &Requests| {
            requests.iter().flat_map(|request| request.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
        };
        Batch::read(body.as_bytes()).map(|batch| batch.commands.iter().map(words).collect())
    }

    fn shown(reply: &[u8]) -> String {
        let (frame, _) = Frame::decode(reply).expect("it is a reply").expect("it is complete");
        let mut out = Vec::new();
        put_reply(&mut out, &frame);
        String::from_utf8(out).expect("JSON is text")
    }

    #[test]
    fn words_are_texts_or_bytes() {
        let read = words(r#"{"commands":[["SET",{"base64":"/w=="},"\u00e9"],["PING"]]}"#);
        assert_eq!(read, Ok(vec![vec![b"SET".to_vec(), vec![0xff], "é".into()], vec![b"PING".to_vec()]]));
        assert_eq!(words(r#"{"commands":[]}"#), Ok(Vec::new()));
    }

    #[test]
    fn a_body_that_is_no_batch_is_refused() {
        let deep = format!("{{\"commands\":{}", "[".repeat(100_000));
        for body in [
            "",
            "[]",
            "{",
            "{}",
            &deep,
            r#"{"command":["PING"]}"#,
            r#"{"commands":["PING"]}"#,
            r#"{"commands":[[]]}"#,
            r#"{"commands":[["SET","k",1]]}"#,
            r#"{"commands":[["GET",{"base64":"!"}]]}"#,
            r#"{"commands":[["GET",{"base64":"","x":1}]]}"#,
            r#"{"commands":[],"world":"a b"}"#,
            r#"{"commands":[],"world":1}"#,
            r#"{"commands":[],"database":-1}"#,
            r#"{"commands":[],"database":"0"}"#,
            r#"{"commands":[],"cut":0}"#,
            r#"{"commands":[],"cut":"1"}"#,
            r#"{"commands":[],"other":0}"#,
        ] {
            assert!(words(body).is_err(), "{}", &body[..body.len().min(60)]);
        }
        assert!(Batch::read(b"{\"commands\":[[\"\xff\"]]}").is_err(), "no UTF-8");
    }

    #[test]
    fn replies_keep_their_types() {
        for (reply, expected) in [
            ("$-1\r\n", "null"),
            ("*-1\r\n", "null"),
            ("_\r\n", "null"),
            ("#t\r\n", "true"),
            ("+OK\r\n", r#"{"status":"OK"}"#),
            ("-ERR \"x\"\r\n", r#"{"error":"ERR \"x\""}"#),
            (":-9223372036854775808\r\n", r#"{"integer":"-9223372036854775808"}"#),
            (",1.5\r\n", r#"{"double":"1.5"}"#),
            (",1e+300\r\n", r#"{"double":"1e+300"}"#),
            (",-inf\r\n", r#"{"double":"-inf"}"#),
            (",nan\r\n", r#"{"double":"nan"}"#),
            ("(123\r\n", r#"{"big":"123"}"#),
            ("=6\r\ntxt:ab\r\n", r#"{"verbatim":"txt","text":"ab"}"#),
            ("=7\r\ncut:5:a\r\n", r#"{"cut":"a","length":5}"#),
            ("=9\r\ncut:5:a\u{e9}\r\n", "{\"cut\":\"a\u{e9}\",\"length\":5}"),
            ("*2\r\n$1\r\na\r\n*0\r\n", r#"["a",[]]"#),
            ("%1\r\n+k\r\n:1\r\n", r#"{"map":[[{"status":"k"},{"integer":"1"}]]}"#),
            ("~1\r\n$1\r\na\r\n", r#"{"set":["a"]}"#),
            (">1\r\n$1\r\na\r\n", r#"{"push":["a"]}"#),
            ("$8\r\n<b>\n\u{2028}\0\r\n", "\"<b>\\n\u{2028}\\u0000\""),
        ] {
            assert_eq!(shown(reply.as_bytes()), expected);
        }
        assert_eq!(shown(b"$1\r\n\xff\r\n"), r#"{"base64":"/w=="}"#);
        assert_eq!(shown(b"=8\r\ncut:5:a\xc3\r\n"), r#"{"cut":"a","length":5}"#);
        assert_eq!(shown(b"=8\r\ncut:5:a\xff\r\n"), r#"{"cut":{"base64":"Yf8="},"length":5}"#);
    }
}
