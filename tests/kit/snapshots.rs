//! Named snapshots of the whole state, and rollbacks to them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::pin;
use std::time::Duration;

use dunlin::{Client, Reply, Server};

use crate::timeout::TIMEOUT;
use crate::{call, ended, error, polled, served};

fn ok() -> Reply {
    Reply::Status("OK".to_owned())
}

/// All texts in a reply.
fn text_of(reply: &Reply) -> String {
    match reply.items() {
        Some(items) => items.iter().map(text_of).collect::<Vec<_>>().join(" "),
        None => reply.text().unwrap_or_default().into_owned(),
    }
}

/// A server whose data has a digest (DEBUG DIGEST).
fn digesting() -> (Server, Client) {
    let server = Server::builder().allow_debug().start().expect("it starts");
    let client = server.client().expect("there is room");
    (server, client)
}

#[test]
fn a_rollback_restores_data_of_every_type() {
    let (_server, mut client) = digesting();
    let commands = [
        "SET text value",
        "INCRBY counter 5",
        "RPUSH list a b c",
        "SADD set a b",
        "ZADD zset 1 a 2 b",
        "HSET hash f v g w",
        "HPEXPIRE hash 100000 FIELDS 1 f",
        "XADD stream 5-1 f v",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group ann STREAMS stream >",
        "PFADD sketch a b c",
        "EXPIRE text 100",
    ];
    let mut run = |words: &str| call(&mut client, words.split(' '));
    commands.into_iter().for_each(|words| _ = run(words));
    let digest = run("DEBUG DIGEST");
    assert_eq!(run("DUNLIN SNAPSHOT base"), ok());
    for words in [
        "APPEND text more",
        "PERSIST text",
        "DEL counter",
        "LPOP list",
        "SPOP set",
        "ZINCRBY zset 5 a",
        "HDEL hash f",
        "XDEL stream 5-1",
        "XACK stream group 5-1",
        "RENAME sketch other",
        "SET new value",
        "SELECT 3",
        "SET elsewhere value",
        "SELECT 0",
    ] {
        run(words);
    }
    assert_ne!(run("DEBUG DIGEST"), digest);
    assert_eq!(run("DUNLIN ROLLBACK base"), ok());
    assert_eq!(run("DEBUG DIGEST"), digest);
    assert_eq!(run("TTL text"), 100);
    assert!(text_of(&run("XPENDING stream group - + 10")).contains("5-1 ann"));
    run("FLUSHALL");
    assert_eq!(run("DUNLIN ROLLBACK base"), ok());
    run("SWAPDB 0 1");
    run("SET text other");
    run("FLUSHDB");
    assert_eq!(run("DUNLIN ROLLBACK base"), ok());
    assert_eq!(run("DEBUG DIGEST"), digest);
}

#[test]
fn snapshots_nest_and_the_older_one_drops_the_younger() {
    let (server, mut client) = served();
    for (name, value) in [("none", "1"), ("one", "2"), ("two", "3")] {
        server.snapshot(name);
        call(&mut client, ["SET", "key", value]);
    }
    assert_eq!(server.snapshots(), ["none", "one", "two"]);
    server.rollback("two").expect("it is there");
    assert_eq!(call(&mut client, ["GET", "key"]), "2");
    server.rollback("one").expect("it is there");
    assert_eq!(call(&mut client, ["GET", "key"]), "1");
    assert_eq!(text_of(&call(&mut client, ["DUNLIN", "SNAPSHOTS"])), "none one");
    call(&mut client, ["DUNLIN", "DROP-SNAPSHOT", "one"]);
    assert_eq!(call(&mut client, ["GET", "key"]), "1");
    server.rollback("none").expect("it is there");
    assert_eq!(call(&mut client, ["EXISTS", "key"]), 0);
    assert_eq!(server.snapshots(), ["none"]);
}

#[test]
fn a_snapshot_that_does_not_exist_is_refused() {
    let (server, mut client) = served();
    assert_eq!(error(&mut client, ["DUNLIN", "ROLLBACK", "x"]), "ERR no snapshot named 'x'");
    assert_eq!(error(&mut client, ["DUNLIN", "DROP-SNAPSHOT", "x"]), "ERR no snapshot named 'x'");
    assert_eq!(server.rollback("x").expect_err("there is none").to_string(), "ERR no snapshot named 'x'");
}

