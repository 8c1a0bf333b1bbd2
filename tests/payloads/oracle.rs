//! Compares payloads with a real Redis: the same commands give the same payload on both, wherever it follows from the
//! value, and each restores the payloads of the other. Runs when DUNLIN_ORACLE names a redis-server; DUNLIN_PAYLOADS is
//! the number of values.

use crate::process::{Process, Program};
use crate::restore::{OK, content};
use crate::samples::{Words, sample};
use crate::world::World;
use fastrand::Rng;

/// The first bytes of a payload of a packed hash with deadlines: a type, and the first deadline, which Redis keeps when
/// the field has lost its deadline.
const TIMED: (u8, usize) = (25, 9);
/// The first byte of the payload of a stream.
const STREAM: u8 = 21;
const CHECKSUM_BYTES: usize = 8;

#[test]
fn a_real_server_writes_the_same_payloads_and_reads_ours() {
    let Some(program) = Program::from_environment("payloads between a real server and ours") else { return };
    let process = Process::start(&program).expect("the real server starts");
    let client = redis::Client::open(format!("redis://{}", process.address)).expect("the address is right");
    let mut other = client.get_connection().expect("the real server accepts");
    let mut world = World::fresh();
    let rounds = std::env::var("DUNLIN_PAYLOADS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    for seed in 0..rounds {
        let commands = sample(&mut Rng::with_seed(seed));
        crate::round_trip::make(&mut world, &commands);
        make(&mut other, &commands);
        let reply = world.send(world.client, &[b"DUMP", b"key"]).0;
        let theirs: Option<Vec<u8>> = redis::cmd("DUMP").arg("key").query(&mut other).expect("DUMP answers");
        let (Some(ours), Some(theirs)) = (content(&reply), theirs) else { continue };
        let encoding = world.ask("OBJECT ENCODING key");
        assert!(encoding.contains("hashtable") || is_same(ours, &theirs), "seed {seed}: {encoding}");
        exchange(&mut world, &mut other, ours, &theirs, seed);
    }
}

fn make(other: &mut redis::Connection, commands: &[Words]) {
    let mut pipeline = redis::pipe();
    pipeline.cmd("DEL").arg("key").ignore();
    for words in commands {
        words[1..].iter().fold(pipeline.cmd(&String::from_utf8_lossy(&words[0])), |command, word| command.arg(word));
    }
    // Our server refuses the commands that the real one refuses, too: only the payloads are compared.
    let _: redis::RedisResult<redis::Value> = pipeline.query(other);
}

/// Payloads of streams with consumers have the times when these were seen, so only their length is equal.
fn is_same(ours: &[u8], theirs: &[u8]) -> bool {
    if ours.first() == Some(&STREAM) {
        return ours.len() == theirs.len();
    }
    let comparable = |payload: &[u8]| match payload.first() {
        Some(&kind) if kind == TIMED.0 => payload[TIMED.1..payload.len() - CHECKSUM_BYTES].to_vec(),
        _ => payload.to_vec(),
    };
    comparable(ours) == comparable(theirs)
}

/// Each restores what the other wrote, and holds the same then.
fn exchange(world: &mut World, other: &mut redis::Connection, ours: &[u8], theirs: &[u8], seed: u64) {
    let reply = world.send(world.client, &[b"RESTORE", b"other", b"0", theirs, b"REPLACE"]).0;
    assert_eq!(reply, OK, "seed {seed}: we read what the real server wrote");
    let () = redis::cmd("RESTORE")
        .arg("other")
        .arg(0)
        .arg(ours)
        .arg("REPLACE")
        .query(other)
        .unwrap_or_else(|error| panic!("seed {seed}: the real server reads what we wrote: {error}"));
    if theirs.first() == Some(&STREAM) {
        // A restored stream is identical, including its times.
        let dumped = world.send(world.client, &[b"DUMP", b"other"]).0;
        assert!(content(&dumped) == Some(theirs), "seed {seed}: we write what we have read");
        let dumped: Vec<u8> = redis::cmd("DUMP").arg("other").query(other).expect("DUMP answers");
        assert!(dumped == ours, "seed {seed}: the real server writes what it has read");
    }
    let digest = world.ask("DEBUG DIGEST-VALUE key");
    assert_eq!(world.ask("DEBUG DIGEST-VALUE other"), digest, "seed {seed}");
    for words in [["OBJECT", "ENCODING"], ["DEBUG", "DIGEST-VALUE"]] {
        let ours = world.ask(&format!("{} {} other", words[0], words[1]));
        let theirs: redis::Value =
            redis::cmd(words[0]).arg(words[1]).arg("other").query(other).expect("the real server answers");
        let ours = redis::parse_redis_value(ours.as_bytes()).expect("our replies are well formed");
        assert_eq!(ours, theirs, "seed {seed}");
    }
}
