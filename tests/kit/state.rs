//! The state as text: dumping, comparing and loading it.

use dunlin::{Client, Reply, Server};

use crate::{call, error, served};

const LIBRARY: &str = "#!lua name=lib\nredis.register_function('answer', function() return 42 end)";

fn run(client: &mut Client, lines: &[&str]) {
    lines.iter().for_each(|line| _ = call(client, line.split(' ')));
}

#[test]
fn a_state_dump_lists_everything_as_commands_in_a_fixed_order() {
    let (server, mut client) = served();
    run(
        &mut client,
        &[
            "SADD set b a",
            "SET name ann",
            "PEXPIREAT name 9000000000000",
            "ZADD zset 1.5 b -inf a",
            "RPUSH list b a b",
            "HSET hash g 2 f 1",
            "HPEXPIREAT hash 9000000000000 FIELDS 1 f",
            "XADD stream 5-1 field value",
            "XGROUP CREATE stream group 0",
            "XGROUP CREATECONSUMER stream group ann",
            "SELECT 2",
            "SET number 7",
        ],
    );
    call(&mut client, ["SET", "two words", "a \"quote\" and a\nline"]);
    call(&mut client, ["FUNCTION", "LOAD", LIBRARY]);
    let expected = r##"FUNCTION LOAD "#!lua name=lib\nredis.register_function('answer', function() return 42 end)"
SELECT 0
HSET hash f 1
HPEXPIREAT hash 9000000000000 FIELDS 1 f
HSET hash g 2
RPUSH list b
RPUSH list a
RPUSH list b
SET name ann
PEXPIREAT name 9000000000000
SADD set a
SADD set b
XADD stream 5-1 field value
XGROUP CREATE stream group 0-0 ENTRIESREAD -1
XGROUP CREATECONSUMER stream group ann
XSETID stream 5-1 ENTRIESADDED 1 MAXDELETEDID 0-0
ZADD zset -inf a
ZADD zset 1.5 b
SELECT 2
SET number 7
SET "two words" "a \"quote\" and a\nline"
"##;
    assert_eq!(server.dump(), expected);
    assert_eq!(call(&mut client, ["DUNLIN", "DUMP"]), expected);
}

#[test]
fn the_lines_of_one_key_can_be_dumped() {
    let (_server, mut client) = served();
    run(&mut client, &["SET ab other", "SELECT 2", "ZADD a* 1 m", "PEXPIREAT a* 9000000000000", "SET ab v"]);
    let dumped = call(&mut client, ["DUNLIN", "DUMP", "KEY", "a*"]);
    assert_eq!(dumped, "SELECT 2\nZADD a* 1 m\nPEXPIREAT a* 9000000000000\n");
    assert_eq!(call(&mut client, ["DUNLIN", "DUMP", "key", "none"]), "");
    for words in [&["KEY"][..], &["KEY", "a*", "b"], &["a*"]] {
        let refusal = error(&mut client, ["DUNLIN", "DUMP"].iter().chain(words).copied());
        assert_eq!(refusal, "ERR syntax error, usage: DUNLIN DUMP [KEY key]");
    }
}

#[test]
fn a_loaded_state_equals_the_dumped_one() {
    let (server, mut client) = served();
    let other = Server::builder().allow_debug().start().expect("it starts");
    let mut other_client = other.client().expect("there is room");
    run(&mut other_client, &["SET old value", "SELECT 3", "SET old value", "SELECT 0"]);
    run(
        &mut client,
        &[
            "SET key value",
            "XGROUP CREATE empty group $ MKSTREAM",
            "XADD stream 5-1 f v",
            "XADD stream 5-2 f v",
            "XGROUP CREATE stream group 0",
            "XREADGROUP GROUP group ann STREAMS stream >",
            "XDEL stream 5-2",
            "XADD gone 1-1 f v",
            "XDEL gone 1-1",
        ],
    );
    call(&mut client, ["FUNCTION", "LOAD", LIBRARY]);
    let text = server.dump();
    other.load(&text).expect("it is right");
    assert_eq!(other.dump(), text);
    assert_eq!(call(&mut other_client, ["FCALL", "answer", "0"]), 42);
    assert_eq!(call(&mut other_client, ["XLEN", "stream"]), 1);
    assert_eq!(call(&mut other_client, ["EXISTS", "old"]), 0);
    let digest = call(&mut other_client, ["DEBUG", "DIGEST"]);
    assert_eq!(call(&mut other_client, ["DUNLIN", "LOAD", &text]), Reply::Status("OK".to_owned()));
    assert_eq!(call(&mut other_client, ["DEBUG", "DIGEST"]), digest);
    assert_eq!(server.diff(&other.dump()).expect("it is right"), "");
}

#[test]
fn a_difference_is_shown_line_by_line() {
    let (server, mut client) = served();
    run(
        &mut client,
        &["RPUSH list a b c", "SET same value", "SET changed 1", "SELECT 1", "SET gone value", "SELECT 0"],
    );
    let golden = server.dump();
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", &golden]), "");
    run(&mut client, &["LSET list 1 x", "SET changed 2", "SET come value", "SELECT 1", "DEL gone"]);
    let expected = "- SET changed 1\n+ SET changed 2\n+ SET come value\n- RPUSH list b\n+ RPUSH list x\n\
                    \x20 SELECT 1\n- SET gone value\n";
    assert_eq!(server.diff(&golden).expect("it is right"), expected);
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", &golden]), expected);
}

