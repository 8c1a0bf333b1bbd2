//! The large form of a sorted set: a sorted list beside a map from member to score.

use super::Entry;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Default)]
pub(super) struct Large<const N: usize> {
    ordered: Vec<(f64, Box<[u8]>)>,
    scores: BTreeMap<Box<[u8]>, f64>,
}

impl<const N: usize> Large<N> {
    pub(super) fn from_sorted<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Self {
        let ordered: Vec<(f64, Box<[u8]>)> = entries.map(|entry| (entry.score, entry.member.into())).collect();
        Large { scores: ordered.iter().map(|(score, member)| (member.clone(), *score)).collect(), ordered }
    }

    pub(super) fn len(&self) -> usize {
        self.ordered.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.ordered.capacity() * 24
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    pub(super) fn update(
        &mut self,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> (Option<f64>, Option<f64>) {
        let before = self.score(member);
        let Some(after) = decide(before) else { return (before, before) };
        self.remove(member);
        let at = self.position(member, after);
        self.ordered.insert(at, (after, member.into()));
        self.scores.insert(member.into(), after);
        (before, Some(after))
    }

    fn position(&self, member: &[u8], score: f64) -> usize {
        self.ordered.partition_point(|(other, bytes)| *other < score || *other == score && &**bytes < member)
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let score = self.scores.remove(member)?;
        self.ordered.remove(self.position(member, score));
        Some(score)
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(member)?;
        Some((self.position(member, score), score))
    }

    pub(super) fn range(&self, positions: Range<usize>) -> Iter<'_, N> {
        Iter { large: self, positions }
    }

    pub(super) fn count_scores(&self, score: f64, equal: bool) -> usize {
        self.ordered.partition_point(|(other, _)| *other < score || equal && *other == score)
    }

    pub(super) fn count_members(&self, member: &[u8], equal: bool) -> usize {
        self.ordered.partition_point(|(_, other)| &**other < member || equal && &**other == member)
    }

    pub(super) fn remove_range(&mut self, positions: Range<usize>) {
        for (_, member) in self.ordered.drain(positions) {
            self.scores.remove(&member);
        }
    }

    pub(super) fn scan<'a>(&'a self, cursor: u64, count: usize, mut visit: impl FnMut(Entry<'a>)) -> u64 {
        let _ = (cursor, count);
        self.range(0..self.len()).for_each(&mut visit);
        0
    }

    pub(super) fn check(&self) {
        assert_eq!(self.ordered.len(), self.scores.len());
    }
}

#[derive(Clone)]
pub(super) struct Iter<'a, const N: usize> {
    large: &'a Large<N>,
    positions: Range<usize>,
}

impl<'a, const N: usize> Iter<'a, N> {
    fn entry(&self, position: usize) -> Entry<'a> {
        let (score, member) = &self.large.ordered[position];
        Entry { member, score: *score }
    }
}

impl<'a, const N: usize> Iterator for Iter<'a, N> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.positions.next().map(|position| self.entry(position))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl<const N: usize> DoubleEndedIterator for Iter<'_, N> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.positions.next_back().map(|position| self.entry(position))
    }
}

impl<const N: usize> ExactSizeIterator for Iter<'_, N> {}
