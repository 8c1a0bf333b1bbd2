//! The rows of the table, read from the texts in `groups`: the commands that are timed, and the data they need.
//!
//! A line of a text is one of these, and the lines are carried out in their order:
//!
//! - `= name` begins a group; the servers are empty then;
//! - `+ command` or `+ 100 * command` stores data: the command is sent once, or 100 times;
//! - `& command` or `& 100 * command` opens one client or 100, which send the command and then read whatever arrives,
//!   until the group ends;
//! - `name: command ; command` is a row: its commands are sent together, and all of them are timed;
//! - `! COMMAND|SUBCOMMAND: reason` gives the reason why a command has no row; `*` stands for all subcommands;
//! - `# comment`.
//!
//! `benches/support/requests.rs` describes what a command may contain; `{reply}` is the text that the last line with a
//! `+` returned.

/// The texts, in the order in which they are run.
const TEXTS: &[&str] = &[
    include_str!("groups/strings.txt"),
    include_str!("groups/keys.txt"),
    include_str!("groups/lists.txt"),
    include_str!("groups/hashes.txt"),
    include_str!("groups/sets.txt"),
    include_str!("groups/sorted-sets.txt"),
    include_str!("groups/streams.txt"),
    include_str!("groups/bits-and-sketches.txt"),
    include_str!("groups/geo.txt"),
    include_str!("groups/vector-sets.txt"),
    include_str!("groups/scripts.txt"),
    include_str!("groups/publishing.txt"),
    include_str!("groups/server.txt"),
];

/// Rows that share their data.
pub struct Group {
    pub name: &'static str,
    pub steps: Vec<Step>,
}

/// One line of a group.
pub enum Step {
    Fill { times: u64, command: &'static str },
    Listen { clients: u64, command: &'static str },
    Time(Row),
}

/// Commands that are sent together and timed.
#[derive(Clone)]
pub struct Row {
    pub name: &'static str,
    pub operation: Vec<&'static str>,
}

/// All groups.
///
/// # Errors
/// With the first line that is none of those above.
pub fn groups() -> Result<Vec<Group>, String> {
    let mut groups: Vec<Group> = Vec::new();
    for line in lines().filter(|line| !line.starts_with('!')) {
        if let Some(name) = line.strip_prefix("= ") {
            groups.push(Group { name, steps: Vec::new() });
        } else {
            let group = groups.last_mut().ok_or("a line is before the first group")?;
            group.steps.push(step(line).ok_or_else(|| format!("a line is no row: {line}"))?);
        }
    }
    Ok(groups)
}

/// The names of `commands` that have neither a row nor a reason, and those that have both. A subcommand is written as
/// `container|subcommand`, all in lower case.
///
/// # Errors
/// As of [`groups`].
pub fn faults(commands: &[String]) -> Result<Vec<String>, String> {
    let groups = groups()?;
    let rows = groups.iter().flat_map(|group| &group.steps).filter_map(|step| match step {
        Step::Time(row) => Some(row),
        _ => None,
    });
    let timed: Vec<String> = rows.flat_map(|row| &row.operation).map(|command| command.to_lowercase()).collect();
    let has_row = |name: &str| {
        let words = name.replace('|', " ").to_lowercase();
        timed
            .iter()
            .any(|command| command.strip_prefix(&words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
    };
    let has_reason = |name: &str| {
        reasons().any(|(command, _)| match command.strip_suffix('*') {
            Some(container) => name.starts_with(container) && !has_row(name),
            None => name == command,
        })
    };
    let fault = |name: &String| match (has_row(name), has_reason(name)) {
        (false, false) => Some(format!("{name} has neither a row nor a reason")),
        (true, true) => Some(format!("{name} has a row, and a reason to have none")),
        _ => None,
    };
    let unknown = reasons().filter(|(name, _)| !name.ends_with('*') && !commands.contains(name));
    Ok(commands.iter().filter_map(fault).chain(unknown.map(|(name, _)| format!("there is no {name}"))).collect())
}

/// The commands without a row, in lower case, with the reason of each.
pub fn reasons() -> impl Iterator<Item = (String, &'static str)> {
    lines().filter_map(|line| line.strip_prefix("! ")?.split_once(": ")).map(|(name, why)| (name.to_lowercase(), why))
}

fn lines() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn step(line: &'static str) -> Option<Step> {
    if let Some(rest) = line.strip_prefix("+ ") {
        let (times, command) = repeated(rest);
        return Some(Step::Fill { times, command });
    }
    if let Some(rest) = line.strip_prefix("& ") {
        let (clients, command) = repeated(rest);
        return Some(Step::Listen { clients, command });
    }
    let (name, operation) = line.split_once(": ")?;
    Some(Step::Time(Row { name, operation: operation.split(" ; ").collect() }))
}

/// The number before ` * `, or one, and the rest.
fn repeated(rest: &'static str) -> (u64, &'static str) {
    let counted = rest.split_once(" * ").and_then(|(count, command)| Some((count.parse().ok()?, command)));
    counted.unwrap_or((1, rest))
}
