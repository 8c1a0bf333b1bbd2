//! Registers as runs of equal ones, each run in one or two bytes.
//!
//! ```text
//! 00nnnnnn            n + 1 registers hold 0, up to 64
//! 01nnnnnn nnnnnnnn   n + 1 registers hold 0, up to 16,384
//! 1vvvvvnn            n + 1 registers hold v + 1: up to 4 registers, up to 32
//! ```
//!
//! A register that is raised splits its run in up to three. Then runs of the same value next to it are joined, as far
//! as Redis searches for them: five runs from the one before. So the bytes are Redis's, which are not always the
//! fewest.
//!
//! Invariant, unless corrupted: the runs together cover all registers. Cost of raising: a walk over the runs up to
//! the register, and a move of the bytes behind it.

use super::{Corrupted, Histogram, REGISTERS, Registers};

const LONG_ZEROS: u8 = 0x40;
const VALUE: u8 = 0x80;
const MAX_SHORT_ZEROS: usize = 64;
const MAX_OF_VALUE: usize = 4;
const GREATEST: u8 = 32;
/// The number of runs that are checked for joining.
const JOINED_RUNS: usize = 5;

/// Equal registers next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) value: u8,
    /// The number of registers in the run.
    pub(super) length: usize,
    /// The number of bytes that encode the run.
    pub(super) width: usize,
}

/// The result of raising a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// Not raised: the value was as great already.
    Not,
    /// Raised.
    Done,
    /// Not done: the value, or the length of the runs, would be more than the sparse form allows.
    NeedsDense,
}

/// The run at the front; `None` if its bytes are cut off.
fn run_at(code: &[u8]) -> Option<Run> {
    let (&first, rest) = code.split_first()?;
    if first & VALUE != 0 {
        return Some(Run { value: (first >> 2 & 0x1f) + 1, length: usize::from(first & 3) + 1, width: 1 });
    }
    let high = usize::from(first & 0x3f);
    if first & LONG_ZEROS == 0 {
        return Some(Run { value: 0, length: high + 1, width: 1 });
    }
    Some(Run { value: 0, length: (high << 8 | usize::from(*rest.first()?)) + 1, width: 2 })
}

/// All runs, up to one whose bytes are cut off.
pub(super) fn runs(mut code: &[u8]) -> impl Iterator<Item = Run> {
    std::iter::from_fn(move || {
        let run = run_at(code)?;
        code = code.get(run.width..)?;
        Some(run)
    })
}

/// Visits all runs, each with the index of its first register.
///
/// # Errors
/// [`Corrupted`] if the runs do not cover exactly all registers.
fn walk(code: &[u8], mut visit: impl FnMut(usize, Run)) -> Result<(), Corrupted> {
    let (mut first, mut read) = (0, 0);
    for run in runs(code) {
        read += run.width;
        if first + run.length > REGISTERS {
            return Err(Corrupted);
        }
        visit(first, run);
        first += run.length;
    }
    // A run whose bytes are cut off is one too many.
    if first == REGISTERS && read == code.len() { Ok(()) } else { Err(Corrupted) }
}

/// Counts how many registers hold each value.
pub(super) fn histogram(code: &[u8]) -> Result<Histogram, Corrupted> {
    let mut histogram: Histogram = [0; 64];
    walk(code, |_, run| histogram[usize::from(run.value)] += run.length as u32)?;
    Ok(histogram)
}

/// Raises `registers` to the registers of `code` where these are greater.
pub(super) fn merge_into(code: &[u8], registers: &mut Registers) -> Result<(), Corrupted> {
    walk(code, |first, run| {
        if run.value > 0 {
            let equal = &mut registers[first..first + run.length];
            equal.iter_mut().for_each(|register| *register = (*register).max(run.value));
        }
    })
}

/// Appends registers that all hold 0.
pub(super) fn write_empty(code: &mut Vec<u8>) {
    let mut run = Code::default();
    run.zeros(REGISTERS);
    code.extend_from_slice(run.bytes());
}

/// A few encoded runs that are about to be inserted.
#[derive(Default)]
struct Code {
    bytes: [u8; 5],
    used: usize,
}

impl Code {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.used] = byte;
        self.used += 1;
    }

    fn run(&mut self, value: u8, length: usize) {
        match (value, length) {
            (_, 0) => {}
            (0, _) => self.zeros(length),
            _ => self.push(coded(value, length)),
        }
    }

    fn zeros(&mut self, length: usize) {
        let [low, high, ..] = (length - 1).to_le_bytes();
        if length > MAX_SHORT_ZEROS {
            self.push(LONG_ZEROS | high);
        }
        self.push(low);
    }
}

