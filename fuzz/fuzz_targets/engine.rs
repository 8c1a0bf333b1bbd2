//! Any bytes as a client's requests to a whole engine: no panic, and every structure keeps its invariants.
#![no_main]

use dunlin::commands::FAMILIES;
use dunlin::engine::host::NoHost;
use dunlin::engine::{Engine, Flow, Now, Origin, Settings, Table};
use dunlin::resp::{Limits, Parser};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let settings = Settings { max_bulk_bytes: 1 << 20, ..Settings::default() };
    let limits = Limits { max_bulk_bytes: settings.max_bulk_bytes, authenticated: true };
    let mut now = Now::from_us(1_767_268_800_000_000);
    let mut engine = Engine::new(Table::of(FAMILIES), settings, 1, now, Box::new(NoHost::default()));
    let client = engine.connect(now, Origin::default()).expect("the first client is welcome");
    let (mut parser, mut rest, mut out) = (Parser::new(), bytes, Vec::new());
    while let Ok(Some(request)) = parser.next(rest, &limits) {
        let flow = engine.run(now, client, request, &mut out);
        rest = &rest[parser.consumed()..];
        now.unix_us += 1500;
        engine.expire(now, 16);
        engine.effects.take();
        if flow != Flow::Next {
            break;
        }
    }
    engine.databases.iter().for_each(|database| database.check());
});
