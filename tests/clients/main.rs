//! Real clients against the program: redis-cli, client libraries and applications, as their users run them.
//!
//! Each test needs an installed program. Where that is missing, the test prints that it is skipped; in CI, where
//! `DUNLIN_TEST_EVERYTHING` is set, it fails instead.

mod binary;
mod cluster;
mod cluster_cli;
mod metrics;
mod old_views;
mod page;
#[cfg(unix)]
mod pages;
mod programs;
mod redis_rs;
mod redis_rs_resharding;
mod resharding;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::process::Command;

use binary::{Binary, program};
use programs::{Program, run};
use support::timeout;

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
fn redis_cli_runs_script_files() {
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

/// Runs a program of `tests/clients` in each protocol that is given, each time against a server of its own.
fn reports_success(program: Option<Program>, file: &str, protocols: &[&str], says: &str) {
    let Some(program) = program else { return };
    let file = format!("{}/tests/clients/{file}", env!("CARGO_MANIFEST_DIR"));
    for protocol in protocols {
        let server = Binary::start();
        let output = run(program.command().args([&file, &server.port(), *protocol]), "");
        assert_eq!(output.trim(), format!("{says} is content"));
    }
}

#[test]
fn redis_py_works_with_its_defaults() {
    reports_success(Program::python_with("redis"), "redis_py.py", &[""], "redis-py");
}

#[test]
fn redis_py_runs_the_usage_patterns() {
    reports_success(Program::python_with("redis"), "redis_py_patterns.py", &["2", "3"], "redis-py");
}

#[test]
fn redis_py_runs_the_usage_patterns_with_asyncio() {
    reports_success(Program::python_with("redis"), "redis_py_asyncio.py", &["2", "3"], "redis-py");
}

#[test]
fn ioredis_works_with_its_defaults() {
    reports_success(Program::node_with("ioredis"), "ioredis.js", &["2", "3"], "ioredis");
}

#[test]
fn ioredis_runs_the_usage_patterns() {
    reports_success(Program::node_with("ioredis"), "ioredis_patterns.js", &["2", "3"], "ioredis");
}

#[test]
fn node_redis_runs_the_usage_patterns() {
    reports_success(Program::node_with("redis"), "node_redis.js", &["2", "3"], "node-redis");
}

#[test]
fn go_redis_runs_the_usage_patterns() {
    let Some(program) = Program::of_go() else { return };
    let server = Binary::start();
    for protocol in ["2", "3"] {
        assert_eq!(run(program.command().args([&server.port(), protocol]), "").trim(), "go-redis is content");
    }
}

#[test]
fn jedis_runs_the_usage_patterns() {
    reports_success(Program::java_with_clients(), "java/JedisPatterns.java", &["2", "3"], "Jedis");
}

#[test]
fn lettuce_runs_the_usage_patterns() {
    reports_success(Program::java_with_clients(), "java/LettucePatterns.java", &["2", "3"], "Lettuce");
}

#[test]
fn redis_rs_runs_the_usage_patterns() {
    let server = Binary::start();
    for protocol in ["resp2", "resp3"] {
        redis_rs::blocking(&server, protocol).expect("the client works");
        redis_rs::on_one_connection(&server, protocol).expect("the client works");
        redis_rs::through_a_manager(&server, protocol).expect("the client works");
    }
    redis_rs::receives_pushes(&server).expect("the client works");
}

#[test]
fn rq_runs_its_jobs() {
    reports_success(Program::python_with("rq"), "applications/rq_jobs.py", &[""], "RQ");
}

#[test]
fn celery_runs_its_tasks() {
    reports_success(Program::python_with("celery"), "applications/celery_tasks.py", &[""], "Celery");
}

#[test]
fn django_stores_and_reads_its_cache() {
    reports_success(Program::python_with("django_redis"), "applications/django_cache.py", &[""], "django-redis");
}

#[test]
fn bullmq_runs_its_jobs() {
    reports_success(Program::node_with("bullmq"), "applications/bullmq.js", &[""], "BullMQ");
}

#[test]
fn redlock_locks_over_three_servers() {
    let Some(node) = Program::node_with("redlock") else { return };
    let servers = [(); 3].map(|()| Binary::start());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/applications/redlock.js");
    let output = run(node.command().arg(file).args(servers.iter().map(Binary::port)), "");
    assert_eq!(output.trim(), "Redlock is content");
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
fn the_program_prints_its_version_and_its_help() {
    let output_with = |argument: &str| run(Command::new(program()).arg(argument), "");
    assert!(output_with("--version").contains(env!("CARGO_PKG_VERSION")));
    assert!(output_with("--help").contains("dunlin [file] [--directive value ...]"));
}
