//! Arenas that share their chunks until one of their cells changes ([`Fork`]).
//!
//! A chunk in the base has no bytes here, so the check of bounds finds it missing. Its idle bytes are counted here. The
//! open chunk and one that is being drained are never in the base.
//!
//! Costs: a fork takes 32 bytes a chunk; the first change of a chunk copies its 16 KiB.

use super::{Arena, Chunk};
use crate::value::base::{Base, Fork};
use crate::value::slab::Slab;

/// A clone has all chunks itself.
impl Clone for Arena {
    fn clone(&self) -> Arena {
        let chunks = (0..self.chunks.len()).map(|number| self.copied(number)).collect();
        Arena { chunks, long: self.long.clone(), ..self.without_contents() }
    }
}

impl Fork for Arena {
    fn without_parts(&self) -> Arena {
        let in_base = |chunk: &Chunk| Chunk { bytes: Vec::new(), is_in_base: !chunk.bytes.is_empty(), ..*chunk };
        let mut chunks: Vec<Chunk> = self.chunks.iter().map(in_base).collect();
        // These two change whatever changes.
        for number in [Some(self.open), self.draining.map(|drain| drain.chunk)].into_iter().flatten() {
            if number < chunks.len() {
                chunks[number] = self.copied(number);
            }
        }
        Arena { chunks, long: self.long.without_parts(), ..self.without_contents() }
    }

    fn set_base(&mut self, base: Option<Base<Arena>>) {
        self.long.set_base(base.as_ref().map(|base| base.part(|arena| &arena.long)));
        self.base = base.map(Box::new);
    }

    fn is_fork(&self) -> bool {
        self.base.is_some()
    }

    fn own_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bytes.capacity()).sum::<usize>() + self.long.own_bytes()
    }

    fn reclaim(&mut self, base: &mut Arena) {
        for (chunk, shared) in self.chunks.iter_mut().zip(&mut base.chunks) {
            if chunk.is_in_base {
                (chunk.bytes, chunk.is_in_base) = (std::mem::take(&mut shared.bytes), false);
            }
        }
        self.long.reclaim(&mut base.long);
    }
}

impl Chunk {
    /// A copy with the same capacity, so that sums over chunks hold for it too.
    fn copy(&self) -> Chunk {
        let mut bytes = Vec::with_capacity(self.bytes.capacity());
        bytes.extend_from_slice(&self.bytes);
        Chunk { bytes, ..*self }
    }
}

impl Arena {
    /// A chunk, of this arena or of the base.
    pub(super) fn chunk(&self, number: usize) -> &Chunk {
        let chunk = &self.chunks[number];
        let base = self.base.as_ref().filter(|_| chunk.is_in_base);
        base.map_or(chunk, |base| base.get().chunk(number))
    }

    /// A copy of a chunk, wherever its bytes are.
    fn copied(&self, number: usize) -> Chunk {
        Chunk { idle: self.chunks[number].idle, ..self.chunk(number).copy() }
    }

    /// Copies a chunk from the base if it is still there.
    #[cold]
    pub(super) fn fetch(&mut self, number: usize) {
        if self.chunks[number].is_in_base {
            self.chunks[number] = self.copied(number);
        }
    }

    /// A copy of all but the cells.
    fn without_contents(&self) -> Arena {
        Arena {
            chunks: Vec::new(),
            vacant: self.vacant.clone(),
            free: self.free.clone(),
            long: Slab::default(),
            base: None,
            ..*self
        }
    }
}
