//! [`Peek`]: a key that a look-up found, with its value, deadline, last access and size.

use crate::engine::exec::Stored;
use crate::engine::spec::Error;
use crate::keyspace::{Database, KeyHandle};
use crate::value::View;
use crate::value::text::TextView;

/// A key that a look-up found. Reading from it leaves no trace: what is recorded, the look-up has recorded.
#[derive(Clone, Copy, Debug)]
pub struct Peek<'a> {
    database: &'a Database,
    handle: KeyHandle,
}

impl<'a> Peek<'a> {
    pub(super) fn new(database: &'a Database, handle: KeyHandle) -> Peek<'a> {
        Peek { database, handle }
    }

    /// The value of the key.
    pub fn view(self) -> View<'a> {
        self.database.view(self.handle)
    }

    /// The string that the key holds.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key holds another type.
    pub fn text(self) -> Result<TextView<'a>, Error> {
        if let View::Text(text) = self.view() { Ok(text) } else { Err(Error::WrongType) }
    }

    /// The collection that the key holds.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key holds another type.
    pub fn read<T: Stored>(self) -> Result<T::View<'a>, Error> {
        T::of(self.view()).ok_or(Error::WrongType)
    }

    /// Its deadline in unix milliseconds.
    pub fn deadline_ms(self) -> Option<i64> {
        self.database.deadline(self.handle)
    }

    /// When it was last used, see [`crate::engine::state::lru`].
    pub fn access(self) -> u32 {
        self.database.access(self.handle)
    }

    /// All bytes of memory that it takes.
    pub fn memory_bytes(self) -> usize {
        self.database.memory_of(self.handle)
    }
}
