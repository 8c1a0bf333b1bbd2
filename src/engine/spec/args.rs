//! The arguments of a request, which a handler takes one by one as it parses them.
//!
//! Parsing comes before acting: a handler parses everything before it opens a key for writing, so a request that is
//! refused has changed nothing.

use crate::engine::spec::{Error, Now};
use crate::resp::Request;
use crate::value::SharedBytes;
use crate::value::number;
use crate::value::number::LongDouble;

/// Whether `word` is `name`, in upper or lower case. Redis compares such words as C strings: bytes after a NUL are
/// ignored.
pub fn says(word: &[u8], name: &str) -> bool {
    word.split_at_checked(name.len())
        .is_some_and(|(head, rest)| head.eq_ignore_ascii_case(name.as_bytes()) && matches!(rest, [] | [0, ..]))
}

/// A cursor over the arguments of a command, without its name (and subcommand).
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    request: Request<'a>,
    next: usize,
}

impl<'a> Args<'a> {
    /// Creates a cursor over the words of `request` from the one at `first` on.
    pub fn new(request: Request<'a>, first: usize) -> Args<'a> {
        Args { request, next: first }
    }

    /// The request that the arguments belong to.
    pub(in crate::engine) fn request(&self) -> Request<'a> {
        self.request
    }

    /// The second word of the request, which names a subcommand, as the client wrote it.
    pub fn subcommand(&self) -> &'a [u8] {
        self.request.get(1).unwrap_or_default()
    }

    /// An upper bound of the sum of the lengths of all words of the request, in bytes. O(1).
    pub(in crate::engine) fn buffer_bytes(&self) -> usize {
        self.request.buffer_bytes()
    }

    /// A word of the request for storing: without a copy, if it is long and in a buffer of its own.
    pub fn share(&self, word: &[u8]) -> Option<SharedBytes> {
        self.request.share(word)
    }

    /// The sum of the lengths of all words of the request in bytes, including those already taken.
    pub fn request_bytes(&self) -> usize {
        (0..self.request.len()).filter_map(|index| self.request.get(index)).map(<[u8]>::len).sum()
    }

    /// All words of the request, its command first, to be propagated with some of them changed.
    pub fn all(&self) -> Vec<&'a [u8]> {
        self.request.iter().collect()
    }

    /// The index of the next word in the request.
    pub fn position(&self) -> usize {
        self.next
    }

    /// The number of words that are left.
    pub fn left(&self) -> usize {
        self.request.len().saturating_sub(self.next)
    }

    /// True when no word is left.
    pub fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// The next word, without taking it.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.request.get(self.next)
    }

    /// The word before the next one: at first, the command's or subcommand's name as the client sent it.
    pub fn previous(&self) -> &'a [u8] {
        self.next.checked_sub(1).and_then(|index| self.request.get(index)).unwrap_or_default()
    }

    /// Takes the next word.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there is none.
    pub fn word(&mut self) -> Result<&'a [u8], Error> {
        // Not `ok_or`: that would create and drop an error for each word that exists.
        let Some(word) = self.peek() else { return Err(Error::Syntax) };
        self.next += 1;
        Ok(word)
    }

    /// Takes the next word as a key.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there is none.
    pub fn key(&mut self) -> Result<&'a [u8], Error> {
        self.word()
    }

    /// Takes the next word as a 64-bit integer.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there is none, [`Error::NotAnInteger`] when it is no canonical integer.
    pub fn integer(&mut self) -> Result<i64, Error> {
        let Some(number) = number::parse_i64(self.word()?) else { return Err(Error::NotAnInteger) };
        Ok(number)
    }

    /// Takes the next word as a number that is `least` or more.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there is none, `refusal` for anything else.
    pub fn at_least(&mut self, least: usize, refusal: Error) -> Result<usize, Error> {
        let number = number::parse_i64(self.word()?).and_then(|number| usize::try_from(number).ok());
        number.filter(|&number| number >= least).ok_or(refusal)
    }

    /// Takes the next word as a 32-bit integer, such as the number of a database.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there is none, [`Error::NotAnInteger`] when it is no canonical integer,
    /// [`Error::OutOfInt32`] when it is too large.
    pub fn int32(&mut self) -> Result<i32, Error> {
        i32::try_from(self.integer()?).map_err(|_| Error::OutOfInt32)
    }

    /// Takes the next word as a double.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there is none, [`Error::NotAFloat`] when it is no number.
    pub fn float(&mut self) -> Result<f64, Error> {
        let Some(number) = number::parse_f64(self.word()?) else { return Err(Error::NotAFloat) };
        Ok(number)
    }

    /// Takes the next word as a timeout in seconds, and returns its end in Unix milliseconds; `None` for 0, which means
    /// no timeout.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there is none, [`Error::TimeoutNotAFloat`], [`Error::TimeoutNegative`] or
    /// [`Error::TimeoutOutOfRange`].
    pub fn timeout(&mut self, now: Now) -> Result<Option<i64>, Error> {
        let seconds = LongDouble::parse(self.word()?).ok_or(Error::TimeoutNotAFloat)?;
        let timeout_ms = seconds.to_ms_rounded_up().ok_or(Error::TimeoutOutOfRange)?;
        match timeout_ms {
            ..0 => Err(Error::TimeoutNegative),
            0 => Ok(None),
            1.. => now.wait_end_ms(timeout_ms).ok_or(Error::TimeoutOutOfRange).map(Some),
        }
    }

    /// Takes the next word as a timeout in milliseconds, and returns its end in Unix milliseconds; `None` for 0, which
    /// means no timeout.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there is none, [`Error::TimeoutNotAnInteger`], [`Error::TimeoutNegative`] or
    /// [`Error::TimeoutOutOfRange`].
    pub fn timeout_ms(&mut self, now: Now) -> Result<Option<i64>, Error> {
        match number::parse_i64(self.word()?).ok_or(Error::TimeoutNotAnInteger)? {
            ..0 => Err(Error::TimeoutNegative),
            0 => Ok(None),
            timeout_ms => now.wait_end_ms(timeout_ms).ok_or(Error::TimeoutOutOfRange).map(Some),
        }
    }

    /// Takes the next word if it is `name`, in upper or lower case.
    pub fn take(&mut self, name: &str) -> bool {
        let found = self.peek().is_some_and(|word| says(word, name));
        self.next += usize::from(found);
        found
    }

    /// Takes `name` (in upper or lower case) if at least `values` more words follow it: this is how Redis distinguishes
    /// an option from a stray word at the end.
    pub fn take_with(&mut self, name: &str, values: usize) -> bool {
        self.left() > values && self.take(name)
    }

    /// Checks that no word is left.
    ///
    /// # Errors
    /// [`Error::Syntax`] when a word is left.
    pub fn end(&self) -> Result<(), Error> {
        if self.is_empty() { Ok(()) } else { Err(Error::Syntax) }
    }

    /// All words that are left, without taking them.
    pub fn rest(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let request = self.request;
        (self.next.min(request.len())..request.len()).map(move |index| request.get(index).unwrap_or_default())
    }

    /// Takes the next `count` words, or all that are left if there are fewer.
    pub fn part(&mut self, count: usize) -> Request<'a> {
        let part = self.request.part(self.next, self.next.saturating_add(count));
        self.next += part.len();
        part
    }

    /// Takes the next `count` words.
    ///
    /// # Errors
    /// [`Error::Syntax`] when there are fewer.
    pub fn words(&mut self, count: usize) -> Result<Vec<&'a [u8]>, Error> {
        if count > self.left() {
            return Err(Error::Syntax);
        }
        let words = self.rest().take(count).collect();
        self.next += count;
        Ok(words)
    }
}
