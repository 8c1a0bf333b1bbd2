//! The order of a large set: an unrolled, deterministic, order-statistic skiplist.
//!
//! Every level is a list of array nodes; a level lists the nodes of the one below with their first entry and their
//! number of entries. No random heights: a node that is full shares with a neighbour, or the two become three.
//!
//! ```text
//! height 2      [ a . . . . . . . . m . . . . . . ]                         branches
//! height 1      [ a . . d . . g . ]   [ m . . p . . s . ]                   branches
//! leaves        [a b c] <-> [d e f] <-> [g ..] <-> [m ..] <-> [p ..] <-> [s ..]
//! ```
//!
//! It holds handles only; scores and members are read from the [`Arena`].
//!
//! - Invariant, at each level: the concatenation of the nodes is the set in order;
//!   `count(node) = sum(count(children))`; a branch's separator of a node is the node's first entry; no node
//!   but an empty set's leaf is empty.
//! - Fill: appending leaves full leaves behind; elsewhere sharing and splitting two into three keep leaves over three
//!   quarters full; a leaf under half is joined with a neighbour if both fit into one, or evened out if under a
//!   quarter.
//! - With leaves of 60 and branches of 60: a million entries have height 3; `8 / fill + 0.5` bytes an entry.
//!
//! Costs: O(log n) search, rank, insertion, removal, in nodes; a score that stays in its leaf moves within it.
//!
//! Sources: Pugh 1990 (skiplists, "Skip list cookbook" for rank); Bayer & McCreight 1972 and Knuth's B*-tree (sharing,
//! two to three); "Bridging cache-friendliness and concurrency: a locality-optimized in-memory B-skiplist" (2025).

mod grow;
mod shrink;

use super::Entry;
use super::branch::{Branch, Separator};
use super::leaf::Leaf;
use super::search_key::{SearchKey, sortable};
use crate::value::arena::{Arena, Handle};
use crate::value::base::{Base, Fork};
use crate::value::slab::{NONE, Slab};
use std::ops::Range;

/// More levels than handles can fill: a branch that is not at an end of its level splits in halves.
const LEVELS: usize = 24;

#[derive(Clone)]
pub(in crate::value) struct Order<const N: usize> {
    leaves: Slab<Leaf<N>>,
    branches: Slab<Branch<N>>,
    /// The top: a leaf at height 0, else a branch.
    root: u32,
    height: usize,
    first: u32,
    last: u32,
    len: usize,
}

impl<const N: usize> Fork for Order<N> {
    fn without_parts(&self) -> Self {
        Order { leaves: self.leaves.without_parts(), branches: self.branches.without_parts(), ..*self }
    }

    fn set_base(&mut self, base: Option<Base<Self>>) {
        self.leaves.set_base(base.as_ref().map(|base| base.part(|order| &order.leaves)));
        self.branches.set_base(base.map(|base| base.part(|order| &order.branches)));
    }

    fn is_fork(&self) -> bool {
        self.leaves.is_fork()
    }

    fn own_bytes(&self) -> usize {
        self.leaves.own_bytes() + self.branches.own_bytes()
    }

    fn reclaim(&mut self, base: &mut Self) {
        self.leaves.reclaim(&mut base.leaves);
        self.branches.reclaim(&mut base.branches);
    }
}

/// The path from the root to a leaf.
#[derive(Clone)]
struct Path {
    steps: [Step; LEVELS],
    leaf: u32,
}

#[derive(Clone, Copy, Default)]
struct Step {
    branch: u32,
    at: u32,
}

impl Step {
    fn new(branch: u32, at: usize) -> Step {
        Step { branch, at: at as u32 }
    }

    fn at(self) -> usize {
        self.at as usize
    }
}

impl Path {
    /// The last step of a path that goes down `height` levels.
    fn bottom(&self, height: usize) -> (u32, usize) {
        let step = self.steps[height - 1];
        (step.branch, step.at())
    }
}

/// The location of an entry: valid until the order changes.
pub(super) struct EntryPath {
    path: Path,
    at: usize,
}

