//! The sorted set: members, each with a score, in order of (score, member bytes).
//!
//! Leaderboards, delayed jobs, recency lists and rate limiters all need rank, range and look-up by member at once, in
//! few bytes. It knows no key, no reply, no clock and no limit of its own: [`Limits`] decide when a set turns from
//! one form into the other.
//!
//! ```text
//!            up to limits.entries and limits.bytes           beyond
//! Zset  ==>  packed: one allocation, columns        ==>      large: ordered nodes + member index, members once
//!            "listpack"                                      "skiplist"
//!                                                              | N entries left       ^ 2 N entries, or
//!                                                              v of 64 bytes or less  | as many bytes
//!                                                            packed, marked as outgrown, still a "skiplist"
//! ```
//!
//! - [`packed`]: a scan of one allocation; 10 to 18 bytes an entry for members of 9 bytes.
//! - [`large`]: O(log n) everything.
//!
//! Redis never turns a skiplist back, and clients can see that: `OBJECT ENCODING`, the digits of ZSCAN, its pages. So
//! a set that has been large replies as one for good, although it is stored as a small one again: lists of recent
//! things overshoot and are trimmed all the time.
//!
//! Scores are never NaN. `-0.0` and `0.0` are equal in the order; the packed form turns the one into the other, the
//! large form keeps the sign and returns it, as Redis's two forms do. So a set with a `-0.0` is not packed again.

mod branch;
mod fork;
mod iter;
mod large;
mod leaf;
pub(super) mod order;
mod packed;
mod row;
mod search_key;

use crate::value::arena::{Arena, Handle, LARGEST_HEAD};
use crate::value::hashing::Hashing;
use crate::value::members;
use crate::value::prefetch::Prefetch;
use large::Large;
use packed::Packed;
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow, Range};

/// When a packed set turns into the large form (`zset-max-listpack-entries`, `zset-max-listpack-value`), and the seed
/// of its hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most entries of a packed set.
    pub entries: usize,
    /// The most bytes of a member of a packed set.
    pub bytes: usize,
    /// The seed of the key by which the members of a flooded set are hashed; no client must know it.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { entries: 128, bytes: 64, seed: 0 }
    }
}

/// A member and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The member: any bytes.
    pub member: &'a [u8],
    /// The score: never NaN.
    pub score: f64,
}

impl<'a> Entry<'a> {
    /// The entry in a cell.
    fn of(arena: &'a Arena, cell: Handle) -> Entry<'a> {
        Entry { member: arena.bytes(cell), score: arena.number(cell) }
    }

    fn order(&self, other: &Entry<'_>) -> Ordering {
        self.score.partial_cmp(&other.score).unwrap_or(Ordering::Equal).then_with(|| self.member.cmp(other.member))
    }
}

/// The scores between two bounds; none if the bounds cross.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The lower end.
    pub min: Bound<f64>,
    /// The upper end.
    pub max: Bound<f64>,
}

/// One end of a [`LexRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// `-`: before every member, at either end of a range.
    Lowest,
    /// `+`: after every member, at either end of a range.
    Highest,
    /// `[member`
    Included(&'a [u8]),
    /// `(member`
    Excluded(&'a [u8]),
}

/// The members between two bounds, compared by their bytes; none if the bounds cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// The lower end.
    pub min: LexBound<'a>,
    /// The upper end.
    pub max: LexBound<'a>,
}

/// The entries that a node of the large form holds: nodes of exactly 512 bytes.
pub(super) const NODE: usize = 60;
/// The mean number of bytes of a member up to which a set that has become small is packed again.
const MEAN_BYTES: usize = 64;

/// A sorted set. `NODE` is the number of entries that a node of the large form holds; tests choose tiny ones.
#[derive(Clone)]
pub struct Zset<const N: usize = NODE> {
    form: Form<N>,
}

#[derive(Clone)]
enum Form<const N: usize> {
    Packed(Packed),
    Large(Box<Large<N>>),
}

impl Zset {
    /// An empty set.
    pub fn new() -> Zset {
        Zset::with_nodes()
    }

    /// Builds a set of members that differ, in any order, without spare memory.
    pub fn from_entries<M: AsRef<[u8]>>(entries: impl IntoIterator<Item = (M, f64)>, limits: &Limits) -> Zset {
        Zset::with_nodes_from(entries, limits)
    }

    /// Like [`Zset::from_entries`], without a copy of the members before they are in the set.
    pub fn of_entries(entries: Vec<Entry<'_>>, limits: &Limits) -> Zset {
        Zset::with_nodes_of(entries, limits)
    }
}

impl<const N: usize> Default for Zset<N> {
    fn default() -> Self {
        Zset::with_nodes()
    }
}

