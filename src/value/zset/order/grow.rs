//! How the order grows: room is made by sharing with a neighbour, by splitting two leaves into three, or at either
//! end by starting a new leaf, which leaves a full one behind.
//!
//! Each iteration of [`Order::insert`] makes room at one level, from the top down, and then searches again.

use super::super::Entry;
use super::super::branch::{Branch, Separator};
use super::super::leaf::Leaf;
use super::super::search_key::{SearchKey, sortable};
use super::{Order, Path, Step};
use crate::value::arena::{Arena, Handle};
use crate::value::slab::NONE;

impl<const N: usize> Order<N> {
    /// Inserts a cell at the position that its entry in the arena gives.
    pub(in super::super) fn insert(&mut self, arena: &Arena, cell: Handle) {
        let entry = Entry::of(arena, cell);
        let key = SearchKey::at(entry.score, entry.member);
        loop {
            let path = self.descend(arena, &key);
            let leaf = &mut self.leaves[path.leaf];
            let at = leaf.lower(arena, &key);
            if !leaf.is_full() {
                leaf.insert(at, cell, key.score);
                self.add(&path, 1);
                if at == 0 {
                    self.update_separators_above(arena, &path);
                }
                return;
            }
            let (is_first, is_last) = (leaf.previous == NONE, leaf.next == NONE);
            if !self.has_room_above(&path) {
                self.make_room_above(arena, &path);
            } else if at == N && is_last || at == 0 && is_first {
                return self.start_leaf(arena, &path, cell, is_last && at == N);
            } else {
                self.make_room_in_leaf(arena, &path);
            }
        }
    }

    fn has_room_above(&self, path: &Path) -> bool {
        self.height > 0 && !self.branches[path.steps[self.height - 1].branch].is_full()
    }

    /// Splits the highest of the full branches right above the leaf of a path, or puts a new root over all.
    fn make_room_above(&mut self, arena: &Arena, path: &Path) {
        let is_full = |step: &Step| self.branches[step.branch].is_full();
        let full = path.steps[..self.height].iter().rev().take_while(|step| is_full(step)).count();
        match self.height - full {
            0 => self.raise(arena),
            level => self.split_branch(path, level),
        }
    }

    /// Adds a new root above the root.
    fn raise(&mut self, arena: &Arena) {
        let cell = self.first_cell(self.root, self.height);
        let separator = Separator { score: sortable(arena.number(cell)), cell, node: self.root };
        let mut branch = Branch::default();
        branch.insert(0, separator, self.len);
        self.root = self.branches.insert(branch);
        self.height += 1;
    }

    /// Splits the branch at a level of a path whose parent has room: in halves, but at an end of the order such that
    /// the inner part stays full.
    fn split_branch(&mut self, path: &Path, level: usize) {
        let (parent, node) = (path.steps[level - 1], path.steps[level].branch);
        let (is_first, is_last) = (self.leaves[path.leaf].previous == NONE, self.leaves[path.leaf].next == NONE);
        let branch = &mut self.branches[node];
        let len = branch.len();
        let at = match (is_first, is_last) {
            (_, true) => len - 1,
            (true, _) => 1,
            _ => len / 2,
        };
        let right = branch.take(at..len);
        let (left_count, right_count) = (branch.total(), right.total());
        let separator = right.separator(0);
        let node = self.branches.insert(right);
        let above = &mut self.branches[parent.branch];
        above.set_count(parent.at(), left_count);
        above.insert(parent.at() + 1, Separator { node, ..separator }, right_count);
    }

    /// Puts a cell into a leaf of its own, at one end of the order.
    fn start_leaf(&mut self, arena: &Arena, path: &Path, cell: Handle, is_last: bool) {
        let score = sortable(arena.number(cell));
        let mut leaf = Leaf::new();
        leaf.insert(0, cell, score);
        let step = path.steps[self.height - 1];
        let after = if is_last { path.leaf } else { NONE };
        let node = self.link_behind(after, leaf);
        let at = if is_last { step.at() + 1 } else { 0 };
        self.branches[step.branch].insert(at, Separator { score, cell, node }, 1);
        self.len += 1;
        for step in &path.steps[..self.height - 1] {
            let branch = &mut self.branches[step.branch];
            branch.set_count(step.at(), branch.count(step.at()) + 1);
        }
        if at == 0 {
            self.set_separators_from(path, self.height, score, cell);
        }
    }

    /// Makes room in the full leaf of a path: shares with a neighbour, splits two leaves into three, or one into two.
    fn make_room_in_leaf(&mut self, arena: &Arena, path: &Path) {
        let (branch, at) = path.bottom(self.height);
        let Some(left) = self.roomier_pair(branch, at) else { return self.split_one(arena, branch, at) };
        let room = 2 * N - self.branches[branch].count(left) - self.branches[branch].count(left + 1);
        if room > 1.max(N / 8) { self.even_out(arena, branch, left) } else { self.split_two(arena, branch, left) }
    }

    /// Splits a full pair of leaves into three.
    fn split_two(&mut self, arena: &Arena, branch: u32, left: usize) {
        let (a, b) = self.pair(branch, left);
        let (a_leaf, b_leaf) = self.leaves.pair(a, b);
        let mut middle = Leaf::new();
        let (a_len, b_len) = (a_leaf.len(), b_leaf.len());
        let third = (a_len + b_len).div_ceil(3);
        a_leaf.give(third..a_len, &mut middle, 0);
        let behind = middle.len();
        b_leaf.give(0..b_len - third, &mut middle, behind);
        self.insert_leaf(arena, branch, left + 1, a, middle);
        self.update_branch(arena, branch, left..left + 3);
    }

    /// Splits one leaf without a neighbour into two.
    fn split_one(&mut self, arena: &Arena, branch: u32, at: usize) {
        let node = self.branches[branch].separator(at).node;
        let mut right = Leaf::new();
        self.leaves[node].give(N / 2..N, &mut right, 0);
        self.insert_leaf(arena, branch, at + 1, node, right);
        self.update_branch(arena, branch, at..at + 2);
    }

    /// Adds a leaf to the list and to a branch, whose counts are updated later.
    fn insert_leaf(&mut self, arena: &Arena, branch: u32, at: usize, previous: u32, leaf: Leaf<N>) {
        let cell = leaf.cell(0);
        let node = self.link_behind(previous, leaf);
        self.branches[branch].insert(at, Separator { score: sortable(arena.number(cell)), cell, node }, 0);
    }
}
