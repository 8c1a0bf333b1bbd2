//! A simulated disk: full, failing, and without power; and the server that starts with what is left.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dunlin::{Client, Disk, Reply, Server};

use crate::timeout::{TIMEOUT, wait_until};

fn start(disk: &Disk, policy: &str) -> Server {
    let builder = Server::builder().disk(disk).set("appendonly", "yes").set("appendfsync", policy);
    builder.start().expect("it starts")
}

fn ask(server: &Server, line: &str) -> Result<String, String> {
    let mut client = server.client().expect("there is room");
    client.call(line.split(' ')).map(|reply| format!("{reply:?}")).map_err(|error| error.to_string())
}

fn get(server: &Server, key: &str) -> String {
    let mut client = server.client().expect("there is room");
    client.call(["GET", key]).expect("it answers").text().unwrap_or_default().into_owned()
}

#[test]
fn what_always_has_acknowledged_survives_every_power_loss() {
    for seed in 0..30 {
        let disk = Disk::new();
        for round in 0..3 {
            let server = start(&disk, "always");
            if round > 0 {
                assert_eq!(get(&server, "round"), (round - 1).to_string(), "seed {seed}");
            }
            ask(&server, &format!("SET round {round}")).expect("it is written");
            disk.power_loss(seed * 3 + round);
        }
    }
}

/// The write of another client takes a fifth of a second.
#[test]
fn under_always_a_client_reads_other_keys_meanwhile_and_the_written_one_when_it_is_durable() {
    let disk = Disk::new();
    let builder = Server::builder().disk(&disk).set("appendonly", "yes").set("appendfsync", "always");
    let server = builder.allow_debug().start().expect("it starts");
    ask(&server, "SET other 1").expect("it is written");
    ask(&server, "DEBUG AOF-FLUSH-SLEEP 200000").expect("it is known");
    let is_written = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            ask(&server, "SET key durable").expect("it is written");
            is_written.store(true, Ordering::SeqCst);
        });
        let mut reads = 0;
        while !is_written.load(Ordering::SeqCst) {
            assert_eq!(get(&server, "other"), "1");
            reads += 1;
        }
        assert!(reads > 100, "it was read only {reads} times during the write");
    });
    thread::scope(|scope| {
        scope.spawn(|| ask(&server, "APPEND key ,both"));
        wait_until("the change is read", || get(&server, "key") == "durable,both");
        disk.power_loss(1);
    });
    assert_eq!(get(&start(&disk, "always"), "key"), "durable,both");
}

/// Appends to `list` under `always` while a sync takes a tenth of a second, waits until another client has been shown
/// that, and cuts the power at that moment. `watch` returns how the other one waits.
fn assert_durable_when_shown(way: &str, watch: impl FnOnce(&Server) -> Box<dyn FnOnce()>) {
    let disk = Disk::new();
    let server = start(&disk, "always");
    ask(&server, "CONFIG SET notify-keyspace-events KEA").expect("it is known");
    let wait_until_shown = watch(&server);
    disk.fault("slow").syncs().times(1).delay(Duration::from_millis(100));
    let mut writer = server.client().expect("there is room");
    // It has no reply if the power is lost too early.
    thread::spawn(move || writer.call(["RPUSH", "list", "element"]));
    wait_until_shown();
    disk.power_loss(1);
    drop(server);
    let server = start(&disk, "always");
    assert_eq!(ask(&server, "EXISTS list moved").expect("it answers"), "Integer(1)", "{way}");
}

/// Sends requests over TCP, of which the last is `last`, and returns a wait until something that has `mark` comes.
fn watch_over_tcp(server: &Server, requests: &str, last: &str, mark: &'static str) -> Box<dyn FnOnce()> {
    let mut stream = TcpStream::connect(server.addr()).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("it can be set");
    stream.write_all(requests.as_bytes()).expect("it is sent");
    let mut client = server.client().expect("there is room");
    wait_until("the requests have run", || {
        let clients = client.call(["CLIENT", "LIST"]).expect("it answers");
        clients.text().expect("it is a text").contains(&format!("cmd={last} "))
    });
    Box::new(move || {
        let (mut received, mut buffer) = (String::new(), [0; 4096]);
        while !received.contains(mark) {
            let length = stream.read(&mut buffer).expect("it is shown");
            assert!(length > 0, "{received}");
            received += &String::from_utf8_lossy(&buffer[..length]);
        }
    })
}

