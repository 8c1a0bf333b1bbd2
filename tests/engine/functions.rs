//! Stored functions and scripts: FUNCTION DUMP restores all libraries, which scripts stay in the cache, and what INFO
//! counts.

use dunlin::commands::WITH_TEST_KIT;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::state::scripts::Digest;
use dunlin::engine::{Engine, Settings, Table};

use crate::world::{START, World};

fn ask(world: &mut World, words: &[&[u8]]) -> Vec<u8> {
    world.send(world.client, words).0
}

fn load(world: &mut World, library: usize) {
    let padding = "x".repeat(library * 97);
    let source = format!(
        "#!lua name=lib{library}\nredis.register_function('f{library}', function() return {library} end) -- {padding}"
    );
    let reply = ask(world, &[b"FUNCTION", b"LOAD", source.as_bytes()]);
    assert!(reply.starts_with(b"$"), "{}", String::from_utf8_lossy(&reply));
}

/// The bytes of the bulk string.
fn content(reply: &[u8]) -> &[u8] {
    let start = reply.iter().position(|&byte| byte == b'\n').expect("a bulk string begins with its length") + 1;
    &reply[start..reply.len() - 2]
}

#[test]
fn a_function_dump_restores_all_libraries() {
    let mut world = World::fresh();
    (0..20).for_each(|library| load(&mut world, library));
    let listed = world.ask("FUNCTION LIST WITHCODE");
    let dumped = ask(&mut world, &[b"FUNCTION", b"DUMP"]);
    assert_eq!(world.ask("FUNCTION FLUSH"), "+OK\r\n");
    assert_eq!(world.ask("FCALL f7 0"), "-ERR Function not found\r\n");
    assert_eq!(ask(&mut world, &[b"FUNCTION", b"RESTORE", content(&dumped)]), b"+OK\r\n");
    assert_eq!(world.ask("FUNCTION LIST WITHCODE"), listed);
    assert_eq!(world.ask("FCALL f7 0"), ":7\r\n");
}

#[test]
fn a_payload_with_a_bit_that_is_wrong_is_refused() {
    let mut world = World::fresh();
    load(&mut world, 1);
    let dumped = ask(&mut world, &[b"FUNCTION", b"DUMP"]);
    world.ask("FUNCTION FLUSH");
    for bit in 0..content(&dumped).len() * 8 {
        let mut payload = content(&dumped).to_vec();
        payload[bit / 8] ^= 1 << (bit % 8);
        let reply = ask(&mut world, &[b"FUNCTION", b"RESTORE", &payload]);
        assert_eq!(reply, b"-ERR DUMP payload version or checksum are wrong\r\n");
    }
}

#[test]
fn info_counts_libraries_and_functions() {
    let mut world = World::fresh();
    (0..3).for_each(|library| load(&mut world, library));
    let info = world.ask("INFO memory");
    assert!(info.contains("number_of_functions:3\r\nnumber_of_libraries:3\r\n"), "{info}");
}

#[test]
fn help_names_arguments_as_redis_does() {
    let mut world = World::fresh();
    let (functions, scripts) = (world.ask("FUNCTION HELP"), world.ask("SCRIPT HELP"));
    for line in [
        "LOAD [REPLACE] <FUNCTION CODE>",
        "DELETE <LIBRARY NAME>",
        "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
        "FLUSH [ASYNC|SYNC]",
        "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    ] {
        assert!(functions.contains(&format!("\r\n+{line}\r\n")), "{line}: {functions}");
    }
    for line in ["DEBUG (YES|SYNC|NO)", "EXISTS <sha1> [<sha1> ...]", "FLUSH [ASYNC|SYNC]", "LOAD <script>"] {
        assert!(scripts.contains(&format!("\r\n+{line}\r\n")), "{line}: {scripts}");
    }
}

#[test]
fn garbage_of_loading_libraries_is_collected() {
    let mut world = World::fresh();
    let source = |number: usize| {
        let garbage = "local t = {} for n = 1, 1000 do t[n] = {} end";
        format!("#!lua name=lib\n{garbage} redis.register_function('f', function() return {number} end)")
    };
    for number in 0..200 {
        let source = source(number);
        ask(&mut world, &[b"FUNCTION", b"LOAD", b"REPLACE", source.as_bytes()]);
    }
    let bytes = world.engine.scripts.functions.vm_bytes();
    assert!(bytes < 1_000_000, "200 times 50 KB have become {bytes} bytes");
}

/// Whether SCRIPT EXISTS finds the script that returns the number.
fn is_kept(world: &mut World, number: usize) -> bool {
    let digest = Digest::of(format!("return {number}").as_bytes());
    world.ask(&format!("SCRIPT EXISTS {}", digest.to_text())) == "*1\r\n:1\r\n"
}

fn evaluate(world: &mut World, numbers: std::ops::RangeInclusive<usize>) {
    for number in numbers {
        ask(world, &[b"EVAL", format!("return {number}").as_bytes(), b"0"]);
    }
}

#[test]
fn a_script_cached_by_eval_is_evicted_even_if_it_is_loaded_afterwards() {
    let mut world = World::fresh();
    evaluate(&mut world, 1..=10);
    ask(&mut world, &[b"SCRIPT", b"LOAD", b"return 1"]);
    ask(&mut world, &[b"SCRIPT", b"LOAD", b"return 0"]);
    evaluate(&mut world, 0..=0);
    evaluate(&mut world, 11..=500);
    assert!(is_kept(&mut world, 1));
    evaluate(&mut world, 501..=501);
    assert_eq!([0, 1, 2].map(|number| is_kept(&mut world, number)), [true, false, true]);
}

