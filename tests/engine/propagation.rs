//! The log of changes, where transcripts do not reach: suspended scripts, other data, replaying.

use ::dunlin::commands::dunlin;
use ::dunlin::engine::exec::snapshots;
use ::dunlin::engine::state::propagation::Taken;

use crate::support::reply::{Reply, decode};
use crate::world::{START, World};

fn logging(mut world: World) -> World {
    world.engine.effects.propagation.turn_on();
    world
}

/// The commands that have gone into the log since the last time, and whether a new base is wanted.
fn log(world: &mut World) -> (Vec<String>, bool) {
    let Taken { bytes, needs_base } = world.engine.effects.propagation.take();
    let (mut commands, mut rest) = (Vec::new(), bytes.as_slice());
    while !rest.is_empty() {
        let Ok((Reply::Array(words), used)) = decode(rest) else { panic!("{}", rest.escape_ascii()) };
        let word = |reply: &Reply| match reply {
            Reply::Bulk(word) => String::from_utf8_lossy(word).into_owned(),
            other => panic!("{other:?}"),
        };
        commands.push(words.iter().map(word).collect::<Vec<_>>().join(" "));
        rest = &rest[used..];
    }
    (commands, needs_base)
}

fn commands(world: &mut World) -> Vec<String> {
    log(world).0
}

const WRITING: &str = "for i = 1, 3 do redis.call('set', 'k' .. i, 1) for j = 1, 10000 do end end return 1";

#[test]
fn a_suspended_script_goes_out_as_one_transaction_when_it_has_ended() {
    let mut world = logging(World::with_clock_steps(1_000, |settings| settings.busy_reply_threshold_ms = 1));
    let other = world.join();
    world.send(world.client, &[b"EVAL", WRITING.as_bytes(), b"0"]);
    assert!(world.engine.scripts.is_busy(), "the script is suspended");
    let mut slices = 0;
    while world.engine.scripts.is_busy() {
        assert_eq!(commands(&mut world), Vec::<String>::new(), "half of a script does not go out");
        assert!(world.ask_as(other, "SET other 1").0.starts_with("-BUSY"));
        assert_eq!(world.ask_as(other, "UNWATCH").0, "+OK\r\n", "a command that runs beside it does not end its unit");
        world.engine.go_on(START);
        slices += 1;
    }
    assert!(slices > 1, "the script took several slices");
    let expected = ["MULTI", "SELECT 0", "set k1 1", "set k2 1", "set k3 1", "EXEC"];
    assert_eq!(commands(&mut world), expected);
    world.ask_as(other, "SET other 1");
    assert_eq!(commands(&mut world), ["SET other 1"]);
}

#[test]
fn a_transaction_with_a_suspended_script_goes_out_when_it_has_ended() {
    let mut world = logging(World::with_clock_steps(1_000, |settings| settings.busy_reply_threshold_ms = 1));
    world.ask("MULTI");
    world.ask("SET before 1");
    world.send(world.client, &[b"EVAL", WRITING.as_bytes(), b"0"]);
    world.ask("SET after 1");
    world.ask("EXEC");
    assert!(world.engine.scripts.is_busy(), "the script is suspended");
    assert_eq!(commands(&mut world), Vec::<String>::new());
    while world.engine.scripts.is_busy() {
        world.engine.go_on(START);
    }
    let expected = ["MULTI", "SELECT 0", "SET before 1", "set k1 1", "set k2 1", "set k3 1", "SET after 1", "EXEC"];
    assert_eq!(commands(&mut world), expected);
}

#[test]
fn a_rollback_asks_for_a_new_base_and_ends_the_log_until_then() {
    let mut world = logging(World::fresh());
    world.ask("SET k 1");
    snapshots::take_snapshot(&mut world.engine, b"a");
    world.ask("SET k 2");
    assert_eq!(log(&mut world), (vec!["SELECT 0".into(), "SET k 1".into(), "SET k 2".into()], false));
    snapshots::roll_back(&mut world.engine, b"a").expect("it was taken");
    world.ask("SET l 1");
    assert_eq!(log(&mut world), (vec![], true), "the base that is taken now has what came after the rollback");
    world.ask("SET m 1");
    assert_eq!(log(&mut world), (vec!["SELECT 0".into(), "SET m 1".into()], false));
}

#[test]
fn data_loaded_from_a_text_ask_for_a_new_base() {
    let mut world = logging(World::fresh());
    dunlin::load(&mut world.engine, b"SET k 1").expect("the text is a command");
    assert_eq!(log(&mut world), (vec![], true));
}

#[test]
fn keys_that_are_evicted_between_requests_go_out_one_by_one() {
    let mut world = logging(World::fresh());
    world.ask("MSET a 1 b 1");
    commands(&mut world);
    world.ask("CONFIG SET maxmemory-policy allkeys-random maxmemory 1");
    world.engine.continue_eviction(START);
    let mut evicted = commands(&mut world);
    evicted.sort();
    assert_eq!(evicted, ["DEL a", "DEL b"]);
}

#[test]
fn an_exact_trim_with_a_limit_is_accepted_from_a_log_alone() {
    let mut world = World::fresh();
    let request = "XADD s MAXLEN = 1 LIMIT 5 1-1 f v";
    assert!(world.ask(request).starts_with("-ERR syntax error, LIMIT cannot be used without"));
    world.engine.effects.propagation.begin_loading();
    assert_eq!(world.ask(request), "$3\r\n1-1\r\n");
    assert_eq!(log(&mut world), (vec![], false), "nothing goes out while a log is replayed");
}

#[test]
fn the_log_begins_and_ends_with_its_switch() {
    let mut world = World::fresh();
    world.ask("SET a 1");
    world.engine.effects.propagation.turn_on();
    world.ask("SET b 1");
    world.engine.effects.propagation.turn_off();
    world.ask("SET c 1");
    assert_eq!(commands(&mut world), Vec::<String>::new(), "what was not taken is lost with it");
    world.engine.effects.propagation.turn_on();
    world.ask("GET a");
    world.ask("SET d 1");
    assert_eq!(commands(&mut world), ["SELECT 0", "SET d 1"]);
}
