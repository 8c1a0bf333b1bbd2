//! The query buffer: bytes that a client has sent and that have not run.
//!
//! Requests are taken from the front and bytes are added at the end. Taken bytes stay in place until they are at least
//! half of the buffer, so a pipeline of many requests that run one at a time costs O(1) a byte, not a copy of the rest
//! for each request.
//!
//! Invariant: `taken < bytes.len()`, or both are 0 and no memory is held.

/// The growth of a buffer that a long word is read into, as a multiple of what it holds, and the room below which it
/// grows.
const GROWTH: usize = 4;
const MIN_ROOM: usize = 16 << 10;

/// Bytes in the order in which they arrived.
#[derive(Debug, Default)]
pub(super) struct QueryBuffer {
    bytes: Vec<u8>,
    /// The number of bytes at the front that were taken.
    taken: usize,
}

impl QueryBuffer {
    /// The bytes that were not taken.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// The number of bytes that were not taken.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The memory that it holds, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Adds bytes to the end. A full buffer grows by a quarter, or by as much as arrived.
    pub(super) fn append(&mut self, arrived: &[u8]) {
        let needed = self.bytes.len() + arrived.len();
        if needed > self.bytes.capacity() {
            self.compact();
            let missing = (self.bytes.len() + arrived.len()).saturating_sub(self.bytes.capacity());
            if missing > 0 {
                self.bytes.reserve_exact(arrived.len().max(self.bytes.len() / 4));
            }
        }
        self.bytes.extend_from_slice(arrived);
    }

    /// Adds the first bytes to an empty buffer. If they are the beginning of a long word, of which `missing` bytes are
    /// missing, it gets at once the room that [`QueryBuffer::reserve`] would give it.
    pub(super) fn begin(&mut self, arrived: &[u8], missing: usize) {
        let room = missing.min(GROWTH * arrived.len());
        self.bytes.reserve_exact(arrived.len() + room);
        self.bytes.extend_from_slice(arrived);
    }

    /// Grows, so that up to `missing` bytes can be read into it: by no more than four times what it holds, as the
    /// length of a word is only what its client says.
    pub(super) fn reserve(&mut self, missing: usize) {
        if self.bytes.capacity() - self.bytes.len() < missing.min(MIN_ROOM) {
            self.compact();
            self.bytes.reserve_exact(missing.min(GROWTH * self.bytes.len()));
        }
    }

    /// The bytes and the room behind them, for reading more.
    pub(super) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes, those in front that were taken among them, and the number of these.
    pub(super) fn into_parts(self) -> (Vec<u8>, usize) {
        (self.bytes, self.taken)
    }

    /// The buffer whose [`QueryBuffer::into_parts`] these are.
    pub(super) fn from_parts(bytes: Vec<u8>, taken: usize) -> QueryBuffer {
        QueryBuffer { bytes, taken }
    }

    /// Takes `count` bytes from the front.
    pub(super) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() {
            *self = QueryBuffer::default();
        } else if self.taken > self.bytes.len() / 2 {
            self.compact();
            self.bytes.shrink_to(self.bytes.len() * 2);
        }
    }

    /// Removes the taken bytes, and moves the others to the front.
    fn compact(&mut self) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_query_buffer_is_a_queue_of_bytes_with_little_spare_memory(
            steps in prop::collection::vec((0_usize..300, 0.0_f64..=1.0), 1..100),
        ) {
            let (mut buffer, mut model) = (QueryBuffer::default(), VecDeque::new());
            for (step, (arrived, share)) in steps.into_iter().enumerate() {
                let bytes = vec![step as u8; arrived];
                buffer.append(&bytes);
                model.extend(bytes);
                let count = (model.len() as f64 * share) as usize;
                buffer.take(count);
                model.drain(..count);
                prop_assert!(buffer.unread().iter().eq(&model));
                prop_assert_eq!((buffer.len(), buffer.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(buffer.bytes.len() <= 2 * buffer.len());
            }
        }
    }

    #[test]
    fn room_for_a_word_grows_with_what_has_arrived_of_it() {
        let mut buffer = QueryBuffer::default();
        buffer.append(&[1; 20_000]);
        buffer.reserve(1 << 30);
        assert!((80_000..=120_000).contains(&buffer.capacity()), "{}", buffer.capacity());
        let before = buffer.capacity();
        buffer.reserve(1 << 30);
        assert_eq!(buffer.capacity(), before, "there is room still");
        buffer.bytes_mut().resize(before, 1);
        buffer.reserve(100);
        assert_eq!(buffer.capacity(), before + 100, "the end of the word is known");
    }

    #[test]
    fn a_buffer_that_begins_with_a_long_word_has_room_for_it() {
        for (missing, room) in [(50_000, 50_000), (1 << 30, 80_000), (0, 0)] {
            let mut buffer = QueryBuffer::default();
            buffer.begin(&[1; 20_000], missing);
            assert_eq!((buffer.len(), buffer.capacity()), (20_000, 20_000 + room));
            buffer.reserve(missing);
            assert_eq!(buffer.capacity(), 20_000 + room, "there is room already");
        }
        let mut buffer = QueryBuffer::default();
        buffer.begin(&[], 1 << 30);
        assert_eq!(buffer.capacity(), 0);
    }

    #[test]
    fn taking_request_by_request_moves_each_byte_about_once() {
        const REQUESTS: usize = 100_000;
        let mut buffer = QueryBuffer::default();
        buffer.append(&vec![1; REQUESTS * 10]);
        let mut moves = 0;
        for _ in 0..REQUESTS {
            let before = buffer.taken;
            buffer.take(10);
            if buffer.taken < before + 10 {
                moves += buffer.len();
            }
        }
        assert!(buffer.is_empty() && moves <= REQUESTS * 10, "{moves}");
    }

    #[test]
    fn an_empty_buffer_holds_no_memory() {
        let mut buffer = QueryBuffer::default();
        buffer.append(b"PING\r\n");
        buffer.take(6);
        assert_eq!(buffer.capacity(), 0);
    }
}
