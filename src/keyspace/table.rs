//! The table: from a hash to a 32-bit handle, in segments that split and merge one at a time.
//!
//! Extendible hashing. A hash becomes a *position*, a point on a line from 0 to 2^64. A segment owns an aligned range
//! of that line and is an array of cache lines, each of which owns an equal part of the range and holds twelve
//! handles with a one-byte tag each (see [`super::segment`]); the directory finds the segment by the leading bits of
//! the position. A full segment splits in two, which touches nothing else; the directory, four bytes for some hundred
//! keys, is the only part that ever doubles. Sparse neighbours merge again.
//!
//! Positions are *skewed*: one end of the line is twice as dense as the other (see [`skew`]). Without that all segments
//! would fill and split at the same time and the memory would go up in steps of two; with it some segment is always the
//! next, and the table takes 8 to 9 bytes a key at any size.
//!
//! A scan walks the line of positions and its cursor is a point on it, whose meaning does not depend on how segments
//! split and merge; hence the guarantee of [`Table::scan`].
//!
//! The table stores no hash: splitting computes it again ([`Hashes`]). It assumes that hashes are uniform, but
//! checks: [`Table::insert`] reports a flood when splits go far deeper than the number of keys explains.
//!
//! [`Table::share_contents`] makes clones copy on write: they find segments under the same numbers in the base, and
//! copy one before they change it.
//!
//! Invariants: a segment of depth d owns 2^(64-d) positions and 2^(depth-d) consecutive directory entries; `len` is
//! the sum of the segments' lengths.
//!
//! Costs: a find is the directory, the segment's row, one line (on average 1.04, for an absent key 1.3) and one record.
//! A split or merge re-hashes one or two segments, at most 720 records. A load announces its keys, so that it re-hashes
//! only a third of them ([`growth`]).
//!
//! Sources: Fagin et al., Extendible hashing (1979); the overflow count is F14's.

mod growth;

use super::reclaimed;
use super::segment::{Line, SLOTS, Segment, skew, tag};
use crate::value::hashing::Flood;
use std::hint;
use std::iter;
use std::mem;
use std::sync::Arc;

/// The number of levels by which a segment may be deeper than the number of segments explains.
const FLOOD_DEPTH: u32 = 5;
/// Bits of a position that a scan cursor leaves out.
const CURSOR_SHIFT: u32 = 16;
/// The number of lines that are prefetched at once.
pub(super) const PREFETCHED: usize = 16;
/// The bits of a scan cursor.
pub(super) const CURSOR_BITS: u32 = u64::BITS - CURSOR_SHIFT;

/// The cursor of a scan at a hash.
pub(super) fn cursor_at_hash(hash: u64) -> u64 {
    skew(hash) >> CURSOR_SHIFT
}

/// The table; `LINES`, a power of two above one, is the size of a segment in lines.
#[derive(Clone, Debug)]
pub(super) struct Table<const LINES: usize> {
    directory: Vec<u32>,
    depth: u32,
    /// Whether a frozen copy of the database may share parts of it. It is here, where it takes no room.
    pub(super) is_frozen: bool,
    /// The segments; `None` for those in the base.
    segments: Vec<Option<Segment<LINES>>>,
    /// The number of segments of each depth.
    depths: Vec<u32>,
    len: usize,
    /// The number of handles that were announced ([`Table::expect`]).
    expected: usize,
    base: Option<Arc<Table<LINES>>>,
}

/// Computes the hashes of the handles in the table.
pub(super) trait Hashes {
    /// The hash of one handle.
    fn hash_of(&self, handle: u32) -> u64;

    /// Called before the hashes of these handles are needed, so that their keys can be prefetched.
    fn prefetch(&self, _handles: impl Iterator<Item = u32>) {}
}

impl<F: Fn(u32) -> u64> Hashes for F {
    fn hash_of(&self, handle: u32) -> u64 {
        self(handle)
    }
}