#[test]
fn a_reused_name_denotes_the_younger_snapshot() {
    let (server, mut client) = served();
    server.snapshot("base");
    call(&mut client, ["SET", "key", "1"]);
    server.snapshot("base");
    call(&mut client, ["SET", "key", "2"]);
    assert_eq!(server.snapshots(), ["base"]);
    server.rollback("base").expect("it is there");
    assert_eq!(call(&mut client, ["GET", "key"]), "1");
}

#[test]
fn a_rollback_restores_settings_users_scripts_functions_and_the_random_generator() {
    let (server, mut client) = served();
    let library = |name: &str, value: &str| {
        format!("#!lua name={name}\nredis.register_function('{name}', function() return {value} end)")
    };
    call(&mut client, ["FUNCTION", "LOAD", &library("kept", "1")]);
    let sha = text_of(&call(&mut client, ["SCRIPT", "LOAD", "return 1"]));
    server.snapshot("base");
    let chance = call(&mut client, ["EVAL", "return math.random(1000000)", "0"]);
    call(&mut client, ["CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "1gb"]);
    call(&mut client, ["ACL", "SETUSER", "ann", "on", "nopass", "+@all", "~*"]);
    call(&mut client, ["FUNCTION", "LOAD", &library("added", "2")]);
    call(&mut client, ["FUNCTION", "LOAD", "REPLACE", &library("kept", "3")]);
    call(&mut client, ["SCRIPT", "FLUSH"]);
    server.rollback("base").expect("it is there");
    assert_eq!(call(&mut client, ["EVAL", "return math.random(1000000)", "0"]), chance);
    assert_eq!(call(&mut client, ["FCALL", "kept", "0"]), 1);
    assert_eq!(error(&mut client, ["FCALL", "added", "0"]), "ERR Function not found");
    assert_eq!(call(&mut client, ["EVALSHA", &sha, "0"]), 1);
    assert_eq!(call(&mut client, ["ACL", "USERS"]), Reply::Array(vec![Reply::Bytes(b"default".to_vec())]));
    let Reply::Map(settings) = call(&mut client, ["CONFIG", "GET", "maxmemory"]) else { panic!("it is a map") };
    assert_eq!(settings[0].1, "0");
}

#[test]
fn a_rollback_restores_the_time_and_speed_of_the_clock() {
    let (server, mut client) = served();
    server.freeze();
    let frozen = server.now();
    call(&mut client, ["SET", "key", "value", "EX", "10"]);
    server.snapshot("base");
    server.advance(Duration::from_secs(20));
    server.resume();
    assert_eq!(call(&mut client, ["EXISTS", "key"]), 0);
    server.rollback("base").expect("it is there");
    assert_eq!((server.now(), server.now()), (frozen, frozen));
    assert_eq!(call(&mut client, ["TTL", "key"]), 10);
    server.advance(Duration::from_secs(20));
    assert_eq!(call(&mut client, ["DUNLIN", "ROLLBACK", "base"]), ok());
    assert_eq!(server.now(), frozen);
    assert_eq!(call(&mut client, ["TTL", "key"]), 10);
}

#[test]
fn a_rollback_that_changes_a_watched_key_breaks_the_transaction() {
    let (server, mut client) = served();
    call(&mut client, ["SET", "key", "1"]);
    server.snapshot("base");
    call(&mut client, ["SET", "key", "2"]);
    call(&mut client, ["WATCH", "key"]);
    server.rollback("base").expect("it is there");
    call(&mut client, ["MULTI"]);
    call(&mut client, ["SET", "key", "3"]);
    assert_eq!(call(&mut client, ["EXEC"]), Reply::Null);
    call(&mut client, ["WATCH", "key"]);
    server.rollback("base").expect("it is there");
    call(&mut client, ["MULTI"]);
    assert_eq!(call(&mut client, ["EXEC"]), Reply::Array(Vec::new()), "nothing had changed");
}

#[test]
fn a_rollback_that_restores_a_key_serves_clients_blocked_on_it() {
    let (server, mut client) = served();
    call(&mut client, ["RPUSH", "queue", "job"]);
    server.snapshot("base");
    call(&mut client, ["DEL", "queue"]);
    let waiting = std::thread::spawn({
        let mut other = server.client().expect("there is room");
        move || call(&mut other, ["BLPOP", "queue", "0"])
    });
    server.wait_until_blocked("queue", TIMEOUT).expect("a client blocks");
    server.rollback("base").expect("it is there");
    assert_eq!(text_of(&waiting.join().expect("it is served")), "queue job");
    assert_eq!(call(&mut client, ["EXISTS", "queue"]), 0);
    server.rollback("base").expect("it is there");
    assert_eq!(call(&mut client, ["LLEN", "queue"]), 1);
}

/// The number of changes of keys that the server has counted.
fn changes(client: &mut Client) -> u64 {
    let info = call(client, ["INFO", "persistence"]);
    let text = info.text().expect("INFO is a text").into_owned();
    let count = text.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
    count.and_then(|count| count.parse().ok()).expect("it is counted")
}

/// One case of a suite: it changes ten keys of the fixture, and makes ten others.
fn run_case(client: &mut Client, case: usize) {
    for write in 0..10 {
        let (known, added) = (format!("key:{}", (10 * case + write) * 7919 % 400_000), format!("added:{write}"));
        call(client, ["APPEND", &known, "more"]);
        call(client, ["EXPIRE", &known, "100"]);
        call(client, ["LPUSH", &added, "element"]);
    }
}

#[test]
fn a_rollback_restores_changed_keys_and_touches_no_other() {
    let (server, mut client) = digesting();
    call(&mut client, ["DEBUG", "POPULATE", "400000", "key", "256"]);
    server.snapshot("fixture");
    for case in 0..1000 {
        run_case(&mut client, case);
        let before = changes(&mut client);
        server.rollback("fixture").expect("it is there");
        assert_eq!(changes(&mut client) - before, 20, "keys are brought back");
    }
    assert_eq!(call(&mut client, ["DBSIZE"]), 400_000);
    assert_eq!(call(&mut client, ["STRLEN", "key:0"]), 256);
}

#[test]
fn a_thousand_cases_leave_the_fixture_as_it_was() {
    let (server, mut client) = digesting();
    call(&mut client, ["DEBUG", "POPULATE", "100000"]);
    let digest = call(&mut client, ["DEBUG", "DIGEST"]);
    server.snapshot("fixture");
    for case in 0..1000 {
        let key = format!("key:{case}");
        call(&mut client, ["APPEND", &key, "changed"]);
        call(&mut client, ["SET", "added", &key]);
        if case % 100 == 0 {
            call(&mut client, ["FLUSHALL"]);
        }
        server.rollback("fixture").expect("it is there");
    }
    assert_eq!(call(&mut client, ["DEBUG", "DIGEST"]), digest);
}

/// The bytes that arrive on a connection after a request, up to `end`.
fn reply_to(wire: &mut TcpStream, request: &str, end: &str) -> String {
    wire.write_all(request.as_bytes()).expect("it reads");
    let (mut got, mut byte) = (Vec::new(), [0]);
    while !got.ends_with(end.as_bytes()) {
        wire.read_exact(&mut byte).expect("it is answered in time");
        got.push(byte[0]);
    }
    String::from_utf8(got).expect("it is ASCII")
}

/// A connection that caches what it reads.
fn caching(server: &Server) -> TcpStream {
    let mut wire = TcpStream::connect(server.addr()).expect("it listens");
    wire.set_read_timeout(Some(TIMEOUT)).expect("a time can be set");
    reply_to(&mut wire, "HELLO 3\r\nCLIENT TRACKING ON\r\n", "+OK\r\n");
    wire
}

#[test]
fn a_rollback_invalidates_the_cached_keys_that_it_changes_and_no_other() {
    let (server, mut client) = served();
    server.freeze();
    call(&mut client, ["MSET", "changed", "1", "same", "1"]);
    server.snapshot("base");
    call(&mut client, ["SET", "changed", "2"]);
    // When a key was used goes back, too, but nobody has cached that.
    server.advance(Duration::from_secs(2));
    let mut wire = caching(&server);
    reply_to(&mut wire, "MGET changed same\r\n", "$1\r\n2\r\n$1\r\n1\r\n");
    server.rollback("base").expect("it is there");
    let expected = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\nchanged\r\n+PONG\r\n";
    assert_eq!(reply_to(&mut wire, "PING\r\n", "+PONG\r\n"), expected);
    reply_to(&mut wire, "MGET changed same\r\n", "$1\r\n1\r\n$1\r\n1\r\n");
    server.rollback("base").expect("it is there");
    assert_eq!(reply_to(&mut wire, "PING\r\n", "+PONG\r\n"), "+PONG\r\n", "nothing had changed");
}

#[test]
fn a_rollback_that_undoes_a_flush_invalidates_everything() {
    let (server, mut client) = served();
    call(&mut client, ["SET", "key", "1"]);
    server.snapshot("base");
    call(&mut client, ["FLUSHALL"]);
    let mut wire = caching(&server);
    reply_to(&mut wire, "GET key\r\n", "_\r\n");
    server.rollback("base").expect("it is there");
    let expected = ">2\r\n$10\r\ninvalidate\r\n_\r\n+PONG\r\n";
    assert_eq!(reply_to(&mut wire, "PING\r\n", "+PONG\r\n"), expected);
}

#[test]
fn a_rollback_restores_functions_that_were_loaded_anew() {
    let (server, mut client) = digesting();
    let library = "#!lua name=mine\nredis.register_function('one', function() return 1 end)";
    call(&mut client, ["FUNCTION", "LOAD", library]);
    server.snapshot("before");
    call(&mut client, ["DEBUG", "RELOAD"]);
    server.rollback("before").expect("it is there");
    assert_eq!(call(&mut client, ["FCALL", "one", "0"]), 1);
}

/// The clock goes back by an hour, and what clients wait for would come that much later.
#[test]
fn waits_and_pauses_last_for_as_long_as_was_left_when_the_clock_goes_back() {
    let server = Server::builder().frozen().start().expect("it starts");
    let [mut blocked, mut held, mut test] = [(); 3].map(|()| server.client().expect("there is room"));
    server.snapshot("before");
    server.advance(Duration::from_secs(3600));
    let mut wait = pin!(blocked.call_async(["BLPOP", "queue", "2"]));
    assert!(polled(wait.as_mut()).is_pending());
    call(&mut test, ["CLIENT", "PAUSE", "1000", "WRITE"]);
    let mut write = pin!(held.call_async(["SET", "key", "1"]));
    assert!(polled(write.as_mut()).is_pending());
    server.rollback("before").expect("it is there");
    server.advance(Duration::from_secs(1));
    assert_eq!(ended(write.as_mut()), Ok(ok()));
    assert!(polled(wait.as_mut()).is_pending());
    server.advance(Duration::from_secs(1));
    assert_eq!(ended(wait.as_mut()), Ok(Reply::Null));
}

#[test]
fn a_rollback_leaves_the_test_kit_and_the_switches_of_debug_as_they_are() {
    let server = Server::builder().allow_debug().frozen().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    call(&mut client, ["MSET", "a", "1", "b", "2"]);
    server.snapshot("base");
    for line in [
        "DUNLIN JOURNAL START",
        "DUNLIN FAULT ADD rule COMMAND GET NTH 2 ERROR boom",
        "DUNLIN STRICT SET keys-command error LIMIT 1",
        "DEBUG SET-ACTIVE-EXPIRE 0",
        "GET key",
    ] {
        call(&mut client, line.split(' '));
    }
    assert!(error(&mut client, ["KEYS", "*"]).contains("STRICT"));
    server.rollback("base").expect("it is there");
    assert_eq!(error(&mut client, ["GET", "key"]), "boom", "it was matched once before");
    assert!(error(&mut client, ["KEYS", "*"]).contains("STRICT"));
    assert_eq!(server.strict().findings()[0].times, 2);
    assert_eq!(call(&mut client, ["DUNLIN", "JOURNAL", "COUNT", "COMMAND", "GET"]), 2);
    call(&mut client, ["SET", "key", "value", "PX", "10"]);
    server.advance(Duration::from_millis(20));
    assert_eq!(call(&mut client, ["DBSIZE"]), 3, "keys still do not expire by themselves");
}

#[test]
fn a_rollback_closes_the_clients_of_users_that_were_created_since() {
    let (server, mut client) = served();
    call(&mut client, ["ACL", "SETUSER", "ann", "on", "nopass", "+@all", "~*"]);
    let mut ann = server.client().expect("there is room");
    call(&mut ann, ["AUTH", "ann", "any"]);
    server.snapshot("base");
    call(&mut client, ["ACL", "SETUSER", "ben", "on", "nopass", "+@all", "~*"]);
    let mut ben = server.client().expect("there is room");
    call(&mut ben, ["AUTH", "ben", "any"]);
    server.rollback("base").expect("it is there");
    assert_eq!(call(&mut ann, ["ACL", "WHOAMI"]), "ann");
    ben.call(["PING"]).expect_err("its user does not exist any more");
}
