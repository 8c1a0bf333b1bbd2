//! Payloads of streams: those of earlier versions of Redis, and invalid ones.
//!
//! Redis 5 wrote type 15, Redis 7.0 type 19, and Redis 7.2 and later type 21, which has more counters and times each.
//! Source of the layout: the payloads that Redis 7.0.15 and 8.0.6 write.

use crate::process::{Process, Program};
use crate::restore::{DAMAGED, OK, restored, text};
use crate::world::World;
use dunlin::rdb;

const REDIS_5: u8 = 15;
const REDIS_7_0: u8 = 19;
const REDIS_7_2: u8 = 21;

type Id = (u64, u64);

/// A group in a payload.
#[derive(Clone)]
struct Group {
    pending: Vec<Id>,
    consumers: Vec<(&'static str, Vec<Id>)>,
}

impl Group {
    /// Ann and Bob have one entry each, Eve has none.
    fn sound() -> Group {
        let consumers = vec![("ann", vec![(1, 1)]), ("bob", vec![(2, 1)]), ("eve", vec![])];
        Group { pending: vec![(1, 1), (2, 1)], consumers }
    }
}

/// A length or another number: up to 63 in one byte.
fn number(value: u64) -> Vec<u8> {
    if value < 64 { vec![value as u8] } else { [&[0x81], value.to_be_bytes().as_slice()].concat() }
}

fn id((ms, seq): Id) -> Vec<u8> {
    [number(ms), number(seq)].concat()
}

fn raw((ms, seq): Id) -> Vec<u8> {
    [ms.to_be_bytes(), seq.to_be_bytes()].concat()
}

/// A listpack of numbers up to 127, and of texts.
fn listpack(items: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for item in items {
        match item.parse::<u8>() {
            Ok(value) => body.extend([value, 1]),
            Err(_) => {
                body.push(0x80 | item.len() as u8);
                body.extend_from_slice(item.as_bytes());
                body.push(1 + item.len() as u8);
            }
        }
    }
    let total = (4 + 2 + body.len() as u32 + 1).to_le_bytes();
    [total.as_slice(), &(items.len() as u16).to_le_bytes(), &body, b"\xff"].concat()
}

/// A stream of the entries 1-1, 2-1 and 4-1, where 3-1 was deleted, with one group that has read up to 2-1.
fn payload(kind: u8, group: &Group) -> Vec<u8> {
    const ENTRIES: &[&str] = &[
        "3", "1", "1", "field", "0", // alive, dead, the fields that most share
        "2", "0", "0", "one", "4", // flags, id behind 1-1, the value, how many elements
        "2", "1", "0", "two", "4", //
        "3", "2", "0", "three", "4", //
        "0", "3", "0", "2", "x", "four", "y", "five", "8",
    ];
    let mut bytes = [vec![kind, 1], text(&raw((1, 1))), text(&listpack(ENTRIES)), number(3), id((4, 1))].concat();
    if kind != REDIS_5 {
        bytes.extend([id((1, 1)), id((3, 1)), number(4)].concat());
    }
    bytes.extend([vec![1], text(b"group"), id((2, 1))].concat());
    if kind != REDIS_5 {
        bytes.extend(number(2));
    }
    bytes.extend(number(group.pending.len() as u64));
    for pending in &group.pending {
        bytes.extend([raw(*pending), 1_000_u64.to_le_bytes().to_vec(), number(7)].concat());
    }
    bytes.extend(number(group.consumers.len() as u64));
    for (name, pending) in &group.consumers {
        bytes.extend([text(name.as_bytes()), 2_000_u64.to_le_bytes().to_vec()].concat());
        if kind == REDIS_7_2 {
            bytes.extend(3_000_u64.to_le_bytes());
        }
        bytes.extend(number(pending.len() as u64));
        pending.iter().for_each(|pending| bytes.extend(raw(*pending)));
    }
    bytes
}

const QUESTIONS: &[&str] = &[
    "XRANGE key - +",
    "XINFO STREAM key",
    "XINFO GROUPS key",
    "XPENDING key group",
    "XINFO STREAM key FULL",
    "XREADGROUP GROUP group eve STREAMS key >",
    "XAUTOCLAIM key group eve 0 0",
    "XADD key * more 1",
];

#[test]
fn streams_of_every_version_are_read() {
    for kind in [REDIS_5, REDIS_7_0, REDIS_7_2] {
        let mut world = World::fresh();
        assert_eq!(restored(&mut world, &payload(kind, &Group::sound())), OK, "type {kind}");
        world.engine.databases.iter().for_each(|database| database.check());
        assert_eq!(world.ask("XLEN key"), ":3\r\n");
        assert_eq!(
            world.ask("XRANGE key 4 4"),
            "*1\r\n*2\r\n$3\r\n4-1\r\n*4\r\n$1\r\nx\r\n$4\r\nfour\r\n$1\r\ny\r\n$4\r\nfive\r\n"
        );
        let pending =
            "*4\r\n:2\r\n$3\r\n1-1\r\n$3\r\n2-1\r\n*2\r\n*2\r\n$3\r\nann\r\n$1\r\n1\r\n*2\r\n$3\r\nbob\r\n$1\r\n1\r\n";
        assert_eq!(world.ask("XPENDING key group"), pending, "type {kind}");
        let dump = world.ask("DUMP key");
        assert!(dump.contains("four"), "type {kind}: {dump}");
    }
}

#[test]
fn a_real_server_reads_streams_of_every_version_as_we_do() {
    let Some(program) = Program::from_environment("streams of every version on a real server") else { return };
    let process = Process::start(&program).expect("the real server starts");
    let client = redis::Client::open(format!("redis://{}", process.address)).expect("the address is right");
    let mut other = client.get_connection().expect("the real server accepts");
    for kind in [REDIS_5, REDIS_7_0, REDIS_7_2] {
        let mut world = World::fresh();
        let payload = payload(kind, &Group::sound());
        assert_eq!(restored(&mut world, &payload), OK, "type {kind}");
        let payload_with_footer = rdb::with_footer(payload);
        let () = redis::cmd("RESTORE")
            .arg("key")
            .arg(0)
            .arg(&payload_with_footer)
            .arg("REPLACE")
            .query(&mut other)
            .expect("it reads");
        for question in QUESTIONS {
            let mut command = redis::Cmd::new();
            question.split(' ').for_each(|word| _ = command.arg(word));
            let theirs: redis::Value = command.query(&mut other).expect("it answers");
            let ours = world.ask(question);
            let ours = redis::parse_redis_value(ours.as_bytes()).expect("our replies are well formed");
            assert_eq!(printed(&ours), printed(&theirs), "type {kind}: {question}");
        }
    }
}

/// A reply without times and ids made of them.
fn printed(reply: &redis::Value) -> String {
    let text = format!("{reply:?}");
    let mut kept = String::new();
    for word in text.split_inclusive([' ', ',', '(', ')']) {
        let digits = word.trim_matches(|letter: char| !letter.is_ascii_digit() && letter != '-');
        if digits.len() < 10 { kept.push_str(word) } else { kept.push_str("...") }
    }
    kept
}

/// CVE-2026-63639: consumers that share a pending entry, or have one that the group does not have.
#[test]
fn a_pending_entry_belongs_to_one_consumer_once() {
    let sound = Group::sound();
    let with = |change: &dyn Fn(&mut Group)| {
        let mut group = sound.clone();
        change(&mut group);
        group
    };
    let unsound = [
        with(&|group| group.consumers[1].1.push((1, 1))),
        with(&|group| group.consumers[0].1.push((1, 1))),
        with(&|group| group.consumers[2].1.push((9, 9))),
        with(&|group| group.consumers[0].1.clear()),
        with(&|group| drop(group.consumers.remove(1))),
        with(&|group| group.consumers[1].0 = "ann"),
        with(&|group| group.pending.push((2, 1))),
        with(&|group| group.pending.insert(0, (1, 1))),
        with(&|group| group.pending.reverse()),
    ];
    for kind in [REDIS_5, REDIS_7_0, REDIS_7_2] {
        for (nth, group) in unsound.iter().enumerate() {
            let mut world = World::fresh();
            assert_eq!(restored(&mut world, &payload(kind, group)), DAMAGED, "type {kind}, fault {nth}");
            assert_eq!(world.ask("DBSIZE"), ":0\r\n");
        }
    }
}
