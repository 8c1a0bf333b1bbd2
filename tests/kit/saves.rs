//! SAVE: its client waits until the data are on the disk, and all others are served meanwhile.

use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use dunlin::{Disk, Reply, Server};

use crate::timeout::{TIMEOUT, wait_until};

/// A server whose next save stays on the way to the disk until the rule is removed.
fn start(disk: &Disk, save_points: &str) -> Server {
    let server = Server::builder().disk(disk).set("save", save_points).start().expect("it starts");
    disk.fault("held").syncs().file("*.rdb").times(1).delay(Duration::from_secs(3600));
    server
}

/// The reply, or the error.
pub(crate) fn ask(server: &Server, line: &str) -> String {
    let mut client = server.client().expect("there is room");
    match client.call(line.split(' ')) {
        Ok(reply) => reply.text().map_or_else(|| format!("{reply:?}"), |text| text.into_owned()),
        Err(error) => error.to_string(),
    }
}

fn shows(server: &Server, field: &str) -> bool {
    ask(server, "INFO").lines().any(|line| line == field)
}

/// What is there after the next start.
fn saved(disk: &Disk) -> String {
    let server = Server::builder().disk(disk).start().expect("it starts");
    ask(&server, "GET key")
}

/// Calls a command on a thread, and returns when so many clients wait.
fn call<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    server: &'scope Server,
    line: &'static str,
    waiting: usize,
) -> ScopedJoinHandle<'scope, String> {
    let called = scope.spawn(move || ask(server, line));
    wait_until("the client waits", || shows(server, &format!("blocked_clients:{waiting}")));
    called
}

#[test]
fn others_are_served_while_a_client_saves() {
    let disk = Disk::new();
    let server = start(&disk, "");
    ask(&server, "SET key before");
    thread::scope(|scope| {
        let saved = call(scope, &server, "SAVE", 1);
        server.wait_until_fired("held", 1, TIMEOUT).expect("it is being saved");
        assert_eq!(ask(&server, "SET key after"), "OK");
        assert_eq!(ask(&server, "GET key"), "after");
        assert!(shows(&server, "rdb_bgsave_in_progress:1"));
        disk.remove_fault("held");
        assert_eq!(saved.join().expect("it does not panic"), "OK");
    });
    for field in ["rdb_bgsave_in_progress:0", "rdb_saves:1", "rdb_changes_since_last_save:1"] {
        assert!(shows(&server, field), "{field}");
    }
    assert!(shows(&server, "rdb_last_bgsave_time_sec:-1"), "no save in the background has ended");
    assert_eq!(saved(&disk), "before");
}

#[test]
fn saves_that_are_asked_for_meanwhile_come_after_it() {
    let disk = Disk::new();
    let server = start(&disk, "");
    ask(&server, "SET key first");
    thread::scope(|scope| {
        let first = call(scope, &server, "SAVE", 1);
        server.wait_until_fired("held", 1, TIMEOUT).expect("it is being saved");
        ask(&server, "SET key second");
        let later = [call(scope, &server, "SAVE", 2), call(scope, &server, "SAVE", 3)];
        assert_eq!(ask(&server, "BGSAVE"), "Background saving started");
        disk.remove_fault("held");
        assert_eq!(first.join().expect("it does not panic"), "OK");
        assert_eq!(later.map(|save| save.join().expect("it does not panic")), ["OK", "OK"]);
    });
    wait_until("the data were saved in the background, too", || shows(&server, "rdb_saves:3"));
    assert_eq!(saved(&disk), "second");
}

