//! Scripts that exceed `busy-reply-threshold` without running Lua instructions: in long replies, in commands that they
//! call, and in library functions.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dunlin::engine::exec::aof;
use dunlin::engine::exec::aof_load::AofLoad;
use dunlin::engine::state::host::AofSource;
use dunlin::engine::{Effect, Now, SessionId};

use crate::world::{START, World};

const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";

/// A world in which a script is suspended at its first interrupt check, with a second client.
fn slow_world() -> (World, SessionId) {
    let mut world = World::with_clock_steps(1_000, |settings| settings.busy_reply_threshold_ms = 1);
    let other = world.join();
    (world, other)
}

fn eval(world: &mut World, script: &str) -> String {
    let (reply, _) = world.send(world.client, &[b"EVAL", script.as_bytes(), b"0"]);
    String::from_utf8_lossy(&reply).into_owned()
}

/// Resumes the script until it has ended; returns what its client reads.
fn end(world: &mut World, now: Now) -> String {
    while world.engine.scripts.is_busy() {
        world.engine.go_on(now);
    }
    world.take_pushes(world.client)
}

/// A few tables that hold each other in many places.
const WITHOUT_END: &[&str] = &[
    "local t = {1} for i = 1, 40 do t = {t, t} end return t",
    "local t = {1} for i = 1, 40 do t = {map = {a = t, b = t}} end return t",
    "local t = {1} for i = 1, 40 do t = {set = {[t] = 1, [{t}] = 1}} end return t",
    "local t = {err = 'X y'} for i = 1, 40 do t = {t, t} end return t",
];

#[test]
fn a_script_with_an_endless_reply_is_suspended_and_killed() {
    for script in WITHOUT_END {
        let (mut world, other) = slow_world();
        assert_eq!(eval(&mut world, script), "", "{script}");
        assert_eq!(world.ask_as(other, "PING").0, BUSY);
        (0..9).for_each(|_| world.engine.go_on(START));
        assert_eq!(world.ask_as(other, "PING").0, BUSY);
        assert_eq!(world.ask_as(other, "SCRIPT KILL").0, "+OK\r\n");
        let reply = end(&mut world, START);
        assert!(reply.starts_with("-ERR Error running script") || reply.contains("Script killed by user"), "{reply}");
        assert_eq!(world.ask("PING"), "+PONG\r\n");
        assert_eq!(eval(&mut world, "return 1"), ":1\r\n");
    }
}

#[test]
fn a_large_reply_is_the_same_when_others_are_served_meanwhile() {
    let script = "local t = {} for n = 1, 60000 do t[n] = {n, 'text', {ok = 'fine'}, {err = 'MY error'}} end return t";
    let whole: String = (1..=60_000).map(|n| format!("*4\r\n:{n}\r\n$4\r\ntext\r\n+fine\r\n-MY error\r\n")).collect();
    let mut world = World::fresh();
    assert!(eval(&mut world, script) == format!("*60000\r\n{whole}"));
    assert!(world.ask("INFO errorstats").contains("errorstat_MY:count=60000\r\n"));
    let (mut world, _) = slow_world();
    assert_eq!(eval(&mut world, script), "");
    assert!(end(&mut world, START) == format!("*60000\r\n{whole}"));
    assert_eq!(eval(&mut world, "return {1, {2}}"), "*2\r\n:1\r\n*1\r\n:2\r\n");
}

#[test]
fn arguments_of_a_command_take_no_more_memory_than_there_is() {
    let mut world = World::fresh();
    let words = "local s, t = ('x'):rep(2 ^ 24), {} for n = 1, 100 do t[n] = s end";
    let reply = eval(&mut world, &format!("{words} return redis.call('MSET', unpack(t))"));
    assert!(reply.starts_with("-ERR not enough memory script: "), "{reply}");
    let reply = eval(&mut world, &format!("{words} return redis.pcall('MSET', unpack(t)).err"));
    assert_eq!(reply, "$21\r\nERR not enough memory\r\n");
    assert_eq!(world.ask("DBSIZE"), ":0\r\n");
}

#[test]
fn calls_of_commands_count_as_work() {
    let (mut world, other) = slow_world();
    assert_eq!(eval(&mut world, "for n = 1, 200 do redis.call('DBSIZE') end return 'over'"), "");
    assert_eq!(world.ask_as(other, "PING").0, BUSY);
    assert_eq!(end(&mut world, START), "$4\r\nover\r\n");
}

#[test]
fn scanning_long_strings_counts_as_work() {
    for call in ["s:upper()", "s:lower()", "s:reverse()", "('%s'):format(s)", "s:find('y', 1, true)", "tonumber(s)"] {
        let (mut world, _) = slow_world();
        let reply =
            eval(&mut world, &format!("local s = ('x'):rep(1e5) for n = 1, 300 do local t = {call} end return 1"));
        assert_eq!((&*reply, &*end(&mut world, START)), ("", ":1\r\n"), "{call}");
    }
}

#[test]
fn time_is_fixed_within_a_script_until_it_takes_too_long() {
    let (mut world, other) = slow_world();
    world.ask("SET key value PX 1000");
    let script = "local started = redis.call('TIME')
        repeat local now = redis.call('TIME') until now[1] ~= started[1]
        return {started[1], redis.call('TIME')[1], redis.call('EXISTS', 'key'), redis.call('PTTL', 'key')}";
    assert_eq!(eval(&mut world, script), "");
    (0..9).for_each(|_| world.engine.go_on(START));
    assert_eq!(world.ask_as(other, "PING").0, BUSY, "no time has passed");
    let later = Now::from_us(START.unix_us + 5_000_000);
    let (began, ended) = (START.unix_s().to_string(), later.unix_s().to_string());
    let expected = format!("*4\r\n$10\r\n{began}\r\n$10\r\n{ended}\r\n:1\r\n:1000\r\n");
    assert_eq!(end(&mut world, later), expected);
}

