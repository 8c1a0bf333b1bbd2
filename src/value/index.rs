//! The member index of large sorted sets, sets and hashes: from a hash to the handle of a cell in an arena. It stores
//! no member; its callers compare them.
//!
//! Hash space is cut into segments by the leading bits of hashes (extendible hashing). A segment is a short array of
//! slots sorted by tag, sixteen further bits, with gaps: a slot is at its tag's proportional position ("share") in
//! the array or a little behind.
//!
//! ```text
//! hash      | 24 leading bits: segment |  16 bits: tag  |  24 bits unused |
//! directory [ 0 0 1 2 2 2 2 3 ]           2^bits numbers of segments, each in an aligned run of 2^(bits - depth)
//! segment   [ 02fe:c  . 1a00:c 1a07:c 2c11:c . . 41d0:c ... | spare slots behind the last share ]
//! ```
//!
//! - Invariant: used slots of a segment ascend by tag; none is before its share; no gap between share and slot.
//! - A segment has a size that allocators hold blocks of, four to a doubling, so that no memory is wasted. It grows
//!   to 2 KiB by one pass in order that reads no cell; then it splits in two, which reads each of its cells once.
//!   Buddies that are small together are joined. So a change takes no more than some microseconds, and memory follows
//!   the number of entries at every size. Only the directory, four bytes for a segment or more, is copied as a whole
//!   when it doubles or halves.
//! - Memory: 6 bytes a slot at 70 to 92 % fill, and about 0.3 for tables: 7 to 8.5 bytes an entry.
//! - A cursor is a position in the order of (segment, tag). Growth does not affect it. A segment that has split is
//!   visited from that tag on, and its new half in whole; one that was joined is visited in whole once more, because
//!   its tags before the cursor's may be the buddy's. So a scan visits each entry that stays, some twice.
//!
//! - Hashes are assumed to be spread, but checked: [`Index::insert`] reports a [`Flood`] where a segment would split
//!   although its share of all hashes is below [`FAIR`] entries, or holds [`ALIKE`] entries of one tag. By chance a
//!   segment of 2 KiB with so small a share overflows once in 10^11 (its last places seven deep), and an insertion
//!   meets eight equal tags once in 10^20: (300 / 65,536)^8 / 8!. So no segment ever has more than 2 KiB, nor the
//!   directory more numbers than a sixteenth of the entries.
//!
//! - The segments of a fork ([`Fork`]) are in its base until they change.
//!
//! Costs: look-up one or two cache lines, and a cell only when tags are equal (a wrong one once in 65,536 / fill).
//!
//! Sources: extendible hashing (Fagin et al. 1979); linear probing in sorted order (Amble & Knuth 1974).

mod common;
mod cursor;
#[cfg(test)]
mod tests;

pub(super) use cursor::CURSOR_BITS;

use crate::value::arena::Handle;
use crate::value::base::{Base, Fork};
use crate::value::hashing::Flood;
use cursor::Cursor;
use std::iter;

/// The leading bits of a hash that can choose a segment.
const PREFIX_BITS: u32 = 24;
const TAG_BITS: u32 = 16;
/// A segment of this many bytes splits instead of growing.
const MAX_BYTES: usize = 2048;
const MIN_BYTES: usize = 128;
/// Slots behind the last share, for those that are pushed out of it.
const SPARE: usize = 6;
/// The directory is halved when its length is twice this many times the number of segments.
const SPREAD: usize = 16;
/// A segment may split if its expected share is at least this many of all entries.
const FAIR: usize = 32;
/// The slots from a tag's share on that are compared at once.
const NEAR: usize = 8;
/// The most entries of one tag in a segment.
const ALIKE: usize = 8;
/// The length of a segment whose slots are in the base.
const IN_BASE: u32 = u32::MAX;

pub(super) struct Index {
    directory: Vec<u32>,
    /// The directory has `1 << bits` numbers.
    bits: u32,
    segments: Vec<Segment>,
    /// Numbers of segments that are not in use.
    vacant: Vec<u32>,
    /// Bytes of all segments' slots.
    bytes: usize,
    len: usize,
    base: Option<Box<Base<Index>>>,
}

