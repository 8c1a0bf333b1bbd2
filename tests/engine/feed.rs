//! DUNLIN FEED: a client is sent the commands of others with their replies, as far as it reads and its filter admits.

use crate::world::World;
use dunlin::engine::{SessionId, Settings};
use dunlin::resp::Frame;

/// A world with the test kit.
fn with_kit() -> World {
    World::with_kit(Settings::default())
}

/// A world with the test kit, and a client whose feed has that filter.
fn with_feed(filter: &str) -> (World, SessionId) {
    let mut world = with_kit();
    let watcher = world.join();
    world.ask_as(watcher, "HELLO 3");
    assert_eq!(world.ask_as(watcher, &format!("DUNLIN FEED {filter}")).0, "+OK\r\n");
    (world, watcher)
}

/// The messages that a client was sent since the last time: each command with its source and its reply.
fn fed(world: &mut World, watcher: SessionId) -> Vec<String> {
    let pushes = world.take_pushes(watcher);
    let mut rest = pushes.as_bytes();
    let mut messages = Vec::new();
    while let Some((frame, length)) = Frame::decode(rest).expect("it is RESP") {
        messages.push(message(&frame));
        rest = &rest[length..];
    }
    messages
}

fn message(frame: &Frame<'_>) -> String {
    let Frame::Push(parts) = frame else { panic!("it is no push: {frame:?}") };
    match &parts[..] {
        [Frame::Bytes(b"feed"), Frame::Map(entry)] => {
            let of =
                |name: &str| entry.chunks(2).find(|pair| pair[0] == Frame::Bytes(name.as_bytes())).map(|pair| &pair[1]);
            let Some(Frame::Array(words)) = of("command") else { panic!("it has no command: {entry:?}") };
            let words: Vec<String> = words.iter().map(text).collect();
            format!(
                "{} {}: {}",
                text(of("source").expect("it has one")),
                words.join(" "),
                text(of("reply").expect("it ended"))
            )
        }
        [kind, count] => format!("{} {count:?}", text(kind)),
        _ => panic!("it has other parts: {parts:?}"),
    }
}

