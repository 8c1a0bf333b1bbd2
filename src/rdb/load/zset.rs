//! Sorted sets: members with scores as digits or as binary doubles, or as a listpack or ziplist.

use crate::rdb::kind;
use crate::rdb::listpack::{Items, Listpack};
use crate::rdb::text::Reader;
use crate::value::zset::{Entry, Limits, Zset};
use crate::value::{Item, are_distinct, number};
use std::borrow::Cow;

/// The length bytes of a score that mean: not a number, and the infinities.
const NAN: u8 = 253;
const INFINITY: u8 = 254;
const NEGATIVE_INFINITY: u8 = 255;

impl Reader<'_> {
    pub(super) fn zset(&mut self, kind: u8, limits: &Limits) -> Option<Zset> {
        match kind {
            kind::ZSET | kind::ZSET_2 => {
                let count = self.length()?;
                let mut entries = Vec::new();
                for _ in 0..count {
                    let member = self.text()?;
                    let score = if kind == kind::ZSET { self.digits() } else { self.double() };
                    entries.push((member, score.filter(|score| !score.is_nan())?));
                }
                built(entries, limits)
            }
            _ => {
                let bytes = self.part()?;
                // The length of a member does not matter if all come at once.
                let limits = &Limits { bytes: usize::MAX, ..*limits };
                if kind == kind::ZSET_ZIPLIST {
                    let items: Vec<_> = self.ziplist(&bytes)?.collect();
                    return built(entries_of(items.iter().copied())?, limits);
                }
                match texts_with_scores(self.open_listpack(&bytes)?) {
                    Some(entries) => built_of_texts(entries, limits),
                    None => built(entries_of(Listpack::check(&bytes)?.iter())?, limits),
                }
            }
        }
    }

    /// A score in digits, with their number in front.
    fn digits(&mut self) -> Option<f64> {
        match self.byte()? {
            NAN => Some(f64::NAN),
            INFINITY => Some(f64::INFINITY),
            NEGATIVE_INFINITY => Some(f64::NEG_INFINITY),
            length => number::parse_f64(self.bytes(length.into())?),
        }
    }
}

/// Members with their scores, of which none is not a number.
type Entries<'a> = Vec<(Cow<'a, [u8]>, f64)>;

/// The members and scores that alternate; `None` if a score is not a number, or one is missing.
fn entries_of<'a>(items: impl ExactSizeIterator<Item = Item<'a>>) -> Option<Entries<'a>> {
    super::pairs(items)?.map(|(member, score)| Some((member.to_cow(), score_of(score)?))).collect()
}

/// The entries of a listpack if all members are short texts, as most are; they are not copied.
#[inline(never)]
fn texts_with_scores(mut items: Items<'_>) -> Option<Vec<Entry<'_>>> {
    let count = items.len() / 2;
    let (mut ahead, mut entries) = (items.ahead(), Vec::with_capacity(count));
    for _ in 0..count {
        let member = ahead.text()?;
        let score = match ahead.short_integer() {
            Some(number) => number as f64,
            None => score_of(ahead.item()?)?,
        };
        entries.push(Entry { member, score });
    }
    items.skip_to(ahead, 2 * count)?;
    items.are_at_end().then_some(entries)
}

fn score_of(item: Item<'_>) -> Option<f64> {
    match item {
        Item::Int(number) => Some(number as f64),
        Item::Text(..) => number::parse_f64(&item.to_cow()).filter(|score| !score.is_nan()),
    }
}

/// Builds the sorted set of some entries; `None` if two members are equal.
fn built(entries: Entries<'_>, limits: &Limits) -> Option<Zset> {
    let members = entries.iter().map(|(member, _)| Item::Text(member, &[]));
    are_distinct(members).then(|| Zset::from_entries(entries, limits))
}

#[inline(never)]
fn built_of_texts(entries: Vec<Entry<'_>>, limits: &Limits) -> Option<Zset> {
    let members = entries.iter().map(|entry| Item::Text(entry.member, &[]));
    are_distinct(members).then(|| Zset::of_entries(entries, limits))
}
