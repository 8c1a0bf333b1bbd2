//! The memory of millions of small records: an arena of cells, addressed by 32-bit handles.
//!
//! Chunks of 64 KiB are cut into cells of one size each, so a cell carries no header and a record wastes at most a
//! few bytes: sizes step by 2 up to 64 bytes, by 8 up to 256 and by 32 up to [`MAX_CELL`]. A handle is a chunk's
//! number and a cell's number within it. Free cells of a chunk are linked through their own first two bytes; a chunk
//! without a record frees its memory, and its number serves the next size that needs a chunk. The first chunk of a
//! size and those with a number used before start small and double, so a database of three keys stays small, and no
//! chunk is ever cleared before use.
//!
//! [`Cells::share_contents`] makes clones copy on write: their chunks have no bytes, but find them under the same
//! numbers in the base, and copy a chunk before they change it. Reading chunks of its own costs nothing more: the
//! bounds check, needed anyway, finds the missing bytes.
//!
//! Invariants, per chunk: `live` cells plus the free chain are exactly the `used` cells; the chunk is in the list of
//! the open ones of its size if and only if it has a record and room, and in that of the vacant ones if and only if it
//! has no record. At most 2^20 chunks, 64 GiB of records, fit a handle.
//!
//! Costs: every operation O(1), but for a copy at the first change of a shared chunk and when a chunk doubles or a
//! table grows; an access reads the chunk's row and the cell. A chunk takes 40 bytes of tables.

use std::collections::HashSet;
use std::iter;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::reclaimed;

/// The largest cell, in bytes.
pub(super) const MAX_CELL: usize = 1024;
/// The smallest cell, in bytes.
pub(super) const MIN_CELL: usize = 16;

const CHUNK_BYTES: usize = 64 * 1024;
const FIRST_BYTES: usize = 512;
const INDEX_BITS: u32 = (CHUNK_BYTES / MIN_CELL).ilog2();
const SIZES: usize = size_number(MAX_CELL) + 1;
const NONE: u16 = u16::MAX;
/// The list of the vacant chunks, behind those of the open ones of each size.
const VACANT: usize = SIZES;
/// The end of a list.
const END: u32 = u32::MAX;
/// The head of the list of a size that has had no chunk yet.
const UNUSED: u32 = END - 1;

/// The arena. The bytes of a new cell are unspecified.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    chunks: Vec<Chunk>,
    /// The place of each chunk in its list, if it is in one.
    links: Vec<Link>,
    /// The first chunks of the lists: of the open ones of each size, and of the vacant ones.
    heads: Vec<u32>,
    vacant_chunks: u32,
    /// The bytes of all chunks, and of the cells in use among them.
    held_bytes: usize,
    live_bytes: usize,
    base: Option<Arc<Cells>>,
}

/// The neighbours of a chunk in its list.
#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

#[derive(Debug)]
struct Chunk {
    /// The bytes; none while they are in the base.
    bytes: Vec<u8>,
    cell_bytes: u16,
    used: u16,
    live: u16,
    free: u16,
}

/// The number of the least of the sizes that holds `bytes`.
const fn size_number(bytes: usize) -> usize {
    match bytes {
        0..=MIN_CELL => 0,
        17..=64 => (bytes - MIN_CELL).div_ceil(2),
        65..=256 => 24 + (bytes - 64).div_ceil(8),
        _ => 48 + (bytes - 256).div_ceil(32),
    }
}

/// The size of the cell for `bytes`.
pub(super) const fn cell_bytes(bytes: usize) -> usize {
    match size_number(bytes) {
        number @ 0..=24 => MIN_CELL + 2 * number,
        number @ 25..=48 => 64 + 8 * (number - 24),
        number => 256 + 32 * (number - 48),
    }
}

impl Cells {
    /// Allocates a cell of at least `bytes`, which is at most [`MAX_CELL`].
    pub(super) fn allocate(&mut self, bytes: usize) -> u32 {
        debug_assert!(bytes <= MAX_CELL);
        let number = size_number(bytes);
        if self.heads.is_empty() {
            self.heads.resize(VACANT + 1, UNUSED);
        }
        let chunk_number = match self.heads[number] {
            END | UNUSED => self.open_chunk(number, cell_bytes(bytes)),
            open => open,
        };
        let chunk = self.own(chunk_number as usize);
        let before = chunk.bytes.capacity();
        let index = chunk.take();
        let (cell, grown, is_full) =
            (usize::from(chunk.cell_bytes), chunk.bytes.capacity() - before, !chunk.has_room());
        self.held_bytes += grown;
        self.live_bytes += cell;
        if is_full {
            self.unlink(number, chunk_number);
        }
        chunk_number << INDEX_BITS | u32::from(index)
    }