#[test]
fn what_always_shows_to_other_clients_survives_a_power_loss() {
    assert_durable_when_shown("a client that was blocked", |server| {
        let mut client = server.client().expect("there is room");
        let moved = thread::spawn(move || client.call(["BLMOVE", "list", "moved", "LEFT", "LEFT", "0"]));
        server.wait_until_blocked("list", TIMEOUT).expect("it blocks");
        Box::new(move || _ = moved.join().expect("it does not panic").expect("it has an element"))
    });
    assert_durable_when_shown("a subscriber", |server| {
        let mut client = server.client().expect("there is room");
        client.call(["SUBSCRIBE", "__keyevent@0__:rpush"]).expect("it subscribes");
        Box::new(move || _ = client.wait_for_message(TIMEOUT).expect("it is open").expect("it comes"))
    });
    for (requests, last, mark) in [
        ("BLMOVE list moved LEFT LEFT 0\r\n", "blmove", "element"),
        ("SUBSCRIBE __keyevent@0__:rpush\r\n", "subscribe", "list"),
        ("HELLO 3\r\nCLIENT TRACKING ON\r\nEXISTS list\r\n", "exists", "invalidate"),
        ("MONITOR\r\n", "monitor", "RPUSH"),
    ] {
        assert_durable_when_shown(last, |server| watch_over_tcp(server, requests, last, mark));
    }
}

/// Each client counts its own key, and knows the last number that was acknowledged while the disk had power.
#[test]
fn what_many_clients_were_told_survives_a_power_loss_while_they_write_and_rewrite() {
    const CLIENTS: usize = 4;
    let disk = Disk::new();
    let mut counted = [0_i64; CLIENTS];
    for seed in 0..12 {
        let server = start(&disk, "always");
        for (number, least) in counted.iter().enumerate() {
            let found = get(&server, &format!("counter:{number}")).parse().unwrap_or(0);
            // What was being written when the power was lost may be there, too.
            assert!((*least..=least + 1).contains(&found), "seed {seed}: {found} after {least}");
        }
        let has_power = AtomicBool::new(true);
        counted = thread::scope(|scope| {
            let count = |number: usize| {
                let (client, has_power) = (server.client().expect("there is room"), &has_power);
                scope.spawn(move || count_while(client, number, has_power))
            };
            let threads: Vec<_> = (0..CLIENTS).map(count).collect();
            let before = counted;
            let _ = ask(&server, "BGREWRITEAOF");
            wait_until("all have counted on", || {
                let count = |number: usize| get(&server, &format!("counter:{number}")).parse().unwrap_or(0);
                (0..CLIENTS).all(|number| count(number) > before[number] + 20)
            });
            has_power.store(false, Ordering::SeqCst);
            disk.power_loss(seed);
            drop(server);
            let counts = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
            counts.collect::<Vec<i64>>().try_into().expect("there is one of each client")
        });
    }
}

fn count_while(mut client: Client, number: usize, has_power: &AtomicBool) -> i64 {
    let key = format!("counter:{number}");
    let mut acknowledged = 0;
    while let Ok(reply) = client.call(["INCR", &key]) {
        if !has_power.load(Ordering::SeqCst) {
            break;
        }
        acknowledged = reply.integer().expect("it is a number");
    }
    acknowledged
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    let disk = Disk::new();
    let server = start(&disk, "everysec");
    ask(&server, "SET key before").expect("there is space");
    disk.set_full(true);
    wait_until("a write is refused", || {
        ask(&server, "SET key full").is_err_and(|error| error.starts_with("MISCONF Errors writing to the AOF file"))
    });
    assert!(ask(&server, "GET key").is_ok(), "reads go on");
    disk.set_full(false);
    let mut client = server.client().expect("there is room");
    wait_until("writes go on", || client.call(["SET", "key", "after"]).is_ok());
    let synced = client.call(["WAITAOF", "1", "0", "0"]).expect("it is synced");
    assert_eq!(synced, Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]));
    disk.power_loss(1);
    drop(server);
    assert_eq!(get(&start(&disk, "everysec"), "key"), "after");
}

