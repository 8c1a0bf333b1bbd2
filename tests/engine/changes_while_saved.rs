//! Saves in the background: they write the data as they were when they began, whatever commands change meanwhile;
//! large collections of every type are shared by parts with the save.

use crate::world::World;
use dunlin::engine::{Checkpoint, Effect};
use fastrand::Rng;

/// The elements of a collection: with so many, each has more than the 64 KiB from which it is shared by parts.
const ELEMENTS: usize = 2500;
/// Elements of one command that fills.
const BATCH: usize = 100;

/// Commands that change elements; `#` is a number of an element, another one each time.
const CHANGES: &[&str] = &[
    "ZADD zset # member:#################",
    "ZREM zset member:################# member:#",
    "ZREMRANGEBYRANK zset 40 45",
    "ZPOPMIN zset",
    "HSET hash field:# other",
    "HDEL hash field:#",
    "HPEXPIRE hash # FIELDS 1 field:#",
    "HPERSIST hash FIELDS 1 field:#",
    "HINCRBY hash count 1",
    "SADD set member:# #",
    "SREM set member:#",
    "SPOP set",
    "RPUSH list #",
    "LPUSH list #",
    "LSET list # other",
    "LINSERT list BEFORE element:# other",
    "LREM list 1 element:#",
    "LTRIM list 3 -3",
    "XADD stream * field value:#",
    "XDEL stream #-1",
    "XTRIM stream MINID ~ #",
    "XACK stream readers #-1",
    "XREADGROUP GROUP readers one COUNT 5 STREAMS stream >",
    "SETRANGE text # other",
    "APPEND text #",
];

/// Commands that change whole keys and databases; `?` is one of the collections.
const MOVES: &[&str] = &[
    "RENAME ? other",
    "RENAME other ?",
    "RENAMENX ? left",
    "COPY ? copy REPLACE",
    "MOVE ? 1",
    "SWAPDB 0 1",
    "PEXPIRE ? 20",
    "PERSIST ?",
    "UNLINK ?",
    "ZUNIONSTORE zset 2 zset other",
    "SORT list BY nosort LIMIT 0 1000 STORE list",
    "FLUSHDB",
    "FLUSHALL",
];

const COLLECTIONS: [&str; 6] = ["zset", "hash", "set", "list", "stream", "text"];

/// Creates the collections that do not exist.
fn fill(world: &mut World) {
    for name in COLLECTIONS.into_iter().filter(|name| *name != "text") {
        if world.ask(&format!("EXISTS {name}")) == ":1\r\n" {
            continue;
        }
        for first in (0..ELEMENTS).step_by(BATCH) {
            let numbers = first..first + BATCH;
            match name {
                "zset" => add(world, "ZADD zset", numbers, |n| format!("{} member:{n:017}", n % 70)),
                "hash" => add(world, "HSET hash", numbers, |n| format!("field:{n} value:{n:020}")),
                "set" => add(world, "SADD set", numbers, |n| format!("member:{n:020}")),
                "list" => add(world, "RPUSH list", numbers, |n| format!("element:{n:020}")),
                _ => numbers.for_each(|n| drop(world.ask(&format!("XADD stream {}-1 field value:{n:020}", n + 1)))),
            }
        }
    }
    world.ask(&format!("SET text {}", "x".repeat(70_000)));
    world.ask("XGROUP CREATE stream readers 0");
    world.ask("XREADGROUP GROUP readers one COUNT 50 STREAMS stream >");
    world.ask(&format!("HPEXPIRE hash 40 FIELDS 3 field:{} field:2 field:3", ELEMENTS / 2));
}

fn add(world: &mut World, command: &str, numbers: std::ops::Range<usize>, element: impl Fn(usize) -> String) {
    let elements: Vec<String> = numbers.map(element).collect();
    let reply = world.ask(&format!("{command} {}", elements.join(" ")));
    assert!(reply.starts_with(':'), "{reply}");
}

