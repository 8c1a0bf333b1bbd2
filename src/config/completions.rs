//! Tests that the man page and the shell completions list all parameters.
//!
//! To rewrite what they have of the rows: `UPDATE=1 cargo test --lib completions`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::parameter::Parameter;
use super::rows::ALL;

/// The marks around the derived lines of a file, whatever sign its comments begin with.
const BEGIN: &str = " begin: parameters\n";
const END: &str = " end: parameters\n";

/// The parameters that users set, each with the values it can have, if they are few.
fn parameters() -> impl Iterator<Item = (&'static str, String)> {
    let own = [
        "aof-checksum",
        "cluster",
        "load",
        "rdb-version",
        "replicas",
        "test-kit",
        "announce",
        "end-with",
        "free-port",
        "idle-end",
        "port-file",
        "page-bind",
        "page-host",
        "page-port",
        "page-token",
    ];
    let all = ALL.iter().copied().flatten().filter(move |row| !row.is_hidden || own.contains(&row.name));
    let mut all: Vec<&Parameter> = all.collect();
    all.sort_by_key(|row| row.name);
    all.into_iter().map(|row| (row.name, row.choices().join(" ")))
}

fn for_bash() -> String {
    let (mut lines, mut words) = (String::new(), String::new());
    for (name, values) in parameters() {
        write!(words, " --{name}").expect("a String takes all");
        if !values.is_empty() {
            writeln!(lines, "        --{name}) words='{values}' ;;").expect("a String takes all");
        }
    }
    format!("{lines}        *) words+='{words}' ;;\n")
}

fn for_zsh() -> String {
    parameters().fold(String::new(), |lines, (name, values)| {
        let values = if values.is_empty() { "_files".to_owned() } else { format!("({values})") };
        lines + &format!("    '--{name}:value:{values}'\n")
    })
}

fn for_fish() -> String {
    parameters().fold(String::new(), |lines, (name, values)| {
        let values = if values.is_empty() { "-r".to_owned() } else { format!("-x -a '{values}'") };
        lines + &format!("complete -c dunlin -l {name} {values}\n")
    })
}

fn for_man() -> String {
    parameters().fold(String::new(), |lines, (name, values)| {
        let values = if values.is_empty() { "\\fIvalue\\fR".to_owned() } else { values.replace(' ', " | ") };
        let name = name.replace('-', "\\-");
        lines + &format!(".TP\n.B \\-\\-{name}\n{}\n", values.replace('-', "\\-"))
    })
}

#[test]
fn the_man_page_and_the_completions_have_all_parameters() {
    let files = [
        ("completions/dunlin.bash", for_bash()),
        ("completions/_dunlin", for_zsh()),
        ("completions/dunlin.fish", for_fish()),
        ("docs/dunlin.1", for_man()),
    ];
    for (name, derived) in files {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let text = fs::read_to_string(&path).expect("it can be read");
        let (before, rest) = text.split_once(BEGIN).expect("it has a mark for the parameters");
        let (found, after) = rest.split_once(END).expect("it has a mark behind the parameters");
        // The line of the second mark begins with the sign for a comment.
        let (found, sign) = found.rsplit_once('\n').map_or(("", found), |(lines, sign)| (lines, sign));
        if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
            let written = format!("{before}{BEGIN}{derived}{sign}{END}{after}");
            fs::write(path, written).expect("it can be written");
        } else {
            assert_eq!(found, derived.trim_end(), "write {name} anew with UPDATE=1 cargo test --lib completions");
        }
    }
}