impl<const LINES: usize> Table<LINES> {
    /// A segment with more handles than this splits.
    const FULL: u32 = (LINES * SLOTS * 15 / 16) as u32;
    /// A segment above half of that splits, too, when a handle would be this many lines from its home.
    const FAR: usize = 12;
    /// A segment with fewer handles than this may merge with a neighbour ...
    const SPARSE: u32 = (LINES * SLOTS / 6) as u32;
    /// ... and does so if both have no more than this.
    const MERGED: u32 = (LINES * SLOTS * 2 / 5) as u32;
    const LINE_BITS: u32 = LINES.ilog2();
    const IS_POWER: () = assert!(LINES.is_power_of_two() && LINES > 1);

    /// An empty table, which holds no memory.
    pub(super) fn new() -> Table<LINES> {
        let () = Self::IS_POWER;
        Table {
            directory: Vec::new(),
            depth: 0,
            is_frozen: false,
            segments: Vec::new(),
            depths: Vec::new(),
            len: 0,
            expected: 0,
            base: None,
        }
    }

    /// The number of handles.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The handle with that hash for which `is_wanted` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let position = skew(hash);
        let segment = self.segment(self.segment_number(position)?);
        segment.find(segment.home(position), tag(hash), is_wanted).map(|(line, slot)| segment.lines[line].handles[slot])
    }

    /// Prefetches the home lines of up to [`PREFETCHED`] hashes at once, and then calls `show` with the handles there
    /// that may be the wanted ones.
    pub(super) fn prefetch(&self, hashes: &[u64], mut show: impl FnMut(u32)) {
        let home_line = |hash: &u64| {
            let position = skew(*hash);
            let segment = self.segment(self.segment_number(position)?);
            Some(&segment.lines[segment.home(position)])
        };
        let mut lines = [None; PREFETCHED];
        lines.iter_mut().zip(hashes).for_each(|(line, hash)| *line = home_line(hash));
        hint::black_box(lines.iter().flatten().fold(0, |sum, line| sum ^ line.taken));
        for (line, hash) in lines.iter().zip(hashes) {
            line.iter().flat_map(|line| line.tagged(tag(*hash))).for_each(&mut show);
        }
    }

    #[inline]
    fn segment_number(&self, position: u64) -> Option<usize> {
        self.directory.get(self.directory_index(position)).map(|&number| number as usize)
    }

    #[inline]
    fn segment(&self, number: usize) -> &Segment<LINES> {
        match &self.segments[number] {
            Some(segment) => segment,
            None => self.base_segment(number),
        }
    }

    #[cold]
    fn base_segment(&self, number: usize) -> &Segment<LINES> {
        self.base.as_ref().expect("a segment without contents is in the base").segment(number)
    }

    /// A segment, for changing; copied from the base first if it is still there.
    #[inline]
    fn own(&mut self, number: usize) -> &mut Segment<LINES> {
        let base = &self.base;
        self.segments[number].get_or_insert_with(|| {
            base.as_ref().expect("a segment without contents is in the base").segment(number).clone()
        })
    }

    /// Every segment.
    fn segments(&self) -> impl Iterator<Item = &Segment<LINES>> + Clone {
        (0..self.segments.len()).map(|number| self.segment(number))
    }

    /// Moves the contents to where they can be shared, and returns them. Copies nothing, unless they are shared.
    pub(super) fn share_contents(&mut self) -> Arc<Table<LINES>> {
        if self.base.is_some() {
            (0..self.segments.len()).for_each(|number| _ = self.own(number));
            self.base = None;
        }
        let base = Arc::new(mem::replace(self, Table::new()));
        *self = Table {
            directory: base.directory.clone(),
            depth: base.depth,
            is_frozen: false,
            segments: base.segments.iter().map(|_| None).collect(),
            depths: base.depths.clone(),
            len: base.len,
            expected: base.expected,
            base: Some(Arc::clone(&base)),
        };
        base
    }

    /// The bytes of the segments that were copied from the base.
    pub(super) fn copied_bytes(&self) -> usize {
        let Some(base) = &self.base else { return 0 };
        let pairs = self.segments.iter().zip(&base.segments);
        pairs.filter(|(own, shared)| own.is_some() && shared.is_some()).count() * LINES * size_of::<Line>()
    }

    /// Takes back what is shared, if nobody else shares it any more; returns what is left of the base, to be freed.
    pub(super) fn reclaim(&mut self) -> Option<Table<LINES>> {
        let mut base = reclaimed(&mut self.base)?;
        for (segment, shared) in self.segments.iter_mut().zip(&mut base.segments) {
            if segment.is_none() {
                *segment = shared.take();
            }
        }
        Some(base)
    }

    #[inline]
    fn directory_index(&self, position: u64) -> usize {
        (position >> 1 >> (63 - self.depth)) as usize
    }

    /// Inserts a handle that is not in the table. On [`Flood`] it is not inserted.
    pub(super) fn insert(&mut self, hash: u64, handle: u32, hashes: &impl Hashes) -> Result<(), Flood> {
        if self.segments.is_empty() {
            self.push(Segment::new(0, 0));
            self.directory.push(0);
        }
        let position = skew(hash);
        loop {
            let number = self.directory[self.directory_index(position)] as usize;
            let segment = self.own(number);
            let home = segment.home(position);
            let is_far = segment.len > Self::FULL / 2 && segment.distance_to_room(home) >= Self::FAR;
            if segment.len < Self::FULL && !is_far {
                segment.put(home, tag(hash), handle);
                self.len += 1;
                return Ok(());
            }
            if segment.depth >= self.segments.len().ilog2() + FLOOD_DEPTH {
                return Err(Flood);
            }
            self.split_full(number, hashes);
        }
    }

    /// Removes a handle that is in the table.
    pub(super) fn remove(&mut self, hash: u64, handle: u32, hashes: &impl Hashes) {
        let position = skew(hash);
        let number = self.directory[self.directory_index(position)] as usize;
        let segment = self.own(number);
        segment.take(segment.home(position), tag(hash), handle);
        let is_sparse = segment.len < Self::SPARSE;
        self.len -= 1;
        if is_sparse {
            self.merge_around(number, hashes);
        }
    }

    /// Replaces the handle `old` by `new`.
    pub(super) fn rename(&mut self, hash: u64, old: u32, new: u32) {
        let position = skew(hash);
        let number = self.directory[self.directory_index(position)] as usize;
        let segment = self.own(number);
        let place = segment.find(segment.home(position), tag(hash), |handle| handle == old);
        let (line, slot) = place.expect("the old handle is in the table");
        segment.lines[line].handles[slot] = new;
    }

    /// Every handle, some ahead of the caller, as in [`prefetched`].
    pub(super) fn handles_prefetched(&self, prefetch: impl Fn(&[u32])) -> impl Iterator<Item = u32> {
        prefetched(self.handles(), prefetch)
    }

    /// Whether it has a base.
    pub(super) fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// Every handle.
    pub(super) fn handles(&self) -> impl Iterator<Item = u32> + Clone {
        self.segments().flat_map(Segment::handles)
    }

    /// Visits the handles from `cursor` on, line by line until `count` were visited, and returns the next cursor, 0
    /// at the end. A handle that is in the table from a walk's beginning to its end is visited at least once; twice
    /// only if segments merged meanwhile.
    pub(super) fn scan(&self, cursor: u64, count: usize, hashes: &impl Hashes, mut visit: impl FnMut(u32)) -> u64 {
        let mut position = cursor.saturating_mul(1 << CURSOR_SHIFT);
        let mut visited = 0;
        while let Some(segment) = self.segment_number(position).map(|number| self.segment(number)) {
            let home = segment.home(position);
            segment.of_home(home, hashes, |handle| {
                visited += 1;
                visit(handle);
            });
            let line_width = 1 << (u64::BITS - segment.depth - Self::LINE_BITS);
            let Some(next) = (segment.start + line_width * home as u64).checked_add(line_width) else { break };
            position = next;
            if visited >= count.max(1) {
                return position >> CURSOR_SHIFT;
            }
        }
        0
    }

    /// A random handle, each as likely as any other except in a table that lost most of its handles.
    pub(super) fn random(&self, generator: &mut impl FnMut() -> u64) -> Option<u32> {
        const TRIES: usize = 64;
        let mut below = |bound: usize| ((u128::from(generator()) * bound as u128) >> 64) as usize;
        if self.len == 0 {
            return None;
        }
        if self.segments.len() > 1 {
            for _ in 0..TRIES {
                let line = &self.segment(below(self.segments.len())).lines[below(LINES)];
                let slot = below(SLOTS);
                if line.taken & 1 << slot != 0 {
                    return Some(line.handles[slot]);
                }
            }
        }
        let from = below(self.segments.len());
        let segment = self.segments().skip(from).chain(self.segments()).find(|segment| segment.len > 0)?;
        let index = below(segment.len as usize);
        segment.handles().nth(index)
    }

    /// The bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.segments.len() * size_of::<[Line; LINES]>()
            + self.segments.capacity() * size_of::<Option<Segment<LINES>>>()
            + (self.directory.capacity() + self.depths.capacity()) * size_of::<u32>()
    }

    fn push(&mut self, segment: Segment<LINES>) -> u32 {
        self.count_depth(segment.depth);
        self.segments.push(Some(segment));
        self.segments.len() as u32 - 1
    }

    fn count_depth(&mut self, depth: u32) {
        let depth = depth as usize;
        if self.depths.len() <= depth {
            self.depths.resize(depth + 1, 0);
        }
        self.depths[depth] += 1;
    }

    /// The directory entries of a segment.
    fn directory_range(&self, segment: &Segment<LINES>) -> std::ops::Range<usize> {
        let first = self.directory_index(segment.start);
        first..first + (1 << (self.depth - segment.depth))
    }

    fn point_directory(&mut self, number: u32) {
        let range = self.directory_range(self.segment(number as usize));
        self.directory[range].fill(number);
    }

    /// Merges a sparse segment with its neighbour as long as the two are sparse together.
    fn merge_around(&mut self, mut number: usize, hashes: &impl Hashes) {
        if self.len == 0 {
            *self = Table::new();
            return;
        }
        while let Some(neighbour) = self.mergeable(number) {
            let right = number.max(neighbour);
            number = number.min(neighbour);
            self.merge(number, right, hashes);
        }
        while self.depth > 0 && self.depths[self.depth as usize] == 0 {
            self.depth -= 1;
            self.directory = self.directory.iter().copied().step_by(2).collect();
        }
    }

    fn mergeable(&self, number: usize) -> Option<usize> {
        let segment = self.segment(number);
        if segment.depth == 0 {
            return None;
        }
        let start = segment.start ^ 1 << (u64::BITS - segment.depth);
        let neighbour = self.segment_number(start)?;
        let other = self.segment(neighbour);
        (other.depth == segment.depth && other.len + segment.len <= Self::MERGED).then_some(neighbour)
    }

    /// Merges two neighbours into `kept`; the last segment then takes the number that is `lost`.
    fn merge(&mut self, kept: usize, lost: usize, hashes: &impl Hashes) {
        let (one, other) = (self.segment(kept), self.segment(lost));
        let depth = one.depth - 1;
        let mut merged = Segment::new(one.start.min(other.start), depth);
        for (hash, handle) in hashed(one.handles().chain(other.handles()), hashes) {
            merged.put(merged.home(skew(hash)), tag(hash), handle);
        }
        self.segments[kept] = Some(merged);
        // A segment in the base has one number, so the last one is copied before it gets another number.
        self.own(self.segments.len() - 1);
        self.segments.swap_remove(lost);
        self.depths[depth as usize + 1] -= 2;
        self.count_depth(depth);
        self.point_directory(kept as u32);
        if lost < self.segments.len() {
            self.point_directory(lost as u32);
        }
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self, hashes: &impl Hashes) {
        assert_eq!(self.segments().map(|segment| segment.len as usize).sum::<usize>(), self.len);
        assert_eq!(self.directory.len(), if self.segments.is_empty() { 0 } else { 1 << self.depth });
        let mut covered = 0;
        for (number, segment) in self.segments().enumerate() {
            let range = self.directory_range(segment);
            covered += range.len();
            assert!(self.directory[range].iter().all(|&entry| entry as usize == number), "the directory is wrong");
            segment.check(hashes);
        }
        assert_eq!(covered, self.directory.len());
        for (depth, &count) in self.depths.iter().enumerate() {
            let counted = self.segments().filter(|segment| segment.depth as usize == depth).count();
            assert_eq!(counted, count as usize);
        }
        assert!(self.depth == 0 || self.depths[self.depth as usize] > 0, "the directory is too large");
    }
}