    /// Opens a chunk of a size: a vacant one if there is one.
    fn open_chunk(&mut self, number: usize, cell_bytes: usize) -> u32 {
        let chunk_number = match self.heads[VACANT] {
            END | UNUSED => self.add_chunk(number, cell_bytes),
            vacant => {
                self.unlink(VACANT, vacant);
                self.vacant_chunks -= 1;
                self.chunks[vacant as usize].cell_bytes = cell_bytes as u16;
                vacant
            }
        };
        self.link(number, chunk_number);
        chunk_number
    }

    fn add_chunk(&mut self, number: usize, cell_bytes: usize) -> u32 {
        let is_first = self.heads[number] == UNUSED;
        let capacity = if is_first { FIRST_BYTES.max(cell_bytes) } else { CHUNK_BYTES };
        let chunk_number = self.chunks.len();
        assert!(chunk_number < 1 << (u32::BITS - INDEX_BITS), "out of memory: 64 GiB of records in one database");
        let bytes = Vec::with_capacity(capacity);
        self.held_bytes += bytes.capacity();
        self.chunks.push(Chunk { bytes, cell_bytes: cell_bytes as u16, used: 0, live: 0, free: NONE });
        self.links.push(Link { previous: END, next: END });
        chunk_number as u32
    }

    /// Puts a chunk, which is in no list, at the beginning of a list.
    fn link(&mut self, list: usize, chunk_number: u32) {
        let next = self.heads[list];
        let next = if next == UNUSED { END } else { next };
        self.links[chunk_number as usize] = Link { previous: END, next };
        if let Some(behind) = self.links.get_mut(next as usize) {
            behind.previous = chunk_number;
        }
        self.heads[list] = chunk_number;
    }

