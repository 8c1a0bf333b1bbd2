//! The member index of a large set: from a hash to the handle of a cell. It stores no member, and asks whoever does.
//!
//! Hash space is cut into segments by the leading bits of hashes (extendible hashing). A segment is a short array of
//! slots sorted by tag, sixteen further bits, with gaps: a slot lies at its tag's share of the array or a little behind.
//!
//! ```text
//! hash      | 24 leading bits: segment |  16 bits: tag  |  24 bits unused |
//! directory [ 0 0 1 2 2 2 2 3 ]           2^bits numbers of segments, each in an aligned run of 2^(bits - depth)
//! segment   [ 02fe:c  . 1a00:c 1a07:c 2c11:c . . 41d0:c ... | spare slots behind the last share ]
//! ```
//!
//! - Invariant: used slots of a segment ascend by tag; none lies before its share; no gap between share and slot.
//! - A segment has a size that allocators hold blocks of, four to a doubling, so that memory they take is memory used.
//!   It grows by one pass in order that looks at no cell, to 2 KiB; then it splits in two, which looks at each of its
//!   cells once. Buddies that are small together are joined. So no operation takes more than some microseconds, and
//!   memory follows the number of entries at every size.
//! - Memory: 6 bytes a slot at 70 to 92 % fill, and about 0.3 for tables: 7 to 8.5 bytes an entry.
//! - A cursor names a place in the order of (segment, tag). Growth does not touch it. A segment that has split is seen
//!   from that tag on, and its new half in whole; one that was joined is seen in whole once more, for its tags before the
//!   cursor's may be the buddy's. So a scan sees each entry that stays, some twice.
//!
//! Costs: look-up one or two cache lines, and a cell only when tags are equal (a wrong one once in 65,536 / fill).
//!
//! Sources: extendible hashing (Fagin et al. 1979); linear probing in sorted order (Amble & Knuth 1974).

use super::arena::Handle;
use std::ops::ControlFlow;

/// Leading bits of a hash that can choose a segment.
const PREFIX_BITS: u32 = 24;
const TAG_BITS: u32 = 16;
/// A segment of this many bytes splits rather than grow.
const MOST_BYTES: usize = 2048;
const LEAST_BYTES: usize = 128;
/// Slots behind the last share, for what is pushed out of it.
const SPARE: usize = 6;
/// The directory may have this many times as many numbers as there are segments.
const SPREAD: usize = 16;

#[derive(Clone)]
pub(in crate::value) struct Index {
    directory: Vec<u32>,
    /// The directory has `1 << bits` numbers.
    bits: u32,
    segments: Vec<Segment>,
    /// Numbers of segments that are not in use.
    vacant: Vec<u32>,
    /// Bytes of all segments' slots.
    bytes: usize,
}

#[derive(Clone, Default)]
struct Segment {
    slots: Box<[Slot]>,
    len: u32,
    /// How many leading bits its hashes share.
    depth: u32,
}

/// How far a scan has come: through all segments before `prefix`, and in the one there, which had that depth, through
/// all tags before `tag`.
struct Cursor {
    prefix: usize,
    tag: u16,
    depth: u32,
}

const DEPTH_BITS: u32 = 5;

impl From<u64> for Cursor {
    fn from(cursor: u64) -> Cursor {
        Cursor {
            prefix: (cursor >> (TAG_BITS + DEPTH_BITS)) as usize % (1 << PREFIX_BITS),
            tag: (cursor >> DEPTH_BITS) as u16,
            depth: cursor as u32 % (1 << DEPTH_BITS),
        }
    }
}

impl From<Cursor> for u64 {
    fn from(cursor: Cursor) -> u64 {
        ((cursor.prefix as u64) << TAG_BITS | u64::from(cursor.tag)) << DEPTH_BITS | u64::from(cursor.depth)
    }
}

/// A tag and a handle, in six bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot {
    tag: u16,
    cell: [u16; 2],
}

/// More slots than a segment has that can split.
const WIDEST: usize = MOST_BYTES / 4;

const GAP: Slot = Slot { tag: 0, cell: [u16::MAX; 2] };

impl Slot {
    fn new(tag: u16, cell: Handle) -> Slot {
        Slot { tag, cell: [cell as u16, (cell >> 16) as u16] }
    }

    fn cell(self) -> Handle {
        u32::from(self.cell[0]) | u32::from(self.cell[1]) << 16
    }

