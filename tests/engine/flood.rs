//! Hash flooding: a client that knows the quick hash function fills a collection with members of equal hashes.

use crate::world::World;
use rapidhash::v3::RapidSecrets;

/// Members of one quick hash: their first half cancels the multiplication that is to mix in the second.
fn alike(count: u64) -> Vec<Vec<u8>> {
    let cancels = RapidSecrets::seed(0).secrets[1].to_le_bytes();
    (0..count).map(|number| [cancels, number.to_le_bytes()].concat()).collect()
}

/// Sends a request whose words may have any bytes.
fn send(world: &mut World, words: &[&[u8]]) -> Vec<u8> {
    world.send(world.client, words).0
}

/// A sorted set and a hash, each flooded by commands of a thousand members, and what they answer then.
fn flooded(seed: u64) -> (World, Vec<u8>) {
    let mut world = World::seeded(seed, |_| ());
    for members in alike(30_000).chunks(1_000) {
        let scored: Vec<&[u8]> = members.iter().flat_map(|member| [b"1", &member[..]]).collect();
        send(&mut world, &[&[b"ZADD".as_slice(), b"board"], &scored[..]].concat());
        let valued: Vec<&[u8]> = members.iter().flat_map(|field| [&field[..], b"v"]).collect();
        send(&mut world, &[&[b"HSET".as_slice(), b"hash"], &valued[..]].concat());
    }
    let commands = ["ZSCAN board 0 COUNT 100", "HSCAN hash 0 COUNT 100", "HRANDFIELD hash 5"];
    let answers = commands.map(|command| {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        send(&mut world, &words)
    });
    (world, answers.concat())
}

#[test]
fn a_flooded_collection_keeps_all_its_members() {
    let (mut world, _) = flooded(1);
    assert_eq!(world.ask("ZCARD board") + &world.ask("HLEN hash"), ":30000\r\n:30000\r\n");
    for member in alike(30_000).iter().step_by(997) {
        assert_eq!(send(&mut world, &[b"ZSCORE", b"board", member]), b"$1\r\n1\r\n");
        assert_eq!(send(&mut world, &[b"HDEL", b"hash", member]), b":1\r\n");
    }
    assert_eq!(world.ask("HLEN hash"), ":29969\r\n");
}

#[test]
fn a_flood_gets_the_same_replies_from_the_same_seed_and_others_from_another() {
    let (_, answers) = flooded(7);
    assert!(answers == flooded(7).1, "the same seed and commands give the same bytes");
    assert!(answers != flooded(8).1, "another seed is another order");
}
