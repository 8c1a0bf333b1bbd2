//! The names in INFO and CONFIG GET are those of Redis 8.0, in its order where it has one, and so are the default
//! values of parameters.
//!
//! `tests/fixtures/info_config.txt` has the replies of a real server. To rewrite it:
//! `UPDATE=1 DUNLIN_ORACLE=/path/to/redis-server cargo test --test engine info_config`. Whenever DUNLIN_ORACLE names a
//! server, the file is compared with its replies.

use std::fs;

use redis::Value;

use crate::oracle::Oracle;
use crate::process::{Program, updates};
use crate::world::World;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/info_config.txt");

const HEAD: &str = "\
# What a real Redis 8.0 reports: the sections and fields of INFO in their order, and every parameter with its value at the
# start. Written by UPDATE=1 DUNLIN_ORACLE=/path/to/redis-server cargo test --test engine info_config
";

/// Lines that differ for a reason.
const ONLY_IN_REDIS: &[(&str, &str)] =
    &[("config: bind = * -::*", "without `bind` nobody else's machine reaches the server")];
const ONLY_HERE: &[(&str, &str)] = &[
    ("info: dunlin_version", "our own version, beside the one that we answer as"),
    ("info everything: dunlin_version", "likewise"),
    ("config: bind = 127.0.0.1 -::1", "without `bind` nobody else's machine reaches the server"),
];

/// Parameters whose values at the start are chosen by who starts it.
const CHOSEN: &[&str] = &["dir", "port", "unixsocket", "save", "enable-debug-command"];

/// Parameters of which only the names are compared.
const HIDDEN: &[&str] = &[
    "aof-disable-auto-gc",
    "cluster-ping-interval",
    "key-load-delay",
    "loading-process-events-interval-bytes",
    "lua-enable-deprecated-api",
    "rdb-key-save-delay",
    "repl-rdb-channel",
    "use-exit-on-panic",
    "watchdog-period",
];

#[test]
fn info_and_config_show_the_names_and_values_of_redis() {
    if let Some(program) = Program::from_environment("the names of INFO and CONFIG on a real server") {
        let mut oracle = Oracle::start(&program);
        let recorded = HEAD.to_owned() + &names_and_values(|words| oracle.ask(words)).join("\n") + "\n";
        if updates() {
            fs::write(FIXTURE, &recorded).expect("the fixture can be written");
        }
        assert_eq!(fs::read_to_string(FIXTURE).expect("it can be read"), recorded, "the real server answers otherwise");
    }
    let fixture = fs::read_to_string(FIXTURE).expect("the fixture can be read");
    let excused = |list: &[(&str, &str)], line: &str| list.iter().any(|(known, _)| *known == line);
    let theirs: Vec<&str> = fixture.lines().filter(|line| !line.starts_with('#')).collect();
    for (line, _) in ONLY_IN_REDIS {
        assert!(theirs.contains(line), "{line} needs no excuse");
    }
    let mut world = World::fresh();
    let ours = names_and_values(|words| {
        let reply = world.ask(&words.join(" "));
        redis::parse_redis_value(reply.as_bytes()).expect("our replies are well formed")
    });
    for (line, _) in ONLY_HERE {
        assert!(ours.iter().any(|own| own == line), "{line} needs no excuse");
    }
    let ours: Vec<&str> = ours.iter().map(String::as_str).filter(|line| !excused(ONLY_HERE, line)).collect();
    let theirs: Vec<&str> = theirs.into_iter().filter(|line| !excused(ONLY_IN_REDIS, line)).collect();
    assert_eq!(ours, theirs);
}

fn names_and_values(mut ask: impl FnMut(&[&str]) -> Value) -> Vec<String> {
    let mut lines = Vec::new();
    for section in ["default", "everything"] {
        let text = text(&ask(&["INFO", section]));
        let names = text.lines().filter(|line| !line.is_empty()).map(|line| line.split(':').next().unwrap_or(line));
        // Lines about commands and errors depend on the requests before, and those about listeners on the machine.
        let names = names.filter(|name| {
            !["cmdstat_", "errorstat_", "latency_percentiles_", "listener"].iter().any(|n| name.starts_with(n))
        });
        lines.extend(
            names.map(|name| format!("{}: {name}", if section == "default" { "info" } else { "info everything" })),
        );
    }
    let debug = text(&ask(&["INFO", "debug"]));
    lines.extend(debug.lines().map(|line| format!("info debug: {}", line.split(':').next().unwrap_or(line))));
    for name in HIDDEN {
        let Value::Array(pair) = ask(&["CONFIG", "GET", name]) else { panic!("CONFIG GET answers with a list") };
        let pair: Vec<String> = pair.iter().map(text).collect();
        lines.push(format!("hidden: {}", pair.join(" = ")));
    }
    let Value::Array(parameters) = ask(&["CONFIG", "GET", "*"]) else { panic!("CONFIG GET answers with a list") };
    let mut pairs: Vec<(String, String)> = parameters.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
    pairs.retain(|(name, _)| !CHOSEN.contains(&name.as_str()));
    // Redis has them in a table.
    pairs.sort();
    lines.extend(pairs.into_iter().map(|(name, value)| format!("config: {name} = {value}")));
    lines
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?} is no text"),
    }
}
