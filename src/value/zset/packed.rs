//! The packed form of a sorted set: one allocation, columns side by side, entries in order.
//!
//! Most sorted sets are small (the last thirty pages, a window of hits), so bytes count and a scan is fast. The form
//! knows no limits: [`super::Zset`] decides when a set is too large for it.
//!
//! ```text
//! head, 16 bytes                                columns
//! +---------+----------+------+------+---------+------------------+-------------------+--------------------+
//! | base i64| member   | len  | score| length  | score[0..len]    | length[0..len]    | members, back      |
//! |         | bytes u32| u16  | width| width   | width 0..=8 each | width 0..=4 each  | to back, in order  |
//! +---------+----------+------+------+---------+------------------+-------------------+--------------------+
//! ```
//!
//! - Score width `w < 8`: every score is an integer of at most 53 bits and is kept as `score - base` in `w` bytes (none
//!   when all scores are equal). Width 8: the bits of the `f64`. The sign of zero is not kept.
//! - The highest bit of the byte that holds the score width marks a set that has been large: see [`super::Zset`].
//! - Length width 0: all members are equally long, so their length is `member bytes / len`.
//! - Invariant: for neighbours `a`, `b`: `(a.score, a.member) < (b.score, b.member)`, and
//!   `16 + len * (score width + length width) + member bytes <= allocation`.
//! - Thirty timestamps a second apart with members of 9 bytes take `16 + 30 * (1 + 9) = 316` bytes.
//!
//! Costs: look-up O(len) at about one nanosecond an entry (one word compared, then the rest); rank to entry O(1) with
//! equal lengths, else a sum of lengths; a change moves at most the whole allocation. A fixed-width number is read as
//! the word that *ends* with it, shifted down: the head in front makes that word always readable.
//!
//! Sources: the idea of columns with a common base is frame-of-reference coding (Goldstein, Ramakrishnan, Shaft 1998).

use super::Entry;
use crate::value::columns::{number, tail};
use crate::value::copy_short;
use std::cmp::Ordering;
use std::ops::Range;

const HEAD: usize = 16;
/// The width that means "the bits of the score itself".
const RAW: usize = 8;
/// The bit in the byte of the score width that marks a set that has been large.
const OUTGROWN: u8 = 0x80;
/// Every integer up to this magnitude has an exact `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Allocations are multiples of this many bytes.
const GRAIN: usize = 8;

/// The most entries of the form.
pub(super) const MAX_LEN: usize = u16::MAX as usize;
/// The most bytes of all members together.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// A sorted set in one allocation. The empty set has none.
#[derive(Clone, Default)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
}

#[derive(Clone, Copy, Default)]
struct Head {
    base: i64,
    member_bytes: usize,
    len: usize,
    outgrown: bool,
    score_width: usize,
    length_width: usize,
}

impl Head {
    fn lengths_at(&self) -> usize {
        HEAD + self.len * self.score_width
    }

    fn members_at(&self) -> usize {
        self.lengths_at() + self.len * self.length_width
    }

    fn used(&self) -> usize {
        self.members_at() + self.member_bytes
    }

