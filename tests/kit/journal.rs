//! The journal of commands: what it records, counts, expects and exports.

use dunlin::{Client, Reply, Server};

use crate::guard::failure;
use crate::{call, error, served};

fn count(client: &mut Client, filter: &[&str]) -> i64 {
    let reply = call(client, ["DUNLIN", "JOURNAL", "COUNT"].into_iter().chain(filter.iter().copied()));
    reply.integer().expect("it is a number")
}

fn named(server: &Server, name: &str) -> Client {
    let mut client = server.client().expect("there is room");
    call(&mut client, ["CLIENT", "SETNAME", name]);
    client
}

#[test]
fn commands_are_counted_by_name_key_client_and_outcome() {
    let (server, mut test) = served();
    let (mut ann, mut bob) = (named(&server, "ann"), named(&server, "bob"));
    call(&mut test, ["DUNLIN", "JOURNAL", "START"]);
    call(&mut ann, ["SET", "user:1", "x"]);
    call(&mut ann, ["GET", "user:1"]);
    call(&mut bob, ["MGET", "other", "user:2"]);
    error(&mut bob, ["INCR", "user:1"]);
    error(&mut bob, ["NOSUCH"]);
    call(&mut bob, ["CONFIG", "GET", "port"]);
    assert_eq!(count(&mut test, &[]), 6);
    assert_eq!(count(&mut test, &["COMMAND", "get"]), 1);
    assert_eq!(count(&mut test, &["COMMAND", "CONFIG"]), 1);
    assert_eq!(count(&mut test, &["COMMAND", "config|get"]), 1);
    assert_eq!(count(&mut test, &["KEY", "user:*"]), 4);
    assert_eq!(count(&mut test, &["KEY", "user:*", "CLIENT", "bob"]), 2);
    assert_eq!(count(&mut test, &["ERRORS"]), 2);
    assert_eq!(count(&mut test, &["ERRORS", "CLIENT", "ann"]), 0);
}

#[test]
fn commands_are_grouped_by_their_names_and_the_patterns_of_their_keys() {
    let (server, mut test) = served();
    server.freeze();
    let mut ann = named(&server, "ann");
    let grouped = |test: &mut Client, filter: &[&str]| -> Vec<String> {
        let reply = call(test, ["DUNLIN", "JOURNAL", "PATTERNS"].into_iter().chain(filter.iter().copied()));
        let groups = reply.items().expect("it is an array").iter();
        let texts = groups.map(|group| {
            let Reply::Map(fields) = group else { panic!("each is a map: {group:?}") };
            let names: Vec<_> = fields.iter().filter_map(|(name, _)| name.text()).collect();
            assert_eq!(names, ["command", "pattern", "count", "errors", "duration-microseconds"]);
            let value = |value: &Reply| match value.integer() {
                Some(number) => number.to_string(),
                None => value.text().unwrap_or("-".into()).into_owned(),
            };
            fields.iter().map(|(_, of)| value(of)).collect::<Vec<_>>().join(" ")
        });
        texts.collect()
    };
    assert!(error(&mut test, ["DUNLIN", "JOURNAL", "PATTERNS"]).contains("no journal"));
    call(&mut test, ["DUNLIN", "JOURNAL", "START"]);
    for user in 1..=3 {
        call(&mut ann, ["GET", &format!("user:{user}")]);
    }
    call(&mut ann, ["MGET", "user:1", "user:2", "order:0f8fad5b-d9cb-469f-a165-70867728950e"]);
    call(&mut ann, ["SET", "user:1", "x"]);
    error(&mut ann, ["LPUSH", "user:1", "x"]);
    call(&mut ann, ["PING"]);
    error(&mut ann, ["NOSUCH"]);
    let all = [
        "get user:{n} 3 0 0",
        "- - 1 1 0",
        "lpush user:{n} 1 1 0",
        "mget order:{id} 1 0 0",
        "mget user:{n} 1 0 0",
        "ping - 1 0 0",
        "set user:{n} 1 0 0",
    ];
    assert_eq!(grouped(&mut test, &[]), all);
    assert_eq!(grouped(&mut test, &["ERRORS", "KEY", "user:*"]), ["lpush user:{n} 1 1 0"]);
    assert_eq!(grouped(&mut test, &["CLIENT", "bob"]), [""; 0]);
}

