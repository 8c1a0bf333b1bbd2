//! Metrics of memory: by what it is for, and what the snapshots keep.

use std::collections::BTreeMap;

use dunlin::{Client, Server};

use crate::call;
use crate::measures::{run, text};

fn start() -> (Server, Client) {
    let server = Server::builder().page(0).start().expect("it starts");
    let client = server.client().expect("there is room");
    (server, client)
}

/// The bytes by structure.
fn memory(server: &Server) -> BTreeMap<String, usize> {
    let text = text(server);
    let sample = |line: &str| {
        let (name, bytes) = line.strip_prefix("dunlin_memory_bytes{structure=\"")?.split_once("\"} ")?;
        Some((name.to_owned(), bytes.parse().ok()?))
    };
    text.lines().filter_map(sample).collect()
}

fn snapshot_bytes(server: &Server) -> usize {
    let bytes = text(server).lines().find_map(|line| line.strip_prefix("dunlin_snapshot_bytes ")?.parse().ok());
    bytes.expect("it is there")
}

/// Fills a key of each type with some 100 kilobytes.
fn fill(client: &mut Client) {
    run(client, &["SETRANGE string 100000 x", "XADD stream 1-1 f v"]);
    for number in 0..1000 {
        // A list stores what its elements begin with in common only once.
        let text = format!("{number:-<100}");
        call(client, ["RPUSH", "list", &text]);
        call(client, ["SADD", "set", &text]);
        call(client, ["HSET", "hash", &text, "v"]);
        call(client, ["ZADD", "zset", "1", &text]);
        call(client, ["XADD", "stream", "*", "f", &text]);
    }
}

const TYPES: [&str; 6] = ["string", "list", "set", "zset", "hash", "stream"];

#[test]
fn each_value_counts_for_its_type() {
    let (server, mut client) = start();
    let empty = memory(&server);
    assert!(TYPES.iter().all(|name| empty[*name] == 0), "{empty:?}");
    fill(&mut client);
    let before = memory(&server);
    for name in TYPES {
        let usage = call(&mut client, ["MEMORY", "USAGE", name]).integer().expect("the key exists");
        let (bytes, usage) = (before[name], usize::try_from(usage).expect("it is a size"));
        assert!(bytes > 80_000 && (bytes..bytes + 200).contains(&usage), "{name}: {bytes} of {usage}");
    }
    run(&mut client, &["SET short v", "HSET brief f v", "PEXPIRE short 100000"]);
    let after = memory(&server);
    assert!(TYPES.iter().all(|name| after[*name] == before[*name]), "short values are beside their keys: {after:?}");
    assert!(["keys", "deadlines"].iter().all(|name| after[*name] > before[*name]), "{before:?} {after:?}");
    assert!(["table", "clients"].iter().all(|name| after[*name] > 0) && after["hash_slots"] == 0, "{after:?}");
    run(
        &mut client,
        &["COPY list other", "MOVE list 1", "DEL set hash", "LTRIM other 0 499", "DEL string zset stream"],
    );
    let half = memory(&server)["list"] - before["list"];
    assert!((before["list"] / 3..before["list"] * 2 / 3).contains(&half), "{half} of {before:?}");
    run(&mut client, &["FLUSHALL"]);
    let empty = memory(&server);
    assert!(TYPES.iter().all(|name| empty[*name] == 0), "{empty:?}");
}

#[test]
fn what_snapshots_keep_is_counted_until_nobody_needs_it() {
    let (server, mut client) = start();
    fill(&mut client);
    run(&mut client, &["DUNLIN SNAPSHOT first"]);
    assert_eq!(snapshot_bytes(&server), 0, "nothing has changed");
    run(&mut client, &["DEL list", "SET new 1"]);
    let one = snapshot_bytes(&server);
    assert!(one > 80_000, "{one}");
    assert_eq!(memory(&server)["snapshots"], one);
    run(&mut client, &["DUNLIN SNAPSHOT second", "HDEL hash none", "SADD set more"]);
    let two = snapshot_bytes(&server);
    assert!(two > one + 80_000, "a set that is edited is kept as it was: {one} and {two}");
    run(&mut client, &["DUNLIN ROLLBACK second"]);
    assert_eq!(snapshot_bytes(&server), one);
    run(&mut client, &["FLUSHALL"]);
    assert!(snapshot_bytes(&server) > one + 400_000, "a database that is emptied is kept");
    run(&mut client, &["DUNLIN ROLLBACK first"]);
    assert_eq!(snapshot_bytes(&server), 0);
    assert_eq!(call(&mut client, ["LLEN", "list"]), 1000);
}
