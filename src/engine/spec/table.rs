//! The command table: every row found by its name in one probe, numbered for statistics.
//!
//! It is built once from the families that `commands/` passes and never changes, except for the names that
//! `rename-command` sets at the start: requests call such a command by its new name only, and everything else still
//! uses its own name. The hash of a name ignores case, and the table has four times as many slots as commands, so
//! almost every look-up compares one name. Copies share the table: any number of engines can use one.

use std::iter::repeat_n;
use std::sync::Arc;

use crate::engine::spec::descriptions::{Description, Descriptions};
use crate::engine::spec::{Command, Error, Flags, PlainKeys, shown};
use crate::resp::{EncodedElements, Protocol, Reply, Request};

/// The number of a command in the table; statistics are indexed by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandId(u16);

impl CommandId {
    /// The index in [`Table::entries`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A command or subcommand with what the table adds to its row.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The command's row.
    pub command: &'static Command,
    /// The full name, in lower case unless it is of a module; a subcommand's is `container|subcommand`.
    pub name: String,
    /// The name by which requests call the command, or its container; empty if they cannot.
    called: String,
    /// True for the second word of a container.
    pub is_subcommand: bool,
    /// The result of [`Command::may_run_fast`], stored for quick access.
    pub(in crate::engine) may_run_fast: bool,
    /// The result of [`Command::is_brief`], stored for quick access.
    pub(in crate::engine) is_brief: bool,
    /// The result of [`Command::plain_keys`], stored for quick access.
    pub(in crate::engine) plain_keys: PlainKeys,
    /// The index of the first subcommand's entry; the others follow in the order of the row.
    first_child: u16,
}

impl Entry {
    /// Whether requests can call the command, or its container.
    pub fn is_callable(&self) -> bool {
        !self.called.is_empty()
    }

    fn is_called_by_itself(&self) -> bool {
        self.is_callable() && !self.is_subcommand
    }
}

/// All commands that exist, with a hash table of their names.
#[derive(Clone, Debug)]
pub struct Table {
    entries: Arc<[Entry]>,
    places: Arc<[Place]>,
    /// The number of bits by which a hash is shifted to become a slot.
    shift: u32,
    /// The number of commands that can be called.
    command_count: usize,
    /// The replies that describe all commands.
    descriptions: Arc<Descriptions>,
}

/// A slot of the hash table: the name of its command in lower case, and which of its bytes are letters.
#[derive(Clone, Copy, Debug)]
struct Place {
    name: Name,
    letters: Name,
    id: Option<CommandId>,
}

impl Place {
    fn of(name: &[u8], id: Option<CommandId>) -> Place {
        let name = Name::of(name).lowercase();
        Place { name, letters: name.letters(), id }
    }
}

