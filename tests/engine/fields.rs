//! A field of a hash ends on its millisecond, as a key does.

use crate::world::World;

#[test]
fn a_field_exists_until_its_last_millisecond_and_is_gone_on_its_deadline() {
    for entries in [512, 0] {
        let mut world = World::with(|settings| settings.packed_hash.entries = entries);
        world.ask("HSET hash a 1 b 2");
        world.ask("HPEXPIRE hash 100 FIELDS 1 a");
        world.pass_ms(99);
        assert_eq!((world.expire(), world.ask("HEXISTS hash a")), (0, ":1\r\n".to_owned()));
        world.pass_ms(1);
        assert_eq!((world.expire(), world.ask("HLEN hash")), (1, ":1\r\n".to_owned()));
        assert_eq!(world.engine.stats.expired_fields, 1);
    }
}

#[test]
fn a_field_whose_deadline_is_past_when_it_is_set_counts_as_expired() {
    for (commands, count) in [
        (&["HSET h a 1 b 2", "HPEXPIREAT h 1 FIELDS 3 a b c"][..], 2),
        (&["HSET h a 1", "HEXPIRE h 0 FIELDS 1 a"], 1),
        (&["HSETEX h EXAT 1 FIELDS 2 a 1 b 2"], 2),
        (&["HSETEX h EXAT 1 FIELDS 2 a 1 a 2"], 1),
        (&["HSET h b 1 a 1", "HGETEX h PXAT 1 FIELDS 2 a c"], 1),
        (&["HSETEX h PX 9 FIELDS 1 a 1", "HDEL h a"], 0),
    ] {
        let mut world = World::fresh();
        commands.iter().for_each(|command| _ = world.ask(command));
        assert_eq!(world.engine.stats.expired_fields, count, "{commands:?}");
    }
}

#[test]
fn overdue_fields_are_removed_without_being_accessed() {
    let mut world = World::fresh();
    for index in 0..1000 {
        world.ask(&format!("HSETEX hash:{} PX {} FIELDS 1 field:{index} value", index % 7, index + 1));
    }
    for passed in 1..=1000 {
        world.pass_ms(1);
        assert_eq!(world.next_due_ms(), Some(world.now().unix_ms()));
        assert_eq!(world.expire(), 1, "after {passed} ms");
    }
    assert_eq!(world.ask("DBSIZE"), ":0\r\n");
    assert_eq!(world.next_due_ms(), None);
    assert_eq!((world.engine.stats.expired_fields, world.engine.stats.expired_keys), (1000, 0));
}

#[test]
fn an_overdue_field_is_not_found_even_before_it_is_removed() {
    for command in ["HLEN hash", "EXISTS hash", "HEXISTS hash a", "HSTRLEN hash a", "DBSIZE"] {
        let mut world = World::fresh();
        world.ask("HSETEX hash PX 10 FIELDS 1 a 1");
        world.pass_ms(10);
        if command == "DBSIZE" {
            world.expire();
        }
        assert_eq!(world.ask(command), ":0\r\n", "{command}");
        assert_eq!((world.engine.stats.expired_fields, world.expire()), (1, 0));
    }
}

#[test]
fn keys_and_fields_expire_in_the_order_of_their_deadlines() {
    let mut world = World::fresh();
    world.engine.switches.records_key_events = true;
    world.ask("SET key value PX 20");
    world.ask("HSET hash a 1 b 2 c 3 d 4");
    world.ask("HPEXPIRE hash 10 FIELDS 2 a b");
    world.ask("HPEXPIRE hash 30 FIELDS 2 c d");
    world.events();
    world.pass_ms(30);
    assert_eq!(world.expire(), 5);
    assert_eq!(world.events(), ["0 hexpired hash", "0 expired key", "0 hexpired hash", "0 del hash"]);
}

#[test]
fn active_expiry_of_fields_stops_at_its_limit_within_a_hash_too() {
    let mut world = World::fresh();
    world.ask("HSETEX hash PX 1 FIELDS 6 a 1 b 2 c 3 d 4 e 5 f 6");
    world.pass_ms(1);
    assert_eq!(world.engine.run_due(world.now(), 4), 4);
    assert_eq!(world.engine.run_due(world.now(), 4), 2);
    assert_eq!(world.ask("DBSIZE"), ":0\r\n");
}

#[test]
fn the_deadlines_of_fields_move_with_their_hash() {
    let mut world = World::fresh();
    world.ask("HSETEX hash PX 10 FIELDS 2 a 1 b 2");
    world.ask("HSET hash c 3");
    world.ask("PEXPIRE hash 1000000");
    world.ask("COPY hash copy");
    world.ask("RENAME hash renamed");
    world.ask("MOVE renamed 3");
    world.ask("SWAPDB 3 4");
    world.pass_ms(10);
    assert_eq!(world.expire(), 4);
    assert_eq!(world.ask("HLEN copy"), ":1\r\n");
    world.ask("SELECT 4");
    assert_eq!(world.ask("HLEN renamed"), ":1\r\n");
}

#[test]
fn the_deadlines_of_fields_are_removed_with_their_hash() {
    for command in ["DEL hash", "SET hash text", "FLUSHDB", "HDEL hash a", "HPERSIST hash FIELDS 1 a", "HSET hash a 2"]
    {
        let mut world = World::fresh();
        world.ask("HSETEX hash PX 10 FIELDS 1 a 1");
        assert!(world.next_due_ms().is_some());
        world.ask(command);
        assert_eq!(world.next_due_ms(), None, "{command}");
        world.pass_ms(10);
        assert_eq!(world.expire(), 0);
    }
}

#[test]
fn without_active_expiry_a_field_stays_until_it_is_accessed() {
    let mut world = World::fresh();
    world.engine.switches.records_key_events = true;
    world.ask("DEBUG SET-ACTIVE-EXPIRE 0");
    world.ask("HSETEX hash PX 1 FIELDS 2 a 1 b 2");
    world.pass_ms(5);
    assert_eq!((world.expire(), world.next_due_ms()), (0, None));
    assert_eq!(world.ask("HGETALL hash"), "*0\r\n");
    assert_eq!(world.ask("HLEN hash"), ":2\r\n");
    world.events();
    assert_eq!(world.ask("HGET hash a"), "$-1\r\n");
    assert_eq!(world.ask("HLEN hash"), ":1\r\n");
    assert_eq!(world.ask("HGET hash b"), "$-1\r\n");
    assert_eq!(world.ask("EXISTS hash"), ":0\r\n");
    assert_eq!(world.events(), ["0 hexpired hash", "0 hexpired hash", "0 del hash"]);
}

#[test]
fn while_a_pause_holds_an_overdue_field_is_hidden_and_not_removed() {
    let mut world = World::fresh();
    world.ask("HSETEX hash PX 1 FIELDS 1 a 1");
    world.ask("CLIENT PAUSE 1000 WRITE");
    world.pass_ms(5);
    assert_eq!(world.ask("HGET hash a"), "$-1\r\n");
    assert_eq!((world.expire(), world.ask("EXISTS hash")), (0, ":1\r\n".to_owned()));
    world.pass_ms(1000);
    assert_eq!((world.expire(), world.ask("EXISTS hash")), (1, ":0\r\n".to_owned()));
}
