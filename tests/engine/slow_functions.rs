//! Functions that take longer than `busy-reply-threshold`, and libraries that take too long to load.

use dunlin::engine::SessionId;

use crate::world::{START, World};

const BUSY_FUNCTION: &str =
    "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.\r\n";
const BUSY_SCRIPT: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";

const LIBRARY: &[u8] = b"#!lua name=slow
    redis.register_function('endless', function() while true do end end)
    redis.register_function('writing', function(keys) redis.call('SET', keys[1], 'value') while true do end end)
    redis.register_function{function_name = 'reading', callback = function() while true do end end,
        flags = {'no-writes'}}";

/// A world with the library and a second client, in which 20 milliseconds pass with each reading of the clock.
fn slow_world() -> (World, SessionId) {
    let mut world = World::with_clock_steps(20_000, |settings| settings.busy_reply_threshold_ms = 100);
    let loaded = world.send(world.client, &[b"FUNCTION", b"LOAD", LIBRARY]).0;
    assert_eq!(loaded, b"$4\r\nslow\r\n");
    let other = world.join();
    (world, other)
}

/// Resumes the script until it has ended; returns what its client reads.
fn end(world: &mut World) -> String {
    while world.engine.scripts.is_busy() {
        world.engine.go_on(START);
    }
    world.take_pushes(world.client)
}

#[test]
fn other_clients_get_busy_and_can_kill_a_slow_function() {
    for call in ["FCALL endless 1 key word", "FCALL_RO reading 0"] {
        let (mut world, other) = slow_world();
        assert_eq!(world.ask(call), "");
        for refused in ["PING", "SCRIPT KILL", "EVAL x 0", "FCALL endless 0", "FUNCTION LIST", "FUNCTION FLUSH"] {
            assert_eq!(world.ask_as(other, refused).0, BUSY_FUNCTION, "{refused}");
        }
        assert_eq!(world.ask_as(other, "FUNCTION KILL").0, "+OK\r\n");
        let answer = end(&mut world);
        assert!(answer.starts_with("-ERR Script killed by user with SCRIPT KILL... script: "), "{answer}");
        assert!(answer.contains(", on @user_function:"), "{answer}");
        let nothing = "-NOTBUSY No scripts in execution right now.\r\n";
        assert_eq!(world.ask_as(other, "FUNCTION KILL").0, nothing);
    }
}

#[test]
fn function_stats_shows_the_running_function_and_its_duration() {
    let (mut world, other) = slow_world();
    world.ask("FCALL endless 1 key word");
    let stats = world.ask_as(other, "FUNCTION STATS").0;
    let running = "*4\r\n$14\r\nrunning_script\r\n*6\r\n$4\r\nname\r\n$7\r\nendless\r\n$7\r\ncommand\r\n*5\r\n$5\r\n\
                   FCALL\r\n$7\r\nendless\r\n$1\r\n1\r\n$3\r\nkey\r\n$4\r\nword\r\n$11\r\nduration_ms\r\n:";
    let rest = stats.strip_prefix(running).unwrap_or_else(|| panic!("{stats}"));
    let (duration_ms, rest) = rest.split_once("\r\n").expect("a number ends");
    assert!(duration_ms.parse::<u64>().is_ok_and(|duration_ms| duration_ms >= 100), "{stats}");
    assert!(rest.ends_with("$15\r\nlibraries_count\r\n:1\r\n$15\r\nfunctions_count\r\n:3\r\n"), "{stats}");
    world.ask_as(other, "FUNCTION KILL");
    end(&mut world);
    assert!(world.ask("FUNCTION STATS").starts_with("*4\r\n$14\r\nrunning_script\r\n$-1\r\n"));
}

#[test]
fn a_function_that_has_written_cannot_be_ended() {
    let (mut world, other) = slow_world();
    world.ask("FCALL writing 1 key");
    let refusal = world.ask_as(other, "FUNCTION KILL").0;
    assert!(refusal.starts_with("-UNKILLABLE "), "{refusal}");
    assert_eq!(world.ask_as(other, "GET key").0, BUSY_FUNCTION);
}

#[test]
fn a_script_is_not_ended_as_a_function() {
    let (mut world, other) = slow_world();
    world.send(world.client, &[b"EVAL", b"while true do end", b"0"]);
    for refused in ["FUNCTION KILL", "FUNCTION STATS", "FCALL endless 0"] {
        assert_eq!(world.ask_as(other, refused).0, BUSY_SCRIPT, "{refused}");
    }
    assert_eq!(world.ask_as(other, "SCRIPT KILL").0, "+OK\r\n");
    assert!(end(&mut world).contains("script: 694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7, on @user_script:1.\r\n"));
}

#[test]
fn a_transaction_on_a_busy_server_is_refused_as_a_whole() {
    let (mut world, other) = slow_world();
    world.ask("FCALL endless 0");
    assert_eq!(world.ask_as(other, "MULTI").0, "+OK\r\n");
    assert_eq!(world.ask_as(other, "GET key").0, BUSY_FUNCTION);
    let because = BUSY_FUNCTION.trim_start_matches('-');
    assert_eq!(world.ask_as(other, "EXEC").0, format!("-EXECABORT Transaction discarded because of: {because}"));
    assert_eq!(world.ask_as(other, "DISCARD").0, "-ERR DISCARD without MULTI\r\n");
}

#[test]
fn a_library_that_takes_too_long_is_not_loaded() {
    let (mut world, other) = slow_world();
    for endless in ["while true do end", "local s = ('a'):rep(1000) while true do s:find(('a*'):rep(100) .. 'b') end"] {
        let library = format!("#!lua name=endless\nredis.register_function('f', function() end)\n{endless}");
        let answer = world.send(world.client, &[b"FUNCTION", b"LOAD", library.as_bytes()]).0;
        assert_eq!(answer, b"-ERR Error registering functions: ERR FUNCTION LOAD timeout\r\n");
        assert_eq!(world.ask("FCALL f 0"), "-ERR Function not found\r\n");
        assert_eq!(world.ask_as(other, "PING").0, "+PONG\r\n");
    }
    assert!(world.ask("FUNCTION STATS").contains("libraries_count\r\n:1\r\n"));
}
