//! The public API: the names at the root of the crate that its documentation shows.

use super::source::Source;

/// The names that users see, in the order of the alphabet: public and not hidden in `lib.rs`, and exported macros.
pub fn names_shown(sources: &[Source]) -> Vec<String> {
    let of_root = sources.iter().filter(|source| source.path == "src/lib.rs").flat_map(|root| items_shown(&root.text));
    let mut names: Vec<String> = of_root.chain(sources.iter().flat_map(|source| macros_shown(&source.text))).collect();
    names.sort();
    names
}

/// The names that the public items of a file add to their module, except for hidden ones.
fn items_shown(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text.lines();
    let mut attributes = String::new();
    while let Some(line) = rest.next() {
        let Some(item) = line.strip_prefix("pub ") else {
            keep_attributes(&mut attributes, line);
            continue;
        };
        let mut item = item.to_owned();
        while !item.contains([';', '{']) || (item.starts_with("use ") && !item.contains(';')) {
            item += rest.next().unwrap_or(";");
        }
        if !is_hidden(&attributes) {
            names.extend(names_of(&item));
        }
        attributes.clear();
    }
    names
}

/// The macros of a file that are exported and not hidden, each with its mark.
fn macros_shown(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut attributes = String::new();
    for line in text.lines() {
        match line.strip_prefix("macro_rules! ").and_then(|rest| rest.split(' ').next()) {
            Some(name) if attributes.contains("#[macro_export]") && !is_hidden(&attributes) => {
                names.push(format!("{name}!"));
            }
            _ => keep_attributes(&mut attributes, line),
        }
    }
    names
}

/// Adds an attribute to those before an item; anything but a comment ends them.
fn keep_attributes(attributes: &mut String, line: &str) {
    if line.starts_with("#[") {
        attributes.push_str(line);
    } else if !line.starts_with("//") {
        attributes.clear();
    }
}

fn is_hidden(attributes: &str) -> bool {
    attributes.contains("doc(hidden)") || attributes.contains("#[cfg(doctest)]")
}

/// The names that an item adds, without its `pub`.
fn names_of(item: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '*';
    let words = |text: &str| text.split(|c| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    match (item.strip_prefix("use "), item.split_once('{')) {
        (Some(_), Some((_, list))) => words(list),
        (Some(path), None) => words(path.rsplit("::").next().unwrap_or(path)),
        _ => words(item.split_once(' ').map_or(item, |(_, name)| name)).into_iter().take(1).collect(),
    }
}
