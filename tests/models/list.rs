//! Compares the list with a vector, over random operations of typical kinds.

use dunlin::value::SharedBytes;
use dunlin::value::list::{End, Limits, List, Side};
use proptest::prelude::*;
use proptest::sample::Index;
use std::ops::Range;

#[derive(Clone, Debug)]
enum Step {
    Push(End, Vec<Vec<u8>>),
    Pop(End),
    Set(Index, Vec<u8>),
    Insert(Index, Side, Vec<u8>),
    Remove(Index, usize),
    RemoveEqual(Index, End, usize),
    Trim(Index, usize),
    Range(Index, Index),
    Positions(Index, End),
    Copy,
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0..50_u32).prop_map(|number| format!("product-{number:07}").into_bytes()),
        4 => (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| (number >> shift).to_string().into_bytes()),
        3 => prop::collection::vec(any::<u8>(), 0..3),
        2 => (0..3_u8, 0..400_usize).prop_map(|(byte, len)| vec![byte; len]),
        1 => (0..3_u8, 3900..4200_usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![End::Head, End::Tail])
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<Index>;
    let side = || prop::sample::select(vec![Side::Before, Side::After]);
    prop_oneof![
        10 => (end(), prop::collection::vec(element(), 0..6)).prop_map(|(end, elements)| Step::Push(end, elements)),
        6 => end().prop_map(Step::Pop),
        6 => (at(), element()).prop_map(|(at, element)| Step::Set(at, element)),
        10 => (at(), side(), element()).prop_map(|(at, side, element)| Step::Insert(at, side, element)),
        3 => (at(), 0..6_usize).prop_map(|(at, count)| Step::Remove(at, count)),
        3 => (at(), end(), 0..4_usize).prop_map(|(at, end, most)| Step::RemoveEqual(at, end, most)),
        1 => (at(), 0..30_usize).prop_map(|(at, count)| Step::Trim(at, count)),
        2 => (at(), at()).prop_map(|(a, b)| Step::Range(a, b)),
        2 => (at(), end()).prop_map(|(at, end)| Step::Positions(at, end)),
        1 => Just(Step::Copy),
    ]
}

/// A list and its model.
struct Pair {
    list: List,
    model: Vec<Vec<u8>>,
    limits: Limits,
}

impl Pair {
    /// A position in the list, or the one after its end.
    fn at(&self, at: &Index) -> usize {
        at.index(self.model.len() + 1)
    }

    /// An element of the list, or one that is not there.
    fn element(&self, at: &Index) -> Vec<u8> {
        self.model.get(self.at(at)).cloned().unwrap_or_else(|| b"absent".to_vec())
    }

    fn positions(&self, element: &[u8], from: End) -> Vec<usize> {
        let mut positions: Vec<usize> = (0..self.model.len()).filter(|&at| self.model[at] == element).collect();
        if from == End::Tail {
            positions.reverse();
        }
        positions
    }

    fn clamped(&self, start: usize, count: usize) -> Range<usize> {
        start.min(self.model.len())..(start + count).min(self.model.len())
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Push(end, elements) => {
                match &elements[..] {
                    [only] if only.len() % 2 == 0 => {
                        self.list.push_shared(*end, SharedBytes::from(only.as_slice()), &self.limits);
                    }
                    _ => self.list.push(*end, elements.iter().map(Vec::as_slice), &self.limits),
                }
                for element in elements {
                    let at = if *end == End::Head { 0 } else { self.model.len() };
                    self.model.insert(at, element.clone());
                }
            }
            Step::Pop(end) => {
                let expected = match end {
                    End::Tail => self.model.pop(),
                    End::Head => (!self.model.is_empty()).then(|| self.model.remove(0)),
                };
                assert_eq!(self.list.pop(*end, &self.limits), expected);
            }
            Step::Set(at, element) => {
                let at = self.at(at);
                let is_set = self.model.get_mut(at).map(|old| old.clone_from(element)).is_some();
                assert_eq!(self.list.set(at, element, &self.limits), is_set);
            }
            Step::Insert(at, side, element) => {
                let at = self.at(at);
                assert_eq!(self.list.insert(at, *side, element, &self.limits), at < self.model.len());
                if at < self.model.len() {
                    self.model.insert(at + usize::from(*side == Side::After), element.clone());
                }
            }
            Step::Remove(at, count) => {
                let at = self.at(at);
                self.model.drain(self.clamped(at, *count));
                self.list.remove(at..at + count, &self.limits);
            }
            Step::RemoveEqual(at, from, most) => {
                let element = self.element(at);
                let mut gone: Vec<usize> = self.positions(&element, *from).into_iter().take(*most).collect();
                assert_eq!(self.list.remove_equal(&element, *from, *most, &self.limits), gone.len());
                gone.sort_unstable();
                gone.into_iter().rev().for_each(|at| _ = self.model.remove(at));
            }
            Step::Trim(at, count) => {
                let at = self.at(at);
                self.list.trim(at..at + count, &self.limits);
                self.model = self.model[self.clamped(at, *count)].to_vec();
            }
            Step::Range(..) | Step::Positions(..) => self.ask(step),
            Step::Copy => self.list = self.list.clone(),
        }
    }

    fn ask(&self, step: &Step) {
        match step {
            Step::Range(a, b) => {
                let (start, end) = (self.at(a).min(self.at(b)), self.at(a).max(self.at(b)));
                let expected = &self.model[start..end];
                assert!(self.list.range(start..end).map(|item| item.to_vec()).eq(expected.iter().cloned()));
                let backward = self.list.range(start..end).rev().map(|item| item.to_vec());
                assert!(backward.eq(expected.iter().rev().cloned()), "backward");
            }
            Step::Positions(at, from) => {
                let element = self.element(at);
                assert!(self.list.positions(&element, *from, usize::MAX).eq(self.positions(&element, *from)));
            }
            _ => {}
        }
    }

    fn compare(&self) {
        self.list.check();
        assert_eq!(self.list.len(), self.model.len());
        assert!(self.list.iter().map(|item| item.to_vec()).eq(self.model.iter().cloned()), "{:?}", self.list);
        for (at, element) in self.model.iter().enumerate() {
            assert!(self.list.get(at).is_some_and(|item| item == **element), "position {at}");
        }
        assert!(self.list.get(self.model.len()).is_none());
    }
}

fn run(limits: Limits, steps: &[Step]) {
    let mut pair = Pair { list: List::new(), model: Vec::new(), limits };
    for step in steps {
        pair.take(step);
        pair.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nodes_of_few_items_hold_what_the_model_holds(size in 0..5_i64, steps in prop::collection::vec(step(), 0..150)) {
        run(Limits { size, ..Limits::default() }, &steps);
    }

    #[test]
    fn nodes_of_few_bytes_hold_what_the_model_holds(steps in prop::collection::vec(step(), 0..200)) {
        run(Limits { size: -1, ..Limits::default() }, &steps);
    }

    #[test]
    fn a_list_of_usual_size_holds_what_the_model_holds(steps in prop::collection::vec(step(), 0..200)) {
        run(Limits::default(), &steps);
    }
}