/// The location of an entry in the lists of the lowest level.
#[derive(Clone, Copy)]
pub(super) struct LeafCursor {
    leaf: u32,
    at: usize,
}

impl<const N: usize> Order<N> {
    pub(super) fn new() -> Self {
        let mut leaves = Slab::default();
        let root = leaves.insert(Leaf::new());
        Order { leaves, branches: Slab::default(), root, height: 0, first: root, last: root, len: 0 }
    }

    /// Builds the order of cells that are in order, with full nodes.
    pub(super) fn from_sorted(arena: &Arena, cells: &[Handle]) -> Self {
        if cells.is_empty() {
            return Order::new();
        }
        let (leaves, branches) = (Slab::default(), Slab::default());
        let mut order = Order { leaves, branches, root: NONE, height: 0, first: NONE, last: NONE, len: cells.len() };
        let mut level: Vec<(Separator, usize)> = vec![];
        for chunk in cells.chunks(N) {
            let mut leaf = Leaf::new();
            for (at, &cell) in chunk.iter().enumerate() {
                leaf.insert(at, cell, sortable(arena.number(cell)));
            }
            let node = order.link_behind(order.last, leaf);
            level.push((Separator { score: sortable(arena.number(chunk[0])), cell: chunk[0], node }, chunk.len()));
        }
        while level.len() > 1 {
            order.height += 1;
            level = level.chunks(N).map(|nodes| order.raise_over(nodes)).collect();
        }
        order.root = level[0].0.node;
        order
    }

    fn raise_over(&mut self, nodes: &[(Separator, usize)]) -> (Separator, usize) {
        let mut branch = Branch::default();
        for (at, (separator, count)) in nodes.iter().enumerate() {
            branch.insert(at, *separator, *count);
        }
        let count = branch.total();
        (Separator { node: self.branches.insert(branch), ..nodes[0].0 }, count)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        self.leaves.memory() + self.branches.memory()
    }

    /// The number of entries before the search key.
    pub(super) fn count_before(&self, arena: &Arena, key: &SearchKey<'_>) -> usize {
        let (leaf, before) = self.find_leaf(arena, key);
        before + self.leaves[leaf].lower(arena, key)
    }

    /// The position of a cell.
    pub(super) fn rank(&self, arena: &Arena, cell: Handle) -> usize {
        let entry = Entry::of(arena, cell);
        let key = SearchKey::at(entry.score, entry.member);
        let (leaf, before) = self.find_leaf(arena, &key);
        before + self.leaves[leaf].find(cell, key.score)
    }

    /// A byte of each cache line of the leaf where a score belongs, so that they are loaded.
    pub(in crate::value) fn touch_line(&self, arena: &Arena, score: f64) -> u8 {
        self.leaves[self.find_leaf(arena, &SearchKey::before_all(score)).0].touch_line()
    }

    /// The leaf that a search key leads to, and the number of entries before it.
    fn find_leaf(&self, arena: &Arena, key: &SearchKey<'_>) -> (u32, usize) {
        let (mut node, mut before) = (self.root, 0);
        for _ in 0..self.height {
            let branch = &self.branches[node];
            let at = branch.child(arena, key);
            before += branch.counts_before(at);
            node = branch.separator(at).node;
        }
        (node, before)
    }

    /// The entry at `position < len`.
    pub(super) fn seek(&self, mut position: usize) -> LeafCursor {
        let mut node = self.root;
        for _ in 0..self.height {
            let branch = &self.branches[node];
            let (at, rest) = branch.child_at(position);
            (node, position) = (branch.separator(at).node, rest);
        }
        LeafCursor { leaf: node, at: position }
    }

    pub(super) fn cell(&self, cursor: LeafCursor) -> Handle {
        self.leaves[cursor.leaf].cell(cursor.at)
    }

    /// The location after one that is not the last.
    pub(super) fn next(&self, cursor: LeafCursor) -> LeafCursor {
        let leaf = &self.leaves[cursor.leaf];
        if cursor.at + 1 < leaf.len() {
            LeafCursor { at: cursor.at + 1, ..cursor }
        } else {
            LeafCursor { leaf: leaf.next, at: 0 }
        }
    }