    fn is_gap(self) -> bool {
        self.cell == GAP.cell
    }
}

impl Segment {
    fn shares(&self) -> usize {
        self.slots.len() - SPARE
    }

    /// Where a tag's slots start, if there are no others.
    fn share(&self, tag: u16) -> usize {
        (usize::from(tag) * self.shares()) >> TAG_BITS
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The size of the allocator's block that holds the slots.
    fn block(&self) -> usize {
        whole_block(self.bytes())
    }

    fn is_crowded(&self) -> bool {
        self.len as usize >= self.shares() - self.shares() / 12
    }

    fn is_sparse(&self) -> bool {
        self.block() > LEAST_BYTES && (self.len as usize) < self.shares() * 2 / 3
    }

    fn find(&self, tag: u16, is_it: impl Fn(Handle) -> bool) -> Option<usize> {
        let start = self.share(tag);
        for (at, slot) in self.slots[start..].iter().enumerate() {
            if slot.is_gap() || slot.tag > tag {
                return None;
            }
            if slot.tag == tag && is_it(slot.cell()) {
                return Some(start + at);
            }
        }
        None
    }

    /// Puts a slot in, unless nothing is free behind its share.
    fn insert(&mut self, slot: Slot) -> bool {
        let start = self.share(slot.tag);
        let place = |at: usize| self.slots[at].is_gap() || self.slots[at].tag > slot.tag;
        let Some(at) = (start..self.slots.len()).find(|&at| place(at)) else { return false };
        let Some(gap) = self.slots[at..].iter().position(|slot| slot.is_gap()) else { return false };
        self.slots.copy_within(at..at + gap, at + 1);
        self.slots[at] = slot;
        self.len += 1;
        true
    }

    /// Takes a slot out, and moves those behind it that were pushed away from their share.
    fn remove(&mut self, mut at: usize) {
        while let Some(&next) = self.slots.get(at + 1).filter(|next| !next.is_gap() && self.share(next.tag) <= at) {
            self.slots[at] = next;
            at += 1;
        }
        self.slots[at] = GAP;
        self.len -= 1;
    }

    fn used(&self) -> impl Iterator<Item = Slot> + Clone {
        self.slots.iter().copied().filter(|slot| !slot.is_gap())
    }

    /// A segment of slots that ascend by tag, in `bytes` or more if they do not fit.
    fn build(slots: impl Iterator<Item = Slot> + Clone, mut bytes: usize, depth: u32) -> Segment {
        loop {
            bytes = whole_block(bytes);
            let mut segment = Segment { slots: vec![GAP; bytes / size_of::<Slot>()].into(), len: 0, depth };
            let mut free = 0;
            let fits = slots.clone().all(|slot| {
                let at = segment.share(slot.tag).max(free);
                free = at + 1;
                segment.slots.get_mut(at).is_some_and(|place| {
                    *place = slot;
                    true
                })
            });
            if fits {
                segment.len = slots.count() as u32;
                return segment;
            }
            bytes += 1;
        }
    }
}

/// Bytes for `len` slots, with room for a seventh more.
fn bytes_for(len: usize) -> usize {
    (len + len / 7 + SPARE) * size_of::<Slot>()
}

/// The next size that allocators hold blocks of: a quarter of a power of two apart.
fn whole_block(bytes: usize) -> usize {
    let bytes = bytes.max(LEAST_BYTES);
    bytes.next_multiple_of(bytes.next_power_of_two() / 8)
}

fn prefix_of(hash: u64) -> usize {
    (hash >> (64 - PREFIX_BITS)) as usize
}

fn tag_of(hash: u64) -> u16 {
    (hash >> (64 - PREFIX_BITS - TAG_BITS)) as u16
}

/// [`Index::scan`] over hashed entries that are in no index, with the cursors of an index of one segment.
pub(super) fn scan_unindexed<T>(
    hashed: impl Iterator<Item = (u64, T)>,
    cursor: u64,
    count: usize,
    mut visit: impl FnMut(T),
) -> u64 {
    let cursor = Cursor::from(cursor);
    let from = if cursor.depth > 0 { 0 } else { cursor.tag };
    let mut tagged: Vec<(u16, T)> = hashed.map(|(hash, entry)| (tag_of(hash), entry)).collect();
    tagged.sort_by_key(|&(tag, _)| tag);
    let (mut visited, mut last) = (0, from);
    for (tag, entry) in tagged.into_iter().skip_while(|&(tag, _)| tag < from) {
        if visited >= count.max(1) && tag > last {
            return Cursor { prefix: 0, tag, depth: 0 }.into();
        }
        visit(entry);
        (visited, last) = (visited + 1, tag);
    }
    0
}

impl Index {
    pub(in crate::value) fn new() -> Index {
        Index::with_room(0)
    }