    /// The head of a set of some entries in order, with the narrowest columns; `None` if there is no entry.
    fn of_sorted(entries: &[Entry<'_>]) -> Option<Head> {
        let (first, last) = (entries.first()?, entries.last()?);
        let (mut longest, mut member_bytes) = (0, 0);
        for entry in entries {
            longest = longest.max(entry.member.len());
            member_bytes += entry.member.len();
        }
        let are_equal = longest.checked_mul(entries.len()) == Some(member_bytes);
        let (base, score_width) = match (integer(first.score), integer(last.score)) {
            (Some(low), Some(high)) if entries.iter().all(|entry| integer(entry.score).is_some()) => {
                (low, width_of(high.abs_diff(low)))
            }
            _ => (0, RAW),
        };
        let length_width = if are_equal { 0 } else { width_of(longest as u64) };
        Some(Head { base, member_bytes, len: entries.len(), outgrown: false, score_width, length_width })
    }
}

impl Packed {
    /// Packs entries that are in order already, with nothing to spare.
    pub(super) fn from_sorted(entries: &[Entry<'_>]) -> Packed {
        let Some(head) = Head::of_sorted(entries) else { return Packed::default() };
        let mut packed = Packed { bytes: vec![0; head.used().next_multiple_of(GRAIN)].into_boxed_slice() };
        packed.set_head(&head);
        // Each column is written over what the one before it wrote behind its end.
        match head.score_width {
            0 => {}
            RAW => {
                put_column(&mut packed.bytes[HEAD..], RAW, entries.iter().map(|entry| (entry.score + 0.0).to_bits()))
            }
            width => {
                let codes = entries.iter().map(|entry| (entry.score as i64).wrapping_sub(head.base).cast_unsigned());
                put_column(&mut packed.bytes[HEAD..], width, codes);
            }
        }
        let lengths = &mut packed.bytes[head.lengths_at()..];
        match head.length_width {
            0 => {}
            1 => lengths.iter_mut().zip(entries).for_each(|(length, entry)| *length = entry.member.len() as u8),
            width => put_column(lengths, width, entries.iter().map(|entry| entry.member.len() as u64)),
        }
        let mut rest = &mut packed.bytes[head.members_at()..];
        for Entry { member, .. } in entries {
            let Some(target) = rest.split_off_mut(..member.len()) else { break };
            copy_short(target, member);
        }
        packed
    }

    pub(super) fn len(&self) -> usize {
        self.head().len
    }

    pub(super) fn member_bytes(&self) -> usize {
        self.head().member_bytes
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of the allocation.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the set has been large. The empty set never has.
    pub(super) fn is_outgrown(&self) -> bool {
        self.head().outgrown
    }

    /// Marks a set, which is not empty, as one that has been large.
    pub(super) fn mark_outgrown(&mut self) {
        self.set_head(&Head { outgrown: true, ..self.head() });
    }

    /// The position of a member.
    pub(super) fn find(&self, member: &[u8]) -> Option<usize> {
        let head = self.head();
        let word = tail(member, member.len().min(8));
        let mut end = head.members_at();
        if head.length_width == 0 {
            if head.len == 0 || head.member_bytes != head.len * member.len() {
                return None;
            }
            return (0..head.len).find(|_| {
                end += member.len();
                self.ends_with(end, member, word)
            });
        }
        if head.length_width == 1 {
            let lengths = &self.bytes[column(head.lengths_at(), 1, &(0..head.len))];
            return lengths.iter().position(|&length| {
                end += usize::from(length);
                usize::from(length) == member.len() && self.ends_with(end, member, word)
            });
        }
        (0..head.len).find(|&position| {
            let length = self.length(&head, position);
            end += length;
            length == member.len() && self.ends_with(end, member, word)
        })
    }

    /// Whether the bytes before `end` are `member`, whose last word is `word`.
    fn ends_with(&self, end: usize, member: &[u8], word: u64) -> bool {
        number(&self.bytes, end, member.len().min(8)) == word
            && (member.len() <= 8 || self.bytes[end - member.len()..end] == *member)
    }

    /// The score at `position < len`.
    pub(super) fn score(&self, position: usize) -> f64 {
        let head = self.head();
        assert!(position < head.len, "position {position} of {}", head.len);
        self.score_of(&head, position)
    }

    /// The number of entries before `(score, member)` in the order.
    pub(super) fn position(&self, member: &[u8], score: f64) -> usize {
        let head = self.head();
        if head.len > 0 && self.score_of(&head, head.len - 1) < score {
            return head.len;
        }
        partition(head.len, |position| match self.score_of(&head, position).partial_cmp(&score) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => self.member(&head, position) < member,
            _ => false,
        })
    }

    /// The number of leading scores that satisfy `before`, which must hold for a prefix.
    pub(super) fn count_scores(&self, before: impl Fn(f64) -> bool) -> usize {
        let head = self.head();
        partition(head.len, |position| before(self.score_of(&head, position)))
    }

    /// The number of leading members that satisfy `before`, which must hold for a prefix.
    pub(super) fn count_members(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        let head = self.head();
        partition(head.len, |position| before(self.member(&head, position)))
    }

    /// The entries at `positions`, which must be within the set.
    pub(super) fn range(&self, positions: Range<usize>) -> Iter<'_> {
        let head = self.head();
        let front_at = self.member_at(&head, positions.start);
        let back_at = front_at + self.lengths_sum(&head, positions.clone());
        Iter { packed: self, head, positions, front_at, back_at }
    }

