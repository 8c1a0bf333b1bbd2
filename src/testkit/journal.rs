//! The journal, as a test in Rust reads and checks it: that of one node, or those of all nodes of a cluster as one.

use std::time::{Duration, SystemTime};

use super::{CallError, World, wait};
use crate::engine::Table;
use crate::engine::state::kit::{Bound, Entry, Filter, Journal as Kept, in_order};
use crate::server::clock::to_system;
use crate::server::shared::Shared;

/// The recorded commands of a server, or a selection of them: [`World::journal`]. With `OF_ALL_NODES` those of all
/// nodes of a cluster: [`ClusterJournal`].
///
/// ```
/// let server = dunlin::Server::start()?;
/// let journal = server.journal();
/// let mut client = server.client()?;
/// client.call(["SET", "user:1", "ann"])?;
/// client.call(["GET", "user:1"])?;
///
/// journal.command("GET").key("user:*").assert_at_most(1);
/// journal.command("KEYS").assert_none();
/// journal.errors().assert_none();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the commands are recorded from here on; check them with an `assert_` method, or read `entries()`"]
pub struct Journal<'s, const OF_ALL_NODES: bool = false> {
    pub(super) world: &'s World,
    filter: Filter,
}

/// The recorded commands of all nodes of a cluster in the order in which they began, or a selection of them:
/// [`World::journal_of_all_nodes`].
///
/// ```
/// let cluster = dunlin::Server::cluster(3).start()?;
/// let journal = cluster.journal_of_all_nodes();
/// cluster.nodes()[1].client()?.call(["SET", "bar", "1"]).expect_err("node 0 owns its slot");
/// cluster.nodes()[0].client()?.call(["SET", "bar", "1"])?; // the client has learned where
///
/// journal.redirected().key("bar").assert_at_most(1);
/// let nodes: Vec<Option<usize>> = journal.command("SET").entries().iter().map(|entry| entry.node).collect();
/// assert_eq!(nodes, [Some(1), Some(0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type ClusterJournal<'s> = Journal<'s, true>;

/// A filter for an unknown command would match nothing, and the test would pass by mistake.
#[track_caller]
pub(super) fn assert_known(shared: &Shared, name: &str) {
    let is_known = shared.engine().table.known(name.as_bytes()).is_some();
    assert!(is_known, "unknown command name '{name}'");
}

impl World {
    /// Returns the journal of the commands that the server runs; the first call of this method starts it.
    pub fn journal(&self) -> Journal<'_> {
        Journal::begin(self)
    }

    /// Returns the journal of the commands that come to any node of this cluster, a chain of redirects for example. The
    /// first call of this method starts it at all nodes. A world that is no cluster is one node.
    pub fn journal_of_all_nodes(&self) -> ClusterJournal<'_> {
        Journal::begin(self)
    }
}

impl<'s, const OF_ALL_NODES: bool> Journal<'s, OF_ALL_NODES> {
    /// The whole journal, which is started where there is none.
    fn begin(world: &'s World) -> Self {
        let journal = Journal { world, filter: Filter::default() };
        journal.nodes().iter().for_each(|node| _ = node.shared().engine().observers.kit().begin_journal());
        journal
    }

    /// The nodes whose commands it has.
    fn nodes(&self) -> Vec<World> {
        if OF_ALL_NODES { self.world.nodes() } else { vec![self.world.clone()] }
    }

    /// Selects the calls of one command: a name in any case, `container|subcommand`, or a container.
    ///
    /// # Panics
    /// No command has this name.
    #[track_caller]
    pub fn command(&self, name: &str) -> Self {
        assert_known(self.world.shared(), name);
        self.with(|filter| filter.command = Some(name.into()))
    }

    /// Selects the commands with a key that matches the glob.
    pub fn key(&self, pattern: impl AsRef<[u8]>) -> Self {
        self.with(|filter| filter.key = Some(pattern.as_ref().to_vec()))
    }

    /// Selects the commands of clients with this name (CLIENT SETNAME).
    pub fn client(&self, name: impl AsRef<[u8]>) -> Self {
        self.with(|filter| filter.client = Some(name.as_ref().to_vec()))
    }

    /// Selects the commands whose reply was an error.
    pub fn errors(&self) -> Self {
        self.with(|filter| filter.errors = true)
    }

