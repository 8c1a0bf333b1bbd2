//! Real clients against the binary: what people type and what their libraries do on their first contact.
//!
//! Each test needs a program of its own. Where that is missing the test says what it skipped; in CI, where
//! `DUNLIN_TEST_EVERYTHING` is set, it fails instead.

#[path = "clients/binary.rs"]
mod binary;
#[path = "clients/programs.rs"]
mod programs;

use std::fs;
use std::process::Command;

use binary::Binary;
use programs::{Program, run};

const REDIS_PY: &str = include_str!("clients/redis_py.py");
const IOREDIS: &str = include_str!("clients/ioredis.js");

#[test]
fn redis_cli_reads_the_recency_pattern_as_a_real_server_answers_it() {
    pattern("recency");
}

#[test]
fn redis_cli_reads_the_live_events_pattern_as_a_real_server_answers_it() {
    pattern("live-events");
}

#[test]
fn redis_cli_reads_the_sorted_sets_pattern_as_a_real_server_answers_it() {
    pattern("sorted-sets");
}

#[test]
fn redis_cli_reads_the_sets_pattern_as_a_real_server_answers_it() {
    pattern("sets");
}

#[test]
fn redis_cli_reads_the_lists_pattern_as_a_real_server_answers_it() {
    pattern("lists");
}

#[test]
fn redis_cli_reads_the_scripts_pattern_as_a_real_server_answers_it() {
    pattern("scripts");
}

#[test]
fn redis_cli_runs_the_scripts_of_files_as_they_stand() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let server = Binary::start();
    let port = server.port();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/patterns/scripts");
    let eval = |name: &str, words: &str| {
        let mut command = cli.command();
        command.args(["-p", &port, "--eval", &format!("{folder}/{name}.lua")]);
        run(command.args(words.split(' ')), "")
    };
    assert_eq!(eval("recent", "user:1:recent , a 2"), "1\n");
    assert_eq!(eval("recent", "user:1:recent , b 2"), "2\n");
    assert_eq!(eval("recent", "user:1:recent , c 2"), "2\n");
    assert_eq!(eval("first-seen", "dedupe:2026070210 , event-1 7200"), "1\n");
    assert_eq!(eval("first-seen", "dedupe:2026070210 , event-1 7200"), "0\n");
    run(cli.command().args(["-p", &port]), "ZADD delayed 1 j1 2 j2 3 j3 99 j4\n");
    assert_eq!(eval("claim-due", "delayed processing , 50 2 1060"), "j1\nj2\n");
    assert_eq!(eval("claim-due", "delayed processing , 50 2 1060"), "j3\n");
    assert_eq!(eval("claim-due", "delayed processing , 50 2 1060"), "\n");
    assert_eq!(eval("rate-limit", "rate:1 , 1000 1000 2 r1 60"), "1\n1\n");
    assert_eq!(eval("rate-limit", "rate:1 , 1500 1000 2 r2 60"), "1\n2\n");
    assert_eq!(eval("rate-limit", "rate:1 , 1999 1000 2 r3 60"), "0\n2\n");
    assert_eq!(eval("rate-limit", "rate:1 , 2000 1000 2 r4 60"), "1\n2\n");
}

#[test]
fn redis_benchmark_runs_with_its_defaults() {
    let Some(benchmark) = Program::find("redis-benchmark", &["--version"]) else { return };
    let server = Binary::start();
    let port = server.port();
    let output =
        run(benchmark.command().args(["-p", &port, "-t", "ping,set,get,incr,mset", "-n", "2000", "-P", "8", "-q"]), "");
    for name in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"] {
        assert!(
            output.contains(&format!("{name}: ")) || output.contains(&format!("{name} (")),
            "{name} is missing:\n{output}"
        );
    }
    assert!(!output.to_lowercase().contains("error"), "{output}");
}

#[test]
fn redis_py_works_with_its_defaults() {
    let Some(python) = Program::python_with_redis() else { return };
    let server = Binary::start();
    let output = run(python.command().args(["-c", REDIS_PY, &server.port()]), "");
    assert_eq!(output.trim(), "redis-py is content");
}

#[test]
fn ioredis_works_with_its_defaults() {
    let Some(node) = Program::node_with_ioredis() else { return };
    let server = Binary::start();
    let output = run(node.command().args(["-e", IOREDIS, &server.port()]), "");
    assert_eq!(output.trim(), "ioredis is content");
}

fn pattern(name: &str) {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/patterns");
    let commands = fs::read_to_string(format!("{folder}/{name}.redis")).expect("the pattern has commands");
    let expected = fs::read_to_string(format!("{folder}/{name}.expected")).expect("the pattern has answers");
    let server = Binary::start();
    assert_eq!(run(cli.command().args(["-p", &server.port()]), &commands), expected);
}

#[test]
fn the_program_tells_its_version_and_how_it_is_used() {
    let told = |argument: &str| run(Command::new(env!("CARGO_BIN_EXE_dunlin")).arg(argument), "");
    assert!(told("--version").contains(env!("CARGO_PKG_VERSION")));
    assert!(told("--help").contains("dunlin [file] [--directive value ...]"));
}
