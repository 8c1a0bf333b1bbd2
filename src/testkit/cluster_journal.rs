//! The journals of all nodes of a cluster as one, as a test in Rust reads and checks them.

use super::World;
use super::journal::{assert_known, report};
use crate::engine::state::kit::{Bound, Entry, Filter, Journal as Kept, in_order};

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
#[derive(Clone, Debug)]
#[must_use = "the commands are recorded from here on; check them with an `assert_` method, or read `entries()`"]
pub struct ClusterJournal<'s> {
    world: &'s World,
    filter: Filter,
}

impl World {
    /// Returns the journal of the commands that come to any node of this cluster, a chain of redirects for example. The
    /// first call of this method starts it at all nodes. A world that is no cluster is one node.
    pub fn journal_of_all_nodes(&self) -> ClusterJournal<'_> {
        self.nodes().iter().for_each(|node| _ = node.shared().engine().observers.kit().begin_journal());
        ClusterJournal { world: self, filter: Filter::default() }
    }
}

impl<'s> ClusterJournal<'s> {
    /// Selects the calls of one command: a name in any case, `container|subcommand`, or a container.
    ///
    /// # Panics
    /// No command has this name.
    #[track_caller]
    pub fn command(&self, name: &str) -> ClusterJournal<'s> {
        assert_known(self.world.shared(), name);
        self.with(|filter| filter.command = Some(name.into()))
    }

    /// Selects the commands with a key that matches the glob.
    pub fn key(&self, pattern: impl AsRef<[u8]>) -> ClusterJournal<'s> {
        self.with(|filter| filter.key = Some(pattern.as_ref().to_vec()))
    }

    /// Selects the commands of clients with this name (CLIENT SETNAME).
    pub fn client(&self, name: impl AsRef<[u8]>) -> ClusterJournal<'s> {
        self.with(|filter| filter.client = Some(name.as_ref().to_vec()))
    }

    /// Selects the commands whose reply was an error.
    pub fn errors(&self) -> ClusterJournal<'s> {
        self.with(|filter| filter.errors = true)
    }

    /// Selects the commands whose reply sent the client to another node: MOVED or ASK.
    pub fn redirected(&self) -> ClusterJournal<'s> {
        self.with(|filter| filter.redirected = true)
    }

    fn with(&self, set: impl FnOnce(&mut Filter)) -> ClusterJournal<'s> {
        let mut selection = self.clone();
        set(&mut selection.filter);
        selection
    }

    /// Returns the selected commands in the order in which they began, each with its node.
    pub fn entries(&self) -> Vec<Entry> {
        let nodes = self.world.nodes();
        // Where a client has dropped a journal over the wire, its commands are gone.
        let of_node =
            |(number, node): (usize, &World)| node.shared().journal_as_node(number, &self.filter).unwrap_or_default();
        in_order(nodes.iter().enumerate().map(of_node).collect())
    }

    /// Returns the number of selected commands.
    pub fn count(&self) -> usize {
        self.entries().len()
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
        report(bound.check(&self.filter, &entries.iter().collect::<Vec<_>>()));
    }

    /// Deletes all recorded commands of all nodes, not only the selected ones.
    pub fn clear(&self) {
        for node in self.world.nodes() {
            node.shared().engine().observers.kit().journal.iter_mut().for_each(Kept::clear);
        }
    }
}
