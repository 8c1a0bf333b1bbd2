//! Changes beside the elements: who reads a stream, and how far.
//!
//! Such a change counts as one, and may be announced, but to who watches the key nothing has changed.

use super::Ctx;
use crate::engine::{Error, Event, Stored};
use crate::resp::Reply;

/// A change that a closure made beside the elements: as how many it counts, what is told of it, and its result.
#[derive(Debug)]
pub struct MetadataChange<R> {
    /// How many changes this counts as.
    pub count: u64,
    /// What is announced, if anything.
    pub event: Option<Event>,
    /// What the handler goes on with.
    pub result: R,
}

impl<R> MetadataChange<R> {
    /// `count` changes and a result.
    pub fn by(count: usize, event: Option<Event>, result: R) -> MetadataChange<R> {
        MetadataChange { count: count as u64, event, result }
    }
}

impl Ctx<'_> {
    /// Changes what stands beside the elements that `key` holds; `None` when there is no such key.
    ///
    /// # Errors
    /// [`Error::WrongType`], or what `act` refuses; in both cases nothing changed.
    pub fn edit_metadata<T: Stored, R>(
        &mut self,
        key: &[u8],
        act: impl FnOnce(&mut T, &mut Reply<'_>) -> Result<MetadataChange<R>, Error>,
    ) -> Result<Option<R>, Error> {
        let Some(slot) = self.engine.live_to_change(self.database, key) else { return Ok(None) };
        self.note_access(slot);
        let reply = &mut self.reply;
        let database = self.engine.databases.get_mut(self.database);
        let (_, changed) = database.edit_object(slot, |value| {
            let Some(stored) = value.and_then(T::of_mut) else { return Err(Error::WrongType) };
            act(stored, reply)
        });
        let changed = changed?;
        self.engine.stats.changes += changed.count;
        if let Some(event) = changed.event {
            self.engine.announce(self.database, event, key);
        }
        Ok(Some(changed.result))
    }
}
