//! The guard of `dunlin::test()`: when it fails a test, and what it prints when the test itself fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use dunlin::{Level, Rule, Server, assert_journal, assert_reply};

/// The message with which a test fails.
pub(crate) fn failure(test: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(test)).expect_err("it fails");
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| "no text".to_owned())
}

#[test]
fn a_test_fails_at_its_end_for_what_an_error_of_strict_mode_found() {
    let text = failure(|| {
        let redis = dunlin::test();
        redis.strict().set_all(Level::Error);
        let mut application = redis.client().expect("there is room");
        application.call(["LPUSH", "recent", "page-1"]).expect("it shows at the end");
        assert!(application.call(["BLPOP", "jobs", "0"]).is_err());
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "strict mode found 2:");
    assert!(
        lines[1].starts_with("  error endless-waits: client 1: BLPOP jobs 0: BLPOP would wait for ever;"),
        "{text}"
    );
    assert!(
        lines[2].starts_with("  error unbounded-collection: client 1: LPUSH recent: recent is never trimmed"),
        "{text}"
    );
    assert_eq!(lines[3..5], ["the last commands:", "  #1 client 1: LPUSH recent page-1 -> (integer) 1"]);
}

#[test]
fn a_test_fails_for_what_was_found_in_any_world_of_its_server() {
    let text = failure(|| {
        let redis = dunlin::test();
        for (name, level) in [("north", Level::Error), ("south", Level::Warn)] {
            let world = redis.world(name).expect("it can be made");
            world.strict().set_all(level);
            world.client().expect("there is room").call(["LPUSH", "recent", "page-1"]).expect("it shows at the end");
        }
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "strict mode found 1:");
    assert!(lines[1].starts_with("  world north: error unbounded-collection: client "), "{text}");
    assert_eq!(lines[2], "the last commands in world north:");
    assert!(lines[3].ends_with(": LPUSH recent page-1 -> (integer) 1"), "{text}");
}

#[test]
fn a_test_does_not_fail_for_warnings_nor_for_cleared_findings() {
    let redis = dunlin::test();
    redis.strict().set_all(Level::Error).set(Rule::UnboundedCollection, Level::Warn);
    let mut application = redis.client().expect("there is room");
    application.call(["SADD", "seen", "a"]).expect("it is answered");
    drop(redis);
    let redis = dunlin::test();
    redis.strict().set_all(Level::Error);
    redis.client().expect("there is room").call(["BLPOP", "jobs", "0"]).expect_err("it is refused");
    redis.strict().clear();
}

#[test]
fn a_failing_test_keeps_its_own_message() {
    let text = failure(|| {
        let redis = dunlin::test();
        redis.strict().set_all(Level::Error);
        redis.client().expect("there is room").call(["BLPOP", "jobs", "0"]).expect_err("it is refused");
        panic!("{}", "its own words");
    });
    assert_eq!(text, "its own words");
}

/// A test that fails, whose output another test checks.
const FAILS: &str = "DUNLIN_TEST_FAILS";

#[test]
fn a_failing_test_runs_only_as_the_subject_of_another_one() -> Result<(), String> {
    let Some(how) = std::env::var_os(FAILS) else { return Ok(()) };
    let redis = Server::builder().seed(42).test();
    let mut application = redis.client().expect("there is room");
    application.call(["SET", "key", "value"]).expect("it is answered");
    match how.to_str() {
        Some("by itself") => panic!("it fails"),
        Some("by an error") => return Err("an error".to_owned()),
        Some("not at all") => {}
        _ => assert_reply!(redis, "GET key" == nil),
    }
    Ok(())
}

/// The output of the test harness for a test that fails in this way.
fn output_of(how: &str) -> String {
    let program = std::env::current_exe().expect("it has a name");
    let mut test = Command::new(program);
    test.args(["--exact", "guard::a_failing_test_runs_only_as_the_subject_of_another_one"]).env(FAILS, how);
    let output = test.output().expect("it runs");
    assert_eq!(output.status.success(), how == "not at all");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_failing_test_prints_the_seed_and_the_last_commands_once_and_a_passing_one_does_not() {
    let commands = "\nthe last commands:\n  #1 client 1: SET key value -> OK\n";
    let with_seed = format!("the server's seed: 42{commands}");
    let (by_itself, by_error) = (output_of("by itself"), output_of("by an error"));
    assert!(by_itself.contains(&with_seed), "{by_itself}");
    assert!(by_error.contains(&with_seed), "{by_error}");
    let by_assertion = output_of("by an assertion");
    let got = format!("       got: \"value\"{commands}");
    assert!(by_assertion.contains(&got) && by_assertion.contains("the server's seed: 42\n"), "{by_assertion}");
    for output in [by_itself, by_error, by_assertion] {
        assert_eq!(output.matches("the last commands:").count(), 1, "{output}");
    }
    let passing = output_of("not at all");
    assert!(!passing.contains("the last commands:"), "{passing}");
}

#[test]
fn commands_of_the_test_itself_are_not_recorded_disturbed_or_checked() {
    let redis = dunlin::test();
    redis.strict().set_all(Level::Error);
    redis.fault("down").error("ERR down");
    assert_eq!(redis.call(["MSET", "foo", "1", "bar", "2"]).expect("it runs"), "OK");
    redis.call(["SADD", "set", "a"]).expect("it runs");
    redis.call(["EXPIRE", "set", "60"]).expect("it runs");
    let script = "return redis.call('GET', ARGV[1])";
    assert_reply!(redis, ["EVAL", script, 0, "foo"] == 1);
    assert!(redis.client().expect("there is room").call(["PING"]).is_err());
    assert_journal!(redis, no EVAL);
    assert_eq!(redis.journal().count(), 1);
    redis.strict().assert_none();
}

#[test]
fn the_clock_of_a_guarded_server_runs_unless_it_is_stopped() {
    let (running, still) = (dunlin::test(), Server::builder().frozen().test());
    let (before, then) = (running.now(), still.now());
    running.call(["BLPOP", "nosuch", "0.001"]).expect("a millisecond passes");
    assert!(running.now() > before);
    assert_eq!(still.now(), then);
}
