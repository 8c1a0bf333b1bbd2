//! An entry as it is read: its id, and pairs of fields and values that lie in its block.

use super::coding::Reader;
use super::id::Id;
use crate::value::item::Item;

/// An entry of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    id: Id,
    len: usize,
    /// The fields, if it shares those of its block; else each stands before its value.
    fields: Option<Reader<'a>>,
    values: Reader<'a>,
}

impl<'a> Entry<'a> {
    pub(super) fn new(id: Id, len: usize, fields: Option<Reader<'a>>, values: Reader<'a>) -> Entry<'a> {
        Entry { id, len, fields, values }
    }

    /// Its id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// How many pairs it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no pair; no entry is so.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its fields, each with its value.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (Item<'a>, Item<'a>)> + Clone + use<'a> {
        let (mut fields, mut values) = (self.fields, self.values);
        (0..self.len).map(move |_| {
            let field = match &mut fields {
                Some(fields) => fields.item(),
                None => values.item(),
            };
            (field, values.item())
        })
    }
}
