//! The keyspace: the storage of one numbered database.
//!
//! A [`Database`] maps keys to values, keeps their deadlines, and can be walked with a cursor while it changes. It
//! reads no clock: a deadline is a number of unix milliseconds, and a key that is due stays until the engine removes
//! it ([`Database::first_due`] finds it). It sends no notifications and no replies.
//!
//! ```text
//! key --hash--> table: segments of cache lines          table.rs, segment.rs
//!                 |  a 32-bit handle
//!                 v
//!               record: key, short text, deadline ...   record.rs, placed by records.rs in cells.rs
//!                 |  a 32-bit number
//!                 v
//!               a long key or text, a collection        slab.rs
//!
//! deadline ---> order of (deadline, handle)             value/deadlines.rs
//! slot -------> order of (slot, section, handle),       slot_index.rs
//!               in a cluster
//! ```
//!
//! One record per key in one cell of an arena, so a look-up reads one cache line of the table and one record, and a
//! key of 16 bytes with a text of 32 takes 63 bytes in all, 77 with a deadline. Nothing here ever pauses to double
//! its size: the table splits a segment at a time, arenas grow a chunk at a time.
//!
//! For many databases with the same initial contents, make one [fork](Database::fork) and clone it: clones copy on
//! write. A clone has rows without contents where the base has segments, chunks, pages and leaves; it reads from the
//! base the parts it has not changed, and copies a part, and of a page one value, before it changes it; a large value
//! is shared by parts in the same way ([`crate::value::base`]). Parts keep their numbers, so a clone behaves exactly as
//! a copy would, in the order of its keys, its random choices and the count of its memory. It costs ten bytes for each
//! thousand that it shares, and databases that were never forked pay nothing.

mod cells;
mod database;
mod frozen;
mod hash;
mod pattern_index;
mod record;
mod records;
mod segment;
mod slab;
mod slot_index;
mod table;

pub use crate::value::ValueMut;
pub use database::{Database, KeyOrder, Shares};
pub use frozen::{FrozenDatabase, FrozenKey};

use std::sync::Arc;

use crate::value::base::Fork;
use crate::value::{TextView, Value};

/// The base of a structure that shares its contents, if nothing else shares it any more.
fn reclaimed<T>(base: &mut Option<Arc<T>>) -> Option<T> {
    match Arc::try_unwrap(base.take()?) {
        Ok(alone) => Some(alone),
        Err(shared) => {
            *base = Some(shared);
            None
        }
    }
}

/// A key of one database by the handle of its record; valid until that database next changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHandle(u32);

/// A new value, to be stored.
#[derive(Clone, Debug)]
pub enum New<'a> {
    /// A text, whose bytes are copied directly to where they are stored.
    Text(TextView<'a>),
    /// A value that is moved in.
    Value(Value),
}

impl New<'_> {
    /// The earliest deadline within the value.
    fn first_deadline(&self) -> Option<i64> {
        match self {
            New::Text(_) => None,
            New::Value(value) => value.view().first_deadline(),
        }
    }
}

/// Contents that are removed but not yet freed. Dropping them may take long, and may be done on another thread.
#[derive(Debug, Default)]
pub struct LazyFree(Contents);

#[derive(Debug, Default)]
enum Contents {
    #[default]
    Nothing,
    Value(Value),
    Other(Box<dyn Held>),
}

/// Contents of any other type, to be dropped.
trait Held: std::fmt::Debug + Send {
    fn memory(&self) -> usize;
}

/// The size from which a value takes long to free, in bytes or parts; and that of a value whose bytes are in its parts,
/// which are freed as they are.
const LARGE_BYTES: usize = 64 << 10;
const LARGE_BLOCK_BYTES: usize = 4 << 20;
const MANY_PARTS: usize = 256;

/// Something that knows no size, with the size that was counted for it.
#[derive(Debug)]
struct Counted<T> {
    #[expect(dead_code, reason = "it is kept only to be dropped")]
    contents: T,
    bytes: usize,
}

impl<T: std::fmt::Debug + Send> Held for Counted<T> {
    fn memory(&self) -> usize {
        self.bytes
    }
}

impl LazyFree {
    /// Contents that take this many bytes of memory.
    pub fn of<T: std::fmt::Debug + Send + 'static>(contents: T, bytes: usize) -> LazyFree {
        LazyFree(Contents::Other(Box::new(Counted { contents, bytes })))
    }

    /// Whether it is freed on another thread. A smaller value is freed faster than handed over: a text, which is one
    /// allocation, and a list or a stream of few nodes or blocks, up to 4 MiB: to wake the thread takes as long as to
    /// free some hundred nodes.
    pub fn takes_long(&self) -> bool {
        match &self.0 {
            Contents::Nothing => false,
            Contents::Value(value @ (Value::Text(_) | Value::List(_) | Value::Stream(_))) => {
                value.memory() >= LARGE_BLOCK_BYTES || value.parts() > MANY_PARTS
            }
            Contents::Value(value) => value.memory() >= LARGE_BYTES || value.parts() > MANY_PARTS,
            Contents::Other(held) => held.memory() >= LARGE_BYTES,
        }
    }

    /// This, to be dropped elsewhere and later: it no longer holds what it shares with others.
    pub fn alone(mut self) -> LazyFree {
        if let Contents::Value(value) = &mut self.0 {
            value.set_base(None);
        }
        self
    }

    /// The bytes of memory that dropping this gives back.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Contents::Nothing => 0,
            Contents::Value(value) => value.memory(),
            Contents::Other(held) => held.memory(),
        }
    }

    /// The number of its allocations that grows with the contents of a value.
    pub fn parts(&self) -> usize {
        match &self.0 {
            Contents::Value(value) => value.parts(),
            Contents::Nothing | Contents::Other(_) => 0,
        }
    }
}

impl From<Value> for LazyFree {
    fn from(value: Value) -> LazyFree {
        LazyFree(Contents::Value(value))
    }
}

impl From<Option<Value>> for LazyFree {
    fn from(value: Option<Value>) -> LazyFree {
        value.map_or(LazyFree::default(), LazyFree::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::list::{Limits, List};

    /// A list of nodes with one element each.
    fn list(nodes: usize, element: &[u8]) -> LazyFree {
        let limits = Limits { size: 1, ..Limits::default() };
        LazyFree::from(Value::List(List::from_elements(std::iter::repeat_n(element, nodes), &limits)))
    }

    #[test]
    fn a_value_of_many_parts_or_many_bytes_takes_long_to_free() {
        assert!(!list(MANY_PARTS, b"short").takes_long());
        assert!(list(MANY_PARTS + 1, b"short").takes_long());
        let element = vec![b'x'; LARGE_BLOCK_BYTES / 4];
        assert!(!list(3, &element).takes_long());
        assert!(list(4, &element).takes_long());
    }
}
