//! Values that are shared by parts while a save reads them: the base, and the fork of it.
//!
//! To copy a sorted set of a million members takes 20 ms, in which no client is served, and its memory once more. So
//! the first change of a large value during a save copies few of its elements. The value as it was stays with the
//! save: it is the *base*, and nobody changes it any more. The database gets a *fork*: the tables of the value without
//! their parts (chunks of an arena, segments of an index, nodes of an order or a list, blocks of a stream, leaves of
//! deadlines). The fork reads a part from the base, and copies it before it first changes it. After the save the fork
//! takes the parts back that it has not copied.
//!
//! ```text
//! save ------> base   [chunk 0] [chunk 1] [chunk 2]
//!                         ^                   ^
//! database --> fork   [   .   ] [copy of 1] [   .   ] [chunk 3]
//! ```
//!
//! Structures contain structures: a sorted set has an arena, and that has chunks. So a [`Base`] leads from the value to
//! the part of it that one structure needs ([`Base::part`]), and keeps the whole value alive.
//!
//! Invariants:
//! - A base is no fork, so there is never a chain of them. A clone of a fork is no fork: it has all parts itself.
//! - A part keeps its name in the fork (number, index or first key), and a name that the fork gives anew has its part
//!   in the fork. So a part that is missing there is in the base under the same name.
//! - A fork counts its memory, and behaves, as a copy would.
//!
//! Costs: a fork takes time in proportion to the number of parts, 0.2 ms for a million members, and each part is copied
//! at most once, 16 KiB at most (an item of a list or a long member as a whole). To read a part of the base takes some
//! nanoseconds more. What is no fork has a pointer for the base and no other cost: that a part is missing is found by a
//! check that was needed anyway, of bounds or presence.

use std::fmt;
use std::sync::Arc;

/// A path to something shared.
pub(crate) trait Lend<T>: Send + Sync {
    /// The shared part.
    fn lent(&self) -> &T;
}

/// A structure, or a part of one, that a fork shares with a save.
pub(crate) struct Base<T>(Arc<dyn Lend<T>>);

/// A structure that can share its parts with others.
pub(crate) trait Fork: Clone + Send + Sync + 'static {
    /// A copy without the parts, which are in the base that it is given next.
    fn without_parts(&self) -> Self;

    /// Sets the base. With `None`, parts that are missing here must not be read until they are reclaimed.
    fn set_base(&mut self, base: Option<Base<Self>>);

    /// The bytes of the parts that this has itself, not in the base.
    fn own_bytes(&self) -> usize;

    /// Moves the parts that are still in `base` here. Before, [`Fork::set_base`] has removed the last other reference
    /// to it.
    fn reclaim(&mut self, base: &mut Self);

    /// Whether it has a base.
    fn is_fork(&self) -> bool;

    /// A fork that shares the parts of `base`, which is no fork.
    fn fork(base: Base<Self>) -> Self {
        debug_assert!(!base.get().is_fork());
        let mut fork = base.get().without_parts();
        fork.set_base(Some(base));
        fork
    }
}

impl<T> Base<T> {
    /// A base that leads where `lender` leads.
    pub(crate) fn new(lender: impl Lend<T> + 'static) -> Base<T> {
        Base(Arc::new(lender))
    }

    /// The shared part.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        self.0.lent()
    }
}

impl<T: Send + Sync + 'static> Base<T> {
    /// A base that is `whole`.
    pub(crate) fn of(whole: T) -> Base<T> {
        Base::new(Whole(whole))
    }
}

impl<T: 'static> Base<T> {
    /// The base that is a part of this one.
    pub(crate) fn part<U: 'static>(&self, part: fn(&T) -> &U) -> Base<U> {
        Base::new(Part { whole: self.clone(), part })
    }
}

impl<T> Clone for Base<T> {
    fn clone(&self) -> Base<T> {
        Base(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Base<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Base")
    }
}

/// Short bytes, such as a key, are copied.
impl Fork for Box<[u8]> {
    fn without_parts(&self) -> Box<[u8]> {
        self.clone()
    }

    fn set_base(&mut self, _: Option<Base<Box<[u8]>>>) {}

    fn is_fork(&self) -> bool {
        false
    }

    fn own_bytes(&self) -> usize {
        self.len()
    }

    fn reclaim(&mut self, _: &mut Box<[u8]>) {}
}

struct Whole<T>(T);

impl<T: Send + Sync> Lend<T> for Whole<T> {
    fn lent(&self) -> &T {
        &self.0
    }
}

struct Part<T, U> {
    whole: Base<T>,
    part: fn(&T) -> &U,
}

impl<T, U> Lend<U> for Part<T, U> {
    fn lent(&self) -> &U {
        (self.part)(self.whole.get())
    }
}

#[cfg(test)]
mod tests;
