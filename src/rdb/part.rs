//! A part of a payload: a text that is needed only until a value is built from it.
//!
//! A thread keeps the memory in which it decompressed a part, for the next: most values are built of one part, so a
//! payload of a small collection takes no memory but the collection's own.

use super::lzf;
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Deref;

/// The most memory that a thread keeps.
const MAX_KEPT: usize = 1 << 16;

thread_local! {
    static MEMORY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A text that is read only to build a value of it.
#[derive(Debug)]
pub(super) enum Part<'p> {
    /// A text that is in the payload, or in memory of its own.
    Text(Cow<'p, [u8]>),
    /// A text that was compressed: the first bytes of the thread's memory.
    Decompressed(Vec<u8>, usize),
}

impl<'p> Part<'p> {
    pub(super) fn of(text: Cow<'p, [u8]>) -> Part<'p> {
        Part::Text(text)
    }

    /// The text of that length; `None` if the compressed bytes are damaged.
    pub(super) fn decompressed(short: &[u8], length: usize) -> Option<Part<'p>> {
        let mut memory = MEMORY.take();
        lzf::decompress_into(&mut memory, short, length)?;
        Some(Part::Decompressed(memory, length))
    }
}

impl Deref for Part<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Part::Text(text) => text,
            Part::Decompressed(memory, length) => memory.get(..*length).unwrap_or_default(),
        }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if let Part::Decompressed(memory, _) = self
            && memory.len() <= MAX_KEPT
        {
            MEMORY.set(std::mem::take(memory));
        }
    }
}
