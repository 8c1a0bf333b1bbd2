//! The long form of a list: nodes of items, in a double-ended queue.
//!
//! ```text
//! nodes  [ packed items ][ packed items ][ one large item ][ packed items ] ...   24 bytes each, and an allocation
//! ```
//!
//! A client cannot see where nodes begin and end, with one exception: a list is called "quicklist" until it has a
//! single node that is small. So nodes fill, split and join exactly where Redis's do.
//!
//! - A node takes items until the next would exceed the limits that the list was given when it turned long. An item
//!   larger than a whole node has a node of its own.
//! - Inserting an item into the middle of a full node splits it there and joins the parts that then fit together;
//!   removing never joins.
//! - The nodes of a fork ([`Fork`]) are in its base until they change: such a node is its index there, and its length.
//! - Invariant: no node is empty; `len` is the sum of their lengths and `memory` of their allocations.
//!
//! Costs: the ends O(1); a position O(nodes), 24 bytes read of each, from the nearer end; a change in a node moves at
//! most its bytes, and nodes that many removed items leave empty go together in O(nodes).

use super::packed_node::PackedNode;
use super::size::Limits;
use super::{Element, End, Side};
use crate::value::base::{Base, Fork};
use crate::value::item::{Item, Sequence};
use crate::value::{SharedBytes, packed_list};
use either::Either;
use std::collections::VecDeque;
use std::ops::Range;

pub(super) struct Nodes {
    nodes: VecDeque<Node>,
    len: usize,
    memory: usize,
    limits: Limits,
    base: Option<Box<Base<Nodes>>>,
}

#[derive(Clone)]
enum Node {
    /// Several items, or the length and the index of a node in the base.
    Packed(PackedNode),
    /// One item, larger than a packed node may be. Replies may share it.
    Large(SharedBytes),
}

/// A clone has all nodes itself.
impl Clone for Nodes {
    fn clone(&self) -> Nodes {
        let nodes = self.nodes.iter().map(|node| self.here(node).clone()).collect();
        Nodes { nodes, base: None, ..*self }
    }
}

impl Fork for Nodes {
    fn without_parts(&self) -> Nodes {
        let mut nodes = VecDeque::with_capacity(self.nodes.capacity());
        nodes.extend((0..).zip(&self.nodes).map(|(at, node)| Node::Packed(PackedNode::in_base(at, node.len()))));
        Nodes { nodes, base: None, ..*self }
    }

    fn set_base(&mut self, base: Option<Base<Nodes>>) {
        self.base = base.map(Box::new);
    }

    fn is_fork(&self) -> bool {
        self.base.is_some()
    }

    fn own_bytes(&self) -> usize {
        self.nodes.iter().map(Node::memory).sum()
    }

    fn reclaim(&mut self, base: &mut Nodes) {
        for node in &mut self.nodes {
            if let Some(at) = node.base_index() {
                *node = std::mem::replace(&mut base.nodes[at], Node::Packed(PackedNode::default()));
            }
        }
    }
}

impl Node {
    /// The index in the base of a node that is there.
    #[inline]
    fn base_index(&self) -> Option<usize> {
        if let Node::Packed(packed) = self { packed.base_index() } else { None }
    }

    fn len(&self) -> usize {
        match self {
            Node::Packed(packed) => packed.len(),
            Node::Large(_) => 1,
        }
    }

    /// The bytes of its allocation; those in the base do not count.
    fn memory(&self) -> usize {
        match self {
            Node::Packed(packed) => packed.memory(),
            Node::Large(bytes) => bytes.memory(),
        }
    }

    /// The items at positions that exist.
    fn range(&self, positions: Range<usize>) -> impl DoubleEndedIterator<Item = Item<'_>> + Clone {
        match self {
            Node::Packed(packed) => Either::Left(packed.range(positions)),
            Node::Large(bytes) => Either::Right((!positions.is_empty()).then_some(Item::Text(bytes, &[])).into_iter()),
        }
    }
}

