//! Lists: one element after the other, or in nodes.

use crate::rdb::kind;
use crate::rdb::listpack::Unchecked;
use crate::rdb::save::{ALONE, TOGETHER};
use crate::rdb::text::Reader;
use crate::value::list::{self, Limits, List};
use std::cell::Cell;

impl Reader<'_> {
    pub(super) fn list(&mut self, kind: u8, limits: &Limits) -> Option<List> {
        match kind {
            kind::LIST => {
                let count = self.length()?;
                let elements: Option<Vec<_>> = (0..count).map(|_| self.text()).collect();
                Some(List::from_elements(elements?.iter().map(|element| &**element), limits))
            }
            kind::LIST_ZIPLIST => {
                let bytes = self.part()?;
                let elements: Vec<Vec<u8>> = self.ziplist(&bytes)?.map(|item| item.to_vec()).collect();
                Some(List::long_from_elements(elements.iter().map(Vec::as_slice), limits))
            }
            _ => {
                let mut list = list::Builder::new(limits);
                for _ in 0..self.length()? {
                    self.node(kind, &mut list)?;
                }
                Some(list.finish())
            }
        }
    }

    /// Reads a node of a list.
    fn node(&mut self, kind: u8, list: &mut list::Builder) -> Option<()> {
        let container = if kind == kind::LIST_QUICKLIST_2 { self.length()? } else { TOGETHER };
        let bytes = self.part().filter(|bytes| !bytes.is_empty())?;
        let is_whole = Cell::new(true);
        match (kind, container) {
            (_, ALONE) => list.push_large(&bytes),
            (kind::LIST_QUICKLIST, TOGETHER) => list.push_packed(self.ziplist(&bytes)?),
            (_, TOGETHER) => {
                list.push_packed(Unchecked { items: self.open_listpack(&bytes)?, is_whole: &is_whole });
            }
            _ => return None,
        }
        is_whole.get().then_some(())
    }
}
