//! The stream: entries of fields and values in the order of their ids, and the groups of consumers that read them.
//!
//! ```text
//! Stream --> log:    [ block ][ block ][ block ... ]        entries, packed; ids ascend
//!        --> groups: [ a ][ b ]                             each: last read id, consumers, pending entries
//! ```
//!
//! - [`block`]: entries that follow one another in one allocation: ids as differences, shared fields only once,
//!   deleted entries marked; a block is full where Redis's node is ([`size`]).
//! - [`log`]: the blocks, and the counters of added and deleted entries.
//! - [`group`]: the entries that were delivered to a consumer and not acknowledged.
//! - [`super::sorted_chunks`]: the sorted sequence that holds blocks and pending entries.
//! - [`id`]: the ids, and how they are parsed.
//!
//! It knows no key, no reply and no clock: the time is an argument.
//!
//! Costs: adding an entry O(1) amortised, finding one O(log entries) and a walk over the block. An entry of one field
//! and a value of ten bytes takes 13 bytes, where Redis's radix tree of listpacks takes 21.
//!
//! Sources: the idea of nodes of packed entries is Redis's; the encoding, the order and the groups are our own.

mod block;
mod coding;
mod entry;
pub mod group;
mod groups;
mod id;
mod log;
mod size;

pub use block::{Block, Draft, Rebuilding, Row, Walk};
pub use entry::Entry;
pub use group::{Consumer, ConsumerNumber, Group, Pending};
pub use groups::Groups;
pub use id::Id;
pub use log::{Log, Trim};
pub use size::{Limits, MAX_BYTES};

use crate::value::base::{Base, Fork};
use std::fmt;

/// A stream. Unlike other collections it may be empty.
#[derive(Clone)]
pub struct Stream {
    body: Box<Body>,
}

#[derive(Clone, Default)]
struct Body {
    log: Log,
    groups: Groups,
}

/// The entries are shared; the groups, with their pending entries, are copied.
impl Fork for Stream {
    fn without_parts(&self) -> Stream {
        let Body { log, groups } = &*self.body;
        Stream { body: Box::new(Body { log: log.without_parts(), groups: groups.clone() }) }
    }

    fn set_base(&mut self, base: Option<Base<Stream>>) {
        self.body.log.set_base(base.map(|base| base.part(Stream::log)));
    }

    fn is_fork(&self) -> bool {
        self.body.log.is_fork()
    }

    fn own_bytes(&self) -> usize {
        self.body.log.own_bytes() + self.body.groups.memory()
    }

    fn reclaim(&mut self, base: &mut Stream) {
        self.body.log.reclaim(&mut base.body.log);
    }
}

impl Default for Stream {
    fn default() -> Stream {
        Stream::new()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.log().range(Id::MIN, Id::MAX).map(|entry| (entry.id().to_string(), entry.len()));
        formatter.debug_map().entries(entries).finish()
    }
}

impl Stream {
    /// A stream without entries and groups.
    pub fn new() -> Stream {
        Stream { body: Box::default() }
    }

    /// The entries.
    pub fn log(&self) -> &Log {
        &self.body.log
    }

    /// The entries, for changing.
    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.body.log
    }

    /// The consumer groups.
    pub fn groups(&self) -> &Groups {
        &self.body.groups
    }

    /// The group with that name.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.body.groups.get(name)
    }

    /// Changes the group with that name by `act`, which also reads the entries.
    pub fn edit_group<R>(&mut self, name: &[u8], act: impl FnOnce(&Log, &mut Group) -> R) -> Option<R> {
        let Body { log, groups } = &mut *self.body;
        groups.edit(name, |group| act(log, group))
    }

    /// Adds a group that has read up to `last`, `read` entries if that is known; false if one of that name exists.
    pub fn add_group(&mut self, name: &[u8], last: Id, read: Option<i64>) -> bool {
        self.body.groups.add(name, last, read)
    }

    /// Removes a group; false if none of that name exists.
    pub fn remove_group(&mut self, name: &[u8]) -> bool {
        self.body.groups.remove(name)
    }

    /// `stream`: what `OBJECT ENCODING` replies.
    pub fn encoding(&self) -> &'static str {
        "stream"
    }

    /// Bytes of our own heap allocations. O(1).
    pub fn memory(&self) -> usize {
        size_of::<Body>() + self.body.log.memory() + self.body.groups.memory()
    }

    /// Panics unless the invariants hold.
    pub fn check(&self) {
        self.body.log.check();
        self.body.groups.check();
    }
}
