//! A key ends on its millisecond.

use crate::world::World;

#[test]
fn a_key_exists_until_its_last_millisecond_and_is_gone_on_its_deadline() {
    let mut world = World::fresh();
    world.ask("SET key value PX 100");
    world.pass_ms(99);
    assert_eq!((world.expire(), world.ask("EXISTS key")), (0, ":1\r\n".to_owned()));
    world.pass_ms(1);
    assert_eq!((world.expire(), world.ask("EXISTS key")), (1, ":0\r\n".to_owned()));
}

#[test]
fn an_overdue_key_is_removed_and_counted_without_being_accessed() {
    let mut world = World::fresh();
    for index in 0..1000 {
        world.ask(&format!("SET key:{index} value PX {}", index + 1));
    }
    for passed in 1..=1000 {
        world.pass_ms(1);
        assert_eq!(world.next_due_ms(), Some(world.now().unix_ms()));
        assert_eq!(world.expire(), 1, "after {passed} ms");
    }
    assert_eq!(world.ask("DBSIZE"), ":0\r\n");
    assert_eq!(world.engine.stats.expired_keys, 1000);
    assert_eq!(world.next_due_ms(), None);
}

#[test]
fn an_overdue_key_is_not_found_even_before_it_is_removed() {
    let mut world = World::fresh();
    world.ask("SET key value PX 10");
    world.pass_ms(10);
    assert_eq!(world.ask("GET key"), "$-1\r\n");
    assert_eq!(world.engine.stats.expired_keys, 1);
    assert_eq!(world.expire(), 0);
}

#[test]
fn keys_expire_in_the_order_of_their_deadlines() {
    let mut world = World::fresh();
    world.engine.switches.records_key_events = true;
    for (key, deadline) in [("c", 30), ("a", 10), ("d", 40), ("b", 20)] {
        world.ask(&format!("SET {key} value PX {deadline}"));
    }
    world.events();
    world.pass_ms(30);
    world.expire();
    assert_eq!(world.events(), ["0 expired a", "0 expired b", "0 expired c"]);
}

#[test]
fn a_deadline_that_was_moved_or_cleared_no_longer_counts() {
    let mut world = World::fresh();
    world.ask("SET later value PX 10");
    world.ask("PEXPIRE later 100");
    world.ask("SET sooner value PX 1000");
    world.ask("PEXPIRE sooner 20");
    world.ask("SET never value PX 10");
    world.ask("PERSIST never");
    world.pass_ms(20);
    assert_eq!(world.expire(), 1);
    assert_eq!(world.ask("EXISTS later sooner never"), ":2\r\n");
    world.pass_ms(80);
    assert_eq!(world.expire(), 1);
    assert_eq!(world.ask("EXISTS later sooner never"), ":1\r\n");
}

#[test]
fn active_expiry_stops_at_its_limit() {
    let mut world = World::fresh();
    for index in 0..10 {
        world.ask(&format!("SET key:{index} value PX 1"));
    }
    world.pass_ms(1);
    assert_eq!(world.engine.run_due(world.now(), 4), 4);
    assert_eq!(world.ask("DBSIZE"), ":6\r\n");
}

#[test]
fn without_active_expiry_a_key_stays_until_it_is_accessed() {
    let mut world = World::fresh();
    assert_eq!(world.ask("DEBUG SET-ACTIVE-EXPIRE 0"), "+OK\r\n");
    world.ask("SET key value PX 1");
    world.pass_ms(5);
    assert_eq!((world.expire(), world.next_due_ms()), (0, None));
    assert_eq!(world.ask("DBSIZE"), ":1\r\n");
    assert_eq!(world.ask("GET key"), "$-1\r\n");
    assert_eq!(world.ask("DBSIZE"), ":0\r\n");
}

/// A world whose clock runs, as far as the engine knows.
fn running() -> World {
    let mut world = World::fresh();
    world.engine.timing.hold_time(false);
    world
}

#[test]
fn on_a_running_clock_a_key_lives_for_all_of_its_last_millisecond() {
    let mut world = running();
    world.ask("SET key value PX 100");
    assert_eq!(world.next_due_ms(), Some(world.now().unix_ms() + 101));
    world.pass_ms(100);
    assert_eq!((world.expire(), world.ask("GET key")), (0, "$5\r\nvalue\r\n".to_owned()));
    assert_eq!((world.ask("PTTL key"), world.ask("KEYS *")), (":0\r\n".to_owned(), "*1\r\n$3\r\nkey\r\n".to_owned()));
    world.pass_ms(1);
    assert_eq!(world.ask("GET key"), "$-1\r\n");
    assert_eq!((world.expire(), world.next_due_ms()), (0, None));
}

#[test]
fn on_a_running_clock_a_field_lives_for_all_of_its_last_millisecond() {
    let mut world = running();
    world.ask("HSET hash field value other value");
    world.ask("HPEXPIRE hash 100 FIELDS 1 field");
    world.pass_ms(100);
    assert_eq!((world.expire(), world.ask("HGET hash field")), (0, "$5\r\nvalue\r\n".to_owned()));
    assert_eq!(
        (world.ask("HPTTL hash FIELDS 1 field"), world.ask("HLEN hash")),
        ("*1\r\n:0\r\n".into(), ":2\r\n".into())
    );
    world.pass_ms(1);
    assert_eq!((world.expire(), world.ask("HGETALL hash")), (1, "*2\r\n$5\r\nother\r\n$5\r\nvalue\r\n".to_owned()));
}

#[test]
fn a_deadline_of_now_ends_a_key_at_once_on_any_clock() {
    for mut world in [World::fresh(), running()] {
        let now_ms = world.now().unix_ms();
        world.ask("MSET one value two value");
        assert_eq!(world.ask(&format!("PEXPIREAT one {now_ms}")), ":1\r\n");
        assert_eq!(world.ask(&format!("GETEX two PXAT {now_ms}")), "$5\r\nvalue\r\n");
        world.ask("HSET hash field value");
        assert_eq!(world.ask(&format!("HPEXPIREAT hash {now_ms} FIELDS 1 field")), "*1\r\n:2\r\n");
        assert_eq!(world.ask("DBSIZE"), ":0\r\n");
    }
}

#[test]
fn a_scan_removes_the_overdue_keys_that_it_finds() {
    for options in ["", "TYPE string", "MATCH due:*"] {
        let mut world = World::fresh();
        world.ask("DEBUG SET-ACTIVE-EXPIRE 0");
        world.ask("MSET key:1 value key:2 value");
        world.ask("SET due:1 value PX 1");
        world.ask("SET due:2 value PX 1");
        world.pass_ms(5);
        assert_eq!(world.ask("DBSIZE"), ":4\r\n");
        world.ask(&format!("SCAN 0 COUNT 100 {options}"));
        assert_eq!(world.ask("DBSIZE"), ":2\r\n", "{options}");
    }
}

#[test]
fn a_random_key_is_chosen_among_overdue_ones_only_while_a_pause_keeps_them_all() {
    let mut world = World::fresh();
    world.ask("DEBUG SET-ACTIVE-EXPIRE 0");
    for index in 0..300 {
        world.ask(&format!("SET key:{index} value PX 3"));
    }
    world.ask("CLIENT PAUSE 100 WRITE");
    world.pass_ms(5);
    assert!(world.ask("RANDOMKEY").contains("key:"));
    world.ask("CLIENT UNPAUSE");
    assert_eq!((world.ask("RANDOMKEY"), world.ask("DBSIZE")), ("$-1\r\n".to_owned(), ":0\r\n".to_owned()));
}
