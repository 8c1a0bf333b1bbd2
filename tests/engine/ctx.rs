//! The consequences of a change of data, whichever handler made it: events, counts, removal of empty keys.

use crate::world::World;

fn listening() -> World {
    let mut world = World::fresh();
    world.engine.switches.records_key_events = true;
    world
}

#[test]
fn a_change_has_its_event_and_is_counted() {
    let mut world = listening();
    world.ask("ZADD board 1 ann 2 ben");
    world.ask("ZINCRBY board 5 ann");
    assert_eq!(world.events(), ["0 zadd board", "0 zincr board"]);
    assert_eq!(world.engine.stats.changes, 3);
}

#[test]
fn a_command_that_changes_nothing_has_no_event_and_is_not_counted() {
    let mut world = listening();
    world.ask("ZADD board 1 ann");
    world.events();
    world.ask("ZADD board NX 2 ann");
    world.ask("ZREM board nobody");
    world.ask("DEL nothing");
    assert_eq!(world.events(), [""; 0]);
    assert_eq!(world.engine.stats.changes, 1);
}

#[test]
fn an_empty_collection_is_removed_with_an_event() {
    let mut world = listening();
    world.ask("ZADD board 1 ann");
    world.events();
    world.ask("ZREM board ann");
    assert_eq!(world.events(), ["0 zrem board", "0 del board"]);
    assert_eq!(world.ask("EXISTS board"), ":0\r\n");
}

#[test]
fn a_refused_command_leaves_everything_as_it_was() {
    let mut world = listening();
    world.ask("SET text 10");
    world.ask("ZADD board 1 ann");
    world.events();
    for command in ["ZADD text 1 a", "ZADD board 1 a x b", "INCRBY board 1", "INCRBY text x", "ZINCRBY board nan ann"] {
        assert!(world.ask(command).starts_with('-'), "{command}");
    }
    assert_eq!(world.events(), [""; 0]);
    assert_eq!(world.ask("ZRANGE board 0 -1 WITHSCORES"), "*2\r\n$3\r\nann\r\n$1\r\n1\r\n");
    assert_eq!(world.ask("GET text"), "$2\r\n10\r\n");
}

#[test]
fn two_keys_change_together() {
    let mut world = listening();
    world.ask("SET from value PX 1000");
    world.ask("ZADD to 1 ann");
    world.events();
    assert_eq!(world.ask("RENAME from to"), "+OK\r\n");
    assert_eq!(world.events(), ["0 rename_from from", "0 rename_to to"]);
    assert_eq!(world.ask("PTTL to"), ":1000\r\n");
    assert_eq!(world.ask("COPY to copy"), ":1\r\n");
    assert_eq!(world.events(), ["0 copy_to copy"]);
    assert_eq!(world.ask("MOVE copy 3"), ":1\r\n");
    assert_eq!(world.events(), ["0 move_from copy", "3 move_to copy"]);
}
