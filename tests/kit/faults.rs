//! Injected faults, kind by kind.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::pin::pin;
use std::time::Duration;

use dunlin::{CallError, Client, Reply, Server, State};

use crate::timeout::TIMEOUT;
use crate::{call, ended, error, polled, served};

/// The bytes that the server sends for `requests` until it closes the connection.
fn until_closed(server: &Server, requests: &[u8]) -> String {
    let mut wire = TcpStream::connect(server.addr()).expect("it listens");
    wire.write_all(requests).expect("it reads");
    let mut got = Vec::new();
    match wire.read_to_end(&mut got) {
        Err(fault) if fault.kind() != ErrorKind::ConnectionReset => panic!("{fault}"),
        _ => String::from_utf8(got).expect("it is ASCII"),
    }
}

/// The bytes that the server sends for `requests` when the client closes its sending half after them.
fn to_the_end(server: &Server, requests: &[u8]) -> String {
    let mut wire = TcpStream::connect(server.addr()).expect("it listens");
    wire.write_all(requests).expect("it reads");
    wire.shutdown(Shutdown::Write).expect("it is open");
    let mut got = String::new();
    wire.read_to_string(&mut got).expect("it is ASCII");
    got
}

fn add(client: &mut Client, rule: &str) {
    let words = ["DUNLIN", "FAULT", "ADD"].into_iter().chain(rule.split(' '));
    assert_eq!(call(client, words), Reply::Status("OK".to_owned()));
}

#[test]
fn a_connection_is_closed_before_the_command_and_what_came_before_is_delivered() {
    let (server, mut client) = served();
    server.fault("lost").command("INCR").nth(2).drop_before();
    assert_eq!(until_closed(&server, b"INCR count\r\nINCR count\r\nINCR count\r\n"), ":1\r\n");
    assert_eq!(call(&mut client, ["GET", "count"]), "1");
}

#[test]
fn a_reply_is_lost_and_the_command_has_taken_effect() {
    let (server, mut client) = served();
    server.fault("lost").command("INCR").nth(2).drop_after();
    assert_eq!(until_closed(&server, b"INCR count\r\nINCR count\r\nINCR count\r\n"), ":1\r\n");
    assert_eq!(call(&mut client, ["GET", "count"]), "2");
}

#[test]
fn half_a_reply_is_sent_and_then_the_connection_closes() {
    let (server, mut client) = served();
    server.fault("cut").command("ECHO").half_reply();
    assert_eq!(until_closed(&server, b"PING\r\nECHO 12345678\r\nPING\r\n"), "+PONG\r\n$8\r\n123");
    assert_eq!(client.call(["ECHO", "12345678"]), Err(CallError::Closed));
}

#[test]
fn a_reply_in_single_bytes_is_the_same_reply() {
    let (server, _client) = served();
    server.fault("slow").command("ECHO").times(1).split_reply();
    let got = to_the_end(&server, b"PING\r\nECHO 12345678\r\nPING\r\nECHO x\r\n");
    assert_eq!(got, "+PONG\r\n$8\r\n12345678\r\n+PONG\r\n$1\r\nx\r\n");
    server.fault("slow").command("BLPOP").split_reply();
    let got = std::thread::spawn({
        let address = server.addr();
        move || {
            let mut wire = TcpStream::connect(address).expect("it listens");
            wire.write_all(b"BLPOP queue 0\r\nPING\r\n").expect("it reads");
            let mut got = vec![0; 31];
            wire.read_exact(&mut got).expect("all of it comes");
            got
        }
    });
    server.wait_until_blocked("queue", TIMEOUT).expect("a client blocks");
    call(&mut server.client().expect("there is room"), ["RPUSH", "queue", "job"]);
    assert_eq!(got.join().expect("it ends"), b"*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n+PONG\r\n"[..]);
}

#[test]
fn each_single_byte_of_a_reply_is_a_separate_write() {
    let (server, mut client) = served();
    let mut writes = || -> u64 {
        let stats = call(&mut client, ["INFO", "stats"]);
        let stats = stats.text().expect("INFO is a text").into_owned();
        let count = stats.lines().find_map(|line| line.strip_prefix("total_writes_processed:"));
        count.and_then(|count| count.parse().ok()).expect("it is counted")
    };
    let before = writes();
    assert_eq!(to_the_end(&server, b"ECHO 12345678\r\n"), "$8\r\n12345678\r\n");
    let whole = writes();
    server.fault("slow").command("ECHO").split_reply();
    assert_eq!(to_the_end(&server, b"ECHO 12345678\r\n"), "$8\r\n12345678\r\n");
    assert!(whole - before <= 2 && writes() - whole >= 14);
}

