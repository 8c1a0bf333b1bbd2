//! Fuzzes the source of scripts and the input of the decoders that scripts can call: no panic, and one well-formed
//! reply.

use dunlin::commands::FAMILIES;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::{Engine, Now, Origin, Settings, Table};
use dunlin::resp::{Request, Span};

/// The first byte chooses what the rest is: source, or the argument of one of these.
const READERS: &[&str] = &[
    "return cjson.encode(cjson.decode(ARGV[1]))",
    "return cmsgpack.pack(cmsgpack.unpack(ARGV[1]))",
    "return {cmsgpack.unpack_limit(ARGV[1], 3, 0)}",
    "return {struct.unpack(ARGV[1]:sub(1, 8), ARGV[1]:sub(9))}",
    "return {string.find(ARGV[1]:sub(9), ARGV[1]:sub(1, 8))}",
    "return {loadstring(ARGV[1])}",
];

pub fn run(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let now = Now::from_us(1_767_268_800_000_000);
    // With each reading of the clock a second has passed, so that no script runs for long.
    let host = Box::new(NoHost::advancing(1_000_000));
    let mut engine = Engine::new(Table::of(FAMILIES), Settings::default(), 1, now, host);
    let client = engine.connect(now, Origin::default()).expect("there is room");
    let reader = READERS.get(usize::from(kind)).map(|reader| reader.as_bytes());
    let words = [&b"EVAL"[..], reader.unwrap_or(rest), b"0", rest];
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        let start = text.len();
        text.extend_from_slice(word);
        spans.push(Span { start, end: text.len() });
    }
    let mut out = Vec::new();
    engine.run(now, client, Request::new(&text, &spans), &mut out);
    assert!(!out.is_empty() || engine.scripts.is_busy());
}
