//! How many lines the metrics have: as many as there are commands, databases and measures, whatever clients do.

use dunlin::{Client, Reply};

use crate::measures::{text, with_page};

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
    let after = text(&server);
    let names = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name.to_owned()).collect()
    };
    let fresh: Vec<String> = names(&after).into_iter().filter(|name| !names(&before).contains(name)).collect();
    assert!(fresh.is_empty(), "{fresh:?}");
}
