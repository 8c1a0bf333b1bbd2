//! Known vulnerabilities in streams; known_holes.rs has the list.

use dunlin::resp::{Request, Span};

use crate::world::World;

/// CVE-2021-32627: entries of more bytes than a listpack counts.
#[test]
fn an_entry_of_gigabytes_is_refused_and_leaves_nothing() {
    const WORD_BYTES: usize = 1 << 20;
    let mut world = World::fresh();
    world.ask("CONFIG SET proto-max-bulk-len 1000gb");
    world.ask("CONFIG SET stream-node-max-bytes 9223372036854775807");
    let mut buffer = b"XADDkey1-1".to_vec();
    let start = buffer.len();
    buffer.resize(start + WORD_BYTES, b'x');
    // Each field and each value is the same mebibyte.
    for words in [1_026, 1_100, 4_096, 5_200] {
        let head = [(0, 4), (4, 7), (7, 10)].map(|(start, end)| Span { start, end });
        let word = Span { start, end: buffer.len() };
        let spans = [head.to_vec(), vec![word; words]].concat();
        let request = Request::new(&buffer, &spans);
        let mut reply = Vec::new();
        world.engine.run(world.now(), world.client, request, &mut reply);
        world.engine.finish(world.now(), request);
        assert_eq!(reply, b"-ERR Elements are too large to be stored\r\n", "{words} words");
        assert_eq!(world.ask("EXISTS key"), ":0\r\n");
    }
    assert_eq!(world.ask("XADD key 1-1 field value"), "$3\r\n1-1\r\n");
}

/// A stream whose group has been given `entries` entries, of which every other one was deleted.
fn half_deleted(entries: usize) -> World {
    let mut world = World::fresh();
    for number in 1..=entries {
        world.ask(&format!("XADD key {number}-1 field value"));
    }
    world.ask("XGROUP CREATE key group 0");
    world.ask("XREADGROUP GROUP group ann STREAMS key >");
    for number in (1..=entries).step_by(2) {
        assert_eq!(world.ask(&format!("XDEL key {number}-1")), ":1\r\n");
    }
    world
}

/// CVE-2022-31144: claiming what was deleted.
#[test]
fn deleted_entries_are_reported_by_a_claim_and_no_longer_pending() {
    const ENTRIES: usize = 300;
    for count in [1, 2, 3, 10, 100, 299, 300, 301, 1_000, 1_000_000] {
        let mut world = half_deleted(ENTRIES);
        let (mut claimed, mut deleted, mut next) = (0, 0, "0-0".to_owned());
        loop {
            let reply = world.ask(&format!("XAUTOCLAIM key group bob 0 {next} COUNT {count} JUSTID"));
            let words: Vec<&str> = reply.split("\r\n").collect();
            next = words[2].to_owned();
            let size = |line: &str| line.strip_prefix('*').and_then(|size| size.parse::<usize>().ok()).expect("a list");
            let alive = size(words[3]);
            let gone = size(words[4 + 2 * alive]);
            assert!(alive + gone <= count, "{alive} and {gone} of {count}");
            (claimed, deleted) = (claimed + alive, deleted + gone);
            if next == "0-0" {
                break;
            }
        }
        assert_eq!((claimed, deleted), (ENTRIES / 2, ENTRIES / 2), "COUNT {count}");
        assert!(world.ask("XPENDING key group").starts_with(&format!("*4\r\n:{}\r\n", ENTRIES / 2)));
        world.engine.databases.iter().for_each(|database| database.check());
    }
}

/// CVE-2022-35951: counts whose product with the size of an id is more than a number holds.
#[test]
fn a_count_above_the_number_of_entries_is_refused_or_claims_all() {
    let mut world = half_deleted(10);
    for count in
        ["8070450532247928833", "9223372036854775807", "1152921504606846976", "0", "-1", "18446744073709551616"]
    {
        let reply = world.ask(&format!("XAUTOCLAIM key group bob 0 0 COUNT {count}"));
        assert!(reply.starts_with("-ERR COUNT must be > 0\r\n"), "{count}: {reply}");
    }
    for command in ["XRANGE key - + COUNT", "XREVRANGE key + - COUNT"] {
        assert!(world.ask(&format!("{command} 9223372036854775807")).starts_with("*5\r\n"), "{command}");
    }
    assert!(world.ask("XREAD COUNT 9223372036854775807 STREAMS key 0").starts_with("*1\r\n"));
    assert!(world.ask("XPENDING key group - + 9223372036854775807").starts_with("*10\r\n"));
    assert!(world.ask("XINFO STREAM key FULL COUNT 9223372036854775807").starts_with("*18\r\n"));
}
