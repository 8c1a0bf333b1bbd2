//! [`Fork`] for [`Value`]: large collections share their parts, everything else is copied.

use super::base::{Base, Fork};
use super::{Hash, List, Set, Stream, Value, VectorSet, Zset};

/// The size from which a value is forked by parts. Below it, a copy costs some microseconds.
const FORKED_BYTES: usize = if cfg!(test) { 4 << 10 } else { 64 << 10 };

/// Texts, which are shared as a whole, and small values are copied.
impl Fork for Value {
    fn without_parts(&self) -> Value {
        match self {
            Value::Zset(zset) => Value::Zset(zset.without_parts()),
            Value::Set(set) => Value::Set(set.without_parts()),
            Value::Hash(hash) => Value::Hash(hash.without_parts()),
            Value::List(list) => Value::List(list.without_parts()),
            Value::Stream(stream) => Value::Stream(stream.without_parts()),
            Value::VectorSet(set) => Value::VectorSet(Box::new(set.without_parts())),
            Value::Text(_) => self.clone(),
        }
    }

    fn set_base(&mut self, base: Option<Base<Value>>) {
        match self {
            Value::Zset(zset) => zset.set_base(base.map(|base| base.part(parts::zset))),
            Value::Set(set) => set.set_base(base.map(|base| base.part(parts::set))),
            Value::Hash(hash) => hash.set_base(base.map(|base| base.part(parts::hash))),
            Value::List(list) => list.set_base(base.map(|base| base.part(parts::list))),
            Value::Stream(stream) => stream.set_base(base.map(|base| base.part(parts::stream))),
            Value::VectorSet(set) => set.set_base(base.map(|base| base.part(parts::vector_set))),
            Value::Text(_) => {}
        }
    }

    fn is_fork(&self) -> bool {
        match self {
            Value::Zset(zset) => zset.is_fork(),
            Value::Set(set) => set.is_fork(),
            Value::Hash(hash) => hash.is_fork(),
            Value::List(list) => list.is_fork(),
            Value::Stream(stream) => stream.is_fork(),
            Value::VectorSet(set) => set.is_fork(),
            Value::Text(_) => false,
        }
    }

    fn own_bytes(&self) -> usize {
        match self {
            Value::Zset(zset) => zset.own_bytes(),
            Value::Set(set) => set.own_bytes(),
            Value::Hash(hash) => hash.own_bytes(),
            Value::List(list) => list.own_bytes(),
            Value::Stream(stream) => stream.own_bytes(),
            Value::VectorSet(set) => set.own_bytes(),
            Value::Text(text) => text.memory(),
        }
    }

    fn reclaim(&mut self, base: &mut Value) {
        match (self, base) {
            (Value::Zset(zset), Value::Zset(base)) => zset.reclaim(base),
            (Value::Set(set), Value::Set(base)) => set.reclaim(base),
            (Value::Hash(hash), Value::Hash(base)) => hash.reclaim(base),
            (Value::List(list), Value::List(base)) => list.reclaim(base),
            (Value::Stream(stream), Value::Stream(base)) => stream.reclaim(base),
            (Value::VectorSet(set), Value::VectorSet(base)) => set.reclaim(base),
            _ => {}
        }
    }

    fn fork(base: Base<Value>) -> Value {
        if base.get().memory() < FORKED_BYTES {
            return base.get().clone();
        }
        let mut fork = base.get().without_parts();
        fork.set_base(Some(base));
        fork
    }
}

/// From a value to what it is.
mod parts {
    use super::{Hash, List, Set, Stream, Value, VectorSet, Zset};

    pub(super) fn zset(value: &Value) -> &Zset {
        if let Value::Zset(zset) = value { zset } else { unreachable!("a base does not change") }
    }

    pub(super) fn list(value: &Value) -> &List {
        if let Value::List(list) = value { list } else { unreachable!("a base does not change") }
    }

    pub(super) fn set(value: &Value) -> &Set {
        if let Value::Set(set) = value { set } else { unreachable!("a base does not change") }
    }

    pub(super) fn hash(value: &Value) -> &Hash {
        if let Value::Hash(hash) = value { hash } else { unreachable!("a base does not change") }
    }

    pub(super) fn stream(value: &Value) -> &Stream {
        if let Value::Stream(stream) = value { stream } else { unreachable!("a base does not change") }
    }

    pub(super) fn vector_set(value: &Value) -> &VectorSet {
        if let Value::VectorSet(set) = value { set } else { unreachable!("a base does not change") }
    }
}
