//! The journal: the last commands, each with its client, its reply, and how long it took.
//!
//! An entry is added when its command begins, so the commands of a script or a transaction follow the one that runs
//! them, and a blocked one is listed before its reply. Secret arguments are not stored. A command that is queued until
//! EXEC is recorded for the transcript alone: it counts when it runs.
//!
//! Costs: a copy of each request and its reply, as many as the journal may have. Counting the entries that a filter
//! selects takes a look at each, unless a client waits for their number: that is kept up to date ([`super::counts`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Display};

use crate::engine::spec::{CommandId, Now, Table};
use crate::engine::state::kit::counts::Counts;
use crate::engine::state::kit::reply_text::reply_lines;
use crate::engine::state::kit::{pattern_of, quoted};
use crate::resp::{Protocol, Reply, Request, Requests};
use crate::value::glob;

/// The number of commands that a journal keeps unless a test says otherwise.
pub const DEFAULT_ENTRIES: usize = 10_000;

/// The most commands that a journal can be set to keep.
pub const MAX_ENTRIES: usize = 1_000_000;

/// The most commands that are listed when a test finds others than it expected.
const LISTED: usize = 20;

/// The journal of the last commands.
#[derive(Debug)]
pub struct Journal {
    /// Whether commands are recorded now.
    pub is_on: bool,
    most: usize,
    entries: VecDeque<Entry>,
    counts: Counts,
    /// The number of entries ever added.
    pub(in crate::engine) begun: u64,
}

/// A recorded command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The entry's number since the journal began, from 1.
    pub number: u64,
    /// The number of the node that the command came to, in a journal of all nodes of a cluster.
    pub node: Option<usize>,
    /// Its place among the commands that any node of its cluster has recorded.
    pub(crate) order: u64,
    /// The moment when the command began.
    #[doc(hidden)]
    pub moment: Now,
    /// The id of its client, as CLIENT ID returns it.
    pub client: u64,
    /// The name of its client.
    pub client_name: Vec<u8>,
    /// The selected database when it began.
    pub database: usize,
    /// The source that ran it.
    pub source: Source,
    /// The duration of the command, in microseconds.
    pub elapsed_us: u64,
    pub(in crate::engine) request: Requests,
    pub(in crate::engine) protocol: Protocol,
    pub(in crate::engine) reply: Option<Vec<u8>>,
    /// The number of entries when the reply came, if the command was blocked.
    pub(in crate::engine) waited: Option<u64>,
    pub(in crate::engine) has_secrets: bool,
    pub(in crate::engine) command: Option<CommandId>,
}

/// The source of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A client, to run at once.
    Client,
    /// A client, in a transaction: queued until EXEC, and recorded again when it runs.
    Queue,
    /// EXEC.
    Transaction,
    /// A script or a function.
    Script,
}

impl Source {
    /// The name of the source, as DUNLIN JOURNAL prints it.
    pub fn name(self) -> &'static str {
        match self {
            Source::Client => "client",
            Source::Queue => "queue",
            Source::Transaction => "transaction",
            Source::Script => "script",
        }
    }
}

impl Entry {
    /// The words of the request, with `(redacted)` in place of secrets.
    pub fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.request.iter().take(1).flat_map(|request| request.iter().collect::<Vec<_>>())
    }

    /// Writes the entry as a map, as DUNLIN JOURNAL LIST shows it for the world of that name.
    pub(crate) fn write(&self, world: &str, reply: &mut Reply<'_>) {
        reply.map(10 + usize::from(self.node.is_some()));
        if let Some(node) = self.node {
            reply.bulk(b"node");
            reply.count(node);
        }
        for (name, number) in [
            ("number", self.number.cast_signed()),
            ("unix-time-microseconds", self.moment.unix_us),
            ("duration-microseconds", self.elapsed_us.cast_signed()),
            ("client", self.client.cast_signed()),
            ("database", self.database as i64),
        ] {
            reply.bulk(name.as_bytes());
            reply.integer(number);
        }
        for (name, text) in
            [("world", world.as_bytes()), ("client-name", &self.client_name), ("source", self.source.name().as_bytes())]
        {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        reply.bulk(b"command");
        let words: Vec<&[u8]> = self.words().collect();
        reply.array(words.len());
        words.into_iter().for_each(|word| reply.bulk(word));
        reply.bulk(b"reply");
        reply.bulk_or_null(self.reply().as_deref().map(str::as_bytes));
    }

    /// The entry as one of the node with that number.
    pub(crate) fn at_node(&self, number: usize) -> Entry {
        Entry { node: Some(number), ..self.clone() }
    }

    /// The reply as redis-cli shows it; `None` before it comes, empty when there is never one.
    pub fn reply(&self) -> Option<String> {
        let reply = self.reply.as_ref()?;
        Some(reply_lines(reply, self.source == Source::Script, self.protocol).join("\n"))
    }

    /// True when the reply is an error.
    pub fn is_error(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.first() == Some(&b'-'))
    }

    /// True when the reply sends the client to another node of a cluster: MOVED or ASK.
    pub fn is_redirected(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.starts_with(b"-MOVED ") || reply.starts_with(b"-ASK "))
    }
}

