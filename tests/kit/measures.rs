//! Measures: what the metrics tell of the queues, sets and sorted sets of an application, beside what its journal has.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use dunlin::{Client, Entry, Reply, Server, Source};

use crate::support::http;
use crate::{call, error};

const FIRST_SEEN: &str = include_str!("../patterns/scripts/first-seen.lua");
const CLAIM_DUE: &str = include_str!("../patterns/scripts/claim-due.lua");

const WORKERS: u64 = 50;
const ROUNDS: u64 = 40;

pub(crate) fn with_page() -> (Server, Client) {
    let server =
        Server::builder().page(0).frozen_at(UNIX_EPOCH + Duration::from_secs(1000)).start().expect("it starts");
    let client = server.client().expect("there is room");
    (server, client)
}

/// Runs lines of words without blanks.
pub(crate) fn run(client: &mut Client, lines: &[&str]) {
    for line in lines {
        call(client, line.split(' '));
    }
}

/// The text of the metrics.
pub(crate) fn text(server: &Server) -> String {
    let url = server.page_url().expect("it has a page");
    let address = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("it is a URL");
    let address: SocketAddr = address.parse().expect("it is an address");
    http::get(address, "/metrics", "").expect("it answers").body
}

/// The samples of measures by their names and labels, without those of buckets and sums.
fn samples(server: &Server) -> BTreeMap<String, u64> {
    let text = text(server);
    let own = ["dunlin_queue_", "dunlin_set_", "dunlin_zset_"];
    let lines = text.lines().filter(|line| own.iter().any(|start| line.starts_with(start)));
    let lines = lines.filter(|line| !line.contains("_bucket{") && !line.contains("_sum{"));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a sample has a value");
        (name.to_owned(), value.parse().expect("it is a count"))
    };
    lines.map(sample).collect()
}

#[track_caller]
fn assert_samples(server: &Server, expected: &[(&str, u64)]) {
    let expected: BTreeMap<String, u64> = expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    assert_eq!(samples(server), expected);
}

#[test]
fn a_queue_is_counted_by_what_is_taken_put_back_and_given_up() {
    let (server, mut client) = with_page();
    run(
        &mut client,
        &["DUNLIN MEASURE QUEUE email jobs PROCESSING jobs:doing FAILED jobs:dead", "LPUSH jobs a b c d e"],
    );
    // Taken: by a move, by a client that was blocked, and by a script. What finds nothing takes nothing.
    run(&mut client, &["LMOVE jobs jobs:doing RIGHT LEFT", "RPOP jobs", "RPOP other", "LTRIM jobs 0 99"]);
    run(
        &mut client,
        &["EVAL return{redis.call('RPOPLPUSH',KEYS[1],KEYS[2]),redis.call('RPOP',KEYS[1])} 2 jobs jobs:doing"],
    );
    // Put back by a move; given up in a transaction; a command that fails counts for nothing.
    run(&mut client, &["LMOVE jobs:doing jobs LEFT RIGHT"]);
    run(&mut client, &["MULTI", "RPOP jobs:doing", "LPUSH jobs:dead a", "EXEC"]);
    error(&mut client, ["LPUSH", "jobs:dead"]);
    assert_samples(
        &server,
        &[
            ("dunlin_queue_length{queue=\"email\"}", 2),
            ("dunlin_queue_processing_length{queue=\"email\"}", 0),
            ("dunlin_queue_failed_total{queue=\"email\"}", 1),
            ("dunlin_queue_requeued_total{queue=\"email\"}", 1),
            ("dunlin_queue_pop_latency_seconds_count{queue=\"email\"}", 3),
        ],
    );
}

#[test]
fn a_client_that_waited_for_an_element_has_taken_it() {
    let (server, mut client) = with_page();
    run(&mut client, &["DUNLIN MEASURE QUEUE email jobs"]);
    let mut worker = server.client().expect("there is room");
    let waits = thread::spawn(move || call(&mut worker, ["BLPOP", "jobs", "0"]));
    call(&mut client, ["DUNLIN", "WAIT", "BLOCKED", "jobs"]);
    run(&mut client, &["RPUSH jobs a"]);
    waits.join().expect("it is answered");
    let taken = samples(&server)["dunlin_queue_pop_latency_seconds_count{queue=\"email\"}"];
    assert_eq!((taken, call(&mut client, ["LLEN", "jobs"])), (1, Reply::Integer(0)));
}

