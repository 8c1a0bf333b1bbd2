//! How many lines the metrics have: as many as there are commands, databases and measures, whatever clients do.

use dunlin::{Client, Reply};

use crate::measures::{run, text, with_page};
use crate::{call, error};

/// The most measures that a world has.
const MEASURES: u8 = 100;

/// The lines after each command was called once, and their bytes: fourteen for a command, with the name and the help of
/// each metric and what there is of each database.
const MAX_LINES: usize = 5500;
const MAX_BYTES: usize = 320_000;

/// Commands that end the client or the server, change what it is, reset its statistics, write files, or wait while the
/// clock stands still.
const LEFT_OUT: [&str; 33] = [
    "bgrewriteaof",
    "bgsave",
    "blmove",
    "blmpop",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzmpop",
    "bzpopmax",
    "bzpopmin",
    "client|kill",
    "client|pause",
    "client|reply",
    "config|resetstat",
    "debug",
    "dunlin",
    "exec",
    "failover",
    "hello",
    "monitor",
    "multi",
    "psubscribe",
    "psync",
    "quit",
    "replicaof",
    "save",
    "shutdown",
    "slaveof",
    "ssubscribe",
    "subscribe",
    "sync",
    "wait",
    "waitaof",
];

/// The names of commands and subcommands with the words that they need.
fn commands(rows: &Reply) -> Vec<(String, usize)> {
    let mut all = Vec::new();
    for row in rows.items().unwrap_or_default() {
        let Some([name, words, .., subcommands]) = row.items() else { continue };
        let name = name.text().expect("it has a name").into_owned();
        let least = words.integer().expect("it has an arity").unsigned_abs() as usize;
        all.push((name, least));
        all.extend(commands(subcommands));
    }
    all
}

/// Calls each command with as many words as it needs; most refuse them.
fn call_each(client: &mut Client) -> usize {
    let all = commands(&client.call(["COMMAND"]).expect("the server answers"));
    let is_called = |name: &str| !LEFT_OUT.contains(&name) && !name.starts_with("dunlin|");
    for (name, least) in all.iter().filter(|(name, _)| is_called(name)) {
        let mut words: Vec<&str> = name.split('|').collect();
        words.resize(words.len().max(*least), "1");
        // That of a command which needs more words is an error, which is counted as well.
        let _ = client.call(&words);
    }
    all.len()
}

#[test]
fn the_metrics_have_as_many_lines_whatever_the_keys_and_the_clients_are() {
    let (server, mut client) = with_page();
    let known = call_each(&mut client);
    let before = text(&server);
    let lines = |text: &str| text.lines().count();
    assert!(known > 300 && lines(&before) > 10 * 200, "{known} commands, {} lines", lines(&before));
    assert!(lines(&before) <= MAX_LINES && before.len() <= MAX_BYTES, "{} in {}", before.len(), lines(&before));
    for number in 0..2000 {
        for words in [
            ["SET", &format!("key:{number}"), "v"],
            ["PUBLISH", &format!("channel:{number}"), "v"],
            ["CLIENT", "SETNAME", &format!("client:{number}")],
            ["XADD", &format!("stream:{number}"), "*"],
            [&format!("unknown-{number}"), "", ""],
        ] {
            let _ = client.call(words);
        }
    }
    let fresh: Vec<String> = names(&text(&server)).into_iter().filter(|name| !names(&before).contains(name)).collect();
    assert!(fresh.is_empty(), "{fresh:?}");
}

/// The names and labels of the samples, and the lines about families.
fn names(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name.to_owned()).collect()
}

/// The most lines of a measure: sixteen buckets of a histogram with their sum and number, and five more of it.
const OF_MEASURE: usize = 23;

#[test]
fn a_measure_has_as_many_lines_whatever_it_measures() {
    let (server, mut client) = with_page();
    let of_measures = |text: &str| {
        let samples = names(text).into_iter();
        samples.filter(|name| ["queue=", "set="].iter().any(|label| name.contains(label))).collect::<Vec<_>>()
    };
    for number in 0..MEASURES {
        let (name, keys) = (format!("measure-{number}"), format!("{number}:*"));
        match number % 3 {
            0 => call(&mut client, ["DUNLIN", "MEASURE", "SET", &name, &keys]),
            1 => call(&mut client, ["DUNLIN", "MEASURE", "ZSET", &name, &keys, "SECONDS", "PROCESSING", "doing:*"]),
            _ => {
                let roles = ["PROCESSING", "doing:*", "FAILED", "dead:*"];
                call(&mut client, [&["DUNLIN", "MEASURE", "QUEUE", &name, &keys], &roles[..]].concat())
            }
        };
    }
    let refused = error(&mut client, ["DUNLIN", "MEASURE", "SET", "another", "key"]);
    assert!(refused.contains("max number of measures reached"), "{refused}");
    let before = of_measures(&text(&server));
    let most = usize::from(MEASURES) * OF_MEASURE;
    assert!(before.len() > usize::from(MEASURES) && before.len() <= most, "{} lines", before.len());
    for number in 0..MEASURES {
        for key in ["a", "b"].map(|name| format!("{number}:{name}")) {
            match number % 3 {
                0 => run(&mut client, &[&format!("SADD {key} a b"), &format!("SISMEMBER {key} a")]),
                1 => run(&mut client, &[&format!("ZADD {key} 1 a 2 b"), &format!("ZPOPMIN {key}")]),
                _ => run(&mut client, &[&format!("RPUSH {key} a b"), &format!("LMOVE {key} doing:1 LEFT LEFT")]),
            }
        }
    }
    let after = text(&server);
    let cardinality = "\ndunlin_set_cardinality{set=\"measure-99\"} 4\n";
    assert!(after.contains(cardinality), "{after}");
    assert_eq!(of_measures(&after), before);
}