#[test]
fn an_entry_has_the_client_the_command_and_its_outcome() {
    let (server, mut test) = served();
    server.freeze();
    let mut ann = named(&server, "ann");
    call(&mut ann, ["SELECT", "3"]);
    let journal = server.journal();
    call(&mut ann, ["RPUSH", "queue", "a b", "c"]);
    call(&mut ann, ["LRANGE", "queue", "0", "-1"]);
    let entries = journal.entries();
    let [push, range] = &entries[..] else { panic!("there are two: {entries:?}") };
    assert_eq!((push.time(), range.time()), (server.now(), server.now()));
    assert_eq!((push.client_name.as_slice(), push.database, push.source), (&b"ann"[..], 3, dunlin::Source::Client));
    assert_eq!(push.words().collect::<Vec<_>>(), [&b"RPUSH"[..], b"queue", b"a b", b"c"]);
    assert_eq!(push.reply().as_deref(), Some("(integer) 2"));
    assert_eq!(range.reply().as_deref(), Some("1) \"a b\"\n2) \"c\""));
    assert_eq!((push.number, range.number, range.elapsed_us), (1, 2, 0));
    let listed = call(&mut test, ["DUNLIN", "JOURNAL", "LIST", "COMMAND", "LRANGE"]);
    let [Reply::Map(fields)] = listed.items().expect("it is an array") else { panic!("one: {listed:?}") };
    let field = |name: &str| &fields.iter().find(|(key, _)| *key == name).expect("the field exists").1;
    assert_eq!((field("number"), field("database")), (&Reply::Integer(2), &Reply::Integer(3)));
    assert!(*field("client-name") == "ann" && *field("source") == "client" && *field("world") == "default");
    assert!(*field("reply") == "1) \"a b\"\n2) \"c\"");
}

#[test]
fn an_unknown_command_name_in_a_filter_is_refused() {
    let (server, mut client) = served();
    let journal = server.journal();
    let text = "ERR unknown command name 'KEYZ'";
    for words in
        ["JOURNAL COUNT", "JOURNAL EXPECT NONE", "JOURNAL LIST", "JOURNAL PATTERNS", "WAIT JOURNAL 1", "FAULT ADD rule"]
    {
        let words = ["DUNLIN"].into_iter().chain(words.split(' ')).chain(["COMMAND", "KEYZ"]);
        assert_eq!(error(&mut client, words), text);
    }
    assert_eq!(failure(|| journal.command("KEYZ").assert_none()), text[4..]);
    assert_eq!(failure(|| server.fault("rule").command("KEYZ").silence()), text[4..]);
    journal.command("config|get").assert_none();
}

#[test]
fn secrets_and_commands_of_the_test_kit_are_not_recorded() {
    let (server, mut test) = served();
    let journal = server.journal();
    error(&mut test, ["AUTH", "somebody", "a-secret"]);
    call(&mut test, ["DUNLIN", "FREEZE"]);
    error(&mut test, ["DUNLIN", "NOSUCH"]);
    let entries = journal.entries();
    assert_eq!(entries.len(), 1);
    let words: Vec<&[u8]> = entries[0].words().collect();
    assert_eq!(words, [&b"AUTH"[..], b"(redacted)", b"(redacted)"]);
    assert!(!journal.transcript().contains("a-secret"));
}

#[test]
fn commands_of_scripts_and_transactions_follow_the_one_that_runs_them_and_count_once() {
    let (server, mut client) = served();
    let journal = server.journal();
    call(&mut client, ["EVAL", "redis.call('SET', KEYS[1], 'x') return redis.call('GET', KEYS[1])", "1", "key"]);
    call(&mut client, ["MULTI"]);
    call(&mut client, ["INCR", "count"]);
    call(&mut client, ["EXEC"]);
    let lines: Vec<String> = journal.entries().iter().map(ToString::to_string).collect();
    let id = call(&mut client, ["CLIENT", "ID"]).integer().expect("a number");
    assert!(lines[0].starts_with(&format!("#1 client {id}: EVAL ")) && lines[0].ends_with("-> \"x\""), "{}", lines[0]);
    let rest = [
        "#2 client 1 by script: SET key x -> OK",
        "#3 client 1 by script: GET key -> \"x\"",
        "#4 client 1: MULTI -> OK",
        "#6 client 1: EXEC -> 1) (integer) 1",
        "#7 client 1 by transaction: INCR count -> (integer) 1",
    ];
    assert_eq!(lines[1..], rest.map(|line| line.replace("client 1", &format!("client {id}"))));
    journal.command("INCR").assert_exactly(1);
}

#[test]
fn a_blocked_command_is_recorded_before_its_reply() {
    let (server, mut client) = served();
    let journal = server.journal();
    let waiting = std::thread::spawn({
        let mut other = server.client().expect("there is room");
        move || call(&mut other, ["BLPOP", "queue", "0"])
    });
    call(&mut client, ["DUNLIN", "WAIT", "BLOCKED", "queue"]);
    assert_eq!(journal.command("BLPOP").entries()[0].reply(), None);
    call(&mut client, ["RPUSH", "queue", "job"]);
    waiting.join().expect("it is answered");
    assert_eq!(journal.command("BLPOP").entries()[0].reply().as_deref(), Some("1) \"queue\"\n2) \"job\""));
}