    /// Takes a chunk out of the list that it is in.
    fn unlink(&mut self, list: usize, chunk_number: u32) {
        let Link { previous, next } = self.links[chunk_number as usize];
        match self.links.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.heads[list] = next,
        }
        if let Some(behind) = self.links.get_mut(next as usize) {
            behind.previous = previous;
        }
    }

    /// Frees a cell.
    pub(super) fn free(&mut self, handle: u32) {
        let (chunk_number, index) = split(handle);
        let chunk = self.own(chunk_number);
        let (was_full, before) = (!chunk.has_room(), chunk.bytes.capacity());
        chunk.give(index as u16);
        let (cell, shrunk) = (usize::from(chunk.cell_bytes), before - chunk.bytes.capacity());
        let is_vacant = chunk.live == 0;
        self.held_bytes -= shrunk;
        self.live_bytes -= cell;
        // A chunk has more than one cell, so none loses its last record while it is full.
        if was_full {
            self.link(size_number(cell), chunk_number as u32);
        } else if is_vacant {
            self.unlink(size_number(cell), chunk_number as u32);
            self.link(VACANT, chunk_number as u32);
            self.vacant_chunks += 1;
        }
    }

    /// The bytes of a cell.
    #[inline(always)]
    pub(super) fn get(&self, handle: u32) -> &[u8] {
        let (chunk_number, index) = split(handle);
        let chunk = &self.chunks[chunk_number];
        chunk.bytes.get(chunk.range(index)).unwrap_or_else(|| self.base_cell(handle))
    }

    #[cold]
    fn base_cell(&self, handle: u32) -> &[u8] {
        self.base.as_ref().expect("a chunk without the bytes of a cell is in the base").get(handle)
    }

    /// The bytes of a cell, for changing.
    #[inline]
    pub(super) fn get_mut(&mut self, handle: u32) -> &mut [u8] {
        let (chunk_number, index) = split(handle);
        let chunk = self.own(chunk_number);
        let range = chunk.range(index);
        &mut chunk.bytes[range]
    }

    /// A chunk, for changing; copied from the base first if it is still there.
    #[inline]
    fn own(&mut self, number: usize) -> &mut Chunk {
        if self.chunks[number].bytes.is_empty() {
            self.fetch(number);
        }
        &mut self.chunks[number]
    }

    /// Copies a chunk from the base if it is still there.
    #[cold]
    fn fetch(&mut self, number: usize) {
        if let Some(in_base) = self.base.as_ref().and_then(|base| base.chunks.get(number)) {
            let chunk = &mut self.chunks[number];
            if chunk.used > 0 {
                *chunk = in_base.clone();
            }
        }
    }

    /// Moves the contents to where they can be shared, and returns them. Copies nothing, unless they are shared.
    pub(super) fn share_contents(&mut self) -> Arc<Cells> {
        if self.base.is_some() {
            (0..self.chunks.len()).for_each(|number| _ = self.own(number));
            self.base = None;
        }
        let base = Arc::new(mem::take(self));
        *self = Cells {
            chunks: base.chunks.iter().map(|chunk| Chunk { bytes: Vec::new(), ..*chunk }).collect(),
            links: base.links.clone(),
            heads: base.heads.clone(),
            vacant_chunks: base.vacant_chunks,
            held_bytes: base.held_bytes,
            live_bytes: base.live_bytes,
            base: Some(Arc::clone(&base)),
        };
        base
    }

    /// Whether it has a base.
    pub(super) fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// The bytes of the chunks that were copied from the base.
    pub(super) fn copied_bytes(&self) -> usize {
        let Some(base) = &self.base else { return 0 };
        let pairs = self.chunks.iter().zip(&base.chunks);
        let copied = pairs.filter(|(own, shared)| !own.bytes.is_empty() && !shared.bytes.is_empty());
        copied.map(|(own, _)| own.bytes.capacity()).sum()
    }

    /// Takes back what is shared, if nobody else shares it any more; returns what is left of the base, to be freed.
    pub(super) fn reclaim(&mut self) -> Option<Cells> {
        let mut base = reclaimed(&mut self.base)?;
        for (chunk, shared) in self.chunks.iter_mut().zip(&mut base.chunks) {
            if chunk.bytes.is_empty() && chunk.used > 0 {
                chunk.bytes = std::mem::take(&mut shared.bytes);
            }
        }
        Some(base)
    }

    /// Copies `len` bytes from one cell and offset to another; they may overlap.
    pub(super) fn copy(&mut self, (from, from_offset): (u32, usize), (to, to_offset): (u32, usize), len: usize) {
        let (from_chunk, from_index) = split(from);
        let (to_chunk, to_index) = split(to);
        let start = |chunk: &Chunk, index: usize, offset| index * usize::from(chunk.cell_bytes) + offset;
        self.own(from_chunk);
        if from_chunk == to_chunk {
            let chunk = &mut self.chunks[from_chunk];
            let (source, target) = (start(chunk, from_index, from_offset), start(chunk, to_index, to_offset));
            chunk.bytes.copy_within(source..source + len, target);
        } else {
            self.own(to_chunk);
            let chunks = self.chunks.get_disjoint_mut([from_chunk, to_chunk]);
            let [source, target] = chunks.expect("two numbers that differ, of chunks that exist");
            let from_start = start(source, from_index, from_offset);
            let to_start = start(target, to_index, to_offset);
            target.bytes[to_start..to_start + len].copy_from_slice(&source.bytes[from_start..from_start + len]);
        }
    }

    /// The bytes of the cells in use.
    pub(super) fn memory(&self) -> usize {
        self.live_bytes
    }

    /// The capacity of all chunks that have records, as if they were full-sized: at most 64 GiB.
    pub(super) fn named_bytes(&self) -> usize {
        (self.chunks.len() - self.vacant_chunks as usize) * CHUNK_BYTES
    }

    /// The bytes of memory held in addition: free cells, and the tables to find cells.
    pub(super) fn slack(&self) -> usize {
        let rows = self.chunks.capacity() * size_of::<Chunk>() + self.links.capacity() * size_of::<Link>();
        self.held_bytes - self.live_bytes + rows + self.heads.capacity() * size_of::<u32>()
    }

    /// The chunks of a list, in order.
    fn listed(&self, list: usize) -> impl Iterator<Item = usize> {
        let chunk = |number: u32| self.links.get(number as usize).map(|_| number as usize);
        let first = self.heads.get(list).and_then(|&head| chunk(head));
        iter::successors(first, move |&number| chunk(self.links[number].next))
    }

    /// Panics unless the invariants hold; `live` are all handles in use.
    pub(super) fn check(&self, live: impl Iterator<Item = u32>) {
        let mut seen = HashSet::new();
        assert!(live.into_iter().all(|handle| seen.insert(handle)), "a cell is used twice");
        let mut bytes = 0;
        let open: HashSet<usize> = (0..SIZES).flat_map(|number| self.listed(number)).collect();
        let vacant: HashSet<usize> = self.listed(VACANT).collect();
        assert_eq!(open.len(), (0..SIZES).map(|number| self.listed(number).count()).sum::<usize>());
        assert_eq!((vacant.len(), self.listed(VACANT).count()), (self.vacant_chunks as usize, vacant.len()));
        for (chunk_number, row) in self.chunks.iter().enumerate() {
            let in_base = self.base.as_ref().and_then(|base| base.chunks.get(chunk_number));
            let is_in_base = row.bytes.is_empty() && row.used > 0;
            let chunk = in_base.filter(|_| is_in_base).unwrap_or(row);
            bytes += chunk.bytes.capacity();
            let mut index = chunk.free;
            for _ in chunk.live..chunk.used {
                assert!(
                    !seen.contains(&((chunk_number as u32) << INDEX_BITS | u32::from(index))),
                    "a free cell is used"
                );
                index = chunk.next_free(index);
            }
            assert_eq!(index, NONE);
            assert_eq!(open.contains(&chunk_number), chunk.live > 0 && chunk.has_room());
            assert_eq!(vacant.contains(&chunk_number), chunk.live == 0);
            let of_size = self.listed(size_number(usize::from(chunk.cell_bytes)));
            assert!(!open.contains(&chunk_number) || of_size.into_iter().any(|open| open == chunk_number));
        }
        let live_bytes = |chunk: &Chunk| usize::from(chunk.live) * usize::from(chunk.cell_bytes);
        assert_eq!(self.chunks.iter().map(|chunk| usize::from(chunk.live)).sum::<usize>(), seen.len());
        assert_eq!(self.chunks.iter().map(live_bytes).sum::<usize>(), self.live_bytes);
        assert_eq!(bytes, self.held_bytes);
    }
}

