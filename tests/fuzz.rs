//! A short fuzz run: random commands made from the rows of the command table, good ones and bad ones mixed.
//!
//! After every request: the reply is exactly one well-formed frame, a refused request changed nothing, and nothing
//! panicked. From time to time every structure proves its invariants. The run is seeded, so a failure repeats;
//! `DUNLIN_FUZZ_COMMANDS` sets its length (200,000 by default) and `DUNLIN_FUZZ_SEED` its seed.

#[path = "fuzz/frame.rs"]
mod frame;
#[path = "fuzz/grammar.rs"]
mod grammar;
#[path = "engine/world.rs"]
#[expect(dead_code, reason = "shared with the engine's tests, which use all of it")]
mod world;

use std::env;

use dunlin::engine::Flow;
use frame::frame_length;
use grammar::Grammar;
use world::World;

fn from_environment(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn every_request_gets_one_well_formed_reply_and_a_refused_one_changes_nothing() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    let mut world = World::seeded(seed, |settings| settings.max_bulk_bytes = 1 << 20);
    let mut grammar = Grammar::new(seed, world.engine.table.entries());
    for round in 0..from_environment("DUNLIN_FUZZ_COMMANDS", 200_000) {
        let words = grammar.request();
        let shown: Vec<String> = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        ask(
            &mut world,
            &words.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &format!("seed {seed} round {round} {shown:?}"),
        );
        world.pass_ms(grammar.below(3) as i64);
        world.expire();
        world.engine.effects.take();
        if round % 1000 == 0 {
            world.engine.databases.iter().for_each(|database| database.check());
        }
    }
}

fn ask(world: &mut World, words: &[&[u8]], context: &str) {
    let before = world.engine.stats.changes;
    let (reply, flow) = world.send(world.client, words);
    match flow {
        Flow::Wait(until) => {
            assert!(reply.is_empty(), "{context}: a request that waits has no reply yet");
            world.pass_ms(until.since_us(world.now()).div_ceil(1000).min(1 << 40) as i64);
            world.engine.pause_mut().end();
        }
        Flow::Close | Flow::Abort | Flow::Block => rejoin(world),
        Flow::Next if reply.is_empty() => rejoin(world),
        Flow::Next if listens(words) => {
            assert!(frames(&reply).is_some(), "{context}: {}", String::from_utf8_lossy(&reply));
            rejoin(world);
        }
        Flow::Next => assert_eq!(frames(&reply), Some(1), "{context}: {}", String::from_utf8_lossy(&reply)),
    }
    // What a script did before it failed stays done.
    let is_script = words.first().is_some_and(|name| name.starts_with(b"EVAL") || name.starts_with(b"FCALL"));
    if reply.first() == Some(&b'-') && !is_script {
        assert_eq!(world.engine.stats.changes, before, "{context}: a refused request changed something");
    }
}

/// How many well-formed frames these bytes are.
fn frames(mut bytes: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !bytes.is_empty() {
        bytes = bytes.get(frame_length(bytes)?..)?;
        count += 1;
    }
    Some(count)
}

/// True for commands that are answered once for each channel, or go on being answered.
fn listens(words: &[&[u8]]) -> bool {
    let name = words.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    name.ends_with(b"subscribe") || name == b"monitor"
}

/// A fresh client in place of one that was closed, is blocked or wants no replies.
fn rejoin(world: &mut World) {
    world.engine.disconnect(world.client);
    world.client = world.join();
}
