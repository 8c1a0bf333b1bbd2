//! Push queues: frames for a session apart from direct replies: messages, and replies to blocked commands.
//!
//! The engine has no sockets, so it queues frames here and requests to wake the connection
//! ([`crate::engine::Effect::Wake`]) with the first one. The connection takes them when its socket is writable: frames
//! that a client does not read stay here, shared with all other receivers, and are counted.
//!
//! A frame is a pointer of 16 bytes in each queue that it waits in. Where many wait, they are packed into blocks that
//! queues share ([`packs`]), so a client that does not read its messages takes about 0.1 bytes for a message of a
//! channel that others do not read either.
//!
//! Invariant: `frames` and `bytes` are the sums over the pieces. The first `loose_from` pieces are not packed (again).

mod packs;

pub use packs::RecentPacks;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::state::push_queue::packs::{FRAMES_A_PACK, Pack};

/// From this size on a frame is handed to the connection as it is, instead of copied.
const LARGE_BYTES: usize = 16 << 10;

/// The number of frames that are queued singly before some of them are packed.
const LOOSE_FRAMES: usize = 2 * FRAMES_A_PACK;

/// Frames in the order in which they are to be sent.
#[derive(Debug, Default)]
pub struct PushQueue {
    pieces: VecDeque<Piece>,
    loose_from: usize,
    frames: usize,
    bytes: usize,
    shows_data: bool,
}

/// One frame, or several that were packed.
#[derive(Debug)]
enum Piece {
    Frame(Arc<[u8]>),
    Pack(Arc<Pack>),
}

impl Piece {
    fn bytes(&self) -> usize {
        match self {
            Piece::Frame(frame) => frame.len(),
            Piece::Pack(pack) => pack.bytes(),
        }
    }

    /// The frame, if it is one.
    fn as_frame(&self) -> Option<&Arc<[u8]>> {
        match self {
            Piece::Frame(frame) => Some(frame),
            Piece::Pack(_) => None,
        }
    }

    fn frames(&self) -> usize {
        match self {
            Piece::Frame(_) => 1,
            Piece::Pack(pack) => pack.frames(),
        }
    }
}

impl PushQueue {
    /// Adds a frame; returns whether it is the first.
    pub fn push(&mut self, frame: Arc<[u8]>) -> bool {
        self.shows_data = true;
        self.push_without_data(frame)
    }

    /// Adds a frame that shows nothing of the data; returns whether it is the first.
    pub fn push_without_data(&mut self, frame: Arc<[u8]>) -> bool {
        self.bytes += frame.len();
        self.frames += 1;
        self.pieces.push_back(Piece::Frame(frame));
        self.frames == 1
    }

    /// Adds a frame behind the first `place` ones, which were there before it.
    pub fn insert(&mut self, place: usize, frame: Arc<[u8]>) {
        self.shows_data = true;
        let index = self.piece_at(place);
        self.bytes += frame.len();
        self.frames += 1;
        self.loose_from += usize::from(index < self.loose_from);
        self.pieces.insert(index, Piece::Frame(frame));
    }

    /// The index of the piece that begins with the frame number `place`. A block that has that frame further on is
    /// split.
    fn piece_at(&mut self, place: usize) -> usize {
        // Frames that came since the place was noted are few, and at the end.
        let (mut index, mut first) = (self.pieces.len(), self.frames);
        while first > place {
            index -= 1;
            first -= self.pieces[index].frames();
        }
        if first < place
            && let Some(Piece::Pack(pack)) = self.pieces.get(index)
        {
            let [before, behind] = pack.split(place - first).map(|pack| Piece::Pack(Arc::new(pack)));
            self.pieces[index] = before;
            self.pieces.insert(index + 1, behind);
            self.loose_from += 1;
            return index + 1;
        }
        index
    }

