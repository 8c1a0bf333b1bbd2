//! The same seed and the same requests give the same replies, byte for byte.

use crate::world::World;

fn history(seed: u64) -> String {
    let mut world = World::seeded(seed, |_| ());
    for index in 0..500 {
        world.ask(&format!("SET key:{index} {index}"));
        world.ask(&format!("ZADD board {index} member:{index}"));
    }
    let commands =
        ["RANDOMKEY", "ZRANDMEMBER board 5", "ZRANDMEMBER board -5", "SCAN 0 COUNT 50", "ZSCAN board 0 COUNT 50"];
    commands.map(|command| world.ask(command)).concat()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(history(7), history(7));
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(history(7), history(8));
}