    /// Inserts an entry at the position that [`Packed::position`] returned.
    pub(super) fn insert(&mut self, position: usize, member: &[u8], score: f64) {
        self.make_room_for_score(score);
        self.make_room_for_length(member.len());
        let mut head = self.head();
        let coded = code(&head, score);
        self.reserve(head.score_width + head.length_width + member.len());
        let score_at = HEAD + position * head.score_width;
        let length_at = head.lengths_at() + position * head.length_width;
        let member_at = self.member_at(&head, position);
        let end = head.used();
        let (first, second) = (head.score_width, head.score_width + head.length_width);
        self.bytes.copy_within(member_at..end, member_at + second + member.len());
        self.bytes.copy_within(length_at..member_at, length_at + second);
        self.bytes.copy_within(score_at..length_at, score_at + first);
        put(&mut self.bytes, score_at, head.score_width, coded);
        put(&mut self.bytes, length_at + first, head.length_width, member.len() as u64);
        self.bytes[member_at + second..][..member.len()].copy_from_slice(member);
        head.len += 1;
        head.member_bytes += member.len();
        self.set_head(&head);
    }

    /// Sets the score of the entry at `from` and moves it to its new position.
    pub(super) fn rescore(&mut self, from: usize, score: f64) {
        self.make_room_for_score(score);
        let head = self.head();
        let member_at = self.member_at(&head, from);
        let member_end = member_at + self.length(&head, from);
        let to = self.place_of_moved(&head, from, score);
        let span = from.min(to)..from.max(to) + 1;
        let bytes_at = self.member_at(&head, span.start);
        let bytes_end = bytes_at + self.lengths_sum(&head, span.clone());
        let sections = [
            (column(HEAD, head.score_width, &span), head.score_width),
            (column(head.lengths_at(), head.length_width, &span), head.length_width),
            (bytes_at..bytes_end, member_end - member_at),
        ];
        for (section, unit) in sections {
            match from.cmp(&to) {
                Ordering::Less => self.bytes[section].rotate_left(unit),
                Ordering::Greater => self.bytes[section].rotate_right(unit),
                Ordering::Equal => {}
            }
        }
        put(&mut self.bytes, HEAD + to * head.score_width, head.score_width, code(&head, score));
    }

    /// The position of the entry at `from` once it has `score`, counted without itself.
    fn place_of_moved(&self, head: &Head, from: usize, score: f64) -> usize {
        let member = self.member(head, from);
        partition(head.len - 1, |rest| {
            let position = if rest < from { rest } else { rest + 1 };
            match self.score_of(head, position).partial_cmp(&score) {
                Some(Ordering::Less) => true,
                Some(Ordering::Equal) => self.member(head, position) < member,
                _ => false,
            }
        })
    }

    /// Removes the entries at `positions`, which must be within the set.
    pub(super) fn remove(&mut self, positions: Range<usize>) {
        let mut head = self.head();
        let gone = positions.len();
        if gone == head.len {
            self.bytes = Box::default();
            return;
        }
        let members = self.member_at(&head, positions.start)..self.member_at(&head, positions.end);
        let lengths = column(head.lengths_at(), head.length_width, &positions);
        let scores = column(HEAD, head.score_width, &positions);
        let end = head.used();
        let mut at = scores.start;
        for kept in [scores.end..lengths.start, lengths.end..members.start, members.end..end] {
            self.bytes.copy_within(kept.clone(), at);
            at += kept.len();
        }
        head.len -= gone;
        head.member_bytes -= members.len();
        self.set_head(&head);
        if at + at / 4 + 4 * GRAIN < self.bytes.len() {
            self.resize(at);
        }
    }

    /// Panics unless the form's invariants hold.
    pub(super) fn check(&self) {
        let head = self.head();
        assert!(head.len == 0 && self.bytes.is_empty() || head.len > 0 && head.used() <= self.bytes.len());
        assert!(head.score_width <= RAW && head.length_width <= 4);
        assert_eq!(self.lengths_sum(&head, 0..head.len), head.member_bytes, "lengths must add up");
        let entries = || self.range(0..head.len);
        for (a, b) in entries().zip(entries().skip(1)) {
            assert!(a.score < b.score || a.score == b.score && a.member < b.member, "{a:?} must lie before {b:?}");
        }
        assert!(entries().eq(entries().rev().collect::<Vec<_>>().into_iter().rev()), "both directions must agree");
    }

