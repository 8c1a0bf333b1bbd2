//! Lists: one element after the other, or in nodes.

use crate::rdb::kind;
use crate::rdb::legacy::Ziplist;
use crate::rdb::listpack::{Builder, Listpack};
use crate::rdb::save::{ALONE, TOGETHER};
use crate::rdb::text::Reader;
use crate::value::list::{Limits, List, Node};
use std::borrow::Cow;

/// A node that has been read.
enum Piece<'p> {
    Alone(Cow<'p, [u8]>),
    /// A listpack that has been checked.
    Together(Cow<'p, [u8]>),
}

impl<'p> Reader<'p> {
    pub(super) fn list(&mut self, kind: u8, limits: &Limits) -> Option<List> {
        match kind {
            kind::LIST => {
                let count = self.length()?;
                let elements: Option<Vec<_>> = (0..count).map(|_| self.text()).collect();
                Some(List::from_elements(elements?.iter().map(|element| &**element), limits))
            }
            kind::LIST_ZIPLIST => {
                let bytes = self.text()?;
                let elements: Vec<Vec<u8>> = self.ziplist(&bytes)?.map(|item| item.to_vec()).collect();
                Some(List::long_from_elements(elements.iter().map(Vec::as_slice), limits))
            }
            _ => {
                let count = self.length()?;
                let pieces: Option<Vec<_>> = (0..count).map(|_| self.piece(kind)).collect();
                let pieces = pieces?;
                let nodes = pieces.iter().filter_map(|piece| match piece {
                    Piece::Alone(element) => Some(Node::Large(element)),
                    Piece::Together(bytes) => Listpack::check(bytes).map(|listpack| Node::Packed(listpack.iter())),
                });
                Some(List::from_nodes(nodes, limits))
            }
        }
    }

    fn piece(&mut self, kind: u8) -> Option<Piece<'p>> {
        let container = if kind == kind::LIST_QUICKLIST_2 { self.length()? } else { TOGETHER };
        let bytes = self.text().filter(|bytes| !bytes.is_empty())?;
        match (kind, container) {
            (_, ALONE) => Some(Piece::Alone(bytes)),
            (kind::LIST_QUICKLIST, TOGETHER) => {
                let elements: Ziplist<'_> = self.ziplist(&bytes)?;
                Some(Piece::Together(Cow::Owned(Builder::of(elements))))
            }
            (_, TOGETHER) => {
                self.listpack(&bytes)?;
                Some(Piece::Together(bytes))
            }
            _ => None,
        }
    }
}