#[test]
fn a_client_that_waits_for_its_save_cannot_be_unblocked_but_killed() {
    let disk = Disk::new();
    let server = start(&disk, "");
    ask(&server, "SET key before");
    let mut saving = server.client().expect("there is room");
    let Ok(Reply::Integer(id)) = saving.call(["CLIENT", "ID"]) else { panic!("it has an id") };
    thread::scope(|scope| {
        let saved = scope.spawn(move || saving.call(["SAVE"]));
        server.wait_until_fired("held", 1, TIMEOUT).expect("it is being saved");
        for words in ["TIMEOUT", "ERROR"] {
            assert_eq!(ask(&server, &format!("CLIENT UNBLOCK {id} {words}")), "Integer(0)");
        }
        assert_eq!(ask(&server, &format!("CLIENT KILL ID {id}")), "Integer(1)");
        assert!(saved.join().expect("it does not panic").is_err());
    });
    disk.remove_fault("held");
    wait_until("the save goes on", || shows(&server, "rdb_saves:1"));
    assert_eq!(saved(&disk), "before");
}

#[test]
fn a_flush_of_everything_comes_after_the_save() {
    for (save_points, found) in [("", "before"), ("3600 1", "Null")] {
        let disk = Disk::new();
        let server = start(&disk, save_points);
        ask(&server, "SET key before");
        thread::scope(|scope| {
            let saved = call(scope, &server, "SAVE", 1);
            server.wait_until_fired("held", 1, TIMEOUT).expect("it is being saved");
            assert_eq!(ask(&server, "FLUSHALL"), "OK");
            disk.remove_fault("held");
            assert_eq!(saved.join().expect("it does not panic"), "OK");
        });
        assert_eq!(saved(&disk), found, "save points: {save_points:?}");
    }
}

#[test]
fn a_server_that_ends_saves_for_those_that_wait_for_it() {
    let disk = Disk::new();
    let server = start(&disk, "");
    ask(&server, "SET key before");
    let mut saving = server.client().expect("there is room");
    let saved_before = thread::spawn(move || saving.call(["SAVE"]));
    server.wait_until_fired("held", 1, TIMEOUT).expect("it is being saved");
    drop(server);
    // The client may learn of the end before it has the reply.
    let _ = saved_before.join().expect("it does not panic");
    assert_eq!(saved(&disk), "before");
}

/// A rewrite comes before a save that was asked for meanwhile; without SCHEDULE it is refused.
#[test]
fn a_save_is_scheduled_behind_a_rewrite() {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).set("appendonly", "yes").start().expect("it starts");
    ask(&server, "SET key value");
    disk.fault("held").syncs().file("*.base*").times(1).delay(Duration::from_secs(3600));
    ask(&server, "BGREWRITEAOF");
    server.wait_until_fired("held", 1, TIMEOUT).expect("it is being rewritten");
    let refused = "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to \
                   schedule a BGSAVE whenever possible.";
    assert_eq!(ask(&server, "BGSAVE"), refused);
    assert_eq!(ask(&server, "BGSAVE SCHEDULE"), "Background saving scheduled");
    assert!(shows(&server, "rdb_saves:0"));
    disk.remove_fault("held");
    wait_until("it is saved behind the rewrite", || shows(&server, "rdb_saves:1"));
    assert!(shows(&server, "aof_rewrites:1"));
}

/// A server that rewrites its file. That rewrite, and a save, stay on the way to the disk until the rules are removed.
fn start_rewriting(disk: &Disk, save_points: &str) -> Server {
    let builder = Server::builder().disk(disk).set("save", save_points).set("appendonly", "yes");
    let server = builder.start().expect("it starts");
    ask(&server, "SET key before");
    server.snapshot("before");
    ask(&server, "SET key after");
    for (rule, file) in [("rewrite", "*.base*"), ("save", "*.rdb")] {
        disk.fault(rule).writes().file(file).times(1).delay(Duration::from_secs(3600));
    }
    server
}

#[test]
fn a_save_goes_on_when_the_rewrite_beside_it_is_stopped() {
    let disk = Disk::new();
    let server = start_rewriting(&disk, "");
    ask(&server, "BGREWRITEAOF");
    server.wait_until_fired("rewrite", 1, TIMEOUT).expect("it is being rewritten");
    thread::scope(|scope| {
        let saved = call(scope, &server, "SAVE", 1);
        server.wait_until_fired("save", 1, TIMEOUT).expect("it is being saved");
        assert_eq!(ask(&server, "CONFIG SET appendonly no"), "OK");
        disk.remove_fault("save");
        assert_eq!(saved.join().expect("it does not panic"), "OK");
    });
}

