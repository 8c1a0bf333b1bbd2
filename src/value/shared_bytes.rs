//! Bytes that never change, and are shared by reference: large texts, and replies and pushes that hold them.
//!
//! Bytes that were copied to be kept are an `Arc<[u8]>`: one allocation. A long word of a request is not copied: it is
//! a part of the buffer into which the client's bytes were read ([`ReceivedBuffer`]), and keeps that whole buffer. The
//! value of a field that is long is the end of bytes that begin with the field's name.
//!
//! Invariant: a word is within its buffer, and all words of a buffer are the same one, so that what is kept besides the
//! word is known to be little.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

/// The bytes in front of shared ones: the reference counts.
const COUNTERS: usize = 2 * size_of::<usize>();
/// The least length of a word that is shared with its buffer, in bytes. Shorter ones are as cheap to copy.
const MIN_SHARED: usize = 32 << 10;

/// Immutable bytes with several owners. Cloning copies a reference.
#[derive(Clone, Debug)]
pub struct SharedBytes(Owner);

#[derive(Clone, Debug)]
enum Owner {
    Whole(Arc<[u8]>),
    /// The word of a received buffer that is shared.
    Word(Arc<ReceivedBuffer>),
    End(Arc<End>),
}

/// The last bytes of others.
#[derive(Debug)]
struct End {
    whole: Arc<[u8]>,
    start: usize,
}

impl SharedBytes {
    /// The bytes of `whole` from `start` on.
    pub fn end_of(whole: &Arc<[u8]>, start: usize) -> SharedBytes {
        SharedBytes(Owner::End(Arc::new(End { whole: Arc::clone(whole), start })))
    }

    /// The bytes of memory that are allocated for it.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Owner::Whole(bytes) => (COUNTERS + bytes.len()).next_multiple_of(align_of::<usize>()),
            Owner::Word(buffer) => COUNTERS + size_of::<ReceivedBuffer>() + buffer.bytes.capacity(),
            Owner::End(end) => COUNTERS + size_of::<End>() + COUNTERS + end.whole.len(),
        }
    }

    /// Whether both are the same bytes in memory.
    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &SharedBytes) -> bool {
        std::ptr::eq(&raw const **self, &raw const **other)
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Owner::Whole(bytes) => bytes,
            Owner::Word(buffer) => {
                buffer.word.get().and_then(|word| buffer.bytes.get(word.clone())).unwrap_or_default()
            }
            Owner::End(end) => end.whole.get(end.start..).unwrap_or_default(),
        }
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &SharedBytes) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl From<Arc<[u8]>> for SharedBytes {
    fn from(bytes: Arc<[u8]>) -> SharedBytes {
        SharedBytes(Owner::Whole(bytes))
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> SharedBytes {
        SharedBytes(Owner::Whole(bytes.into()))
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> SharedBytes {
        SharedBytes(Owner::Whole(bytes.into()))
    }
}

/// Bytes that a client has sent, of which one long word may be kept without a copy.
#[derive(Debug)]
pub struct ReceivedBuffer {
    bytes: Vec<u8>,
    word: OnceLock<Range<usize>>,
}

impl ReceivedBuffer {
    /// A buffer with these bytes.
    pub fn new(bytes: Vec<u8>) -> ReceivedBuffer {
        ReceivedBuffer { bytes, word: OnceLock::new() }
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All bytes, for others to be added.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Shares `word`, a part of the buffer, with it: `None` if it is short or takes less than three quarters of the
    /// buffer, so that keeping all of it would be a waste.
    pub fn share(self: &Arc<ReceivedBuffer>, word: &[u8]) -> Option<SharedBytes> {
        let is_worth_it = word.len() >= MIN_SHARED && word.len() / 3 >= self.bytes.capacity() / 4;
        let start = (word.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize).filter(|_| is_worth_it)?;
        let end = start.checked_add(word.len()).filter(|end| *end <= self.bytes.len())?;
        let shared = self.word.get_or_init(|| start..end);
        (*shared == (start..end)).then(|| SharedBytes(Owner::Word(Arc::clone(self))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(before: usize, length: usize, behind: usize) -> Arc<ReceivedBuffer> {
        let bytes: Vec<u8> = (0..before + length + behind).map(|place| place as u8).collect();
        Arc::new(ReceivedBuffer::new(bytes))
    }

    #[test]
    fn a_long_word_is_kept_where_it_was_received() {
        let buffer = received(30, MIN_SHARED, 2);
        let word = &buffer.bytes()[30..30 + MIN_SHARED];
        let shared = buffer.share(word).expect("it is nearly all of the buffer");
        assert!(std::ptr::eq(&raw const *shared, &raw const *word));
        assert!(shared.is_same(&buffer.share(word).expect("it is the same word")));
        assert!(shared.memory() >= MIN_SHARED + 32);
        assert_eq!(shared, SharedBytes::from(word));
    }

    #[test]
    fn the_end_of_bytes_is_shared_where_it_is() {
        let whole: Arc<[u8]> = b"field value"[..].into();
        let value = SharedBytes::end_of(&whole, 6);
        assert!(std::ptr::eq(&raw const *value, &raw const whole[6..]));
        assert_eq!(*value, *b"value");
        assert!(SharedBytes::end_of(&whole, 12).is_empty());
    }

    #[test]
    fn a_word_that_is_short_or_little_of_its_buffer_is_not_kept_there() {
        let short = received(30, MIN_SHARED - 1, 2);
        assert!(short.share(&short.bytes()[30..29 + MIN_SHARED]).is_none());
        let little = received(MIN_SHARED, MIN_SHARED, 2);
        assert!(little.share(&little.bytes()[MIN_SHARED..2 * MIN_SHARED]).is_none());
    }

    #[test]
    fn only_one_word_of_a_buffer_is_kept_and_only_its_own() {
        let buffer = received(2, MIN_SHARED, 2);
        assert!(buffer.share(&buffer.bytes()[2..2 + MIN_SHARED]).is_some());
        assert!(buffer.share(&buffer.bytes()[1..1 + MIN_SHARED]).is_none());
        assert!(received(2, MIN_SHARED, 2).share(&buffer.bytes()[2..2 + MIN_SHARED]).is_none());
    }
}