impl Display for Entry {
    /// The entry in one line: its number, node, client, command and reply.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{} ", self.number)?;
        if let Some(node) = self.node {
            write!(formatter, "at node {node} ")?;
        }
        write!(formatter, "client {}", self.client)?;
        if !self.client_name.is_empty() {
            write!(formatter, " ({})", String::from_utf8_lossy(&self.client_name))?;
        }
        if self.source != Source::Client {
            write!(formatter, " by {}", self.source.name())?;
        }
        let words: Vec<String> = self.words().map(quoted).collect();
        write!(formatter, ": {} -> ", words.join(" "))?;
        let Some(reply) = self.reply() else { return formatter.write_str("(waits)") };
        match reply.split_once('\n') {
            Some((first, _)) => write!(formatter, "{first} ..."),
            None if reply.is_empty() => formatter.write_str("(no reply)"),
            None => formatter.write_str(&reply),
        }
    }
}

/// The commands of one name that are about keys of one pattern.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// The full name of the command; `None` for words that are none.
    pub(crate) command: Option<String>,
    /// The pattern of the keys; `None` for commands without keys.
    pub(crate) pattern: Option<Vec<u8>>,
    pub(crate) commands: u64,
    pub(crate) errors: u64,
    pub(crate) elapsed_us: u64,
}

/// Groups commands by their name and the patterns of their keys, the largest group first. A command about keys of
/// several patterns is in a group of each.
pub(crate) fn by_pattern(entries: &[&Entry], table: &Table) -> Vec<Group> {
    let mut groups = BTreeMap::<_, Group>::new();
    for entry in entries {
        let command = entry.command.map(|id| table.entry(id).name.to_string());
        let request = entry.request.iter().next();
        let keys = request.map(|request| keys_of(table, entry.command, request)).unwrap_or_default();
        let patterns: BTreeSet<Option<Vec<u8>>> = keys.into_iter().map(|key| Some(pattern_of(key))).collect();
        for pattern in if patterns.is_empty() { BTreeSet::from([None]) } else { patterns } {
            let group = groups.entry((command.clone(), pattern)).or_default();
            group.commands += 1;
            group.errors += u64::from(entry.is_error());
            group.elapsed_us += entry.elapsed_us;
        }
    }
    let named = groups.into_iter().map(|((command, pattern), group)| Group { command, pattern, ..group });
    let mut named: Vec<Group> = named.collect();
    named.sort_by_key(|group| std::cmp::Reverse(group.commands));
    named
}

/// The commands of several nodes of a cluster in the order in which they began.
pub fn in_order(of_nodes: Vec<Vec<Entry>>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = of_nodes.into_iter().flatten().collect();
    entries.sort_by_key(|entry| entry.order);
    entries
}

/// A filter that selects commands: all of its conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filter {
    /// The name of the command, `container|subcommand`, or a container, in any case.
    pub command: Option<Vec<u8>>,
    /// A glob that one of its keys matches.
    pub key: Option<Vec<u8>>,
    /// The name of its client.
    pub client: Option<Vec<u8>>,
    /// The reply was an error.
    pub errors: bool,
    /// The reply sent the client to another node of a cluster.
    pub redirected: bool,
}

impl Filter {
    /// The filter as words of DUNLIN JOURNAL.
    pub(crate) fn words(&self) -> impl Iterator<Item = &[u8]> {
        let values = [("COMMAND", &self.command), ("KEY", &self.key), ("CLIENT", &self.client)];
        let values = values.into_iter().filter_map(|(word, value)| Some([word.as_bytes(), value.as_deref()?]));
        let marks = [("ERRORS", self.errors), ("REDIRECTED", self.redirected)];
        values.flatten().chain(marks.into_iter().filter(|(_, is_set)| *is_set).map(|(word, _)| word.as_bytes()))
    }

    pub(in crate::engine) fn admits(&self, entry: &Entry, table: &Table) -> bool {
        let name = entry.command.map(|id| table.entry(id).name.as_str());
        entry.source != Source::Queue
            && self.client.as_ref().is_none_or(|client| *client == entry.client_name)
            && self.command.as_ref().is_none_or(|wanted| name.is_some_and(|name| is_called(name, wanted)))
            && (!self.errors || entry.is_error())
            && (!self.redirected || entry.is_redirected())
            && self.key.as_ref().is_none_or(|pattern| {
                let request = entry.request.iter().next();
                request.is_some_and(|request| touches(table, entry.command, request, pattern))
            })
    }
}

impl Display for Filter {
    /// The filter in the syntax of DUNLIN JOURNAL.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().try_for_each(|word| write!(formatter, " {}", quoted(word)))
    }
}

/// Whether `wanted` selects a command of that full name; it may name its container.
pub(in crate::engine) fn is_called(name: &str, wanted: &[u8]) -> bool {
    let container = name.split('|').next().unwrap_or_default();
    [name, container].iter().any(|name| name.as_bytes().eq_ignore_ascii_case(wanted))
}

