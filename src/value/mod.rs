//! The values: the types that a key can hold. Pure structures that know no key, no reply and no clock.
//!
//! A [`Value`] owns its contents, a [`View`] is a stored value for reading, a [`ValueMut`] one for changing. A short
//! text never exists as a `Value` while it is stored: the keyspace keeps its bytes inside the key's record and lends
//! them out as a `View`. To add a type, add one variant to each of the three enums and let the compiler point at the
//! places to change.

mod arena;
pub(crate) mod base;
pub mod bits;
mod columns;
mod copy;
pub(crate) mod deadlines;
mod distinct;
mod fork;
pub mod geo;
pub mod glob;
pub mod hash;
pub mod hash_slot;
pub(crate) mod hashing;
pub mod hexadecimal;
pub mod hyperloglog;
mod index;
mod integers;
pub mod item;
pub mod list;
pub(crate) mod listpack;
mod members;
pub mod number;
mod packed_list;
mod prefetch;
pub mod set;
mod shared_bytes;
pub mod simd;
mod slab;
mod sorted_chunks;
pub mod stream;
mod table;
pub mod text;
pub mod vector_set;
pub mod zset;

pub(crate) use copy::copy_short;
pub use distinct::are_distinct;
pub use hash::{Hash, HashView};
pub use item::Item;
pub use list::List;
pub use prefetch::Prefetch;
pub use set::Set;
pub use shared_bytes::{ReceivedBuffer, SharedBytes};
pub use stream::Stream;
pub use text::{Text, TextView};
pub use vector_set::VectorSet;
pub use zset::Zset;

/// A value that owns its contents.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(Text),
    /// A sorted set.
    Zset(Zset),
    /// A list.
    List(List),
    /// A set.
    Set(Set),
    /// A hash.
    Hash(Hash),
    /// A stream.
    Stream(Stream),
    /// A vector set.
    VectorSet(Box<VectorSet>),
}

impl Value {
    /// A view of this value, for reading.
    pub fn view(&self) -> View<'_> {
        match self {
            Value::Text(text) => View::Text(text.view()),
            Value::Zset(zset) => View::Zset(zset),
            Value::List(list) => View::List(list),
            Value::Set(set) => View::Set(set),
            Value::Hash(hash) => View::Hash(hash.view()),
            Value::Stream(stream) => View::Stream(stream),
            Value::VectorSet(set) => View::VectorSet(set),
        }
    }

    /// The type name that `TYPE` replies.
    pub fn type_name(&self) -> &'static str {
        self.view().type_name()
    }

    /// The place of its type in [`TYPES`].
    #[inline]
    pub fn type_number(&self) -> usize {
        match self {
            Value::Text(_) => 0,
            Value::Zset(_) => 1,
            Value::List(_) => 2,
            Value::Set(_) => 3,
            Value::Hash(_) => 4,
            Value::Stream(_) => 5,
            Value::VectorSet(_) => 6,
        }
    }

    /// The encoding that `OBJECT ENCODING` replies.
    pub fn encoding(&self) -> &'static str {
        self.view().encoding()
    }

    /// The bytes of memory held outside the `Value` itself.
    pub fn memory(&self) -> usize {
        match self {
            Value::Text(text) => text.memory(),
            Value::Zset(zset) => zset.memory(),
            Value::List(list) => list.memory(),
            Value::Set(set) => set.memory(),
            Value::Hash(hash) => hash.memory(),
            Value::Stream(stream) => stream.memory(),
            Value::VectorSet(set) => size_of::<VectorSet>() + set.memory(),
        }
    }

    /// The number of its allocations that grows with its contents: nodes and blocks. Other types have one array.
    pub fn parts(&self) -> usize {
        match self {
            Value::List(list) => list.nodes().len(),
            Value::Stream(stream) => stream.log().block_count(),
            Value::VectorSet(set) => set.len(),
            Value::Text(_) | Value::Zset(_) | Value::Set(_) | Value::Hash(_) => 1,
        }
    }

    /// This value, for changing in place; `None` for a text, which the keyspace edits itself.
    pub fn object_mut(&mut self) -> Option<ValueMut<'_>> {
        match self {
            Value::Text(_) => None,
            Value::Zset(zset) => Some(ValueMut::Zset(zset)),
            Value::List(list) => Some(ValueMut::List(list)),
            Value::Set(set) => Some(ValueMut::Set(set)),
            Value::Hash(hash) => Some(ValueMut::Hash(hash)),
            Value::Stream(stream) => Some(ValueMut::Stream(stream)),
            Value::VectorSet(set) => Some(ValueMut::VectorSet(set)),
        }
    }
}

