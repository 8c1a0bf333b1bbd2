//! The collection types that a handler can open in a key.
//!
//! The access to the data ([`crate::engine::Ctx`]) is written once for all types; each type defines here how it is
//! recognised, created and found empty. Strings are not here: they are inside their key's record and have separate
//! methods.

use crate::keyspace::ValueMut;
use crate::value::{Hash, HashView, List, Set, Stream, Value, VectorSet, View, Zset};

/// A collection that a key can hold. A key never holds an empty one, unless it is a stream.
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
    /// True when it has no elements and no key holds it so.
    fn is_empty(&self) -> bool;
    /// The collection as a value to be stored.
    fn into_value(self) -> Value;
}

macro_rules! stored {
    ($($kind:ident as $view:ty, $is_empty:expr;)*) => {$(
        impl Stored for $kind {
            type View<'a> = $view;

            fn of(view: View<'_>) -> Option<Self::View<'_>> {
                if let View::$kind(stored) = view { Some(stored) } else { None }
            }

            fn of_mut(value: ValueMut<'_>) -> Option<&mut Self> {
                if let ValueMut::$kind(stored) = value { Some(stored) } else { None }
            }

            fn empty() -> Self {
                $kind::default()
            }

            fn is_empty(&self) -> bool {
                $is_empty(self)
            }

            fn into_value(self) -> Value {
                Value::$kind(self.into())
            }
        }
    )*};
}

stored! {
    Zset as &'a Zset, Zset::is_empty;
    List as &'a List, List::is_empty;
    Set as &'a Set, Set::is_empty;
    Hash as HashView<'a>, Hash::is_empty;
    Stream as &'a Stream, |_: &Stream| false;
    VectorSet as &'a VectorSet, VectorSet::is_empty;
}
