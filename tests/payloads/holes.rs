//! Payloads that crash or corrupt servers: each is refused, and nothing else happens.

use crate::restore::{DAMAGED, OK, listpack, restored, text};
use crate::support::heap;
use crate::world::World;

fn all_are_refused(payloads: &[Vec<u8>]) {
    let mut world = World::fresh();
    for payload in payloads {
        assert_eq!(restored(&mut world, payload), DAMAGED, "{payload:02x?}");
    }
    assert_eq!(world.ask("DBSIZE"), ":0\r\n");
}

/// CVE-2021-29478: an intset whose header has a larger length than its data.
#[test]
fn a_set_of_integers_with_a_wrong_length_in_its_header_is_refused() {
    let intset = |width: u32, count: u32, numbers: &[u8]| {
        [b"\x0b".to_vec(), text(&[&width.to_le_bytes(), &count.to_le_bytes(), numbers].concat())].concat()
    };
    all_are_refused(&[
        intset(2, u32::MAX, b"\x01\0"),
        intset(8, 0x2000_0001, b"\x01\0\0\0\0\0\0\0"),
        intset(4, 1, b"\x01\0"),
        intset(3, 1, b"\x01\0\0"),
        intset(2, 2, b"\x02\0\x01\0"),
        intset(2, 2, b"\x01\0\x01\0"),
        intset(2, 0, b""),
        vec![0x0b, 3, 1, 2, 3],
    ]);
}

/// CVE-2026-21864, CVE-2026-25588 and others: types of modules, here never loaded.
#[test]
fn types_of_modules_are_refused() {
    all_are_refused(&[
        b"\x06\x01\x02".to_vec(),
        b"\x07\x81\x9c\xb7\x0a\x56\x28\x9b\x4c\x01\x02\x05\x00".to_vec(),
        b"\x07\x00\x00".to_vec(),
        b"\x07".to_vec(),
    ]);
}

/// Redis 8.10.1 (SLOT_INFO): records between the values of a file are not values, whatever they contain.
#[test]
fn rdb_records_that_are_not_values_are_refused() {
    let mut payloads = Vec::new();
    for opcode in [8, 26, 27, 100].into_iter().chain(240..=255) {
        for rest in [&b""[..], b"\0", b"\x05", b"\x81\xff\xff\xff\xff\xff\xff\xff\xff", b"\x01a\x01b\0\x01c\x01d"] {
            payloads.push([&[opcode], rest].concat());
        }
    }
    all_are_refused(&payloads);
}

/// Valkey 9.1.3: lengths near the end of what a number can be.
#[test]
fn a_declared_length_is_not_allocated_before_its_bytes_arrive() {
    let mut payloads = Vec::new();
    for length in
        [1 << 31, (1 << 31) - 1, u64::from(u32::MAX), 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX]
    {
        let length = [b"\x81".as_slice(), &length.to_be_bytes()].concat();
        for kind in [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 16, 17, 18, 20, 22, 23] {
            payloads.push([&[kind], length.as_slice(), b"\x01a\x01b"].concat());
        }
        payloads.push([b"\0\xc3", length.as_slice(), &length, b"ab"].concat());
        payloads.push([b"\0\xc3\x02", length.as_slice(), b"ab"].concat());
        payloads.push([b"\x18", [0; 8].as_slice(), &length, b"\0\x01a\x01b"].concat());
        payloads.push([b"\x12\x01\x02", length.as_slice(), b"ab"].concat());
    }
    all_are_refused(&payloads);
}

/// Valkey 8.1.9: scores that are no numbers, lengths of zipmaps.
#[test]
fn scores_that_are_not_numbers_and_zipmaps_of_a_wrong_length_are_refused() {
    let zset = |score: f64| [b"\x05\x01\x01a".as_slice(), &score.to_le_bytes()].concat();
    let zipmap = |bytes: &[u8]| [b"\x09".to_vec(), text(bytes)].concat();
    all_are_refused(&[
        zset(f64::NAN),
        zset(-f64::NAN),
        b"\x03\x01\x01a\xfd".to_vec(),
        [b"\x11".to_vec(), text(&listpack(&[b"a", b"nan"]))].concat(),
        [b"\x11".to_vec(), text(&listpack(&[b"a", b"one"]))].concat(),
        zipmap(b"\x01\x01a\xfe\xff\xff\xff\xff\0b\xff"),
        zipmap(b"\x01\xfe\xff\xff\xff\xffa\x01\0b\xff"),
        zipmap(b"\x01\x01a\x01\xffb\xff"),
        zipmap(b"\x01\x01a\xff"),
        zipmap(b"\x01\x01a\x01\0b\xfe"),
        zipmap(b"\x02\x01a\x01\0b\x01a\x01\0c\xff"),
    ]);
}

/// CVE-2026-25243 and Redis's own damaged dumps: listpacks whose parts do not fit together.
#[test]
fn a_listpack_whose_parts_do_not_fit_together_is_refused() {
    let whole = listpack(&[b"f", b"v"]);
    let mut payloads = vec![];
    for kind in [16, 17, 20] {
        payloads.push([vec![kind], text(&[whole.as_slice(), b"\xff"].concat())].concat());
        payloads.push([vec![kind], text(&whole[..whole.len() - 1])].concat());
        payloads.push([vec![kind], text(b"")].concat());
        payloads.push([vec![kind], text(&listpack(&[b"a", b"b", b"a", b"b"]))].concat());
        for (place, byte) in [(0, 0), (3, 0x80), (4, 1), (6, 0xff), (6, 0xf5), (6, 0xf0), (6, 0xe1), (8, 7)] {
            let mut damaged = whole.clone();
            damaged[place] = byte;
            payloads.push([vec![kind], text(&damaged)].concat());
        }
    }
    all_are_refused(&payloads);
}

/// A few bytes can represent very many: their size is computed before it is allocated.
#[test]
fn the_unpacked_size_of_a_payload_is_limited() {
    let mut world = World::fresh();
    world.engine.switches.capacity.collection_bytes = 1 << 20;
    let run = |length: u32| {
        let copies = (length / 264) as usize;
        let packed = [b"\0a".to_vec(), b"\xe0\xff\0".repeat(copies)].concat();
        let lengths =
            [packed.len() as u32, 1 + 264 * copies as u32].map(|length| [b"\x80", &length.to_be_bytes()[..]].concat());
        [b"\0\xc3".to_vec(), lengths.concat(), packed].concat()
    };
    assert_eq!(restored(&mut world, &run(300_000)), OK);
    assert_eq!(restored(&mut world, &run(3_000_000)), b"-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    assert_eq!(world.ask("STRLEN key"), ":299905\r\n");
}

/// Memory for a compressed text is allocated as its bytes turn out to stand for that much.
#[test]
fn a_length_that_a_damaged_compressed_text_claims_is_not_allocated() {
    let mut world = World::fresh();
    let packed = vec![0xff; 1 << 16];
    let lengths = [1, 88].map(|times| [b"\x80", &(times * packed.len() as u32).to_be_bytes()[..]].concat());
    let payload = [b"\0\xc3".to_vec(), lengths.concat(), packed].concat();
    let (reply, bytes) = heap::peak_of(|| restored(&mut world, &payload));
    assert_eq!(reply, DAMAGED);
    assert!(bytes < 16 * payload.len(), "{bytes}");
}