/// By the clock of the server, which tries again once a second.
#[test]
fn writes_go_on_within_a_second_after_the_disk_has_space_or_syncs_again() {
    let is_refused = |server: &Server| ask(server, "INCR key").is_err_and(|error| error.starts_with("MISCONF"));
    let second = Duration::from_secs(1);
    for fault in ["full", "sync"] {
        let disk = Disk::new();
        let builder = Server::builder().disk(&disk).frozen().set("appendonly", "yes");
        let server = builder.start().expect("it starts");
        if fault == "full" {
            disk.set_full(true);
        } else {
            disk.fail_next_sync();
            disk.fault("base").syncs().file("*.base*").input_output_error();
        }
        ask(&server, "INCR key").expect("what fails first is answered");
        server.advance(second);
        wait_until("writes are refused", || is_refused(&server));
        for _ in 0..5 {
            server.advance(second);
            assert!(is_refused(&server), "{fault}");
        }
        disk.set_full(false);
        disk.remove_fault("base");
        server.advance(second);
        wait_until("writes go on while the clock stands", || !is_refused(&server));
    }
}

/// The clock stands when the failure of the first base is reported, so this must not begin the time to the next try.
#[test]
fn a_base_that_fails_after_the_clock_was_moved_is_tried_again_at_once() {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).frozen().set("appendonly", "yes").start().expect("it starts");
    disk.fail_next_sync();
    disk.fault("slow").writes().file("*.base*").times(1).delay(Duration::from_millis(200));
    disk.fault("base").syncs().file("*.base*").times(1).input_output_error();
    ask(&server, "INCR key").expect("what fails first is answered");
    server.advance(Duration::from_secs(1));
    server.wait_until_fired("slow", 1, TIMEOUT).expect("the first base is written");
    server.advance(Duration::from_secs(1));
    wait_until("writes go on while the clock stands", || ask(&server, "INCR key").is_ok());
}

/// A script that increments the counter, runs until more clients have connected, and increments it again.
const COUNTS_TWICE: &str = "redis.call('INCR', 'counter')
    local function clients() return tonumber(redis.call('INFO', 'clients'):match('connected_clients:(%d+)')) end
    local before = clients() repeat until clients() >= before + 3
    redis.call('INCR', 'counter')";

/// The rewrite is about to take its base when the script has done its first half.
#[test]
fn a_rewrite_has_all_that_a_script_does_or_nothing() {
    let disk = Disk::new();
    let builder = Server::builder().disk(&disk).set("appendonly", "yes").set("busy-reply-threshold", "1");
    let server = builder.start().expect("it starts");
    ask(&server, "SET counter 10").expect("it is written");
    disk.fault("slow").syncs().delay(TIMEOUT);
    ask(&server, "BGREWRITEAOF").expect("it begins");
    server.wait_until_fired("slow", 1, TIMEOUT).expect("the next file is synced");
    let is_busy = || ask(&server, "PING").is_err_and(|error| error.starts_with("BUSY"));
    thread::scope(|scope| {
        let mut client = server.client().expect("there is room");
        let call = scope.spawn(move || client.call(["EVAL", COUNTS_TWICE, "0"]).expect("it has no error"));
        wait_until("the script takes too long", is_busy);
        assert!(disk.remove_fault("slow"));
        // Time for a base to be taken that should not be.
        assert!((0..200).all(|_| is_busy()), "the script has ended too early");
        let _guests: Vec<Client> = (0..6).map(|_| server.client().expect("there is room")).collect();
        call.join().expect("it does not fail");
    });
    wait_until("the rewrite has ended", || client_info(&server).contains("aof_rewrite_in_progress:0"));
    drop(server);
    assert_eq!(get(&start(&disk, "everysec"), "counter"), "12");
}