/// A clone has all segments itself.
impl Clone for Index {
    fn clone(&self) -> Index {
        let segments = (0..self.segments.len()).map(|number| self.segment(number).clone()).collect();
        Index { segments, ..self.without_segments() }
    }
}

impl Fork for Index {
    fn without_parts(&self) -> Index {
        let in_base = |segment: &Segment| match segment.slots.len() {
            0 => Segment::default(),
            _ => Segment { slots: Box::default(), len: IN_BASE, depth: segment.depth },
        };
        Index { segments: self.segments.iter().map(in_base).collect(), ..self.without_segments() }
    }

    fn set_base(&mut self, base: Option<Base<Index>>) {
        self.base = base.map(Box::new);
    }

    fn is_fork(&self) -> bool {
        self.base.is_some()
    }

    fn own_bytes(&self) -> usize {
        self.segments.iter().map(Segment::bytes).sum()
    }

    fn reclaim(&mut self, base: &mut Index) {
        for (segment, shared) in self.segments.iter_mut().zip(&mut base.segments) {
            if segment.len == IN_BASE {
                *segment = std::mem::take(shared);
            }
        }
    }
}

#[derive(Clone, Default)]
struct Segment {
    slots: Box<[Slot]>,
    len: u32,
    /// The number of leading bits that its hashes share.
    depth: u32,
}

/// A tag and a handle, in six bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot {
    tag: u16,
    cell: [u16; 2],
}

/// A bound on the slots of a segment that can split.
const WIDEST: usize = MAX_BYTES / 4;

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

    /// The slot at which a tag's entries start if no others are in the way.
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
        self.block() > MIN_BYTES && (self.len as usize) < self.shares() * 2 / 3
    }

    /// Most entries are within a few slots of their share. These are compared without a branch for each, which the
    /// processor could not predict.
    fn find(&self, tag: u16, is_wanted: impl Fn(Handle) -> bool) -> Option<usize> {
        let start = self.share(tag);
        let Some(near) = self.slots[start..].first_chunk::<NEAR>() else {
            return self.find_from(start, tag, is_wanted);
        };
        let (mut equal, mut end) = (0_u32, 0_u32);
        for (at, slot) in near.iter().enumerate() {
            equal |= u32::from(slot.tag == tag) << at;
            end |= u32::from(slot.is_gap() | (slot.tag > tag)) << at;
        }
        let before_end = end.wrapping_sub(1) & !end;
        let mut candidates = equal & before_end;
        while candidates != 0 {
            let at = candidates.trailing_zeros() as usize;
            if is_wanted(near[at].cell()) {
                return Some(start + at);
            }
            candidates &= candidates - 1;
        }
        if end == 0 { self.find_from(start + NEAR, tag, is_wanted) } else { None }
    }

    /// Finds an entry in the slots from `start` on.
    fn find_from(&self, start: usize, tag: u16, is_wanted: impl Fn(Handle) -> bool) -> Option<usize> {
        for (at, slot) in self.slots[start..].iter().enumerate() {
            if slot.is_gap() || slot.tag > tag {
                return None;
            }
            if slot.tag == tag && is_wanted(slot.cell()) {
                return Some(start + at);
            }
        }
        None
    }

    /// Inserts a slot; returns whether a gap was free behind its share.
    fn insert(&mut self, slot: Slot) -> Result<bool, Flood> {
        let start = self.share(slot.tag);
        let place = |at: usize| self.slots[at].is_gap() || self.slots[at].tag > slot.tag;
        let at = (start..self.slots.len()).find(|&at| place(at)).unwrap_or(self.slots.len());
        let is_alike = |other: &Slot| other.tag == slot.tag && !other.is_gap();
        if at.checked_sub(ALIKE).is_some_and(|first| is_alike(&self.slots[first])) {
            return Err(Flood);
        }
        let Some(gap) = self.slots[at..].iter().position(|slot| slot.is_gap()) else { return Ok(false) };
        self.slots.copy_within(at..at + gap, at + 1);
        self.slots[at] = slot;
        self.len += 1;
        Ok(true)
    }

    /// Removes a slot, and moves those behind it that were pushed away from their share.
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

    /// A segment of slots that ascend by tag, in the least size from `bytes` on that fits them.
    fn build(slots: impl Iterator<Item = Slot> + Clone, bytes: usize, depth: u32) -> Segment {
        let fitting = sizes_from(bytes).find_map(|bytes| Segment::fit(slots.clone(), bytes, depth));
        fitting.expect("slots fit where each has a share of its own")
    }

    /// A segment of slots that ascend by tag, if they fit into `bytes`.
    fn fit(slots: impl Iterator<Item = Slot>, bytes: usize, depth: u32) -> Option<Segment> {
        let mut segment = Segment { slots: vec![GAP; bytes / size_of::<Slot>()].into(), len: 0, depth };
        let mut free = 0;
        for slot in slots {
            let at = segment.share(slot.tag).max(free);
            *segment.slots.get_mut(at)? = slot;
            free = at + 1;
            segment.len += 1;
        }
        Some(segment)
    }
}

