//! Collections built ahead: other threads build those of the next blocks of a file while a thread stores those of one.
//!
//! A block is a number of whole records. Building the hash, list or sorted set of a record takes several times as long
//! as storing it, and needs nothing but the bytes. The thread that loads the file takes the blocks in their order and
//! reads each record as usual, except for values that it finds built. So the data, and the reason and place of a fault,
//! are the same as with one thread; values that the other threads cannot build are left to it.
//!
//! Costs: up to [`MAX_JOBS`] blocks and their values are in memory, of [`MAX_BYTES`] and one block more. The threads
//! exist from the second block until the loader is dropped, and only where the machine has a second processor.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::record::{Format, Loaded, Next};
use crate::rdb::jobs::{Jobs, MAX_JOBS, helpers};
use crate::rdb::kind;
use crate::rdb::load::Forms;
use crate::rdb::text::Reader;
use crate::value::Value;

/// The bytes of blocks from which on no other one is added.
const MAX_BYTES: usize = 4 << 20;

/// The collections of a block, in the order of the records.
#[derive(Debug, Default)]
pub(super) struct Built(VecDeque<BuiltValue>);

/// A collection, and the bytes of the block that are left before its value and behind it.
#[derive(Debug)]
struct BuiltValue {
    left_before: usize,
    left_behind: usize,
    value: Value,
}

impl Built {
    /// Builds the collections of a block as far as there is nothing wrong with them.
    fn of(format: Format, bytes: &[u8], forms: &Forms) -> Built {
        let (mut built, mut reader) = (Built::default(), Reader::new(bytes));
        while built.add(format, &mut reader, forms).is_some() {}
        built
    }

    fn add(&mut self, format: Format, reader: &mut Reader<'_>, forms: &Forms) -> Option<()> {
        match format.skip_to_value(reader)? {
            Next::Value(kind::TEXT) => reader.skip_text(),
            Next::Value(kind) => {
                let left_before = reader.left();
                let Ok(Loaded::Value(value)) = format.value(reader, kind, forms) else { return None };
                self.0.push_back(BuiltValue { left_before, left_behind: reader.left(), value });
                Some(())
            }
            Next::Record => Some(()),
            Next::End => None,
        }
    }

    /// Takes the value at which the reader of the block is, if it was built, and moves the reader behind it.
    #[inline]
    pub(super) fn take(&mut self, reader: &mut Reader<'_>) -> Option<Value> {
        if self.0.front()?.left_before != reader.left() {
            return None;
        }
        let built = self.0.pop_front()?;
        reader.bytes((built.left_before - built.left_behind) as u64)?;
        Some(built.value)
    }

    /// Forgets the values: the bytes are no longer those of the block.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The next blocks of a file.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    /// The bytes of the blocks that have not been taken.
    bytes: usize,
    threads: Vec<JoinHandle<()>>,
}

/// The state that the threads share.
#[derive(Debug)]
struct Shared {
    format: Format,
    blocks: Jobs<(Vec<u8>, Forms), (Vec<u8>, Built)>,
}

impl Ahead {
    /// No blocks, of a file of that format; `None` where the machine has one processor only.
    pub(super) fn new(format: Format) -> Option<Ahead> {
        let shared = Arc::new(Shared { format, blocks: Jobs::new() });
        (helpers() > 0).then_some(Ahead { shared, bytes: 0, threads: Vec::new() })
    }

    /// Whether there is room for another block.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < MAX_BYTES && self.shared.blocks.len() < MAX_JOBS
    }

    /// Adds a block.
    pub(super) fn push(&mut self, bytes: Vec<u8>, forms: Forms) {
        self.bytes += bytes.len();
        self.shared.blocks.push((bytes, forms));
        if self.threads.is_empty() && self.shared.blocks.len() > 1 {
            self.start_threads();
        }
    }

    /// Starts the threads. If there can be none, the thread that loads builds everything.
    fn start_threads(&mut self) {
        for _ in 0..helpers() {
            let shared = Arc::clone(&self.shared);
            let run = move || shared.blocks.help(|block| shared.build(block));
            self.threads.extend(thread::Builder::new().name("dunlin-build".to_owned()).spawn(run).ok());
        }
    }

    /// Takes the next block, and what is built of it.
    pub(super) fn next(&mut self) -> Option<(Vec<u8>, Built)> {
        let next = self.shared.blocks.next(|block| self.shared.build(block))?;
        self.bytes -= next.0.len();
        Some(next)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.blocks.close();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Shared {
    /// Builds a block. Should that panic, the thread that loads finds nothing built.
    fn build(&self, (bytes, forms): (Vec<u8>, Forms)) -> (Vec<u8>, Built) {
        let built = catch_unwind(AssertUnwindSafe(|| Built::of(self.format, &bytes, &forms)));
        (bytes, built.unwrap_or_default())
    }
}
