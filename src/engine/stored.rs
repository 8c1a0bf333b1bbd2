//! Which stored values a handler can open as what.
//!
//! The door to the data ([`crate::engine::Ctx`]) is written once for all types; a type that lives behind it says here
//! how it is recognised, made and found empty. Text is not here: it lies inside its key's record and has doors of its
//! own.

use crate::keyspace::ValueMut;
use crate::value::{Hash, HashView, List, Set, Value, View, Zset};

/// A collection that a key can hold. A key never holds an empty one.
pub trait Stored: Sized {
    /// How it is read.
    type View<'a>
    where
        Self: 'a;

    /// The collection in `view`, if it is one of this type.
    fn of(view: View<'_>) -> Option<Self::View<'_>>;
    /// The collection in `value`, to be changed.
    fn of_mut(value: ValueMut<'_>) -> Option<&mut Self>;
    /// One without elements.
    fn empty() -> Self;
    /// True when it has no elements.
    fn is_empty(&self) -> bool;
    /// The collection as a value to be stored.
    fn into_value(self) -> Value;
}

macro_rules! stored {
    ($($kind:ident as $view:ty),*) => {$(
        impl Stored for $kind {
            type View<'a> = $view;

            fn of(view: View<'_>) -> Option<Self::View<'_>> {
                if let View::$kind(stored) = view { Some(stored) } else { None }
            }

            fn of_mut(value: ValueMut<'_>) -> Option<&mut Self> {
                if let ValueMut::$kind(stored) = value { Some(stored) } else { None }
            }

            fn empty() -> Self {
                $kind::new()
            }

            fn is_empty(&self) -> bool {
                $kind::is_empty(self)
            }

            fn into_value(self) -> Value {
                Value::$kind(self)
            }
        }
    )*};
}

stored!(Zset as &'a Zset, List as &'a List, Set as &'a Set, Hash as HashView<'a>);