/// The byte of a run of a nonzero value.
fn coded(value: u8, length: usize) -> u8 {
    VALUE | (value - 1) << 2 | (length - 1) as u8
}

/// Where the search for a register begins: at the first run, or, for registers that are raised in ascending order, at
/// the run before the last one that was found.
#[derive(Clone, Copy)]
pub(super) struct Search {
    /// The place of the first run.
    start: usize,
    /// The place of a run, and the index of its first register.
    at: usize,
    first: usize,
}

impl Search {
    /// A search from the first run on, which is at `start`.
    pub(super) fn new(start: usize) -> Search {
        Search { start, at: start, first: 0 }
    }

    /// The position of a register. The next search starts at the run before it.
    fn find(&mut self, bytes: &[u8], index: usize) -> Result<Spot, Corrupted> {
        let mut spot = self.walk(bytes, index).ok_or(Corrupted)?;
        if spot.at == self.at && self.at != self.start {
            // The run before this one is not known.
            *self = Search::new(self.start);
            spot = self.walk(bytes, index).ok_or(Corrupted)?;
        }
        *self = spot.before;
        Ok(spot)
    }

    /// Walks on to the first run that does not end before a register. It keeps the bytes that are left and not their
    /// place, so that one comparison finds out that a run is whole.
    #[inline(always)]
    fn walk(&self, bytes: &[u8], index: usize) -> Option<Spot> {
        let (mut left, mut registers) = (bytes.get(self.at..)?, index.saturating_sub(self.first));
        let mut before = (left, registers);
        loop {
            let (length, rest) = match *left {
                [value @ VALUE..=u8::MAX, ref rest @ ..] => (usize::from(value & 3) + 1, rest),
                [zeros @ 0..LONG_ZEROS, ref rest @ ..] => (usize::from(zeros) + 1, rest),
                [high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high & 0x3f, low])) + 1, rest),
                _ => return None,
            };
            if registers < length {
                let place = |left: &[u8]| bytes.len() - left.len();
                let before = Search { at: place(before.0), first: index - before.1, ..*self };
                return Some(Spot { before, at: place(left), first: index - registers, run: run_at(left)? });
            }
            before = (left, registers);
            (left, registers) = (rest, registers - length);
        }
    }
}

/// Raises a register of the runs that `search` finds in `bytes`; all together may be up to `most` bytes long.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    search: &mut Search,
    index: usize,
    value: u8,
    most: usize,
) -> Result<Raised, Corrupted> {
    if value > GREATEST {
        return Ok(Raised::NeedsDense);
    }
    let Spot { before, at, first, run } = search.find(bytes, index)?;
    if run.value >= value {
        return Ok(Raised::Not);
    }
    let mut code = Code::default();
    code.run(run.value, index - first);
    code.run(value, 1);
    code.run(run.value, first + run.length - 1 - index);
    if code.used > run.width && bytes.len() + code.used - run.width > most {
        return Ok(Raised::NeedsDense);
    }
    put(bytes, at, run.width, code.bytes());
    join(bytes, before.at);
    Ok(Raised::Done)
}

/// The position of a register among the runs.
struct Spot {
    /// A search from the previous run on, or from the run itself if it is the first.
    before: Search,
    /// The place where the register's run begins.
    at: usize,
    /// The index of the first register of its run.
    first: usize,
    run: Run,
}

/// Replaces the `width` bytes at `at` by `code`.
fn put(bytes: &mut Vec<u8>, at: usize, width: usize, code: &[u8]) {
    let end = bytes.len();
    if code.len() > width {
        bytes.resize(end + code.len() - width, 0);
    }
    bytes.copy_within(at + width..end, at + code.len());
    bytes[at..at + code.len()].copy_from_slice(code);
    bytes.truncate(end + code.len() - width);
}

/// Joins adjacent runs of the same value, among a few from `at` on.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOINED_RUNS {
        let Some(run) = bytes.get(at..).and_then(run_at) else { return };
        let next = bytes.get(at + 1..).and_then(run_at).filter(|next| run.value > 0 && next.value == run.value);
        match next.map(|next| run.length + next.length) {
            Some(length) if length <= MAX_OF_VALUE => {
                bytes.remove(at);
                bytes[at] = coded(run.value, length);
            }
            _ => at += run.width,
        }
    }
}
