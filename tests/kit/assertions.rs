//! The assertions of the test kit: they pass if the condition holds, and else fail with the right message.

use std::time::Duration;

use dunlin::{Reply, TestServer, assert_exists, assert_journal, assert_missing, assert_reply, assert_ttl};

use crate::guard::failure;

fn call(redis: &TestServer, line: &str) {
    redis.call(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
}

/// A server on which an application has run some commands.
fn used(lines: &[&str]) -> TestServer {
    let redis = dunlin::test();
    let mut application = redis.client().expect("there is room");
    for line in lines {
        // Errors are part of the story.
        let _ = application.call(line.split(' '));
    }
    redis
}

#[test]
fn replies_are_compared_by_their_meaning() {
    let redis = &used(&["ZADD board 10 ada 2.5 bob", "HSET user:1 name ann age 7", "SADD set b a", "RPUSH list a 1"]);
    let (key, field) = (String::from("user:1"), "age");
    assert_reply!(redis, "ZSCORE board ada" == 10);
    assert_reply!(redis, "ZSCORE board ada" == "10");
    assert_reply!(redis, ["ZSCORE", "board", "bob"] == 2.5);
    assert_reply!(redis, ["HGET", key, field] == 7);
    assert_reply!(redis, ["HGETALL", &key] == [["age", "7"], ["name", "ann"]]);
    assert_reply!(redis, "SMEMBERS set" == ["a", "b"]);
    assert_reply!(redis, "LRANGE list 0 -1" == [b"a", b"1"]);
    assert_reply!(redis, "LRANGE nosuch 0 -1" == Vec::<i64>::new());
    assert_reply!(redis, "SET \"a key\" 'its value'" == "OK");
    assert_reply!(redis, ["GET", "a key"] == Some("its value"));
    assert_reply!(redis, ["SETRANGE", "bytes", 0, b"\xff\x00"] == 2);
    assert_reply!(redis, "GET bytes" == b"\xff\x00");
    assert_reply!(redis, "GET nosuch" == nil);
    assert_reply!(redis, "MGET nosuch \"a key\"" == [None, Some("its value")]);
    assert_reply!(redis, "INCR list" == error("WRONGTYPE"));
    assert_reply!(redis, "EXISTS list" == true);
    assert_reply!(redis, "PING" == Reply::Status("PONG".to_owned()),);
}

#[test]
fn a_wrong_reply_is_reported_with_its_command_and_the_commands_before() {
    let redis = used(&["ZADD board 12 ada"]);
    let text = failure(|| assert_reply!(redis, "ZSCORE board ada" == 10));
    let expected = "the reply is not what was expected\n\
                    \x20  command: ZSCORE board ada\n  expected: 10\n       got: (double) 12\n\
                    the last commands:\n  #1 client 1: ZADD board 12 ada -> (integer) 1";
    assert_eq!(text, expected);
    let text = failure(|| assert_reply!(dunlin::test(), ["GET", "a key"] == "value"));
    assert_eq!(
        text,
        "the reply is not what was expected\n   command: GET \"a key\"\n  expected: \"value\"\n       got: (nil)"
    );
    let list = used(&["RPUSH list a b"]);
    let text = failure(|| assert_reply!(list, "LRANGE list 0 -1" == ["a", "c"]));
    let lines = "  expected: [\"a\", \"c\"]\n       got: 1) \"a\"\n            2) \"b\"\nthe last commands:";
    assert!(text.contains(lines), "{text}");
    let text = failure(|| assert_reply!(list, "GET list" == nil));
    assert!(text.contains("  expected: (nil)\n       got: an error: WRONGTYPE Operation against"), "{text}");
    let text = failure(|| assert_reply!(list, "LLEN list" == error("ERR")));
    assert!(text.contains("  expected: an error: ERR\n       got: (integer) 2"), "{text}");
    assert!(
        failure(|| assert_reply!(list, "GET \"list" == nil)).starts_with("the quotes are not balanced: GET \"list")
    );
}

#[test]
fn the_existence_of_keys_is_asserted() {
    let redis = used(&["SET user:1 ann", "RPUSH list a"]);
    assert_exists!(redis, "user:1");
    assert_missing!(redis, String::from("user:2"));
    let text = failure(|| assert_exists!(redis, "user:2"));
    assert!(
        text.starts_with("the key user:2 does not exist; existing keys: list, user:1\nthe last commands:\n  #1"),
        "{text}"
    );
    assert_eq!(failure(|| assert_exists!(dunlin::test(), b"a b")), "the key \"a b\" does not exist; there are no keys");
    let text = failure(|| assert_missing!(redis, "list"));
    assert!(text.starts_with("the key list exists: a list, which lives for ever\nthe last commands:"), "{text}");
}

#[test]
fn deadlines_are_compared_to_the_millisecond_on_a_frozen_clock() {
    let redis = dunlin::Server::builder().frozen().test();
    let (key, minute) = ("session", Duration::from_secs(60));
    call(&redis, "SET session ann EX 60");
    call(&redis, "SET config x");
    assert_ttl!(redis, key == minute);
    assert_ttl!(redis, "session" <= minute);
    assert_ttl!(redis, "config" == none);
    redis.advance(Duration::from_secs(30));
    assert_ttl!(redis, "session" == Duration::from_secs(30));
    let text = failure(|| assert_ttl!(redis, "session" == minute));
    assert!(text.starts_with("expected 60 s to live of the key session, which has 30 s to live"), "{text}");
    let text = failure(|| assert_ttl!(redis, "session" <= Duration::from_millis(29_999)));
    assert!(text.starts_with("expected at most 29.999 s to live of the key session, which has 30 s"), "{text}");
    let text = failure(|| assert_ttl!(redis, "session" == none));
    assert!(text.starts_with("expected no deadline of the key session, which has 30 s to live"), "{text}");
    let text = failure(|| assert_ttl!(redis, "config" <= minute));
    assert!(text.starts_with("expected at most 60 s to live of the key config, which lives for ever"), "{text}");
    let text = failure(|| assert_ttl!(redis, "nosuch" == minute));
    assert!(
        text.starts_with("expected 60 s to live of the key nosuch, which does not exist; existing keys: config, "),
        "{text}"
    );
}

#[test]
fn deadlines_are_compared_as_exactly_as_a_running_clock_allows() {
    let redis = dunlin::test();
    call(&redis, "SET session ann EX 3600");
    redis.call(["BLPOP", "nosuch", "0.005"]).expect("five milliseconds pass");
    assert_ttl!(redis, "session" == Duration::from_secs(3600));
    redis.advance(Duration::from_secs(600));
    assert_ttl!(redis, "session" == Duration::from_secs(3000));
    failure(|| assert_ttl!(redis, "session" == Duration::from_secs(3600)));
    failure(|| assert_ttl!(redis, "session" == Duration::from_secs(2400)));
}

#[test]
fn the_counts_of_the_journal_are_asserted() {
    let redis = used(&["GET user:1", "GET user:2", "SET other 1", "INCR user:1", "CONFIG GET port", "RPUSH other x"]);
    let most = 2;
    assert_journal!(redis, at most 2 GET);
    assert_journal!(redis, at most most GET);
    assert_journal!(redis, at least 1 GET on "user:*");
    assert_journal!(redis, exactly 1 "config|get");
    assert_journal!(redis, exactly 1 INCR on "user:1");
    assert_journal!(redis, no KEYS);
    assert_journal!(redis, no SET on "user:*");
    let text = failure(|| assert_journal!(redis, at most 1 GET));
    assert!(
        text.starts_with("expected at most 1 of COMMAND GET, found 2:\n  #1 client 1: GET user:1 -> (nil)\n"),
        "{text}"
    );
    let text = failure(|| assert_journal!(redis, no errors));
    assert!(
        text.starts_with("expected exactly 0 of ERRORS, found 1:\n  #6 client 1: RPUSH other x -> (error) WRONG"),
        "{text}"
    );
    assert!(
        failure(|| assert_journal!(redis, at least 3 GET)).starts_with("expected at least 3 of COMMAND GET, found 2")
    );
    assert!(
        failure(|| assert_journal!(redis, exactly 1 GET)).starts_with("expected exactly 1 of COMMAND GET, found 2")
    );
    assert!(failure(|| assert_journal!(redis, no INCR)).starts_with("expected exactly 0 of COMMAND INCR, found 1"));
}
