//! A slab: values of one type, addressed by 32-bit numbers that do not change while the value exists.
//!
//! It grows a page at a time, so inserting never moves a value, and an empty page frees its memory.
//!
//! [`Slab::share_contents`] makes clones copy on write: they have neither pages nor values of their own, find them
//! under the same numbers in the base, and copy the entries of a page, and of those one value, before they change it. A
//! large value is not copied but forked ([`Fork`]): its base is in the slab's base. A value that leaves the slab is
//! whole, unless it is only to be dropped.
//!
//! Invariants, per page: `live` values plus the chain of free entries are all its entries; the page is once in `open`
//! if and only if it has room.

use std::mem;
use std::sync::Arc;

use super::reclaimed;
use crate::value::base::{Base, Fork, Lend};

const PAGE: usize = 256;
const NONE: u32 = u32::MAX;

/// Values of one type, by number.
#[derive(Debug)]
pub(super) struct Slab<T> {
    /// The pages; `None` for those in the base.
    pages: Vec<Option<Page<T>>>,
    open: Vec<u32>,
    capacity: usize,
    len: usize,
    base: Option<Arc<Slab<T>>>,
    /// The numbers of the values that were forked, some of which may have gone since; `None` before there is one, as
    /// most slabs have no base.
    #[expect(clippy::box_collection, reason = "an empty Vec is three words, which a world would pay 32 times")]
    forked: Option<Box<Vec<u32>>>,
}

/// A clone has its own values where this slab has, and the same base.
impl<T: Clone> Clone for Slab<T> {
    fn clone(&self) -> Slab<T> {
        let (pages, open, base) = (self.pages.clone(), self.open.clone(), self.base.clone());
        Slab { pages, open, capacity: self.capacity, len: self.len, base, forked: None }
    }
}

/// A value in the base of a slab.
struct InBase<T> {
    base: Arc<Slab<T>>,
    number: u32,
}

impl<T: Fork> Lend<T> for InBase<T> {
    fn lent(&self) -> &T {
        self.base.get(self.number)
    }
}

#[derive(Debug)]
struct Page<T> {
    entries: Vec<Entry<T>>,
    live: u32,
    free: u32,
}

#[derive(Clone, Debug)]
enum Entry<T> {
    Full(T),
    Free(u32),
    /// A value that is in the base.
    InBase,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { pages: Vec::new(), open: Vec::new(), capacity: 0, len: 0, base: None, forked: None }
    }
}