    /// Selects the commands whose reply sent the client to another node of a cluster: MOVED or ASK.
    pub fn redirected(&self) -> Self {
        self.with(|filter| filter.redirected = true)
    }

    fn with(&self, set: impl FnOnce(&mut Filter)) -> Self {
        let mut selection = self.clone();
        set(&mut selection.filter);
        selection
    }

    /// Returns the selected commands in the order in which they began; of a cluster's journal each with its node.
    pub fn entries(&self) -> Vec<Entry> {
        let entries = |node: World| {
            if OF_ALL_NODES {
                // Where a client has dropped a journal over the wire, its commands are gone.
                return node.shared().journal_as_node(&self.filter).unwrap_or_default();
            }
            node.with_journal(|journal, table| journal.matching(&self.filter, table).cloned().collect())
        };
        in_order(self.nodes().into_iter().map(entries).collect())
    }

    /// Returns the number of selected commands.
    pub fn count(&self) -> usize {
        let count = |node: World| node.with_journal(|journal, table| journal.matching(&self.filter, table).count());
        self.nodes().into_iter().map(count).sum()
    }

    /// Asserts that at most this many commands are selected.
    ///
    /// # Panics
    /// The selection has more commands; the message lists them.
    #[track_caller]
    pub fn assert_at_most(&self, count: u64) {
        self.assert(Bound::AtMost(count));
    }

    /// Asserts that at least this many commands are selected.
    ///
    /// # Panics
    /// The selection has fewer commands; the message lists them.
    #[track_caller]
    pub fn assert_at_least(&self, count: u64) {
        self.assert(Bound::AtLeast(count));
    }

    /// Asserts that exactly this many commands are selected.
    ///
    /// # Panics
    /// The selection has more or fewer commands; the message lists them.
    #[track_caller]
    pub fn assert_exactly(&self, count: u64) {
        self.assert(Bound::Exactly(count));
    }

    /// Asserts that no command is selected.
    ///
    /// # Panics
    /// The selection has commands; the message lists them.
    #[track_caller]
    pub fn assert_none(&self) {
        self.assert(Bound::Exactly(0));
    }

    #[track_caller]
    fn assert(&self, bound: Bound) {
        let entries = self.entries();
        if let Err(text) = bound.check(&self.filter, &entries.iter().collect::<Vec<_>>()) {
            panic!("{}", text.replace("; ", "\n  ").replacen(": #", ":\n  #", 1));
        }
    }

    /// Deletes all recorded commands, not only the selected ones.
    pub fn clear(&self) {
        for node in self.nodes() {
            node.shared().engine().observers.kit().journal.iter_mut().for_each(Kept::clear);
        }
    }
}

impl<const OF_ALL_NODES: bool> Journal<'_, OF_ALL_NODES> {
    /// Waits until the selection has at least this many commands.
    ///
    /// # Errors
    /// [`CallError::Refused`] if `timeout` passes on the server's clock; while the clock is frozen, the wait goes on.
    pub fn wait_for(&self, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.world.test_client()?.call(self.words_of_wait(count, timeout)).map(drop)
    }

    /// The DUNLIN command that waits until the selection has this many commands.
    pub(super) fn words_of_wait(&self, count: u64, timeout: Duration) -> Vec<Vec<u8>> {
        // A world that is no cluster is one node.
        let has_nodes = OF_ALL_NODES && self.world.shared().node_port().is_some();
        let all_nodes = has_nodes.then(|| b"ALL-NODES".to_vec());
        let selection = all_nodes.into_iter().chain(self.filter.words().map(<[u8]>::to_vec)).collect();
        wait::command(wait::journal(count, selection), timeout)
    }
}

impl Journal<'_> {
    /// Returns the whole journal as a transcript, which can be read and replayed.
    pub fn transcript(&self) -> String {
        self.world.with_journal(|journal, table| journal.transcript(table))
    }
}

impl World {
    /// Calls `look` with the journal of this node. If a client has dropped it over the wire, its commands are gone.
    fn with_journal<R>(&self, look: impl FnOnce(&Kept, &Table) -> R) -> R {
        let engine = self.shared().engine();
        match engine.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref()) {
            Some(journal) => look(journal, &engine.table),
            None => look(&Kept::of(1), &engine.table),
        }
    }
}

impl Entry {
    /// When the command began, on the server's clock.
    pub fn time(&self) -> SystemTime {
        to_system(self.moment)
    }
}