/// Another script may follow at once.
#[test]
fn a_rewrite_that_waits_for_a_script_takes_its_base_where_the_script_ends() {
    let (mut world, other) = slow_world();
    let takes_base = |world: &mut World| world.engine.effects.take().iter().any(|it| matches!(it, Effect::TakeBase));
    world.ask_as(other, "BGREWRITEAOF");
    assert_eq!(eval(&mut world, "for n = 1, 200 do redis.call('DBSIZE') end"), "");
    assert!(!aof::may_take_base(&mut world.engine) && !takes_base(&mut world));
    assert_eq!(end(&mut world, START), "$-1\r\n");
    assert!(takes_base(&mut world), "before anything else runs");
    assert_eq!(eval(&mut world, "for n = 1, 200 do redis.call('DBSIZE') end"), "");
    end(&mut world, START);
    assert!(!takes_base(&mut world), "nothing waits any more");
}

#[test]
fn what_was_written_before_a_script_is_synced_each_second_while_it_runs() {
    let (mut world, _) = slow_world();
    aof::begin(&mut world.engine);
    let syncs = |world: &mut World| world.engine.effects.take().iter().any(|it| matches!(it, Effect::SyncAof));
    let progress = Arc::clone(&world.engine.persistence.aof.progress);
    assert_eq!(eval(&mut world, "while true do end"), "");
    world.engine.go_on(START);
    assert!(!syncs(&mut world), "nothing was written");
    progress.appended.store(1, Ordering::Relaxed);
    let after_ms = |ms: i64| Now::from_us(START.unix_us + ms * 1000);
    let due = [0, 500, 999, 1000, 1500, 2000].map(|ms| {
        world.engine.go_on(after_ms(ms));
        syncs(&mut world)
    });
    assert_eq!(due, [true, false, false, true, false, true]);
}

#[test]
fn the_log_output_of_a_script_is_limited() {
    let mut world = World::fresh();
    world.engine.effects.take();
    eval(&mut world, "local s = ('x'):rep(2 ^ 20) for n = 1, 100 do redis.log(redis.LOG_WARNING, s) end");
    let logged = world.engine.effects.take();
    let bytes: usize = logged.iter().map(|effect| if let Effect::Log(_, line) = effect { line.len() } else { 0 }).sum();
    assert!((16 << 20..17 << 20).contains(&bytes), "{bytes}");
    let reply =
        eval(&mut world, "local t = {} for n = 1, 2000 do t[n] = ('x'):rep(2 ^ 20) end redis.log(1, unpack(t))");
    assert!(reply.starts_with("-ERR not enough memory"), "{reply}");
}

#[test]
fn a_script_in_a_log_is_suspended_while_the_log_is_loaded() {
    let (mut world, other) = slow_world();
    let eval = |text: &str| {
        let script = format!("for i = 1, 100000 do end redis.call('APPEND', 'k', '{text}')");
        format!("*3\r\n$4\r\nEVAL\r\n${}\r\n{script}\r\n$1\r\n0\r\n", script.len())
    };
    let append = |text: &str| format!("*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n$1\r\n{text}\r\n");
    let (begin, end) = ("*1\r\n$5\r\nMULTI\r\n".to_owned(), "*1\r\n$4\r\nEXEC\r\n".to_owned());
    let log = [eval("1"), append("2"), begin, append("3"), eval("4"), eval("5"), append("6"), end, append("7")];
    world.engine.persistence.loading = Some(Box::default());
    let mut load = AofLoad::begin(&mut world.engine);
    let bytes = Box::new(Cursor::new(log.concat().into_bytes()));
    let source = AofSource { name: "log".to_owned(), is_base: false, bytes };
    load.open(&mut world.engine, source).expect("it is a log");
    let mut suspended = 0;
    while load.step(&mut world.engine).expect("the commands exist") {
        suspended += u32::from(world.engine.scripts.is_busy());
        assert_eq!(world.ask_as(other, "PING").0, "-LOADING Redis is loading the dataset in memory\r\n");
    }
    assert!(suspended >= 3, "{suspended}");
    let counts = load.end(&mut world.engine);
    world.engine.end_load(counts);
    assert_eq!(world.ask("GET k"), "$7\r\n1234567\r\n");
}

/// The numbers of the saves that were begun since the last call.
fn begun_saves(world: &mut World) -> Vec<u64> {
    let effects = world.engine.effects.take();
    let id = |effect| match effect {
        Effect::Save(checkpoint) => Some(checkpoint.id()),
        _ => None,
    };
    effects.into_iter().filter_map(id).collect()
}

#[test]
fn a_save_that_waits_for_another_one_has_nothing_of_a_suspended_script() {
    let (mut world, other) = slow_world();
    let third = world.join();
    world.ask_as(other, "SAVE");
    world.ask_as(third, "SAVE");
    let first = begun_saves(&mut world);
    assert_eq!(first.len(), 1);
    eval(&mut world, "redis.call('SET', 'key', 'half') for i = 1, 100000 do end redis.call('SET', 'key', 'whole')");
    assert!(world.engine.scripts.is_busy());
    world.engine.end_save(first[0], Ok(()));
    world.engine.run_due(START, 10);
    assert!(begun_saves(&mut world).is_empty());
    end(&mut world, START);
    world.engine.run_due(START, 10);
    assert_eq!(begun_saves(&mut world).len(), 1);
}