impl<const N: usize> Zset<N> {
    /// An empty set, with nodes of `N` entries once it is large.
    pub fn with_nodes() -> Zset<N> {
        Zset { form: Form::Packed(Packed::default()) }
    }

    /// Like [`Zset::from_entries`], with nodes of `N` entries once it is large.
    pub fn with_nodes_from<M: AsRef<[u8]>>(entries: impl IntoIterator<Item = (M, f64)>, limits: &Limits) -> Zset<N> {
        let owned: Vec<(M, f64)> = entries.into_iter().collect();
        let borrowed = owned.iter().map(|(member, score)| Entry { member: member.as_ref(), score: *score });
        Zset::with_nodes_of(borrowed.collect(), limits)
    }

    fn with_nodes_of(mut entries: Vec<Entry<'_>>, limits: &Limits) -> Zset<N> {
        entries.sort_unstable_by(Entry::order);
        let lengths = entries.iter().map(|entry| entry.member.len());
        let (longest, total) = lengths
            .fold((0, 0), |(longest, sum): (usize, usize), length| (longest.max(length), sum.wrapping_add(length)));
        let form = if admits(limits, entries.len(), longest, total) {
            Form::Packed(Packed::from_sorted(&entries))
        } else {
            Form::Large(Box::new(Large::from_sorted(entries.into_iter(), hashing(limits))))
        };
        Zset { form }
    }

    /// Visits the entries whose members are in `other` too, each with its score there, in no particular order, until
    /// `visit` breaks off.
    pub fn common<'a>(&'a self, other: &Zset<N>, mut visit: impl FnMut(Entry<'a>, f64) -> ControlFlow<()>) {
        // Nothing comes after the break, so its value is not needed.
        let _ = match (&self.form, &other.form) {
            (Form::Large(large), Form::Large(other)) if large.may_be_merged_with(other) => large.common(other, visit),
            _ => self.iter().try_for_each(|entry| {
                other.score(entry.member).map_or(ControlFlow::Continue(()), |score| visit(entry, score))
            }),
        };
    }

