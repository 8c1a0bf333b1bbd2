//! Round trips: a value that was dumped and restored is the same value in the same encoding; so is one with a
//! compressed payload, and one that DEBUG RELOAD saved and loaded.

use crate::restore::{OK, content};
use crate::samples::{Words, sample};
use crate::world::World;
use fastrand::Rng;

const ROUNDS: u64 = 600;

fn ask(world: &mut World, words: &[&[u8]]) -> Vec<u8> {
    world.send(world.client, words).0
}

pub(crate) fn make(world: &mut World, commands: &[Words]) {
    ask(world, &[b"DEL", b"key"]);
    for words in commands {
        ask(world, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
}

/// A description by which values are compared, whatever their encoding.
fn digest(world: &mut World, key: &[u8]) -> Vec<u8> {
    ask(world, &[b"DEBUG", b"DIGEST-VALUE", key])
}

/// The groups of a stream, which its digest does not include.
fn groups(world: &mut World, key: &[u8]) -> Vec<u8> {
    ask(world, &[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"])
}

/// The form, and the payload where that follows from the value.
fn form(world: &mut World, key: &[u8]) -> (String, Option<Vec<u8>>) {
    let encoding = String::from_utf8_lossy(&ask(world, &[b"OBJECT", b"ENCODING", key])).into_owned();
    let payload = (!encoding.contains("hashtable")).then(|| ask(world, &[b"DUMP", key]));
    (encoding, payload)
}

#[test]
fn a_dumped_value_is_restored_unchanged() {
    let mut world = World::fresh();
    let mut forms = std::collections::BTreeSet::new();
    for seed in 0..ROUNDS {
        make(&mut world, &sample(&mut Rng::with_seed(seed)));
        let yes: &[u8] = if seed % 2 == 0 { b"yes" } else { b"no" };
        ask(&mut world, &[b"CONFIG", b"SET", b"rdbcompression", yes]);
        // A value that was larger once may take a smaller form the first time.
        for (from, to) in [(b"key".as_slice(), b"again".as_slice()), (b"again", b"still")] {
            let reply = ask(&mut world, &[b"DUMP", from]);
            let Some(payload) = content(&reply) else { continue };
            assert_eq!(ask(&mut world, &[b"RESTORE", to, b"0", payload, b"REPLACE"]), OK, "seed {seed}");
            assert_eq!(digest(&mut world, to), digest(&mut world, from), "seed {seed}");
            assert_eq!(groups(&mut world, to), groups(&mut world, from), "seed {seed}");
        }
        let restored = form(&mut world, b"still");
        assert!(restored == form(&mut world, b"again"), "seed {seed}: {}", restored.0);
        forms.insert((ask(&mut world, &[b"TYPE", b"still"]), restored.0));
        world.engine.databases.iter().for_each(|database| database.check());
    }
    assert_eq!(forms.len(), 14, "every form is among the samples: {forms:?}");
}

#[test]
fn a_saved_value_is_loaded_unchanged() {
    let mut world = World::fresh();
    for seed in 0..ROUNDS / 3 {
        make(&mut world, &sample(&mut Rng::with_seed(seed)));
        let before = ask(&mut world, &[b"DEBUG", b"DIGEST"]);
        assert_eq!(ask(&mut world, &[b"DEBUG", b"RELOAD"]), OK);
        assert_eq!(ask(&mut world, &[b"DEBUG", b"DIGEST"]), before, "seed {seed}");
        world.engine.databases.iter().for_each(|database| database.check());
    }
}

#[test]
fn a_payload_with_a_bit_that_is_wrong_is_refused() {
    let mut world = World::fresh();
    make(&mut world, &[["HSET", "key", "f", "v", "g", "1"].map(|word| word.as_bytes().to_vec()).to_vec()]);
    let reply = ask(&mut world, &[b"DUMP", b"key"]);
    let payload = content(&reply).expect("the key is there");
    for bit in 0..payload.len() * 8 {
        let mut payload = payload.to_vec();
        payload[bit / 8] ^= 1 << (bit % 8);
        let reply = ask(&mut world, &[b"RESTORE", b"other", b"0", &payload]);
        assert_eq!(reply, b"-ERR DUMP payload version or checksum are wrong\r\n");
    }
}
