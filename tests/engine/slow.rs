//! The slow log, the latency monitor, and the statistics of call durations.

use dunlin::engine::{Flow, Now};
use dunlin::resp::{Request, Span};

use crate::world::{START, World};

fn slow_world() -> World {
    let mut world = World::with(|settings| settings.slowlog_threshold_us = Some(100_000));
    world.ask("SLOWLOG RESET");
    world
}

/// The words of the logged commands, the last first.
fn logged(world: &World) -> Vec<String> {
    let words =
        |words: &[Vec<u8>]| words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
    world.engine.stats.slow_log.entries().map(|entry| words(&entry.words)).collect()
}

#[test]
fn a_command_that_takes_long_is_logged_with_its_time_and_client() {
    let mut world = slow_world();
    world.ask("CLIENT SETNAME ann");
    world.ask("DEBUG SLEEP 0.2");
    world.ask("PING");
    let entry = world.engine.stats.slow_log.entries().next().expect("one command took long").clone();
    assert_eq!((entry.number, entry.elapsed_us, entry.client_name.as_slice()), (0, 200_000, &b"ann"[..]));
    assert_eq!(entry.unix_s, world.now().unix_s());
    assert_eq!(logged(&world), ["DEBUG SLEEP 0.2"]);
}

#[test]
fn in_a_transaction_the_slow_command_is_logged() {
    let mut world = slow_world();
    world.ask("MULTI");
    world.ask("PING");
    world.ask("DEBUG SLEEP 0.2");
    world.ask("EXEC");
    assert_eq!(logged(&world), ["DEBUG SLEEP 0.2"]);
}

#[test]
fn a_blocked_command_is_logged_once_when_it_has_ended() {
    let mut world = World::with(|settings| settings.slowlog_threshold_us = Some(0));
    let waiter = world.join();
    assert_eq!(world.ask_as(waiter, "BLPOP list 0").1, Flow::Block);
    assert!(logged(&world).is_empty());
    world.ask("LPUSH list a");
    assert_eq!(logged(&world), ["LPUSH list a", "BLPOP list 0"]);
    assert_eq!(
        world
            .engine
            .stats
            .command(world.engine.table.find(b"blpop").expect("the command exists"))
            .latency_histogram
            .calls(),
        1
    );
}

#[test]
fn a_blocked_xread_is_logged_with_its_original_arguments() {
    let mut world = World::with(|settings| settings.slowlog_threshold_us = Some(0));
    world.ask("XADD stream 1-1 a b");
    let (served, given_up) = (world.join(), world.join());
    world.ask_as(given_up, "XREAD BLOCK 50 STREAMS stream $");
    world.pass_ms(60);
    world.expire();
    world.ask_as(served, "XREAD BLOCK 0 STREAMS stream $");
    world.ask("XADD stream 2-1 a b");
    let reads: Vec<String> = logged(&world).into_iter().filter(|words| words.starts_with("XREAD")).collect();
    assert_eq!(reads, ["XREAD BLOCK 0 STREAMS stream $", "XREAD BLOCK 50 STREAMS stream $"]);
    assert!(world.take_pushes(served).contains("2-1"));
}

#[test]
fn a_blocked_command_that_times_out_is_counted_too() {
    let mut world = World::with(|settings| settings.slowlog_threshold_us = Some(0));
    let waiter = world.join();
    world.ask_as(waiter, "WAIT 1 50");
    world.pass_ms(60);
    world.expire();
    assert_eq!(logged(&world), ["WAIT 1 50"]);
}

#[test]
fn secrets_are_not_logged() {
    let mut world = World::with(|settings| settings.slowlog_threshold_us = Some(0));
    world.ask("AUTH ann secret");
    world.ask("HELLO 3 AUTH ann secret SETNAME x");
    world.ask("CONFIG SET requirepass secret masterauth secret maxclients 5");
    let expected = [
        "CONFIG SET requirepass (redacted) masterauth (redacted) maxclients 5",
        "HELLO 3 AUTH (redacted) (redacted) SETNAME x",
        "AUTH (redacted) (redacted)",
    ];
    assert_eq!(logged(&world), expected);
}

#[test]
fn calls_are_counted_by_time_unless_that_is_off() {
    let mut world = World::fresh();
    world.ask("PING");
    world.ask("CONFIG SET latency-tracking no");
    world.ask("PING");
    assert!(world.ask("LATENCY HISTOGRAM ping").contains("calls\r\n:1\r\n"));
    assert!(world.ask("INFO latencystats").contains("latency_percentiles_usec_ping:p50=0.001,p99=0.001,p99.9=0.001"));
    world.ask("CONFIG RESETSTAT");
    assert_eq!(world.ask("LATENCY HISTOGRAM ping"), "*0\r\n");
}

/// The number of calls of GET, and their total time in microseconds.
fn gets(world: &World) -> (u64, u64, u64) {
    let stats = world.engine.stats.command(world.engine.table.find(b"get").expect("the command exists"));
    (stats.calls, stats.elapsed_us, stats.latency_histogram.calls())
}

