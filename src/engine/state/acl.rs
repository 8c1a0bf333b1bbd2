//! The users, the log of refused commands and logins (ACL LOG), and the command table as ACL rules use it.

use std::ops::Range;
use std::sync::Arc;

use crate::acl::{Commands, Log, Users};
use crate::engine::spec::{CATEGORIES, CommandId, Entry, Table};

/// The users, and the log of refused commands and logins.
#[derive(Debug, Default)]
pub struct Acl {
    /// The users, shared with snapshots.
    pub users: Arc<Users>,
    /// The log of refused commands and logins.
    pub log: Log,
}

/// Rules name commands by their own names, even if `rename-command` gave them others.
impl Commands for Table {
    fn index(&self, name: &[u8]) -> Option<usize> {
        self.known(name).map(CommandId::index)
    }

    fn name(&self, index: usize) -> &str {
        self.entries().get(index).map_or("", |entry| &entry.name)
    }

    fn is_subcommand(&self, index: usize) -> bool {
        self.entries().get(index).is_some_and(|entry| entry.is_subcommand)
    }

    fn subcommands(&self, index: usize) -> Range<usize> {
        let count = self.entries().get(index).map_or(0, |entry| entry.command.subcommands.len());
        index + 1..index + 1 + count
    }

    fn in_category(&self, name: &[u8]) -> Option<Vec<usize>> {
        let category = CATEGORIES.into_iter().find(|category| category.as_bytes().eq_ignore_ascii_case(name))?;
        let is_in = |(_, entry): &(usize, &Entry)| entry.command.is_in(category);
        Some(self.entries().iter().enumerate().filter(is_in).map(|(index, _)| index).collect())
    }
}

impl Acl {
    /// Sets the users of a fresh engine.
    pub fn begin_with_users(&mut self, users: &Arc<Users>) {
        self.users = Arc::clone(users);
    }
}