    /// Packs some frames if many wait by themselves.
    pub fn pack(&mut self, recent: &mut RecentPacks) {
        if self.pieces.len() - self.loose_from < LOOSE_FRAMES {
            return;
        }
        let frames: Vec<&Arc<[u8]>> = self.pieces.range(self.loose_from..).filter_map(Piece::as_frame).collect();
        let (own, shared) = match recent.find(&frames) {
            Some((place, pack)) => (place, Some(pack)),
            None => (recent.find_end(&frames[..FRAMES_A_PACK]).unwrap_or(FRAMES_A_PACK), None),
        };
        let mine = (own > 0).then(|| Arc::new(Pack::of(&frames[..own])));
        if let (Some(pack), FRAMES_A_PACK, None) = (&mine, own, &shared) {
            recent.add(&frames[..own], pack);
        }
        let packs = mine.into_iter().chain(shared).map(Piece::Pack);
        let packed: Vec<Piece> = packs.collect();
        let replaced = packed.iter().map(Piece::frames).sum::<usize>();
        let loose = self.pieces.split_off(self.loose_from);
        self.loose_from += packed.len();
        self.pieces.extend(packed.into_iter().chain(loose.into_iter().skip(replaced)));
    }

    /// Moves frames to the end of `out`, until there is none or `out` has `most` bytes.
    pub fn take(&mut self, out: &mut Vec<u8>, most: usize) {
        while let Some(large) = self.take_or_share(out, most) {
            out.extend_from_slice(&large);
        }
    }

    /// Like [`PushQueue::take`], but stops before a frame that is large. That one is returned, to be sent after `out`
    /// without a copy.
    pub fn take_or_share(&mut self, out: &mut Vec<u8>, most: usize) -> Option<Arc<[u8]>> {
        while out.len() < most
            && let Some(piece) = self.pop()
        {
            match piece {
                Piece::Frame(frame) if frame.len() >= LARGE_BYTES => return Some(frame),
                Piece::Frame(frame) => out.extend_from_slice(&frame),
                Piece::Pack(pack) => match &*pack {
                    Pack::Copied { bytes, .. } => out.extend_from_slice(bytes),
                    Pack::Shared { frames, .. } => self.put_back(frames),
                },
            }
        }
        self.shows_data &= !self.is_empty();
        None
    }