#[test]
fn a_delay_ends_when_the_clock_is_advanced_and_delays_no_other_client() {
    let (server, mut client) = served();
    server.freeze();
    let journal = server.journal();
    server.fault("late").command("SET").client("slow").delay(Duration::from_millis(500));
    let slow = std::thread::spawn({
        let mut slow = server.client().expect("there is room");
        call(&mut slow, ["CLIENT", "SETNAME", "slow"]);
        move || (call(&mut slow, ["SET", "key", "value"]), call(&mut slow, ["GET", "key"]))
    });
    server.wait_until_fired("late", 1, TIMEOUT).expect("the rule is applied");
    assert_eq!(call(&mut client, ["SET", "other", "value"]), Reply::Status("OK".to_owned()));
    assert!(!call(&mut client, ["DUNLIN", "ADVANCE-TO-NEXT"]).is_null());
    let (set, got) = slow.join().expect("it is answered");
    assert_eq!((set, got == "value"), (Reply::Status("OK".to_owned()), true));
    let set = &journal.client("slow").entries()[0];
    assert_eq!(set.reply().as_deref(), Some("OK"));
}

#[test]
fn a_delayed_command_is_not_run_before_its_time_nor_for_a_client_that_left() {
    let (server, mut client) = served();
    server.freeze();
    server.fault("late").key("late*").delay(Duration::from_millis(500));
    let mut wires: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(server.addr()).expect("it listens")).collect();
    for (number, wire) in wires.iter_mut().enumerate() {
        wire.write_all(format!("PING\r\nSET late{number} x\r\n").as_bytes()).expect("it reads");
        wire.read_exact(&mut [0; 7]).expect("it is answered");
    }
    server.wait_until_fired("late", 2, TIMEOUT).expect("both wait");
    drop(wires.pop());
    server.wait_for_clients(2, TIMEOUT).expect("one has left");
    call(&mut client, ["DUNLIN", "ADVANCE", "499"]);
    assert_eq!(call(&mut client, ["DBSIZE"]), 0);
    call(&mut client, ["DUNLIN", "ADVANCE", "1"]);
    assert_eq!(call(&mut client, ["DBSIZE"]), 1);
    let mut got = [0; 5];
    wires[0].read_exact(&mut got).expect("it is answered");
    assert_eq!(&got, b"+OK\r\n");
}

#[test]
fn a_silenced_client_gets_no_more_replies_and_others_do() {
    let (server, mut client) = served();
    server.fault("silent").command("GET").times(1).silence();
    let mut wire = TcpStream::connect(server.addr()).expect("it listens");
    wire.write_all(b"PING\r\nGET key\r\nSET key value\r\n").expect("it reads");
    wire.read_exact(&mut [0; 7]).expect("what came before is answered");
    assert_eq!(call(&mut client, ["GET", "key"]), Reply::Null);
    let listed = call(&mut client, ["CLIENT", "LIST", "TYPE", "normal"]);
    assert_eq!(listed.text().expect("it is a text").lines().count(), 2);
    drop(wire);
}

#[test]
fn simulated_states_have_the_error_texts_of_redis_and_refuse_the_same_commands() {
    let (server, mut client) = served();
    for (state, text, passes) in [
        (State::Loading, "LOADING Redis is loading the dataset in memory", ["INFO", "server"]),
        (
            State::Busy,
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            ["HELLO", "3"],
        ),
        (State::ReadOnly, "READONLY You can't write against a read only replica.", ["GET", "key"]),
        (State::OutOfMemory, "OOM command not allowed when used memory > 'maxmemory'.", ["DEL", "key"]),
        (State::MasterDown, "READONLY You can't write against a read only replica.", ["PUBLISH", "channel"]),
        (State::Moved { slot: 12539, node: "10.0.0.1:7001".to_owned() }, "MOVED 12539 10.0.0.1:7001", ["ECHO", "x"]),
        (State::Ask { slot: 12539, node: "10.0.0.1:7001".to_owned() }, "ASK 12539 10.0.0.1:7001", ["ECHO", "x"]),
        (State::ClusterDown, "CLUSTERDOWN The cluster is down", ["ECHO", "x"]),
    ] {
        server.fault("state").state(state);
        assert_eq!(error(&mut client, ["SET", "key", "value"]), text);
        let passed = client.call(passes.into_iter().chain((passes[0] == "PUBLISH").then_some("message")));
        assert!(passed.is_ok(), "{passes:?}: {passed:?}");
    }
    assert!(server.remove_fault("state") && !server.remove_fault("state"));
    assert_eq!(call(&mut client, ["EXISTS", "key"]), 0);
}

