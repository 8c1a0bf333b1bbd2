//! The text of an ACL file: a line for each user, in the form of ACL LIST.
//!
//! A file is loaded as a whole or not at all; all of its faults are reported at once, in Redis's words. This module
//! opens no file.

use std::fmt::Write;

use super::{Commands, RuleError, User, Users, is_name};
use crate::value::number::until_nul;

/// The rules, with a selector that was split into several words joined to one word again.
///
/// # Errors
/// The index of the word that opens a bracket which is not closed.
pub fn merged(words: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, usize> {
    let mut rules = Vec::new();
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (index, word) in words.iter().enumerate() {
        open = match open {
            None if word.starts_with(b"(") && !word.ends_with(b")") => Some((index, word.clone())),
            None => {
                rules.push(word.clone());
                None
            }
            Some((start, mut selector)) => {
                selector.push(b' ');
                selector.extend_from_slice(until_nul(word));
                if word.ends_with(b")") {
                    rules.push(selector);
                    None
                } else {
                    Some((start, selector))
                }
            }
        };
    }
    open.map_or(Ok(rules), |(start, _)| Err(start))
}

/// The faults of a file, as one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

const NOTHING_CHANGED: &str =
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";

/// Reads the users of a file; the default one is added if the file does not have it. `path` is the file's name in
/// error messages.
///
/// # Errors
/// All faults of the file.
pub fn parse(text: &[u8], path: &str, all_channels: bool, commands: &dyn Commands) -> Result<Users, Fault> {
    let mut reader = Reader { path, all_channels, commands, read: Vec::new(), faults: String::new() };
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = trimmed(line, b" \t\r\n");
        if !line.is_empty() {
            // Writing into a text does not fail.
            let _ = reader.take(line, index + 1);
        }
    }
    if !reader.faults.is_empty() {
        return Err(Fault(reader.faults + NOTHING_CHANGED));
    }
    let mut users = Users::default();
    for user in reader.read {
        users.put(user);
    }
    Ok(users)
}

struct Reader<'r> {
    path: &'r str,
    all_channels: bool,
    commands: &'r dyn Commands,
    read: Vec<User>,
    faults: String,
}

impl Reader<'_> {
    fn take(&mut self, line: &[u8], number: usize) -> std::fmt::Result {
        let (path, faults) = (self.path, &mut self.faults);
        let words: Vec<Vec<u8>> = line.split(|&byte| byte == b' ').map(<[u8]>::to_vec).collect();
        let (name, rules) = match words.as_slice() {
            [keyword, name, rules @ ..] if keyword == b"user" => (name, rules),
            _ => return write!(faults, "{path}:{number} should start with user keyword followed by the username. "),
        };
        let shown = String::from_utf8_lossy(until_nul(name));
        if !is_name(name) {
            return write!(faults, "'{path}:{number}: username '{shown}' contains invalid characters. ");
        }
        if self.read.iter().any(|user| user.name() == name.as_slice()) {
            return write!(faults, "WARNING: Duplicate user '{shown}' found on line {number}. ");
        }
        match merged(rules) {
            Ok(rules) => self.add(name, &rules, number),
            Err(_) => write!(faults, "{path}:{number}: Unmatched parenthesis in selector definition."),
        }
    }

    /// Adds a user. Of its faults, all unknown names are reported, and the first one of the others.
    fn add(&mut self, name: &[u8], rules: &[Vec<u8>], number: usize) -> std::fmt::Result {
        let (path, faults) = (self.path, &mut self.faults);
        let mut user = User::fresh(name, self.all_channels);
        let mut is_reported = false;
        for rule in rules {
            let rule = trimmed(rule, b"\t\r\n");
            match user.take(rule, self.all_channels, self.commands) {
                Ok(()) => {}
                Err(error @ RuleError::Unknown) => {
                    let rule = String::from_utf8_lossy(until_nul(rule));
                    write!(faults, "{path}:{number}: Error in applying operation '{rule}': {error}. ")?;
                }
                Err(_) if is_reported => {}
                Err(error) => {
                    is_reported = true;
                    write!(faults, "{path}:{number}: {error}. ")?;
                }
            }
        }
        self.read.push(user);
        Ok(())
    }
}

fn trimmed<'l>(mut line: &'l [u8], blanks: &[u8]) -> &'l [u8] {
    while let [first, rest @ ..] = line
        && blanks.contains(first)
    {
        line = rest;
    }
    while let [rest @ .., last] = line
        && blanks.contains(last)
    {
        line = rest;
    }
    line
}
