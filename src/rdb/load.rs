//! Deserializes values, from every form in which Redis has written them.
//!
//! Nothing in a payload is trusted: not a length, a count or an order, nor that fields differ, nor that there are any
//! at all. Redis leaves some of this unchecked unless `sanitize-dump-payload` says otherwise; here a damaged payload
//! is always refused. As in Redis, the form in which a value is stored follows from the settings: from its number of
//! elements and, where these come one by one, their lengths.
//!
//! Each type has a file of its own, which reads all its forms; [`Reader::value`] dispatches to them.

mod hash;
mod list;
mod set;
mod skip;
mod stream;
mod zset;

use super::kind;
use super::legacy::Ziplist;
use super::listpack::{Items, Listpack};
use super::text::Reader;
use super::vector_set;
use crate::value::{self, Item, Text, Value};

/// The limits that decide the form in which a value is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forms {
    /// The limits of a list.
    pub list: value::list::Limits,
    /// The limits of a set.
    pub set: value::set::Limits,
    /// The limits of a hash.
    pub hash: value::hash::Limits,
    /// The limits of a sorted set.
    pub zset: value::zset::Limits,
}

impl Reader<'_> {
    /// Reads the next value, in the form of the type byte `kind`.
    pub fn value(&mut self, kind: u8, forms: &Forms) -> Option<Value> {
        match kind {
            kind::TEXT => self.text().map(|text| Value::Text(Text::of(text.into_owned()))),
            kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
                let list = self.list(kind, &forms.list)?;
                self.unless_empty(list.is_empty()).map(|()| Value::List(list))
            }
            kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => {
                let set = self.set(kind, &forms.set)?;
                self.unless_empty(set.is_empty()).map(|()| Value::Set(set))
            }
            kind::ZSET | kind::ZSET_2 | kind::ZSET_ZIPLIST | kind::ZSET_LISTPACK => {
                let zset = self.zset(kind, &forms.zset)?;
                self.unless_empty(zset.is_empty()).map(|()| Value::Zset(zset))
            }
            kind::HASH
            | kind::HASH_ZIPMAP
            | kind::HASH_ZIPLIST
            | kind::HASH_LISTPACK
            | kind::HASH_LISTPACK_EX
            | kind::HASH_LISTPACK_EX_PRE_GA
            | kind::HASH_METADATA
            | kind::HASH_METADATA_PRE_GA => {
                let hash = self.hash(kind, &forms.hash)?;
                self.unless_empty(hash.is_empty()).map(|()| Value::Hash(hash))
            }
            kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => self.stream(kind).map(Value::Stream),
            kind::MODULE_2 if self.length()? == vector_set::ID => self.vector_set_value(),
            _ => None,
        }
    }

    /// Reads a hash as Valkey 9 writes one whose fields have deadlines.
    pub(super) fn valkey_hash(&mut self, limits: &value::hash::Limits) -> Option<Value> {
        let hash = self.hash_of_valkey(limits)?;
        self.unless_empty(hash.is_empty()).map(|()| Value::Hash(hash))
    }

    /// Reads a vector set behind the id of its type.
    pub(super) fn vector_set_value(&mut self) -> Option<Value> {
        let set = self.vector_set()?;
        self.unless_empty(set.is_empty()).map(|()| Value::VectorSet(set.into()))
    }

    /// Notes that a collection is empty, which makes it no value.
    fn unless_empty(&mut self, is_empty: bool) -> Option<()> {
        self.is_empty_value |= is_empty;
        (!is_empty).then_some(())
    }
}

impl<'p> Reader<'p> {
    /// Checks bytes as a listpack, and takes the room for its elements.
    fn listpack<'b>(&mut self, bytes: &'b [u8]) -> Option<Listpack<'b>> {
        let listpack = Listpack::check(bytes)?;
        self.take_room(listpack.len(), 0)?;
        Some(listpack)
    }

    /// Takes the room for the elements of a listpack that is read once and checked on the way.
    fn open_listpack<'b>(&mut self, bytes: &'b [u8]) -> Option<Items<'b>> {
        let items = Listpack::open(bytes)?;
        self.take_room(items.len(), 0)?;
        Some(items)
    }

    /// Checks bytes as a ziplist, and takes the room for its elements.
    fn ziplist<'b>(&mut self, bytes: &'b [u8]) -> Option<Ziplist<'b>> {
        let ziplist = Ziplist::check(bytes)?;
        self.take_room(ziplist.clone().count(), 0)?;
        Some(ziplist)
    }
}

/// Pairs of consecutive elements; `None` if one is left over.
fn pairs<'a, I: ExactSizeIterator<Item = Item<'a>>>(items: I) -> Option<Pairs<I>> {
    items.len().is_multiple_of(2).then_some(Pairs { items })
}

/// Iterates over pairs of consecutive elements.
#[derive(Clone)]
struct Pairs<I> {
    items: I,
}

impl<'a, I: ExactSizeIterator<Item = Item<'a>>> Iterator for Pairs<I> {
    type Item = (Item<'a>, Item<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        Some((self.items.next()?, self.items.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.items.len() / 2, Some(self.items.len() / 2))
    }
}

impl<'a, I: ExactSizeIterator<Item = Item<'a>>> ExactSizeIterator for Pairs<I> {}
