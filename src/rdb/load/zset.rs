//! Sorted sets: members with scores as digits or as binary doubles, or as a listpack or ziplist.

use crate::rdb::kind;
use crate::rdb::listpack::Listpack;
use crate::rdb::text::Reader;
use crate::value::zset::{Limits, Zset};
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
                let bytes = self.text()?;
                let entries = match kind {
                    kind::ZSET_ZIPLIST => {
                        let items: Vec<_> = self.ziplist(&bytes)?.collect();
                        let pairs = super::pairs(items.iter().copied())?;
                        pairs.map(|(member, score)| Some((member.to_cow(), score_of(score)?))).collect::<Option<_>>()?
                    }
                    _ => entries_of(self.listpack(&bytes)?)?,
                };
                // The length of a member does not matter if all come at once.
                built(entries, &Limits { bytes: usize::MAX, ..*limits })
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

/// The members and scores that alternate in a listpack; `None` if a score is not a number, or one is missing.
fn entries_of(listpack: Listpack<'_>) -> Option<Entries<'_>> {
    let mut items = listpack.iter();
    let mut entries = Vec::with_capacity(items.len() / 2);
    while items.len() > 0 {
        let member = match items.next_short_text() {
            Some(text) => Cow::Borrowed(text),
            None => items.next()?.to_cow(),
        };
        let mut ahead = items.clone();
        let score = match ahead.next_integer() {
            Some(number) => {
                items = ahead;
                number as f64
            }
            None => score_of(items.next()?)?,
        };
        entries.push((member, score));
    }
    Some(entries)
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
