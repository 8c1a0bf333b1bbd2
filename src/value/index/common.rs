//! The cells that two indices have in common. Both have their slots in the same order, so they are merged, and the
//! processor has no branch to predict but those for equal tags.

use super::{GAP, Index, PREFIX_BITS, Segment, Slot};
use crate::value::arena::Handle;
use std::ops::ControlFlow;

impl Index {
    /// Visits the cells that, by `is_same`, have an equal cell of the same hash in another index, each with that cell,
    /// until `visit` breaks off. It hashes nothing, and compares cells only when their tags are equal: both indices
    /// have the same order.
    ///
    /// In the first segment each cell is searched for, so that a visit of few cells does not wait for a merge.
    pub(in crate::value) fn common(
        &self,
        other: &Index,
        is_same: impl Fn(Handle, Handle) -> bool,
        mut visit: impl FnMut(Handle, Handle) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (mut used, mut used_beside) = (UsedSlots::default(), UsedSlots::default());
        let mut prefix = 0;
        while prefix < 1 << PREFIX_BITS {
            let (number, number_beside) = (self.segment_at(prefix), other.segment_at(prefix));
            let (segment, beside) = (self.segment(number), other.segment(number_beside));
            if prefix == 0 {
                for slot in segment.used() {
                    if let Some(at) = beside.find(slot.tag, |cell| is_same(slot.cell(), cell)) {
                        visit(slot.cell(), beside.slots[at].cell())?;
                    }
                }
            } else {
                let (slots, slots_beside) = (used.of(number, segment), used_beside.of(number_beside, beside));
                visit_equal_tags(slots, slots_beside, |cell, same| {
                    if is_same(cell, same) { visit(cell, same) } else { ControlFlow::Continue(()) }
                })?;
            }
            prefix += 1 << (PREFIX_BITS - segment.depth.max(beside.depth));
        }
        ControlFlow::Continue(())
    }
}

/// The used slots of the segment of an index that was merged last. One segment may be beside several of the other
/// index, which is then larger.
#[derive(Default)]
struct UsedSlots {
    segment: Option<usize>,
    slots: Vec<Slot>,
    len: usize,
}

impl UsedSlots {
    /// The used slots of the segment with a number, without the gaps. To copy each slot takes less time than a branch
    /// for each, which the processor could not predict.
    fn of(&mut self, number: usize, segment: &Segment) -> &[Slot] {
        if self.segment.replace(number) != Some(number) {
            self.slots.resize(self.slots.len().max(segment.slots.len()), GAP);
            let mut used = 0;
            for &slot in &segment.slots {
                self.slots[used] = slot;
                used += usize::from(!slot.is_gap());
            }
            self.len = used;
        }
        &self.slots[..self.len]
    }
}

/// Visits each pair of cells whose slots have the same tag, of two lists that ascend by tag. The list that is behind
/// advances without a branch, which the processor could not predict.
fn visit_equal_tags(
    slots: &[Slot],
    beside: &[Slot],
    mut visit: impl FnMut(Handle, Handle) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (mut at, mut at_beside) = (0, 0);
    while let (Some(slot), Some(other)) = (slots.get(at), beside.get(at_beside)) {
        if slot.tag == other.tag {
            let mut alike = beside[at_beside..].iter().take_while(|other| other.tag == slot.tag);
            alike.try_for_each(|other| visit(slot.cell(), other.cell()))?;
            at += 1;
        } else {
            at += usize::from(slot.tag < other.tag);
            at_beside += usize::from(slot.tag > other.tag);
        }
    }
    ControlFlow::Continue(())
}
