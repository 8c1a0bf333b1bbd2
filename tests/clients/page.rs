//! The page in a real browser: Node's own runner runs the tests of `tests/page` with Debian's chromium.
//!
//! They start the program by themselves, as they need it with several configurations. Screenshots of every view are in
//! `target/page` afterwards.

use std::process::Command;

use crate::binary::program;
use crate::programs::{Program, run};

/// Runs test files of `tests/page`, of which each test must have passed.
fn pass(node: &Program, files: &[&str]) {
    let mut command: Command = node.command();
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page"));
    command.env("DUNLIN_BINARY", program());
    let output = run(command.args(["--test", "--test-reporter=tap"]).args(files), "");
    assert!(output.contains("\n# skipped 0\n") && !output.contains("\n# pass 0\n"), "{output}");
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(node) = Program::node_for_the_page() else { return };
    let Some(_) = Program::find("chromium", &["--version"]) else { return };
    pass(&node, &["views.test.mjs", "use.test.mjs", "large.test.mjs", "guards.test.mjs", "inside.test.mjs"]);
}

#[test]
fn every_control_of_the_page_sends_what_it_shows() {
    let Some(node) = Program::node_for_the_page() else { return };
    let Some(_) = Program::find("chromium", &["--version"]) else { return };
    let files = ["edits", "feed", "keys", "load", "rights", "rules", "time"].map(|name| format!("{name}.test.mjs"));
    pass(&node, &files.each_ref().map(String::as_str));
}

#[test]
fn the_files_of_the_page_are_small_typed_and_its_library_is_that_of_its_packages() {
    let Some(node) = Program::node_for_the_page() else { return };
    pass(&node, &["assets.test.mjs", "words.test.mjs", "launchers.test.mjs"]);
}