#[test]
fn the_number_of_evicted_scripts_outlasts_a_flush() {
    let mut world = World::fresh();
    evaluate(&mut world, 1..=502);
    assert!(world.ask("INFO stats").contains("evicted_scripts:2\r\n"));
    assert_eq!(world.ask("SCRIPT FLUSH"), "+OK\r\n");
    assert!(world.ask("INFO stats").contains("evicted_scripts:2\r\n"));
    world.ask("CONFIG RESETSTAT");
    assert!(world.ask("INFO stats").contains("evicted_scripts:0\r\n"));
}

#[test]
fn the_script_of_eval_whose_last_use_is_the_oldest_is_evicted() {
    let mut world = World::fresh();
    evaluate(&mut world, 1..=500);
    evaluate(&mut world, 2..=3);
    evaluate(&mut world, 1..=1);
    evaluate(&mut world, 501..=502);
    assert_eq!([1, 2, 3, 4, 5, 6].map(|number| is_kept(&mut world, number)), [true, true, true, false, false, true]);
    evaluate(&mut world, 503..=999);
    assert_eq!([1, 2, 3, 500].map(|number| is_kept(&mut world, number)), [true, false, false, false]);
}

/// An interpreter is kept when its scripts are flushed, unless it has grown.
#[test]
fn a_flush_frees_what_scripts_took() {
    let mut world = World::fresh();
    let vm_bytes = |world: &mut World, field: &str| -> usize {
        let info = world.ask("INFO memory");
        let line = info.lines().find_map(|line| line.strip_prefix(field)).expect("the field is there");
        line.trim_start_matches(':').parse().expect("it is a number")
    };
    for (count, is_kept) in [(10, true), (5_000, false)] {
        for number in 0..count {
            ask(&mut world, &[b"SCRIPT", b"LOAD", format!("return {{{number}, KEYS[1], {number} + 1}}").as_bytes()]);
        }
        assert_eq!(world.ask("SCRIPT FLUSH"), "+OK\r\n");
        assert_eq!(vm_bytes(&mut world, "used_memory_vm_eval") > 0, is_kept, "{count} scripts");
        let library = format!(
            "#!lua name=large\nlocal t = {{}} for i = 1, {count} * 20 do t[i] = i end
            redis.register_function('size', function() return #t end)"
        );
        ask(&mut world, &[b"FUNCTION", b"LOAD", library.as_bytes()]);
        assert_eq!(world.ask("FCALL size 0"), format!(":{}\r\n", count * 20));
        assert_eq!(world.ask("FUNCTION FLUSH"), "+OK\r\n");
        assert_eq!(vm_bytes(&mut world, "used_memory_vm_functions") > 0, is_kept, "{count} scripts");
        assert_eq!(world.ask("FCALL size 0"), "-ERR Function not found\r\n");
    }
}

#[test]
fn sources_that_are_gone_take_no_memory() {
    let (table, host) = (Table::of(WITH_TEST_KIT), Box::new(NoHost::default()));
    let mut world = World::of_engine(Engine::new(table, Settings::default(), 1, START, host));
    let bytes = |world: &World| world.engine.scripts.source_bytes();
    load(&mut world, 1);
    ask(&mut world, &[b"SCRIPT", b"LOAD", b"return 'kept'"]);
    let kept = bytes(&world);
    assert_eq!(world.ask("DUNLIN SNAPSHOT kept"), "+OK\r\n");
    let dumped = ask(&mut world, &[b"FUNCTION", b"DUMP"]);

    load(&mut world, 2);
    let other = b"#!lua name=lib2\nredis.register_function('other', function() return 'longer than before' end)";
    ask(&mut world, &[b"FUNCTION", b"LOAD", b"REPLACE", other]);
    let both = bytes(&world);
    let taken = b"#!lua name=lib3\nredis.register_function('F1', function() end)";
    assert!(ask(&mut world, &[b"FUNCTION", b"LOAD", taken]).starts_with(b"-ERR Function F1 already exists"));
    assert!(ask(&mut world, &[b"FUNCTION", b"RESTORE", content(&dumped)]).starts_with(b"-ERR Library lib1"));
    assert_eq!(ask(&mut world, &[b"FUNCTION", b"RESTORE", content(&dumped), b"REPLACE"]), b"+OK\r\n");
    assert_eq!(bytes(&world), both);
    assert_eq!(world.ask("FUNCTION DELETE lib2"), "+OK\r\n");
    assert_eq!(bytes(&world), kept);
    load(&mut world, 2);
    assert_eq!(ask(&mut world, &[b"FUNCTION", b"RESTORE", content(&dumped), b"FLUSH"]), b"+OK\r\n");
    assert_eq!(bytes(&world), kept);

    evaluate(&mut world, 1000..=1499);
    let full = bytes(&world);
    evaluate(&mut world, 2000..=2499);
    assert_eq!(bytes(&world), full);
    assert_eq!(world.ask("DUNLIN ROLLBACK kept"), "+OK\r\n");
    assert_eq!(bytes(&world), kept);
    assert_eq!([world.ask("SCRIPT FLUSH"), world.ask("FUNCTION FLUSH")], ["+OK\r\n", "+OK\r\n"]);
    assert_eq!(bytes(&world), 0);
}
