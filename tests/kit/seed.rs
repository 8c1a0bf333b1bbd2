//! The seed, which fixes all random choices of a server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::UNIX_EPOCH;

use dunlin::{Reply, Server};

use crate::timeout::TIMEOUT;
use crate::{call, served};

#[test]
fn the_same_seed_gives_the_same_choices() {
    let (_server, mut client) = served();
    let members: Vec<String> = (0..500).map(|number| format!("member:{number}")).collect();
    call(&mut client, ["SADD", "set"].into_iter().chain(members.iter().map(String::as_str)));
    let mut chosen = |seed| {
        call(&mut client, ["DUNLIN", "SEED", seed]);
        call(&mut client, ["SRANDMEMBER", "set", "20"])
    };
    let (first, other, again) = (chosen("7"), chosen("8"), chosen("7"));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn servers_with_the_same_seed_behave_alike_from_the_start() {
    let chosen = || {
        let server = Server::builder().seed(7).start().expect("it starts");
        let mut client = server.client().expect("there is room");
        let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        call(&mut client, ["SADD", "set"].into_iter().chain(numbers.iter().map(String::as_str)));
        (call(&mut client, ["SPOP", "set", "10"]), call(&mut client, ["CLIENT", "ID"]))
    };
    assert_eq!(chosen(), chosen());
}

/// Fills a server with data for random choices, and exceeds its memory limit; returns all replies.
fn replies_of(server: &Server) -> Vec<u8> {
    let mut connection = TcpStream::connect(server.addr()).expect("it listens");
    connection.set_read_timeout(Some(TIMEOUT)).expect("a time can be set");
    let mut replies = Vec::new();
    let mut ask = |line: &str| {
        connection.write_all(format!("{line}\r\nECHO end\r\n").as_bytes()).expect("it reads");
        let start = replies.len();
        while !replies[start..].ends_with(b"$3\r\nend\r\n") {
            let mut part = [0; 4096];
            let count = connection.read(&mut part).expect("it answers in time");
            assert!(count > 0, "{line} is answered");
            replies.extend_from_slice(&part[..count]);
        }
    };
    for number in 0..300 {
        ask(&format!("SET key:{number} {number:0500}"));
        ask(&format!("SADD set {number} member:{number}"));
        ask(&format!("HSET hash field:{number} {number}"));
        ask(&format!("ZADD zset {number} member:{number}"));
        ask(&format!("GET key:{}", number / 3));
    }
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        ask(&format!("CONFIG SET maxmemory-policy {policy} maxmemory 150000"));
        for number in 0..100 {
            ask(&format!("SET {policy}:{number} {number:01000}"));
        }
        ask("KEYS *");
        ask("CONFIG SET maxmemory 0");
    }
    for line in [
        "SPOP set 10",
        "SRANDMEMBER set -10",
        "HRANDFIELD hash 10",
        "ZRANDMEMBER zset 10",
        "RANDOMKEY",
        "SCAN 0 COUNT 30",
        "SSCAN set 0",
        "HSCAN hash 0",
        "EVAL \"return {math.random(1000000), redis.call('RANDOMKEY')}\" 0",
        "CLIENT ID",
        "ACL GENPASS",
        "LOLWUT",
    ] {
        ask(line);
    }
    replies
}

#[test]
fn over_sockets_a_seed_fixes_every_byte_evictions_too() {
    let replies = |seed| {
        let server = Server::builder().seed(seed).frozen_at(UNIX_EPOCH).start().expect("it starts");
        let replies = replies_of(&server);
        let stats = call(&mut server.client().expect("there is room"), ["INFO", "stats"]);
        assert!(!stats.text().expect("INFO is a text").contains("evicted_keys:0\r"));
        replies
    };
    assert_eq!(replies(7).escape_ascii().to_string(), replies(7).escape_ascii().to_string());
    assert_ne!(replies(7), replies(8));
}

#[test]
fn a_seed_set_later_has_the_effect_of_one_from_the_start() {
    let late = || {
        let (server, mut client) = served();
        server.freeze();
        server.set_time(UNIX_EPOCH);
        call(&mut client, ["SET", "earlier", "value"]);
        call(&mut client, ["DUNLIN", "SEED", "7"]);
        replies_of(&server)
    };
    assert_eq!(late().escape_ascii().to_string(), late().escape_ascii().to_string());
}

#[test]
fn the_run_id_follows_from_the_seed() {
    let run_id = |seed| {
        let server = Server::builder().seed(seed).start().expect("it starts");
        let mut client = server.client().expect("there is room");
        let Reply::Bytes(text) = call(&mut client, ["INFO", "server"]) else { panic!("INFO is a text") };
        let text = String::from_utf8(text).expect("it is ASCII");
        text.lines().find(|line| line.starts_with("run_id:")).expect("it has a name").to_owned()
    };
    assert_eq!(run_id(7), run_id(7));
    assert_ne!(run_id(7), run_id(8));
}