    /// A prefetch of a member of a large set.
    pub(super) fn prefetch(&self, member: &[u8]) -> Option<Prefetch<'_, N>> {
        match &self.form {
            Form::Packed(_) => None,
            Form::Large(large) => Some(large.prefetch(member)),
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.len(),
            Form::Large(large) => large.len(),
        }
    }

    /// Whether the set has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is packed and never was large. For such a set, Redis replies to a few commands differently.
    pub fn is_listpack(&self) -> bool {
        matches!(&self.form, Form::Packed(packed) if !packed.is_outgrown())
    }

    /// The bytes of a packed set.
    pub(in crate::value) fn packed_bytes(&self) -> &[u8] {
        match &self.form {
            Form::Packed(packed) => packed.bytes(),
            Form::Large(_) => &[],
        }
    }

    /// `listpack` or `skiplist`: what `OBJECT ENCODING` replies.
    pub fn encoding(&self) -> &'static str {
        if self.is_listpack() { "listpack" } else { "skiplist" }
    }

    /// Marks the set as large for clients from now on, however it is stored.
    pub fn outgrow(&mut self) {
        if let Form::Packed(packed) = &mut self.form
            && packed.len() > 0
        {
            packed.mark_outgrown();
        }
    }

    /// Bytes of our own heap allocations. O(1).
    pub fn memory(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.memory(),
            Form::Large(large) => size_of::<Large<N>>() + large.memory(),
        }
    }

    /// Bytes in cells, the capacity of which is limited; for a packed set, the bytes that its cells would have.
    pub(super) fn cell_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.memory() + packed.len() * LARGEST_HEAD,
            Form::Large(large) => large.cell_bytes(),
        }
    }

    /// The score of a member.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.form {
            Form::Packed(packed) => packed.find(member).map(|position| packed.score(position)),
            Form::Large(large) => large.score(member),
        }
    }

    /// Announces up to `entries` new members: if a packed set may not hold that many, it turns large at once, whether
    /// they come or not.
    pub fn make_room(&mut self, entries: usize, limits: &Limits) {
        if let Form::Packed(packed) = &self.form {
            let most = if packed.is_outgrown() { 2 * N } else { limits.entries };
            if entries > most {
                self.form = Form::Large(enlarged(packed, limits));
            }
        }
    }

    /// Looks a member up once: `decide` gets its score (`None`: absent) and returns its new score (`None`: no
    /// change). Returns the scores before and after.
    pub fn update(
        &mut self,
        member: &[u8],
        limits: &Limits,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> (Option<f64>, Option<f64>) {
        let packed = match &mut self.form {
            Form::Packed(packed) => packed,
            Form::Large(large) => return large.update(member, decide),
        };
        let found = packed.find(member);
        let before = found.map(|position| packed.score(position));
        let Some(after) = decide(before) else { return (before, before) };
        debug_assert!(!after.is_nan(), "a score is never NaN");
        let more = usize::from(found.is_none());
        let (len, bytes) = (packed.len() + more, packed.member_bytes() + more * member.len());
        let stays = if packed.is_outgrown() {
            len <= 2 * N && bytes <= 2 * N * MEAN_BYTES && !is_negative_zero(after)
        } else {
            found.is_some() || admits(limits, len, member.len(), bytes)
        };
        match found {
            _ if !stays => {
                let mut large = enlarged(packed, limits);
                large.update(member, |_| Some(after));
                self.form = Form::Large(large);
            }
            Some(position) => packed.rescore(position, after),
            None => packed.insert(packed.position(member, after), member, after),
        }
        (before, Some(after))
    }

    /// Sets the score of a member, and returns the previous one.
    pub fn insert(&mut self, member: &[u8], score: f64, limits: &Limits) -> Option<f64> {
        self.update(member, limits, |_| Some(score)).0
    }

    /// Removes a member, and returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.form {
            Form::Packed(packed) => {
                let position = packed.find(member)?;
                let score = packed.score(position);
                packed.remove(position..position + 1);
                Some(score)
            }
            Form::Large(large) => {
                let score = large.remove(member);
                if score.is_some()
                    && large.len() == N
                    && let Some(packed) = packed_without(large, 0..0)
                {
                    self.form = Form::Packed(packed);
                }
                score
            }
        }
    }

    /// The position of a member, 0 for the lowest, and its score.
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match &self.form {
            Form::Packed(packed) => packed.find(member).map(|position| (position, packed.score(position))),
            Form::Large(large) => large.rank(member),
        }
    }

    /// The entry at a position.
    pub fn at(&self, position: usize) -> Option<Entry<'_>> {
        self.range(position..position.saturating_add(1)).next()
    }

    /// The entries at those of `positions` that exist, lowest first.
    pub fn range(&self, positions: Range<usize>) -> Iter<'_, N> {
        let positions = self.clamp(positions);
        Iter {
            form: match &self.form {
                Form::Packed(packed) => FormIter::Packed(packed.range(positions)),
                Form::Large(large) => FormIter::Large(large.range(positions)),
            },
        }
    }

    /// All entries, lowest first.
    pub fn iter(&self) -> Iter<'_, N> {
        self.range(0..self.len())
    }

    /// The positions of the scores in a range.
    pub fn by_score(&self, range: &ScoreRange) -> Range<usize> {
        let start = match range.min {
            Bound::Included(min) => self.count_scores(min, false),
            Bound::Excluded(min) => self.count_scores(min, true),
            Bound::Unbounded => 0,
        };
        let end = match range.max {
            Bound::Included(max) => self.count_scores(max, true),
            Bound::Excluded(max) => self.count_scores(max, false),
            Bound::Unbounded => self.len(),
        };
        start..end.max(start)
    }

    /// The positions of the members in a range, if all scores are equal; else some positions of the set.
    pub fn by_lex(&self, range: &LexRange<'_>) -> Range<usize> {
        let start = match range.min {
            LexBound::Lowest => 0,
            LexBound::Highest => self.len(),
            LexBound::Included(min) => self.count_members(min, false),
            LexBound::Excluded(min) => self.count_members(min, true),
        };
        let end = match range.max {
            LexBound::Lowest => 0,
            LexBound::Highest => self.len(),
            LexBound::Included(max) => self.count_members(max, true),
            LexBound::Excluded(max) => self.count_members(max, false),
        };
        start..end.max(start)
    }

    /// Removes the entries at those of `positions` that exist, and returns how many.
    pub fn remove_range(&mut self, positions: Range<usize>) -> usize {
        self.cut_range(positions).0
    }

    /// Like [`Zset::remove_range`], for a set that may be huge: where it is faster to store the remaining entries
    /// anew than to remove the others, the old set is returned as well, for the caller to drop in the background.
    pub fn cut_range(&mut self, positions: Range<usize>) -> (usize, Option<Zset<N>>) {
        let positions = self.clamp(positions);
        let (gone, stays) = (positions.len(), self.len() - positions.len());
        match &mut self.form {
            _ if gone == 0 => {}
            Form::Packed(packed) => packed.remove(positions),
            Form::Large(large) => {
                let turns_small = large.len() > N && stays <= N;
                let form = match turns_small.then(|| packed_without(large, positions.clone())).flatten() {
                    Some(packed) => Form::Packed(packed),
                    // Storing an entry that stays takes about two thirds of the time of removing one.
                    None if stays < gone + gone / 2 => Form::Large(Box::new(large.without(positions))),
                    None => {
                        large.remove_range(positions);
                        return (gone, None);
                    }
                };
                return (gone, Some(Zset { form: std::mem::replace(&mut self.form, form) }));
            }
        }
        (gone, None)
    }

    /// Visits about `count` entries from a cursor on, 0 to start, and returns the next cursor, 0 when done.
    ///
    /// An entry that is in the set from the start of a full scan to its end is visited at least once, whatever else
    /// comes and goes. A set that never was large is visited all at once.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, visit: impl FnMut(Entry<'a>)) -> u64 {
        match &self.form {
            Form::Packed(packed) if packed.is_outgrown() => {
                members::scan_unindexed(packed.range(0..packed.len()), |entry| entry.member, cursor, count, visit)
            }
            Form::Packed(packed) => {
                packed.range(0..packed.len()).for_each(visit);
                0
            }
            Form::Large(large) => large.scan(cursor, count, visit),
        }
    }

    /// Panics unless every invariant holds. For tests and debug builds: O(n).
    pub fn check(&self) {
        match &self.form {
            Form::Packed(packed) => packed.check(),
            Form::Large(large) => large.check(),
        }
    }

    fn clamp(&self, positions: Range<usize>) -> Range<usize> {
        let end = positions.end.min(self.len());
        positions.start.min(end)..end
    }

    /// The number of scores below `score`, or at most `score` if `equal`.
    fn count_scores(&self, score: f64, equal: bool) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.count_scores(|other| other < score || equal && other == score),
            Form::Large(large) => large.count_scores(score, equal),
        }
    }

    /// The number of members below `member`, or at most `member` if `equal`.
    fn count_members(&self, member: &[u8], equal: bool) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.count_members(|other| other < member || equal && other == member),
            Form::Large(large) => large.count_members(member, equal),
        }
    }
}

