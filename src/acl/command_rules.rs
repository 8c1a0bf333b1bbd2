//! The command rules of a selector: which commands it allows.
//!
//! The rules are kept as they were given, in lower case, since the last time that all commands were allowed or
//! forbidden; a rule replaces earlier ones for the same command or category, and those for the command's subcommands.
//! That keeps the list short, and true: a rule without effect, because of a later one, is not shown.

use std::collections::{BTreeMap, BTreeSet};

use super::bits::Bits;
use super::listed::Listed;
use super::{Commands, RuleError};
use crate::value::number::until_nul;

/// The command rules of a selector, and the rights that follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRules {
    /// Whether all commands were allowed and none was forbidden since.
    allows_all: bool,
    /// The right to a command that no rule mentions.
    base: bool,
    allowed: Bits,
    /// For commands that are not allowed otherwise, the first arguments with which they may be called, in lower case.
    first_arguments: BTreeMap<usize, BTreeSet<Vec<u8>>>,
    /// Names in lower case, and whether they are allowed.
    rules: Listed<Vec<u8>, bool>,
}

impl CommandRules {
    /// Allows all commands, or none.
    pub fn all(allowed: bool) -> CommandRules {
        CommandRules {
            allows_all: allowed,
            base: allowed,
            allowed: Bits::filled(allowed),
            first_arguments: BTreeMap::new(),
            rules: Listed::default(),
        }
    }

    /// Whether every command is allowed.
    pub fn allows_all(&self) -> bool {
        self.allows_all
    }

    /// Whether the command at that index may be called with that first argument.
    pub fn allows(&self, index: usize, first_argument: Option<&[u8]>) -> bool {
        let is_listed = |given: &[u8]| {
            let listed = self.first_arguments.get(&index);
            listed.is_some_and(|listed| listed.contains(&until_nul(given).to_ascii_lowercase()))
        };
        self.allows_all || self.allowed.has(index) || first_argument.is_some_and(is_listed)
    }

    /// Applies a rule that begins with `+` or `-`.
    ///
    /// # Errors
    /// The fault of the rule; nothing changed.
    pub fn take(&mut self, rule: &[u8], commands: &dyn Commands) -> Result<(), RuleError> {
        let (allows, name) = match until_nul(rule) {
            [b'+', name @ ..] => (true, name),
            [b'-', name @ ..] => (false, name),
            _ => return Err(RuleError::Syntax),
        };
        match name {
            [b'@', category @ ..] if category.eq_ignore_ascii_case(b"all") => *self = CommandRules::all(allows),
            [b'@', category @ ..] => {
                let indexes = commands.in_category(category).ok_or(RuleError::Unknown)?;
                self.add_rule(allows, name);
                indexes.into_iter().for_each(|index| self.change(index, allows, commands));
            }
            _ if allows && name.contains(&b'|') => self.allow_part(name, commands)?,
            _ => {
                let index = commands.index(name).ok_or(RuleError::Unknown)?;
                self.change(index, allows, commands);
                self.add_rule(allows, commands.name(index).as_bytes());
            }
        }
        Ok(())
    }

    /// Allows a subcommand, or a command without subcommands for one first argument.
    fn allow_part(&mut self, name: &[u8], commands: &dyn Commands) -> Result<(), RuleError> {
        let bar = name.iter().rposition(|&byte| byte == b'|').unwrap_or_default();
        let (command, argument) = (&name[..bar], &name[bar + 1..]);
        let index = commands.index(command).ok_or(RuleError::Unknown)?;
        if commands.is_subcommand(index) {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        if argument.is_empty() {
            return Err(RuleError::Syntax);
        }
        if commands.subcommands(index).is_empty() {
            self.first_arguments.entry(index).or_default().insert(argument.to_ascii_lowercase());
        } else {
            let subcommand = commands.index(name).ok_or(RuleError::Unknown)?;
            self.change(subcommand, true, commands);
        }
        self.add_rule(true, name);
        Ok(())
    }

    fn change(&mut self, index: usize, allow: bool, commands: &dyn Commands) {
        self.first_arguments.remove(&index);
        for index in [index].into_iter().chain(commands.subcommands(index)) {
            self.allowed.set(index, allow);
        }
        self.allows_all &= allow;
    }

    /// Adds a rule, in place of those that it makes void.
    fn add_rule(&mut self, allows: bool, name: &[u8]) {
        let name = name.to_ascii_lowercase();
        let parts = [name.as_slice(), b"|"].concat();
        let void: Vec<Vec<u8>> = self.rules.from(&parts).take_while(|rule| rule.starts_with(&parts)).cloned().collect();
        void.iter().chain([&name]).for_each(|rule| _ = self.rules.remove(rule));
        self.rules.get_or_add(name, allows);
    }

    /// The rules in one line.
    pub fn describe(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(if self.base { b"+@all" } else { b"-@all" });
        for (name, allows) in self.rules.iter() {
            line.extend_from_slice(if *allows { b" +" } else { b" -" });
            line.extend_from_slice(name);
        }
    }
}
