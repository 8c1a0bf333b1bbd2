//! Functions: what FUNCTION DUMP gives brings all libraries back, and INFO counts them.

use crate::world::World;

fn ask(world: &mut World, words: &[&[u8]]) -> Vec<u8> {
    world.send(world.client, words).0
}

fn load(world: &mut World, library: usize) {
    let padding = "x".repeat(library * 97);
    let source = format!(
        "#!lua name=lib{library}\nredis.register_function('f{library}', function() return {library} end) -- {padding}"
    );
    let reply = ask(world, &[b"FUNCTION", b"LOAD", source.as_bytes()]);
    assert!(reply.starts_with(b"$"), "{}", String::from_utf8_lossy(&reply));
}

/// The bytes of the bulk string.
fn content(reply: &[u8]) -> &[u8] {
    let start = reply.iter().position(|&byte| byte == b'\n').expect("a bulk string begins with its length") + 1;
    &reply[start..reply.len() - 2]
}

#[test]
fn what_is_dumped_brings_all_libraries_back() {
    let mut world = World::fresh();
    (0..20).for_each(|library| load(&mut world, library));
    let listed = world.ask("FUNCTION LIST WITHCODE");
    let dumped = ask(&mut world, &[b"FUNCTION", b"DUMP"]);
    assert_eq!(world.ask("FUNCTION FLUSH"), "+OK\r\n");
    assert_eq!(world.ask("FCALL f7 0"), "-ERR Function not found\r\n");
    assert_eq!(ask(&mut world, &[b"FUNCTION", b"RESTORE", content(&dumped)]), b"+OK\r\n");
    assert_eq!(world.ask("FUNCTION LIST WITHCODE"), listed);
    assert_eq!(world.ask("FCALL f7 0"), ":7\r\n");
}

#[test]
fn a_payload_with_a_bit_that_is_wrong_is_refused() {
    let mut world = World::fresh();
    load(&mut world, 1);
    let dumped = ask(&mut world, &[b"FUNCTION", b"DUMP"]);
    world.ask("FUNCTION FLUSH");
    for bit in 0..content(&dumped).len() * 8 {
        let mut payload = content(&dumped).to_vec();
        payload[bit / 8] ^= 1 << (bit % 8);
        let reply = ask(&mut world, &[b"FUNCTION", b"RESTORE", &payload]);
        assert_eq!(reply, b"-ERR DUMP payload version or checksum are wrong\r\n");
    }
}

#[test]
fn info_counts_libraries_and_functions() {
    let mut world = World::fresh();
    (0..3).for_each(|library| load(&mut world, library));
    let info = world.ask("INFO memory");
    assert!(info.contains("number_of_functions:3\r\nnumber_of_libraries:3\r\n"), "{info}");
}