impl Nodes {
    /// The nodes of a list that was one packed node.
    pub(super) fn of(packed: PackedNode, limits: Limits) -> Nodes {
        let mut nodes = Nodes { nodes: VecDeque::new(), len: packed.len(), memory: 0, limits, base: None };
        if packed.len() > 0 {
            nodes.add(0, Node::Packed(packed));
        }
        nodes
    }

    /// Removes and returns the only packed node, if there is just one and `is_small` holds for its bytes and items.
    pub(super) fn take_only(&mut self, is_small: impl Fn(usize, usize) -> bool) -> Option<PackedNode> {
        if self.nodes.len() != 1 {
            return None;
        }
        match self.own(0) {
            Node::Packed(packed) if is_small(packed.size(), packed.len()) => Some(std::mem::take(packed)),
            _ => None,
        }
    }

    /// The limits that its nodes have.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of nodes.
    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The node at an index that exists.
    pub(super) fn node(&self, at: usize) -> super::Node<'_, packed_list::Iter<'_>> {
        match self.at(at) {
            Node::Packed(packed) => super::Node::Packed(packed.range(0..packed.len())),
            Node::Large(bytes) => super::Node::Large(bytes),
        }
    }

    /// Appends a node of one large element.
    pub(super) fn push_large(&mut self, element: &[u8]) {
        self.len += 1;
        self.add(self.nodes.len(), Node::Large(element.into()));
    }

