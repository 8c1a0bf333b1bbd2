//! Changes to a value's metadata: the consumer groups of a stream, and how far they have read.
//!
//! Such a change counts as one, and may have an event, but it does not break WATCH.

use super::lookup::touch_changed;
use super::{Ctx, signal};
use crate::engine::exec::{Stored, access, changes};
use crate::engine::spec::{Error, Event};
use crate::resp::Reply;

/// A change to metadata that a closure made: how many changes it counts as, its event, and the closure's result.
#[derive(Debug)]
pub struct MetadataChange<R> {
    /// The number of changes that this counts as.
    pub count: u64,
    /// The event to publish, if any.
    pub event: Option<Event>,
    /// The result for the handler.
    pub result: R,
    /// Whether the key is then ready for its blocked clients.
    is_ready: bool,
}

impl<R> MetadataChange<R> {
    /// A change that counts as `count` changes, with its event, if it has one, and a result.
    pub fn by(count: usize, event: Option<Event>, result: R) -> MetadataChange<R> {
        MetadataChange { count: count as u64, event, result, is_ready: false }
    }

    /// This change, after which the key is ready for its blocked clients.
    pub fn ready(self) -> MetadataChange<R> {
        MetadataChange { is_ready: true, ..self }
    }
}

impl Ctx<'_> {
    /// Changes the metadata of the collection that `key` holds; `None` when the key does not exist.
    ///
    /// # Errors
    /// [`Error::WrongType`], or the error of `act`; in both cases nothing changed.
    pub fn update_metadata<T: Stored, R>(
        &mut self,
        key: &[u8],
        act: impl FnOnce(&mut T, &mut Reply<'_>) -> Result<MetadataChange<R>, Error>,
    ) -> Result<Option<R>, Error> {
        let Some(handle) = access::live_to_change(self.engine, self.database, key) else { return Ok(None) };
        touch_changed(self, handle);
        let reply = &mut self.reply;
        let database = self.engine.databases.get_mut(self.database);
        let (_, changed) = database.edit_object(handle, |value| {
            let Some(stored) = value.and_then(T::of_mut) else { return Err(Error::WrongType) };
            act(stored, reply)
        });
        let changed = changed?;
        self.engine.stats.changes += changed.count;
        if let Some(event) = changed.event {
            changes::announce(self.engine, self.database, event, key);
        }
        if changed.is_ready {
            signal(self.engine, self.database, key);
        }
        Ok(Some(changed.result))
    }
}