impl<T: Fork> Slab<T> {
    /// Stores a value and returns its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let page_number = match self.open.last() {
            Some(&page_number) => page_number,
            None => {
                self.pages.push(Some(Page { entries: Vec::new(), live: 0, free: NONE }));
                self.open.push(self.pages.len() as u32 - 1);
                self.pages.len() as u32 - 1
            }
        };
        let page = self.own(page_number as usize);
        let before = page.entries.capacity();
        let index = page.insert(value);
        let (grown, is_full) = (page.entries.capacity() - before, !page.has_room());
        self.capacity += grown;
        self.len += 1;
        if is_full {
            self.open.pop();
        }
        page_number * PAGE as u32 + index
    }

    /// Removes and returns the value with that number.
    pub(super) fn remove(&mut self, number: u32) -> T {
        match self.discard(number) {
            None => self.base().get(number).clone(),
            Some(value) if value.is_fork() => value.clone(),
            Some(value) => value,
        }
    }

    /// Removes the value with that number; `None` if it is shared, and so stays in the base.
    pub(super) fn discard(&mut self, number: u32) -> Option<T> {
        let page_number = number / PAGE as u32;
        let page = self.own(page_number as usize);
        let (was_full, before) = (!page.has_room(), page.entries.capacity());
        let value = page.remove(number % PAGE as u32);
        self.capacity -= before - page.entries.capacity();
        self.len -= 1;
        if was_full {
            self.open.push(page_number);
        }
        value
    }

    /// The value with that number.
    pub(super) fn get(&self, number: u32) -> &T {
        match &self.page(number as usize / PAGE).entries[number as usize % PAGE] {
            Entry::Full(value) => value,
            Entry::InBase => self.base().get(number),
            Entry::Free(_) => panic!("entry {number} is free"),
        }
    }

    /// The value with that number, for changing.
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        if let Entry::InBase = self.own(number as usize / PAGE).entries[number as usize % PAGE] {
            self.fetch(number);
        }
        match &mut self.own(number as usize / PAGE).entries[number as usize % PAGE] {
            Entry::Full(value) => value,
            Entry::Free(_) | Entry::InBase => panic!("entry {number} is free"),
        }
    }

    /// Copies or forks a value that is still in the base.
    #[cold]
    fn fetch(&mut self, number: u32) {
        let Some(base) = self.base_of(number) else { return };
        let value = T::fork(base);
        if value.is_fork() {
            self.forked.get_or_insert_default().push(number);
        }
        self.own(number as usize / PAGE).entries[number as usize % PAGE] = Entry::Full(value);
    }

    /// A page, of this slab or of the base.
    #[inline]
    fn page(&self, number: usize) -> &Page<T> {
        match &self.pages[number] {
            Some(page) => page,
            None => self.base().page(number),
        }
    }

    /// The value in the base, for the fork of it.
    fn base_of(&self, number: u32) -> Option<Base<T>> {
        Some(Base::new(InBase { base: Arc::clone(self.base.as_ref()?), number }))
    }

    #[cold]
    fn base(&self) -> &Slab<T> {
        self.base.as_ref().expect("a page without contents is in the base")
    }

    /// A page, for changing; made from the base's first if it is still there.
    #[inline]
    fn own(&mut self, number: usize) -> &mut Page<T> {
        let base = &self.base;
        self.pages[number]
            .get_or_insert_with(|| base.as_ref().expect("a page without contents is in the base").page(number).fork())
    }

    /// Moves the contents to where they can be shared, and returns them. Copies nothing, unless they are shared.
    pub(super) fn share_contents(&mut self) -> Arc<Slab<T>> {
        if self.base.is_some() {
            (0..self.pages.len()).for_each(|number| _ = self.own(number));
            let numbers: Vec<u32> = self.numbered().map(|(number, _)| number).collect();
            for number in numbers {
                let value = self.get_mut(number);
                if value.is_fork() {
                    *value = value.clone();
                }
            }
            self.base = None;
        }
        let base = Arc::new(mem::take(self));
        self.pages = base.pages.iter().map(|_| None).collect();
        (self.open, self.capacity, self.len) = (base.open.clone(), base.capacity, base.len);
        self.base = Some(Arc::clone(&base));
        base
    }

    /// Whether it has a base.
    pub(super) fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// The values that were copied from the base or forked.
    pub(super) fn copied(&self) -> impl Iterator<Item = &T> {
        let pairs = self.pages.iter().zip(self.base.iter().flat_map(|base| &base.pages));
        let pages = pairs.filter_map(|(own, shared)| Some((own.as_ref()?, shared.as_ref()?)));
        let entries = pages.flat_map(|(own, shared)| own.entries.iter().zip(&shared.entries));
        entries.filter_map(|(own, shared)| match (own, shared) {
            (Entry::Full(value), Entry::Full(_)) => Some(value),
            _ => None,
        })
    }

    /// Takes back what is shared, if nobody else shares it any more; returns what is left of the base, to be freed.
    pub(super) fn reclaim(&mut self) -> Option<Slab<T>> {
        let mut forked = self.forked.take().map_or_else(Vec::new, |forked| *forked);
        forked.retain(|&number| self.has_fork(number));
        forked.iter().for_each(|&number| self.get_mut(number).set_base(None));
        let Some(mut base) = reclaimed(&mut self.base) else {
            for &number in &forked {
                let base = self.base_of(number);
                self.get_mut(number).set_base(base);
            }
            self.forked = Some(Box::new(forked));
            return None;
        };
        for &number in &forked {
            self.get_mut(number).reclaim(base.get_mut(number));
        }
        for (page, shared) in self.pages.iter_mut().zip(&mut base.pages) {
            let Some(own) = page else {
                *page = shared.take();
                continue;
            };
            for (entry, shared) in own.entries.iter_mut().zip(shared.iter_mut().flat_map(|page| &mut page.entries)) {
                if let Entry::InBase = entry {
                    *entry = mem::replace(shared, Entry::InBase);
                }
            }
        }
        Some(base)
    }

    /// Whether there is a value of that number, and it is a fork.
    fn has_fork(&self, number: u32) -> bool {
        let page = self.pages.get(number as usize / PAGE).and_then(Option::as_ref);
        let entry = page.and_then(|page| page.entries.get(number as usize % PAGE));
        matches!(entry, Some(Entry::Full(value)) if value.is_fork())
    }

    /// Whether the value with that number is shared with others.
    #[inline]
    pub(super) fn is_shared(&self, number: u32) -> bool {
        self.base.is_some()
            && match &self.pages[number as usize / PAGE] {
                Some(page) => matches!(page.entries[number as usize % PAGE], Entry::InBase),
                None => true,
            }
    }

    /// Every value.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.numbered().map(|(_, value)| value)
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbers = (0..self.pages.len()).flat_map(|number| {
            let entries = (0..).zip(&self.page(number).entries);
            let full = entries.filter(|(_, entry)| !matches!(entry, Entry::Free(_)));
            full.map(move |(index, _)| (number * PAGE) as u32 + index)
        });
        numbers.map(|number| (number, self.get(number)))
    }

    /// The bytes of the values, not counting their own allocations.
    pub(super) fn memory(&self) -> usize {
        self.len * size_of::<Entry<T>>()
    }

    /// The bytes of memory held in addition: free entries, and the tables to find entries.
    pub(super) fn slack(&self) -> usize {
        (self.capacity - self.len) * size_of::<Entry<T>>()
            + self.pages.capacity() * size_of::<Option<Page<T>>>()
            + (self.open.capacity()
                + self.forked.as_ref().map_or(0, |forked| forked.capacity() + size_of::<Vec<u32>>() / size_of::<u32>()))
                * size_of::<u32>()
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        assert_eq!(self.iter().count(), self.len);
        let mut capacity = 0;
        for page_number in 0..self.pages.len() {
            let page = self.page(page_number);
            capacity += page.entries.capacity();
            let mut index = page.free;
            for _ in page.live as usize..page.entries.len() {
                let Entry::Free(next) = page.entries[index as usize] else { panic!("a free entry is used") };
                index = next;
            }
            assert_eq!(index, NONE);
            let times = self.open.iter().filter(|&&open| open as usize == page_number).count();
            assert_eq!(times, usize::from(page.has_room()));
        }
        assert_eq!(capacity, self.capacity);
    }
}

