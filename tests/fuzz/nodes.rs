//! Fuzzes the nodes of a cluster. Whatever a client sends to one of them, the others keep their data and their view;
//! and whatever commands about the cluster say, no node fails, and each finds its keys by their slots.

use std::time::{Duration, SystemTime};

use dunlin::engine::Flags;
use dunlin::{CallError, Client, Server, World};

use crate::choices::Choices;
use crate::grammar::Grammar;

/// Commands that are not sent at random, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("bgrewriteaof", "it may write files"),
    ("bgsave", "it may write files"),
    ("client|pause", "all clients wait, for a clock that stands"),
    ("client|reply", "a call waits for its reply"),
    ("cluster", "it changes which node has which keys, as it is asked to"),
    ("dunlin", "it orders all nodes about, as it is asked to"),
    ("migrate", "it connects to what its words name"),
    ("monitor", "a call has one reply"),
    ("psync", "it makes a replica of the client"),
    ("replconf", "it makes a replica of the client"),
    ("save", "it may write files"),
    ("sync", "it makes a replica of the client"),
];

/// Commands that change the cluster: `@` is the id of a node, `%` its port, `#` a slot.
const CHANGES: &[&str] = &[
    "CLUSTER SETSLOT # NODE @",
    "CLUSTER SETSLOT # MIGRATING @",
    "CLUSTER SETSLOT # IMPORTING @",
    "CLUSTER SETSLOT # STABLE",
    "CLUSTER ADDSLOTS #",
    "CLUSTER DELSLOTS #",
    "CLUSTER DELSLOTSRANGE 0 16383",
    "CLUSTER ADDSLOTSRANGE 0 16383",
    "CLUSTER FLUSHSLOTS",
    "CLUSTER FORGET @",
    "CLUSTER MEET 127.0.0.1 %",
    "CLUSTER MEET 127.0.0.1 %",
    "CLUSTER REPLICATE @",
    "CLUSTER FAILOVER",
    "CLUSTER FAILOVER FORCE",
    "CLUSTER FAILOVER TAKEOVER",
    "CLUSTER RESET",
    "CLUSTER RESET HARD",
    "CLUSTER BUMPEPOCH",
    "CLUSTER SET-CONFIG-EPOCH #",
    "CLUSTER COUNT-FAILURE-REPORTS @",
    "CLUSTER REPLICAS @",
    "CLUSTER SLOTS",
    "CLUSTER SHARDS",
    "CLUSTER NODES",
    "CLUSTER LINKS",
    "MIGRATE 127.0.0.1 % bar 0 1 REPLACE",
    "MIGRATE 127.0.0.1 %  0 1 REPLACE KEYS {bar}2 {bar}3",
    "CONFIG SET cluster-require-full-coverage no",
    "CONFIG SET cluster-allow-replica-migration no",
    "CONFIG SET cluster-announce-port %",
    "FLUSHALL",
    "ASKING",
    "READONLY",
    "SET bar 1",
    "MSET {bar}2 1 {bar}3 2",
    "SET abc 1 PX 500",
    "SSUBSCRIBE bar",
    "SPUBLISH bar hello",
    "MULTI",
    "EXEC",
];

/// The slots of `bar`, `abc` and `foo`, and the first and the last one.
const SLOTS: [u16; 5] = [5061, 7638, 12182, 0, 16383];

/// The number of requests until a new cluster takes the place of one.
const REQUESTS: u64 = 500;

fn start(seed: u64, replicas: u16) -> Server {
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let cluster = Server::cluster(3).replicas(replicas).seed(seed).frozen_at(moment).allow_debug();
    cluster.start().expect("the nodes start")
}

fn call(client: &mut Client, line: &str) -> String {
    format!("{:?}", client.call(line.split(' ')))
}

/// The data of a node, and its view of the cluster.
fn picture(node: &World) -> [String; 2] {
    let mut client = node.client().expect("a node lets clients in");
    ["DEBUG DIGEST", "CLUSTER SLOTS"].map(|line| call(&mut client, line))
}