#[test]
fn a_state_of_a_cluster_is_ordered_by_name_and_may_concern_only_requests_with_several_keys() {
    let (_server, mut client) = served();
    for (state, text) in [
        ("TRYAGAIN", "TRYAGAIN Multiple keys request during rehashing of slot"),
        ("CROSSSLOT", "CROSSSLOT Keys in request don't hash to the same slot"),
    ] {
        add(&mut client, &format!("state {state}"));
        assert_eq!(error(&mut client, ["MGET", "key", "key2"]), text);
        assert_eq!(call(&mut client, ["GET", "key"]), Reply::Null);
    }
    for (state, text) in [
        ("ASK 12539 10.0.0.1:7001", "ASK 12539 10.0.0.1:7001"),
        ("MOVED 12539 10.0.0.1:7001", "MOVED 12539 10.0.0.1:7001"),
        ("CLUSTERDOWN", "CLUSTERDOWN The cluster is down"),
    ] {
        add(&mut client, &format!("state {state}"));
        assert_eq!(error(&mut client, ["GET", "key"]), text);
        let listed = call(&mut client, ["DUNLIN", "FAULT", "LIST"]);
        let [Reply::Map(fields)] = listed.items().expect("it is an array") else { panic!("one: {listed:?}") };
        assert!(fields.iter().any(|(name, value)| *name == "rule" && *value == state), "{fields:?}");
    }
    for unknown in ["ASK", "ASK 12539", "ASK 16384 10.0.0.1:7001", "ASK x 10.0.0.1:7001", "TRYAGAIN later"] {
        let words = format!("DUNLIN FAULT ADD state {unknown}");
        assert!(client.call(words.split(' ')).is_err(), "{unknown}");
    }
}

#[test]
fn an_injected_error_within_a_transaction_aborts_it() {
    let (_server, mut client) = served();
    add(&mut client, "full COMMAND SET OOM");
    call(&mut client, ["MULTI"]);
    let refused = "OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(error(&mut client, ["SET", "key", "value"]), refused);
    let spoiled = "EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(error(&mut client, ["EXEC"]), spoiled);
    add(&mut client, "full COMMAND EXEC OOM");
    call(&mut client, ["MULTI"]);
    call(&mut client, ["GET", "key"]);
    assert_eq!(call(&mut client, ["EXEC"]), Reply::Array(vec![Reply::Null]));
}

#[test]
fn a_rule_matches_command_key_client_and_the_nth_time() {
    let (_server, mut client) = served();
    call(&mut client, ["CLIENT", "SETNAME", "ann"]);
    add(&mut client, "rule COMMAND get KEY user:* CLIENT ann NTH 2 TIMES 2 ERROR no");
    for (words, is_refused) in [
        (["GET", "user:1"], false),
        (["GET", "other"], false),
        (["TTL", "user:1"], false),
        (["GET", "user:2"], true),
        (["GET", "user:3"], true),
        (["GET", "user:4"], false),
    ] {
        assert_eq!(client.call(words).is_err(), is_refused, "{words:?}");
    }
    call(&mut client, ["CLIENT", "SETNAME", "bob"]);
    call(&mut client, ["GET", "user:1"]);
    let listed = call(&mut client, ["DUNLIN", "FAULT", "LIST"]);
    let [Reply::Map(fields)] = listed.items().expect("it is an array") else { panic!("one: {listed:?}") };
    let values: Vec<&Reply> = fields.iter().map(|(_, value)| value).collect();
    assert!(*values[0] == "rule");
    assert!(*values[1] == "COMMAND get KEY user:* CLIENT ann NTH 2 TIMES 2 ERROR no", "{values:?}");
    assert_eq!(values[2..], [&Reply::Integer(4), &Reply::Integer(2)]);
}

