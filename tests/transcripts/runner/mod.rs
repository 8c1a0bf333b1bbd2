//! Plays transcripts: finds the files, plays their sections against a target, and reports differences.

pub(crate) mod format;
pub(crate) mod in_process;
pub(crate) mod log;
pub(crate) mod matching;
pub(crate) mod oracle;
pub(crate) mod over_tcp;
pub(crate) mod play;
pub(crate) mod target;
pub(crate) mod update;

use crate::reply::Protocol;
use crate::words;
use dunlin::engine::Table;
use format::{Action, Section, Step};
use play::{Got, Player};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use target::Target;
use update::Answers;

/// One transcript file.
pub(crate) struct Transcript {
    path: PathBuf,
    text: String,
    sections: Vec<Section>,
}

impl Transcript {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let sections = format::parse(&text).map_err(|error| format!("{}: {error}", short(path)))?;
        Ok(Self { path: path.to_owned(), text, sections })
    }

    /// Plays every section in `protocol`; gives one report for each that differs.
    pub(crate) fn check(&self, target: &mut dyn Target, name: &str, protocol: Protocol) -> Vec<String> {
        let mut reports = Vec::new();
        if protocol == Protocol::Resp3 && !target.knows(&[b"HELLO".to_vec()]) {
            return reports;
        }
        for section in self.sections.iter() {
            if section.unknown(target).is_some() {
                continue;
            }
            let problem = first_difference(section, target, protocol)
                .unwrap_or_else(|error| Some((section.steps.first().map_or(0, |step| step.line), error.to_string())));
            if let Some((line, text)) = problem {
                reports.push(format!("{}:{line} [{name}, {protocol:?}] {}\n{text}", short(&self.path), section.title));
            }
        }
        reports
    }

    /// The full names of all commands in sections that read the log of changes.
    pub(crate) fn logged_commands(&self, table: &Table) -> Vec<String> {
        let sections = self.sections.iter().filter(|section| section.reads_log());
        let words = sections.flat_map(|section| section.steps.iter()).filter_map(|step| match &step.action {
            Action::Call(words, _) | Action::Send(words) => Some(words),
            _ => None,
        });
        let resolved = words.filter_map(|words| {
            let id = table.find(words.first()?)?;
            let child = words.get(1).and_then(|word| table.find_subcommand(id, word));
            Some(table.entry(child.unwrap_or(id)).name.clone())
        });
        resolved.collect()
    }

    /// Prints the number of sections that `check` leaves out for `target`, and the commands that are missing.
    pub(crate) fn report_left_out(&self, target: &dyn Target) {
        let unknown: Vec<String> = self.sections.iter().filter_map(|section| section.unknown(target)).collect();
        if !unknown.is_empty() {
            let names = BTreeSet::from_iter(&unknown);
            eprintln!("{}: {} sections left out, no {names:?}", short(&self.path), unknown.len());
        }
    }

    /// Rewrites the file where the replies of `target` differ; returns the new text of the file.
    pub(crate) fn update(&self, target: &mut dyn Target) -> Result<Self, String> {
        let answers: io::Result<Vec<_>> = self.sections.iter().map(|section| all_answers(section, target)).collect();
        let answers = answers.map_err(|error| format!("{}: {error}", short(&self.path)))?;
        let text = update::rewrite(&self.text, &self.sections, &answers);
        if text != self.text {
            std::fs::write(&self.path, text).map_err(|error| format!("{}: {error}", short(&self.path)))?;
        }
        Self::read(&self.path)
    }
}

impl Section {
    /// The first command of this section that `target` lacks. A command that the transcript expects to be unknown does
    /// not count.
    fn unknown(&self, target: &dyn Target) -> Option<String> {
        self.steps.iter().find_map(|step| {
            let (Action::Call(words, _) | Action::Send(words)) = &step.action else { return None };
            let named = match (target.knows(words), target.knows(&words[..1])) {
                (true, _) => return None,
                (false, true) if step.expected.is_unknown("subcommand") => return None,
                (false, false) if step.expected.is_unknown("command") => return None,
                (false, true) => &words[..2],
                (false, false) => &words[..1],
            };
            Some(String::from_utf8_lossy(&named.join(&b' ')).to_ascii_uppercase())
        })
    }
}

/// The most times that a section is played while the machine is late.
const ATTEMPTS: usize = 5;

/// The first step whose answer is not the expected one. A real server's time goes on while the machine is busy
/// elsewhere, so an answer of a player that was late says nothing about the server: its section is played again.
fn first_difference(
    section: &Section,
    target: &mut dyn Target,
    protocol: Protocol,
) -> io::Result<Option<(usize, String)>> {
    let mut attempts = 1;
    loop {
        target.fresh(section)?;
        let mut player = Player::new(target, protocol);
        let difference = difference_once(section, &mut player, protocol)?;
        let is_in_doubt = difference.is_some() && section.waits() && player.is_late();
        if !is_in_doubt || attempts == ATTEMPTS {
            return Ok(difference);
        }
        attempts += 1;
    }
}

