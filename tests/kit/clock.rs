//! The server's clock, which a test freezes, advances, sets or speeds up for everything at once.

use std::time::{Duration, UNIX_EPOCH};

use dunlin::{Reply, Server};

use crate::timeout::TIMEOUT;
use crate::{call, error, served};

#[test]
fn a_frozen_clock_shows_the_same_time_until_it_is_advanced() {
    let (_server, mut client) = served();
    let frozen_ms = call(&mut client, ["DUNLIN", "FREEZE"]);
    let Reply::Integer(frozen_ms) = frozen_ms else { panic!("it answers the time: {frozen_ms:?}") };
    let time = call(&mut client, ["TIME"]);
    assert_eq!(call(&mut client, ["TIME"]), time);
    assert_eq!(call(&mut client, ["DUNLIN", "ADVANCE", "1500"]), frozen_ms + 1500);
    assert_ne!(call(&mut client, ["TIME"]), time);
}

#[test]
fn deadlines_on_the_way_are_run_in_order_before_the_reply() {
    let (server, mut client) = served();
    let mut listener = server.client().expect("there is room");
    call(&mut client, ["CONFIG", "SET", "notify-keyspace-events", "Ex"]);
    call(&mut listener, ["PSUBSCRIBE", "*"]);
    call(&mut client, ["DUNLIN", "FREEZE"]);
    for (key, ttl_ms) in [("late", "30"), ("early", "10"), ("later", "31")] {
        call(&mut client, ["SET", key, "value", "PX", ttl_ms]);
    }
    call(&mut client, ["DUNLIN", "ADVANCE", "30"]);
    let mut expired = || listener.next_message().ok().flatten().map(|message| message.payload);
    assert_eq!(expired(), Some(b"early".to_vec()));
    assert_eq!(expired(), Some(b"late".to_vec()));
    assert_eq!(expired(), None);
}

#[test]
fn the_clock_jumps_from_deadline_to_deadline() {
    let (server, mut client) = served();
    server.set_time(UNIX_EPOCH + Duration::from_secs(1000));
    server.freeze();
    let start_ms = 1_000_000;
    server.set_time(UNIX_EPOCH + Duration::from_millis(start_ms));
    call(&mut client, ["SET", "key", "value", "PX", "70"]);
    call(&mut client, ["HSET", "hash", "field", "value"]);
    call(&mut client, ["HPEXPIRE", "hash", "40", "FIELDS", "1", "field"]);
    let next = |client: &mut _| call(client, ["DUNLIN", "ADVANCE-TO-NEXT"]);
    assert_eq!(next(&mut client), 1_000_040);
    assert_eq!(call(&mut client, ["EXISTS", "hash", "key"]), 1);
    assert_eq!(next(&mut client), 1_000_070);
    assert_eq!(call(&mut client, ["EXISTS", "hash", "key"]), 0);
    assert_eq!(next(&mut client), Reply::Null);
    assert_eq!(server.advance_to_next(), None);
}

#[test]
fn the_end_of_a_wait_is_a_deadline_too() {
    let (server, mut client) = served();
    server.freeze();
    let waiting = std::thread::spawn({
        let mut other = server.client().expect("there is room");
        move || call(&mut other, ["BLPOP", "queue", "5"])
    });
    server.wait_until_blocked("queue", TIMEOUT).expect("a client blocks");
    call(&mut client, ["DUNLIN", "ADVANCE-TO-NEXT"]);
    assert_eq!(waiting.join().expect("it ends"), Reply::Null);
}

#[test]
fn a_clock_set_back_shows_the_earlier_time_and_keys_live_longer() {
    let (server, mut client) = served();
    server.freeze();
    server.set_time(UNIX_EPOCH + Duration::from_secs(2000));
    call(&mut client, ["SET", "key", "value", "EX", "10"]);
    assert_eq!(call(&mut client, ["DUNLIN", "SET-TIME", "1990000"]), 1_990_000);
    assert_eq!(call(&mut client, ["TTL", "key"]), 20);
    assert_eq!(call(&mut client, ["DUNLIN", "SET-TIME", "2010000"]), 2_010_000);
    assert_eq!(call(&mut client, ["EXISTS", "key"]), 0);
}