#[test]
fn only_the_last_entries_are_kept_and_their_numbers_continue() {
    let (_server, mut client) = served();
    call(&mut client, ["DUNLIN", "JOURNAL", "START", "3"]);
    for number in 0..5 {
        call(&mut client, ["SET", "key", &number.to_string()]);
    }
    let listed = call(&mut client, ["DUNLIN", "JOURNAL", "LIST"]);
    let numbers: Vec<Option<i64>> = listed
        .items()
        .expect("it is an array")
        .iter()
        .map(|entry| if let Reply::Map(fields) = entry { fields[0].1.integer() } else { None })
        .collect();
    assert_eq!(numbers, [Some(3), Some(4), Some(5)]);
    call(&mut client, ["DUNLIN", "JOURNAL", "STOP"]);
    call(&mut client, ["SET", "key", "value"]);
    assert_eq!(count(&mut client, &[]), 3);
    call(&mut client, ["DUNLIN", "JOURNAL", "CLEAR"]);
    let text = "ERR no journal; start one with DUNLIN JOURNAL START";
    assert_eq!(error(&mut client, ["DUNLIN", "JOURNAL", "COUNT"]), text);
    for count in ["0", "1000001", "-1"] {
        error(&mut client, ["DUNLIN", "JOURNAL", "START", count]);
    }
    assert!(error(&mut client, ["DUNLIN", "JOURNAL", "COUNT", "KEY"]).starts_with("ERR syntax error, usage: DUNLIN"));
}

#[test]
fn a_stopped_journal_can_be_read_though_it_was_cleared_before() {
    let (_server, mut client) = served();
    for action in ["START", "CLEAR", "STOP"] {
        call(&mut client, ["DUNLIN", "JOURNAL", action]);
    }
    call(&mut client, ["SET", "key", "value"]);
    assert_eq!(count(&mut client, &[]), 0);
    call(&mut client, ["DUNLIN", "JOURNAL", "CLEAR"]);
    assert!(error(&mut client, ["DUNLIN", "JOURNAL", "COUNT"]).starts_with("ERR no journal"));
}

#[test]
fn an_expectation_holds_or_the_error_lists_the_entries() {
    let (_server, mut client) = served();
    call(&mut client, ["DUNLIN", "JOURNAL", "START"]);
    call(&mut client, ["GET", "user:1"]);
    call(&mut client, ["GET", "user 2"]);
    let expect = |client: &mut Client, words: &str| {
        client.call(["DUNLIN", "JOURNAL", "EXPECT"].into_iter().chain(words.split(' '))).map_err(|e| e.to_string())
    };
    let ok = Ok(Reply::Status("OK".to_owned()));
    assert_eq!(expect(&mut client, "AT-MOST 2 COMMAND GET"), ok);
    assert_eq!(expect(&mut client, "AT-LEAST 2 KEY user*"), ok);
    assert_eq!(expect(&mut client, "EXACTLY 0 COMMAND KEYS"), ok);
    assert_eq!(expect(&mut client, "NONE COMMAND KEYS"), ok);
    let id = call(&mut client, ["CLIENT", "ID"]).integer().expect("a number");
    let text = format!(
        "ERR expected at most 1 of COMMAND get KEY user*, found 2: #1 client {id}: GET user:1 -> (nil); \
         #2 client {id}: GET \"user 2\" -> (nil)"
    );
    assert_eq!(expect(&mut client, "AT-MOST 1 COMMAND get KEY user*"), Err(text));
    for words in ["SOME 1", "AT-MOST", "AT-MOST 1 NOSUCH"] {
        let error = expect(&mut client, words).expect_err("it is refused");
        assert!(
            error.starts_with(
                "ERR syntax error, usage: DUNLIN JOURNAL <<START [ALL-NODES] [count]>|<STOP [ALL-NODES]>|"
            ),
            "{error}"
        );
    }
}

#[test]
fn an_assertion_that_fails_lists_the_commands_line_by_line() {
    let (server, mut client) = served();
    let journal = server.journal();
    call(&mut client, ["GET", "a"]);
    call(&mut client, ["GET", "b"]);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| journal.command("GET").assert_at_most(1)));
    let payload = failed.expect_err("there are two");
    let message = payload.downcast_ref::<String>().expect("it is a text");
    let id = call(&mut client, ["CLIENT", "ID"]).integer().expect("a number");
    let expected = format!(
        "expected at most 1 of COMMAND GET, found 2:\n  #1 client {id}: GET a -> (nil)\n\
         \x20 #2 client {id}: GET b -> (nil)"
    );
    assert_eq!(*message, expected);
}

#[test]
fn a_command_that_a_fault_keeps_from_the_server_is_not_recorded() {
    let (server, mut client) = served();
    call(&mut client, ["DUNLIN", "JOURNAL", "START"]);
    server.fault("never came").command("SET").drop_before();
    server.fault("hangs").command("GET").silence();
    server.fault("fails").command("INCR").error("ERR boom");
    let [mut dropped, mut silent] = [(); 2].map(|()| server.client().expect("there is room"));
    dropped.call(["SET", "key", "value"]).expect_err("the connection is closed");
    let mut hanging = std::pin::pin!(silent.call_async(["GET", "key"]));
    assert!(crate::polled(hanging.as_mut()).is_pending());
    assert_eq!(count(&mut client, &[]), 0);
    error(&mut client, ["INCR", "key"]);
    assert_eq!(count(&mut client, &["COMMAND", "INCR", "ERRORS"]), 1, "this one was answered");
}
