//! Sorted sets: members with scores as digits or as binary doubles, or as a listpack or ziplist.

use crate::rdb::kind;
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
                let items = self.items(&bytes, kind == kind::ZSET_ZIPLIST)?;
                let scored = super::pairs(&items)?.map(|(member, score)| Some((member.to_cow(), score_of(score)?)));
                // The length of a member does not matter if all come at once.
                built(scored.collect::<Option<_>>()?, &Limits { bytes: usize::MAX, ..*limits })
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

fn score_of(item: Item<'_>) -> Option<f64> {
    match item {
        Item::Int(number) => Some(number as f64),
        Item::Text(..) => number::parse_f64(&item.to_cow()).filter(|score| !score.is_nan()),
    }
}

/// Builds the sorted set of some entries; `None` if two members are equal.
fn built(entries: Vec<(Cow<'_, [u8]>, f64)>, limits: &Limits) -> Option<Zset> {
    let members = entries.iter().map(|(member, _)| Item::Text(member, &[]));
    are_distinct(members).then(|| Zset::from_entries(entries, limits))
}
