//! Blocks of frames that wait in the push queues of many subscribers, which share these blocks.
//!
//! A frame of a short message takes 40 bytes, and a pointer to it another 16 for each client that has not read it. With
//! 1,000 subscribers that do not read, the pointers are most of the memory, even those to messages of a kilobyte. So a
//! queue replaces [`FRAMES_A_PACK`] frames by one block. Subscribers of one channel have the same frames in their
//! queues, so the others share the block that the first of them creates: [`RecentPacks`] finds the latest blocks by
//! their frames. A queue that began with another message packs fewer frames once, up to the end of a recent block, and
//! has the same blocks as the others from there on.
//!
//! A block of small frames has a copy of their bytes, which takes less than their pointers even for a single client. A
//! block of larger frames has the pointers, so queues with different blocks still share the frames.
//!
//! Costs: a small frame is copied once for all clients whose queues have the same blocks, and once for each other
//! client, as Redis does with every message. The search for a recent block takes some 20 comparisons of pointers per
//! frame.

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;

/// The number of frames in one block, unless it ends where a recent one begins.
pub(in crate::engine) const FRAMES_A_PACK: usize = 256;

/// The most bytes that a block of copied frames has; a block of more bytes has pointers to its frames.
const MAX_COPIED_BYTES: usize = 64 << 10;

/// The number of the latest blocks that are remembered.
const RECENT: usize = 8;

/// A block of one or more consecutive frames.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) enum Pack {
    /// The bytes of small frames, and the end of each frame.
    Copied { bytes: Box<[u8]>, ends: Box<[u32]> },
    /// Larger frames, and the sum of their bytes.
    Shared { frames: Box<[Arc<[u8]>]>, bytes: usize },
}

impl Pack {
    pub(in crate::engine) fn of(frames: &[&Arc<[u8]>]) -> Pack {
        let bytes = frames.iter().map(|frame| frame.len()).sum();
        if bytes <= MAX_COPIED_BYTES {
            return Pack::copied(frames.iter().map(|frame| &***frame));
        }
        Pack::Shared { frames: frames.iter().map(|&frame| Arc::clone(frame)).collect(), bytes }
    }

    fn copied<'f>(frames: impl Iterator<Item = &'f [u8]>) -> Pack {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for frame in frames {
            bytes.extend_from_slice(frame);
            ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
        Pack::Copied { bytes: bytes.into(), ends: ends.into() }
    }

    /// The number of bytes of all frames.
    pub(in crate::engine) fn bytes(&self) -> usize {
        match self {
            Pack::Copied { bytes, .. } => bytes.len(),
            Pack::Shared { bytes, .. } => *bytes,
        }
    }

    /// The number of frames.
    pub(in crate::engine) fn frames(&self) -> usize {
        match self {
            Pack::Copied { ends, .. } => ends.len(),
            Pack::Shared { frames, .. } => frames.len(),
        }
    }

    /// Splits the block into its first `count` frames and the others. There is at least one of each.
    pub(in crate::engine) fn split(&self, count: usize) -> [Pack; 2] {
        match self {
            Pack::Copied { bytes, ends } => {
                let starts = iter::once(0).chain(ends.iter().copied());
                let frames: Vec<&[u8]> =
                    starts.zip(ends).map(|(start, &end)| &bytes[start as usize..end as usize]).collect();
                let (first, rest) = frames.split_at(count);
                [first, rest].map(|frames| Pack::copied(frames.iter().copied()))
            }
            Pack::Shared { frames, .. } => {
                let (first, rest) = frames.split_at(count);
                [first, rest].map(|frames| Pack::of(&frames.iter().collect::<Vec<_>>()))
            }
        }
    }
}

/// The latest blocks, found by the frames in them.
#[derive(Debug, Default)]
pub struct RecentPacks {
    packs: VecDeque<Recent>,
}

/// A block that is remembered. It keeps its frames alive, so a pointer to one of them never becomes another frame's.
#[derive(Debug)]
struct Recent {
    frames: Box<[Arc<[u8]>]>,
    pack: Arc<Pack>,
}

impl RecentPacks {
    /// Finds the frames of a recent block in `frames`: their place, and that block.
    pub(in crate::engine) fn find(&self, frames: &[&Arc<[u8]>]) -> Option<(usize, Arc<Pack>)> {
        self.packs.iter().find_map(|recent| {
            let place = frames.iter().position(|frame| Arc::ptr_eq(frame, &recent.frames[0]))?;
            let these = frames.get(place..place + recent.frames.len())?;
            let is_same = these.iter().zip(&recent.frames).all(|(one, other)| Arc::ptr_eq(one, other));
            is_same.then(|| (place, Arc::clone(&recent.pack)))
        })
    }

    /// The number of `frames` up to the end of a recent block, if one ends among them.
    pub(in crate::engine) fn find_end(&self, frames: &[&Arc<[u8]>]) -> Option<usize> {
        self.packs.iter().find_map(|recent| {
            let last = recent.frames.last()?;
            frames.iter().position(|frame| Arc::ptr_eq(frame, last)).map(|place| place + 1)
        })
    }

    /// Remembers a new block of `frames`.
    pub(in crate::engine) fn add(&mut self, frames: &[&Arc<[u8]>], pack: &Arc<Pack>) {
        self.packs.truncate(RECENT - 1);
        let frames = frames.iter().map(|&frame| Arc::clone(frame)).collect();
        self.packs.push_front(Recent { frames, pack: Arc::clone(pack) });
    }
}
