//! What is stored: the types a key can hold. Pure structures that know no key, no reply and no clock.
//!
//! A [`Value`] owns its contents, a [`View`] is a stored value being read, a [`ValueMut`] one being changed. A short
//! text never exists as a `Value` while it is stored: the keyspace keeps its bytes inside the key's record and lends
//! them out as a `View`. To add a type is to add one variant to each of the three enums and let the compiler ask the
//! questions.

pub mod glob;
pub mod hash;
mod integers;
pub mod item;
pub mod list;
pub mod number;
pub mod set;
mod strip;
mod table;
pub mod text;
pub mod zset;

pub use hash::Hash;
pub use item::Item;
pub use list::List;
pub use set::Set;
pub use text::{Text, TextView};
pub use zset::Zset;

/// A value that owns its contents.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(Text),
    /// A sorted set.
    Zset(Zset),
}

impl Value {
    /// This value, to be read.
    pub fn view(&self) -> View<'_> {
        match self {
            Value::Text(text) => View::Text(text.view()),
            Value::Zset(zset) => View::Zset(zset),
        }
    }

    /// What `TYPE` answers.
    pub fn type_name(&self) -> &'static str {
        self.view().type_name()
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        self.view().encoding()
    }

    /// The bytes of memory held outside the `Value` itself.
    pub fn memory(&self) -> usize {
        match self {
            Value::Text(text) => text.memory(),
            Value::Zset(zset) => zset.memory(),
        }
    }

    /// This value, to be changed in place; `None` for a text, which the keyspace edits itself.
    pub fn object_mut(&mut self) -> Option<ValueMut<'_>> {
        match self {
            Value::Text(_) => None,
            Value::Zset(zset) => Some(ValueMut::Zset(zset)),
        }
    }
}

/// A stored value as it is read.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// A string.
    Text(TextView<'a>),
    /// A sorted set.
    Zset(&'a Zset),
}

impl View<'_> {
    /// What `TYPE` answers.
    pub fn type_name(&self) -> &'static str {
        match self {
            View::Text(_) => "string",
            View::Zset(_) => "zset",
        }
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match self {
            View::Text(text) => text.encoding(),
            View::Zset(zset) => zset.encoding(),
        }
    }

    /// A copy that owns its contents.
    pub fn to_value(&self) -> Value {
        match *self {
            View::Text(text) => Value::Text(text.to_text()),
            View::Zset(zset) => Value::Zset((*zset).clone()),
        }
    }
}

/// A stored value that can be changed in place.
#[derive(Debug)]
pub enum ValueMut<'a> {
    /// A sorted set.
    Zset(&'a mut Zset),
}
