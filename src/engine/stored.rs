//! Which stored values a handler can open as what.
//!
//! The door to the data ([`crate::engine::Ctx`]) is written once for all types; a type that lives behind it says here
//! how it is recognised, made and found empty. Text is not here: it lies inside its key's record and has doors of its
//! own.

use crate::keyspace::ValueMut;
use crate::value::zset::Zset;
use crate::value::{Value, View};

/// A collection that a key can hold. A key never holds an empty one.
pub trait Stored: Sized {
    /// The collection in `view`, if it is one of this type.
    fn of(view: View<'_>) -> Option<&Self>;
    /// The collection in `value`, to be changed.
    fn of_mut(value: ValueMut<'_>) -> Option<&mut Self>;
    /// One without elements.
    fn empty() -> Self;
    /// True when it has no elements.
    fn is_empty(&self) -> bool;
    /// The collection as a value to be stored.
    fn into_value(self) -> Value;
}

impl Stored for Zset {
    fn of(view: View<'_>) -> Option<&Self> {
        match view {
            View::Zset(zset) => Some(zset),
            View::Text(_) => None,
        }
    }

    fn of_mut(value: ValueMut<'_>) -> Option<&mut Self> {
        match value {
            ValueMut::Zset(zset) => Some(zset),
        }
    }

    fn empty() -> Self {
        Zset::new()
    }

    fn is_empty(&self) -> bool {
        Zset::is_empty(self)
    }

    fn into_value(self) -> Value {
        Value::Zset(self)
    }
}