#[test]
fn a_sync_that_fails_acknowledges_nothing_until_a_new_file_is_durable() {
    for seed in 0..10 {
        let disk = Disk::new();
        let server = start(&disk, "always");
        ask(&server, "SET before 1").expect("it is written");
        disk.fail_next_sync();
        // The reply comes when the data are in a new file.
        ask(&server, "SET lost 2").expect("it is written");
        disk.power_loss(seed);
        drop(server);
        let server = start(&disk, "always");
        assert_eq!((get(&server, "before"), get(&server, "lost")), ("1".to_owned(), "2".to_owned()), "seed {seed}");
    }
}

/// The sync fails while a transaction has the server to itself, in which the policy of syncs then changes.
#[test]
fn a_sync_that_fails_while_the_policy_changes_does_not_hang_the_server() {
    let disk = Disk::new();
    let builder = Server::builder().disk(&disk).set("appendonly", "yes").set("appendfsync", "everysec");
    let server = builder.allow_debug().start().expect("it starts");
    disk.fault("write").writes().file("*.incr.aof").times(1).delay(Duration::from_millis(200));
    disk.fault("sync").syncs().file("*.incr.aof").times(1).input_output_error();
    ask(&server, "SET key 1").expect("it is stored");
    server.wait_until_fired("write", 1, TIMEOUT).expect("what is written is delayed");
    let mut client = server.client().expect("there is room");
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        for line in ["MULTI", "DEBUG SLEEP 0.6", "CONFIG SET appendfsync no"] {
            client.call(line.split(' ')).expect("it is queued");
        }
        done.send(client.call(["EXEC"])).expect("the test waits");
    });
    let replies = is_done.recv_timeout(TIMEOUT).expect("the server hangs").expect("it is run");
    assert_eq!(replies, Reply::Array(vec![Reply::Status("OK".into()), Reply::Status("OK".into())]));
    server.wait_until_fired("sync", 1, TIMEOUT).expect("the sync has failed");
    assert_eq!(get(&server, "key"), "1");
}

#[test]
fn a_file_that_a_transaction_switches_on_during_a_rewrite_has_all_changes() {
    let disk = Disk::new();
    let builder = Server::builder().disk(&disk).set("rdb-key-save-delay", "20000");
    let server = builder.start().expect("it starts");
    for number in 0..10 {
        ask(&server, &format!("SET key:{number} before")).expect("it is stored");
    }
    let is_writing = || disk.paths().iter().any(|path| path.extension().is_some_and(|end| end == "base"));
    ask(&server, "BGREWRITEAOF").expect("it begins");
    wait_until("the rewrite has taken its base", is_writing);
    let mut client = server.client().expect("there is room");
    for line in ["MULTI", "CONFIG SET appendonly yes rdb-key-save-delay 0", "EXEC"] {
        client.call(line.split(' ')).expect("it is run");
    }
    let has = |field: &str| client_info(&server).lines().any(|line| line == field);
    wait_until("it has begun", || has("aof_rewrite_in_progress:0") && has("aof_rewrite_scheduled:0"));
    client.call(["SET", "key:0", "after"]).expect("it is stored");
    let synced = client.call(["WAITAOF", "1", "0", "0"]).expect("it is synced");
    assert_eq!(synced, Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]));
    disk.power_loss(1);
    drop(server);
    let server = start(&disk, "everysec");
    assert_eq!((get(&server, "key:0"), get(&server, "key:9")), ("after".to_owned(), "before".to_owned()));
}