#[test]
fn a_stream_is_a_queue_whose_pending_entries_are_processed() {
    let (server, mut client) = with_page();
    run(
        &mut client,
        &["DUNLIN MEASURE QUEUE events log:*", "XGROUP CREATE log:a g $ MKSTREAM", "XADD log:a 1000-1 f v"],
    );
    run(&mut client, &["XADD log:a 2000-2 f v", "XREADGROUP GROUP g c COUNT 1 STREAMS log:a >"]);
    run(&mut client, &["XREADGROUP GROUP g c STREAMS log:a 0"]);
    assert_samples(
        &server,
        &[
            ("dunlin_queue_length{queue=\"events\"}", 2),
            ("dunlin_queue_wait_seconds{queue=\"events\"}", 998),
            ("dunlin_queue_processing_length{queue=\"events\"}", 1),
            ("dunlin_queue_pop_latency_seconds_count{queue=\"events\"}", 1),
        ],
    );
}

#[test]
fn an_entry_waits_until_every_group_has_read_it() {
    let (server, mut client) = with_page();
    run(&mut client, &["DUNLIN MEASURE QUEUE events log"]);
    let mut assert_waits = |lines: &[&str], expected: Option<u64>| {
        run(&mut client, lines);
        let wait_s = samples(&server).get("dunlin_queue_wait_seconds{queue=\"events\"}").copied();
        assert_eq!(wait_s, expected, "{lines:?}");
    };
    assert_waits(&["LPUSH log a", "DEL log"], None);
    assert_waits(&["XADD log 990000-1 f v", "XADD log 992000-1 f v"], Some(10));
    assert_waits(&["XGROUP CREATE log one 0", "XREADGROUP GROUP one c COUNT 1 STREAMS log >"], Some(8));
    assert_waits(&["XGROUP CREATE log two 0"], Some(10));
    assert_waits(&["XREADGROUP GROUP two c STREAMS log >", "DUNLIN ADVANCE 5000"], Some(13));
    assert_waits(&["XREADGROUP GROUP one c STREAMS log >"], None);
}

#[test]
fn a_set_that_grows_large_is_detected_once() {
    let (server, mut client) = with_page();
    run(&mut client, &["DUNLIN MEASURE SET seen seen:*"]);
    let add = |client: &mut Client, key: &str, numbers: std::ops::Range<u64>| {
        let members: Vec<String> = numbers.map(|number| number.to_string()).collect();
        call(client, ["SADD", key].into_iter().chain(members.iter().map(String::as_str)));
    };
    let large = |server: &Server| {
        let all = samples(server);
        ["", "_detected_total"].map(|end| all[&format!("dunlin_set_large_keys{end}{{set=\"seen\"}}")])
    };
    add(&mut client, "seen:1", 0..10_000);
    assert_eq!(large(&server), [0, 0]);
    add(&mut client, "seen:1", 9_999..10_001);
    add(&mut client, "seen:2", 0..20_000);
    assert_eq!(large(&server), [2, 2]);
    add(&mut client, "seen:2", 20_000..20_001);
    run(&mut client, &["DEL seen:1"]);
    assert_eq!(large(&server), [1, 2]);
}

#[test]
fn what_is_due_goes_by_the_clock_of_the_server() {
    let (server, mut client) = with_page();
    run(
        &mut client,
        &["DUNLIN MEASURE ZSET jobs delayed PROCESSING doing", "DUNLIN MEASURE ZSET in-s seconds SECONDS"],
    );
    run(
        &mut client,
        &["DUNLIN MEASURE ZSET board leaderboard:*", "ZADD leaderboard:1 5 a 6 b", "ZADD leaderboard:2 5 a"],
    );
    run(
        &mut client,
        &["ZADD delayed 1000000 a 1060000 b 1060001 c", "ZADD doing 1030000 d", "ZADD seconds 1000 a 1001 b"],
    );
    let figures = |names: [&str; 4]| names.map(|name| samples(&server)[&format!("dunlin_zset_{name}")]);
    let names =
        ["delayed{zset=\"jobs\"}", "due{zset=\"jobs\"}", "visibility_expired{zset=\"jobs\"}", "due{zset=\"in-s\"}"];
    assert_eq!(figures(names), [2, 1, 0, 1]);
    server.advance(Duration::from_secs(60));
    assert_eq!(figures(names), [1, 2, 1, 2]);
    assert_eq!(samples(&server)["dunlin_zset_cardinality{zset=\"board\"}"], 3);
    assert!(!samples(&server).contains_key("dunlin_zset_due{zset=\"board\"}"), "its scores are no times");
}

