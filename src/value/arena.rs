//! An arena of cells: each stores some bytes and a number, under a handle of four bytes.
//!
//! Large sorted sets, sets and hashes keep their elements here. The bytes are a member, or a field with its value; the
//! number is a score, or the deadline of a field. Whatever finds the element (the member index, the order of a sorted
//! set, the deadlines of a hash) holds its handle, so an element costs its own bytes once. A cell does not move until
//! its element is removed, its number needs more bytes, or its chunk is drained.
//!
//! ```text
//! live cell    +----------------+------------------+-----------------------+--------+ filled up to an even size,
//!              | width | length | number, `width`  | length, 1 byte if 14  | bytes  | at least 10
//!              | 4 bit | 4 bit  | bytes            | place, 4 bytes if 15  |        |
//!              +----------------+------------------+-----------------------+--------+
//! free cell    +----------------+------+-------------+-------------+
//!              |   15  |   0    | size | previous u32| next u32    |  one list for each size (in grains of two bytes)
//!              +----------------+------+-------------+-------------+
//! filler       |   15  | grains |  bytes too few for a free cell
//! ```
//!
//! - A number of width `w < 8` is an integer, sign folded into the lowest bit; width 8 is the bits of the `f64`. So 0
//!   takes no byte.
//! - More than 255 bytes have an allocation of their own and leave its number in the cell. A reply may share it; it is
//!   then replaced, not changed.
//! - A handle is `chunk * CHUNK / 2 + offset / 2`: 8 GiB of cells. The callers that store cells ensure that there are
//!   no more ([`Arena::cell_bytes`]); a removal may take one more chunk for the cells that it moves.
//! - Invariant: the cells of a chunk are back to back, and `idle` is the sum of the sizes of those that are not live.
//! - Memory: freed cells are used again at their size, or cut. Once an eighth of all bytes is idle, the idlest chunk is
//!   drained: the owner moves its live cells away, a few with each removal, and the chunk is given back.
//! - The chunks of a fork ([`fork`]) are in its base until one of their cells changes.
//!
//! Costs: O(1), one cache line to read a cell of usual size. The table of chunks has one row for 16 KiB of cells and is
//! copied when it doubles.

mod fork;
#[cfg(test)]
mod tests;

use crate::value::base::Base;
use crate::value::slab::Slab;
use std::iter;
use std::sync::Arc;

/// Identifies a cell.
pub(super) type Handle = u32;

/// Handles count grains of this many bytes.
const GRAIN: usize = 2;
const CHUNK: usize = 16 * 1024;
const GRAINS_PER_CHUNK: u32 = (CHUNK / GRAIN) as u32;
/// The least size of a cell: a free one needs it for its links, and a number can be read as eight bytes.
const MIN: usize = 10;
const FREE: u8 = 15;
/// The width that means "the bits of the `f64` itself".
const RAW: usize = 8;
const LENGTH_FOLLOWS: usize = 14;
const PLACE_FOLLOWS: usize = 15;
/// The most bytes that are stored inside a cell.
const INLINE: usize = 255;
/// Every integer up to this magnitude has an exact `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;
const NONE: Handle = Handle::MAX;
/// The most bytes of a cell besides those that it stores.
pub(super) const LARGEST_HEAD: usize = 1 + RAW + 1 + MIN;

#[derive(Default)]
pub(super) struct Arena {
    chunks: Vec<Chunk>,
    /// The chunk for new cells.
    open: usize,
    /// Chunks without memory.
    vacant: Vec<u32>,
    /// The first free cell of each size, by its grains.
    free: Vec<Handle>,
    /// Bytes of free cells and filler in all chunks.
    idle: usize,
    /// Bytes of all cells, live or not.
    used: usize,
    /// The capacity of all chunks, in bytes.
    allocated: usize,
    draining: Option<Drain>,
    /// Bytes that are too long for a cell.
    long: Slab<Arc<[u8]>>,
    /// The memory of those.
    long_bytes: usize,
    base: Option<Box<Base<Arena>>>,
}

#[derive(Default)]
struct Chunk {
    /// The bytes; none while they are in the base.
    bytes: Vec<u8>,
    /// Bytes of its free cells and filler.
    idle: u32,
    is_in_base: bool,
}

/// A chunk that is being emptied, and the offset of its first byte that has not been visited.
#[derive(Clone, Copy)]
struct Drain {
    chunk: usize,
    at: usize,
}

/// The meaning of the first bytes of a cell.
enum Cell {
    Free {
        size: usize,
    },
    Filler {
        size: usize,
    },
    /// The last byte used is before `end`; `place` is the number of long bytes in the slab.
    Live {
        end: usize,
        place: Option<u32>,
    },
}