    /// The location before one that is not the first.
    pub(super) fn previous(&self, cursor: LeafCursor) -> LeafCursor {
        if cursor.at > 0 {
            return LeafCursor { at: cursor.at - 1, ..cursor };
        }
        let leaf = self.leaves[cursor.leaf].previous;
        LeafCursor { leaf, at: self.leaves[leaf].len() - 1 }
    }

    /// Finds a cell by its entry in the arena.
    pub(super) fn locate(&self, arena: &Arena, cell: Handle) -> EntryPath {
        let entry = Entry::of(arena, cell);
        let key = SearchKey::at(entry.score, entry.member);
        let path = self.descend(arena, &key);
        let at = self.leaves[path.leaf].find(cell, key.score);
        EntryPath { path, at }
    }

    /// Moves `cell`, which is the cell at `entry_path` or replaces it, to the position that its entry in the arena
    /// now gives.
    pub(super) fn reposition(&mut self, arena: &Arena, entry_path: &EntryPath, cell: Handle, rises: bool) {
        let entry = Entry::of(arena, cell);
        let key = SearchKey::at(entry.score, entry.member);
        let leaf = &mut self.leaves[entry_path.path.leaf];
        let last = leaf.len() - 1;
        let (to, stays) = if rises {
            let to = leaf.place_above(arena, &key, entry_path.at);
            (to, to < last || leaf.next == NONE)
        } else {
            let to = leaf.place_below(arena, &key, entry_path.at);
            (to, to > 0 || leaf.previous == NONE)
        };
        if stays {
            leaf.reposition(entry_path.at, to, cell, key.score);
            if to == 0 || entry_path.at == 0 {
                self.update_separators_above(arena, &entry_path.path);
            }
        } else {
            self.cut(arena, &entry_path.path, entry_path.at..entry_path.at + 1);
            self.insert(arena, cell);
        }
    }

    /// Replaces a cell by another one with the same entry.
    pub(super) fn replace(&mut self, arena: &Arena, entry_path: &EntryPath, cell: Handle) {
        self.leaves[entry_path.path.leaf].set_cell(entry_path.at, cell);
        if entry_path.at == 0 {
            self.update_separators_above(arena, &entry_path.path);
        }
    }

    fn descend(&self, arena: &Arena, key: &SearchKey<'_>) -> Path {
        let mut path = Path { steps: [Step::default(); LEVELS], leaf: self.root };
        for step in &mut path.steps[..self.height] {
            let branch = &self.branches[path.leaf];
            *step = Step::new(path.leaf, branch.child(arena, key));
            path.leaf = branch.separator(step.at()).node;
        }
        path
    }

    fn descend_to(&self, mut position: usize) -> (Path, usize) {
        let mut path = Path { steps: [Step::default(); LEVELS], leaf: self.root };
        for step in &mut path.steps[..self.height] {
            let branch = &self.branches[path.leaf];
            let (at, rest) = branch.child_at(position);
            *step = Step::new(path.leaf, at);
            (path.leaf, position) = (branch.separator(at).node, rest);
        }
        (path, position)
    }

    /// Adds to the counts above the leaf of a path.
    fn add(&mut self, path: &Path, entries: usize) {
        self.len += entries;
        for step in &path.steps[..self.height] {
            let branch = &mut self.branches[step.branch];
            branch.set_count(step.at(), branch.count(step.at()) + entries);
        }
    }

    /// Subtracts from the counts above the leaf of a path.
    fn subtract(&mut self, path: &Path, entries: usize) {
        self.len -= entries;
        for step in &path.steps[..self.height] {
            let branch = &mut self.branches[step.branch];
            branch.set_count(step.at(), branch.count(step.at()) - entries);
        }
    }

    /// Updates the separators above the leaf of a path to the leaf's first entry.
    fn update_separators_above(&mut self, arena: &Arena, path: &Path) {
        let Some(cell) = self.leaves[path.leaf].first() else { return };
        let score = sortable(arena.number(cell));
        self.set_separators_from(path, self.height, score, cell);
    }

