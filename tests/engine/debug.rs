//! DEBUG where a real server would need a file, or would end.

use crate::world::World;

const NOT_LOADED: &str = "-ERR Error trying to load the RDB dump, check server logs.\r\n";

#[test]
fn nothing_is_loaded_that_was_not_saved() {
    let mut world = World::fresh();
    world.ask("SET k v");
    assert_eq!(world.ask("DEBUG RELOAD NOSAVE"), NOT_LOADED);
    assert_eq!(world.ask("DEBUG RELOAD NOSAVE NOFLUSH MERGE"), NOT_LOADED);
    assert_eq!(world.ask("GET k"), "$1\r\nv\r\n");
}

#[test]
fn keys_that_are_there_are_not_loaded_again_unless_they_may_be() {
    let mut world = World::fresh();
    assert_eq!(world.ask("DEBUG RELOAD NOFLUSH"), "+OK\r\n");
    world.ask("SET k v");
    assert_eq!(world.ask("DEBUG RELOAD NOFLUSH"), NOT_LOADED);
    assert_eq!(world.ask("DEBUG RELOAD NOFLUSH MERGE"), "+OK\r\n");
    assert_eq!(world.ask("GET k"), "$1\r\nv\r\n");
}
