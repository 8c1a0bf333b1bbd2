//! The transcript format: text lines in, sections of steps out. See ../README.md for how to write one.
//!
//! It knows the lines of a file but nothing of servers. Each step remembers the lines that its expectation takes up, so
//! that an update can rewrite them and leave all other lines (titles, comments, commands) as their author wrote them.

use super::matching::{Expectation, Expected};
use crate::reply::{Order, Protocol};
use crate::words;
use std::ops::Range;
use std::time::Duration;

/// One `==` section: a story that starts from an empty server.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) steps: Vec<Step>,
}

/// A step: one action, and the expected reply.
#[derive(Debug)]
pub(crate) struct Step {
    /// The line of the file, counted from 1.
    pub(crate) line: usize,
    /// The name of the connection; the one without a name is "".
    pub(crate) connection: String,
    pub(crate) action: Action,
    pub(crate) expected: Expected,
    /// The lines of the expectation, counted from 0; empty where one could be put.
    pub(crate) expected_at: Range<usize>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// `> `: send a command and wait for its reply.
    Call(Vec<Vec<u8>>, Order),
    /// `>& `: send a command and do not wait.
    Send(Vec<Vec<u8>>),
    /// `<`: wait for one more message.
    Receive(Order),
    /// `<< `: send these bytes.
    SendBytes(Vec<u8>),
    /// `>> `: expect these bytes.
    ReceiveBytes,
    /// `%`: read what has gone into the log of changes since the last such step.
    Log,
    /// `@ `: move the clock.
    Advance(Duration),
}

impl Section {
    /// The first words of all commands, in capitals.
    pub(crate) fn commands(&self) -> impl Iterator<Item = String> {
        self.steps.iter().filter_map(|step| match &step.action {
            Action::Call(args, _) | Action::Send(args) => {
                Some(String::from_utf8_lossy(args.first()?).to_ascii_uppercase())
            }
            _ => None,
        })
    }
}

impl Section {
    /// Whether it reads the log of changes.
    pub(crate) fn reads_log(&self) -> bool {
        self.steps.iter().any(|step| step.action == Action::Log)
    }

    /// Whether time passes in it.
    pub(crate) fn waits(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Advance(_)))
    }
}

/// Reads a whole file; an error names its line.
pub(crate) fn parse(text: &str) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let at = |problem: String| format!("line {}: {problem}", index + 1);
        if let Some(title) = line.strip_prefix("== ") {
            sections.push(Section { title: title.to_owned(), steps: Vec::new() });
            open = false;
            continue;
        }
        if line.trim().is_empty() || line == "#" || line.starts_with("# ") {
            open = false;
            continue;
        }
        let section = sections.last_mut().ok_or_else(|| at("a section must start with `== its title`".to_owned()))?;
        if open && section.continues(line) {
            section.extend(line, index).map_err(at)?;
        } else if let Some(step) = directive(line, index).map_err(at)? {
            section.steps.push(step);
            open = true;
        } else if open {
            section.extend(line, index).map_err(at)?;
        } else {
            return Err(at(format!("there is no command above the expectation `{line}`")));
        }
    }
    Ok(sections)
}

impl Section {
    /// Whether `line` is one more `>>` line of the last step.
    fn continues(&self, line: &str) -> bool {
        self.steps.last().is_some_and(|step| {
            step.action == Action::ReceiveBytes && line.starts_with(&format!("{}>>", step.connection))
        })
    }

    /// Takes `line` as part of the last step's expectation.
    fn extend(&mut self, line: &str, index: usize) -> Result<(), String> {
        let step = self.steps.last_mut().ok_or("no step to expect something of")?;
        step.expected_at.end = index + 1;
        match step.action {
            Action::Call(..) | Action::Receive(_) | Action::Log => {
                let (protocol, line) = match line.strip_prefix("3: ") {
                    Some(rest) => (Protocol::Resp3, rest),
                    None => (Protocol::Resp2, line),
                };
                step.expected.lines_mut(protocol).push(Expectation::parse(line));
                Ok(())
            }
            Action::ReceiveBytes => step.expect_bytes(line[step.connection.len() + 2..].trim()),
            _ => Err(format!("nothing can be expected here: `{line}`")),
        }
    }
}

