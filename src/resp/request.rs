//! A request: a list of words, each a slice of one buffer.
//!
//! It owns nothing and is copied freely. The spans are separate from the buffer, so that one list serves every
//! request of a connection and no word is copied out of the bytes that arrived. A span that is not within its buffer
//! reads as the empty word: no index can panic.

use std::sync::Arc;

use crate::value::{ReceivedBuffer, SharedBytes};

/// The location of a word: the bytes from `start` up to `end`, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset past the last byte.
    pub end: usize,
}

/// One request: its words, as slices of one buffer. The first word is the command's name.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    buffer: &'a [u8],
    words: &'a [Span],
    /// The buffer of a client's bytes that `buffer` is a part of, if a long word of it can be kept there.
    received: Option<&'a Arc<ReceivedBuffer>>,
}

impl<'a> Request<'a> {
    /// A request with the spans `words` in `buffer`. A span that is not within `buffer` reads as the empty word.
    pub fn new(buffer: &'a [u8], words: &'a [Span]) -> Self {
        Self { buffer, words, received: None }
    }

    /// This request, with the buffer that its words are in, from which long ones may be shared.
    pub fn in_received(self, received: Option<&'a Arc<ReceivedBuffer>>) -> Self {
        Self { received, ..self }
    }

    /// A word of it without a copy, if it is long enough and in a buffer of its own.
    pub fn share(&self, word: &[u8]) -> Option<SharedBytes> {
        self.received?.share(word)
    }

    /// The number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// The length of the buffer that its words are slices of; it may hold other requests too.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has fewer than `bytes` bytes in its buffer, from its first word to its last.
    pub fn is_shorter_than(&self, bytes: usize) -> bool {
        let (Some(first), Some(last)) = (self.words.first(), self.words.last()) else { return true };
        last.end.wrapping_sub(first.start) < bytes
    }

    /// Whether it has no word. The parser never returns such a request.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The word at `index`, if it exists.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.words.get(index).map(|&span| slice(self.buffer, span))
    }

    /// The words from `start` up to `end`, exclusive, as far as they exist.
    pub fn part(&self, start: usize, end: usize) -> Request<'a> {
        let end = end.min(self.words.len());
        Request { words: &self.words[start.min(end)..end], ..*self }
    }

    /// The bytes in which it arrived, if they are those of the usual form: an array of bulk strings, with lengths of up
    /// to two digits. Whoever has to write the request again can copy them.
    pub fn as_array(&self) -> Option<&'a [u8]> {
        let mut at = pass_length(self.buffer, 0, b'*', self.words.len())?;
        for word in self.words {
            let start = pass_length(self.buffer, at, b'$', word.end.checked_sub(word.start)?)?;
            at = word.end.checked_add(2)?;
            if start != word.start || self.buffer.get(word.end..at)? != b"\r\n" {
                return None;
            }
        }
        self.buffer.get(..at)
    }

    /// All words in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone + use<'a> {
        let buffer = self.buffer;
        self.words.iter().map(move |&span| slice(buffer, span))
    }
}

/// The position behind the line of a length of one or two digits, if that is at `at`.
#[inline]
fn pass_length(buffer: &[u8], at: usize, kind: u8, length: usize) -> Option<usize> {
    let digit = |number: usize| b'0' + (number % 10) as u8;
    let rest = buffer.get(at..)?;
    match length {
        0..=9 => (rest.first_chunk()? == &[kind, digit(length), b'\r', b'\n']).then_some(at + 4),
        10..=99 => (rest.first_chunk()? == &[kind, digit(length / 10), digit(length), b'\r', b'\n']).then_some(at + 5),
        _ => None,
    }
}

#[inline]
fn slice(buffer: &[u8], span: Span) -> &[u8] {
    buffer.get(span.start..span.end).unwrap_or_default()
}