#[test]
fn a_rewrite_goes_on_when_the_save_beside_it_is_stopped() {
    let disk = Disk::new();
    let server = start_rewriting(&disk, "3600 100");
    ask(&server, "BGREWRITEAOF");
    server.wait_until_fired("rewrite", 1, TIMEOUT).expect("it is being rewritten");
    thread::scope(|scope| {
        let saved = call(scope, &server, "SAVE", 1);
        server.wait_until_fired("save", 1, TIMEOUT).expect("it is being saved");
        assert_eq!(ask(&server, "FLUSHALL"), "OK");
        assert_eq!(saved.join().expect("it does not panic"), "OK");
    });
    disk.remove_fault("rewrite");
    wait_until("the rewrite has ended", || shows(&server, "aof_rewrite_in_progress:0"));
    assert!(shows(&server, "aof_last_bgrewrite_status:ok"));
}

#[test]
fn a_server_that_ends_during_a_save_leaves_the_base_of_a_file_that_begins_anew() {
    let disk = Disk::new();
    let server = start_rewriting(&disk, "");
    server.rollback("before").expect("it is there");
    server.wait_until_fired("rewrite", 1, TIMEOUT).expect("a base is being written");
    let mut saving = server.client().expect("there is room");
    let saved = thread::spawn(move || saving.call(["SAVE"]));
    server.wait_until_fired("save", 1, TIMEOUT).expect("it is being saved");
    assert_eq!(ask(&server, "SHUTDOWN"), "the connection is closed");
    drop(server);
    // The client may learn of the end before it has the reply.
    let _ = saved.join().expect("it does not panic");
    let server = Server::builder().disk(&disk).set("appendonly", "yes").start().expect("it starts");
    assert_eq!(ask(&server, "GET key"), "before");
}

#[test]
fn a_server_that_cannot_save_ends_only_if_it_is_forced_to() {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).set("save", "3600 1").start().expect("it starts");
    ask(&server, "SET key value");
    disk.fault("full").writes().file("*.rdb").input_output_error();
    for way in ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOW"] {
        assert_eq!(ask(&server, way), "ERR Errors trying to SHUTDOWN. Check logs.", "{way}");
        assert_eq!(ask(&server, "GET key"), "value");
    }
    let mut client = server.client().expect("there is room");
    let ended = client.call(["SHUTDOWN", "SAVE", "FORCE"]);
    assert!(ended.is_err_and(|error| !error.to_string().starts_with("ERR")), "its connection is closed");
    drop(server);
    disk.remove_fault("full");
    assert_eq!(saved(&disk), "Null");
}

#[test]
fn idle_times_and_frequencies_are_saved_only_where_the_policy_of_eviction_needs_them() {
    for (policy, question, saved) in [
        ("noeviction", "OBJECT IDLETIME key", "Integer(0)"),
        ("allkeys-random", "OBJECT IDLETIME key", "Integer(0)"),
        ("volatile-lru", "OBJECT IDLETIME key", "Integer(70)"),
        ("allkeys-lfu", "OBJECT FREQ key", "Integer(9)"),
    ] {
        let server = Server::builder().frozen().set("maxmemory-policy", policy).allow_debug().start();
        let server = server.expect("it starts");
        ask(&server, "CONFIG SET lfu-log-factor 0 lfu-decay-time 0");
        ask(&server, "SET key value");
        (0..4).for_each(|_| _ = ask(&server, "GET key"));
        server.advance(Duration::from_secs(70));
        assert_eq!(ask(&server, "DEBUG RELOAD"), "OK");
        assert_eq!(ask(&server, question), saved, "{policy}");
    }
}
