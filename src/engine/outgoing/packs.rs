//! Small frames of many subscribers, packed into blocks that those subscribers share.
//!
//! A frame of a short message takes 40 bytes, and a pointer to it another 16 for each client that has not read it.
//! With 1,000 subscribers that do not read, the pointers are nearly all of the memory. So a queue replaces
//! [`FRAMES_A_PACK`] frames by one block of their bytes. Subscribers of one channel have the same frames in their
//! queues, so the block that the first of them makes serves the others too: [`RecentPacks`] knows the latest blocks by
//! the frames that went into them. A queue that began with another message packs fewer frames once, up to where a
//! recent block ends, and from there on agrees with the others.
//!
//! Costs: a frame is copied once for all clients whose queues agree, and once for each other client, which is what
//! Redis does with every message. Looking for a recent block takes some 20 comparisons of pointers a frame.

use std::collections::VecDeque;
use std::sync::Arc;

/// How many frames one block holds, unless it ends where a recent one begins.
pub(super) const FRAMES_A_PACK: usize = 256;

/// Frames that have more bytes than this together are not packed: their pointers are little beside them.
pub(super) const MOST_PACK_BYTES: usize = 64 << 10;

/// How many of the latest blocks are known.
const RECENT: usize = 8;

/// Frames one behind the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pack {
    bytes: Box<[u8]>,
    /// Where each frame ends.
    ends: Box<[u32]>,
}

impl Pack {
    /// A block of these frames, which are not empty and have at most [`MOST_PACK_BYTES`] together.
    pub(super) fn of<'f>(frames: impl Iterator<Item = &'f [u8]>) -> Pack {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for frame in frames {
            bytes.extend_from_slice(frame);
            ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
        Pack { bytes: bytes.into(), ends: ends.into() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of frames.
    pub(super) fn frames(&self) -> usize {
        self.ends.len()
    }

    /// The first `count` frames, and the others.
    pub(super) fn split(&self, count: usize) -> [Pack; 2] {
        let mut start = 0;
        let frames: Vec<&[u8]> = self
            .ends
            .iter()
            .map(|&end| {
                let frame = &self.bytes[start..end as usize];
                start = end as usize;
                frame
            })
            .collect();
        let (first, rest) = frames.split_at(count);
        [Pack::of(first.iter().copied()), Pack::of(rest.iter().copied())]
    }
}

/// The latest blocks, by the frames that are in them.
#[derive(Debug, Default)]
pub struct RecentPacks {
    packs: VecDeque<Recent>,
}

/// The frames live as long as the block is known, so a pointer to one of them is never another frame's.
#[derive(Debug)]
struct Recent {
    frames: Box<[Arc<[u8]>]>,
    pack: Arc<Pack>,
}

impl RecentPacks {
    /// Where in `frames` those of a recent block stand, and that block.
    pub(super) fn find(&self, frames: &[&Arc<[u8]>]) -> Option<(usize, Arc<Pack>)> {
        self.packs.iter().find_map(|recent| {
            let place = frames.iter().position(|frame| Arc::ptr_eq(frame, &recent.frames[0]))?;
            let these = frames.get(place..place + recent.frames.len())?;
            let is_same = these.iter().zip(&recent.frames).all(|(one, other)| Arc::ptr_eq(one, other));
            is_same.then(|| (place, Arc::clone(&recent.pack)))
        })
    }

    /// The number of `frames` up to the end of a recent block that ends among them.
    pub(super) fn find_end(&self, frames: &[&Arc<[u8]>]) -> Option<usize> {
        self.packs.iter().find_map(|recent| {
            let last = recent.frames.last()?;
            frames.iter().position(|frame| Arc::ptr_eq(frame, last)).map(|place| place + 1)
        })
    }

    /// Remembers a block of `frames`.
    pub(super) fn add(&mut self, frames: &[&Arc<[u8]>], pack: &Arc<Pack>) {
        self.packs.truncate(RECENT - 1);
        let frames = frames.iter().map(|&frame| Arc::clone(frame)).collect();
        self.packs.push_front(Recent { frames, pack: Arc::clone(pack) });
    }
}
