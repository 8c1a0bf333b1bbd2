//! Changing strings in place.

use super::lookup::touch_changed;
use super::{Changed, Ctx, after, insert};
use crate::engine::exec::access;
use crate::engine::spec::{Error, Event};
use crate::keyspace::New;
use crate::value::text::TextView;
use crate::value::{Text, Value, View};

impl Ctx<'_> {
    /// Changes the bytes of the string that `key` holds, an empty one if the key does not exist. An empty result does
    /// not remove the key: it may hold an empty string. The handler decides first whether the key is to be created at
    /// all. Without an event only WATCH and key tracking notice the change.
    ///
    /// # Errors
    /// [`Error::WrongType`], or the error of `act`, which must leave the bytes as they were then; nothing changed.
    pub fn update_text<R>(
        &mut self,
        key: &[u8],
        event: impl Into<Option<Event>>,
        act: impl FnOnce(&mut Vec<u8>) -> Result<Changed<R>, Error>,
    ) -> Result<R, Error> {
        let changed = match access::live_to_change(self.engine, self.database, key) {
            Some(handle) => {
                touch_changed(self, handle);
                let database = self.engine.databases.get_mut(self.database);
                let View::Text(_) = database.view(handle) else { return Err(Error::WrongType) };
                database.edit_text(handle, act).1?
            }
            None => {
                let mut bytes = Vec::new();
                let changed = act(&mut bytes)?;
                insert(self.engine, self.database, key, New::Value(Value::Text(Text::Raw(bytes))));
                changed
            }
        };
        if changed.is_event {
            after(self.engine, self.database, key, event, changed.count);
        }
        Ok(changed.result)
    }

    /// Replaces the integer that `key` holds, or a new key's, by the result of `act`. The deadline is kept.
    ///
    /// # Errors
    /// [`Error::WrongType`], or the error of `act`; in both cases nothing changed.
    pub fn update_int(
        &mut self,
        key: &[u8],
        event: Event,
        act: impl FnOnce(Option<TextView<'_>>) -> Result<i64, Error>,
    ) -> Result<i64, Error> {
        let number = match access::live_to_change(self.engine, self.database, key) {
            Some(handle) => {
                touch_changed(self, handle);
                let database = self.engine.databases.get_mut(self.database);
                let View::Text(text) = database.view(handle) else { return Err(Error::WrongType) };
                let number = act(Some(text))?;
                database.set_int(handle, number);
                number
            }
            None => {
                let number = act(None)?;
                insert(self.engine, self.database, key, New::Text(TextView::Int(number)));
                number
            }
        };
        after(self.engine, self.database, key, event, 1);
        Ok(number)
    }
}
