//! Editing the bytes of a text.
//!
//! A long text is edited where it is. A short one, which its record contains, is edited in memory that is kept from one
//! edit to the next, and written back if it has changed.

use super::Database;
use crate::keyspace::record::Payload;
use crate::keyspace::records::Records;
use crate::keyspace::{KeyHandle, New};
use crate::value::{Text, TextView, Value, View};

/// The most bytes of memory that are kept.
const SCRATCH_BYTES: usize = 4096;

impl<const LINES: usize> Database<LINES> {
    /// Edits the bytes of the text at `slot`, which is raw from then on.
    ///
    /// # Panics
    /// If the value is not a text.
    pub fn edit_text<R>(&mut self, slot: KeyHandle, edit: impl FnOnce(&mut Vec<u8>) -> R) -> (KeyHandle, R) {
        if let Payload::Apart(_) = self.records.record(slot.0).payload() {
            return (slot, self.edit_text_apart(slot, edit));
        }
        let mut bytes = std::mem::take(&mut self.scratch);
        if let View::Text(text) = self.view(slot) {
            text.append_to(&mut bytes);
        }
        let result = edit(&mut bytes);
        if matches!(self.view(slot), View::Text(TextView::Raw(before)) if *before == *bytes) {
            self.keep_scratch(bytes);
            return (slot, result);
        }
        let text = Text::Raw(bytes);
        let key_len = self.key(slot).len();
        if !Records::keeps(key_len, &text) {
            return (self.replace(slot, New::Value(Value::Text(text))).0, result);
        }
        let (slot, _) = self.replace(slot, New::Text(text.view()));
        self.keep_scratch(text.into_vec());
        (slot, result)
    }

    /// Keeps memory for the next text that is edited.
    fn keep_scratch(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        bytes.shrink_to(SCRATCH_BYTES);
        self.scratch = bytes;
    }

    fn edit_text_apart<R>(&mut self, slot: KeyHandle, edit: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.before_edit(slot);
        let edited = self.records.edit(slot.0, |value| {
            let Some(Value::Text(text)) = value else { panic!("edit_text is for texts") };
            let mut bytes = std::mem::replace(text, Text::Int(0)).into_vec();
            let result = edit(&mut bytes);
            *text = Text::Raw(bytes);
            result
        });
        edited.1
    }
}
