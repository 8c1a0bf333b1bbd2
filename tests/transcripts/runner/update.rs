//! Rewrites the expectations of a file from the replies of a real server.
//!
//! Only expectations that no longer hold change. A line that is a glob, or near, stays unchanged: when it no longer
//! matches, the check that follows the update reports it, and a person decides.

use super::format::{Action, Section, Step};
use super::matching::{self, Clock, Expectation};
use super::play::Got;
use crate::reply::{self, Protocol};
use crate::words::quote;

/// The replies of one step in both protocols.
pub(crate) struct Answers {
    pub resp2: Got,
    pub resp3: Got,
}

/// `text` with the expectations of `sections` brought in line with `answers`, one list for each section.
pub(crate) fn rewrite(text: &str, sections: &[Section], answers: &[Vec<Answers>]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let steps = sections.iter().zip(answers).flat_map(|(section, answers)| section.steps.iter().zip(answers));
    for (step, answers) in steps.collect::<Vec<_>>().into_iter().rev() {
        if let Some(expectation) = replacement(step, answers) {
            lines.splice(step.expected_at.clone(), expectation);
        }
    }
    lines.join("\n") + "\n"
}

/// The lines that `step` should expect, where they differ from those it has.
fn replacement(step: &Step, answers: &Answers) -> Option<Vec<String>> {
    match (&answers.resp2, &answers.resp3) {
        (Got::Lines(resp2), Got::Lines(resp3)) => {
            let (old2, old3) = (step.expected.lines(Protocol::Resp2), step.expected.lines(Protocol::Resp3));
            if matching::accepts(old2, resp2, Clock::Wall) && matching::accepts(old3, resp3, Clock::Wall) {
                return None;
            }
            let (new2, new3) = (merged(old2, resp2), merged(old3, resp3));
            let mut lines: Vec<String> = new2.iter().map(Expectation::written).collect();
            if new3 != new2 {
                lines.extend(new3.iter().map(|line| format!("3: {}", line.written())));
            }
            Some(lines)
        }
        (Got::Bytes(bytes, closed), _) if step.action == Action::ReceiveBytes => {
            let same = *bytes == step.expected.bytes && *closed == step.expected.closed;
            (!same).then(|| byte_lines(&step.connection, bytes, *closed))
        }
        _ => None,
    }
}

/// `lines` as exact expectations, but with the globs of `old` where they are on the same line.
fn merged(old: &[Expectation], lines: &[String]) -> Vec<Expectation> {
    if matching::accepts(old, lines, Clock::Wall) {
        return old.to_vec();
    }
    let same_shape = old.len() == lines.len();
    let kept = |index: usize, line: &String| match old.get(index) {
        Some(glob @ (Expectation::Glob(_) | Expectation::Near(_)))
            if same_shape || matching::accepts(std::slice::from_ref(glob), std::slice::from_ref(line), Clock::Wall) =>
        {
            glob.clone()
        }
        _ => Expectation::Exact(line.clone()),
    };
    let mut new: Vec<_> = lines.iter().enumerate().map(|(index, line)| kept(index, line)).collect();
    if old.last() == Some(&Expectation::Rest) && new.len() >= old.len() {
        new.truncate(old.len() - 1);
        new.push(Expectation::Rest);
    }
    new
}

/// One `>>` line for each reply in `bytes`, then the end.
fn byte_lines(connection: &str, bytes: &[u8], closed: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = reply::decode(rest).map_or(rest.len(), |(_, used)| used);
        lines.push(format!("{connection}>> {}", quote(&rest[..length])));
        rest = &rest[length..];
    }
    if closed {
        lines.push(format!("{connection}>> closed"));
    }
    if lines.is_empty() {
        lines.push(format!("{connection}>>"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::format::parse;
    use super::*;

    fn lines(text: &str) -> Got {
        Got::Lines(text.lines().map(str::to_owned).collect())
    }

    #[test]
    fn an_update_rewrites_only_expectations_that_no_longer_hold() {
        let text = "== t\n> A\nold\n# kept\n> B\n? \"8.*\"\n> C\n";
        let sections = parse(text).expect("it is well formed");
        let answers = vec![vec![
            Answers { resp2: lines("new"), resp3: lines("new") },
            Answers { resp2: lines("\"8.0\""), resp3: lines("\"8.0\"") },
            Answers { resp2: lines("\"1\""), resp3: lines("(double) 1") },
        ]];
        let expected = "== t\n> A\nnew\n# kept\n> B\n? \"8.*\"\n> C\n\"1\"\n3: (double) 1\n";
        assert_eq!(rewrite(text, &sections, &answers), expected);
    }

    #[test]
    fn an_update_writes_bytes_reply_by_reply() {
        let text = "== t\nb<< \"PING\\r\\n\"\nb>>\n";
        let got = || Got::Bytes(b"+PONG\r\n:1\r\n".to_vec(), true);
        let answers =
            vec![vec![Answers { resp2: Got::Done, resp3: Got::Done }, Answers { resp2: got(), resp3: got() }]];
        let expected = "== t\nb<< \"PING\\r\\n\"\nb>> \"+PONG\\r\\n\"\nb>> \":1\\r\\n\"\nb>> closed\n";
        assert_eq!(rewrite(text, &parse(text).expect("it is well formed"), &answers), expected);
    }
}