    /// Updates the separators above `level` of a path to the first entry of its node there.
    fn set_separators_from(&mut self, path: &Path, level: usize, score: u64, cell: Handle) {
        for step in path.steps[..level].iter().rev() {
            self.branches[step.branch].set_separator(step.at(), score, cell);
            if step.at > 0 {
                return;
            }
        }
    }

    /// Links a leaf into the list behind another, or at the front.
    fn link_behind(&mut self, previous: u32, mut leaf: Leaf<N>) -> u32 {
        let next = if previous == NONE { self.first } else { self.leaves[previous].next };
        (leaf.previous, leaf.next) = (previous, next);
        let node = self.leaves.insert(leaf);
        self.join(previous, node);
        self.join(node, next);
        node
    }

    /// Makes two nodes neighbours in the list; `NONE` is either end.
    fn join(&mut self, left: u32, right: u32) {
        match left {
            NONE => self.first = right,
            left => self.leaves[left].next = right,
        }
        match right {
            NONE => self.last = left,
            right => self.leaves[right].previous = left,
        }
    }

    /// The left node of the pair that a node forms with the emptier of its neighbours in a branch.
    fn roomier_pair(&self, branch: u32, at: usize) -> Option<usize> {
        let branch = &self.branches[branch];
        let left = at.checked_sub(1);
        let right = (at + 1 < branch.len()).then_some(at);
        match (left, right) {
            (Some(left), Some(right)) if branch.count(left) < branch.count(right + 1) => Some(left),
            (left, right) => right.or(left),
        }
    }

    /// Spreads the entries of a pair of leaves evenly.
    fn even_out(&mut self, arena: &Arena, branch: u32, left: usize) {
        let (a, b) = self.pair(branch, left);
        let (a_leaf, b_leaf) = self.leaves.pair(a, b);
        let (a_len, b_len) = (a_leaf.len(), b_leaf.len());
        let half = (a_len + b_len) / 2;
        if a_len > half {
            a_leaf.give(half..a_len, b_leaf, 0);
        } else {
            b_leaf.give(0..b_len - (a_len + b_len - half), a_leaf, a_len);
        }
        self.update_branch(arena, branch, left..left + 2);
    }

    fn pair(&self, branch: u32, left: usize) -> (u32, u32) {
        let branch = &self.branches[branch];
        (branch.separator(left).node, branch.separator(left + 1).node)
    }

    /// Updates a branch's counts and separators for leaves that shared entries, the first of which kept its first
    /// entry.
    fn update_branch(&mut self, arena: &Arena, branch: u32, leaves: Range<usize>) {
        for at in leaves.clone() {
            let leaf = &mut self.leaves[self.branches[branch].separator(at).node];
            leaf.refine(arena);
            self.branches[branch].set_count(at, leaf.len());
            if at > leaves.start {
                let cell = leaf.cell(0);
                self.branches[branch].set_separator(at, sortable(arena.number(cell)), cell);
            }
        }
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self, arena: &Arena) {
        let (mut leaves, mut branches) = (vec![], 0);
        let count = self.check_node(arena, self.root, self.height, &mut leaves, &mut branches);
        assert_eq!(count, self.len, "the root counts every entry");
        assert_eq!((leaves.len(), branches), (self.leaves.len(), self.branches.len()), "every node is reached");
        let mut previous = NONE;
        for (at, &id) in leaves.iter().enumerate() {
            let leaf = &self.leaves[id];
            assert_eq!(leaf.previous, previous);
            assert_eq!(leaf.next, leaves.get(at + 1).copied().unwrap_or(NONE));
            previous = id;
        }
        assert_eq!((self.first, self.last), (leaves[0], previous), "both ends are known");
        let cursors = |cursor: &LeafCursor| Some(self.next(*cursor)).filter(|cursor| cursor.leaf != NONE);
        let cells =
            std::iter::successors((self.len > 0).then(|| self.seek(0)), cursors).map(|cursor| self.cell(cursor));
        let entries: Vec<_> = cells.map(|cell| Entry::of(arena, cell)).collect();
        assert_eq!(entries.len(), self.len);
        assert!(entries.windows(2).all(|pair| pair[0].order(&pair[1]).is_lt()), "entries ascend");
    }

