//! The client of a test: short forms of commands, and several commands at once.

use std::time::Duration;

use dunlin::{CallError, Reply, Server};

#[test]
fn short_forms_are_commands_with_rust_types() {
    let redis = Server::builder().frozen().test();
    let mut client = redis.client().expect("there is room");
    assert_eq!(client.get("key"), Ok(None));
    assert_eq!(client.exists("key"), Ok(false));
    client.set("key", [0xff, 0x00]).expect("it is set");
    assert_eq!(client.get("key"), Ok(Some(vec![0xff, 0x00])));
    assert_eq!(client.exists("key"), Ok(true));
    assert_eq!(client.delete("key"), Ok(true));
    assert_eq!(client.delete("key"), Ok(false));
    client.set_for("key", "1", Duration::from_millis(1500)).expect("it is set");
    redis.advance(Duration::from_millis(1499));
    assert_eq!(client.exists("key"), Ok(true));
    redis.advance(Duration::from_millis(1));
    assert_eq!(client.exists("key"), Ok(false));
}

#[test]
fn a_short_form_returns_the_error_of_its_command() {
    let redis = dunlin::test();
    let mut client = redis.client().expect("there is room");
    client.call(["RPUSH", "list", "a"]).expect("it is pushed");
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(client.get("list"), Err(CallError::Refused(wrong_type.to_owned())));
    let refused = client.set_for("key", "1", Duration::ZERO);
    assert_eq!(refused, Err(CallError::Refused("ERR invalid expire time in 'set' command".to_owned())));
    assert_eq!(client.exists("key"), Ok(false));
}

#[test]
fn several_commands_are_answered_in_their_order() {
    let redis = dunlin::test();
    let mut client = redis.client().expect("there is room");
    let replies = client.call_all([vec!["SET", "a", "1"], vec!["INCR", "a"], vec!["NONE"], vec!["GET", "a"]]);
    let unknown = "ERR unknown command 'NONE', with args beginning with: ";
    let expected = [
        Ok(Reply::Status("OK".to_owned())),
        Ok(Reply::Integer(2)),
        Err(CallError::Refused(unknown.to_owned())),
        Ok(Reply::Bytes(b"2".to_vec())),
    ];
    assert_eq!(replies, expected);
}

/// A call keeps its buffers for the next one; a long reply must not be kept, nor be mixed with the next.
#[test]
fn a_short_reply_follows_a_long_one() {
    let redis = dunlin::test();
    let mut client = redis.client().expect("there is room");
    let long = vec![b'x'; 300_000];
    client.set("long", &long).expect("it is set");
    for _ in 0..3 {
        assert_eq!(client.get("long").as_ref(), Ok(&Some(long.clone())));
        assert_eq!(client.exists("long"), Ok(true));
        assert_eq!(client.get("none"), Ok(None));
    }
}

/// Few direct calls are timed, but all are counted, in the statistics and in the histogram.
#[test]
fn every_direct_call_is_counted_though_few_are_timed() {
    let redis = dunlin::test();
    let mut client = redis.client().expect("there is room");
    for _ in 0..40 {
        client.set("key", "value").expect("it is set");
        client.get("key").expect("it is a string");
    }
    let stats = client.call(["INFO", "commandstats"]).expect("it replies").text().expect("it is text").into_owned();
    assert!(stats.contains("cmdstat_get:calls=40,") && stats.contains("cmdstat_set:calls=40,"), "{stats}");
    let histogram = client.call(["LATENCY", "HISTOGRAM", "get"]).expect("it replies").to_string();
    assert!(histogram.contains("calls") && histogram.contains("40"), "{histogram}");
}

#[test]
fn a_message_that_arrives_with_the_reply_to_a_short_form_is_kept() {
    let redis = dunlin::test();
    let (mut ann, mut bob) = (redis.client().expect("there is room"), redis.client().expect("there is room"));
    ann.call(["SUBSCRIBE", "news"]).expect("it subscribes");
    bob.call(["PUBLISH", "news", "hello"]).expect("it publishes");
    ann.set("key", "value").expect("it is set");
    assert_eq!(ann.get("key"), Ok(Some(b"value".to_vec())));
    let message = ann.next_message().expect("it is open").expect("it was published");
    assert_eq!((&message.channel[..], &message.payload[..]), (&b"news"[..], &b"hello"[..]));
}

/// Each of these begins between two equal calls, the first of which found nothing in its way.
#[test]
fn what_begins_between_two_calls_of_one_client_concerns_the_second() {
    let redis = Server::start().expect("it starts");
    let mut client = redis.client().expect("there is room");
    let mut other = redis.client().expect("there is room");
    let mut ask = |words: &[&str]| other.call(words).expect("it is allowed");
    let mut set = || (0..3).map(|_| client.set("key", "value")).last().expect("there are three");
    let refused = |text: &str| Err(CallError::Refused(text.to_owned()));
    assert_eq!(set(), Ok(()));

    redis.fault("broken").command("SET").error("ERR broken");
    assert_eq!(set(), refused("ERR broken"));
    redis.clear_faults();
    assert_eq!(set(), Ok(()));

    let journal = redis.journal().command("SET");
    assert_eq!(set(), Ok(()));
    journal.assert_exactly(3);
    ask(&["DUNLIN", "JOURNAL", "CLEAR"]);
    ask(&["DUNLIN", "JOURNAL", "STOP"]);
    assert_eq!(set(), Ok(()));

    ask(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(set(), refused("OOM command not allowed when used memory > 'maxmemory'."));
    ask(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(set(), Ok(()));

    ask(&["ACL", "SETUSER", "default", "-set"]);
    assert_eq!(set(), refused("NOPERM User default has no permissions to run the 'set' command"));
}
