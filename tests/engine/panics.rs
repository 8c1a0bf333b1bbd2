//! A panic in a command costs the request in which it happened, and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dunlin::commands::FAMILIES;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::{Args, Command, Ctx, Effect, Engine, Error, Settings, Table};

use crate::world::{START, World};

/// A command with a fault.
const FAULTY: &[Command] = &[Command { name: "FAULTY", syntax: "", run: fail, ..Command::ROW }];

fn fail(_: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    panic!("a fault of ours");
}

fn faulty_world(host: NoHost) -> World {
    let settings = Settings { busy_reply_threshold_ms: 2, ..Settings::default() };
    let families = FAMILIES.iter().copied().chain([FAULTY]).collect::<Vec<_>>().leak();
    World::of_engine(Engine::new(Table::of(families), settings, 1, START, Box::new(host)))
}

/// True when the script ends with the panic.
fn panics(world: &mut World, script: &[u8]) -> bool {
    let client = world.client;
    catch_unwind(AssertUnwindSafe(|| world.send(client, &[b"EVAL", script, b"0"]))).is_err()
}

#[test]
fn a_panic_within_a_script_leaves_the_engine_whole() {
    let mut world = faulty_world(NoHost::default());
    world.ask("SET key value");
    let loaded = world.send(world.client, &[b"SCRIPT", b"LOAD", b"return redis.call('GET', 'key')"]).0;
    let name = String::from_utf8_lossy(&loaded).lines().nth(1).expect("it answers the name").to_owned();
    for script in [
        "return redis.call('FAULTY')",
        "return redis.pcall('FAULTY')",
        "return pcall(redis.call, 'FAULTY')",
        "pcall(redis.call, 'FAULTY') while true do end",
        "return coroutine.resume(coroutine.create(function() redis.call('FAULTY') end))",
    ] {
        assert!(panics(&mut world, script.as_bytes()), "{script}");
        assert_eq!(world.ask("PING"), "+PONG\r\n");
        assert_eq!(world.ask(&format!("EVALSHA {name} 0")), "$5\r\nvalue\r\n", "{script}");
        let other = world.join();
        assert_eq!(world.ask_as(other, &format!("EVALSHA {name} 0")).0, "$5\r\nvalue\r\n", "{script}");
    }
}

#[test]
fn a_panic_of_a_script_that_takes_long_ends_its_client_alone() {
    let mut world = faulty_world(NoHost::advancing(1000));
    let other = world.join();
    world.send(world.client, &[b"EVAL", b"for n = 1, 1e6 do local m = n end redis.call('FAULTY')", b"0"]);
    assert!(world.ask_as(other, "PING").0.starts_with("-BUSY "));
    world.engine.go_on(START);
    while world.engine.scripts.is_busy() {
        world.engine.go_on(START);
    }
    let closed = world.engine.effects.take();
    assert!(matches!(closed[..], [.., Effect::Close(session)] if session == world.client), "{closed:?}");
    assert_eq!(world.ask_as(other, "PING").0, "+PONG\r\n");
    let script: [&[u8]; 3] = [b"EVAL", b"return 7", b"0"];
    assert_eq!(world.send(other, &script).0, b":7\r\n");
}

#[test]
fn what_a_request_changed_before_a_panic_goes_into_the_log_of_changes() {
    let mut world = faulty_world(NoHost::default());
    world.engine.effects.propagation.turn_on();
    assert!(panics(&mut world, b"redis.call('SET', 'k', 1) redis.call('FAULTY')"));
    world.ask("SET l 1");
    let log = String::from_utf8(world.engine.effects.propagation.take().bytes).expect("these words are text");
    let words: Vec<&str> = log.split("\r\n").filter(|word| word.chars().all(char::is_alphanumeric)).collect();
    assert_eq!(words, ["SELECT", "0", "SET", "k", "1", "SET", "l", "1", ""]);
}