/// Whether a request may be sent at random to a node of a cluster.
fn is_sent(node: &World, words: &[Vec<u8>]) -> bool {
    let lower = |place: usize| words.get(place).map(|word| String::from_utf8_lossy(word).to_lowercase());
    let names = (0..words.len()).filter_map(lower);
    // A script may run any of the commands.
    let is_left_out = |name: String| LEFT_OUT.iter().any(|(known, _)| *known == name);
    let subcommand = format!("{}|{}", lower(0).unwrap_or_default(), lower(1).unwrap_or_default());
    if names.into_iter().any(is_left_out) || is_left_out(subcommand) {
        return false;
    }
    node.with_engine(|engine| {
        let found = words.first().and_then(|name| engine.table.find(name));
        found.is_none_or(|id| !engine.table.entry(id).command.flags.has(Flags::BLOCKING))
    })
}

/// Sends random requests to the first node of clusters.
pub fn harm_no_other(seed: u64, rounds: u64) {
    let mut choices = Choices::Seed(seed | 1);
    let mut answered = 0;
    for part in 0..rounds.div_ceil(REQUESTS) {
        let server = start(seed + part, 0);
        let nodes = server.nodes();
        let grammar = nodes[0].with_engine(|engine| Grammar::new(engine.table.entries()));
        for (node, lines) in
            [(1, ["SET abc 1", "RPUSH {abc}2 a b", "SET k4 1"]), (2, ["SET foo 1", "SET k1 1", "HSET {foo}2 f v"])]
        {
            let mut client = nodes[node].client().expect("there is room");
            lines.iter().for_each(|line| _ = client.call(line.split(' ')).expect("the node owns the slot"));
        }
        let before = [1, 2].map(|node: usize| picture(&nodes[node]));
        let mut client = nodes[0].client().expect("there is room");
        let mut last = Vec::new();
        for _ in 0..REQUESTS {
            let words = grammar.request(&mut choices);
            if !is_sent(&nodes[0], &words) {
                continue;
            }
            match client.call(&words) {
                Ok(_) => answered += 1,
                // The client ended itself, or lets no other one in.
                Err(CallError::Closed) => match nodes[0].client() {
                    Ok(next) => client = next,
                    Err(_) => break,
                },
                Err(_) => {}
            }
            last.push(words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" "));
        }
        let after = [1, 2].map(|node: usize| picture(&nodes[node]));
        assert_eq!(before, after, "seed {seed}, cluster {part}, after\n{}", last.join("\n"));
    }
    assert!(answered > rounds / 10, "only {answered} requests of {rounds} were no errors");
}

/// Sends random changes of the cluster to any of its nodes, while time passes.
pub fn survive_changes(seed: u64, rounds: u64) {
    let mut choices = Choices::Seed(seed | 1);
    let mut changed = 0;
    for part in 0..rounds.div_ceil(REQUESTS) {
        let server = start(seed + part, 1);
        let nodes = server.nodes();
        let mut clients: Vec<Client> = nodes.iter().map(|node| node.client().expect("there is room")).collect();
        for round in 0..REQUESTS {
            let (node, other) = (choices.below(nodes.len()), choices.below(nodes.len()));
            let line = CHANGES[choices.below(CHANGES.len())];
            let id = clients[other].call(["CLUSTER", "MYID"]);
            let id = id.ok().and_then(|id| id.text().map(std::borrow::Cow::into_owned)).unwrap_or_default();
            let slot = SLOTS[choices.below(SLOTS.len())].to_string();
            let line = line.replace('@', &id).replace('%', &nodes[other].addr().port().to_string()).replace('#', &slot);
            match clients[node].call(line.split(' ')) {
                Ok(_) => changed += 1,
                Err(CallError::Closed) => clients[node] = nodes[node].client().expect("a node lets clients in"),
                Err(_) => {}
            }
            if line.contains("FAILOVER") {
                // A primary holds back writes until that is over, or for five seconds.
                server.advance(Duration::from_secs(6));
            } else if choices.below(8) == 0 {
                server.advance(Duration::from_millis(choices.below(5_000) as u64));
            }
            if round % 50 == 49 {
                check(&nodes, &format!("seed {seed}, cluster {part}, round {round}, {line}"));
            }
        }
    }
    assert!(changed > rounds / 10, "only {changed} of {rounds} requests were no errors");
}

/// Every node answers, and its structures have their invariants.
fn check(nodes: &[World], context: &str) {
    for node in nodes {
        let mut client = node.client().expect("a node lets clients in");
        assert!(call(&mut client, "PING").contains("PONG"), "{context}");
        node.with_engine(|engine| engine.databases.iter().for_each(|database| database.check()));
    }
}