/// Sends a command with random elements, and lets some time pass.
fn change(world: &mut World, rng: &mut Rng) {
    let template = if rng.u8(..) < 5 { rng.choice(MOVES) } else { rng.choice(CHANGES) };
    let mut command = String::new();
    // A row of signs is one element, with as many digits as `fill` writes.
    let mut rest = *template.expect("there are some");
    while let Some(at) = rest.find(['#', '?']) {
        command.push_str(&rest[..at]);
        rest = &rest[at..];
        let width = rest.find(|sign| sign != '#').unwrap_or(rest.len());
        match width {
            0 => command.push_str(rng.choice(COLLECTIONS).expect("there are some")),
            _ => command.push_str(&format!("{:0width$}", rng.usize(..ELEMENTS + ELEMENTS / 8))),
        }
        rest = &rest[width.max(1)..];
    }
    command.push_str(rest);
    let reply = world.ask(&command);
    assert!(!reply.starts_with("-ERR syntax") && !reply.starts_with("-ERR unknown"), "{command}: {reply}");
    if rng.u8(..) < 20 {
        world.pass_ms(rng.i64(0..30));
        world.expire();
    }
}

fn begin_save(world: &mut World) -> Box<Checkpoint> {
    world.engine.effects.take();
    world.ask("BGSAVE");
    let effects = world.engine.effects.take();
    let saved = effects.into_iter().find_map(|effect| match effect {
        Effect::Save(checkpoint) => Some(checkpoint),
        _ => None,
    });
    saved.expect("no other save is in progress")
}

fn written(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut file = Vec::new();
    checkpoint.write(&mut file, || Ok(())).expect("a Vec takes all");
    file
}

#[test]
fn a_save_writes_the_data_as_they_were_when_it_began() {
    for seed in 0..40 {
        let (mut world, mut rng) = (World::fresh(), Rng::with_seed(seed));
        for _ in 0..4 {
            fill(&mut world);
            let checkpoint = begin_save(&mut world);
            let expected = written(&checkpoint);
            (0..rng.usize(..600)).for_each(|_| change(&mut world, &mut rng));
            assert!(written(&checkpoint) == expected, "seed {seed}");

            let digest = world.ask("DEBUG DIGEST");
            let id = checkpoint.id();
            drop(checkpoint);
            world.engine.end_save(id, Ok(()));
            assert_eq!(world.ask("DEBUG DIGEST"), digest, "seed {seed}: what was shared is back as it was");
        }
    }
}

#[test]
fn saves_one_after_the_other_leave_no_memory_behind_whether_they_fail_or_not() {
    let mut world = World::fresh();
    fill(&mut world);
    let bytes = |world: &World| world.engine.databases.memory_bytes();
    let before = bytes(&world);
    for number in 0..20 {
        let checkpoint = begin_save(&mut world);
        world.ask(&format!("ZADD zset {number} member:{:017}", 3));
        world.ask(&format!("HSET hash field:9 value:{number:020}"));
        world.ask("SADD set one-more");
        world.ask(&format!("LSET list 5 element:{number:020}"));
        assert!(world.engine.databases.copied_bytes() < before / 4, "a part of each is copied");
        let id = checkpoint.id();
        drop(checkpoint);
        world.engine.end_save(id, if number % 2 == 0 { Ok(()) } else { Err("no space".to_owned()) });
        assert_eq!(world.engine.databases.copied_bytes(), 0);
    }
    assert!(bytes(&world) < before + before / 50, "{} bytes after {before}", bytes(&world));
}

#[test]
fn reads_copy_nothing_while_data_are_saved() {
    let mut world = World::fresh();
    for number in 0..2000 {
        world.ask(&format!("SET key:{number} value"));
    }
    let checkpoint = begin_save(&mut world);
    world.pass_ms(5000);
    for number in 0..2000 {
        world.ask(&format!("GET key:{number}"));
    }
    assert_eq!(world.engine.databases.copied_bytes(), 0);
    assert_eq!(world.ask("OBJECT IDLETIME key:1"), ":5\r\n", "as in Redis, these are no accesses");
    let id = checkpoint.id();
    drop(checkpoint);
    world.engine.end_save(id, Ok(()));
    world.ask("GET key:1");
    assert_eq!(world.ask("OBJECT IDLETIME key:1"), ":0\r\n");
}
