//! The list: elements in the order of insertion, fast at both ends.
//!
//! ```text
//!            up to limits.size                       beyond, until one node of half that size is left
//! List  ==>  packed: one node of items     <==>      nodes: packed nodes, and large items, in a queue
//!            ("listpack")                            ("quicklist")
//! ```
//!
//! - [`packed_node`]: a [`super::packed_list`] and the size that Redis's listpack would have, which decides whether a
//!   list is small.
//! - [`nodes`]: they fill, split and join exactly where Redis's do.
//!
//! It knows no key, no reply, no clock and no limit of its own but those that it was given when it turned long.
//!
//! - Invariant: while there is an element, there is a node.
//! - Twenty elements `product-%07d` take 160 bytes and an enum of 24; a long list of them 7.2 bytes each.
//!
//! Costs: both ends O(1) amortised, but that a push at the head moves its node's bytes; a position
//! O(nodes); a walk O(1) an element.

mod nodes;
mod packed_node;
mod size;

pub use size::Limits;

use crate::value::SharedBytes;
use crate::value::base::{Base, Fork};
use crate::value::item::{Item, Sequence, Words};
use either::Either;
use nodes::Nodes;
use packed_node::PackedNode;
use std::ops::Range;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end with position 0.
    Head,
    /// The end with the last position.
    Tail,
}

/// A side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the head.
    Before,
    /// Towards the tail.
    After,
}

/// A node of a long list, or a small list as a whole.
#[derive(Clone, Debug)]
pub enum Node<'a, I> {
    /// Several elements, packed.
    Packed(I),
    /// One large element by itself.
    Large(&'a [u8]),
}

/// An element as a list stores it.
#[derive(Clone, Debug)]
pub enum Element<'a> {
    /// In one allocation with others.
    Packed(Item<'a>),
    /// By itself, so that replies may share it.
    Large(&'a SharedBytes),
}

/// A list that is built of given nodes, which stay as they are even if they are larger or smaller than nodes here would
/// be.
pub struct Builder {
    nodes: Nodes,
}

impl Builder {
    /// A builder of a list that has no nodes yet, under these limits.
    pub fn new(limits: &Limits) -> Builder {
        Builder { nodes: Nodes::of(PackedNode::default(), *limits) }
    }

    /// Appends a node of one large element.
    pub fn push_large(&mut self, element: &[u8]) {
        self.nodes.push_large(element);
    }

    /// Appends a node of several elements; if it is larger than the format allows, it becomes several.
    pub fn push_packed<'a>(&mut self, items: impl Sequence<'a>) {
        self.nodes.push_items(items);
    }

    /// The list; packed if one node is enough.
    pub fn finish(self) -> List {
        let limits = self.nodes.limits();
        List::compacted(self.nodes, &limits)
    }
}

/// A list.
#[derive(Clone)]
pub struct List {
    form: Form,
}

#[derive(Clone)]
enum Form {
    Packed(PackedNode),
    Nodes(Box<Nodes>),
}

/// A packed list is copied.
impl Fork for List {
    fn without_parts(&self) -> List {
        match &self.form {
            Form::Packed(_) => self.clone(),
            Form::Nodes(nodes) => List { form: Form::Nodes(Box::new(nodes.without_parts())) },
        }
    }

    fn set_base(&mut self, base: Option<Base<List>>) {
        if let Form::Nodes(nodes) = &mut self.form {
            nodes.set_base(base.map(|base| base.part(List::long)));
        }
    }

    fn is_fork(&self) -> bool {
        matches!(&self.form, Form::Nodes(nodes) if nodes.is_fork())
    }

    fn own_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.memory(),
            Form::Nodes(nodes) => nodes.own_bytes(),
        }
    }

    fn reclaim(&mut self, base: &mut List) {
        if let (Form::Nodes(nodes), Form::Nodes(shared)) = (&mut self.form, &mut base.form) {
            nodes.reclaim(shared);
        }
    }
}

impl Default for List {
    fn default() -> List {
        List::new()
    }
}

impl List {
    /// The empty list.
    pub fn new() -> List {
        List { form: Form::Packed(PackedNode::default()) }
    }

    /// The nodes of a list that is the base of a long one.
    fn long(&self) -> &Nodes {
        match &self.form {
            Form::Nodes(nodes) => nodes,
            Form::Packed(_) => unreachable!("a base does not change"),
        }
    }

