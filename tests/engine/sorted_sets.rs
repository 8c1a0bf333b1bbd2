//! Properties of sorted sets that transcripts cannot show: random choices, and requests that must not allocate.

use crate::world::World;
use std::collections::BTreeMap;

/// A world with a sorted set of that many members, `m0` and on, with scores that differ.
fn board(members: usize) -> World {
    let mut world = World::fresh();
    for index in 0..members {
        world.ask(&format!("ZADD board {index} m{index}"));
    }
    world
}

/// The number of times that each member is returned.
fn hits(world: &mut World, command: &str, times: usize) -> BTreeMap<String, usize> {
    let mut hits = BTreeMap::new();
    for _ in 0..times {
        let reply = world.ask(command);
        let members: Vec<&str> = reply.lines().filter(|line| line.starts_with('m')).collect();
        for member in &members {
            *hits.entry((*member).to_owned()).or_default() += 1;
        }
        let distinct = members.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert!(command.contains('-') || distinct == members.len(), "a member twice in {reply:?}");
    }
    hits
}

#[test]
fn every_member_is_chosen_equally_often() {
    let mut world = board(40);
    for (command, answered) in [
        ("ZRANDMEMBER board", 1),
        ("ZRANDMEMBER board 2", 2),
        ("ZRANDMEMBER board 20", 20),
        ("ZRANDMEMBER board -8", 8),
    ] {
        let times = 40_000 / answered;
        let hits = hits(&mut world, command, times);
        assert_eq!(hits.values().sum::<usize>(), times * answered, "{command}");
        assert!(hits.len() == 40 && hits.values().all(|hits| (850..1150).contains(hits)), "{command}: {hits:?}");
    }
}

#[test]
fn an_excessive_count_is_refused_before_anything_is_allocated() {
    let mut world = board(3);
    assert_eq!(world.ask("ZRANDMEMBER board -4611686018427387903 WITHSCORES"), "-ERR value is out of range\r\n");
    assert_eq!(world.ask("ZRANDMEMBER board 4611686018427387903").lines().next(), Some("*3"));
    assert_eq!(world.ask("ZPOPMIN none 9223372036854775807"), "*0\r\n");
    assert_eq!(world.ask("ZINTERCARD 9223372036854775807 board"), "-ERR syntax error\r\n");
    assert_eq!(world.ask("ZRANGE board 0 9223372036854775807").lines().next(), Some("*3"));
    assert_eq!(world.ask("ZSCAN board 0 COUNT 9223372036854775807").lines().nth(3), Some("*6"));
    assert_eq!(world.ask("ZMPOP 1 board MIN COUNT 9223372036854775807").lines().nth(3), Some("*3"));
}

#[test]
fn a_reply_that_grows_too_long_is_discarded() {
    let mut world = World::with(|settings| settings.max_bulk_bytes = 1_000);
    world.ask("ZADD board 1 a-member-of-twenty-two");
    assert_eq!(world.ask("ZRANDMEMBER board -10").lines().next(), Some("*10"));
    assert_eq!(world.ask("ZRANDMEMBER board -100"), "-ERR value is out of range\r\n");
}
