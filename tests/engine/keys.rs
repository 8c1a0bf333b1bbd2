//! Side effects of commands on keys and strings: events, counts, and what counts as an access.

use crate::world::World;
use dunlin::engine::Effect;

/// A command, the events it is announced under, and as how many changes it counts.
type Change = (&'static str, &'static [&'static str], u64);

/// The events (`notify-keyspace-events AKE`) and counts (`rdb_changes_since_last_save`) of Redis 8.0.6.
#[rustfmt::skip]
const OF_STRINGS: &[Change] = &[
    ("set a 1", &["0 set a"], 1),
    ("set a 1 ex 100", &["0 set a", "0 expire a"], 1),
    ("set a 1 keepttl", &["0 set a"], 1),
    ("set a 1 get", &["0 set a"], 1),
    ("setnx a 1", &[], 0),
    ("setnx n 1", &["0 set n"], 1),
    ("setex s 100 v", &["0 set s", "0 expire s"], 1),
    ("getset a 2", &["0 set a"], 1),
    ("getdel a", &["0 del a"], 1),
    ("getdel a", &[], 0),
    ("set a 5", &["0 set a"], 1),
    ("getex a", &[], 0),
    ("getex a ex 100", &["0 expire a"], 1),
    ("getex a persist", &["0 persist a"], 1),
    ("getex a persist", &[], 0),
    ("getex a exat 1", &["0 del a"], 1),
    ("append p x", &["0 append p"], 1),
    ("append p y", &["0 append p"], 1),
    ("setrange p 1 zz", &["0 setrange p"], 1),
    ("setrange new 0 x", &["0 setrange new"], 1),
    ("incr i", &["0 incrby i"], 1),
    ("decr i", &["0 incrby i"], 1),
    ("incrbyfloat i 1.5", &["0 incrbyfloat i"], 1),
    ("mset x 1 y 2", &["0 set x", "0 set y"], 2),
    ("msetnx x 1 z 2", &[], 0),
    ("msetnx x1 1 z1 2", &["0 set x1", "0 set z1"], 2),
];

/// More commands with their events and counts, in a database where the commands above ran.
#[rustfmt::skip]
const OF_KEYS: &[Change] = &[
    ("rename x x2", &["0 rename_from x", "0 rename_to x2"], 1),
    ("rename x2 x2", &[], 0),
    ("renamenx x2 x3", &["0 rename_from x2", "0 rename_to x3"], 1),
    ("rename x3 y", &["0 rename_from x3", "0 rename_to y"], 1),
    ("copy y yy", &["0 copy_to yy"], 1),
    ("copy y yy replace", &["0 copy_to yy"], 1),
    ("move yy 1", &["0 move_from yy", "1 move_to yy"], 1),
    ("expire y 100", &["0 expire y"], 1),
    ("expire y 50 gt", &[], 0),
    ("expire y -1", &["0 del y"], 1),
    ("pexpireat z1 1", &["0 del z1"], 1),
    ("persist x1", &[], 0),
    ("expire x1 100", &["0 expire x1"], 1),
    ("persist x1", &["0 persist x1"], 1),
    ("del x1 nokey", &["0 del x1"], 1),
    ("unlink n i", &["0 del n", "0 del i"], 2),
    ("touch p", &[], 0),
    ("swapdb 0 1", &[], 1),
    ("swapdb 0 1", &[], 1),
    ("flushdb", &[], 3),
    ("set a 1", &["0 set a"], 1),
    ("set b 1", &["0 set b"], 1),
    ("flushall", &[], 3),
];

/// Commands with deadlines of fields, in an empty database.
#[rustfmt::skip]
const OF_HASHES: &[Change] = &[
    ("hsetex h ex 100 fields 2 a 1 b 2", &["0 hset h", "0 hexpire h"], 2),
    ("hsetex h keepttl fields 1 a 1", &["0 hset h"], 1),
    ("hsetex h fxx px 100000 fields 1 a 1", &["0 hset h", "0 hexpire h"], 1),
    ("hsetex h exat 1 fields 2 a 1 x 2", &["0 hset h", "0 hdel h"], 2),
    ("hgetex h ex 50 fields 2 b c", &["0 hexpire h"], 1),
    ("hexpire h 100 fields 2 b c", &["0 hexpire h"], 1),
    ("hpersist h fields 1 b", &["0 hpersist h"], 1),
    ("hsetex h exat 1 fields 1 b 1", &["0 hset h", "0 hdel h", "0 del h"], 1),
];

#[test]
fn changes_have_the_events_and_dirty_counts_of_redis() {
    let mut world = World::fresh();
    world.engine.switches.records_key_events = true;
    for (command, events, count) in OF_STRINGS.iter().chain(OF_KEYS).chain(OF_HASHES) {
        let before = world.engine.stats.changes;
        world.ask(command);
        assert_eq!(world.events(), *events, "{command}");
        assert_eq!(world.engine.stats.changes - before, *count, "{command}");
    }
}

#[test]
fn only_commands_that_read_a_value_count_as_use() {
    let mut world = World::fresh();
    world.ask("SET key value");
    world.pass_ms(5_000);
    for command in ["EXISTS key", "TYPE key", "TTL key", "OBJECT ENCODING key", "MEMORY USAGE key", "KEYS *", "SCAN 0"]
    {
        world.ask(command);
        assert_eq!(world.ask("OBJECT IDLETIME key"), ":5\r\n", "{command}");
    }
    for command in ["GET key", "TOUCH key", "STRLEN key", "APPEND key x"] {
        world.ask(command);
        assert_eq!(world.ask("OBJECT IDLETIME key"), ":0\r\n", "{command}");
        world.pass_ms(5_000);
    }
}

#[test]
fn a_no_touch_client_does_not_change_idle_times() {
    let mut world = World::fresh();
    world.ask("SET key value");
    world.ask("CLIENT NO-TOUCH ON");
    world.pass_ms(5_000);
    world.ask("GET key");
    assert_eq!(world.ask("OBJECT IDLETIME key"), ":5\r\n");
    world.ask("TOUCH key");
    assert_eq!(world.ask("OBJECT IDLETIME key"), ":0\r\n");
}

#[test]
fn hits_and_misses_are_counted_by_reads_alone() {
    let mut world = World::fresh();
    world.ask("SET here value");
    for command in ["SET here value", "APPEND there x", "DEL there", "SETNX here x", "EXPIRE there 1", "PERSIST here"] {
        world.ask(command);
    }
    assert_eq!((world.engine.stats.keyspace_hits, world.engine.stats.keyspace_misses), (0, 0));
    world.ask("MGET here there");
    world.ask("EXISTS here there here");
    world.ask("TTL there");
    assert_eq!((world.engine.stats.keyspace_hits, world.engine.stats.keyspace_misses), (3, 3));
}

#[test]
fn an_overdue_key_is_in_no_reply_even_before_it_is_removed() {
    let mut world = World::fresh();
    world.ask("DEBUG SET-ACTIVE-EXPIRE 0");
    for index in 0..50 {
        world.ask(&format!("SET due:{index} value PX 10"));
    }
    world.ask("SET live value");
    world.pass_ms(10);
    assert_eq!(world.ask("KEYS *"), "*1\r\n$4\r\nlive\r\n");
    assert_eq!(world.ask("DBSIZE"), ":51\r\n");
    assert_eq!(world.ask("SCAN 0 COUNT 1000"), "*2\r\n$1\r\n0\r\n*1\r\n$4\r\nlive\r\n");
    assert_eq!(world.ask("RANDOMKEY"), "$4\r\nlive\r\n");
    assert_eq!(world.ask("RENAME due:1 other"), "-ERR no such key\r\n");
    assert_eq!(world.ask("COPY live due:2"), ":1\r\n");
}

#[test]
fn randomkey_finds_nothing_when_all_keys_are_overdue() {
    let mut world = World::fresh();
    world.ask("SET key value PX 10");
    world.pass_ms(10);
    assert_eq!(world.ask("RANDOMKEY"), "$-1\r\n");
}

#[test]
fn a_write_replaces_an_overdue_key_even_while_a_pause_stops_expiry() {
    let mut world = World::fresh();
    world.ask("SET key:0 value PX 10");
    world.ask("CLIENT PAUSE 1000 WRITE");
    world.pass_ms(10);
    assert_eq!((world.ask("GET key:0"), world.ask("DBSIZE")), ("$-1\r\n".to_owned(), ":1\r\n".to_owned()));
    world.ask("DEBUG POPULATE 1");
    assert_eq!(world.ask("GET key:0"), "$7\r\nvalue:0\r\n");
    assert_eq!(world.ask("DBSIZE"), ":1\r\n");
}

#[test]
fn a_flush_frees_large_values_on_another_thread() {
    let mut world = World::fresh();
    world.ask("DEBUG POPULATE 5000 key 100");
    assert_eq!(world.ask("FLUSHALL SYNC"), "+OK\r\n");
    assert_eq!(world.ask("DBSIZE"), ":0\r\n");
    let effects = world.engine.effects.take();
    assert!(matches!(effects[..], [Effect::Free(_)]), "{effects:?}");
}

#[test]
fn most_of_a_sorted_set_is_freed_on_another_thread() {
    for (removal, left) in [("ZREMRANGEBYRANK set 0 -1", 0), ("ZREMRANGEBYRANK set 30 -1", 30), ("ZPOPMIN set 5000", 0)]
    {
        let mut world = World::fresh();
        for number in 0..5000 {
            world.ask(&format!("ZADD set {number} member:{number}"));
        }
        world.ask(removal);
        assert_eq!(world.ask("ZCARD set"), format!(":{left}\r\n"));
        let effects = world.engine.effects.take();
        assert!(matches!(effects[..], [Effect::Free(_)]), "{removal}: {effects:?}");
    }
}

#[test]
fn a_flush_of_one_database_leaves_the_others() {
    let mut world = World::fresh();
    world.ask("SET here value");
    world.ask("SELECT 1");
    world.ask("SET there value");
    world.ask("FLUSHDB");
    assert_eq!(world.ask("DBSIZE"), ":0\r\n");
    world.ask("SELECT 0");
    assert_eq!(world.ask("GET here"), "$5\r\nvalue\r\n");
}

#[test]
fn a_deadline_moves_with_its_key() {
    let mut world = World::fresh();
    world.ask("SET key value PX 1000");
    world.ask("RENAME key other");
    world.ask("COPY other copy DB 2");
    world.ask("MOVE other 1");
    world.pass_ms(400);
    for database in [1, 2] {
        world.ask(&format!("SELECT {database}"));
        let key = if database == 1 { "other" } else { "copy" };
        assert_eq!(world.ask(&format!("PTTL {key}")), ":600\r\n");
    }
    world.pass_ms(600);
    assert_eq!(world.expire(), 2);
}