    fn head(&self) -> Head {
        let Some(bytes) = self.bytes.first_chunk::<HEAD>() else { return Head::default() };
        let word = |at: usize, width: usize| number(bytes, at + width, width) as usize;
        let base = bytes.first_chunk().map_or(0, |base| i64::from_le_bytes(*base));
        Head {
            base,
            member_bytes: word(8, 4),
            len: word(12, 2),
            outgrown: bytes[14] & OUTGROWN != 0,
            score_width: usize::from(bytes[14] & !OUTGROWN),
            length_width: bytes[15].into(),
        }
    }

    fn set_head(&mut self, head: &Head) {
        put(&mut self.bytes, 0, 8, head.base as u64);
        put(&mut self.bytes, 8, 4, head.member_bytes as u64);
        put(&mut self.bytes, 12, 2, head.len as u64);
        self.bytes[14] = head.score_width as u8 | if head.outgrown { OUTGROWN } else { 0 };
        self.bytes[15] = head.length_width as u8;
    }

    #[inline]
    fn score_of(&self, head: &Head, position: usize) -> f64 {
        decode(head, number(&self.bytes, HEAD + (position + 1) * head.score_width, head.score_width))
    }

    #[inline]
    fn length(&self, head: &Head, position: usize) -> usize {
        match head.length_width {
            0 => head.member_bytes / head.len,
            1 => self.bytes[head.lengths_at() + position].into(),
            width => number(&self.bytes, head.lengths_at() + (position + 1) * width, width) as usize,
        }
    }

    fn lengths_sum(&self, head: &Head, positions: Range<usize>) -> usize {
        match head.length_width {
            0 if head.len == 0 => 0,
            0 => positions.len() * (head.member_bytes / head.len),
            1 => self.bytes[column(head.lengths_at(), 1, &positions)].iter().map(|&length| usize::from(length)).sum(),
            _ => positions.map(|position| self.length(head, position)).sum(),
        }
    }

    fn member_at(&self, head: &Head, position: usize) -> usize {
        head.members_at() + self.lengths_sum(head, 0..position)
    }

    fn member(&self, head: &Head, position: usize) -> &[u8] {
        &self.bytes[self.member_at(head, position)..][..self.length(head, position)]
    }

    /// Widens the score column if `score` cannot be written into it.
    fn make_room_for_score(&mut self, score: f64) {
        let mut head = self.head();
        let old = head;
        if head.len == 0 {
            self.resize(HEAD.max(self.bytes.len()));
            (head.base, head.score_width) = integer(score).map_or((0, RAW), |base| (base, 0));
            self.set_head(&head);
        } else if head.score_width == RAW || fits(&head, score) {
        } else if let Some(integer) = integer(score) {
            let low = self.score_of(&head, 0) as i64;
            let high = self.score_of(&head, head.len - 1) as i64;
            let span = high.max(integer).abs_diff(low.min(integer));
            head.base = low.min(integer);
            head.score_width = width_of(span + span / 4);
            self.rewrite(HEAD, old.score_width, &head, head.score_width, |value| code(&head, decode(&old, value)));
        } else {
            (head.base, head.score_width) = (0, RAW);
            self.rewrite(HEAD, old.score_width, &head, RAW, |value| decode(&old, value).to_bits());
        }
    }

    /// Widens the length column if `length` cannot be written into it.
    fn make_room_for_length(&mut self, length: usize) {
        let mut head = self.head();
        let equal = match head.length_width {
            0 => Some(head.member_bytes.checked_div(head.len).unwrap_or(length)),
            _ => None,
        };
        let width = width_of(length as u64);
        if equal == Some(length) || equal.is_none() && width <= head.length_width {
            return;
        }
        let (at, old_width) = (head.lengths_at(), head.length_width);
        head.length_width = width.max(equal.map_or(0, |equal| width_of(equal as u64))).max(1);
        self.rewrite(at, old_width, &head, head.length_width, |value| equal.map_or(value, |equal| equal as u64));
    }