/// Whether one of the keys of `request` matches.
pub(in crate::engine) fn touches(
    table: &Table,
    command: Option<CommandId>,
    request: Request<'_>,
    pattern: &[u8],
) -> bool {
    let mut keys = keys_of(table, command, request).into_iter();
    keys.any(|key| glob::matches(pattern, key, false) || pattern == b"*")
}

/// The keys of `request`.
fn keys_of<'r>(table: &Table, command: Option<CommandId>, request: Request<'r>) -> Vec<&'r [u8]> {
    let places = command.map(|id| table.entry(id).command.keys_of(request)).unwrap_or_default();
    places.iter().filter_map(|(place, _)| request.get(*place)).collect()
}

/// The number of commands that a test expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// This many commands or fewer.
    AtMost(u64),
    /// This many commands or more.
    AtLeast(u64),
    /// Exactly this many commands.
    Exactly(u64),
}

impl Bound {
    /// Checks that as many commands were found as expected.
    ///
    /// # Errors
    /// The expected and the actual number of commands.
    pub fn check(self, filter: &Filter, found: &[&Entry]) -> Result<(), String> {
        if self.admits(found.len() as u64) {
            return Ok(());
        }
        let listed: Vec<String> = found.iter().take(LISTED).map(ToString::to_string).collect();
        let more = found.len().saturating_sub(LISTED);
        let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
        Err(format!("expected {self} of{filter}, found {}: {}{rest}", found.len(), listed.join("; ")))
    }

    fn admits(self, count: u64) -> bool {
        match self {
            Bound::AtMost(most) => count <= most,
            Bound::AtLeast(least) => count >= least,
            Bound::Exactly(wanted) => count == wanted,
        }
    }
}

impl Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtMost(count) => write!(formatter, "at most {count}"),
            Bound::AtLeast(count) => write!(formatter, "at least {count}"),
            Bound::Exactly(count) => write!(formatter, "exactly {count}"),
        }
    }
}

impl Journal {
    /// How many commands it keeps.
    pub fn limit(&self) -> usize {
        self.most
    }

    /// An empty journal that keeps up to `most` entries.
    pub fn of(most: usize) -> Journal {
        Journal {
            is_on: true,
            most: most.clamp(1, MAX_ENTRIES),
            entries: VecDeque::new(),
            counts: Counts::default(),
            begun: 0,
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.counts.reset();
    }

    /// All entries, the oldest first, including queued commands.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The entries that a filter selects, the oldest first.
    pub fn matching<'j>(&'j self, filter: &'j Filter, table: &'j Table) -> impl Iterator<Item = &'j Entry> {
        self.entries.iter().filter(|entry| filter.admits(entry, table))
    }

    /// How many entries a filter selects.
    pub fn count(&self, filter: &Filter, table: &Table) -> u64 {
        self.kept_count(filter).unwrap_or_else(|| self.matching(filter, table).count() as u64)
    }

    /// How many entries a filter selects, if that is kept.
    pub fn kept_count(&self, filter: &Filter) -> Option<u64> {
        self.counts.get(filter)
    }

    /// Keeps from now on how many entries a filter selects.
    pub(in crate::engine) fn keep_count(&mut self, filter: &Filter, table: &Table) {
        if self.kept_count(filter).is_none() {
            self.counts.begin(filter, self.matching(filter, table).count() as u64);
        }
    }

    /// No longer keeps how many entries a filter selects.
    pub(in crate::engine) fn end_count(&mut self, filter: &Filter) {
        self.counts.end(filter);
    }

    /// Checks that the journal has as many commands as expected.
    ///
    /// # Errors
    /// The expected and the actual number of commands.
    pub fn expect(&self, bound: Bound, filter: &Filter, table: &Table) -> Result<(), String> {
        bound.check(filter, &self.matching(filter, table).collect::<Vec<_>>())
    }

    pub(in crate::engine) fn add(&mut self, entry: Entry, table: &Table) -> u64 {
        self.begun += 1;
        if self.entries.len() >= self.most
            && let Some(oldest) = self.entries.pop_front()
        {
            self.counts.subtract(&oldest, table);
        }
        let entry = Entry { number: self.begun, ..entry };
        self.counts.add(&entry, table);
        self.entries.push_back(entry);
        self.begun
    }

    /// Changes an entry, if the journal still has it.
    pub(in crate::engine) fn change(&mut self, number: u64, table: &Table, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = find(&mut self.entries, number) else { return };
        self.counts.subtract(entry, table);
        change(entry);
        self.counts.add(entry, table);
    }

    /// Removes the last entry: its command was not run.
    pub(in crate::engine) fn take_back(&mut self, number: u64, table: &Table) {
        if let Some(entry) = self.entries.pop_back_if(|entry| entry.number == number) {
            self.counts.subtract(&entry, table);
        }
    }

    /// Records that the command is blocked, which no filter sees.
    pub(in crate::engine) fn waits(&mut self, number: u64) {
        if let Some(entry) = find(&mut self.entries, number) {
            entry.waited = Some(number);
        }
    }
}

fn find(entries: &mut VecDeque<Entry>, number: u64) -> Option<&mut Entry> {
    let place = entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
    entries.get_mut(place)
}