/// Handles with their hashes.
fn hashed(handles: impl Iterator<Item = u32>, hashes: &impl Hashes) -> Vec<(u64, u32)> {
    let handles: Vec<u32> = handles.collect();
    hashes.prefetch(handles.iter().copied());
    handles.into_iter().map(|handle| (hashes.hash_of(handle), handle)).collect()
}

/// Handles, some ahead of the caller: those are given to `prefetch` together, so that the reads of what they stand for
/// overlap.
pub(super) fn prefetched(
    mut handles: impl Iterator<Item = u32>,
    prefetch: impl Fn(&[u32]),
) -> impl Iterator<Item = u32> {
    const AHEAD: usize = 32;
    let (mut group, mut length, mut next) = ([0; AHEAD], 0, 0);
    iter::from_fn(move || {
        if next == length {
            length = 0;
            for (place, handle) in group.iter_mut().zip(handles.by_ref()) {
                *place = handle;
                length += 1;
            }
            prefetch(&group[..length]);
            next = 0;
        }
        next += 1;
        group[..length].get(next - 1).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A bijection that acts as a uniform hash of 32-bit handles.
    pub(super) fn hash_of(handle: u32) -> u64 {
        let mixed = (u64::from(handle) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 32
    }

    pub(super) fn filled<const LINES: usize>(handles: u32) -> Table<LINES> {
        let mut table = Table::new();
        (0..handles).for_each(|handle| assert_eq!(table.insert(hash_of(handle), handle, &hash_of), Ok(())));
        table
    }

    fn find<const LINES: usize>(table: &Table<LINES>, handle: u32) -> Option<u32> {
        table.find(hash_of(handle), |other| other == handle)
    }

    fn walk<const LINES: usize>(table: &Table<LINES>, count: usize) -> Vec<u32> {
        let (mut cursor, mut seen) = (0, Vec::new());
        loop {
            cursor = table.scan(cursor, count, &hash_of, |handle| seen.push(handle));
            if cursor == 0 {
                return seen;
            }
        }
    }

    #[test]
    fn memory_follows_the_number_of_keys_without_steps() {
        let mut table = filled::<64>(100_000);
        let mut per_key = Vec::new();
        for handle in 100_000..400_000 {
            assert_eq!(table.insert(hash_of(handle), handle, &hash_of), Ok(()));
            if handle % 5_000 == 0 {
                per_key.push(table.memory() as f64 / table.len() as f64);
            }
        }
        let (least, most) =
            per_key.iter().fold((f64::MAX, 0f64), |(least, most), &bytes| (least.min(bytes), most.max(bytes)));
        assert!(least > 7.0 && most < 9.5, "between {least:.2} and {most:.2} bytes a key");
    }

    #[test]
    fn a_flood_of_equal_hashes_is_refused_and_reported() {
        let same = |_| 42;
        let mut table = Table::<4>::new();
        let flood = (0..1000).find(|&handle| table.insert(42, handle, &same) == Err(Flood));
        let taken = flood.expect("a segment has an end");
        assert_eq!(table.len(), taken as usize);
        assert!(table.directory.len() <= 512);
        table.check(&same);
    }

    #[test]
    fn random_handles_are_about_equally_likely() {
        for handles in [1u32, 20, 5_000] {
            let table = filled::<4>(handles);
            let (mut state, mut drawn) = (1u64, vec![0u32; handles as usize]);
            let mut generator = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                hash_of((state >> 32) as u32)
            };
            (0..handles * 100).for_each(|_| drawn[table.random(&mut generator).expect("not empty") as usize] += 1);
            assert!(drawn.iter().all(|&times| (40..=180).contains(&times)), "{handles} handles");
        }
        assert_eq!(Table::<4>::new().random(&mut || 0), None);
    }

    #[test]
    fn a_table_that_lost_almost_everything_is_small_again() {
        let mut table = filled::<64>(100_000);
        (100..100_000).for_each(|handle| table.remove(hash_of(handle), handle, &hash_of));
        table.check(&hash_of);
        assert!(table.memory() < 20_000, "{} bytes", table.memory());
        (0..100).for_each(|handle| assert_eq!(find(&table, handle), Some(handle)));
        assert!((0..1000).all(|draw| table.random(&mut || hash_of(draw)).is_some()));
    }

    proptest! {
        #[test]
        fn a_table_holds_exactly_the_entries_inserted_and_not_removed(
            steps: Vec<(bool, u16)>,
            grown in 0u32..600,
            shrunk in 0u32..600,
            expected in prop_oneof![Just(0), 0usize..2000],
        ) {
            let mut table = filled::<2>(grown);
            table.expect(expected);
            let mut model: BTreeSet<u32> = (0..grown).collect();
            for handle in 0..shrunk.min(grown) {
                table.remove(hash_of(handle), handle, &hash_of);
                model.remove(&handle);
            }
            table.check(&hash_of);
            for (add, handle) in steps {
                let handle = u32::from(handle % 512);
                if add && model.insert(handle) {
                    prop_assert_eq!(table.insert(hash_of(handle), handle, &hash_of), Ok(()));
                } else if !add && model.remove(&handle) {
                    table.remove(hash_of(handle), handle, &hash_of);
                }
            }
            table.check(&hash_of);
            prop_assert!((0..700).all(|handle| find(&table, handle).is_some() == model.contains(&handle)));
            let mut seen = walk(&table, 3);
            seen.sort_unstable();
            prop_assert_eq!(seen, model.into_iter().collect::<Vec<u32>>());
        }

        #[test]
        fn a_scan_misses_no_entry_that_stays(
            stay in prop::collection::btree_set(0u32..5_000, 0..200),
            churn in prop::collection::vec((any::<bool>(), 5_000u32..10_000, 1u32..400), 0..60),
            count in 1usize..40,
        ) {
            let mut table = Table::<2>::new();
            let mut extra = BTreeSet::new();
            stay.iter().for_each(|&handle| assert_eq!(table.insert(hash_of(handle), handle, &hash_of), Ok(())));
            let (mut cursor, mut seen, mut churn) = (0, BTreeSet::new(), churn.into_iter());
            loop {
                cursor = table.scan(cursor, count, &hash_of, |handle| seen.extend([handle]));
                if cursor == 0 {
                    break;
                }
                let Some((add, from, many)) = churn.next() else { continue };
                for handle in from..from + many {
                    if add && extra.insert(handle) {
                        prop_assert_eq!(table.insert(hash_of(handle), handle, &hash_of), Ok(()));
                    } else if !add && let Some(handle) = extra.pop_first() {
                        table.remove(hash_of(handle), handle, &hash_of);
                    }
                }
            }
            prop_assert!(stay.is_subset(&seen));
        }
    }
}