    fn pop(&mut self) -> Option<Piece> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.bytes();
        self.frames -= piece.frames();
        self.loose_from = self.loose_from.saturating_sub(1);
        Some(piece)
    }

    /// Puts the frames of a block that was taken where it was, to be taken one by one.
    fn put_back(&mut self, frames: &[Arc<[u8]>]) {
        for frame in frames.iter().rev() {
            self.bytes += frame.len();
            self.pieces.push_front(Piece::Frame(Arc::clone(frame)));
        }
        self.frames += frames.len();
        self.loose_from += frames.len();
    }

    /// Drops all frames: the client will not read them.
    pub fn clear(&mut self) {
        *self = PushQueue::default();
    }

    /// True when no frame waits.
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Whether a frame may show something of the data, which then has to be durable under `appendfsync always`.
    pub fn shows_data(&self) -> bool {
        self.shows_data
    }

    /// The number of bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of frames that wait.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The memory of the queue without its frames, in bytes.
    pub fn queue_bytes(&self) -> usize {
        self.pieces.len() * size_of::<Piece>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_leave_whole_in_their_order_and_are_counted() {
        let mut push_queue = PushQueue::default();
        assert!(push_queue.push(Arc::from(*b"one")));
        assert!(!push_queue.push(Arc::from(*b"three")));
        let mut out = Vec::new();
        push_queue.take(&mut out, 1);
        assert_eq!((out.as_slice(), push_queue.bytes(), push_queue.frames()), (&b"one"[..], 5, 1));
        push_queue.take(&mut out, 100);
        assert_eq!((out.as_slice(), push_queue.is_empty()), (&b"onethree"[..], true));
    }

    #[test]
    fn large_frames_are_shared_and_small_ones_are_copied_together() {
        let (mut push_queue, large) = (PushQueue::default(), Arc::from(vec![7; LARGE_BYTES]));
        push_queue.push(Arc::from(*b"one"));
        push_queue.push(Arc::clone(&large));
        push_queue.insert(1, Arc::from(*b"two"));
        let mut out = Vec::new();
        let shared = push_queue.take_or_share(&mut out, usize::MAX).expect("a large frame follows");
        assert!(Arc::ptr_eq(&shared, &large));
        assert_eq!((out.as_slice(), push_queue.bytes()), (&b"onetwo"[..], 0));
    }

    /// Adds a message to all queues, as PUBLISH does.
    fn publish(queues: &mut [PushQueue], recent: &mut RecentPacks, text: String) {
        let frame: Arc<[u8]> = text.into_bytes().into();
        for queue in queues {
            queue.push(Arc::clone(&frame));
            queue.pack(recent);
        }
    }

    #[test]
    fn queues_that_began_at_different_messages_share_their_packs() {
        let (mut queues, mut recent) = (vec![PushQueue::default()], RecentPacks::default());
        for number in 0..20_000 {
            if number % 100 == 0 && queues.len() < 10 {
                queues.push(PushQueue::default());
            }
            publish(&mut queues, &mut recent, format!("{number:010}"));
        }
        let last = |queue: &PushQueue| match &queue.pieces[queue.loose_from - 1] {
            Piece::Pack(pack) => Arc::clone(pack),
            Piece::Frame(_) => panic!("small frames are packed"),
        };
        let first = last(&queues[0]);
        for queue in &queues {
            assert!(Arc::ptr_eq(&last(queue), &first));
            assert!(queue.pieces.len() <= 20_000 / FRAMES_A_PACK + LOOSE_FRAMES + 2, "{}", queue.pieces.len());
        }
    }

    #[test]
    fn frames_of_a_kilobyte_are_packed_without_being_copied() {
        let (mut queues, mut recent) = (vec![PushQueue::default(), PushQueue::default()], RecentPacks::default());
        for _ in 0..10 * LOOSE_FRAMES {
            publish(&mut queues, &mut recent, "x".repeat(1024));
        }
        for queue in &queues {
            assert!(queue.pieces.len() <= 20 + LOOSE_FRAMES, "{}", queue.pieces.len());
            let is_copy = |piece: &Piece| matches!(piece, Piece::Pack(pack) if matches!(**pack, Pack::Copied { .. }));
            assert!(!queue.pieces.iter().any(is_copy));
        }
    }

    /// An operation on one of three queues, or on all of them.
    #[derive(Clone, Debug)]
    enum Step {
        Publish { times: usize, length: usize },
        Insert { queue: usize, back: usize },
        Take { queue: usize, most: usize },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1_usize..400, 1_usize..60).prop_map(|(times, length)| Step::Publish { times, length }),
            1 => (1_usize..300).prop_map(|times| Step::Publish { times, length: 700 }),
            3 => (0_usize..3, 0_usize..900).prop_map(|(queue, back)| Step::Insert { queue, back }),
            1 => (0_usize..3, 0_usize..30_000).prop_map(|(queue, most)| Step::Take { queue, most }),
        ]
    }

    proptest! {
        #[test]
        fn a_queue_delivers_its_frames_in_order_however_they_are_packed(steps in prop::collection::vec(step(), 1..30)) {
            let mut queues: [PushQueue; 3] = Default::default();
            let mut models: [VecDeque<Vec<u8>>; 3] = Default::default();
            let (mut recent, mut number) = (RecentPacks::default(), 0_u32);
            for step in steps {
                number += 1;
                match step {
                    Step::Publish { times, length } => {
                        for time in 0..times {
                            let text = format!("{number}:{time}:").repeat(length.div_ceil(4));
                            models.iter_mut().for_each(|model| model.push_back(text.clone().into_bytes()));
                            publish(&mut queues, &mut recent, text);
                        }
                    }
                    Step::Insert { queue, back } => {
                        let place = models[queue].len().saturating_sub(back);
                        let frame = format!("inserted {number}").into_bytes();
                        models[queue].insert(place, frame.clone());
                        queues[queue].insert(place, frame.into());
                    }
                    Step::Take { queue, most } => {
                        let mut out = Vec::new();
                        queues[queue].take(&mut out, most);
                        let mut taken = Vec::new();
                        while taken.len() < out.len() {
                            taken.extend(models[queue].pop_front().expect("no more leaves than was there"));
                        }
                        prop_assert!(out == taken);
                    }
                }
                for (queue, model) in queues.iter().zip(&models) {
                    let bytes = model.iter().map(Vec::len).sum::<usize>();
                    prop_assert_eq!((queue.frames(), queue.bytes()), (model.len(), bytes));
                    prop_assert!(queue.loose_from <= queue.pieces.len());
                }
            }
            for (mut queue, model) in queues.into_iter().zip(models) {
                let mut out = Vec::new();
                queue.take(&mut out, usize::MAX);
                prop_assert!(out == model.into_iter().flatten().collect::<Vec<u8>>());
            }
        }
    }
}