impl Cell {
    fn size(&self) -> usize {
        match *self {
            Cell::Free { size } | Cell::Filler { size } => size,
            Cell::Live { end, .. } => sized(end),
        }
    }
}

impl Arena {
    /// Stores bytes and a number in a cell. The bytes are several parts, which follow each other in the cell.
    pub(super) fn insert<const N: usize>(&mut self, parts: [&[u8]; N], number: f64) -> Handle {
        let (value, width) = code(number);
        let (head, length) = (1 + width, total(parts));
        let (tag, size) = match length {
            _ if length < LENGTH_FOLLOWS => (length, head + length),
            _ if length <= INLINE => (LENGTH_FOLLOWS, head + 1 + length),
            _ => (PLACE_FOLLOWS, head + 4),
        };
        let handle = self.allocate(sized(size));
        let place = if tag == PLACE_FOLLOWS { self.insert_long(parts) } else { 0 };
        let cell = self.cell_mut(handle);
        cell[0] = (width | tag << 4) as u8;
        cell[1..head].copy_from_slice(&value.to_le_bytes()[..width]);
        match tag {
            PLACE_FOLLOWS => cell[head..head + 4].copy_from_slice(&place.to_le_bytes()),
            LENGTH_FOLLOWS => {
                cell[head] = length as u8;
                join(&mut cell[head + 1..size], parts);
            }
            _ => join(&mut cell[head..size], parts),
        }
        handle
    }

    /// A byte of the cache line in which a cell begins, so that it is loaded.
    pub(super) fn touch_line(&self, handle: Handle) -> u8 {
        self.cell(handle)[0]
    }

    /// The number in a cell.
    pub(super) fn number(&self, handle: Handle) -> f64 {
        let cell = self.cell(handle);
        decode(cell, usize::from(cell[0] & 15))
    }

    /// The bytes in a cell.
    pub(super) fn bytes(&self, handle: Handle) -> &[u8] {
        let cell = self.cell(handle);
        let head = 1 + usize::from(cell[0] & 15);
        match usize::from(cell[0] >> 4) {
            LENGTH_FOLLOWS => &cell[head + 1..][..usize::from(cell[head])],
            PLACE_FOLLOWS => &self.long[word(cell, head)],
            length => &cell[head..][..length],
        }
    }

    /// The bytes that a cell has in an allocation of their own.
    pub(super) fn long(&self, handle: Handle) -> Option<&Arc<[u8]>> {
        match read(self.cell(handle)) {
            Cell::Live { place: Some(place), .. } => Some(&self.long[place]),
            _ => None,
        }
    }

    /// Writes the bytes of several parts over those in a cell, which must be as many.
    pub(super) fn overwrite<const N: usize>(&mut self, handle: Handle, parts: [&[u8]; N]) {
        let cell = self.cell_mut(handle);
        let head = 1 + usize::from(cell[0] & 15);
        match usize::from(cell[0] >> 4) {
            LENGTH_FOLLOWS => join(&mut cell[head + 1..], parts),
            PLACE_FOLLOWS => {
                let place = word(cell, head);
                match Arc::get_mut(&mut self.long[place]) {
                    Some(long) => join(long, parts),
                    None => self.long[place] = joined(parts),
                }
            }
            _ => join(&mut cell[head..], parts),
        }
    }

