//! Collections and databases at their capacity limits: what is refused then, and what still works.

use crate::world::World;
use dunlin::engine::Capacity;

const REFUSED: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

fn world(collection_bytes: usize, record_bytes: usize) -> World {
    let mut world = World::fresh();
    world.engine.switches.capacity = Capacity { collection_bytes, record_bytes };
    world
}

/// Repeats a command with numbers in the place of `#` until it is refused, and answers how often it was not.
fn fill(world: &mut World, command: &str) -> usize {
    let refused = |number: &usize| world.ask(&command.replace('#', &number.to_string())) == REFUSED;
    (0..100_000).find(refused).expect("there is an end")
}

#[test]
fn a_full_collection_accepts_no_more_members_and_everything_else_works() {
    let all = [
        ("SADD full member:#", "SCARD full", "SREM full member:1 member:2"),
        ("ZADD full # member:#", "ZCARD full", "ZREM full member:1 member:2"),
        ("HSET full field:# value:#", "HLEN full", "HDEL full field:1 field:2"),
    ];
    for (add, count, remove) in all {
        let mut world = world(60_000, usize::MAX);
        let taken = fill(&mut world, add);
        assert!(taken > 1_000, "{taken} taken by {add}");
        assert_eq!(world.ask(count), format!(":{taken}\r\n"));
        assert_eq!(world.ask(remove), ":2\r\n");
        assert_eq!(world.ask("SET other value") + &world.ask("SADD others member"), "+OK\r\n:1\r\n");
        assert_eq!(world.ask("COPY full copy"), REFUSED, "both keys count, for the worst that might become of them");
        assert_eq!(world.ask("DEL full"), ":1\r\n");
        assert!(fill(&mut world, add) > 1_000);
    }
}

#[test]
fn a_union_or_a_move_that_would_not_fit_is_refused() {
    let mut world = world(60_000, usize::MAX);
    for key in ["one", "two"] {
        for number in 0..2_000 {
            assert_eq!(world.ask(&format!("SADD {key} {key}:{number}")), ":1\r\n");
        }
    }
    assert_eq!(world.ask("SUNIONSTORE both one two"), REFUSED);
    assert_eq!(world.ask("SMOVE one two one:7"), REFUSED);
    assert_eq!(world.ask("EXISTS both") + &world.ask("SISMEMBER one one:7"), ":0\r\n:1\r\n");
    assert_eq!(world.ask("SUNION one two").matches("one:").count(), 2_000);
}

#[test]
fn a_request_that_is_too_large_by_itself_is_refused_whole() {
    let mut world = world(60_000, usize::MAX);
    let members = (0..5_000).map(|number| format!(" member:{number}")).collect::<String>();
    assert_eq!(world.ask(&format!("SADD key{members}")), REFUSED);
    assert_eq!(world.ask("EXISTS key"), ":0\r\n");
}

#[test]
fn a_full_database_accepts_no_more_keys_but_removes_keys_and_deadlines() {
    let mut world = world(60_000, 1 << 20);
    let taken = fill(&mut world, "SET key:# a-text-of-some-forty-bytes-to-fill-the-database-sooner");
    assert!(taken > 1_000);
    assert_eq!(world.ask("DBSIZE"), format!(":{taken}\r\n"));
    assert_eq!(world.ask("EXPIRE key:1 100") + &world.ask("RENAME key:2 another"), ":1\r\n+OK\r\n");
    assert_eq!(world.ask("GET key:1").len(), world.ask("GET another").len());
    assert_eq!(
        world.ask("DEL key:1 key:3") + &world.ask("FLUSHDB") + &world.ask("SET key value"),
        ":2\r\n+OK\r\n+OK\r\n"
    );
}