#[test]
fn measures_are_listed_replaced_and_removed() {
    let (server, mut client) = with_page();
    let lines = ["DUNLIN MEASURE SET seen a:*", "DUNLIN MEASURE SET seen b:*", "DUNLIN MEASURE QUEUE q x"];
    run(&mut client, &lines);
    let listed = call(&mut client, ["DUNLIN", "MEASURE", "LIST"]);
    let listed: Vec<_> = listed.items().unwrap_or_default().iter().filter_map(Reply::text).collect();
    assert_eq!(listed, ["SET seen b:* DATABASE 0", "QUEUE q x DATABASE 0"]);
    assert_eq!(call(&mut client, ["DUNLIN", "MEASURE", "REMOVE", "seen"]), 1);
    assert_eq!(call(&mut client, ["DUNLIN", "MEASURE", "REMOVE", "seen"]), 0);
    run(&mut client, &["DUNLIN MEASURE CLEAR"]);
    assert_eq!(samples(&server), BTreeMap::new());
    let refusal = error(&mut client, ["DUNLIN", "MEASURE", "QUEUE", "q"]);
    assert!(refusal.starts_with("ERR syntax error, usage: DUNLIN MEASURE "), "{refusal}");
    for number in 0..100 {
        call(&mut client, ["DUNLIN", "MEASURE", "SET", &number.to_string(), "k"]);
    }
    assert_eq!(error(&mut client, ["DUNLIN", "MEASURE", "SET", "more", "k"]), "ERR max number of measures reached");
    call(&mut client, ["DUNLIN", "MEASURE", "CLEAR"]);
    call(&mut client, ["DUNLIN", "MEASURE", "SET", "a\"b\\c\nd", "k"]);
    assert!(text(&server).contains("dunlin_set_cardinality{set=\"a\\\"b\\\\c\\nd\"} 0\n"));
}

#[test]
fn rollbacks_templates_and_worlds_that_end_change_gauges_and_no_counter() {
    let (server, mut client) = with_page();
    run(
        &mut client,
        &["DUNLIN MEASURE QUEUE q jobs FAILED dead", "DUNLIN MEASURE SET s seen", "DUNLIN SNAPSHOT start"],
    );
    run(&mut client, &["RPUSH jobs a b", "RPUSH dead c", "SADD seen a", "SADD seen a"]);
    let of = |samples: &BTreeMap<String, u64>, names: &[&str]| -> Vec<u64> {
        names.iter().map(|name| samples[*name]).collect()
    };
    let counters = [
        "dunlin_queue_failed_total{queue=\"q\"}",
        "dunlin_set_first_seen_total{set=\"s\"}",
        "dunlin_set_duplicate_total{set=\"s\"}",
    ];
    let gauges = ["dunlin_queue_length{queue=\"q\"}", "dunlin_set_cardinality{set=\"s\"}"];
    let assert_are = |counted: [u64; 3], measured: [u64; 2], when: &str| {
        let samples = samples(&server);
        assert_eq!((of(&samples, &counters), of(&samples, &gauges)), (counted.to_vec(), measured.to_vec()), "{when}");
    };
    assert_are([1, 1, 1], [2, 1], "before");
    run(&mut client, &["DUNLIN ROLLBACK start"]);
    assert_are([1, 1, 1], [0, 0], "after a rollback");
    run(&mut client, &["RPUSH dead d", "DUNLIN TEMPLATE", "DUNLIN DROP-TEMPLATE"]);
    assert_are([2, 1, 1], [0, 0], "after a template");
    let mut other = server.client().expect("there is room");
    run(&mut other, &["DUNLIN WORLD short", "RPUSH dead e", "DUNLIN WORLD default", "DUNLIN DROP-WORLD short"]);
    assert_are([2, 1, 1], [0, 0], "after the end of another world");
}

