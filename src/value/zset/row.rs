//! A short array with room for `N`: nodes of every level consist of it.
//!
//! - Invariant: `len <= N`.
//! - Costs: a change in the middle moves the items behind it; nothing is allocated.

use std::ops::{Deref, DerefMut, Range};

#[derive(Clone)]
#[repr(C)]
pub(super) struct Row<T, const N: usize> {
    len: u32,
    items: [T; N],
}

impl<T: Copy + Default, const N: usize> Default for Row<T, N> {
    fn default() -> Self {
        Row { len: 0, items: [T::default(); N] }
    }
}

impl<T: Copy + Default, const N: usize> Row<T, N> {
    pub(super) fn is_full(&self) -> bool {
        self.len as usize == N
    }

    /// Inserts items before position `at`. There must be room.
    pub(super) fn insert(&mut self, at: usize, items: &[T]) {
        let len = self.len as usize;
        self.items.copy_within(at..len, at + items.len());
        self.items[at..at + items.len()].copy_from_slice(items);
        self.len = (len + items.len()) as u32;
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        let len = self.len as usize;
        self.items.copy_within(range.end..len, range.start);
        self.len = (len - range.len()) as u32;
    }

    /// Moves items into a row of their own.
    pub(super) fn take(&mut self, range: Range<usize>) -> Row<T, N> {
        let mut taken = Row::default();
        taken.insert(0, &self[range.clone()]);
        self.remove(range);
        taken
    }
}

impl<T, const N: usize> Deref for Row<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[..self.len as usize]
    }
}

impl<T, const N: usize> DerefMut for Row<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[..self.len as usize]
    }
}
