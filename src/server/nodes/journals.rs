//! The journals of all nodes of a cluster, read as one: in the order in which the commands began, whatever their nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Cluster;
use crate::engine::exec::kit::waits;
use crate::engine::state::kit::{Entry, Filter, Kit, in_order};
use crate::engine::{HostReply, JournalOrder, KitError};
use crate::server::shared::Shared;

impl Cluster {
    /// The next number for a recorded command.
    pub(in crate::server) fn next_order(&self) -> u64 {
        self.recorded.fetch_add(1, Ordering::Relaxed)
    }

    /// Carries out an order about the journals of all nodes.
    ///
    /// # Errors
    /// A node has no journal to read, or none has one to change.
    pub(crate) fn order_journals(&self, order: &JournalOrder) -> Result<HostReply, KitError> {
        match order {
            JournalOrder::Read(filter) => return self.journal(filter).map(HostReply::Journal),
            JournalOrder::Start(most) => self.change_journals(|kit| {
                kit.restart_journal(*most);
                true
            })?,
            JournalOrder::Stop => self.change_journals(Kit::stop_journal)?,
            JournalOrder::Clear => self.change_journals(Kit::clear_journal)?,
        }
        Ok(HostReply::Done)
    }

    /// The commands that a filter selects from the journals of all nodes, in the order in which they began.
    ///
    /// # Errors
    /// A node has no journal.
    pub(crate) fn journal(&self, filter: &Filter) -> Result<Vec<Entry>, KitError> {
        let nodes = self.nodes();
        let entries = nodes.iter().map(|node| {
            let entries = node.journal_as_node(filter);
            entries.ok_or_else(|| KitError::NoJournalAt(node.node_number()))
        });
        Ok(in_order(entries.collect::<Result<Vec<_>, _>>()?))
    }

    /// The number of commands that a filter selects from the journals of all nodes.
    ///
    /// # Errors
    /// A node has no journal.
    fn count_in_journals(&self, filter: &Filter) -> Result<u64, KitError> {
        let nodes = self.nodes();
        let counts = nodes.iter().map(|node| {
            let engine = node.engine();
            let journal = engine.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref());
            let count = journal.map(|journal| journal.count(filter, &engine.table));
            count.ok_or_else(|| KitError::NoJournalAt(node.node_number()))
        });
        counts.sum()
    }

    /// Changes the journals of all nodes by `change`, which is false where there is none.
    ///
    /// # Errors
    /// No node has a journal.
    pub(crate) fn change_journals(&self, change: impl Fn(&mut Kit) -> bool) -> Result<(), KitError> {
        let change_one = |node: &Arc<Shared>| {
            let mut engine = node.engine();
            let has_changed = change(engine.observers.kit());
            engine.observers.put_kit_away();
            has_changed
        };
        let changed = self.nodes().iter().filter(|node| change_one(node)).count();
        if changed > 0 { Ok(()) } else { Err(KitError::NoJournal) }
    }
}

/// Waits for the journals of all nodes. Whenever a node has run something, what each client waits for is counted.
impl Cluster {
    /// Begins to count what clients wait for.
    pub(in crate::server) fn await_journals(&self) {
        self.awaits_journals.store(true, Ordering::SeqCst);
    }

    /// Whether clients may wait for the journals of all nodes.
    #[inline]
    pub(super) fn are_journals_awaited(&self) -> bool {
        self.awaits_journals.load(Ordering::SeqCst)
    }

    /// Counts what clients wait for, and ends the waits that are over. Goes on with that while there are any.
    pub(super) fn count_journals(&self) {
        // First, so that a client that begins to wait meanwhile is not missed.
        self.awaits_journals.store(false, Ordering::SeqCst);
        for node in self.nodes() {
            let waits = waits::waits_for_all_journals(&node.engine());
            for (session, filter) in waits {
                let count = self.count_in_journals(&filter);
                node.act_without_delivery(|engine| waits::note_found(engine, session, count));
                self.await_journals();
            }
        }
    }
}

impl Cluster {
    /// Starts a journal at a new node, like that of the others, if all of them keep one.
    pub(super) fn begin_journal_at(&self, new: &Shared) {
        let others = self.nodes().into_iter().filter(|node| node.node_number() != new.node_number());
        let limits: Option<Vec<usize>> = others.map(|node| node.journal_limit()).collect();
        if let Some(most) = limits.and_then(|limits| limits.into_iter().max()) {
            new.engine().observers.kit().restart_journal(most);
        }
    }
}

impl Shared {
    /// How many commands the journal of this node keeps; `None` if it records none.
    fn journal_limit(&self) -> Option<usize> {
        let engine = self.engine();
        let journal = engine.observers.kit.as_ref()?.journal.as_ref()?;
        journal.is_on.then(|| journal.limit())
    }

    /// The commands that a filter selects from the journal of this node; `None` if it has no journal.
    pub(crate) fn journal_as_node(&self, filter: &Filter) -> Option<Vec<Entry>> {
        let (engine, number) = (self.engine(), self.node_number());
        let journal = engine.observers.kit.as_ref()?.journal.as_ref()?;
        let found = journal.matching(filter, &engine.table);
        Some(found.map(|entry| entry.at_node(number)).collect())
    }
}