#[test]
fn the_same_seed_injects_faults_into_the_same_commands() {
    let (server, mut client) = served();
    server.fault("flaky").command("GET").percent(30.0).error("ERR flaky");
    let mut run = |seed| {
        call(&mut client, ["DUNLIN", "SEED", seed]);
        (0..100).map(|_| client.call(["GET", "key"]).is_err()).collect::<Vec<bool>>()
    };
    let (first, other, again) = (run("1"), run("2"), run("1"));
    assert!(first == again && first != other);
    let fired = first.iter().filter(|fired| **fired).count();
    assert!((10..60).contains(&fired), "{fired}");
}

#[test]
fn an_impossible_rule_is_refused_and_changes_nothing() {
    let (_server, mut client) = served();
    for rule in [
        "x",
        "x NOSUCH",
        "x NTH 0 OOM",
        "x TIMES -1 OOM",
        "x PERCENT 101 OOM",
        "x PERCENT nan OOM",
        "x DELAY -1",
        "x DELAY",
        "x ERROR",
        "x MOVED 16384 a:1",
        "x OOM OOM",
        "x COMMAND nosuch OOM",
    ] {
        error(&mut client, ["DUNLIN", "FAULT", "ADD"].into_iter().chain(rule.split(' ')));
    }
    error(&mut client, ["DUNLIN", "FAULT", "ADD", "x", "ERROR", "two\r\nlines"]);
    assert_eq!(call(&mut client, ["DUNLIN", "FAULT", "LIST"]), Reply::Array(Vec::new()));
    assert_eq!(call(&mut client, ["DUNLIN", "FAULT", "REMOVE", "x"]), 0);
    assert_eq!(call(&mut client, ["DUNLIN", "FAULT", "CLEAR"]), Reply::Status("OK".to_owned()));
}

#[test]
fn a_delayed_request_that_a_pause_holds_back_runs_when_the_pause_is_ended() {
    let server = Server::builder().frozen().start().expect("it starts");
    let [mut delayed, mut test] = [(); 2].map(|()| server.client().expect("there is room"));
    server.fault("slow").command("SET").delay(Duration::from_millis(100));
    let mut write = pin!(delayed.call_async(["SET", "key", "1"]));
    assert!(polled(write.as_mut()).is_pending());
    call(&mut test, ["CLIENT", "PAUSE", "5000", "WRITE"]);
    server.advance(Duration::from_millis(200));
    assert!(polled(write.as_mut()).is_pending());
    call(&mut test, ["CLIENT", "UNPAUSE"]);
    assert_eq!(ended(write.as_mut()), Ok(Reply::Status("OK".to_owned())));
}

#[test]
fn a_rule_counts_a_login_that_names_a_world_once() {
    let server = Server::start().expect("the server starts");
    let world = server.world("cart").expect("it can be made");
    let [mut test, mut inside] = [(); 2].map(|()| world.client().expect("there is room"));
    let login = ["AUTH", "world.cart", "any"];
    add(&mut test, "second COMMAND AUTH NTH 2 ERROR boom");
    assert_eq!(call(&mut inside, login), Reply::Status("OK".to_owned()), "it is the first, of a client of the world");
    assert_eq!(error(&mut inside, login), "boom");
    let mut outside = server.client().expect("there is room");
    add(&mut test, "second COMMAND AUTH NTH 2 ERROR boom");
    assert_eq!(call(&mut outside, login), Reply::Status("OK".to_owned()), "it is the first, and enters the world");
    assert_eq!(error(&mut outside, login), "boom");
}

#[test]
fn the_reply_to_a_login_that_names_a_world_is_lost_as_any_other() {
    let server = Server::start().expect("the server starts");
    let world = server.world("cart").expect("it can be made");
    let [mut test, mut inside] = [(); 2].map(|()| world.client().expect("there is room"));
    add(&mut test, "lost COMMAND AUTH TIMES 1 DROP-AFTER");
    assert_eq!(inside.call(["AUTH", "world.cart", "any"]), Err(CallError::Closed));
}
