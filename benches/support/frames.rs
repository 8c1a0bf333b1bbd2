//! Finds where replies end. It does not decode them, except that it counts errors.

/// Counts the complete replies in the bytes that arrive.
#[derive(Default)]
pub struct Frames {
    /// The number of elements of the current reply that are still to come.
    open: u64,
    /// The bytes that have arrived and were not parsed yet.
    bytes: Vec<u8>,
    /// The number of replies that were errors, or contained one.
    pub errors: u64,
    /// The first error that arrived.
    pub first_error: Option<String>,
}

impl Frames {
    /// Takes bytes as they arrive; returns the number of replies that they complete.
    pub fn take(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.extend_from_slice(bytes);
        let (mut at, mut ended) = (0, 0);
        while let Some((length, elements)) = element(&self.bytes[at..]) {
            if self.bytes[at] == b'-' {
                self.errors += 1;
                let text = String::from_utf8_lossy(&self.bytes[at + 1..at + length]);
                self.first_error.get_or_insert_with(|| text.trim_end().to_owned());
            }
            at += length;
            self.open = self.open.max(1) - 1 + elements;
            ended += u64::from(self.open == 0);
        }
        self.bytes.drain(..at);
        ended
    }
}

/// The length of the element at the front (a string with its bytes, or the head of an array), and the number of its own
/// elements that follow; `None` if it has not arrived as a whole.
fn element(bytes: &[u8]) -> Option<(usize, u64)> {
    let line = memchr::memchr(b'\n', bytes)? + 1;
    let count = || std::str::from_utf8(&bytes[1..line - 2]).ok()?.parse::<i64>().ok();
    let elements = || count().and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    match bytes[0] {
        b'$' | b'=' => {
            let text = count().and_then(|count| usize::try_from(count).ok()).map_or(0, |count| count + 2);
            (bytes.len() >= line + text).then_some((line + text, 0))
        }
        b'*' | b'~' => Some((line, elements())),
        b'%' => Some((line, 2 * elements())),
        _ => Some((line, 0)),
    }
}