impl Step {
    fn expect_bytes(&mut self, text: &str) -> Result<(), String> {
        if self.expected.closed {
            return Err("nothing can follow `>> closed`".to_owned());
        }
        match text {
            "closed" => self.expected.closed = true,
            text => self.expected.bytes.extend(words::split(text)?.concat()),
        }
        Ok(())
    }
}

/// The step that `line` starts, if it starts one.
fn directive(line: &str, index: usize) -> Result<Option<Step>, String> {
    let name_length = line.find(['>', '<', '@']).unwrap_or(0);
    let (connection, rest) = line.split_at(name_length);
    if !is_connection_name(connection) {
        return Ok(None);
    }
    let (mark, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let action = match mark {
        ">" => Action::Call(command(text)?, Order::Given),
        ">~" => Action::Call(command(text)?, Order::Sorted),
        ">~~" => Action::Call(command(text)?, Order::InnerSorted),
        ">&" => Action::Send(command(text)?),
        "<" => Action::Receive(Order::Given),
        "<~" => Action::Receive(Order::Sorted),
        "<~~" => Action::Receive(Order::InnerSorted),
        "<<" => Action::SendBytes(words::split(text)?.concat()),
        ">>" => Action::ReceiveBytes,
        "%" if line == "%" => Action::Log,
        "@" if connection.is_empty() => Action::Advance(duration(text)?),
        _ => return Ok(None),
    };
    let receives_bytes = action == Action::ReceiveBytes;
    let mut step = Step {
        line: index + 1,
        connection: connection.to_owned(),
        action,
        expected: Expected::default(),
        expected_at: index + 1..index + 1,
    };
    if receives_bytes {
        step.expected_at = index..index + 1;
        step.expect_bytes(text.trim())?;
    }
    Ok(Some(step))
}

fn is_connection_name(name: &str) -> bool {
    name.is_empty()
        || name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn command(text: &str) -> Result<Vec<Vec<u8>>, String> {
    match words::split(text)? {
        words if words.is_empty() => Err("a command must have a name".to_owned()),
        words => Ok(words),
    }
}

/// Parses `+1500ms`, `+2s`, `+3m`, `+4h` or `+5d`; text after it is a remark.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("a time must be written like +1500ms, +2s, +3m, +4h or +5d, not `{text}`");
    let written = text.split_whitespace().next().and_then(|word| word.strip_prefix('+')).ok_or_else(wrong)?;
    let digits = written.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
    let count: u64 = written[..digits].parse().map_err(|_| wrong())?;
    let unit_ms = match &written[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    count.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str = "\
# A remark about the file.
== A key dies when its time is over
> SET k v PX 100
OK
3: (true)
@ +101ms   # over
b>~ KEYS *
1) \"a\"
2) \"b\"

== Raw bytes
<< \"PING\" {x*2}
>> \"+PO\"
>> \"NG\\r\\n\"
>> closed
b<
";

    #[test]
    fn a_file_is_sections_of_steps() {
        let sections = parse(STORY).expect("it is well formed");
        assert_eq!(sections[0].title, "A key dies when its time is over");
        let steps: Vec<_> =
            sections[0].steps.iter().map(|step| (step.line, &*step.connection, &step.expected_at)).collect();
        assert_eq!(steps, [(3, "", &(3..5)), (6, "", &(6..6)), (7, "b", &(7..9))]);
        assert_eq!(sections[0].steps[1].action, Action::Advance(Duration::from_millis(101)));
        assert_eq!(sections[0].commands().collect::<Vec<_>>(), ["SET", "KEYS"]);
    }

    #[test]
    fn byte_lines_join_into_one_expectation() {
        let raw = &parse(STORY).expect("it is well formed")[1].steps;
        assert_eq!(raw[0].action, Action::SendBytes(b"PINGxx".to_vec()));
        assert_eq!(raw[1].expected.bytes, b"+PONG\r\n");
        assert!(raw[1].expected.closed);
        assert_eq!(raw[1].expected_at, 12..15);
        assert_eq!(raw[2].action, Action::Receive(Order::Given));
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        assert_eq!(
            parse("== t\n\nOK\n").expect_err("it is wrong"),
            "line 3: there is no command above the expectation `OK`"
        );
        assert!(parse("> PING\n").expect_err("it is wrong").starts_with("line 1: "));
        assert!(parse("== t\n@ 5s\n").expect_err("it is wrong").starts_with("line 2: "));
        assert!(parse("== t\n> SET \"k\n").expect_err("it is wrong").starts_with("line 2: "));
    }
}