#[test]
fn at_a_million_times_the_speed_an_hour_is_over_at_once() {
    let (_server, mut client) = served();
    call(&mut client, ["SET", "key", "value", "EX", "3600"]);
    assert_eq!(call(&mut client, ["DUNLIN", "SPEED", "1000000"]), Reply::Status("OK".to_owned()));
    assert_eq!(call(&mut client, ["BLPOP", "nothing", "7200"]), Reply::Null);
    assert_eq!(call(&mut client, ["EXISTS", "key"]), 0);
    call(&mut client, ["DUNLIN", "RESUME"]);
}

#[test]
fn stream_ids_idle_times_and_scripts_see_the_same_clock() {
    let (server, mut client) = served();
    server.freeze();
    server.set_time(UNIX_EPOCH + Duration::from_secs(5000));
    assert_eq!(call(&mut client, ["XADD", "log", "*", "field", "value"]), "5000000-0");
    call(&mut client, ["SET", "key", "value"]);
    call(&mut client, ["DUNLIN", "ADVANCE", "60000"]);
    assert_eq!(call(&mut client, ["OBJECT", "IDLETIME", "key"]), 60);
    assert_eq!(call(&mut client, ["EVAL", "return redis.call('TIME')[1]", "0"]), "5060");
    assert_eq!(call(&mut client, ["XADD", "log", "*", "field", "value"]), "5060000-0");
}

#[test]
fn the_time_that_was_skipped_is_not_the_time_that_a_command_took() {
    let (_server, mut client) = served();
    call(&mut client, ["DUNLIN", "ADVANCE", "3600000"]);
    let Reply::Bytes(stats) = call(&mut client, ["INFO", "commandstats"]) else { panic!("INFO is a text") };
    let stats = String::from_utf8(stats).expect("it is ASCII");
    let line = stats.lines().find(|line| line.starts_with("cmdstat_dunlin|advance:")).expect("it was called");
    let usec: u64 = line
        .split("usec=")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!(usec < 1_000_000, "{line}");
}

#[test]
fn impossible_times_are_refused_and_change_nothing() {
    let (server, mut client) = served();
    server.freeze();
    let before = server.now();
    for words in
        [["DUNLIN", "ADVANCE", "-1"], ["DUNLIN", "ADVANCE", "9223372036854775807"], ["DUNLIN", "SET-TIME", "x"]]
    {
        assert_eq!(error(&mut client, words), "ERR value is not an integer or out of range");
    }
    for factor in ["0", "-1", "nan", "1000001", "x"] {
        assert_eq!(error(&mut client, ["DUNLIN", "SPEED", factor]), "ERR value is not a valid float");
    }
    assert_eq!(server.now(), before);
}

#[test]
fn without_the_test_kit_it_is_an_unknown_command() {
    let server = Server::builder().set("test-kit", "no").start().expect("it starts");
    let mut client = server.client().expect("there is room");
    let text = error(&mut client, ["DUNLIN", "FREEZE"]);
    assert_eq!(text, "ERR unknown command 'DUNLIN', with args beginning with: 'FREEZE' ");
    assert_eq!(call(&mut client, ["COMMAND", "INFO", "DUNLIN"]), Reply::Array(vec![Reply::Null]));
}

#[test]
fn no_clock_shows_a_time_before_1970() {
    let (server, mut client) = served();
    assert_eq!(error(&mut client, ["DUNLIN", "SET-TIME", "-1"]), "ERR value is not an integer or out of range");
    server.freeze();
    server.set_time(UNIX_EPOCH - Duration::from_secs(100_000));
    assert_eq!(server.now(), UNIX_EPOCH);
    call(&mut client, ["HSET", "hash", "field", "value"]);
    call(&mut client, ["HPEXPIRE", "hash", "100000", "FIELDS", "1", "field"]);
    assert_eq!(
        call(&mut client, ["HPTTL", "hash", "FIELDS", "1", "field"]),
        Reply::Array(vec![Reply::Integer(100_000)])
    );
}
