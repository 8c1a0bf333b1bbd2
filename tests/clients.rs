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