/// A clone keeps the spare capacity.
impl<T: Clone> Clone for Page<T> {
    fn clone(&self) -> Page<T> {
        self.like(Entry::clone)
    }
}

impl<T> Page<T> {
    /// A page of other entries, each made from one of this page, with the same spare capacity.
    fn like(&self, entry: impl FnMut(&Entry<T>) -> Entry<T>) -> Page<T> {
        let mut entries = Vec::with_capacity(self.entries.capacity());
        entries.extend(self.entries.iter().map(entry));
        Page { entries, live: self.live, free: self.free }
    }

    /// The page with which a clone begins.
    fn fork(&self) -> Page<T> {
        self.like(|entry| match entry {
            Entry::Free(next) => Entry::Free(*next),
            Entry::Full(_) | Entry::InBase => Entry::InBase,
        })
    }

    fn has_room(&self) -> bool {
        (self.live as usize) < PAGE
    }

    fn insert(&mut self, value: T) -> u32 {
        self.live += 1;
        if self.free == NONE {
            self.entries.push(Entry::Full(value));
            return self.entries.len() as u32 - 1;
        }
        let index = self.free;
        if let Entry::Free(next) = mem::replace(&mut self.entries[index as usize], Entry::Full(value)) {
            self.free = next;
        }
        index
    }

    /// Removes and returns a value; `None` if it is in the base.
    fn remove(&mut self, index: u32) -> Option<T> {
        let value = match mem::replace(&mut self.entries[index as usize], Entry::Free(self.free)) {
            Entry::Full(value) => Some(value),
            Entry::InBase => None,
            Entry::Free(_) => panic!("entry {index} of a page is free already"),
        };
        self.free = index;
        self.live -= 1;
        if self.live == 0 {
            (self.entries, self.free) = (Vec::new(), NONE);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn an_entry_takes_no_more_than_its_value() {
        assert_eq!(size_of::<Entry<crate::value::Value>>(), size_of::<crate::value::Value>());
        assert_eq!(size_of::<crate::value::Value>(), 32);
    }

    /// Steps of a case, and cases: few under an interpreter, which takes thousands of times as long.
    const SIZE: (usize, u32) = if cfg!(miri) { (150, 4) } else { (2_000, 256) };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(SIZE.1))]

        #[test]
        fn a_number_finds_its_value_until_it_is_removed(steps in prop::collection::vec(any::<(u8, u16)>(), 0..SIZE.0)) {
            let mut slab = Slab::default();
            let mut model: HashMap<u32, Box<[u8]>> = HashMap::new();
            for (step, choice) in steps {
                let chosen = model.keys().copied().min_by_key(|number| number.wrapping_mul(u32::from(choice) | 1));
                match chosen {
                    Some(number) if step % 3 == 0 => {
                        prop_assert_eq!(slab.remove(number), model.remove(&number).expect("chosen"));
                    }
                    _ => {
                        let number = slab.insert(Box::from(choice.to_le_bytes()));
                        prop_assert!(model.insert(number, Box::from(choice.to_le_bytes())).is_none());
                    }
                }
            }
            slab.check();
            for (number, value) in &model {
                prop_assert_eq!(slab.get(*number), value);
            }
            model.keys().for_each(|&number| drop(slab.remove(number)));
            prop_assert_eq!(slab.capacity, 0);
        }
    }
}
