//! An entry for reading: its id, and its pairs of fields and values, which are in its block.

use super::coding::Reader;
use super::id::Id;
use crate::value::item::{Item, Word};

/// An entry of a stream, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    id: Id,
    len: usize,
    /// The fields, if it shares those of its block; otherwise each field is in front of its value.
    fields: Option<Reader<'a>>,
    /// The values, and the entries behind.
    values: Reader<'a>,
}

impl<'a> Entry<'a> {
    pub(super) fn new(id: Id, len: usize, fields: Option<Reader<'a>>, values: Reader<'a>) -> Entry<'a> {
        Entry { id, len, fields, values }
    }

    /// The id of the entry.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The number of its pairs of field and value.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the entry has no pair; every entry has some.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values alone, if the fields are those of its block.
    #[inline]
    pub fn shared_values(&self) -> Option<impl Iterator<Item = Word<'a>> + use<'a>> {
        let mut values = self.values;
        self.fields.is_some().then(|| (0..self.len).map(move |_| values.word()))
    }

    /// The fields, each with its value.
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