/// Plays a section once, up to the first step whose answer is not the expected one.
fn difference_once(
    section: &Section,
    player: &mut Player<'_>,
    protocol: Protocol,
) -> io::Result<Option<(usize, String)>> {
    let clock = player.clock();
    for step in &section.steps {
        match player.perform(step)? {
            Got::Beyond => break,
            got if !got.fits(step, protocol, clock) => return Ok(Some((step.line, difference(step, protocol, &got)))),
            _ => {}
        }
    }
    Ok(None)
}

fn all_answers(section: &Section, target: &mut dyn Target) -> io::Result<Vec<Answers>> {
    let resp2 = answers(section, target, Protocol::Resp2)?;
    let resp3 = answers(section, target, Protocol::Resp3)?;
    Ok(resp2.into_iter().zip(resp3).map(|(resp2, resp3)| Answers { resp2, resp3 }).collect())
}

fn answers(section: &Section, target: &mut dyn Target, protocol: Protocol) -> io::Result<Vec<Got>> {
    target.fresh(section)?;
    let mut player = Player::new(target, protocol);
    let mut answers = Vec::new();
    for step in &section.steps {
        let got = player.perform(step)?;
        let ends = got == Got::Beyond;
        answers.push(got);
        if ends {
            break;
        }
    }
    Ok(answers)
}

fn difference(step: &Step, protocol: Protocol, got: &Got) -> String {
    let request = match &step.action {
        Action::Call(args, _) => args.iter().map(|arg| words::quote(arg)).collect::<Vec<_>>().join(" "),
        _ => "(reading on)".to_owned(),
    };
    let (expected, got) = match got {
        Got::Bytes(bytes, closed) => {
            let printed =
                |bytes: &[u8], closed| vec![words::quote(bytes), if closed { "closed" } else { "" }.to_owned()];
            (printed(&step.expected.bytes, step.expected.closed), printed(bytes, *closed))
        }
        Got::Lines(lines) => {
            (step.expected.lines(protocol).iter().map(matching::Expectation::written).collect(), lines.clone())
        }
        Got::Done | Got::Beyond => return String::new(),
    };
    format!("    {}> {request}\n  expected:\n{}  got:\n{}", step.connection, indented(&expected), indented(&got))
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("    {line}\n")).collect()
}

/// The files that the variable TRANSCRIPT names, which fails when there is none; all files without it.
pub(crate) fn transcripts() -> Vec<PathBuf> {
    let wanted = std::env::var("TRANSCRIPT").unwrap_or_default();
    let files = named(&wanted);
    assert!(
        !files.is_empty(),
        "TRANSCRIPT={wanted}: no transcript has that in its path, and none calls such a command"
    );
    files
}

/// The files that `wanted` names: the file of that command; where it has none of its own, those that call it; where
/// there is no such command, those with the word in their path. Without a word all files.
pub(crate) fn named(wanted: &str) -> Vec<PathBuf> {
    let files = all_files();
    if wanted.is_empty() {
        return files;
    }
    let ways: [&dyn Fn(&Path) -> bool; 3] =
        [&|path| path.file_stem().is_some_and(|stem| stem == wanted), &|path| calls(path, wanted), &|path| {
            short(path).contains(wanted)
        }];
    let found = ways.iter().map(|fits| files.iter().filter(|path| fits(path)).cloned().collect::<Vec<_>>());
    found.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
}

fn all_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let read = std::fs::read_dir(folder).expect("the folder of the transcripts can be read");
        read.map(|entry| entry.expect("an entry of the folder can be read").path()).collect()
    };
    let mut files: Vec<PathBuf> =
        entries(&root).iter().filter(|path| path.is_dir()).flat_map(|path| entries(path)).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "txt"));
    files.sort();
    files
}

fn calls(path: &Path, command: &str) -> bool {
    let sections = Transcript::read(path).map_or_else(|_| Vec::new(), |transcript| transcript.sections);
    sections.iter().any(|section| section.commands().any(|name| name.eq_ignore_ascii_case(command)))
}

/// `path` as seen from the crate.
fn short(path: &Path) -> String {
    path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(path).display().to_string()
}

/// Runs `check` for each file, a few at a time, and fails with everything that it reports.
pub(crate) fn for_each_file(check: impl Fn(&Path) -> Vec<String> + Sync) {
    const WORKERS: usize = 4;
    let files = Mutex::new(transcripts().into_iter());
    let reports = Mutex::new(Vec::new());
    let next = || files.lock().expect("no worker panics while it holds the list").next();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(file) = next() {
                    let found = check(&file);
                    reports.lock().expect("no worker panics while it holds the reports").extend(found);
                }
            });
        }
    });
    let mut reports: Vec<String> = reports.into_inner().expect("all workers have ended");
    reports.sort();
    assert!(reports.is_empty(), "{} sections differ\n\n{}", reports.len(), reports.join("\n"));
}
