//! The base of an append-only file as commands: the words are those that Redis 8.0.6 wrote for the same requests.

use crate::support::reply::{Reply, decode};
use crate::world::{START, World};
use dunlin::engine::exec::{aof, persistence};

/// The commands of a base of the data of an engine.
fn base(world: &mut World) -> Vec<String> {
    let mut bytes = Vec::new();
    let base = aof::first_base(&mut world.engine);
    base.write_commands(&mut bytes, false, || Ok(())).expect("a Vec takes all");
    drop(base);
    persistence::reclaim(&mut world.engine);
    let (mut commands, mut rest) = (Vec::new(), bytes.as_slice());
    while !rest.is_empty() {
        let Ok((Reply::Array(words), used)) = decode(rest) else { panic!("{}", rest.escape_ascii()) };
        let word = |reply: &Reply| match reply {
            Reply::Bulk(word) => word.escape_ascii().to_string(),
            other => panic!("{other:?}"),
        };
        commands.push(words.iter().map(word).collect::<Vec<_>>().join(" "));
        rest = &rest[used..];
    }
    commands
}

fn base_of(requests: &[&str]) -> Vec<String> {
    let mut world = World::fresh();
    for request in requests {
        let reply = world.ask(request);
        assert!(!reply.starts_with('-'), "{request}: {reply}");
    }
    base(&mut world)
}

#[test]
fn no_data_are_no_command() {
    assert_eq!(base_of(&[]), Vec::<String>::new());
}

#[test]
fn a_database_begins_with_its_number_and_a_key_ends_with_its_deadline() {
    let requests = ["SET n -12345678901", "SELECT 3", "SET c 3.14", "PEXPIREAT c 99999999999999"];
    assert_eq!(
        base_of(&requests),
        ["SELECT 0", "SET n -12345678901", "SELECT 3", "SET c 3.14", "PEXPIREAT c 99999999999999"]
    );
}

#[test]
fn a_command_has_64_elements() {
    let numbers = |from: usize, to: usize| (from..to).map(|number| format!(" {number}")).collect::<String>();
    let requests = [format!("RPUSH l{}", numbers(0, 130)), "PEXPIREAT l 99999999999999".to_owned()];
    assert_eq!(
        base_of(&requests.each_ref().map(String::as_str)),
        [
            "SELECT 0".to_owned(),
            format!("RPUSH l{}", numbers(0, 64)),
            format!("RPUSH l{}", numbers(64, 128)),
            "RPUSH l 128 129".to_owned(),
            "PEXPIREAT l 99999999999999".to_owned(),
        ]
    );
    let set = format!("SADD s{}", numbers(0, 70));
    let split = [format!("SADD s{}", numbers(0, 64)), format!("SADD s{}", numbers(64, 70))];
    assert_eq!(base_of(&[&set])[1..], split);
    let pairs = |from: usize, to: usize| (from..to).map(|at| format!(" {at} m{at}")).collect::<String>();
    let zset = format!("ZADD z{}", pairs(0, 66));
    assert_eq!(base_of(&[&zset])[1..], [format!("ZADD z{}", pairs(0, 64)), "ZADD z 64 m64 65 m65".to_owned()]);
    let hash = format!("HSET h{}", pairs(0, 66));
    assert_eq!(base_of(&[&hash])[1..], [format!("HMSET h{}", pairs(0, 64)), "HMSET h 64 m64 65 m65".to_owned()]);
}

#[test]
fn scores_are_written_as_replies_have_them() {
    let commands = base_of(&["ZADD y inf a -inf b 1e100 c 3 d 0.1 f"]);
    assert_eq!(commands[1..], ["ZADD y -inf b 0.1 f 3 d 1e+100 c inf a"]);
}

#[test]
fn each_field_of_a_hash_with_deadlines_of_fields_is_written_by_itself() {
    let commands = base_of(&[
        "HSET g a 1 b 2 c 3 d 4",
        "HPEXPIREAT g 70368744177663 FIELDS 1 b",
        "HPEXPIREAT g 60368744177663 FIELDS 1 c",
        "PEXPIREAT g 99999999999999",
    ]);
    assert_eq!(
        commands[1..],
        [
            "HMSET g c 3",
            "HPEXPIREAT g 60368744177663 FIELDS 1 c",
            "HMSET g b 2",
            "HPEXPIREAT g 70368744177663 FIELDS 1 b",
            "HMSET g a 1",
            "HMSET g d 4",
            "PEXPIREAT g 99999999999999",
        ]
    );
}