/// A clone keeps the spare capacity.
impl Clone for Chunk {
    fn clone(&self) -> Chunk {
        let mut bytes = Vec::with_capacity(self.bytes.capacity());
        bytes.extend_from_slice(&self.bytes);
        Chunk { bytes, ..*self }
    }
}

impl Chunk {
    /// The byte range of a cell.
    #[inline]
    fn range(&self, index: usize) -> Range<usize> {
        let len = usize::from(self.cell_bytes);
        let start = index * len;
        start..start + len
    }

    fn has_room(&self) -> bool {
        self.live < self.used || usize::from(self.used + 1) * usize::from(self.cell_bytes) <= CHUNK_BYTES
    }

    /// Takes a free cell from a chunk that has one.
    fn take(&mut self) -> u16 {
        self.live += 1;
        if self.free != NONE {
            let index = self.free;
            self.free = self.next_free(index);
            return index;
        }
        let end = self.bytes.len() + usize::from(self.cell_bytes);
        if end > self.bytes.capacity() {
            let doubled = (2 * self.bytes.capacity()).clamp(FIRST_BYTES.max(end), CHUNK_BYTES);
            self.bytes.reserve_exact(doubled - self.bytes.len());
        }
        self.bytes.resize(end, 0);
        self.used += 1;
        self.used - 1
    }

    fn give(&mut self, index: u16) {
        self.live -= 1;
        if self.live == 0 {
            (self.bytes, self.used, self.free) = (Vec::new(), 0, NONE);
            return;
        }
        let start = usize::from(index) * usize::from(self.cell_bytes);
        self.bytes[start..start + 2].copy_from_slice(&self.free.to_le_bytes());
        self.free = index;
    }

    fn next_free(&self, index: u16) -> u16 {
        let start = usize::from(index) * usize::from(self.cell_bytes);
        u16::from_le_bytes([self.bytes[start], self.bytes[start + 1]])
    }
}