    /// Appends a packed node of some items; if it is larger than the format allows, it becomes several.
    pub(super) fn push_items<'a>(&mut self, items: impl Sequence<'a>) {
        if let Some(packed) = PackedNode::build(items.clone()) {
            return self.push_packed(packed);
        }
        let mut packed = PackedNode::default();
        for item in items {
            if !packed.has_room(item) {
                self.push_packed(std::mem::take(&mut packed));
            }
            packed.insert(packed.len(), item);
        }
        self.push_packed(packed);
    }

    fn push_packed(&mut self, packed: PackedNode) {
        if packed.len() > 0 {
            self.len += packed.len();
            self.add(self.nodes.len(), Node::Packed(packed));
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.memory + self.nodes.capacity() * size_of::<Node>()
    }

    /// The element at a position that exists.
    pub(super) fn element(&self, position: usize) -> Element<'_> {
        let (at, offset) = self.locate(position);
        match self.at(at) {
            Node::Packed(packed) => Element::Packed(packed.get(offset)),
            Node::Large(bytes) => Element::Large(bytes),
        }
    }

    /// The items at positions that exist.
    pub(super) fn range(&self, positions: Range<usize>) -> impl DoubleEndedIterator<Item = Item<'_>> + Clone {
        let (first, start) = self.locate(positions.start);
        let (last, end) = self.locate(positions.end.saturating_sub(1));
        let touched = if positions.is_empty() { 0..0 } else { first..last + 1 };
        touched.flat_map(move |at| {
            let node = self.at(at);
            let from = if at == first { start } else { 0 };
            node.range(from..if at == last { end + 1 } else { node.len() })
        })
    }

    /// The positions of the items with these bytes among `positions`, which must exist, in the order of a search from
    /// an end.
    pub(super) fn matches<'a>(
        &'a self,
        bytes: &'a [u8],
        positions: Range<usize>,
        from: End,
    ) -> impl Iterator<Item = usize> + 'a {
        let nodes = match from {
            End::Head => Either::Left(self.nodes.iter()),
            End::Tail => Either::Right(self.nodes.iter().rev()),
        };
        let mut passed = 0;
        let len = self.len;
        let nodes = nodes.map_while(move |node| {
            let start = if from == End::Head { passed } else { len - passed - node.len() };
            passed += node.len();
            let is_reached =
                if from == End::Head { start < positions.end } else { start + node.len() > positions.start };
            let within = |position: usize| position.saturating_sub(start).min(node.len());
            is_reached.then(|| (node, start, within(positions.start)..within(positions.end)))
        });
        nodes.flat_map(move |(node, start, within)| {
            let found = match self.here(node) {
                Node::Packed(packed) => Either::Left(packed.matches(bytes, within, from)),
                Node::Large(large) => Either::Right((!within.is_empty() && **large == *bytes).then_some(0).into_iter()),
            };
            found.map(move |offset| start + offset)
        })
    }

    pub(super) fn push(&mut self, end: End, element: &[u8]) {
        let at = match end {
            End::Head => 0,
            End::Tail => self.nodes.len().saturating_sub(1),
        };
        self.len += 1;
        if self.admits(at, element) {
            return self.change(at, |packed| {
                packed.insert(if end == End::Head { 0 } else { packed.len() }, Item::of(element))
            });
        }
        let node = self.node_of(element);
        self.add(if end == End::Head { 0 } else { self.nodes.len() }, node);
    }

    /// Pushes a large element without copying it.
    pub(super) fn push_shared(&mut self, end: End, element: SharedBytes) {
        if !self.limits.is_large(element.len()) {
            return self.push(end, &element);
        }
        self.len += 1;
        self.add(if end == End::Head { 0 } else { self.nodes.len() }, Node::Large(element));
    }

    /// Inserts an element beside the one at a position that exists.
    pub(super) fn insert(&mut self, position: usize, side: Side, element: &[u8]) {
        let (at, offset) = self.locate(position);
        let after = usize::from(side == Side::After);
        self.len += 1;
        if self.admits(at, element) {
            return self.change(at, |packed| packed.insert(offset + after, Item::of(element)));
        }
        let is_edge = offset + after == 0 || offset + after == self.nodes[at].len();
        if is_edge {
            self.insert_between(at + after, side, element);
        } else {
            self.insert_within(at, offset + after, side, element);
        }
    }

    /// Inserts an element between two nodes, on the given side of a full one.
    fn insert_between(&mut self, at: usize, side: Side, element: &[u8]) {
        match side {
            Side::After if self.admits(at, element) => self.change(at, |packed| packed.insert(0, Item::of(element))),
            Side::Before if at > 0 && self.admits(at - 1, element) => {
                self.change(at - 1, |packed| packed.insert(packed.len(), Item::of(element)));
            }
            _ => self.add(at, self.node_of(element)),
        }
    }

    /// Splits a full node before `offset` and inserts an element there.
    fn insert_within(&mut self, at: usize, offset: usize, side: Side, element: &[u8]) {
        self.split(at, offset);
        if self.limits.is_large(element.len()) {
            return self.add(at + 1, self.node_of(element));
        }
        match side {
            Side::After => {
                self.change(at + 1, |packed| packed.insert(0, Item::of(element)));
                self.join_around(at);
            }
            Side::Before => {
                self.change(at, |packed| packed.insert(packed.len(), Item::of(element)));
                self.join_around(at + 1);
            }
        }
    }

    /// Replaces the element at a position that exists.
    pub(super) fn replace(&mut self, position: usize, element: &[u8]) {
        let (at, offset) = self.locate(position);
        let is_large = self.limits.is_large(element.len());
        match self.at(at) {
            Node::Packed(_) if !is_large => self.change(at, |packed| packed.replace(offset, Item::of(element))),
            Node::Packed(_) => self.replace_by_large(at, offset, element),
            Node::Large(_) if is_large => {
                self.discard(at..at + 1);
                self.add(at, self.node_of(element));
            }
            Node::Large(_) => {
                self.insert_between(at + 1, Side::After, element);
                self.discard(at..at + 1);
            }
        }
    }

    fn replace_by_large(&mut self, at: usize, offset: usize, element: &[u8]) {
        if offset + 1 < self.nodes[at].len() {
            self.split(at, offset + 1);
        }
        self.add(at + 1, self.node_of(element));
        if offset == 0 {
            return self.discard(at..at + 1);
        }
        self.change(at, |packed| packed.remove(offset..offset + 1));
        self.join_around(at + 1);
    }

    /// Removes the items at positions that exist; returns the nodes that were removed as a whole, if they are several.
    pub(super) fn remove(&mut self, positions: Range<usize>) -> Option<Nodes> {
        let (mut at, offset) = self.locate(positions.start);
        let mut left = positions.len();
        self.len -= left;
        if offset > 0 {
            let gone = left.min(self.nodes[at].len() - offset);
            self.change(at, |packed| packed.remove(offset..offset + gone));
            left -= gone;
            at += 1;
        }
        let whole = self.nodes.range(at.min(self.nodes.len())..).take_while(|node| {
            let is_whole = node.len() <= left;
            left -= if is_whole { node.len() } else { 0 };
            is_whole && node.len() > 0
        });
        let end = at + whole.count();
        let gone = if end - at > 1 { Some(self.detach(at..end)) } else { None };
        if gone.is_none() {
            self.discard(at..end);
        }
        if left > 0 {
            self.change(at, |packed| packed.remove(0..left));
        }
        gone
    }

    /// Detaches some nodes, whose items are no longer counted. The result is only for dropping: it has no base.
    fn detach(&mut self, range: Range<usize>) -> Nodes {
        let memory = self.nodes.range(range.clone()).map(|node| self.here(node).memory()).sum();
        let nodes: VecDeque<Node> = self.nodes.drain(range).collect();
        self.memory -= memory;
        Nodes { len: nodes.iter().map(Node::len).sum(), nodes, memory, limits: self.limits, base: None }
    }

    /// Appends other nodes.
    pub(super) fn append(&mut self, mut others: Nodes) {
        self.nodes.append(&mut others.nodes);
        self.len += others.len;
        self.memory += others.memory;
    }

    /// Removes the items at some positions, which must exist and ascend. Nodes that become empty leave together: one by
    /// one, each would move those behind it.
    pub(super) fn remove_each(&mut self, positions: &[usize]) {
        let mut end = self.len;
        let mut at = self.nodes.len();
        let mut emptied = Vec::new();
        for &position in positions.iter().rev() {
            while position < end {
                at -= 1;
                end -= self.nodes[at].len();
            }
            // The items removed from this node were behind `end`.
            let offset = position - end;
            self.len -= 1;
            if self.nodes[at].len() == 1 {
                // What is left to remove is before it.
                emptied.push(at);
            } else {
                self.change(at, |packed| packed.remove(offset..offset + 1));
            }
        }
        self.discard_each(&emptied);
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        for node in &self.nodes {
            assert!(node.len() > 0, "no node is empty");
            assert_eq!(node.len(), self.here(node).len());
            if let Node::Packed(packed) = self.here(node) {
                packed.check();
            }
        }
        assert_eq!(self.len, self.nodes.iter().map(Node::len).sum::<usize>());
        assert_eq!(self.memory, self.nodes.iter().map(|node| self.here(node).memory()).sum::<usize>());
    }

    /// The node at an index that exists.
    fn at(&self, at: usize) -> &Node {
        self.here(&self.nodes[at])
    }

    /// The node with its items: this one, or the one in the base.
    #[inline]
    fn here<'a>(&'a self, node: &'a Node) -> &'a Node {
        if let Some(at) = node.base_index() { in_base(&self.base, at) } else { node }
    }

    /// The node at an index that exists, for changing.
    fn own(&mut self, at: usize) -> &mut Node {
        own(&mut self.nodes[at], &self.base)
    }

    /// The node of a position, and the offset in it; one beyond the last if the position does not exist.
    fn locate(&self, position: usize) -> (usize, usize) {
        let mut at = 0;
        if position <= self.len / 2 {
            let mut start = 0;
            while let Some(node) = self.nodes.get(at).filter(|node| start + node.len() <= position) {
                start += node.len();
                at += 1;
            }
            return (at, position - start);
        }
        let mut start = self.len;
        at = self.nodes.len();
        while start > position {
            at -= 1;
            start -= self.nodes[at].len();
        }
        (at, position - start)
    }

    /// Whether the node at an index is packed and may take one more element.
    fn admits(&self, at: usize, element: &[u8]) -> bool {
        match self.nodes.get(at).map(|node| self.here(node)) {
            Some(Node::Packed(packed)) => self.limits.admits(packed.size(), packed.len(), element.len()),
            Some(Node::Large(_)) | None => false,
        }
    }

    /// A node with one element.
    fn node_of(&self, element: &[u8]) -> Node {
        if self.limits.is_large(element.len()) {
            return Node::Large(SharedBytes::from(element));
        }
        let mut packed = PackedNode::default();
        packed.insert(0, Item::of(element));
        Node::Packed(packed)
    }

    fn add(&mut self, at: usize, node: Node) {
        self.memory += node.memory();
        self.nodes.insert(at, node);
    }

    fn discard(&mut self, range: Range<usize>) {
        self.memory -= self.nodes.range(range.clone()).map(|node| self.here(node).memory()).sum::<usize>();
        self.nodes.drain(range);
    }

    /// Discards the nodes at some indices, which must exist and descend.
    fn discard_each(&mut self, indices: &[usize]) {
        match *indices {
            [] => return,
            [index] => return self.discard(index..index + 1),
            _ => {}
        }
        self.memory -= indices.iter().map(|&index| self.at(index).memory()).sum::<usize>();
        let (mut discarded, mut index) = (indices.iter().rev().peekable(), 0..);
        self.nodes.retain(|_| {
            let index = index.next();
            discarded.next_if(|discarded| Some(**discarded) == index).is_none()
        });
    }

    /// Changes the packed node at an index that has one.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut PackedNode)) {
        let Nodes { nodes, memory, base, .. } = self;
        match own(&mut nodes[at], base) {
            Node::Packed(packed) => {
                *memory -= packed.memory();
                change(packed);
                *memory += packed.memory();
            }
            Node::Large(_) => unreachable!("a large item is not changed in place"),
        }
    }

    /// Splits a packed node into two, the second from `offset` on.
    fn split(&mut self, at: usize, offset: usize) {
        let mut rest = PackedNode::default();
        self.change(at, |packed| rest = packed.split_off(offset));
        self.add(at + 1, Node::Packed(rest));
    }

    /// Joins the neighbours of a node among themselves, then the node with them, wherever two fit into one.
    fn join_around(&mut self, mut center: usize) {
        if center >= 2 && self.join(center - 2) {
            center -= 1;
        }
        self.join(center + 1);
        if center >= 1 && self.join(center - 1) {
            center -= 1;
        }
        self.join(center);
    }

    /// Joins a node with the next one, if both are packed nodes and fit into one.
    fn join(&mut self, at: usize) -> bool {
        let [Some(Node::Packed(first)), Some(Node::Packed(second))] =
            [at, at + 1].map(|at| self.nodes.get(at).map(|node| self.here(node)))
        else {
            return false;
        };
        let size = first.size() + second.size() - crate::value::listpack::EMPTY;
        if self.limits.exceeds(size, first.len() + second.len()) {
            return false;
        }
        let mut joint = first.clone();
        joint.append(second, 0..second.len());
        self.discard(at..at + 2);
        self.add(at, Node::Packed(joint));
        true
    }
}

/// A node, for changing; copied from the base first if it is still there.
fn own<'a>(node: &'a mut Node, base: &Option<Box<Base<Nodes>>>) -> &'a mut Node {
    if let Some(at) = node.base_index() {
        *node = in_base(base, at).clone();
    }
    node
}

#[cold]
fn in_base(base: &Option<Box<Base<Nodes>>>, at: usize) -> &Node {
    let base = base.as_ref().expect("a node that is not here is in the base");
    &base.get().nodes[at]
}