    /// An empty index with segments of the size they will have with `len` cells, which saves growing and splitting.
    pub(in crate::value) fn with_room(len: usize) -> Index {
        let bits = (0..PREFIX_BITS).find(|&bits| bytes_for(len >> bits) <= MOST_BYTES).unwrap_or(PREFIX_BITS);
        let mut index = Index { directory: (0..1 << bits).collect(), bits, segments: vec![], vacant: vec![], bytes: 0 };
        for _ in 0..1 << bits {
            index.add(Segment::build(std::iter::empty(), bytes_for(len >> bits), bits));
        }
        index
    }

    pub(in crate::value) fn memory(&self) -> usize {
        (self.directory.capacity() + self.vacant.capacity()) * 4
            + self.segments.capacity() * size_of::<Segment>()
            + self.bytes
    }

    /// The cell with this hash for which `is_it` holds.
    pub(in crate::value) fn find(&self, hash: u64, is_it: impl Fn(Handle) -> bool) -> Option<Handle> {
        let segment = &self.segments[self.segment_of(hash)];
        segment.find(tag_of(hash), is_it).map(|at| segment.slots[at].cell())
    }

    /// Adds a cell that is not here. `hash_of` tells the hash of any cell that is.
    pub(in crate::value) fn insert(&mut self, hash: u64, cell: Handle, hash_of: impl Fn(Handle) -> u64) {
        loop {
            let number = self.segment_of(hash);
            let segment = &mut self.segments[number];
            if !segment.is_crowded() && segment.insert(Slot::new(tag_of(hash), cell)) {
                return;
            }
            if segment.block() < MOST_BYTES || !self.can_split(number) {
                let segment = &self.segments[number];
                let grown = Segment::build(segment.used(), segment.block() + 1, segment.depth);
                self.set(number, grown);
            } else {
                self.split(number, prefix_of(hash), &hash_of);
            }
        }
    }

    /// Puts one cell in the place of another with the same hash.
    pub(in crate::value) fn replace(&mut self, hash: u64, old: Handle, cell: Handle) {
        let number = self.segment_of(hash);
        let segment = &mut self.segments[number];
        if let Some(at) = segment.find(tag_of(hash), |other| other == old) {
            segment.slots[at] = Slot::new(tag_of(hash), cell);
        }
    }

    pub(in crate::value) fn remove(&mut self, hash: u64, cell: Handle) {
        let number = self.segment_of(hash);
        let segment = &mut self.segments[number];
        let Some(at) = segment.find(tag_of(hash), |other| other == cell) else { return };
        segment.remove(at);
        if segment.is_sparse() {
            self.shrink(number, prefix_of(hash));
        }
    }

