//! The command table: every row found by its name in one probe, numbered for statistics.
//!
//! It is made once from the families that `commands/` hands in and never changes. A name is hashed without regard to
//! case into a table of four times as many places as there are commands, so almost every look-up compares one name.

use crate::engine::{Command, Error, shown};
use crate::resp::Request;

/// Where a command stands in the table; statistics are kept by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandId(u16);

impl CommandId {
    /// Its place in [`Table::entries`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A command or subcommand with what the table adds to its row.
#[derive(Debug)]
pub struct Entry {
    /// The row.
    pub command: &'static Command,
    /// The name in lower case; a subcommand's is `container|subcommand`.
    pub name: String,
    /// True for the second word of a container.
    pub is_subcommand: bool,
    /// The place of the first subcommand's entry; they follow one another in the order of the row.
    first_child: u16,
}

/// All commands that exist.
#[derive(Debug)]
pub struct Table {
    entries: Vec<Entry>,
    places: Vec<u16>,
}

const VACANT: u16 = u16::MAX;

impl Table {
    /// The table of all rows of all `families`.
    pub fn of(families: &'static [&'static [Command]]) -> Table {
        let mut entries = Vec::new();
        for command in families.iter().copied().flatten() {
            let first_child = entries.len() as u16 + 1;
            let name = command.name.to_ascii_lowercase();
            let children = command.subcommands.iter().map(|child| Entry {
                command: child,
                name: format!("{name}|{}", child.name.to_ascii_lowercase()),
                is_subcommand: true,
                first_child: 0,
            });
            let children: Vec<Entry> = children.collect();
            entries.push(Entry { command, name, is_subcommand: false, first_child });
            entries.extend(children);
        }
        let mut table = Table { places: vec![VACANT; (entries.len() * 4).next_power_of_two()], entries };
        for index in 0..table.entries.len() {
            if !table.entries[index].is_subcommand {
                let mut place = table.home(table.entries[index].name.as_bytes());
                while table.places[place] != VACANT {
                    place = (place + 1) % table.places.len();
                }
                table.places[place] = index as u16;
            }
        }
        table
    }

    /// Every command and subcommand, each container before its subcommands.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The commands without their subcommands.
    pub fn commands(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_subcommand)
    }

    /// The entry of that number.
    pub fn entry(&self, id: CommandId) -> &Entry {
        &self.entries[id.index()]
    }

    /// The command of that name, in any case; not a subcommand.
    pub fn find(&self, name: &[u8]) -> Option<CommandId> {
        let mut place = self.home(name);
        loop {
            let id = self.places[place];
            if id == VACANT {
                return None;
            }
            if self.entries[usize::from(id)].name.as_bytes().eq_ignore_ascii_case(name) {
                return Some(CommandId(id));
            }
            place = (place + 1) % self.places.len();
        }
    }

    /// The subcommand `name` of the container `id`.
    pub fn find_subcommand(&self, id: CommandId, name: &[u8]) -> Option<CommandId> {
        let container = self.entry(id);
        let at = container.command.subcommands.iter().position(|c| c.name.as_bytes().eq_ignore_ascii_case(name))?;
        Some(CommandId(container.first_child + at as u16))
    }

    /// The command that COMMAND names: `get`, or `client|list` for a subcommand.
    pub fn find_full(&self, name: &[u8]) -> Option<CommandId> {
        match name.iter().position(|&byte| byte == b'|') {
            None => self.find(name),
            Some(bar) => self.find_subcommand(self.find(&name[..bar])?, &name[bar + 1..]),
        }
    }

    /// The command that `request` names, and how many of its words the name takes.
    ///
    /// # Errors
    /// The command or subcommand is not known.
    pub fn resolve(&self, request: Request<'_>) -> Result<(CommandId, usize), Error> {
        let name = request.get(0).unwrap_or_default();
        let id = self.find(name).ok_or_else(|| unknown_command(request))?;
        let command = self.entry(id).command;
        let Some(subcommand) = request.get(1).filter(|_| command.is_container()) else { return Ok((id, 1)) };
        let child = self.find_subcommand(id, subcommand).ok_or_else(|| Error::UnknownSubcommand {
            container: command.name.to_owned(),
            subcommand: start(subcommand, SHOWN_BYTES),
        })?;
        Ok((child, 2))
    }

    fn home(&self, name: &[u8]) -> usize {
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193);
        name.iter().fold(0x811c_9dc5, mix) as usize % self.places.len()
    }
}

/// How much of a name or of arguments an error repeats, in bytes.
const SHOWN_BYTES: usize = 128;

fn start(word: &[u8], room: usize) -> String {
    shown(&word[..word.len().min(room)])
}

fn unknown_command(request: Request<'_>) -> Error {
    let mut arguments = String::new();
    let mut length = 0;
    for word in request.iter().skip(1) {
        if length >= SHOWN_BYTES {
            break;
        }
        let word = start(word, SHOWN_BYTES - length);
        length += word.chars().count() + "'' ".len();
        arguments.push_str(&format!("'{word}' "));
    }
    Error::UnknownCommand { name: start(request.get(0).unwrap_or_default(), SHOWN_BYTES), arguments }
}