    /// Writes a number into its cell, if the cell is wide enough; returns whether it is.
    pub(super) fn set_number(&mut self, handle: Handle, number: f64) -> bool {
        let cell = self.cell_mut(handle);
        let width = usize::from(cell[0] & 15);
        let (value, needed) = if width == RAW { (number.to_bits(), RAW) } else { code(number) };
        let fits = needed <= width;
        if fits {
            cell[1..1 + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        fits
    }

    /// Creates a second cell for the bytes of a live one, with another number; to be followed by [`Arena::release`].
    pub(super) fn widen(&mut self, handle: Handle, number: f64) -> Handle {
        let head = 1 + usize::from(self.cell(handle)[0] & 15);
        let end = match read(self.cell(handle)) {
            Cell::Live { end, .. } => end,
            Cell::Free { .. } | Cell::Filler { .. } => head,
        };
        let tail = self.cell(handle)[head..end].to_vec();
        let (value, width) = code(number);
        let copy = self.allocate(sized(1 + width + tail.len()));
        let tag = self.cell(handle)[0] & 0xf0;
        let cell = self.cell_mut(copy);
        cell[0] = width as u8 | tag;
        cell[1..1 + width].copy_from_slice(&value.to_le_bytes()[..width]);
        cell[1 + width..1 + width + tail.len()].copy_from_slice(&tail);
        copy
    }

    /// Removes a cell, with its long bytes if it has some.
    pub(super) fn remove(&mut self, handle: Handle) {
        if let Cell::Live { place: Some(place), .. } = read(self.cell(handle)) {
            self.long_bytes -= long_memory(&self.long[place]);
            self.long.remove(place);
        }
        self.release(handle);
    }

    /// A live cell that should move, if too much is idle; the caller moves it with [`Arena::duplicate`] and
    /// [`Arena::release`]. Chunks without one are given back on the way.
    pub(super) fn next_to_move(&mut self) -> Option<Handle> {
        loop {
            let mut drain = self.draining.or_else(|| self.start_draining())?;
            let bytes = &self.chunks[drain.chunk].bytes;
            while drain.at < bytes.len() {
                match read(&bytes[drain.at..]) {
                    Cell::Live { .. } => {
                        self.draining = Some(drain);
                        return Some(handle_of(drain.chunk, drain.at));
                    }
                    cell => drain.at += cell.size(),
                }
            }
            self.draining = None;
            self.give_back(drain.chunk);
        }
    }

    /// Creates a second cell with the bytes of a live one.
    pub(super) fn duplicate(&mut self, handle: Handle) -> Handle {
        let size = read(self.cell(handle)).size();
        let copy = self.allocate(size);
        let bytes = self.cell(handle)[..size].to_vec();
        self.cell_mut(copy)[..size].copy_from_slice(&bytes);
        copy
    }

    /// Frees a cell, but not the separate allocation of long bytes.
    pub(super) fn release(&mut self, handle: Handle) {
        let size = read(self.cell(handle)).size();
        self.mark_free(handle, size);
    }

    /// Gives back the unused memory of the last chunk.
    pub(super) fn shrink_to_fit(&mut self) {
        self.chunks.shrink_to_fit();
        if let Some(chunk) = self.chunks.get_mut(self.open) {
            self.allocated -= chunk.bytes.capacity();
            chunk.bytes.shrink_to_fit();
            self.allocated += chunk.bytes.capacity();
        }
    }

    pub(super) fn memory(&self) -> usize {
        let tables = self.chunks.capacity() * size_of::<Chunk>() + (self.vacant.capacity() + self.free.capacity()) * 4;
        self.allocated + tables + self.long.memory() + self.long_bytes
    }

    /// Bytes of all chunks.
    pub(super) fn cell_bytes(&self) -> usize {
        self.allocated
    }

    /// Panics unless the invariants hold, and returns all live cells.
    pub(super) fn check(&self) -> Vec<Handle> {
        let (mut live, mut linked) = (Vec::new(), 0);
        let (mut used, mut idle, mut free_cells) = (0, 0, 0);
        for (number, row) in self.chunks.iter().enumerate() {
            let (mut at, mut chunk_idle, chunk) = (0, 0, self.chunk(number));
            while at < chunk.bytes.len() {
                let cell = read(&chunk.bytes[at..]);
                match cell {
                    Cell::Live { .. } => live.push(handle_of(number, at)),
                    Cell::Filler { size } => chunk_idle += size,
                    Cell::Free { size } => {
                        chunk_idle += size;
                        free_cells += usize::from(self.draining.is_none_or(|drain| drain.chunk != number));
                    }
                }
                at += cell.size();
            }
            assert_eq!(at, chunk.bytes.len(), "cells fill their chunk");
            assert_eq!(chunk_idle, row.idle as usize, "idle bytes of a chunk");
            (used, idle) = (used + at, idle + chunk_idle);
        }
        for (grains, &first) in self.free.iter().enumerate() {
            let (mut cell, mut previous) = (first, NONE);
            while cell != NONE {
                assert!(matches!(read(self.cell(cell)), Cell::Free { size } if size == grains * GRAIN));
                assert_eq!(word(self.cell(cell), 2), previous, "links lead both ways");
                (previous, cell) = (cell, word(self.cell(cell), 6));
                linked += 1;
            }
        }
        assert_eq!((used, idle, free_cells), (self.used, self.idle, linked), "used, idle, free cells in lists");
        let capacities = (0..self.chunks.len()).map(|number| self.chunk(number).bytes.capacity());
        assert_eq!(self.allocated, capacities.sum::<usize>());
        live
    }

    fn cell(&self, handle: Handle) -> &[u8] {
        let at = (handle % GRAINS_PER_CHUNK) as usize * GRAIN;
        let bytes = &self.chunks[chunk_of(handle)].bytes;
        if at < bytes.len() { &bytes[at..] } else { self.base_cell(handle) }
    }

    /// A cell in the base.
    #[cold]
    #[inline(never)]
    fn base_cell(&self, handle: Handle) -> &[u8] {
        self.base.as_ref().expect("a chunk without the bytes of a cell is in the base").get().cell(handle)
    }

    fn cell_mut(&mut self, handle: Handle) -> &mut [u8] {
        let at = (handle % GRAINS_PER_CHUNK) as usize * GRAIN;
        if at >= self.chunks[chunk_of(handle)].bytes.len() {
            self.fetch(chunk_of(handle));
        }
        &mut self.chunks[chunk_of(handle)].bytes[at..]
    }

    fn insert_long<const N: usize>(&mut self, parts: [&[u8]; N]) -> u32 {
        let bytes = joined(parts);
        self.long_bytes += long_memory(&bytes);
        self.long.insert(bytes)
    }

    /// Allocates a cell of `size` bytes: one that was freed, or part of it, or a new one.
    fn allocate(&mut self, size: usize) -> Handle {
        let grains = size / GRAIN;
        if let Some(handle) = self.first_free(grains..grains + 1) {
            self.unlink(handle, size);
            self.count_idle(handle, size, 0);
            return handle;
        }
        if let Some(handle) = self.first_free(grains + MIN / GRAIN..usize::MAX) {
            let whole = read(self.cell(handle)).size();
            self.unlink(handle, whole);
            self.count_idle(handle, whole, 0);
            self.mark_free(handle + grains as u32, whole - size);
            return handle;
        }
        self.extend(size)
    }

    /// The first free cell of a size within `grains`.
    fn first_free(&self, grains: std::ops::Range<usize>) -> Option<Handle> {
        if self.idle == 0 {
            return None;
        }
        let end = grains.end.min(self.free.len());
        self.free.get(grains.start..end)?.iter().copied().find(|&first| first != NONE)
    }

    /// Allocates a cell at the end of the open chunk.
    fn extend(&mut self, size: usize) -> Handle {
        if self.chunks.get(self.open).is_none_or(|chunk| chunk.bytes.len() + size > CHUNK) {
            self.open_chunk();
        }
        let chunk = &mut self.chunks[self.open];
        let at = chunk.bytes.len();
        if at + size > chunk.bytes.capacity() {
            self.allocated -= chunk.bytes.capacity();
            chunk.bytes.reserve_exact(size.max(256.max(at / 2).min(CHUNK - at)));
            self.allocated += chunk.bytes.capacity();
        }
        chunk.bytes.resize(at + size, 0);
        self.used += size;
        handle_of(self.open, at)
    }

    /// Fills the open chunk up and opens another.
    fn open_chunk(&mut self) {
        if let Some(chunk) = self.chunks.get(self.open) {
            let rest = CHUNK - chunk.bytes.len();
            if rest > 0 {
                let handle = self.extend(rest);
                self.mark_free(handle, rest);
            }
        }
        self.open = match self.vacant.pop() {
            Some(number) => number as usize,
            None => {
                self.chunks.push(Chunk::default());
                self.chunks.len() - 1
            }
        };
    }

    /// Turns bytes that are not in a cell, or a live cell, into a free cell or filler.
    fn mark_free(&mut self, handle: Handle, size: usize) {
        self.count_idle(handle, 0, size);
        let cell = self.cell_mut(handle);
        if size < MIN {
            cell[0] = FREE | ((size / GRAIN) << 4) as u8;
            return;
        }
        cell[0] = FREE;
        cell[1] = (size / GRAIN) as u8;
        if self.draining.is_some_and(|drain| drain.chunk == chunk_of(handle)) {
            return;
        }
        if self.free.len() <= size / GRAIN {
            self.free.resize(size / GRAIN + 1, NONE);
        }
        let next = std::mem::replace(&mut self.free[size / GRAIN], handle);
        set_word(self.cell_mut(handle), 2, NONE);
        set_word(self.cell_mut(handle), 6, next);
        if next != NONE {
            set_word(self.cell_mut(next), 2, handle);
        }
    }

    fn unlink(&mut self, handle: Handle, size: usize) {
        let (previous, next) = (word(self.cell(handle), 2), word(self.cell(handle), 6));
        match previous {
            NONE => self.free[size / GRAIN] = next,
            previous => set_word(self.cell_mut(previous), 6, next),
        }
        if next != NONE {
            set_word(self.cell_mut(next), 2, previous);
        }
    }

    fn count_idle(&mut self, handle: Handle, less: usize, more: usize) {
        let chunk = &mut self.chunks[chunk_of(handle)];
        chunk.idle = chunk.idle - less as u32 + more as u32;
        self.idle = self.idle - less + more;
    }

    /// If too much is idle, takes the free cells of the idlest chunk out of their lists, so that none is used again.
    fn start_draining(&mut self) -> Option<Drain> {
        if self.idle <= self.used / 8 + CHUNK / 4 {
            return None;
        }
        let closed = (0..self.chunks.len()).filter(|&number| number != self.open);
        let chunk = closed.max_by_key(|&number| self.chunks[number].idle)?;
        if (self.chunks[chunk].idle as usize) < CHUNK / 8 {
            return None;
        }
        self.fetch(chunk);
        let mut at = 0;
        while at < self.chunks[chunk].bytes.len() {
            let cell = read(&self.chunks[chunk].bytes[at..]);
            if let Cell::Free { size } = cell {
                self.unlink(handle_of(chunk, at), size);
            }
            at += cell.size();
        }
        self.draining = Some(Drain { chunk, at: 0 });
        self.draining
    }

    fn give_back(&mut self, number: usize) {
        let chunk = std::mem::take(&mut self.chunks[number]);
        self.allocated -= chunk.bytes.capacity();
        self.used -= chunk.bytes.len();
        self.idle -= chunk.idle as usize;
        self.vacant.push(number as u32);
    }
}

fn handle_of(chunk: usize, at: usize) -> Handle {
    let handle = chunk * GRAINS_PER_CHUNK as usize + at / GRAIN;
    Handle::try_from(handle).expect("commands that could make it more than 8 GiB are refused")
}

fn chunk_of(handle: Handle) -> usize {
    (handle / GRAINS_PER_CHUNK) as usize
}

/// The number of bytes of all parts.
fn total<const N: usize>(parts: [&[u8]; N]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// Copies parts to the beginning of `target`, one behind the other.
fn join<const N: usize>(mut target: &mut [u8], parts: [&[u8]; N]) {
    for part in parts {
        let (place, rest) = target.split_at_mut(part.len());
        place.copy_from_slice(part);
        target = rest;
    }
}

/// The bytes of all parts.
fn joined<const N: usize>(parts: [&[u8]; N]) -> Arc<[u8]> {
    if let [whole] = parts[..] {
        return whole.into();
    }
    let mut bytes: Arc<[u8]> = iter::repeat_n(0, total(parts)).collect();
    Arc::get_mut(&mut bytes).into_iter().for_each(|bytes| join(bytes, parts));
    bytes
}

/// The memory of bytes that are too long for a cell, with their reference counts.
fn long_memory(bytes: &Arc<[u8]>) -> usize {
    (2 * size_of::<usize>() + bytes.len()).next_multiple_of(align_of::<usize>())
}

/// The size of a cell that needs `bytes`.
fn sized(bytes: usize) -> usize {
    bytes.next_multiple_of(GRAIN).max(MIN)
}

fn read(cell: &[u8]) -> Cell {
    let (width, tag) = (cell[0] & 15, usize::from(cell[0] >> 4));
    let head = 1 + usize::from(width);
    match (width, tag) {
        (FREE, 0) => Cell::Free { size: usize::from(cell[1]) * GRAIN },
        (FREE, grains) => Cell::Filler { size: grains * GRAIN },
        (_, LENGTH_FOLLOWS) => Cell::Live { end: head + 1 + usize::from(cell[head]), place: None },
        (_, PLACE_FOLLOWS) => Cell::Live { end: head + 4, place: Some(word(cell, head)) },
        (_, length) => Cell::Live { end: head + length, place: None },
    }
}

fn word(cell: &[u8], at: usize) -> u32 {
    cell[at..].first_chunk().map_or(NONE, |word| u32::from_le_bytes(*word))
}

fn set_word(cell: &mut [u8], at: usize, value: u32) {
    cell[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Encodes a number in the fewest bytes that restore it, the sign of zero included.
fn code(number: f64) -> (u64, usize) {
    let integer = number as i64;
    if number.abs() <= EXACT && (integer as f64).to_bits() == number.to_bits() {
        let folded = (integer << 1 ^ integer >> 63) as u64;
        (folded, (64 - folded.leading_zeros()).div_ceil(8) as usize)
    } else {
        (number.to_bits(), RAW)
    }
}

fn decode(cell: &[u8], width: usize) -> f64 {
    let word = cell[1..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    if width == RAW {
        return f64::from_bits(word);
    }
    let folded = word & ((1 << (8 * width)) - 1);
    ((folded >> 1) as i64 ^ -((folded & 1) as i64)) as f64
}