#[test]
fn a_stream_is_written_with_its_counters_and_groups() {
    let commands = base_of(&[
        "XADD x 1-1 a 1 b 2",
        "XADD x 2-1 c 3",
        "XADD x 3-5 d 4",
        "XDEL x 3-5",
        "XGROUP CREATE x g 0",
        "XGROUP CREATE x h 1-1 ENTRIESREAD 5",
        "XREADGROUP GROUP g c1 COUNT 1 STREAMS x >",
        "XREADGROUP GROUP g c2 STREAMS x >",
        "XGROUP CREATECONSUMER x g c3",
    ]);
    let now_ms = START.unix_us / 1000;
    assert_eq!(
        commands[1..],
        [
            "XADD x 1-1 a 1 b 2".to_owned(),
            "XADD x 2-1 c 3".to_owned(),
            "XSETID x 3-5 ENTRIESADDED 3 MAXDELETEDID 3-5".to_owned(),
            "XGROUP CREATE x g 2-1 ENTRIESREAD -1".to_owned(),
            format!("XCLAIM x g c1 0 1-1 TIME {now_ms} RETRYCOUNT 1 JUSTID FORCE"),
            format!("XCLAIM x g c2 0 2-1 TIME {now_ms} RETRYCOUNT 1 JUSTID FORCE"),
            "XGROUP CREATECONSUMER x g c3".to_owned(),
            "XGROUP CREATE x h 1-1 ENTRIESREAD 5".to_owned(),
        ]
    );
}

#[test]
fn a_stream_without_entries_is_written_with_one_that_is_removed_at_once() {
    assert_eq!(
        base_of(&["XGROUP CREATE e g $ MKSTREAM"])[1..],
        [
            "XADD e MAXLEN 0 0-1 x y",
            "XSETID e 0-0 ENTRIESADDED 0 MAXDELETEDID 0-0",
            "XGROUP CREATE e g 0-0 ENTRIESREAD -1",
        ]
    );
    assert_eq!(
        base_of(&["XADD d 5-5 a 1", "XDEL d 5-5"])[1..],
        ["XADD d MAXLEN 0 0-1 x y", "XSETID d 5-5 ENTRIESADDED 1 MAXDELETEDID 5-5"]
    );
}

#[test]
fn functions_come_first() {
    let mut world = World::fresh();
    let source = b"#!lua name=l\nredis.register_function('f', function() return 1 end)";
    world.send(world.client, &[b"FUNCTION", b"LOAD", source]);
    world.ask("SET a 1");
    assert_eq!(base(&mut world), [&*format!("FUNCTION LOAD {}", source.escape_ascii()), "SELECT 0", "SET a 1"]);
}

#[test]
fn the_time_may_be_at_the_head() {
    let mut world = World::fresh();
    let mut bytes = Vec::new();
    aof::first_base(&mut world.engine).write_commands(&mut bytes, true, || Ok(())).expect("a Vec takes all");
    assert_eq!(bytes, format!("#TS:{}\r\n", START.unix_us / 1_000_000).into_bytes());
}

#[test]
fn after_a_sync_that_failed_only_a_base_ends_the_refusal_of_writes() {
    let mut world = World::fresh();
    aof::begin(&mut world.engine);
    let refused = "-MISCONF Errors writing to the AOF file: Input/output error\r\n";
    aof::end_write(&mut world.engine, Some("Input/output error".to_owned()), false);
    assert_eq!(world.ask("SET key value"), refused);
    aof::end_write(&mut world.engine, None, false);
    assert_eq!(world.ask("SET key value"), "+OK\r\n", "a write that failed is written");
    aof::end_write(&mut world.engine, Some("Input/output error".to_owned()), true);
    // The thread that writes has got new files, which have no base yet.
    aof::end_write(&mut world.engine, None, false);
    assert_eq!(world.ask("SET key value"), refused);
}

#[test]
fn a_write_that_fails_while_the_file_is_switched_off_refuses_nothing() {
    let mut world = World::fresh();
    aof::begin(&mut world.engine);
    assert_eq!(world.ask("CONFIG SET appendonly yes"), "+OK\r\n");
    assert_eq!(world.ask("CONFIG SET appendonly no"), "+OK\r\n");
    aof::end_write(&mut world.engine, Some("No space left on device".to_owned()), false);
    assert_eq!(world.ask("SET key value"), "+OK\r\n");
}