fn text(frame: &Frame<'_>) -> String {
    let Frame::Bytes(bytes) = frame else { panic!("it is no text: {frame:?}") };
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_client_is_sent_commands_with_their_replies_when_they_have_ended() {
    let (mut world, watcher) = with_feed("");
    world.ask("SET greeting hello");
    world.ask("INCR greeting");
    world.send(world.client, &[b"EVAL", b"return redis.call('GET', 'greeting')", b"0"]);
    world.ask("AUTH secret");
    let expected = [
        "client SET greeting hello: OK",
        "client INCR greeting: (error) ERR value is not an integer or out of range",
        "script GET greeting: \"hello\"",
        "client EVAL return redis.call('GET', 'greeting') 0: \"hello\"",
        "client AUTH (redacted): (error) ERR AUTH <password> called without any password configured for the default user. \
         Are you sure your configuration is correct?",
    ];
    assert_eq!(fed(&mut world, watcher), expected);
    let (own, _) = world.ask_as(watcher, "GET greeting");
    assert!(own.starts_with("$5\r\nhello\r\n>2\r\n$4\r\nfeed\r\n"), "{own}");
}

#[test]
fn the_commands_of_a_transaction_come_when_it_runs_and_a_blocked_one_when_it_is_served() {
    let (mut world, watcher) = with_feed("");
    let blocked = world.join();
    world.ask_as(blocked, "BLPOP jobs 0");
    assert_eq!(fed(&mut world, watcher), [""; 0]);
    ["MULTI", "RPUSH jobs 1", "EXEC"].iter().for_each(|command| _ = world.ask(command));
    let expected = [
        "client MULTI: OK",
        "transaction RPUSH jobs 1: (integer) 1",
        "client BLPOP jobs 0: 1) \"jobs\"\n2) \"1\"",
        "client EXEC: 1) (integer) 1",
    ];
    assert_eq!(fed(&mut world, watcher), expected);
}

#[test]
fn a_filter_can_be_replaced_and_the_feed_ends_with_off_and_with_reset() {
    let (mut world, watcher) = with_feed("ERRORS COMMAND incr");
    world.ask("SET key value");
    world.ask("INCR key");
    assert_eq!(fed(&mut world, watcher), ["client INCR key: (error) ERR value is not an integer or out of range"]);
    world.ask_as(watcher, "DUNLIN FEED KEY user:*");
    world.ask("INCR key");
    world.ask("GET user:1");
    assert_eq!(fed(&mut world, watcher), ["client GET user:1: (nil)"], "once, as the first filter is gone");
    world.ask_as(watcher, "DUNLIN FEED OFF");
    world.ask("GET user:1");
    assert_eq!(fed(&mut world, watcher), [""; 0]);
    assert!(world.engine.observers.kit.is_none(), "nothing is left of it");
    world.ask_as(watcher, "DUNLIN FEED");
    let blocked = world.join();
    world.ask_as(blocked, "BLPOP jobs 0");
    world.ask_as(watcher, "RESET");
    assert!(world.engine.observers.kit.is_some(), "BLPOP was recorded, and is not yet answered");
    world.ask_as(watcher, "HELLO 3");
    world.ask("RPUSH jobs 1");
    assert_eq!(fed(&mut world, watcher), [""; 0]);
    assert!(world.engine.observers.kit.is_none(), "nothing is left of it either");
}

#[test]
fn a_client_that_does_not_read_is_told_how_many_commands_it_missed() {
    let (mut world, watcher) = with_feed("COMMAND echo");
    let long = vec![b'x'; 300_000];
    (0..10).for_each(|_| _ = world.send(world.client, &[b"ECHO", &long]));
    let sent = fed(&mut world, watcher).len();
    assert!((1..9).contains(&sent), "{sent} were sent");
    world.ask("ECHO short");
    let missed = format!("feed-dropped Integer({})", 10 - sent);
    assert_eq!(fed(&mut world, watcher), [missed.as_str(), "client ECHO short: \"short\""]);
}

#[test]
fn the_feed_is_refused_where_messages_could_be_taken_for_replies() {
    let mut world = with_kit();
    let refused = "-ERR DUNLIN FEED sends push messages, which need RESP3: call HELLO 3 first\r\n";
    assert_eq!(world.ask("DUNLIN FEED"), refused);
    world.ask("HELLO 3");
    assert!(world.ask("DUNLIN FEED COMMAND nosuch").starts_with("-ERR unknown command name 'nosuch'"));
    assert!(world.ask("DUNLIN FEED OFF ERRORS").starts_with("-ERR syntax error, usage: DUNLIN FEED <OFF|"));
    world.ask("DUNLIN FEED");
    world.ask("HELLO 2");
    assert_eq!(world.ask("PING"), "+PONG\r\n", "it went back to RESP2");
    assert!(world.engine.observers.kit.is_none());
}

#[test]
fn a_client_with_a_feed_is_a_listener_and_leaves_nothing_behind() {
    let (mut world, watcher) = with_feed("");
    assert!(world.engine.sessions.get(watcher).is_some_and(|client| client.receives_pushes()), "it is never idle");
    world.engine.disconnect(watcher);
    assert!(world.engine.observers.kit.is_none());
    world.ask("PING");
}

#[test]
fn nothing_is_sent_to_a_client_whose_user_may_no_longer_read_all_keys() {
    let (mut world, watcher) = with_feed("COMMAND SET");
    for (rules, value) in [("allkeys", "one"), ("resetkeys %W~*", "two"), ("%R~k*", "three"), ("%R~*", "four")] {
        world.ask(&format!("ACL SETUSER default {rules}"));
        world.ask(&format!("SET k {value}"));
    }
    assert_eq!(fed(&mut world, watcher), ["client SET k one: OK", "client SET k four: OK"]);
}

#[test]
fn nothing_is_sent_to_a_client_whose_user_could_no_longer_start_the_feed() {
    let mut world = with_kit();
    world.ask("ACL SETUSER reader on nopass allkeys +@all");
    let watcher = world.join();
    for line in ["AUTH reader x", "HELLO 3", "DUNLIN FEED COMMAND SET"] {
        world.ask_as(watcher, line);
    }
    let steps = [
        ("on", "one"),
        ("resetkeys ~app:* (%R~*)", "two"),
        ("clearselectors allkeys -dunlin", "three"),
        ("(~* +dunlin|feed)", "four"),
    ];
    for (rules, value) in steps {
        world.ask(&format!("ACL SETUSER reader {rules}"));
        world.ask(&format!("SET k {value}"));
    }
    assert_eq!(fed(&mut world, watcher), ["client SET k one: OK", "client SET k four: OK"]);
}
