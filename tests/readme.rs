//! README's table of commands equals the table that the rows give.
//!
//! To rewrite it: `UPDATE=1 cargo test --test readme`.

use std::collections::BTreeMap;

use dunlin::commands::WITH_TEST_KIT;
use dunlin::engine::Command;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const START: &str = "<!-- commands -->\n";
const END: &str = "<!-- end -->";

#[test]
fn the_table_of_commands_in_readme_matches_the_rows() {
    let readme = std::fs::read_to_string(README).expect("README.md can be read");
    let (before, rest) = readme.split_once(START).expect("README.md has a mark for the table");
    let (found, after) = rest.split_once(END).expect("README.md has a mark after the table");
    let table = table();
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let written = format!("{before}{START}{table}{END}{after}");
        std::fs::write(README, written).expect("README.md can be written");
    } else {
        assert_eq!(found, table, "write it anew with UPDATE=1 cargo test --test readme");
    }
}

/// A line for each group of commands, with a container's subcommands in brackets after it.
fn table() -> String {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for command in WITH_TEST_KIT.iter().copied().flatten() {
        let group = if command.name == "DUNLIN" { "the test kit" } else { command.family.group() };
        groups.entry(group).or_default().push(table_row(command));
    }
    let lines = groups.into_iter().map(|(group, mut commands)| {
        commands.sort_unstable();
        format!("| {group} | {} |\n", commands.join(", "))
    });
    format!("| group | commands |\n|---|---|\n{}", lines.collect::<String>())
}

fn table_row(command: &Command) -> String {
    if !command.is_container() {
        return command.name.to_owned();
    }
    let mut subcommands: Vec<&str> = command.subcommands.iter().map(|subcommand| subcommand.name).collect();
    subcommands.sort_unstable();
    format!("{} ({})", command.name, subcommands.join(", "))
}
