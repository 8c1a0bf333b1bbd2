//! Requests that outlive the bytes they arrived in: queued by a transaction, or waiting within a command.
//!
//! They lie one behind the other in one buffer, so keeping one costs no allocation of its
//! own but what the buffer grows.

use super::request::{Request, Span};

/// From this size on a request gets just the room that it needs, for doubling what is large would waste much.
const LARGE_BYTES: usize = 64 << 10;

/// Owned copies of requests, in the order in which they were kept.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    text: Vec<u8>,
    words: Vec<Span>,
    /// Where the words of each end.
    ends: Vec<usize>,
}

impl Requests {
    /// Keeps a copy of `request`.
    pub fn push(&mut self, request: Request<'_>) {
        let bytes: usize = request.iter().map(<[u8]>::len).sum();
        if bytes >= LARGE_BYTES {
            self.text.reserve_exact(bytes);
        }
        request.iter().for_each(|word| self.push_word(word));
        self.ends.push(self.words.len());
    }

    fn push_word(&mut self, word: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(word);
        self.words.push(Span { start, end: self.text.len() });
    }

    /// One request of these words.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Requests {
        let mut requests = Requests::default();
        words.into_iter().for_each(|word| requests.push_word(word));
        requests.ends.push(requests.words.len());
        requests
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them, first come first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Request<'_>> {
        (0..self.len()).map(|index| {
            let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
            Request::new(&self.text, &self.words[start..self.ends[index]])
        })
    }

    /// Bytes of all their words, and of a pointer to each: so Redis counts what a transaction has queued.
    pub fn argument_bytes(&self) -> usize {
        self.text.len() + size_of::<u64>() * self.words.len()
    }

    /// Bytes that they take.
    pub fn memory_bytes(&self) -> usize {
        self.text.capacity() + size_of::<Span>() * self.words.capacity() + size_of::<usize>() * self.ends.capacity()
    }
}

impl From<Request<'_>> for Requests {
    fn from(request: Request<'_>) -> Requests {
        let mut requests = Requests::default();
        requests.push(request);
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_given_back_as_they_came() {
        let mut requests = Requests::default();
        requests.push(Request::new(b"GETkey", &[Span { start: 0, end: 3 }, Span { start: 3, end: 6 }]));
        requests.push(Request::new(b"xPING", &[Span { start: 1, end: 5 }]));
        let words: Vec<Vec<&[u8]>> = requests.iter().map(|request| request.iter().collect()).collect();
        assert_eq!(words, [vec![&b"GET"[..], b"key"], vec![b"PING"]]);
        assert_eq!(requests.argument_bytes(), 10 + 3 * 8);
    }
}
