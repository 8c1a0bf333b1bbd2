//! When the append-only file is synced under `everysec`: what a power loss may take, and what waits for a save.

use std::time::Duration;

use dunlin::{Disk, Reply, Server};

use crate::timeout::{TIMEOUT, wait_until};

const STEP: Duration = Duration::from_millis(100);

/// A server on a stopped clock that syncs every second.
fn start(disk: &Disk, settings: &[(&str, &str)]) -> Server {
    let builder = Server::builder().disk(disk).frozen().set("appendonly", "yes").set("appendfsync", "everysec");
    settings.iter().fold(builder, |builder, (name, value)| builder.set(name, value)).start().expect("it starts")
}

fn ask(server: &Server, line: &str) -> String {
    let mut client = server.client().expect("there is room");
    let reply = client.call(line.split(' ')).expect("it answers");
    reply.text().map_or_else(|| format!("{reply:?}"), |text| text.into_owned())
}

fn shows(server: &Server, field: &str) -> bool {
    ask(server, "INFO persistence").lines().any(|line| line == field)
}

/// Waits until the file is written and nothing is being synced.
fn settle(server: &Server) {
    wait_until("the disk rests", || {
        ["aof_buffer_length:0", "aof_pending_bio_fsync:0", "aof_rewrite_in_progress:0", "rdb_bgsave_in_progress:0"]
            .iter()
            .all(|field| shows(server, field))
    });
}

#[test]
fn everysec_loses_no_more_than_the_writes_of_the_last_second() {
    let mut least = u64::MAX;
    for seed in 0..30 {
        let disk = Disk::new();
        let server = start(&disk, &[]);
        settle(&server);
        disk.fault("log").syncs().file("*.incr.aof").delay(Duration::ZERO);
        for step in 1..=35 {
            ask(&server, "INCR counter");
            server.advance(STEP);
            // The first write is synced at once, and then every second.
            server.wait_until_fired("log", 1 + (step - 1) / 10, TIMEOUT).expect("it is synced");
            settle(&server);
        }
        disk.power_loss(seed);
        drop(server);
        let survived = ask(&start(&disk, &[]), "GET counter").parse().expect("it is a number");
        assert!((25..=35).contains(&survived), "seed {seed}: {survived} of 35, ten of which came in the last second");
        least = least.min(survived);
    }
    assert!(least < 35, "no power loss took a write that was not synced");
}

/// How often the only rule has fired.
fn fired(server: &Server) -> Option<i64> {
    let mut client = server.client().expect("there is room");
    let rules = client.call(["DUNLIN", "FAULT", "LIST"]).expect("it answers");
    let Reply::Array(rules) = rules else { panic!("they are a list: {rules:?}") };
    let [Reply::Map(rule)] = &rules[..] else { panic!("there is one rule: {rules:?}") };
    rule.iter().find(|(field, _)| *field == "fired").and_then(|(_, count)| count.integer())
}

/// What a save itself needs is synced all the same.
#[test]
fn no_sync_disturbs_a_save_if_that_is_asked_for_and_what_waited_is_synced_behind_it() {
    let disk = Disk::new();
    let server = start(&disk, &[("no-appendfsync-on-rewrite", "yes")]);
    ask(&server, "SET key before");
    server.advance(10 * STEP);
    settle(&server);
    disk.fault("held").syncs().file("*.rdb").times(1).delay(Duration::from_secs(3600));
    ask(&server, "BGSAVE");
    server.wait_until_fired("held", 1, TIMEOUT).expect("it is being saved");
    disk.fault("log").syncs().file("*.incr.aof").delay(Duration::ZERO);
    ask(&server, "SET key meanwhile");
    server.advance(30 * STEP);
    ask(&server, "CONFIG SET no-appendfsync-on-rewrite no");
    server.advance(STEP);
    server.wait_until_fired("log", 1, TIMEOUT).expect("nothing holds it up any more");
    disk.remove_fault("held");
    settle(&server);
    assert_eq!(fired(&server), Some(1), "three seconds passed without a sync");
}