    /// Rewrites the column at `at` from one width to another, moves the bytes behind it, and sets the head.
    fn rewrite(&mut self, at: usize, old: usize, head: &Head, new: usize, map: impl Fn(u64) -> u64) {
        let (old_end, new_end) = (at + head.len * old, at + head.len * new);
        let behind = self.head().used() - old_end;
        self.reserve((new_end + behind).saturating_sub(old_end + behind));
        if new > old {
            self.bytes.copy_within(old_end..old_end + behind, new_end);
        }
        let mut step = |position: usize| {
            let value = map(number(&self.bytes, at + (position + 1) * old, old));
            put(&mut self.bytes, at + position * new, new, value);
        };
        if new > old {
            (0..head.len).rev().for_each(&mut step)
        } else {
            (0..head.len).for_each(&mut step)
        }
        if new < old {
            self.bytes.copy_within(old_end..old_end + behind, new_end);
        }
        self.set_head(head);
    }

    /// Makes room for `more` bytes behind the used ones.
    fn reserve(&mut self, more: usize) {
        let needed = self.head().used() + more;
        if needed > self.bytes.len() {
            self.resize(needed);
        }
    }

    fn resize(&mut self, size: usize) {
        let size = size.next_multiple_of(GRAIN);
        let mut bytes = std::mem::take(&mut self.bytes).into_vec();
        bytes.reserve_exact(size.saturating_sub(bytes.len()));
        bytes.resize(size, 0);
        self.bytes = bytes.into_boxed_slice();
    }
}

/// Iterates over the entries of a packed set, from both ends.
#[derive(Clone)]
pub(super) struct Iter<'a> {
    packed: &'a Packed,
    head: Head,
    positions: Range<usize>,
    front_at: usize,
    back_at: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        let position = self.positions.next()?;
        let start = self.front_at;
        self.front_at += self.packed.length(&self.head, position);
        Some(Entry {
            member: &self.packed.bytes[start..self.front_at],
            score: self.packed.score_of(&self.head, position),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }

    /// Folds all entries in one loop, which reads lengths of one byte as they come.
    #[inline]
    fn fold<B, F: FnMut(B, Entry<'a>) -> B>(self, init: B, mut f: F) -> B {
        let Iter { packed, head, positions, front_at: mut at, .. } = self;
        let mut add = |sum, position, length| {
            let start = at;
            at += length;
            f(sum, Entry { member: &packed.bytes[start..at], score: packed.score_of(&head, position) })
        };
        if head.length_width != 1 {
            return positions.fold(init, |sum, position| add(sum, position, packed.length(&head, position)));
        }
        let lengths = &packed.bytes[column(head.lengths_at(), 1, &positions)];
        positions.zip(lengths).fold(init, |sum, (position, &length)| add(sum, position, length.into()))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let position = self.positions.next_back()?;
        let end = self.back_at;
        self.back_at -= self.packed.length(&self.head, position);
        Some(Entry { member: &self.packed.bytes[self.back_at..end], score: self.packed.score_of(&self.head, position) })
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// The first position for which `before` does not hold.
fn partition(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The bytes of a column of `width` for `positions`.
fn column(at: usize, width: usize, positions: &Range<usize>) -> Range<usize> {
    at + positions.start * width..at + positions.end * width
}

/// Writes numbers of `width` bytes one after the other, and up to seven bytes of no meaning behind them: where there is
/// room, each is written as a whole word.
#[inline(always)]
fn put_column(bytes: &mut [u8], width: usize, numbers: impl Iterator<Item = u64>) {
    let mut at = 0;
    for number in numbers {
        match bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()) {
            Some(word) => *word = number.to_le_bytes(),
            None => put(bytes, at, width, number),
        }
        at += width;
    }
}

fn put(bytes: &mut [u8], at: usize, width: usize, value: u64) {
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// The number of bytes that `value` needs.
fn width_of(value: u64) -> usize {
    (64 - value.leading_zeros()).div_ceil(8) as usize
}

/// The integer equal to a score, if there is one that restores an equal score.
fn integer(score: f64) -> Option<i64> {
    let integer = score as i64;
    (score.abs() <= EXACT && integer as f64 == score).then_some(integer)
}

fn fits(head: &Head, score: f64) -> bool {
    integer(score)
        .is_some_and(|integer| integer >= head.base && width_of(integer.abs_diff(head.base)) <= head.score_width)
}

fn code(head: &Head, score: f64) -> u64 {
    if head.score_width == RAW { (score + 0.0).to_bits() } else { (score as i64).abs_diff(head.base) }
}

fn decode(head: &Head, value: u64) -> f64 {
    if head.score_width == RAW { f64::from_bits(value) } else { head.base.wrapping_add_unsigned(value) as f64 }
}
