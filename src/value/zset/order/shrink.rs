//! How the order shrinks: a leaf under half is joined with a neighbour or evened out, an empty node is removed, and a
//! root with a single node is replaced by that node.

use super::{EntryPath, Order, Path, Step};
use crate::value::arena::{Arena, Handle};
use std::ops::Range;

impl<const N: usize> Order<N> {
    /// Removes the entry at an entry path.
    pub(in super::super) fn remove(&mut self, arena: &Arena, entry_path: &EntryPath) {
        self.cut(arena, &entry_path.path, entry_path.at..entry_path.at + 1);
    }

    /// Removes entries from `position` on, at most `most` and at most a leaf's, and adds them to `removed`.
    pub(in super::super) fn remove_some(
        &mut self,
        arena: &Arena,
        position: usize,
        most: usize,
        removed: &mut Vec<Handle>,
    ) {
        let (path, at) = self.descend_to(position);
        let leaf = &self.leaves[path.leaf];
        let range = at..leaf.len().min(at.saturating_add(most));
        removed.extend(leaf.cells(range.clone()));
        self.cut(arena, &path, range);
    }

    /// Removes cells from the leaf of a path, and restores the fill of the nodes.
    pub(super) fn cut(&mut self, arena: &Arena, path: &Path, range: Range<usize>) {
        let leaf = &mut self.leaves[path.leaf];
        let is_first = range.start == 0;
        let gone = range.len();
        leaf.remove(range);
        let left = leaf.len();
        self.subtract(path, gone);
        if self.height == 0 {
            return;
        }
        if left == 0 {
            self.unlink(path.leaf);
            return self.remove_node(path, self.height - 1);
        }
        if is_first {
            self.update_separators_above(arena, path);
        }
        if left < N / 2 {
            self.mend(arena, path, left);
        }
    }

    /// Joins a leaf under half with a neighbour, or evens them out; at either end, where queues are drained, a leaf
    /// may become empty.
    fn mend(&mut self, arena: &Arena, path: &Path, len: usize) {
        let (branch, at) = path.bottom(self.height);
        let Some(left) = self.roomier_pair(branch, at) else { return };
        let both = self.branches[branch].count(left) + self.branches[branch].count(left + 1);
        if both <= N - N / 8 {
            let (a, b) = self.pair(branch, left);
            let (a_leaf, b_leaf) = self.leaves.pair(a, b);
            let (a_len, b_len) = (a_leaf.len(), b_leaf.len());
            b_leaf.give(0..b_len, a_leaf, a_len);
            self.branches[branch].set_count(left, both);
            self.unlink(b);
            let mut path = path.clone();
            path.steps[self.height - 1] = Step::new(branch, left + 1);
            self.remove_node(&path, self.height - 1);
        } else if len < N / 4 && !self.is_at_an_end(path.leaf) {
            self.even_out(arena, branch, left);
        }
    }

    fn is_at_an_end(&self, leaf: u32) -> bool {
        self.first == leaf || self.last == leaf
    }

    fn unlink(&mut self, node: u32) {
        let (previous, next) = (self.leaves[node].previous, self.leaves[node].next);
        self.join(previous, next);
        self.leaves.remove(node);
    }

    /// Removes the node at the end of a path from its branch at `level`, and the branches that become empty.
    fn remove_node(&mut self, path: &Path, level: usize) {
        let (node, at) = path.bottom(level + 1);
        let branch = &mut self.branches[node];
        branch.remove(at);
        let len = branch.len();
        if len == 0 {
            self.branches.remove(node);
            return match level {
                0 => *self = Order::new(),
                _ => self.remove_node(path, level - 1),
            };
        }
        if at == 0 {
            let first = branch.separator(0);
            self.set_separators_from(path, level, first.score, first.cell);
        }
        if len < N / 4 && level > 0 {
            self.join_branches(path, level);
        }
        self.lower();
    }

    /// Joins the branch at a level of a path with a neighbour, if a quarter then remains free.
    fn join_branches(&mut self, path: &Path, level: usize) {
        let (parent, at) = path.bottom(level);
        let lefts = [at.checked_sub(1), (at + 1 < self.branches[parent].len()).then_some(at)];
        for left in lefts.into_iter().flatten() {
            let (a, b) = self.pair(parent, left);
            if self.branches[a].len() + self.branches[b].len() > N - N / 4 {
                continue;
            }
            let (joined, right) = self.branches.pair(a, b);
            joined.append(right);
            let total = joined.total();
            self.branches.remove(b);
            self.branches[parent].set_count(left, total);
            let mut path = path.clone();
            path.steps[level - 1] = Step::new(parent, left + 1);
            return self.remove_node(&path, level - 1);
        }
    }

    /// Removes roots with a single node.
    fn lower(&mut self) {
        while self.height > 0 && self.branches[self.root].len() == 1 {
            let node = self.branches[self.root].separator(0).node;
            self.branches.remove(self.root);
            self.root = node;
            self.height -= 1;
        }
    }
}