/// The base takes a fifth of a second, during which the files have nothing of what a client wrote before.
#[test]
fn a_client_waits_for_the_first_base_that_has_its_writes() {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).start().expect("it starts");
    let mut client = server.client().expect("there is room");
    client.call(["SET", "key", "1"]).expect("it is stored");
    disk.fault("slow").syncs().file("*.base*").times(1).delay(Duration::from_millis(200));
    for line in ["CONFIG SET appendonly yes", "CONFIG SET appendonly no", "CONFIG SET appendonly yes"] {
        client.call(line.split(' ')).expect("it is possible");
    }
    let early = client.call(["WAITAOF", "1", "0", "20"]).expect("it answers");
    assert_eq!(early, Reply::Array(vec![Reply::Integer(0), Reply::Integer(0)]));
    let synced = client.call(["WAITAOF", "1", "0", "0"]).expect("it answers");
    assert_eq!(synced, Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]));
    disk.power_loss(1);
    drop(server);
    assert_eq!(get(&start(&disk, "everysec"), "key"), "1");
}

/// While data are being saved no rewrite begins, so the file that is switched on has no base.
#[test]
fn a_client_waits_for_a_base_that_a_save_puts_off() {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).start().expect("it starts");
    let mut client = server.client().expect("there is room");
    client.call(["SET", "key", "1"]).expect("it is stored");
    disk.fault("slow").syncs().file("*.rdb").times(1).delay(Duration::from_millis(200));
    client.call(["BGSAVE"]).expect("it begins");
    client.call(["CONFIG", "SET", "appendonly", "yes"]).expect("it is possible");
    assert!(client_info(&server).contains("aof_rewrite_scheduled:1"));
    client.call(["SET", "key", "2"]).expect("it is stored");
    let early = client.call(["WAITAOF", "1", "0", "20"]).expect("it answers");
    assert_eq!(early, Reply::Array(vec![Reply::Integer(0), Reply::Integer(0)]));
    let synced = client.call(["WAITAOF", "1", "0", "0"]).expect("it answers");
    assert_eq!(synced, Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]));
    assert!(client_info(&server).contains("aof_rewrite_scheduled:0"));
}

/// After the rollback the files have other data until there is a new base, which takes a fifth of a second.
#[test]
fn what_is_replied_after_a_rollback_survives_a_power_loss_under_always() {
    for (seed, line) in ["SET after 1", "GET before", "GET before"].into_iter().enumerate() {
        let disk = Disk::new();
        let server = start(&disk, "always");
        ask(&server, "SET before 1").expect("it is written");
        server.snapshot("base");
        ask(&server, "SET before 2").expect("it is written");
        if seed == 2 {
            // A file that was closed has let all replies leave.
            ask(&server, "CONFIG SET appendonly no").expect("it is possible");
            ask(&server, "CONFIG SET appendonly yes").expect("it is possible");
            wait_until("it has a base", || ask(&server, "WAITAOF 1 0 100").is_ok_and(|reply| reply.contains("(1)")));
        }
        disk.fault("slow").syncs().file("*.base*").times(1).delay(Duration::from_millis(200));
        server.rollback("base").expect("it is there");
        ask(&server, line).expect("it is durable");
        disk.power_loss(seed as u64);
        drop(server);
        let server = start(&disk, "always");
        assert_eq!(get(&server, "before"), "1", "{line}");
        assert_eq!(get(&server, "after").is_empty(), line != "SET after 1");
    }
}

/// The data were replaced, or a sync has failed: nothing can be relied on until the base is in place.
#[test]
fn a_server_that_ends_while_its_file_begins_anew_leaves_a_base() {
    for (cause, ends_by) in [("rollback", "SHUTDOWN"), ("rollback", ""), ("sync", "SHUTDOWN"), ("sync", "")] {
        let disk = Disk::new();
        let server = start(&disk, "everysec");
        ask(&server, "SET key before").expect("it is written");
        server.snapshot("base");
        disk.fault("slow").writes().file("*.base*").times(1).delay(Duration::from_millis(200));
        if cause == "sync" {
            disk.fail_next_sync();
        }
        // A sync of the first write may have failed already.
        wait_until("it is written", || ask(&server, "SET key after").is_ok());
        if cause == "rollback" {
            server.rollback("base").expect("it is there");
        }
        server.wait_until_fired("slow", 1, TIMEOUT).expect("a base is written");
        if !ends_by.is_empty() {
            assert_eq!(ask(&server, ends_by), Err("the connection is closed".to_owned()), "{cause}");
        }
        drop(server);
        let expected = if cause == "rollback" { "before" } else { "after" };
        assert_eq!(get(&start(&disk, "everysec"), "key"), expected, "{cause} {ends_by}");
    }
}