#[test]
fn a_world_is_compared_with_another() {
    let (server, mut client) = served();
    run(&mut client, &["SET both 1", "SET only 1"]);
    let north = server.world("north").expect("it can be made");
    let mut other = north.client().expect("there is room");
    run(&mut other, &["SET both 1", "SET its 2"]);
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", "WORLD", "north"]), "- SET its 2\n+ SET only 1\n");
    assert_eq!(call(&mut other, ["DUNLIN", "DIFF", "WORLD", "default"]), "+ SET its 2\n- SET only 1\n");
    assert_eq!(call(&mut other, ["DUNLIN", "DIFF", "WORLD", "north"]), "");
    assert_eq!(north.diff(&server.dump()).as_deref(), Ok("+ SET its 2\n- SET only 1\n"));
    assert_eq!(error(&mut client, ["DUNLIN", "DIFF", "WORLD", "south"]), "ERR no world named 'south'");
    assert_eq!(server.worlds(), ["default", "north"]);
    let text = "ERR syntax error, usage: DUNLIN DIFF <text|<WORLD world>|<SNAPSHOT from [to]>>";
    assert_eq!(error(&mut client, ["DUNLIN", "DIFF", "SET both 1", "more"]), text);
}

#[test]
fn a_snapshot_is_compared_with_the_data_of_now_and_nothing_changes() {
    let (server, mut client) = served();
    run(&mut client, &["SET same 1", "SET changed 1", "SET gone 1", "SET late 1 PX 100", "RPUSH list a", "SELECT 1"]);
    run(&mut client, &["SET one 1", "SELECT 0", "DUNLIN SNAPSHOT begin"]);
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "begin"]), "");
    run(&mut client, &["SET changed 2", "DEL gone", "RPUSH list b", "DUNLIN SNAPSHOT middle"]);
    call(&mut client, ["FUNCTION", "LOAD", LIBRARY]);
    let changes = "- SET changed 1\n+ SET changed 2\n- SET gone 1\n+ RPUSH list b\n";
    let library = call(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "middle"]);
    let library = library.text().expect("it is a text").into_owned();
    assert!(library.starts_with("+ FUNCTION LOAD") && library.lines().count() == 1, "{library}");
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "begin"]), *format!("{library}{changes}"));
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "begin", "middle"]), *changes);
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "middle", "middle"]), "");
    run(&mut client, &["SWAPDB 0 1", "FLUSHALL", "SET come 1"]);
    let now = server.dump();
    let difference = call(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "middle"]);
    let difference = difference.text().expect("it is a text").into_owned();
    for line in ["- SET changed 2", "- RPUSH list a", "+ SET come 1", "- SET one 1"] {
        assert!(difference.lines().any(|known| known == line), "{line} in {difference}");
    }
    assert_eq!(server.dump(), now);
    let back = "- SET changed 2\n+ SET changed 1\n+ SET gone 1\n- RPUSH list b\n";
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "middle", "begin"]), *back, "whatever came since");
    for names in [&["none"][..], &["none", "begin"], &["begin", "none"]] {
        let words = [&["DUNLIN", "DIFF", "SNAPSHOT"], names].concat();
        assert_eq!(error(&mut client, words), "ERR no snapshot named 'none'");
    }
    assert!(
        error(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "begin", "middle", "more"]).starts_with("ERR syntax error")
    );
    call(&mut client, ["DUNLIN", "ROLLBACK", "begin"]);
    assert_eq!(call(&mut client, ["DUNLIN", "DIFF", "SNAPSHOT", "begin"]), "");
}

#[test]
fn the_layout_of_a_state_text_does_not_matter() {
    let (server, mut client) = served();
    run(&mut client, &["RPUSH list a b", "SET key value"]);
    let text = "# the fixture\n\n  set 'key' \"value\"\r\nRPUSH list a b";
    assert_eq!(server.diff(text).expect("it is right"), "");
}

#[test]
fn a_text_with_a_fault_changes_nothing_and_its_line_is_reported() {
    let (server, mut client) = served();
    run(&mut client, &["SET key value"]);
    let before = server.dump();
    for (text, expected) in [
        ("SET a 1\nLPUSH a 2", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SET a 1\nGET a", "'get' does not write data"),
        ("SET a 1\nSET 'a 1", "unbalanced quotes"),
        ("SET a 1\nNOTHING", "unknown command 'NOTHING', with args beginning with: "),
        ("SET a 1\nBLPOP b 0", "the command would block"),
        ("SET a 1\nMULTI", "'multi' does not write data"),
    ] {
        let expected_error = format!("ERR line 2: {expected}");
        assert_eq!(error(&mut client, ["DUNLIN", "LOAD", text]), expected_error);
        assert_eq!(error(&mut client, ["DUNLIN", "DIFF", text]), expected_error);
        assert_eq!(server.load(text).expect_err("it is wrong").to_string(), expected_error);
    }
    assert_eq!(server.dump(), before);
}

#[test]
fn a_rollback_undoes_a_loaded_state() {
    let (server, mut client) = served();
    run(&mut client, &["SET key value"]);
    let before = server.dump();
    server.snapshot("base");
    server.load("SET other value\nSELECT 3\nSET key other").expect("it is right");
    run(&mut client, &["SET third value"]);
    server.rollback("base").expect("it is there");
    assert_eq!(server.dump(), before);
}

#[test]
fn a_library_that_never_ends_is_refused() {
    let (server, _) = served();
    let text = "FUNCTION LOAD \"#!lua name=lib\\nwhile true do end\"";
    assert!(server.load(text).expect_err("it does not end").to_string().starts_with("ERR line 1: "));
}
