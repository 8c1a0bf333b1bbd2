//! Serializes values, in the forms in which Redis 8.0 writes its own.
//!
//! The bytes are the same as Redis's wherever they follow from the value: Redis writes a table in the order of its
//! hashes, which is random.

use super::kind;
use super::listpack::Builder;
use super::text::{Sink, Writer};
use crate::value::list::Node;
use crate::value::{HashView, Item, List, Set, View, Zset, number};
use std::io;

/// The mark of a list node that is one element by itself, and of one that is a listpack.
pub(super) const ALONE: u64 = 1;
pub(super) const TOGETHER: u64 = 2;

/// The type byte of the form in which [`Writer::value`] writes a value in the present version.
pub fn kind_of(view: View<'_>) -> u8 {
    match view {
        View::Text(_) => kind::TEXT,
        View::List(_) => kind::LIST_QUICKLIST_2,
        View::Set(set) => match set.encoding() {
            "intset" => kind::SET_INTSET,
            "listpack" => kind::SET_LISTPACK,
            _ => kind::SET,
        },
        View::Hash(hash) => match (hash.encoding(), hash.first_deadline()) {
            ("listpack", _) => kind::HASH_LISTPACK,
            ("listpackex", _) => kind::HASH_LISTPACK_EX,
            (_, Some(_)) => kind::HASH_METADATA,
            (_, None) => kind::HASH,
        },
        View::Zset(zset) if zset.is_listpack() => kind::ZSET_LISTPACK,
        View::Zset(_) => kind::ZSET_2,
        View::Stream(_) => kind::STREAM_3,
        View::VectorSet(_) => kind::MODULE_2,
    }
}

/// The bytes of the nodes of a list, before they are compressed.
pub fn node_bytes(list: &List) -> usize {
    let bytes = list.nodes().map(|node| match node {
        Node::Packed(items) => Builder::of(items).finish().len(),
        Node::Large(element) => element.len(),
    });
    bytes.sum()
}

impl Writer {
    /// The type byte of the form in which [`Writer::value`] writes a value.
    pub(super) fn kind_of(&self, view: View<'_>) -> u8 {
        match kind_of(view) {
            kind if kind::version(kind) <= self.version => kind,
            kind::SET_LISTPACK => kind::SET,
            kind::STREAM_3 => kind::STREAM_2,
            kind => kind,
        }
    }

    /// Appends a value, without its type byte.
    pub fn value(&mut self, view: View<'_>) {
        let written = self.value_in_parts(view, &mut |_| Ok(()));
        debug_assert!(written.is_ok(), "nothing is passed on that could fail");
    }

    /// Like [`Writer::value`], passing on what was written between two elements. So a large value takes no memory, and
    /// its bytes are still in the processor's cache when they are passed on.
    pub(super) fn value_in_parts(&mut self, view: View<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        match view {
            View::Text(text) => {
                self.text(text.as_bytes(&mut itoa::Buffer::new()));
                Ok(())
            }
            View::List(list) => self.list(list, sink),
            View::Set(set) => self.set(set, sink),
            View::Hash(hash) => self.hash(hash, sink),
            View::Zset(zset) => self.zset(zset, sink),
            View::Stream(stream) => self.stream(stream, sink),
            View::VectorSet(set) => self.vector_set(set, sink),
        }
    }

    fn list(&mut self, list: &List, sink: &mut Sink<'_>) -> io::Result<()> {
        let nodes = list.nodes();
        self.length(nodes.len() as u64);
        for node in nodes {
            match node {
                Node::Packed(items) => {
                    self.length(TOGETHER);
                    self.listpack(|builder| builder.extend_by_words(items));
                }
                Node::Large(element) => {
                    self.length(ALONE);
                    self.text(element);
                }
            }
            self.pass_on(sink)?;
        }
        Ok(())
    }

    fn set(&mut self, set: &Set, sink: &mut Sink<'_>) -> io::Result<()> {
        if let Some(width) = set.integer_bytes() {
            let mut bytes = (width as u32).to_le_bytes().to_vec();
            bytes.extend_from_slice(&(set.len() as u32).to_le_bytes());
            set.append_integers_to(&mut bytes);
            self.text(&bytes);
            return Ok(());
        }
        if self.kind_of(View::Set(set)) == kind::SET_LISTPACK {
            self.listpack(|builder| builder.extend(set.iter()));
            return Ok(());
        }
        self.length(set.len() as u64);
        set.iter().try_for_each(|member| {
            self.item(member);
            self.pass_on(sink)
        })
    }

    fn hash(&mut self, hash: HashView<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        if let Some(items) = hash.packed_items() {
            self.listpack(|builder| builder.extend_by_words(items));
            return Ok(());
        }
        match (kind_of(View::Hash(hash)), hash.first_deadline()) {
            (kind::HASH_LISTPACK_EX, first_ms) => {
                self.moment(first_ms.unwrap_or(0));
                self.listpack(|builder| {
                    for (entry, deadline_ms) in hash.iter_timed() {
                        builder.extend([entry.field, entry.value, Item::Int(deadline_ms)]);
                    }
                });
            }
            (_, Some(first_ms)) => {
                self.moment(first_ms);
                self.length(hash.len() as u64);
                for (entry, deadline_ms) in hash.iter_timed() {
                    self.length(if deadline_ms == 0 { 0 } else { deadline_ms.abs_diff(first_ms) + 1 });
                    self.item(entry.field);
                    self.item(entry.value);
                    self.pass_on(sink)?;
                }
            }
            (_, None) => {
                self.length(hash.len() as u64);
                for entry in hash.iter() {
                    self.item(entry.field);
                    self.item(entry.value);
                    self.pass_on(sink)?;
                }
            }
        }
        Ok(())
    }

    fn zset(&mut self, zset: &Zset, sink: &mut Sink<'_>) -> io::Result<()> {
        if zset.is_listpack() {
            let mut score = Vec::new();
            self.listpack(|builder| {
                zset.iter().for_each(|entry| {
                    builder.push(Item::of(entry.member));
                    if let Some(number) = number::whole(entry.score) {
                        return builder.push_integer(number);
                    }
                    score.clear();
                    number::write_f64(&mut score, entry.score);
                    builder.push(Item::of(&score));
                });
            });
            return Ok(());
        }
        self.length(zset.len() as u64);
        // From the highest on, so that a loader can insert each before the others.
        for entry in zset.iter().rev() {
            self.text(entry.member);
            self.double(entry.score);
            self.pass_on(sink)?;
        }
        Ok(())
    }

    fn item(&mut self, item: Item<'_>) {
        self.text(item.as_bytes(&mut Vec::new()));
    }
}
