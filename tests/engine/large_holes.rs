//! Known vulnerabilities that need large data or many rounds; known_holes.rs has the list.
//!
//! The test of HyperLogLogs runs a part of its rounds unless `DUNLIN_HOLE_ROUNDS` sets the number, as CI does weekly.

use fastrand::Rng;

use super::growth::measure::too_fast;
use crate::support::processor_time::processor_time;
use crate::world::World;

fn rounds(usual: u64) -> u64 {
    std::env::var("DUNLIN_HOLE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Sends a command with arguments that are made from the numbers of a range.
fn ask_with(world: &mut World, command: &str, numbers: impl Iterator<Item = String>) -> Vec<u8> {
    let numbers: Vec<String> = numbers.collect();
    let words: Vec<&[u8]> = command.split(' ').chain(numbers.iter().map(String::as_str)).map(str::as_bytes).collect();
    world.send(world.client, &words).0
}

fn content(reply: &[u8]) -> &[u8] {
    let start = reply.iter().position(|&byte| byte == b'\n').expect("it is a bulk string") + 1;
    &reply[start..reply.len() - 2]
}

/// CVE-2021-32687: a limit that is as large as it may be, a million integers, and their way through a payload.
#[test]
fn a_million_integers_stay_integers_through_dump_and_restore() {
    let mut world = World::fresh();
    world.ask("CONFIG SET set-max-intset-entries 9223372036854775807");
    for part in 0..10 {
        let numbers = (0..100_000).map(|number: i64| (part * 100_000 + number - 500_000).to_string());
        assert_eq!(ask_with(&mut world, "SADD numbers", numbers), b":100000\r\n");
    }
    assert_eq!(world.ask("SADD numbers 9223372036854775807"), ":1\r\n");
    let (dump, _) = world.send(world.client, &[b"DUMP", b"numbers"]);
    assert_eq!(world.send(world.client, &[b"RESTORE", b"others", b"0", content(&dump)]).0, b"+OK\r\n");
    for key in ["numbers", "others"] {
        assert_eq!(world.ask(&format!("SCARD {key}")), ":1000001\r\n");
        assert_eq!(world.ask(&format!("OBJECT ENCODING {key}")), "$6\r\nintset\r\n");
        assert_eq!(world.ask(&format!("SMISMEMBER {key} -500000 0 499999 500000")), "*4\r\n:1\r\n:1\r\n:1\r\n:0\r\n");
    }
    assert_eq!(world.ask("DEBUG DIGEST-VALUE numbers"), world.ask("DEBUG DIGEST-VALUE others"));
}

/// CVE-2025-32023: run lengths that lead beyond the registers, by every way to write bytes into a key.
#[test]
fn sketches_with_any_bytes_changed_are_counted_or_refused() {
    let mut rng = Rng::with_seed(32_023);
    let mut world = World::fresh();
    let mut seeds = Vec::new();
    for count in [0, 1, 100, 1000, 5000] {
        ask_with(&mut world, "PFADD seed a", (0..count).map(|number| number.to_string()));
        let (sketch, _) = world.send(world.client, &[b"GET", b"seed"]);
        seeds.push(content(&sketch).to_vec());
    }
    let mut answers = [0; 3];
    for round in 0..rounds(50_000) {
        // Most are small ones: they have run lengths, and take less time.
        let seed = &seeds[if rng.u8(..50) == 0 { rng.usize(..seeds.len()) } else { rng.usize(..3) }];
        let mut bytes = seed.clone();
        for _ in 0..rng.usize(1..9) {
            let at = if rng.bool() { rng.usize(..bytes.len()) } else { rng.usize(16..bytes.len()) };
            bytes[at] = if rng.bool() { rng.u8(..) } else { [0, 0x3f, 0x40, 0x7f, 0x80, 0xff][rng.usize(..6)] };
        }
        let end = rng.usize(1..=bytes.len());
        match round % 4 {
            0 => _ = world.send(world.client, &[b"SET", b"key", &bytes]),
            1 => {
                world.send(world.client, &[b"SET", b"key", seed]);
                world.send(world.client, &[b"SETRANGE", b"key", b"0", &bytes[..end]]);
            }
            2 => {
                world.send(world.client, &[b"SET", b"key", &bytes[..end]]);
                world.send(world.client, &[b"APPEND", b"key", &bytes[end..]]);
            }
            _ => {
                world.send(world.client, &[b"SET", b"made", &bytes]);
                let (dump, _) = world.send(world.client, &[b"DUMP", b"made"]);
                world.send(world.client, &[b"RESTORE", b"key", b"0", content(&dump), b"REPLACE"]);
            }
        }
        for command in ["PFCOUNT key", "PFADD key x y z", "PFMERGE other key seed", "PFCOUNT key seed", "PFCOUNT key"] {
            let reply = world.ask(command);
            let kind = ["-INVALIDOBJ", "-WRONGTYPE", ""].iter().position(|start| reply.starts_with(start)).unwrap_or(2);
            answers[kind] += 1;
            let is_well = kind < 2 || matches!(reply.as_bytes()[0], b':' | b'+');
            assert!(is_well, "round {round}: {command}: {reply}: {}", bytes.escape_ascii());
        }
        world.engine.databases.iter().for_each(|database| database.check());
    }
    assert!(answers.iter().all(|&count| count > 0), "each answer is given: {answers:?}");
}

/// CVE-2025-62507: more ids than there was room for; Redis has a fixed buffer for 8.
#[test]
fn entries_are_deleted_and_acknowledged_by_any_number_of_ids() {
    for count in [1, 8, 9, 10_000, 1_000_000] {
        let mut world = World::fresh();
        let there = count.min(1_000);
        for number in 1..=there {
            world.ask(&format!("XADD key {number}-0 f v"));
        }
        world.ask("XGROUP CREATE key group 0");
        world.ask("XREADGROUP GROUP group ann STREAMS key >");
        let ids = || (1..=count).map(|number| format!("{number}-0"));
        let expected = format!(":{there}\r\n").into_bytes();
        assert_eq!(ask_with(&mut world, "XACK key group", ids()), expected, "{count} ids");
        assert_eq!(ask_with(&mut world, "XDEL key", ids()), expected, "{count} ids");
        assert_eq!(world.ask("XLEN key"), ":0\r\n");
    }
    let mut world = World::fresh();
    for command in ["XACKDEL key group IDS 1 1-0", "XDELEX key IDS 1 1-0"] {
        assert!(world.ask(command).starts_with("-ERR unknown command"), "{command}");
    }
}

/// RED-167788: subscriptions where there is no memory left.
#[test]
fn a_client_can_subscribe_to_a_million_channels_while_memory_is_short() {
    const AT_ONCE: usize = 10_000;
    let mut world = World::fresh();
    world.ask("SET key value");
    world.ask("CONFIG SET maxmemory 1");
    let kinds = [("subscribe", 400_000), ("psubscribe", 300_000), ("ssubscribe", 300_000)];
    for (kind, channels) in kinds {
        for first in (0..channels).step_by(AT_ONCE) {
            let reply = ask_with(&mut world, kind, (first..first + AT_ONCE).map(|number| format!("c{number}")));
            let start = format!("*3\r\n${}\r\n{kind}\r\n", kind.len());
            assert!(reply.starts_with(start.as_bytes()), "{}", String::from_utf8_lossy(&reply[..50]));
        }
    }
    let friend = world.join();
    assert_eq!(world.ask_as(friend, "PING").0, "+PONG\r\n");
    assert!(world.ask_as(friend, "SET other value").0.starts_with("-OOM "));
    assert_eq!(world.ask_as(friend, "PUBLISH c399999 x").0, ":1\r\n");
    let (client, start) = (world.client, processor_time());
    world.engine.disconnect(client);
    assert!((processor_time() - start).as_secs() < 10, "who goes is let go");
}

/// R#13863: an endless search, as every key that it finds is overdue and must not be removed.
#[test]
fn randomkey_ends_though_all_keys_are_overdue_and_writes_are_paused() {
    let overdue = |keys: usize| {
        let mut world = World::fresh();
        for number in 0..keys {
            world.ask(&format!("SET key{number} v PX 1"));
        }
        world.ask("CLIENT PAUSE 1000000 WRITE");
        world.pass_ms(10);
        world
    };
    let mut world = overdue(100);
    assert!(world.ask("RANDOMKEY").starts_with('$'));
    assert!(world.ask("SCAN 0 COUNT 1000").starts_with('*'));
    assert_eq!(world.ask("DBSIZE"), ":100\r\n", "nothing is removed while writing is paused");
    // As many calls as there are keys: each takes the same time, whatever the number of keys.
    let work = |keys: usize| {
        let mut world = overdue(keys);
        let start = processor_time();
        for _ in 0..keys {
            world.ask("RANDOMKEY");
        }
        processor_time() - start
    };
    assert_eq!(too_fast("RANDOMKEY", work), None);
}
