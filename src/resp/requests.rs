//! Copies of requests that outlive the input buffer: queued by a transaction, or of a client that is blocked in a
//! command.
//!
//! All copies share one buffer, so a copy needs no allocation of its own, apart from the growth of the buffer.

use super::request::{Request, Span};

/// A request from this size on gets exactly the room that it needs, for doubling would waste much.
const LARGE_BYTES: usize = 64 << 10;

/// Copies of requests, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    text: Vec<u8>,
    words: Vec<Span>,
    /// For each request, where its words end.
    ends: Vec<usize>,
}

impl Requests {
    /// Adds a copy of `request`.
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

    /// Makes one request of these words.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Requests {
        let mut requests = Requests::default();
        words.into_iter().for_each(|word| requests.push_word(word));
        requests.ends.push(requests.words.len());
        requests
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All requests, the oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Request<'_>> {
        (0..self.len()).map(|index| {
            let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
            Request::new(&self.text, &self.words[start..self.ends[index]])
        })
    }

    /// The bytes of all their words, and of a pointer for each: Redis's measure of the memory of a transaction's queue.
    pub fn argument_bytes(&self) -> usize {
        self.text.len() + size_of::<u64>() * self.words.len()
    }

    /// The bytes of memory that they take.
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
    fn stored_requests_read_back_as_they_were() {
        let mut requests = Requests::default();
        requests.push(Request::new(b"GETkey", &[Span { start: 0, end: 3 }, Span { start: 3, end: 6 }]));
        requests.push(Request::new(b"xPING", &[Span { start: 1, end: 5 }]));
        let words: Vec<Vec<&[u8]>> = requests.iter().map(|request| request.iter().collect()).collect();
        assert_eq!(words, [vec![&b"GET"[..], b"key"], vec![b"PING"]]);
        assert_eq!(requests.argument_bytes(), 10 + 3 * 8);
    }
}