/// A stored value, for reading.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// A string.
    Text(TextView<'a>),
    /// A sorted set.
    Zset(&'a Zset),
    /// A list.
    List(&'a List),
    /// A set.
    Set(&'a Set),
    /// A hash.
    Hash(HashView<'a>),
    /// A stream.
    Stream(&'a Stream),
    /// A vector set.
    VectorSet(&'a VectorSet),
}

/// The name of the type of a text.
pub const TEXT_TYPE: &str = "string";

/// The names of all types.
pub const TYPES: [&str; 7] = [TEXT_TYPE, "zset", "list", "set", "hash", "stream", "vectorset"];

impl View<'_> {
    /// The type name that `TYPE` replies.
    pub fn type_name(&self) -> &'static str {
        TYPES[self.type_number()]
    }

    /// The place of its type in [`TYPES`].
    #[inline]
    pub fn type_number(&self) -> usize {
        match self {
            View::Text(_) => 0,
            View::Zset(_) => 1,
            View::List(_) => 2,
            View::Set(_) => 3,
            View::Hash(_) => 4,
            View::Stream(_) => 5,
            View::VectorSet(_) => 6,
        }
    }

    /// The encoding that `OBJECT ENCODING` replies.
    pub fn encoding(&self) -> &'static str {
        match self {
            View::Text(text) => text.encoding(),
            View::Zset(zset) => zset.encoding(),
            View::List(list) => list.encoding(),
            View::Set(set) => set.encoding(),
            View::Hash(hash) => hash.encoding(),
            View::Stream(stream) => stream.encoding(),
            View::VectorSet(_) => "raw",
        }
    }

    /// The earliest deadline of its parts, in unix milliseconds: the fields of a hash can have deadlines.
    pub fn first_deadline(&self) -> Option<i64> {
        match self {
            View::Hash(hash) => hash.first_deadline(),
            View::Text(_) | View::Zset(_) | View::List(_) | View::Set(_) | View::Stream(_) | View::VectorSet(_) => None,
        }
    }

    /// Bytes in cells, of which a collection can hold 8 GiB.
    pub fn cell_bytes(&self) -> usize {
        match self {
            View::Text(_) | View::List(_) | View::Stream(_) | View::VectorSet(_) => 0,
            View::Zset(zset) => zset.cell_bytes(),
            View::Set(set) => set.cell_bytes(),
            View::Hash(hash) => hash.cell_bytes(),
        }
    }

    /// A copy that owns its contents.
    pub fn to_value(&self) -> Value {
        match *self {
            View::Text(text) => Value::Text(text.to_text()),
            View::Zset(zset) => Value::Zset(zset.clone()),
            View::List(list) => Value::List(list.clone()),
            View::Set(set) => Value::Set(set.clone()),
            View::Hash(hash) => Value::Hash(hash.to_hash()),
            View::Stream(stream) => Value::Stream(stream.clone()),
            View::VectorSet(set) => Value::VectorSet(Box::new(set.clone())),
        }
    }
}

/// A stored value that can be changed in place.
#[derive(Debug)]
pub enum ValueMut<'a> {
    /// A sorted set.
    Zset(&'a mut Zset),
    /// A list.
    List(&'a mut List),
    /// A set.
    Set(&'a mut Set),
    /// A hash.
    Hash(&'a mut Hash),
    /// A stream.
    Stream(&'a mut Stream),
    /// A vector set.
    VectorSet(&'a mut VectorSet),
}
