//! The list of mutations, `tests/mutations/list`: whether each still fits the code, and whether each hole has one.

use std::collections::BTreeSet;

/// Holes without a mutation, each with the reason.
const WITHOUT: &[(&[u32], &str)] = &[
    (
        &[1, 24, 41, 49, 50],
        "what closes them is C code of Lua, or unsafe code around it, for which a sanitizer watches",
    ),
    (&[5, 44], "nothing here has a limit that a long argument or line could pass"),
    (&[9], "there is no unsafe code that could write behind the requested size"),
    (&[16, 20, 51, 54, 58, 60, 67, 70, 74, 76, 77, 90], "there is no such part, and the test checks that"),
    (&[8], "a register has six bits, and there is a place for each value that these can have"),
    (&[15, 18], "nothing multiplies a setting with the size of what is stored"),
    (&[46], "a connection that ends is dropped with all that it had: there is no line that closes it"),
    (&[73], "no memory is let go while a reply is written"),
    (&[75], "no part of a message has a buffer of a fixed size"),
    (&[68], "it is open, as in Redis 8.0"),
];

/// The faults of one change: its old lines must be in the file exactly once.
pub fn faults_of(list: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for entry in list.split("\n== ").skip(1) {
        let title = entry.lines().next().unwrap_or_default();
        let mut tests = 0;
        for change in entry.split("\nfile: ").skip(1) {
            let mut lines = change.lines();
            let path = lines.next().unwrap_or_default();
            let lines: Vec<&str> = lines.collect();
            let old: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix('-')).collect();
            let text = read(path).unwrap_or_default();
            let found = text.matches(&old.join("\n")).count();
            if old.is_empty() || found != 1 {
                faults.push(format!("{title}: {path} has its old lines {found} times"));
            }
            tests += lines.iter().filter(|line| line.starts_with("test: ")).count();
        }
        if tests == 0 {
            faults.push(format!("{title}: names no test"));
        }
    }
    faults
}

/// Holes that have neither a mutation nor a reason, or both.
pub fn holes_without(list: &str) -> Vec<u32> {
    let titles = list.lines().filter_map(|line| line.strip_prefix("== "));
    let numbers = titles.filter_map(|title| title.split(':').next());
    let tried: BTreeSet<u32> = numbers.flat_map(str::split_whitespace).filter_map(|word| word.parse().ok()).collect();
    let excused: BTreeSet<u32> = WITHOUT.iter().flat_map(|(holes, _)| holes.iter().copied()).collect();
    (1..=90).filter(|hole| tried.contains(hole) == excused.contains(hole)).collect()
}