impl Table {
    /// Builds the table from all rows of all `families`.
    pub fn of(families: &'static [&'static [Command]]) -> Table {
        let mut entries = Vec::new();
        for command in families.iter().copied().flatten() {
            let first_child = entries.len() as u16 + 1;
            let is_of_module = command.flags.has(Flags::MODULE);
            let name = if is_of_module { command.name.into() } else { command.name.to_ascii_lowercase() };
            let children = command.subcommands.iter().map(|child| Entry {
                command: child,
                name: format!("{name}|{}", child.name.to_ascii_lowercase()),
                called: name.clone(),
                is_subcommand: true,
                may_run_fast: child.may_run_fast(),
                is_brief: child.is_brief(),
                plain_keys: child.plain_keys(),
                first_child: 0,
            });
            let children: Vec<Entry> = children.collect();
            entries.push(Entry {
                command,
                called: name.to_ascii_lowercase(),
                name,
                is_subcommand: false,
                may_run_fast: command.may_run_fast(),
                is_brief: command.is_brief(),
                plain_keys: command.plain_keys(),
                first_child,
            });
            entries.extend(children);
        }
        // Subcommands have no slot: they are found in the row of their container.
        let names = entries.iter().filter(|entry| !entry.is_subcommand).count();
        let places = (names * 4).next_power_of_two();
        let mut table = Table {
            shift: u64::BITS - places.ilog2(),
            places: Arc::default(),
            entries: entries.into(),
            command_count: 0,
            descriptions: Arc::default(),
        };
        table.rebuild_index(places);
        table
    }

    /// Builds the hash table with the given number of slots: each command that can be called by a name gets one.
    fn rebuild_index(&mut self, count: usize) {
        self.places = repeat_n(Place::of(b"", None), count).collect();
        self.command_count = self.commands().count();
        for (index, entry) in self.entries.iter().enumerate().filter(|(_, entry)| entry.is_called_by_itself()) {
            let mut place = self.home(Name::of(entry.called.as_bytes()));
            while self.places[place].id.is_some() {
                place = (place + 1) % count;
            }
            Arc::make_mut(&mut self.places)[place] = Place::of(entry.called.as_bytes(), Some(CommandId(index as u16)));
        }
    }

    /// Renames commands by pairs of a command's name and its new one, in this order. A command whose new name is empty
    /// cannot be called.
    ///
    /// # Errors
    /// Redis's text if no command has the name, or if a command already has the new one.
    pub fn renamed(mut self, renames: &[(String, String)]) -> Result<Table, &'static str> {
        for (name, called) in renames {
            let id = self.find(name.as_bytes()).ok_or("No such command in rename-command")?;
            if !called.is_empty() && self.find(called.as_bytes()).is_some_and(|known| known != id) {
                return Err("Target command name already exists");
            }
            let last = id.index() + self.entry(id).command.subcommands.len();
            let entries = Arc::make_mut(&mut self.entries);
            entries[id.index()..=last].iter_mut().for_each(|entry| entry.called = called.to_ascii_lowercase());
            self.rebuild_index(self.places.len());
        }
        self.descriptions = Arc::default();
        Ok(self)
    }

    /// Every command and subcommand, each container before its subcommands.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The commands that can be called, without their subcommands.
    pub fn commands(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_called_by_itself())
    }

    /// The number of [`Table::commands`].
    pub fn command_count(&self) -> usize {
        self.command_count
    }

    /// A description of each of [`Table::commands`], encoded for `protocol`: an element for each of [`Table::entries`],
    /// empty for the others. `write` writes that of one command; it is called only the first time.
    pub fn described(
        &self,
        description: Description,
        protocol: Protocol,
        write: impl Fn(&mut Reply<'_>, &Entry),
    ) -> &EncodedElements {
        self.descriptions.get(description, protocol, || {
            EncodedElements::new(protocol, self.entries.len(), |reply, number| {
                let entry = &self.entries[number];
                if entry.is_called_by_itself() {
                    write(reply, entry);
                }
            })
        })
    }

    /// The numbers of all entries.
    pub fn ids(&self) -> impl Iterator<Item = CommandId> + use<> {
        (0..self.entries.len()).map(|index| CommandId(index as u16))
    }

    /// The command itself; for a container, its subcommands, which run instead.
    pub fn with_subcommands(&self, id: CommandId) -> impl Iterator<Item = CommandId> + use<> {
        let entry = self.entry(id);
        let (first, count) = match entry.command.subcommands.len() as u16 {
            0 => (id.0, 1),
            count => (entry.first_child, count),
        };
        (first..first + count).map(CommandId)
    }

    /// The entry with this number.
    #[inline]
    pub fn entry(&self, id: CommandId) -> &Entry {
        &self.entries[id.index()]
    }

    /// The command or subcommand with this name of its own, in upper or lower case, even if it was renamed.
    /// O(commands) for a subcommand, and for a command that was renamed.
    pub fn known(&self, name: &[u8]) -> Option<CommandId> {
        let is_named = |id: &CommandId| self.entry(*id).name.as_bytes().eq_ignore_ascii_case(name);
        self.find(name).filter(is_named).or_else(|| self.ids().find(is_named))
    }

    /// The command that requests call by this name, in upper or lower case; not a subcommand.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<CommandId> {
        let wanted = Name::of(name);
        let mut place = self.home(wanted);
        loop {
            let found = &self.places[place];
            let id = found.id?;
            if wanted.is(&found.name, &found.letters) && (name.len() <= NAME_BYTES || self.is_name(id, name)) {
                return Some(id);
            }
            place = (place + 1) % self.places.len();
        }
    }

    fn is_name(&self, id: CommandId, name: &[u8]) -> bool {
        self.entry(id).called.as_bytes().eq_ignore_ascii_case(name)
    }

    /// The subcommand `name` of the container `id`.
    pub fn find_subcommand(&self, id: CommandId, name: &[u8]) -> Option<CommandId> {
        let container = self.entry(id);
        let at = container.command.subcommands.iter().position(|c| c.name.as_bytes().eq_ignore_ascii_case(name))?;
        Some(CommandId(container.first_child + at as u16))
    }

    /// The command that requests call by this name: `get`, or `client|list` for a subcommand.
    pub fn find_full(&self, name: &[u8]) -> Option<CommandId> {
        match name.iter().position(|&byte| byte == b'|') {
            None => self.find(name),
            Some(bar) => self.find_subcommand(self.find(&name[..bar])?, &name[bar + 1..]),
        }
    }

    /// The command that `request` names, and the number of words in its name.
    ///
    /// # Errors
    /// [`Error::UnknownCommand`] or [`Error::UnknownSubcommand`].
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

    /// The slot at which the search for a name begins; it does not depend on the case of letters.
    #[inline]
    fn home(&self, name: Name) -> usize {
        let word = (name.first | SMALL) ^ (name.last | SMALL).rotate_left(32) ^ name.length as u64;
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }
}

/// The first eight and the last eight bytes of a name, or fewer if it is shorter. Names of up to sixteen bytes are
/// equal if and only if these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    first: u64,
    last: u64,
    length: usize,
}

/// The length in bytes of the longest name that a [`Name`] holds completely.
const NAME_BYTES: usize = 16;

/// The bit of each byte that is set in lower-case letters and not in upper-case ones.
const SMALL: u64 = each(0x20);