    /// Checks a node and those below, collects leaves and counts branches, and returns the number of entries.
    fn check_node(&self, arena: &Arena, id: u32, height: usize, leaves: &mut Vec<u32>, branches: &mut usize) -> usize {
        if height == 0 {
            let leaf = &self.leaves[id];
            assert!(self.height == 0 || leaf.len() > 0, "no leaf is empty");
            leaf.check(arena);
            leaves.push(id);
            return leaf.len();
        }
        *branches += 1;
        let branch = &self.branches[id];
        assert!(branch.len() > 0, "no branch is empty");
        for at in 0..branch.len() {
            let separator = branch.separator(at);
            let below = self.check_node(arena, separator.node, height - 1, leaves, branches);
            assert_eq!(below, branch.count(at), "a branch counts the entries below");
            assert_eq!(separator.cell, self.first_cell(separator.node, height - 1), "a separator is the first entry");
            assert_eq!(
                separator.score,
                sortable(arena.number(separator.cell)),
                "a separator has the first entry's score"
            );
        }
        branch.total()
    }

    fn first_cell(&self, mut node: u32, height: usize) -> Handle {
        for _ in 0..height {
            node = self.branches[node].separator(0).node;
        }
        self.leaves[node].cell(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An order of cells with these scores, all of one member: built one by one.
    fn order_of<const N: usize>(scores: impl Iterator<Item = u32>) -> (Arena, Order<N>) {
        let (mut arena, mut order) = (Arena::default(), Order::new());
        for score in scores {
            let cell = arena.insert([format!("member-{score}").as_bytes()], f64::from(score));
            order.insert(&arena, cell);
        }
        order.check(&arena);
        (arena, order)
    }

    fn fill<const N: usize>(order: &Order<N>) -> f64 {
        order.len() as f64 / (order.leaves.len() * N) as f64
    }

    #[test]
    fn appending_and_prepending_leave_full_leaves_behind() {
        assert!(fill(&order_of::<60>(0..6_000).1) > 0.99);
        assert!(fill(&order_of::<60>((0..6_000).rev()).1) > 0.99);
        assert!(fill(&order_of::<4>(0..500).1) > 0.99);
    }

    #[test]
    fn random_growth_keeps_leaves_three_quarters_full() {
        let scores = || (0..20_000_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 8);
        assert!(fill(&order_of::<60>(scores()).1) > 0.75);
        assert!(fill(&order_of::<8>(scores()).1) > 0.7);
    }

    #[test]
    fn a_million_entries_take_three_levels_of_branches() {
        let mut arena = Arena::default();
        let cells: Vec<_> = (0..1_000_000).map(|i| arena.insert([b""], f64::from(i))).collect();
        let order = Order::<60>::from_sorted(&arena, &cells);
        assert_eq!((order.height, order.len()), (3, 1_000_000));
        assert_eq!(order.rank(&arena, cells[777_777]), 777_777);
    }

    #[test]
    fn removing_all_but_one_leaves_one_leaf() {
        let (arena, mut order) = order_of::<4>(0..1_000);
        let mut removed = vec![];
        while order.len() > 1 {
            order.remove_some(&arena, order.len() / 2, 1, &mut removed);
        }
        order.check(&arena);
        assert_eq!((order.height, order.leaves.len(), order.branches.len()), (0, 1, 0));
    }

    #[test]
    fn random_removal_keeps_leaves_half_full() {
        let (arena, mut order) = order_of::<60>(0..20_000);
        let mut removed = vec![];
        for i in 0..15_000_usize {
            order.remove_some(&arena, i.wrapping_mul(7_919) % order.len(), 1, &mut removed);
        }
        order.check(&arena);
        assert!(fill(&order) > 0.5, "{}", fill(&order));
    }
}