#[inline(always)]
fn split(handle: u32) -> (usize, usize) {
    ((handle >> INDEX_BITS) as usize, (handle & ((1 << INDEX_BITS) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cell_is_at_most_an_eighth_larger_than_requested() {
        let mut last = 0;
        for bytes in 0..=MAX_CELL {
            let cell = cell_bytes(bytes);
            assert!(cell >= bytes && cell >= last && size_number(cell) == size_number(bytes));
            assert!(cell - bytes <= (bytes / 8).max(1) || bytes < MIN_CELL, "{bytes} bytes in a cell of {cell}");
            last = cell;
        }
        assert_eq!(cell_bytes(MAX_CELL), MAX_CELL);
    }

    #[test]
    fn the_smallest_cells_of_a_chunk_all_have_handles() {
        let mut cells = Cells::default();
        let handles: Vec<u32> = (0..10_000).map(|_| cells.allocate(1)).collect();
        cells.check(handles.iter().copied());
        assert_eq!(cells.chunks.len(), 10_000usize.div_ceil(CHUNK_BYTES / MIN_CELL));
    }

    #[test]
    fn memory_is_returned_when_every_cell_is_free() {
        let mut cells = Cells::default();
        let handles: Vec<u32> = (0..5_000).map(|number| cells.allocate(number % MAX_CELL)).collect();
        handles.into_iter().for_each(|handle| cells.free(handle));
        cells.check(std::iter::empty());
        assert!(cells.chunks.iter().all(|chunk| chunk.bytes.capacity() == 0));
        assert_eq!((cells.memory(), cells.named_bytes()), (0, 0));
        assert!(cells.slack() < 20_000);
    }

    /// Fills and empties three chunks of each size in turn, from the middle of the open ones.
    #[test]
    fn a_chunk_without_records_serves_any_size() {
        let mut cells = Cells::default();
        for number in 0..SIZES {
            let bytes = (0..=MAX_CELL).find(|&bytes| size_number(bytes) == number).expect("each size is of some bytes");
            let per_chunk = CHUNK_BYTES / cell_bytes(bytes);
            let mut handles: Vec<u32> = (0..3 * per_chunk).map(|_| cells.allocate(bytes)).collect();
            assert_eq!(cells.named_bytes(), 3 * CHUNK_BYTES);
            // All three have room when the middle one is emptied.
            let first: Vec<u32> = (0..3).rev().map(|chunk| handles.remove(chunk * per_chunk)).collect();
            first.into_iter().for_each(|handle| cells.free(handle));
            handles.drain(per_chunk - 1..2 * (per_chunk - 1)).for_each(|handle| cells.free(handle));
            cells.check(handles.iter().copied());
            assert_eq!(cells.named_bytes(), 2 * CHUNK_BYTES);
            handles.into_iter().for_each(|handle| cells.free(handle));
            cells.check(std::iter::empty());
            assert_eq!((cells.chunks.len(), cells.named_bytes()), (3, 0));
        }
    }

    #[test]
    fn a_fork_uses_a_number_for_another_size_than_its_base() {
        let mut fork = Cells::default();
        let handles: Vec<u32> = (0..100).map(|_| fork.allocate(20)).collect();
        handles.iter().for_each(|&handle| fork.get_mut(handle).fill(1));
        let base = fork.share_contents();
        handles.iter().for_each(|&handle| fork.free(handle));
        let other = fork.allocate(500);
        fork.get_mut(other).fill(2);
        fork.check(std::iter::once(other));
        base.check(handles.iter().copied());
        assert!(handles.iter().all(|&handle| base.get(handle).iter().all(|byte| *byte == 1)));
        drop(base);
        assert!(fork.reclaim().is_some());
        fork.check(std::iter::once(other));
        assert!(fork.get(other).iter().all(|byte| *byte == 2) && fork.chunks.len() == 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn cells_keep_their_bytes_while_others_are_allocated_and_freed(steps: Vec<(u8, u16)>) {
            let mut cells = Cells::default();
            let mut model: Vec<(u32, Vec<u8>)> = Vec::new();
            let chunks_of = |model: &[(u32, Vec<u8>)]| {
                model.iter().map(|(handle, _)| handle >> INDEX_BITS).collect::<HashSet<u32>>().len()
            };
            let mut most_chunks = 0;
            for (step, choice) in steps {
                if step % 32 == 1 {
                    model.drain(..).for_each(|(handle, _)| cells.free(handle));
                } else if step % 3 == 0 && !model.is_empty() {
                    let (handle, bytes) = model.swap_remove(usize::from(choice) % model.len());
                    prop_assert_eq!(&cells.get(handle)[..bytes.len()], &bytes[..]);
                    cells.free(handle);
                } else {
                    let bytes = vec![step; usize::from(choice) % (MAX_CELL + 1)];
                    let handle = cells.allocate(bytes.len());
                    cells.get_mut(handle)[..bytes.len()].copy_from_slice(&bytes);
                    model.push((handle, bytes));
                    most_chunks = most_chunks.max(chunks_of(&model));
                }
            }
            cells.check(model.iter().map(|&(handle, _)| handle));
            let expected = (most_chunks, chunks_of(&model) * CHUNK_BYTES);
            prop_assert_eq!((cells.chunks.len(), cells.named_bytes()), expected);
            for (handle, bytes) in &model {
                prop_assert_eq!(&cells.get(*handle)[..bytes.len()], &bytes[..]);
            }
            if let [(one, bytes), .., (other, room)] = &model[..] {
                let len = bytes.len().min(room.len());
                cells.copy((*one, 0), (*other, 0), len);
                prop_assert_eq!(&cells.get(*other)[..len], &bytes[..len]);
            }
        }
    }
}
