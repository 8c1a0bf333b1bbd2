//! A slab: values of one type, named by 32-bit numbers that stay while the value does.
//!
//! It grows a page at a time, so no push ever moves what is there, and an empty page gives its memory back.
//!
//! Invariants, per page: `live` values plus the chain of free entries are all its entries; the page stands once in
//! `open` if and only if it has room.

const PAGE: usize = 256;
const NONE: u32 = u32::MAX;

/// The slab.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    pages: Vec<Page<T>>,
    open: Vec<u32>,
    capacity: usize,
    len: usize,
}

#[derive(Clone, Debug)]
struct Page<T> {
    entries: Vec<Entry<T>>,
    live: u32,
    free: u32,
}

#[derive(Clone, Debug)]
enum Entry<T> {
    Full(T),
    Free(u32),
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { pages: Vec::new(), open: Vec::new(), capacity: 0, len: 0 }
    }
}

impl<T> Slab<T> {
    /// Stores a value and returns its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let page_number = match self.open.last() {
            Some(&page_number) => page_number,
            None => {
                self.pages.push(Page { entries: Vec::new(), live: 0, free: NONE });
                self.open.push(self.pages.len() as u32 - 1);
                self.pages.len() as u32 - 1
            }
        };
        let page = &mut self.pages[page_number as usize];
        let before = page.entries.capacity();
        let index = page.insert(value);
        self.capacity += page.entries.capacity() - before;
        self.len += 1;
        if !page.has_room() {
            self.open.pop();
        }
        page_number * PAGE as u32 + index
    }

    /// Takes the value of that number out.
    pub(super) fn remove(&mut self, number: u32) -> T {
        let page_number = number / PAGE as u32;
        let page = &mut self.pages[page_number as usize];
        if !page.has_room() {
            self.open.push(page_number);
        }
        let before = page.entries.capacity();
        let value = page.remove(number % PAGE as u32);
        self.capacity -= before - page.entries.capacity();
        self.len -= 1;
        value
    }

    /// The value of that number.
    pub(super) fn get(&self, number: u32) -> &T {
        match &self.pages[number as usize / PAGE].entries[number as usize % PAGE] {
            Entry::Full(value) => value,
            Entry::Free(_) => panic!("entry {number} is free"),
        }
    }

    /// The value of that number, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        match &mut self.pages[number as usize / PAGE].entries[number as usize % PAGE] {
            Entry::Full(value) => value,
            Entry::Free(_) => panic!("entry {number} is free"),
        }
    }

    /// Every value.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flat_map(|page| &page.entries).filter_map(|entry| match entry {
            Entry::Full(value) => Some(value),
            Entry::Free(_) => None,
        })
    }

    /// The bytes of memory that values take, without what they own themselves.
    pub(super) fn memory(&self) -> usize {
        self.len * size_of::<Entry<T>>()
    }

    /// The bytes of memory held beside those: free entries, and what it takes to find them.
    pub(super) fn slack(&self) -> usize {
        (self.capacity - self.len) * size_of::<Entry<T>>()
            + self.pages.capacity() * size_of::<Page<T>>()
            + self.open.capacity() * size_of::<u32>()
    }

    /// Proves the invariants.
    pub(super) fn check(&self) {
        assert_eq!(self.iter().count(), self.len);
        assert_eq!(self.pages.iter().map(|page| page.entries.capacity()).sum::<usize>(), self.capacity);
        for (page_number, page) in self.pages.iter().enumerate() {
            let mut index = page.free;
            for _ in page.live as usize..page.entries.len() {
                let Entry::Free(next) = page.entries[index as usize] else { panic!("a free entry is used") };
                index = next;
            }
            assert_eq!(index, NONE);
            let times = self.open.iter().filter(|&&open| open as usize == page_number).count();
            assert_eq!(times, usize::from(page.has_room()));
        }
    }
}

impl<T> Page<T> {
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
        if let Entry::Free(next) = std::mem::replace(&mut self.entries[index as usize], Entry::Full(value)) {
            self.free = next;
        }
        index
    }

    fn remove(&mut self, index: u32) -> T {
        let entry = std::mem::replace(&mut self.entries[index as usize], Entry::Free(self.free));
        let Entry::Full(value) = entry else { panic!("entry {index} of a page is free already") };
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
        fn numbers_name_their_values_until_removed(steps in prop::collection::vec(any::<(u8, u16)>(), 0..SIZE.0)) {
            let mut slab = Slab::default();
            let mut model: HashMap<u32, Box<u16>> = HashMap::new();
            for (step, choice) in steps {
                let chosen = model.keys().copied().min_by_key(|number| number.wrapping_mul(u32::from(choice) | 1));
                match chosen {
                    Some(number) if step % 3 == 0 => prop_assert_eq!(slab.remove(number), model.remove(&number).expect("chosen")),
                    _ => {
                        let number = slab.insert(Box::new(choice));
                        prop_assert!(model.insert(number, Box::new(choice)).is_none());
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