/// The large form of a packed set.
fn enlarged<const N: usize>(packed: &Packed, limits: &Limits) -> Box<Large<N>> {
    Box::new(Large::from_sorted(packed.range(0..packed.len()), hashing(limits)))
}

fn hashing(limits: &Limits) -> Hashing {
    Hashing::Quick { seed: limits.seed }
}

/// The entries of a large set outside `positions`, packed, if there are any and they may be packed.
fn packed_without<const N: usize>(large: &Large<N>, positions: Range<usize>) -> Option<Packed> {
    let kept = large.range(0..positions.start).chain(large.range(positions.end..large.len()));
    let bytes: usize = kept.clone().map(|entry| entry.member.len()).sum();
    if positions.len() == large.len()
        || bytes > N * MEAN_BYTES
        || kept.clone().any(|entry| is_negative_zero(entry.score))
    {
        return None;
    }
    let mut packed = Packed::from_sorted(&kept.collect::<Vec<_>>());
    packed.mark_outgrown();
    Some(packed)
}

/// Whether the score is `-0.0`, whose sign the packed form would lose.
fn is_negative_zero(score: f64) -> bool {
    score == 0.0 && score.is_sign_negative()
}

/// Whether a set that never was large may be packed.
fn admits(limits: &Limits, entries: usize, longest: usize, bytes: usize) -> bool {
    entries <= limits.entries.min(packed::MAX_LEN) && longest <= limits.bytes && bytes <= packed::MAX_BYTES
}

/// Entries in order, from both ends.
#[derive(Clone)]
pub struct Iter<'a, const N: usize = NODE> {
    form: FormIter<'a, N>,
}

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "an iterator lives on the stack, for as long as one reply is written")]
enum FormIter<'a, const N: usize> {
    Packed(packed::Iter<'a>),
    Large(iter::Iter<'a, N>),
}

impl<'a, const N: usize> Iterator for Iter<'a, N> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        match &mut self.form {
            FormIter::Packed(iter) => iter.next(),
            FormIter::Large(iter) => iter.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.form {
            FormIter::Packed(iter) => iter.size_hint(),
            FormIter::Large(iter) => iter.size_hint(),
        }
    }

    fn fold<B, F: FnMut(B, Entry<'a>) -> B>(self, start: B, add: F) -> B {
        match self.form {
            FormIter::Packed(iter) => iter.fold(start, add),
            FormIter::Large(iter) => iter.fold(start, add),
        }
    }
}

impl<'a, const N: usize> DoubleEndedIterator for Iter<'a, N> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.form {
            FormIter::Packed(iter) => iter.next_back(),
            FormIter::Large(iter) => iter.next_back(),
        }
    }

    fn rfold<B, F: FnMut(B, Entry<'a>) -> B>(self, start: B, add: F) -> B {
        match self.form {
            FormIter::Packed(iter) => iter.rfold(start, add),
            FormIter::Large(iter) => iter.rfold(start, add),
        }
    }
}

impl<const N: usize> ExactSizeIterator for Iter<'_, N> {}

impl<const N: usize> std::fmt::Debug for Zset<N> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