/// The base after the rollback cannot be written. What was written before that was known is acknowledged when the next
/// one is durable; until then further writes are refused, and reads go on.
#[test]
fn a_rollback_on_a_disk_that_fails_refuses_writes_under_always() {
    let disk = Disk::new();
    let server = start(&disk, "always");
    ask(&server, "SET key 1").expect("it is written");
    server.snapshot("base");
    disk.fault("slow").writes().file("*.base*").times(1).delay(Duration::from_millis(100));
    disk.fault("base").syncs().file("*.base*").times(1).input_output_error();
    server.rollback("base").expect("it is there");
    thread::scope(|scope| {
        let early = scope.spawn(|| ask(&server, "SET early 1"));
        let (tell, told) = mpsc::channel();
        wait_until("a write is refused", || {
            let (server, tell) = (&server, tell.clone());
            scope.spawn(move || tell.send(ask(server, "SET late 1")));
            // One that comes before the server knows of the fault waits for the next base, too.
            let reply = told.recv_timeout(Duration::from_millis(20));
            reply.is_ok_and(|reply| reply.is_err_and(|error| error.starts_with("MISCONF Errors writing")))
        });
        assert_eq!(get(&server, "key"), "1");
        early.join().expect("it does not panic").expect("it is durable at last");
    });
    wait_until("writes go on", || ask(&server, "SET key 3").is_ok());
    disk.power_loss(1);
    drop(server);
    let server = start(&disk, "always");
    assert_eq!((get(&server, "early"), get(&server, "key")), ("1".to_owned(), "3".to_owned()));
}

/// Each rewrite that begins leaves one more incremental file.
fn incremental_files(disk: &Disk) -> usize {
    disk.paths().iter().filter(|path| path.to_string_lossy().ends_with(".incr.aof")).count()
}

/// The files have grown enough for a rewrite all the time. After the third failure the next one waits for a minute,
/// then for twice as long each time.
#[test]
fn rewrites_that_fail_again_and_again_wait_ever_longer_and_lose_nothing() {
    let disk = Disk::new();
    let builder = Server::builder().disk(&disk).frozen().set("appendonly", "yes");
    let server = builder.set("auto-aof-rewrite-min-size", "1kb").start().expect("it starts");
    disk.fault("base").writes().file("*.base").full();
    for number in 0..100 {
        ask(&server, &format!("SET key:{number} {number}")).expect("it is written");
    }
    let files_become = |count: usize| {
        wait_until("the rewrite has ended", || {
            incremental_files(&disk) == count && client_info(&server).contains("aof_rewrite_in_progress:0")
        });
    };
    files_become(4);
    for (minutes, files) in [(1, 5), (2, 6), (4, 7)] {
        server.advance(Duration::from_secs(minutes * 60 - 1));
        assert_eq!(incremental_files(&disk), files - 1, "it is too early");
        server.advance(Duration::from_secs(1));
        files_become(files);
        assert!(client_info(&server).contains("aof_last_bgrewrite_status:err"));
    }
    disk.remove_fault("base");
    server.advance(Duration::from_secs(8 * 60));
    files_become(1);
    assert!(client_info(&server).contains("aof_last_bgrewrite_status:ok"));
    disk.power_loss(1);
    drop(server);
    let server = start(&disk, "everysec");
    assert_eq!((get(&server, "key:0"), get(&server, "key:99")), ("0".to_owned(), "99".to_owned()));
}

fn client_info(server: &Server) -> String {
    let mut client = server.client().expect("there is room");
    client.call(["INFO", "persistence"]).expect("it answers").text().unwrap_or_default().into_owned()
}