/// Runs GET within a batch; returns whether it is timed together with the next command.
fn get_in_batch(world: &mut World, key: &[u8], now: Now) -> bool {
    let text = [b"GET", key].concat();
    let spans = [Span { start: 0, end: 3 }, Span { start: 3, end: text.len() }];
    let request = Request::new(&text, &spans);
    world.engine.run(world.engine.now(), world.client, request, &mut Vec::new());
    let is_timed_later = world.engine.is_timed_later();
    if !is_timed_later {
        world.engine.finish(now, request);
    }
    is_timed_later
}

#[test]
fn brief_commands_of_a_batch_take_a_microsecond_at_most_of_what_a_longer_one_takes() {
    let mut world = World::fresh();
    world.send(world.client, &[b"SET", b"large", &[b'x'; 2_000]]);
    world.engine.begin_batch(START);
    assert!(!get_in_batch(&mut world, b"first", START), "it may be the only one");
    let ends = Now::from_us(START.unix_us + 50);
    let put_off = [&b"a"[..], b"b", b"c", b"large", b"d"].map(|key| get_in_batch(&mut world, key, ends));
    assert_eq!(put_off, [true, true, true, false, true]);
    assert_eq!(gets(&world), (6, 50, 5));
}

#[test]
fn a_queued_request_is_not_timed_but_what_runs_or_waits_behind_it_is() {
    let mut world = World::fresh();
    world.ask("MULTI");
    world.engine.begin_batch(START);
    assert!(get_in_batch(&mut world, b"a", START) && get_in_batch(&mut world, b"b", START));
    let other = world.join();
    world.ask_as(other, "CLIENT PAUSE 100 ALL");
    let mut run = |text: &str| {
        let request = [Span { start: 0, end: text.len() }];
        let flow = world.engine.run(START, world.client, Request::new(text.as_bytes(), &request), &mut Vec::new());
        (flow, world.engine.is_timed_later())
    };
    let (flow, is_timed_later) = run("EXEC");
    assert!(matches!(flow, Flow::HeldBack(_)) && !is_timed_later, "its caller has to see to it that it runs again");
    world.pass_ms(101);
    let now = world.now();
    world.engine.begin_batch(now);
    assert!(get_in_batch(&mut world, b"c", now), "it is queued");
    let ends = Now::from_us(now.unix_us + 50);
    let request = [Span { start: 0, end: 4 }];
    let request = Request::new(b"EXEC", &request);
    assert_eq!(world.engine.run(now, world.client, request, &mut Vec::new()), Flow::Next);
    assert!(!world.engine.is_timed_later());
    world.engine.finish(ends, request);
    let exec = world.engine.stats.command(world.engine.table.find(b"exec").expect("the command exists"));
    assert_eq!((exec.calls, exec.elapsed_us, gets(&world).0), (1, 50, 3));
}

#[test]
fn commands_are_timed_one_by_one_when_the_slow_log_records_all() {
    let mut world = World::with(|settings| settings.slowlog_threshold_us = Some(0));
    world.engine.begin_batch(START);
    let ends = Now::from_us(START.unix_us + 50);
    assert!(!get_in_batch(&mut world, b"a", START) && !get_in_batch(&mut world, b"b", ends));
    assert_eq!((gets(&world), logged(&world)), ((2, 50, 2), vec!["GET b".to_owned(), "GET a".to_owned()]));
}

#[test]
fn slow_removal_of_keys_is_no_latency_sample_of_a_command() {
    let mut world = World::with(|settings| settings.latency_threshold_ms = 1);
    world.ask("SET key value PX 5");
    world.pass_ms(10);
    assert_eq!(world.expire(), 1);
    assert_eq!(world.ask("LATENCY LATEST"), "*0\r\n");
    world.ask("DEBUG SLEEP 0.003");
    assert!(world.ask("LATENCY LATEST").contains("command"));
}

#[test]
fn nothing_expires_by_itself_while_cron_is_paused() {
    let mut world = World::fresh();
    world.ask("DEBUG PAUSE-CRON 1");
    world.ask("SET key value PX 5");
    world.pass_ms(10);
    assert_eq!((world.expire(), world.next_due_ms()), (0, None));
    world.ask("DEBUG PAUSE-CRON 0");
    assert_eq!(world.expire(), 1);
}

#[test]
fn commands_of_the_cluster_bus_and_of_replication_are_refused() {
    let mut world = World::fresh();
    for command in ["CLUSTER MEET 127.0.0.1 1", "CLUSTER NODES", "READONLY", "ASKING"] {
        assert_eq!(world.ask(command), "-ERR This instance has cluster support disabled\r\n", "{command}");
    }
    for command in ["PSYNC ? -1", "SYNC", "REPLCONF listening-port 1", "REPLICAOF localhost 6379"] {
        assert_eq!(world.ask(command), "-ERR this server does not replicate\r\n", "{command}");
    }
    let refused =
        "-ERR CONFIG SET failed (possibly related to argument 'cluster-enabled') - can't set immutable config\r\n";
    assert_eq!(world.ask("CONFIG SET cluster-enabled yes"), refused);
}
