//! Damaged RDB files: each is refused or loaded as a whole, and what one claims in its lengths takes no memory.

use std::collections::BTreeSet;

use dunlin::engine::exec::loading::Load;
use dunlin::rdb::file::Fault;
use dunlin::{Client, Disk, Server};
use fastrand::Rng;

use crate::samples::sample;
use crate::support::heap;
use crate::world::World;

/// What the loader itself needs, and the smallest database.
pub(crate) const BASE_BYTES: usize = 128 << 10;

/// The limits above which a collection takes its large form, with which small files have both.
const LIMITS: [(&str, &str); 6] = [
    ("hash-max-listpack-entries", "2"),
    ("list-max-listpack-size", "3"),
    ("set-max-intset-entries", "3"),
    ("set-max-listpack-entries", "3"),
    ("stream-node-max-entries", "2"),
    ("zset-max-listpack-entries", "2"),
];

/// Values of every kind, in all their forms.
pub(crate) const VALUES: &str = "SET text hello
    SET compressed xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    MSET byte 7 word -3000 half 1000000 long 12345678901234
    SET volatile x PXAT 4000000000000
    RPUSH list a 1 -4000
    RPUSH list:large a 1 70000 b 5000000000 c
    SADD set:numbers 1 -300 70000
    SADD set a b 3
    SADD set:large a b 3 c d
    ZADD zset 1 a -2.5 b
    ZADD zset:large 1 a -2.5 b inf c 0.1 d
    HSET hash a 1 b two
    HSET hash:large a 1 b two c 3
    HSET timed a 1 b two
    HPEXPIREAT timed 4000000000000 FIELDS 1 a
    HSET timed:large a 1 b two c 3
    HPEXPIREAT timed:large 4000000000000 FIELDS 2 a b
    XADD stream 1-1 field value
    XADD stream 1-2 field other
    XADD stream 2-1 field value more 17
    XDEL stream 1-2
    XGROUP CREATE stream group 0
    XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >
    XGROUP CREATECONSUMER stream group idle
    PFADD sketch a b c
    VADD vector VALUES 2 1 0.5 a SETATTR {\"n\":1}
    VADD vector VALUES 2 -1 0.25 b
    VADD vector:bits VALUES 3 1 -1 1 a BIN
    SELECT 3
    SET elsewhere y";
pub(crate) const LIBRARY: &str = "#!lua name=l\nredis.register_function('f', function() return 1 end)";

/// Runs commands, one in each line.
pub(crate) fn run(client: &mut Client, lines: &str) {
    for line in lines.lines() {
        client.call(line.trim().split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

/// A world that takes any file, as its collections have the forms of the files here.
pub(crate) fn world() -> World {
    let mut world = World::fresh();
    for (name, value) in LIMITS {
        assert_eq!(world.ask(&format!("CONFIG SET {name} {value}")), "+OK\r\n");
    }
    world
}

/// A small file with every kind of record and value.
fn small_file(policy: &str) -> Vec<u8> {
    let disk = Disk::new();
    let builder = Server::builder().disk(&disk).set("maxmemory-policy", policy);
    let builder = LIMITS.iter().fold(builder, |builder, (name, value)| builder.set(name, value));
    let server = builder.start().expect("it starts");
    let mut client = server.client().expect("it connects");
    run(&mut client, VALUES);
    client.call(["FUNCTION", "LOAD", LIBRARY]).expect("it is loaded");
    client.call(["SAVE"]).expect("it is saved");
    disk.read("dump.rdb").expect("it is there")
}

/// Loads a file, looks whether the databases are sound, and empties them.
fn load(world: &mut World, file: &[u8], verifies: bool) -> Result<(), Fault> {
    let loaded = Load::begin(file, verifies).and_then(|load| load.finish(&mut world.engine));
    world.engine.databases.iter().for_each(|database| database.check());
    world.engine.end_load(*loaded.as_ref().unwrap_or(&Default::default()));
    world.ask("FLUSHALL");
    world.ask("FUNCTION FLUSH");
    world.engine.effects.take();
    loaded.map(drop)
}

#[test]
fn the_small_file_has_every_encoding() {
    let mut world = world();
    let loaded = Load::begin(&small_file("noeviction")[..], true).and_then(|load| load.finish(&mut world.engine));
    world.engine.end_load(loaded.expect("it is whole"));
    let keys = VALUES.lines().filter_map(|line| line.trim().split(' ').nth(1));
    let replies = keys.map(|key| world.ask(&format!("OBJECT ENCODING {key}")));
    let encodings: BTreeSet<String> = replies.filter_map(|reply| reply.lines().nth(1).map(str::to_owned)).collect();
    let all = "embstr hashtable int intset listpack listpackex quicklist raw skiplist stream";
    assert_eq!(encodings, all.split(' ').map(str::to_owned).collect());
    assert_eq!(world.ask("TYPE vector"), "+vectorset\r\n");
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused_at_an_offset_within_it() {
    let (file, mut world) = (small_file("allkeys-lru"), world());
    load(&mut world, &file, true).expect("it is whole");
    for end in 0..file.len() {
        let (loaded, bytes) = heap::peak_of(|| load(&mut world, &file[..end], true));
        let fault = loaded.expect_err("it is cut");
        assert!(fault.offset <= end as u64, "cut at {end}: {}", fault.explained());
        assert!(bytes <= BASE_BYTES, "cut at {end}: {bytes} bytes");
    }
}

/// Without a checksum, damage within a text is not seen.
#[test]
fn a_file_with_any_bit_flipped_is_refused_or_without_its_checksum_loaded_as_a_whole() {
    // In files of versions before 5 there is none.
    let version = "REDIS".len()..dunlin::rdb::file::HEADER_BYTES;
    let mut world = world();
    for policy in ["allkeys-lru", "allkeys-lfu"] {
        let mut file = small_file(policy);
        for bit in 0..8 * file.len() {
            file[bit / 8] ^= 1 << (bit % 8);
            let (loaded, bytes) = heap::peak_of(|| {
                let is_refused = load(&mut world, &file, true).is_err();
                assert!(is_refused || version.contains(&(bit / 8)), "bit {bit}");
                load(&mut world, &file, false)
            });
            let is_within = |fault: Fault| fault.offset <= file.len() as u64;
            assert!(loaded.err().is_none_or(is_within), "bit {bit}");
            assert!(bytes <= BASE_BYTES, "bit {bit}: {bytes} bytes");
            file[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// A file with keys of all types, whose texts are not compressed: a compressed one rightly takes more memory than file.
fn large_file() -> Vec<u8> {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).set("rdbcompression", "no").start().expect("it starts");
    let (mut client, mut rng) = (server.client().expect("it connects"), Rng::with_seed(1));
    for number in 0..60 {
        for words in sample(&mut rng) {
            client.call(words).expect("it is answered");
        }
        // A sample may also remove its key again.
        let _ = client.call(["RENAME", "key", &format!("key:{number}")]);
    }
    client.call(["SAVE"]).expect("it is saved");
    disk.read("dump.rdb").expect("it is there")
}

/// The bytes that are allocated at most while a file is loaded.
fn allocated(file: &[u8]) -> usize {
    let mut world = World::fresh();
    let (loaded, bytes) = heap::peak_of(|| Load::begin(file, false).and_then(|load| load.finish(&mut world.engine)));
    // Damage that is within a text is not seen without the checksum.
    drop(loaded);
    bytes
}

#[test]
fn a_damaged_file_takes_no_more_memory_than_four_times_its_length() {
    let whole = large_file();
    let most = BASE_BYTES + 4 * whole.len();
    assert!(whole.len() > BASE_BYTES, "a file of {} bytes is no test", whole.len());
    let mut rng = Rng::with_seed(2);
    for number in 0..500 {
        let place = if number < 150 { number } else { rng.usize(..whole.len()) };
        let mut damaged = whole.clone();
        let change = *rng.choice(&[0xff, 0x80, 0x81, 0x40, 0xfc, 0xc2, 0xc3]).unwrap_or(&0xff);
        damaged[place] = change;
        if rng.bool() {
            damaged.truncate(rng.usize(place..whole.len()));
        }
        let bytes = allocated(&damaged);
        assert!(bytes <= most, "byte {place} is {change:#x}: {bytes} bytes for {} of file", damaged.len());
    }
}