#[test]
fn a_client_waits_for_what_its_slow_script_has_written() {
    let disk = Disk::new();
    let builder = Server::builder().disk(&disk).set("appendonly", "yes").set("busy-reply-threshold", "1");
    let server = builder.start().expect("it starts");
    let mut client = server.client().expect("there is room");
    client.call(["SET", "key", "synced"]).expect("it is stored");
    client.call(["WAITAOF", "1", "0", "0"]).expect("it is synced");
    disk.fault("sync").syncs().file("*.incr.aof").delay(Duration::from_secs(600));
    let script = "redis.call('SET', 'key', 'slow') for i = 1, 3000000 do end return 1";
    client.call(["EVAL", script, "0"]).expect("it ends");
    let synced = client.call(["WAITAOF", "1", "0", "100"]).expect("it answers");
    assert_eq!(synced, Reply::Array(vec![Reply::Integer(0), Reply::Integer(0)]));
}

#[test]
fn a_rollback_leaves_the_settings_of_files_as_they_are() {
    let disk = Disk::new();
    let server = start(&disk, "always");
    server.snapshot("base");
    ask(&server, "CONFIG SET appendfsync everysec appendonly no maxmemory 1gb").expect("they are possible");
    server.rollback("base").expect("it is there");
    let setting = |name: &str| {
        let mut client = server.client().expect("there is room");
        let reply = client.call(["CONFIG", "GET", name]).expect("it answers");
        let Reply::Map(settings) = reply else { panic!("it is a map") };
        settings[0].1.text().unwrap_or_default().into_owned()
    };
    assert_eq!(["appendfsync", "appendonly", "maxmemory"].map(setting), ["everysec", "no", "0"]);
    ask(&server, "CONFIG SET appendonly yes").expect("it is possible");
    wait_until("changes are written again", || ask(&server, "WAITAOF 1 0 100").is_ok());
}

#[test]
fn a_dump_is_saved_to_the_disk_and_loaded_from_it() {
    let disk = Disk::new();
    let start = || Server::builder().disk(&disk).start().expect("it starts");
    let server = start();
    ask(&server, "SET key saved").expect("it is stored");
    ask(&server, "SAVE").expect("it is saved");
    ask(&server, "SET key later").expect("it is stored");
    disk.set_full(true);
    assert!(ask(&server, "SAVE").is_err());
    disk.power_loss(3);
    drop(server);
    assert_eq!(get(&start(), "key"), "saved");
    assert_eq!(disk.paths().len(), 1);
}

/// Redis has no data then, and would make that durable by the next rewrite.
#[test]
fn the_data_stay_when_the_file_that_they_are_to_be_loaded_from_again_cannot_be_opened() {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).set("appendonly", "yes").allow_debug().start().expect("it starts");
    ask(&server, "SET key value").expect("it is written");
    disk.fault("lost").reads().file("*.base*").input_output_error();
    let refused = "ERR Error trying to load the AOF files, check server logs.";
    assert_eq!(ask(&server, "DEBUG LOADAOF").as_ref().map_err(String::as_str), Err(refused));
    assert_eq!(get(&server, "key"), "value");
    assert!(disk.remove_fault("lost"));
    ask(&server, "SET later value").expect("it is written");
    ask(&server, "DEBUG LOADAOF").expect("it is loaded");
    assert_eq!((get(&server, "key"), get(&server, "later")), ("value".to_owned(), "value".to_owned()));
}

#[test]
fn the_manifest_says_where_a_file_ends_only_if_all_of_it_is_durable() {
    for fails in ["", "write", "sync"] {
        let disk = Disk::new();
        let server = start(&disk, "no");
        let rule = disk.fault("lost").file("*.incr.aof");
        match fails {
            "write" => rule.writes().full(),
            "sync" => rule.syncs().input_output_error(),
            _ => drop(rule),
        }
        ask(&server, "SET key value").expect("it is stored");
        drop(server);
        let path = disk.paths().into_iter().find(|path| path.ends_with("appendonly.aof.manifest"));
        let manifest = disk.read(path.expect("there is one")).expect("it is there");
        assert_eq!(String::from_utf8_lossy(&manifest).contains("endoffset"), fails.is_empty(), "{fails}");
    }
}
