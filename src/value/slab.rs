//! A slab: items by number, each in an allocation of its own, so that the memory of a removed item is freed at once.
//!
//! The nodes of a sorted set's order and the long bytes of an arena are items of slabs. A slab does not know who holds
//! a number: one that was removed may be used again.
//!
//! - Invariant: `items` without an item are the numbers in `vacant`, and in a fork ([`Fork`]) those in the base.
//! - Costs: O(1) each; 8 bytes an item in addition to the item, 4 a vacancy.

use crate::value::base::{Base, Fork};
use std::ops::{Index, IndexMut};

/// A number that no item has.
pub(super) const NONE: u32 = u32::MAX;

pub(super) struct Slab<T> {
    items: Vec<Option<Box<T>>>,
    vacant: Vec<u32>,
    base: Option<Box<Base<Slab<T>>>>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { items: Vec::new(), vacant: Vec::new(), base: None }
    }
}

/// A clone has all items itself, and the spare capacity.
impl<T: Clone> Clone for Slab<T> {
    fn clone(&self) -> Self {
        let mut items = self.unfilled();
        for (id, item) in (0..).zip(&self.items) {
            items[id as usize] = item.clone();
        }
        if let Some(base) = &self.base {
            let missing = (0..).zip(&mut items).filter(|(_, item)| item.is_none());
            missing.for_each(|(id, item)| *item = base.get().item(id).cloned().map(Box::new));
            self.vacant.iter().for_each(|&id| items[id as usize] = None);
        }
        Slab { items, vacant: self.vacant.clone(), base: None }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, item: T) -> u32 {
        let item = Some(Box::new(item));
        if let Some(id) = self.vacant.pop() {
            self.items[id as usize] = item;
            return id;
        }
        self.items.push(item);
        (self.items.len() - 1) as u32
    }

    /// Removes an item.
    pub(super) fn remove(&mut self, id: u32) {
        self.items[id as usize] = None;
        self.vacant.push(id);
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.vacant.len()
    }

    /// All numbers of items are below this one.
    pub(super) fn end(&self) -> usize {
        self.items.len()
    }

    /// The numbers of all items, in ascending order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        let mut is_vacant = vec![false; self.items.len()];
        self.vacant.iter().for_each(|&id| is_vacant[id as usize] = true);
        (0..).zip(is_vacant).filter(|(_, is_vacant)| !is_vacant).map(|(id, _)| id)
    }

    /// Bytes allocated, not counting what the items allocate themselves.
    pub(super) fn memory(&self) -> usize {
        self.len() * size_of::<T>() + self.items.capacity() * size_of::<Option<Box<T>>>() + self.vacant.capacity() * 4
    }

    /// An item that is in the base.
    #[cold]
    #[inline(never)]
    fn base_item(&self, id: u32) -> &T {
        let base = self.base.as_ref().map(|base| base.get());
        base.and_then(|base| base.item(id)).expect("numbers lead to items that exist")
    }

    fn item(&self, id: u32) -> Option<&T> {
        self.items.get(id as usize)?.as_deref()
    }

    /// As many items, all missing, with the same capacity.
    fn unfilled(&self) -> Vec<Option<Box<T>>> {
        let mut items = Vec::with_capacity(self.items.capacity());
        items.resize_with(self.items.len(), || None);
        items
    }
}

impl<T: Clone> Slab<T> {
    /// Two different items at once.
    pub(super) fn pair(&mut self, a: u32, b: u32) -> (&mut T, &mut T) {
        [a, b].into_iter().for_each(|id| _ = &mut self[id]);
        match self.items.get_disjoint_mut([a as usize, b as usize]) {
            Ok([Some(a), Some(b)]) => (a, b),
            _ => unreachable!("{a} and {b} are two items"),
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Fork for Slab<T> {
    fn without_parts(&self) -> Self {
        Slab { items: self.unfilled(), vacant: self.vacant.clone(), base: None }
    }

    fn set_base(&mut self, base: Option<Base<Self>>) {
        self.base = base.map(Box::new);
    }

    fn is_fork(&self) -> bool {
        self.base.is_some()
    }

    fn own_bytes(&self) -> usize {
        self.items.iter().flatten().count() * size_of::<T>()
    }

    fn reclaim(&mut self, base: &mut Self) {
        // What is vacant here may be an item there.
        for &id in &self.vacant {
            if let Some(item) = base.items.get_mut(id as usize) {
                *item = None;
            }
        }
        for (item, shared) in self.items.iter_mut().zip(&mut base.items) {
            if item.is_none() {
                *item = shared.take();
            }
        }
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        match &self.items[id as usize] {
            Some(item) => item,
            None => self.base_item(id),
        }
    }
}

impl<T: Clone> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        let base = &self.base;
        self.items[id as usize].get_or_insert_with(|| fetched(base, id))
    }
}

/// A copy of an item that is in the base.
#[cold]
#[inline(never)]
fn fetched<T: Clone>(base: &Option<Box<Base<Slab<T>>>>, id: u32) -> Box<T> {
    let item = base.as_ref().and_then(|base| base.get().item(id));
    Box::new(item.expect("numbers lead to items that exist").clone())
}