#[test]
fn a_measure_is_of_the_database_that_it_names_or_that_is_selected() {
    let (server, mut client) = with_page();
    run(&mut client, &["DUNLIN MEASURE SET one k DATABASE 3", "SELECT 2", "DUNLIN MEASURE SET two k", "SADD k a b"]);
    run(&mut client, &["SELECT 3", "SADD k a"]);
    let listed = call(&mut client, ["DUNLIN", "MEASURE", "LIST"]);
    let listed: Vec<_> = listed.items().unwrap_or_default().iter().filter_map(Reply::text).collect();
    assert_eq!(listed, ["SET one k DATABASE 3", "SET two k DATABASE 2"]);
    let samples = samples(&server);
    assert_eq!(samples["dunlin_set_cardinality{set=\"one\"}"], 1);
    assert_eq!(samples["dunlin_set_cardinality{set=\"two\"}"], 2);
    let refusal = error(&mut client, ["DUNLIN", "MEASURE", "SET", "three", "k", "DATABASE", "16"]);
    assert_eq!(refusal, "ERR DB index is out of range");
}

#[test]
fn what_replaces_a_queue_counts_as_a_whole() {
    let (server, mut client) = with_page();
    run(&mut client, &["DUNLIN MEASURE QUEUE email jobs PROCESSING doing FAILED dead", "RPUSH dead 1 2 3 4 5"]);
    let count = |name: &str| samples(&server)[&format!("dunlin_queue_{name}_total{{queue=\"email\"}}")];
    assert_eq!(count("failed"), 5);
    run(&mut client, &["RPUSH three a b c", "COPY three dead REPLACE"]);
    assert_eq!(count("failed"), 8);
    // These do nothing to it.
    run(&mut client, &["COPY three dead", "COPY none dead REPLACE", "COPY three dead DB 1"]);
    run(&mut client, &["EVAL return{redis.call('COPY',KEYS[1],KEYS[2])} 2 three dead"]);
    assert_eq!(count("failed"), 8);
    run(&mut client, &["EVAL return{redis.call('COPY',KEYS[1],KEYS[2],'REPLACE')} 2 three dead", "RENAME three dead"]);
    assert_eq!(count("failed"), 14);
    // Those that were there went nowhere; three went back.
    run(&mut client, &["RPUSH jobs 1 2 3 4", "RPUSH doing a b c", "RENAME doing jobs"]);
    assert_eq!(count("requeued"), 3);
}

#[test]
fn what_is_copied_or_moved_into_another_database_is_counted_there() {
    let (server, mut client) = with_page();
    run(
        &mut client,
        &["DUNLIN MEASURE QUEUE here jobs FAILED dead", "DUNLIN MEASURE QUEUE there jobs FAILED dead DATABASE 3"],
    );
    let failed =
        || ["here", "there"].map(|queue| samples(&server)[&format!("dunlin_queue_failed_total{{queue=\"{queue}\"}}")]);
    run(&mut client, &["RPUSH three a b c", "COPY three dead REPLACE DB 3", "COPY three dead DB 3"]);
    assert_eq!(failed(), [0, 3]);
    run(&mut client, &["COPY three dead DB 2 DB 3 REPLACE", "COPY three dead DB 2"]);
    assert_eq!(failed(), [0, 6]);
    run(&mut client, &["EVAL return{redis.call('COPY',KEYS[1],KEYS[2],'DB',3,'REPLACE')} 2 three dead"]);
    assert_eq!(failed(), [0, 9]);
    run(&mut client, &["RPUSH dead 1", "MOVE dead 3", "SELECT 3", "DEL dead", "SELECT 0", "MOVE dead 3"]);
    assert_eq!(failed(), [1, 10]);
    for refused in ["COPY three dead DB 16", "COPY three dead DB -1", "COPY three dead DB", "MOVE three 16"] {
        error(&mut client, refused.split(' '));
    }
    assert_eq!(failed(), [1, 10]);
}

#[test]
fn a_glob_finds_its_keys_among_many_and_sums_ten_thousand_at_most() {
    let (server, mut client) = with_page();
    run(&mut client, &["DUNLIN MEASURE SET seen seen:*", "DUNLIN MEASURE SET none none:*"]);
    for number in 0..10_100 {
        call(&mut client, ["SADD", &format!("seen:{number}"), "m"]);
        call(&mut client, ["SET", &format!("other:{number}"), "v"]);
    }
    let all = samples(&server);
    assert_eq!((all["dunlin_set_cardinality{set=\"seen\"}"], all["dunlin_set_cardinality{set=\"none\"}"]), (10_000, 0));
    assert_eq!(all["dunlin_set_first_seen_total{set=\"seen\"}"], 10_100);
}

