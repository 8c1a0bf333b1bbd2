//! A simulated disk: full, failing, and without power; and the server that starts with what is left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dunlin::{Client, Disk, Reply, Server};

use crate::timeout::wait_until;

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