/// The bytes for `len` slots, with room for a seventh more.
fn bytes_for(len: usize) -> usize {
    (len + len / 7 + SPARE) * size_of::<Slot>()
}

/// The next size that allocators have blocks of: a quarter of a power of two apart.
fn whole_block(bytes: usize) -> usize {
    let bytes = bytes.max(MIN_BYTES);
    bytes.next_multiple_of(bytes.next_power_of_two() / 8)
}

/// The sizes of segments, from that of `bytes` on.
fn sizes_from(bytes: usize) -> impl Iterator<Item = usize> {
    iter::successors(Some(whole_block(bytes)), |bytes| Some(whole_block(bytes + 1)))
}

fn prefix_of(hash: u64) -> usize {
    (hash >> (64 - PREFIX_BITS)) as usize
}

fn tag_of(hash: u64) -> u16 {
    (hash >> (64 - PREFIX_BITS - TAG_BITS)) as u16
}

/// Like [`Index::scan`], over hashed entries that are in no index, with the cursors of an index of one segment.
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
    /// An empty index with segments of the size that they will have with `len` cells, which saves growing and
    /// splitting.
    pub(super) fn with_room(len: usize) -> Index {
        let bits = (0..PREFIX_BITS).find(|&bits| bytes_for(len >> bits) <= MAX_BYTES).unwrap_or(PREFIX_BITS);
        let directory = (0..1 << bits).collect();
        let mut index = Index { directory, bits, segments: vec![], vacant: vec![], bytes: 0, len: 0, base: None };
        for _ in 0..1 << bits {
            index.add(Segment::build(iter::empty(), bytes_for(len >> bits), bits));
        }
        index
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        (self.directory.capacity() + self.vacant.capacity()) * 4
            + self.segments.capacity() * size_of::<Segment>()
            + self.bytes
    }

    /// The cell with this hash for which `is_wanted` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_wanted: impl Fn(Handle) -> bool) -> Option<Handle> {
        let segment = self.segment(self.segment_of(hash));
        segment.find(tag_of(hash), is_wanted).map(|at| segment.slots[at].cell())
    }

    /// A byte of each cache line that [`Index::find`] reads first: what it compares at once is mostly in two.
    pub(super) fn touch_lines(&self, hash: u64) -> u8 {
        let segment = self.segment(self.segment_of(hash));
        let near = &segment.slots[segment.share(tag_of(hash))..];
        (near[0].tag ^ near.get(NEAR - 1).map_or(0, |slot| slot.tag)) as u8
    }

    /// Adds a cell that is not in the index, except on [`Flood`]. `hash_of` returns the hash of any cell that is.
    pub(super) fn insert(&mut self, hash: u64, cell: Handle, hash_of: impl Fn(Handle) -> u64) -> Result<(), Flood> {
        loop {
            let number = self.segment_of(hash);
            let segment = self.segment_mut(number);
            if !segment.is_crowded() && segment.insert(Slot::new(tag_of(hash), cell))? {
                self.len += 1;
                return Ok(());
            }
            let segment = &self.segments[number];
            if segment.block() < MAX_BYTES || segment.depth == PREFIX_BITS {
                let grown = Segment::build(segment.used(), segment.block() + 1, segment.depth);
                self.set(number, grown);
            } else if self.len >> segment.depth < FAIR {
                return Err(Flood);
            } else {
                self.split(number, prefix_of(hash), &hash_of);
            }
        }
    }

    /// Replaces a cell by another one with the same hash.
    pub(super) fn replace(&mut self, hash: u64, old: Handle, cell: Handle) {
        let number = self.segment_of(hash);
        let segment = self.segment_mut(number);
        if let Some(at) = segment.find(tag_of(hash), |other| other == old) {
            segment.slots[at] = Slot::new(tag_of(hash), cell);
        }
    }

    pub(super) fn remove(&mut self, hash: u64, cell: Handle) {
        let number = self.segment_of(hash);
        let segment = self.segment_mut(number);
        let Some(at) = segment.find(tag_of(hash), |other| other == cell) else { return };
        segment.remove(at);
        self.len -= 1;
        if self.segments[number].is_sparse() {
            self.shrink(number, prefix_of(hash));
        }
    }

    /// Visits about `count` cells from a cursor on, and returns the next cursor, 0 at the end.
    pub(super) fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Handle)) -> u64 {
        let Cursor { mut prefix, mut tag, depth } = Cursor::from(cursor);
        let mut visited = 0;
        loop {
            let segment = self.segment(self.segment_at(prefix));
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

    /// Every cell once, in no meaningful order.
    pub(super) fn cells(&self) -> impl Iterator<Item = Handle> + Clone {
        (0..self.segments.len()).flat_map(|number| self.segment(number).used()).map(Slot::cell)
    }

    /// A random cell, each as likely as another, of an index that has one.
    ///
    /// It draws random positions on a board of all segments side by side, each as wide as the widest, until a slot is
    /// hit.
    pub(super) fn random(&self, generator: &mut fastrand::Rng) -> Handle {
        loop {
            let at = generator.usize(..self.directory.len());
            let segment = self.segment(self.directory[at] as usize);
            let starts_run = at.is_multiple_of(1 << (self.bits - segment.depth));
            let slot = segment.slots.get(generator.usize(..segment.slots.len().max(WIDEST)));
            if let Some(slot) = slot.filter(|slot| starts_run && !slot.is_gap()) {
                return slot.cell();
            }
        }
    }

    /// Panics unless the invariants hold for exactly these cells.
    pub(super) fn check(&self, cells: &[Handle], hash_of: impl Fn(Handle) -> u64) {
        assert_eq!(self.directory.len(), 1 << self.bits);
        let mut seen = 0;
        let segments = || (0..self.segments.len()).map(|number| self.segment(number));
        for (number, segment) in segments().enumerate() {
            assert_eq!(segment.used().count(), segment.len as usize);
            assert!(segment.used().zip(segment.used().skip(1)).all(|(a, b)| a.tag <= b.tag), "tags ascend");
            let named = self.directory.iter().filter(|&&other| other as usize == number).count();
            let vacant = self.vacant.contains(&(number as u32));
            assert_eq!(named, if vacant { 0 } else { 1 << (self.bits - segment.depth) }, "a run of its own");
            assert!(segment.block() <= MAX_BYTES || segment.depth == PREFIX_BITS, "a segment splits rather than grow");
            seen += segment.len as usize;
        }
        assert_eq!((seen, self.len), (cells.len(), cells.len()), "no cell twice");
        for &cell in cells {
            assert_eq!(self.find(hash_of(cell), |other| other == cell), Some(cell), "every cell is found");
        }
        assert_eq!(self.bytes, segments().map(Segment::bytes).sum::<usize>());
    }

    fn segment_of(&self, hash: u64) -> usize {
        self.segment_at(prefix_of(hash))
    }

    fn segment_at(&self, prefix: usize) -> usize {
        self.directory[prefix >> (PREFIX_BITS - self.bits)] as usize
    }

    /// A segment, of this index or of the base.
    #[inline]
    fn segment(&self, number: usize) -> &Segment {
        let segment = &self.segments[number];
        if segment.len == IN_BASE { self.base_segment(number) } else { segment }
    }

    #[cold]
    fn base_segment(&self, number: usize) -> &Segment {
        self.base.as_ref().expect("a segment without slots is in the base").get().segment(number)
    }

    /// A segment, for changing; copied from the base first if it is still there.
    #[inline]
    fn segment_mut(&mut self, number: usize) -> &mut Segment {
        if self.segments[number].len == IN_BASE {
            self.segments[number] = self.base_segment(number).clone();
        }
        &mut self.segments[number]
    }

    /// A copy without segments.
    fn without_segments(&self) -> Index {
        let (directory, vacant) = (self.directory.clone(), self.vacant.clone());
        Index { directory, vacant, segments: Vec::new(), base: None, ..*self }
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
        self.bytes = self.bytes + segment.bytes() - self.segment(number).bytes();
        self.segments[number] = segment;
    }

    fn split(&mut self, number: usize, prefix: usize, hash_of: &impl Fn(Handle) -> u64) {
        let depth = self.segments[number].depth;
        if depth == self.bits {
            self.directory = self.directory.iter().flat_map(|&number| [number, number]).collect();
            self.bits += 1;
        }
        let bit = PREFIX_BITS - 1 - depth;
        let (mut low, mut high) = (vec![], vec![]);
        for slot in self.segment(number).used() {
            let is_high = prefix_of(hash_of(slot.cell())) >> bit & 1 == 1;
            if is_high { high.push(slot) } else { low.push(slot) }
        }
        let build =
            |slots: &[Slot]| Segment::build(slots.iter().copied(), bytes_for(slots.len()).min(MAX_BYTES), depth + 1);
        self.set(number, build(&low));
        let new = self.add(build(&high));
        let run = 1 << (self.bits - depth);
        let start = (prefix >> (PREFIX_BITS - self.bits)) & !(run - 1);
        self.directory[start + run / 2..start + run].fill(new);
    }

    /// Makes a segment smaller, or joins it with its buddy.
    fn shrink(&mut self, number: usize, prefix: usize) {
        let segment = self.segment(number);
        let (len, depth) = (segment.len as usize, segment.depth);
        let bit = PREFIX_BITS - depth;
        let buddy = self.segment_at(prefix ^ if depth == 0 { 0 } else { 1 << bit });
        let joint = len + self.segment(buddy).len as usize;
        let may_join = buddy != number && self.segment(buddy).depth == depth && bytes_for(joint) <= MAX_BYTES / 2;
        let Some(joined) = may_join.then(|| self.joined(number, buddy)).flatten() else {
            let smaller = Segment::build(segment.used(), bytes_for(len), depth);
            return self.set(number, smaller);
        };
        self.set(number, joined);
        self.set(buddy, Segment::default());
        self.vacant.push(buddy as u32);
        let run = 2 << (self.bits - depth);
        let start = (prefix >> (PREFIX_BITS - self.bits)) & !(run - 1);
        self.directory[start..start + run].fill(number as u32);
        if self.directory.len() > 2 * SPREAD * (self.segments.len() - self.vacant.len()) {
            self.halve_directory();
        }
    }

    /// Two buddies joined, if the result is not too large to split.
    fn joined(&self, one: usize, other: usize) -> Option<Segment> {
        let (one, other) = (self.segment(one), self.segment(other));
        let mut slots: Vec<Slot> = one.used().chain(other.used()).collect();
        slots.sort_by_key(|slot| slot.tag);
        let mut sizes = sizes_from(bytes_for(slots.len())).take_while(|&bytes| bytes <= MAX_BYTES);
        sizes.find_map(|bytes| Segment::fit(slots.iter().copied(), bytes, one.depth - 1))
    }

    fn halve_directory(&mut self) {
        let deepest = self.segments.iter().map(|segment| segment.depth).max();
        if deepest.is_some_and(|depth| depth < self.bits) {
            self.directory = self.directory.iter().copied().step_by(2).collect();
            self.bits -= 1;
        }
    }
}