#[test]
fn a_glob_follows_whatever_becomes_of_its_keys() {
    let (server, mut client) = with_page();
    run(&mut client, &["DUNLIN MEASURE SET seen seen:*", "SADD seen:1 a", "SADD other b c"]);
    let assert_members = |step: &str, expected: u64| {
        assert_eq!(samples(&server)["dunlin_set_cardinality{set=\"seen\"}"], expected, "{step}");
    };
    assert_members("at first", 1);
    for (lines, expected) in [
        (&["SADD seen:2 a b"][..], 3),
        (&["RENAME other seen:3"], 5),
        (&["RENAME seen:2 away"], 3),
        (&["SADD seen:3 d e f g", "PEXPIRE seen:1 10", "DUNLIN ADVANCE 11"], 6),
        (&["DUNLIN SNAPSHOT before", "DEL seen:3", "SADD seen:4 a"], 1),
        (&["DUNLIN ROLLBACK before"], 6),
        (&["SELECT 1", "SADD seen:5 a b c", "SADD seen:6 a", "MOVE seen:6 0", "SELECT 0"], 7),
        (&["SWAPDB 0 1"], 3),
        (&["SWAPDB 0 1", "COPY seen:6 seen:7"], 8),
        (&["FLUSHDB", "SADD seen:8 a b"], 2),
        (&["DUNLIN MEASURE SET more s*:8"], 2),
    ] {
        run(&mut client, lines);
        assert_members(&lines.join(", "), expected);
    }
    assert_eq!(samples(&server)["dunlin_set_cardinality{set=\"more\"}"], 2);
}

/// A round of one of many workers: it looks at a product, handles an event, and works off jobs.
fn work(client: &mut Client, worker: u64, round: u64) {
    let number = worker * ROUNDS + round;
    let (recent, member) = (format!("recent:{}", worker % 7), format!("product-{}", number % 11));
    call(client, ["MULTI"]);
    call(client, ["ZADD", &recent, &number.to_string(), &member]);
    call(client, ["ZREMRANGEBYRANK", &recent, "0", "-6"]);
    call(client, ["EXEC"]);
    let (bucket, event) = (format!("dedupe:{}", round % 3), format!("event-{}", number % 997));
    call(client, ["EVAL", FIRST_SEEN, "1", &bucket, &event, "7200"]);
    call(client, ["SISMEMBER", &bucket, &event]);
    call(client, ["ZADD", "jobs:delayed", &(990_000 + 10 * number).to_string(), &format!("job-{number}")]);
    let claimed = call(client, ["EVAL", CLAIM_DUE, "2", "jobs:delayed", "jobs:processing", "1000000", "2", "1000500"]);
    let Reply::Array(jobs) = claimed else { return };
    for job in jobs.iter().filter_map(Reply::text).filter(|_| !round.is_multiple_of(4)) {
        call(client, ["ZREM", "jobs:processing", &job]);
    }
    call(client, ["LPUSH", "mail", "letter", "letter"]);
    call(client, ["LMOVE", "mail", "mail:doing", "RIGHT", "LEFT"]);
    match round % 3 {
        0 => call(client, ["LREM", "mail:doing", "1", "letter"]),
        1 => call(client, ["LMOVE", "mail:doing", "mail", "RIGHT", "LEFT"]),
        _ => call(client, ["LMOVE", "mail:doing", "mail:dead", "RIGHT", "LEFT"]),
    };
}