    /// Visits about `count` cells from a cursor on, and returns the next cursor, 0 at the end.
    pub(in crate::value) fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Handle)) -> u64 {
        let Cursor { mut prefix, mut tag, depth } = Cursor::from(cursor);
        let mut visited = 0;
        loop {
            let segment = &self.segments[self.segment_at(prefix)];
            let run = 1 << (PREFIX_BITS - segment.depth);
            if visited == 0 && segment.depth < depth {
                tag = 0;
            }
            prefix -= prefix % run;
            let from = tag;
            for slot in segment.used().skip_while(|slot| slot.tag < from) {
                if visited >= count.max(1) && slot.tag > tag {
                    return Cursor { prefix, tag: slot.tag, depth: segment.depth }.into();
                }
                tag = slot.tag;
                visit(slot.cell());
                visited += 1;
            }
            (prefix, tag) = (prefix + run, 0);
            if prefix == 1 << PREFIX_BITS {
                return 0;
            }
            if visited >= count.max(1) {
                return Cursor { prefix, tag, depth: 0 }.into();
            }
        }
    }

    /// Every cell once, in no order that means anything.
    pub(in crate::value) fn cells(&self) -> impl Iterator<Item = Handle> + Clone {
        self.segments.iter().flat_map(Segment::used).map(Slot::cell)
    }

    /// Visits the cells here that are the same, as `is_same` tells, as a cell of another index with the same hash; until
    /// `visit` breaks off. It hashes nothing, and looks at a cell only when tags are equal: both indices are in one order.
    pub(in crate::value) fn common(
        &self,
        other: &Index,
        is_same: impl Fn(Handle, Handle) -> bool,
        mut visit: impl FnMut(Handle) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut prefix = 0;
        while prefix < 1 << PREFIX_BITS {
            let segment = &self.segments[self.segment_at(prefix)];
            let beside = &other.segments[other.segment_at(prefix)];
            for slot in segment.used() {
                if beside.find(slot.tag, |cell| is_same(slot.cell(), cell)).is_some() {
                    visit(slot.cell())?;
                }
            }
            prefix += 1 << (PREFIX_BITS - segment.depth.max(beside.depth));
        }
        ControlFlow::Continue(())
    }

    /// Any cell, each as likely as another, of an index that has one.
    ///
    /// Throws at a board of all segments side by side, each as wide as the widest, until a slot is hit. Only a segment
    /// that a flood of like hashes made wider still is hit less often than its due.
    pub(in crate::value) fn random(&self, generator: &mut fastrand::Rng) -> Handle {
        loop {
            let at = generator.usize(..self.directory.len());
            let segment = &self.segments[self.directory[at] as usize];
            let starts_run = at.is_multiple_of(1 << (self.bits - segment.depth));
            let slot = segment.slots.get(generator.usize(..segment.slots.len().max(WIDEST)));
            if let Some(slot) = slot.filter(|slot| starts_run && !slot.is_gap()) {
                return slot.cell();
            }
        }
    }

    /// Proves the invariants for exactly these cells.
    pub(in crate::value) fn check(&self, cells: &[Handle], hash_of: impl Fn(Handle) -> u64) {
        assert_eq!(self.directory.len(), 1 << self.bits);
        let mut seen = 0;
        for (number, segment) in self.segments.iter().enumerate() {
            assert_eq!(segment.used().count(), segment.len as usize);
            assert!(segment.used().zip(segment.used().skip(1)).all(|(a, b)| a.tag <= b.tag), "tags ascend");
            let named = self.directory.iter().filter(|&&other| other as usize == number).count();
            let vacant = self.vacant.contains(&(number as u32));
            assert_eq!(named, if vacant { 0 } else { 1 << (self.bits - segment.depth) }, "a run of its own");
            seen += segment.len as usize;
        }
        assert_eq!(seen, cells.len(), "no cell twice");
        for &cell in cells {
            assert_eq!(self.find(hash_of(cell), |other| other == cell), Some(cell), "every cell is found");
        }
        assert_eq!(self.bytes, self.segments.iter().map(Segment::bytes).sum::<usize>());
    }

    fn segment_of(&self, hash: u64) -> usize {
        self.segment_at(prefix_of(hash))
    }

    fn segment_at(&self, prefix: usize) -> usize {
        self.directory[prefix >> (PREFIX_BITS - self.bits)] as usize
    }

    fn add(&mut self, segment: Segment) -> u32 {
        self.bytes += segment.bytes();
        match self.vacant.pop() {
            Some(number) => {
                self.segments[number as usize] = segment;
                number
            }
            None => {
                self.segments.push(segment);
                (self.segments.len() - 1) as u32
            }
        }
    }

    fn set(&mut self, number: usize, segment: Segment) {
        self.bytes = self.bytes + segment.bytes() - self.segments[number].bytes();
        self.segments[number] = segment;
    }

    /// Whether leading bits are left to split by, and the directory would not outgrow its use: hashes that an
    /// adversary made alike must not double it for ever.
    fn can_split(&self, number: usize) -> bool {
        let depth = self.segments[number].depth;
        depth < PREFIX_BITS && (depth < self.bits || self.directory.len() < self.segments.len() * SPREAD)
    }

    fn split(&mut self, number: usize, prefix: usize, hash_of: &impl Fn(Handle) -> u64) {
        let depth = self.segments[number].depth;
        if depth == self.bits {
            self.directory = self.directory.iter().flat_map(|&number| [number, number]).collect();
            self.bits += 1;
        }
        let bit = PREFIX_BITS - 1 - depth;
        let (mut low, mut high) = (vec![], vec![]);
        for slot in self.segments[number].used() {
            let is_high = prefix_of(hash_of(slot.cell())) >> bit & 1 == 1;
            if is_high { high.push(slot) } else { low.push(slot) }
        }
        let build = |slots: &[Slot]| Segment::build(slots.iter().copied(), bytes_for(slots.len()), depth + 1);
        self.set(number, build(&low));
        let new = self.add(build(&high));
        let run = 1 << (self.bits - depth);
        let start = (prefix >> (PREFIX_BITS - self.bits)) & !(run - 1);
        self.directory[start + run / 2..start + run].fill(new);
    }

    /// Makes a segment smaller, or joins it with its buddy.
    fn shrink(&mut self, number: usize, prefix: usize) {
        let segment = &self.segments[number];
        let (len, depth) = (segment.len as usize, segment.depth);
        let bit = PREFIX_BITS - depth;
        let buddy = self.segment_at(prefix ^ if depth == 0 { 0 } else { 1 << bit });
        let joint = len + self.segments[buddy].len as usize;
        if buddy == number || self.segments[buddy].depth != depth || bytes_for(joint) > MOST_BYTES / 2 {
            let smaller = Segment::build(segment.used(), bytes_for(len), depth);
            return self.set(number, smaller);
        }
        let mut slots: Vec<Slot> = segment.used().chain(self.segments[buddy].used()).collect();
        slots.sort_by_key(|slot| slot.tag);
        self.set(number, Segment::build(slots.iter().copied(), bytes_for(joint), depth - 1));
        self.set(buddy, Segment::default());
        self.vacant.push(buddy as u32);
        let run = 2 << (self.bits - depth);
        let start = (prefix >> (PREFIX_BITS - self.bits)) & !(run - 1);
        self.directory[start..start + run].fill(number as u32);
        if self.directory.len() > 2 * SPREAD * (self.segments.len() - self.vacant.len()) {
            self.halve_directory();
        }
    }

    fn halve_directory(&mut self) {
        let deepest = self.segments.iter().map(|segment| segment.depth).max();
        if deepest.is_some_and(|depth| depth < self.bits) {
            self.directory = self.directory.iter().copied().step_by(2).collect();
            self.bits -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash that any handle has, spread well.
    fn hash_of(cell: Handle) -> u64 {
        (u64::from(cell) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn index_of(cells: std::ops::Range<Handle>) -> Index {
        let mut index = Index::new();
        cells.for_each(|cell| index.insert(hash_of(cell), cell, hash_of));
        index
    }

    fn cells(cells: impl Iterator<Item = Handle>) -> Vec<Handle> {
        cells.collect()
    }

    #[test]
    fn memory_follows_the_number_of_cells() {
        for len in [100, 1_000, 10_000, 12_345, 40_000] {
            let index = index_of(0..len);
            index.check(&cells(0..len), hash_of);
            let each = index.memory() as f64 / f64::from(len);
            assert!((6.0..9.5).contains(&each), "{each:.2} bytes each for {len} cells");
        }
    }

    #[test]
    fn what_grew_shrinks_again() {
        let mut index = index_of(0..20_000);
        let full = index.memory();
        for cell in 0..19_900 {
            index.remove(hash_of(cell), cell);
        }
        index.check(&cells(19_900..20_000), hash_of);
        assert!(index.directory.len() <= 64 && index.memory() < full / 3, "{} bytes of {full}", index.memory());
    }

    #[test]
    fn a_cell_is_replaced_by_another_of_its_hash() {
        let mut index = index_of(0..100);
        index.replace(hash_of(7), 7, 700);
        assert_eq!(index.find(hash_of(7), |_| true), Some(700));
        assert_eq!(index.find(hash_of(8), |cell| cell == 7), None);
    }

    #[test]
    fn hashes_made_alike_do_not_double_the_directory_for_ever() {
        let mut index = Index::new();
        (0..2_000).for_each(|cell| index.insert(42, cell, |_| 42));
        index.check(&cells(0..2_000), |_| 42);
        assert!(index.directory.len() <= SPREAD * index.segments.len());
    }

    #[test]
    fn a_scan_sees_every_cell_and_about_as_many_at_once_as_asked() {
        let index = index_of(0..5_000);
        let (mut seen, mut cursor, mut calls) = (vec![], 0, 0);
        loop {
            let before = seen.len();
            cursor = index.scan(cursor, 10, |cell| seen.push(cell));
            assert!(seen.len() - before < 20);
            calls += 1;
            if cursor == 0 {
                break;
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, cells(0..5_000));
        assert!(calls <= 500);
    }
}