    /// A list of elements that fill nodes one after the other, in one packed node if they fit. Unlike [`List::push`],
    /// which checks the bytes of all elements that come, the limits are those of a node.
    pub fn from_elements<'a>(elements: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> List {
        List::compacted(filled(elements, limits), limits)
    }

    /// Like [`List::from_elements`], but a long list even if one node is enough, as long as there is an element.
    pub fn long_from_elements<'a>(elements: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> List {
        let nodes = filled(elements, limits);
        if nodes.len() == 0 { List::new() } else { List { form: Form::Nodes(Box::new(nodes)) } }
    }

    fn compacted(mut nodes: Nodes, limits: &Limits) -> List {
        let form = match nodes.take_only(|bytes, items| limits.holds(bytes, items)) {
            Some(packed) => Form::Packed(packed),
            None if nodes.len() == 0 => Form::Packed(PackedNode::default()),
            None => Form::Nodes(Box::new(nodes)),
        };
        List { form }
    }

    /// The nodes, head first; a packed list is one node.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node<'_, impl Words<'_>>> {
        let count = match &self.form {
            Form::Packed(_) => 1,
            Form::Nodes(nodes) => nodes.count(),
        };
        (0..count).map(|at| match &self.form {
            Form::Packed(packed) => Node::Packed(packed.range(0..packed.len())),
            Form::Nodes(nodes) => nodes.node(at),
        })
    }

    /// The bytes of a small list.
    pub(in crate::value) fn packed_bytes(&self) -> &[u8] {
        match &self.form {
            Form::Packed(packed) => packed.bytes(),
            Form::Nodes(_) => &[],
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.len(),
            Form::Nodes(nodes) => nodes.len(),
        }
    }

    /// Whether the list has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `listpack` or `quicklist`: what `OBJECT ENCODING` replies for a list of this form.
    pub fn encoding(&self) -> &'static str {
        match &self.form {
            Form::Packed(_) => "listpack",
            Form::Nodes(_) => "quicklist",
        }
    }

    /// Bytes of our own heap allocations. O(1).
    pub fn memory(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.memory(),
            Form::Nodes(nodes) => size_of::<Nodes>() + nodes.memory(),
        }
    }

    /// The element at a position, 0 for the head, as it is stored.
    #[inline]
    pub fn element(&self, position: usize) -> Option<Element<'_>> {
        (position < self.len()).then(|| match &self.form {
            Form::Packed(packed) => Element::Packed(packed.get(position)),
            Form::Nodes(nodes) => nodes.element(position),
        })
    }

    /// The element at a position, 0 for the head.
    pub fn get(&self, position: usize) -> Option<Item<'_>> {
        self.element(position).map(|element| match element {
            Element::Packed(item) => item,
            Element::Large(bytes) => Item::Text(bytes, &[]),
        })
    }

    /// The elements at those of `positions` that exist, head first.
    pub fn range(&self, positions: Range<usize>) -> impl DoubleEndedIterator<Item = Item<'_>> + Clone {
        let positions = self.clamp(positions);
        match &self.form {
            Form::Packed(packed) => Either::Left(packed.range(positions)),
            Form::Nodes(nodes) => Either::Right(nodes.range(positions)),
        }
    }

    /// All elements, head first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Item<'_>> + Clone {
        self.range(0..self.len())
    }

    /// The positions of the elements equal to `element`, among the `within` nearest to an end, counted from that end.
    pub fn positions<'a>(&'a self, element: &'a [u8], from: End, within: usize) -> impl Iterator<Item = usize> + 'a {
        let len = self.len();
        let searched = match from {
            End::Head => 0..within.min(len),
            End::Tail => len - within.min(len)..len,
        };
        match &self.form {
            Form::Packed(packed) => Either::Left(packed.matches(element, searched, from)),
            Form::Nodes(nodes) => Either::Right(nodes.matches(element, searched, from)),
        }
    }

    /// Pushes elements at an end, one after the other.
    pub fn push<'a>(
        &mut self,
        end: End,
        elements: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>,
        limits: &Limits,
    ) {
        let elements = elements.into_iter();
        let (bytes, items) = elements.clone().fold((0, 0), |(bytes, items), next| (bytes + next.len(), items + 1));
        self.make_room(bytes, items, limits);
        for element in elements {
            self.put(end, element);
        }
    }

    /// Pushes one element, without copying it if it is large.
    pub fn push_shared(&mut self, end: End, element: SharedBytes, limits: &Limits) {
        self.make_room(element.len(), 1, limits);
        match &mut self.form {
            Form::Packed(_) => self.put(end, &element),
            Form::Nodes(nodes) => nodes.push_shared(end, element),
        }
    }

    /// Pushes an element that was taken from a list. As in Redis, the size guess then ignores the digits of a number.
    pub fn push_moved(&mut self, end: End, element: &[u8], limits: &Limits) {
        let is_number = matches!(Item::of(element), Item::Int(_));
        self.make_room(if is_number { 0 } else { element.len() }, 1, limits);
        self.put(end, element);
    }

    /// Moves the element at one end to an end (LMOVE on one list).
    pub fn rotate(&mut self, from: End, to: End, limits: &Limits) {
        if let Some((position, element)) = self.last(from) {
            self.remove_within(position..position + 1);
            self.push_moved(to, &element, limits);
            self.tidy(limits);
        }
    }

    fn put(&mut self, end: End, element: &[u8]) {
        match &mut self.form {
            Form::Packed(packed) => packed.insert(if end == End::Head { 0 } else { packed.len() }, Item::of(element)),
            Form::Nodes(nodes) => nodes.push(end, element),
        }
    }

    /// The position at an end, and a copy of its element.
    fn last(&self, end: End) -> Option<(usize, Vec<u8>)> {
        let position = match end {
            End::Head => 0,
            End::Tail => self.len().checked_sub(1)?,
        };
        Some((position, self.get(position)?.to_vec()))
    }

    /// Removes and returns the element at an end.
    pub fn pop(&mut self, end: End, limits: &Limits) -> Option<Vec<u8>> {
        let (position, element) = self.last(end)?;
        self.remove(position..position + 1, limits);
        Some(element)
    }

    /// Replaces the element at a position; returns whether the position exists.
    pub fn set(&mut self, position: usize, element: &[u8], limits: &Limits) -> bool {
        // Redis converts a list for the new element before it finds that the position does not exist.
        self.make_room(element.len(), 1, limits);
        if position >= self.len() {
            return false;
        }
        match &mut self.form {
            Form::Packed(packed) => packed.replace(position, Item::of(element)),
            Form::Nodes(nodes) => nodes.replace(position, element),
        }
        self.tidy(limits);
        true
    }

    /// Inserts an element beside the one at a position; returns whether the position exists.
    pub fn insert(&mut self, position: usize, side: Side, element: &[u8], limits: &Limits) -> bool {
        // Redis converts a list for the new element before it finds that the position does not exist.
        self.make_room(element.len(), 1, limits);
        if position >= self.len() {
            return false;
        }
        match &mut self.form {
            Form::Packed(packed) => packed.insert(position + usize::from(side == Side::After), Item::of(element)),
            Form::Nodes(nodes) => nodes.insert(position, side, element),
        }
        true
    }

    /// Removes the elements at those of `positions` that exist; returns those that may take long to drop.
    pub fn remove(&mut self, positions: Range<usize>, limits: &Limits) -> Option<List> {
        let positions = self.clamp(positions);
        if positions.is_empty() {
            return None;
        }
        let gone = self.remove_within(positions);
        self.tidy(limits);
        gone
    }

    fn remove_within(&mut self, positions: Range<usize>) -> Option<List> {
        match &mut self.form {
            Form::Packed(packed) => {
                packed.remove(positions);
                None
            }
            Form::Nodes(nodes) => nodes.remove(positions).map(|gone| List { form: Form::Nodes(Box::new(gone)) }),
        }
    }

    /// Removes up to `most` elements equal to `element`, those nearest to an end, and returns how many.
    pub fn remove_equal(&mut self, element: &[u8], from: End, most: usize, limits: &Limits) -> usize {
        let mut positions: Vec<usize> = self.positions(element, from, usize::MAX).take(most).collect();
        if from == End::Tail {
            positions.reverse();
        }
        match &mut self.form {
            Form::Packed(packed) => positions.iter().rev().for_each(|&position| packed.remove(position..position + 1)),
            Form::Nodes(nodes) => nodes.remove_each(&positions),
        }
        if !positions.is_empty() {
            self.tidy(limits);
        }
        positions.len()
    }

    /// Removes all elements but those at `positions`; returns those that may take long to drop.
    pub fn trim(&mut self, positions: Range<usize>, limits: &Limits) -> Option<List> {
        let kept = self.clamp(positions);
        let (head, tail) = (0..kept.start, kept.end..self.len());
        let behind = if tail.is_empty() { None } else { self.remove_within(tail) };
        let before = if head.is_empty() { None } else { self.remove_within(head) };
        self.tidy(limits);
        match (before, behind) {
            (Some(mut before), Some(behind)) => {
                before.join(behind);
                Some(before)
            }
            (before, behind) => before.or(behind),
        }
    }

    /// Appends the nodes of another list.
    fn join(&mut self, other: List) {
        if let (Form::Nodes(nodes), Form::Nodes(others)) = (&mut self.form, other.form) {
            nodes.append(*others);
        }
    }

    /// Panics unless every invariant holds. For tests and debug builds: O(n).
    pub fn check(&self) {
        match &self.form {
            Form::Packed(packed) => packed.check(),
            Form::Nodes(nodes) => nodes.check(),
        }
    }

    fn clamp(&self, positions: Range<usize>) -> Range<usize> {
        let end = positions.end.min(self.len());
        positions.start.min(end)..end
    }

    /// Converts to nodes if one packed node may not have that many bytes and items more.
    fn make_room(&mut self, bytes: usize, items: usize, limits: &Limits) {
        if let Form::Packed(packed) = &mut self.form
            && limits.exceeds(packed.size().saturating_add(bytes), packed.len().saturating_add(items))
        {
            self.form = Form::Nodes(Box::new(Nodes::of(std::mem::take(packed), *limits)));
        }
    }

    /// Converts back to one packed node if one small node is left.
    fn tidy(&mut self, limits: &Limits) {
        if let Form::Nodes(nodes) = &mut self.form
            && let Some(packed) = nodes.take_only(|bytes, items| limits.is_small(bytes, items))
        {
            self.form = Form::Packed(packed);
        }
    }
}

/// The nodes that elements fill one after the other.
fn filled<'a>(elements: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> Nodes {
    let mut nodes = Nodes::of(PackedNode::default(), *limits);
    elements.into_iter().for_each(|element| nodes.push(End::Tail, element));
    nodes
}

impl std::fmt::Debug for List {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
