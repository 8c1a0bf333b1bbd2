//! DEBUG RELOAD without files, and other subcommands of DEBUG that change the server.

use fastrand::Rng;

use crate::world::World;

const NOT_LOADED: &str = "-ERR Error trying to load the RDB dump, check server logs.\r\n";

#[test]
fn a_reload_without_a_file_is_refused_and_has_removed_the_data_before_unless_it_may_not() {
    let mut world = World::fresh();
    world.ask("SET k v");
    assert_eq!(world.ask("DEBUG RELOAD NOSAVE NOFLUSH MERGE"), NOT_LOADED);
    assert_eq!(world.ask("GET k"), "$1\r\nv\r\n");
    assert_eq!(world.ask("DEBUG RELOAD NOSAVE"), NOT_LOADED);
    assert_eq!(world.ask("GET k"), "$-1\r\n");
}

#[test]
fn a_reload_refuses_existing_keys_unless_it_may_merge() {
    let mut world = World::fresh();
    assert_eq!(world.ask("DEBUG RELOAD NOFLUSH"), "+OK\r\n");
    world.ask("SET k v");
    assert_eq!(world.ask("DEBUG RELOAD NOFLUSH"), NOT_LOADED);
    assert_eq!(world.ask("DEBUG RELOAD NOFLUSH MERGE"), "+OK\r\n");
    assert_eq!(world.ask("GET k"), "$1\r\nv\r\n");
}

/// A command about one stream and its groups, which may be refused.
fn about_a_stream(chance: &mut Rng) -> String {
    let (id, group) = (chance.u8(1..30), ["g", "h"][chance.usize(..2)]);
    let consumer = ["ann", "bob", "cid"][chance.usize(..3)];
    match chance.u8(..12) {
        0..=3 => format!("XADD s * field{} value", id % 3),
        4 => format!("XDEL s 17672688000{id:02}-0 1767268800000-{id}"),
        5 => format!("XTRIM s MAXLEN ~ {id}"),
        6 => format!("XGROUP CREATE s {group} 1767268800000-{id} ENTRIESREAD {id}"),
        7 => format!("XGROUP CREATECONSUMER s {group} {consumer}"),
        8 => format!("XREADGROUP GROUP {group} {consumer} COUNT {} STREAMS s >", id % 4),
        9 => format!("XACK s {group} 1767268800000-{id} 17672688000{id:02}-0"),
        10 => format!("XAUTOCLAIM s {group} {consumer} {id} 0 COUNT 2"),
        _ => format!("XCLAIM s {group} {consumer} 0 1767268800000-{id} FORCE RETRYCOUNT {id}"),
    }
}

#[test]
fn a_stream_is_what_it_was_after_a_reload() {
    let mut chance = Rng::with_seed(1);
    let mut seen = 0;
    for _ in 0..100 {
        let mut world = World::with(|settings| settings.stream_blocks.entries = 5);
        for _ in 0..60 {
            world.ask(&about_a_stream(&mut chance));
            world.pass_ms(i64::from(chance.u8(..3)));
        }
        let all = |world: &mut World| world.ask("XINFO STREAM s FULL COUNT 0") + &world.ask("DEBUG DIGEST-VALUE s");
        let before = all(&mut world);
        world.pass_ms(1000);
        assert_eq!(world.ask("DEBUG RELOAD"), "+OK\r\n");
        assert_eq!(all(&mut world), before);
        seen += usize::from(before.contains("$11\r\nactive-time\r\n:1767"));
    }
    assert!(seen > 50, "{seen} streams had consumers that were active");
}

#[test]
fn debug_names_the_reply_buffer_as_redis_does() {
    let mut world = World::fresh();
    let unknown = "-ERR unknown subcommand or wrong number of arguments for 'REPLYBUFFER'. Try DEBUG HELP.\r\n";
    let no_number = "-ERR value is not an integer or out of range\r\n";
    for (rest, reply) in [
        ("", unknown),
        (" RESIZING", unknown),
        (" RESIZING 1 2", unknown),
        (" SIZE 1", unknown),
        (" PEAK-RESET-TIME x", no_number),
        (" PEAK-RESET-TIME 1.5", no_number),
        (" peak-reset-time never", "+OK\r\n"),
        (" PEAK-RESET-TIME 100", "+OK\r\n"),
        (" resizing 0", "+OK\r\n"),
    ] {
        assert_eq!(world.ask(&format!("DEBUG REPLYBUFFER{rest}")), reply, "{rest}");
    }
    let rule = world.engine.switches.reply_room;
    assert_eq!((rule.shrinks, rule.peak_ms), (false, Some(100)));
    world.ask("DEBUG REPLYBUFFER PEAK-RESET-TIME -5");
    assert_eq!(world.engine.switches.reply_room.peak_ms, None);
    world.ask("DEBUG REPLYBUFFER PEAK-RESET-TIME RESET");
    world.ask("DEBUG REPLYBUFFER RESIZING 1");
    assert_eq!(world.engine.switches.reply_room, Default::default());
}