/// The metrics of the workers, as their journal and the lengths of the keys have them.
fn expected(server: &Server, client: &mut Client) -> BTreeMap<String, u64> {
    let journal = server.journal();
    let count = |command: &str, key: &str, is_counted: &dyn Fn(&Entry) -> bool| {
        let entries = journal.command(command).key(key).entries();
        entries.iter().filter(|entry| entry.source != Source::Queue && is_counted(entry)).count() as u64
    };
    let replies = |expected: &'static str| move |entry: &Entry| entry.reply().as_deref() == Some(expected);
    let moves = |from: &'static str, to: &'static str| {
        move |entry: &Entry| {
            let words: Vec<&[u8]> = entry.words().collect();
            (words[1], words[2]) == (from.as_bytes(), to.as_bytes()) && entry.reply().as_deref() != Some("(nil)")
        }
    };
    let mut length = |command: &str, key: &str| call(client, [command, key]).integer().unwrap_or_default() as u64;
    let mut expected = BTreeMap::new();
    let mut add = |name: &str, value: u64| _ = expected.insert(format!("dunlin_{name}\"}}"), value);
    add("zset_cardinality{zset=\"recent", (0..7).map(|number| length("ZCARD", &format!("recent:{number}"))).sum());
    add("zset_claim_latency_seconds_count{zset=\"recent", 0);
    add("set_cardinality{set=\"dedupe", (0..3).map(|number| length("SCARD", &format!("dedupe:{number}"))).sum());
    add("set_first_seen_total{set=\"dedupe", count("SADD", "dedupe:*", &replies("(integer) 1")));
    add("set_duplicate_total{set=\"dedupe", count("SADD", "dedupe:*", &replies("(integer) 0")));
    add("set_large_keys{set=\"dedupe", 0);
    add("set_large_keys_detected_total{set=\"dedupe", 0);
    add("set_lookup_latency_seconds_count{set=\"dedupe", WORKERS * ROUNDS);
    let delayed = length("ZCARD", "jobs:delayed");
    add("zset_cardinality{zset=\"scheduler", delayed);
    add("zset_due{zset=\"scheduler", 0);
    add("zset_delayed{zset=\"scheduler", delayed);
    add("zset_processing{zset=\"scheduler", length("ZCARD", "jobs:processing"));
    add("zset_visibility_expired{zset=\"scheduler", 0);
    let claims = |entry: &Entry| entry.reply().as_deref() != Some("(empty array)");
    add("zset_claim_latency_seconds_count{zset=\"scheduler", count("EVAL", "jobs:delayed", &claims));
    add("queue_length{queue=\"mail", length("LLEN", "mail"));
    add("queue_processing_length{queue=\"mail", length("LLEN", "mail:doing"));
    add("queue_failed_total{queue=\"mail", count("LMOVE", "mail:dead", &moves("mail:doing", "mail:dead")));
    add("queue_requeued_total{queue=\"mail", count("LMOVE", "mail", &moves("mail:doing", "mail")));
    add("queue_pop_latency_seconds_count{queue=\"mail", count("LMOVE", "mail", &moves("mail", "mail:doing")));
    expected
}

/// The components of an application at work: recent activity, deduplication, a scheduler and a queue.
#[test]
fn each_measure_of_many_workers_is_what_their_journal_counts() {
    let (server, mut client) = with_page();
    run(
        &mut client,
        &[
            "DUNLIN MEASURE ZSET recent recent:*",
            "DUNLIN MEASURE SET dedupe dedupe:*",
            "DUNLIN MEASURE ZSET scheduler jobs:delayed PROCESSING jobs:processing",
            "DUNLIN MEASURE QUEUE mail mail PROCESSING mail:doing FAILED mail:dead",
            "DUNLIN JOURNAL START 100000",
        ],
    );
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let mut client = server.client().expect("there is room");
            scope.spawn(move || (0..ROUNDS).for_each(|round| work(&mut client, worker, round)));
        }
    });
    let expected = expected(&server, &mut client);
    assert_eq!(samples(&server), expected);
    let of_set = |name: &str| expected[&format!("dunlin_set_{name}_total{{set=\"dedupe\"}}")];
    assert_eq!(of_set("first_seen") + of_set("duplicate"), WORKERS * ROUNDS);
    // Those that found nothing would prove nothing.
    let least = |name: &str| expected[&format!("dunlin_{name}\"}}")];
    assert!(least("zset_processing{zset=\"scheduler") > 0 && least("queue_requeued_total{queue=\"mail") > 0);
    server.advance(Duration::from_millis(500));
    let expired = samples(&server)["dunlin_zset_visibility_expired{zset=\"scheduler\"}"];
    assert_eq!(expired, least("zset_processing{zset=\"scheduler"), "their time is over");
}

#[test]
fn the_start_stays_where_it_was_when_the_clock_is_set() {
    let (server, mut client) = with_page();
    let start = || {
        let text = text(&server);
        let line = text.lines().find_map(|line| line.strip_prefix("redis_start_time_seconds "));
        line.map(str::to_owned)
    };
    for moment in ["1000000", "500000", "90000000"] {
        run(&mut client, &[&format!("DUNLIN SET-TIME {moment}")]);
        assert_eq!(start().as_deref(), Some("1000"), "at {moment}");
    }
}