impl Name {
    #[inline]
    fn of(name: &[u8]) -> Name {
        let half = |chunk: &[u8; 4]| u64::from(u32::from_le_bytes(*chunk));
        let (first, last) = if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
            (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
        } else if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
            (half(first), half(last))
        } else {
            match *name {
                [one, two, three, ..] => (u64::from_le_bytes([one, two, three, 0, 0, 0, 0, 0]), 0),
                [one, two] => (u64::from_le_bytes([one, two, 0, 0, 0, 0, 0, 0]), 0),
                [one] => (u64::from(one), 0),
                [] => (0, 0),
            }
        };
        Name { first, last, length: name.len() }
    }

    /// True when this name equals `name`, which is in lower case, without regard to case.
    fn is(&self, name: &Name, letters: &Name) -> bool {
        let differs = (self.first ^ name.first) & !letters.first | (self.last ^ name.last) & !letters.last;
        differs == 0 && self.length == name.length
    }

    fn lowercase(self) -> Name {
        let small = |word: u64| word | between(word, b'A', b'Z') >> 2;
        Name { first: small(self.first), last: small(self.last), ..self }
    }

    /// The bits in which lower-case letters differ from upper-case ones, for those bytes that are letters.
    fn letters(self) -> Name {
        let bits = |word: u64| between(word, b'a', b'z') >> 2;
        Name { first: bits(self.first), last: bits(self.last), ..self }
    }
}

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Sets the highest bit of each byte that is from `first` to `last`, both below 128: the carry into that bit shows it.
fn between(word: u64, first: u8, last: u8) -> u64 {
    let low = word & each(0x7f);
    let is_past = low.wrapping_add(each(0x7f - last));
    let is_from = low.wrapping_add(each(0x80 - first));
    (is_from ^ is_past) & !word & each(0x80)
}

/// The most bytes of a name or of arguments that an error repeats.
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

impl Table {
    pub(in crate::engine) fn is_of_kit(&self, request: Request<'_>) -> bool {
        let found = self.find(request.get(0).unwrap_or_default());
        found.is_some_and(|id| self.entry(id).command.flags.has(Flags::TEST_KIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[&[Command]] = &[&[
        Command { name: "GET", ..Command::ROW },
        Command { name: "SET", ..Command::ROW },
        Command { name: "CONFIG", subcommands: &[Command { name: "REWRITE", ..Command::ROW }], ..Command::ROW },
    ]];

    fn renamed(renames: &[(&str, &str)]) -> Result<Table, &'static str> {
        let renames: Vec<(String, String)> =
            renames.iter().map(|(name, called)| ((*name).to_owned(), (*called).to_owned())).collect();
        Table::of(ROWS).renamed(&renames)
    }

    #[test]
    fn a_renamed_command_is_found_only_by_its_last_new_name_and_keeps_its_own() {
        let long = "A-name-of-more-than-sixteen-bytes";
        let table =
            renamed(&[("get", "fetch"), ("FETCH", long), ("set", "GET"), ("config", "")]).expect("all are known");
        let called = |name: &str| table.find(name.as_bytes()).map(|id| table.entry(id).name.as_str());
        assert_eq!(
            (called(long), called("Get"), called("a-name-of-more-than-sixty_bytes!!")),
            (Some("get"), Some("set"), None)
        );
        assert_eq!((called("fetch"), called("set"), called("config"), called("")), (None, None, None, None));
        assert!(table.find_full(b"config|rewrite").is_none());
        let known = |name: &str| table.known(name.as_bytes()).map(|id| table.entry(id).command.name);
        assert_eq!((known("GET"), known("fetch"), known("Config|Rewrite")), (Some("GET"), None, Some("REWRITE")));
        assert_eq!(table.commands().count(), 2);
        assert_eq!(table.entries().iter().filter(|entry| entry.is_callable()).count(), 2);
    }

    #[test]
    fn a_rename_from_an_unknown_name_or_to_a_taken_one_is_refused() {
        assert_eq!(renamed(&[("get", "Get")]).map(|table| table.commands().count()), Ok(3));
        assert_eq!(renamed(&[("get", "set")]).err(), Some("Target command name already exists"));
        for name in ["nosuch", "config|rewrite", ""] {
            assert_eq!(renamed(&[(name, "fetch")]).err(), Some("No such command in rename-command"));
        }
    }

    #[test]
    fn names_are_equal_only_if_they_differ_in_nothing_but_case() {
        for name in ["", "a", "ab", "abc", "get", "hset", "lrange", "zrevrange", "zremrangebyscore"] {
            let (name, capital) = (name.as_bytes(), name.to_ascii_uppercase().into_bytes());
            let place = Place::of(name, None);
            let is_found = |other: &[u8]| Name::of(other).is(&place.name, &place.letters);
            assert!(is_found(name) && is_found(&capital));
            for at in 0..name.len() {
                for byte in 0..=u8::MAX {
                    let mut other = name.to_vec();
                    other[at] = byte;
                    assert_eq!(is_found(&other), other.eq_ignore_ascii_case(name), "{other:?}");
                }
            }
        }
    }
}
