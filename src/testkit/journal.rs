//! The journal, as a test in Rust reads and checks it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{CallError, Client};
use crate::engine::state::kit::{Bound, Entry, Filter, Journal as Kept};
use crate::server::clock::to_system;
use crate::server::shared::Shared;

/// The maximum timeout: the server refuses one that its clock cannot count.
pub(super) const LONGEST_MS: u128 = 1 << 50;

/// The recorded commands of a server, or a selection of them: [`World::journal`](super::World::journal).
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
pub struct Journal<'s> {
    pub(super) shared: &'s Arc<Shared>,
    filter: Filter,
}

/// A filter for an unknown command would match nothing, and the test would pass by mistake.
#[track_caller]
pub(super) fn assert_known(shared: &Shared, name: &str) {
    let is_known = shared.engine().table.known(name.as_bytes()).is_some();
    assert!(is_known, "unknown command name '{name}'");
}

/// Fails the test if other commands were found than it expected.
#[track_caller]
pub(super) fn report(checked: Result<(), String>) {
    if let Err(text) = checked {
        panic!("{}", text.replace("; ", "\n  ").replacen(": #", ":\n  #", 1));
    }
}

impl<'s> Journal<'s> {
    /// The whole journal, which is started if there is none.
    pub(super) fn begin(shared: &'s Arc<Shared>) -> Journal<'s> {
        shared.engine().observers.kit().begin_journal();
        Journal { shared, filter: Filter::default() }
    }

    /// Selects the calls of one command: a name in any case, `container|subcommand`, or a container.
    ///
    /// # Panics
    /// No command has this name.
    #[track_caller]
    pub fn command(&self, name: &str) -> Journal<'s> {
        assert_known(self.shared, name);
        Journal { filter: Filter { command: Some(name.into()), ..self.filter.clone() }, ..*self }
    }

    /// Selects the commands with a key that matches the glob.
    pub fn key(&self, pattern: impl AsRef<[u8]>) -> Journal<'s> {
        Journal { filter: Filter { key: Some(pattern.as_ref().to_vec()), ..self.filter.clone() }, ..*self }
    }

    /// Selects the commands of clients with this name (CLIENT SETNAME).
    pub fn client(&self, name: impl AsRef<[u8]>) -> Journal<'s> {
        Journal { filter: Filter { client: Some(name.as_ref().to_vec()), ..self.filter.clone() }, ..*self }
    }

    /// Selects the commands whose reply was an error.
    pub fn errors(&self) -> Journal<'s> {
        Journal { filter: Filter { errors: true, ..self.filter.clone() }, ..*self }
    }

    /// Selects the commands whose reply sent the client to another node of a cluster: MOVED or ASK.
    pub fn redirected(&self) -> Journal<'s> {
        Journal { filter: Filter { redirected: true, ..self.filter.clone() }, ..*self }
    }

    /// Returns the selected commands, the oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.with(|journal, table| journal.matching(&self.filter, table).cloned().collect())
    }

    /// Returns the number of selected commands.
    pub fn count(&self) -> usize {
        self.with(|journal, table| journal.matching(&self.filter, table).count())
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
        report(self.with(|journal, table| journal.expect(bound, &self.filter, table)));
    }

    /// Waits until the selection has at least this many commands.
    ///
    /// # Errors
    /// [`CallError::Refused`] if `timeout` passes on the server's clock; while the clock is frozen, the wait goes on.
    pub fn wait_for(&self, count: u64, timeout: Duration) -> Result<(), CallError> {
        Client::examine(Arc::clone(self.shared))?.call(self.words_of_wait(count, timeout)).map(drop)
    }

    /// The DUNLIN command that waits until the selection has this many commands.
    pub(super) fn words_of_wait(&self, count: u64, timeout: Duration) -> Vec<Vec<u8>> {
        let mut words = vec![b"DUNLIN".to_vec(), b"WAIT".to_vec(), b"JOURNAL".to_vec(), count.to_string().into()];
        words.extend(self.filter.words().map(<[u8]>::to_vec));
        let timeout_ms = timeout.as_millis().clamp(1, LONGEST_MS);
        words.extend([b"TIMEOUT".to_vec(), timeout_ms.to_string().into()]);
        words
    }

    /// Deletes all recorded commands, not only the selected ones.
    pub fn clear(&self) {
        self.shared.engine().observers.kit().journal.iter_mut().for_each(Kept::clear);
    }

    /// Returns the whole journal as a transcript, which can be read and replayed.
    pub fn transcript(&self) -> String {
        self.with(|journal, table| journal.transcript(table))
    }

    fn with<R>(&self, look: impl FnOnce(&Kept, &crate::engine::Table) -> R) -> R {
        let engine = self.shared.engine();
        let journal = engine.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref());
        match journal {
            Some(journal) => look(journal, &engine.table),
            // A client has stopped it over the wire, so its commands are gone.
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
