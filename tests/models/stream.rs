//! Compares the stream with plain vectors and maps, over random operations, with blocks of few entries.

use dunlin::value::stream::{Id, Limits, Stream, Trim};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Words = Vec<Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Push { ms: u64, seq: u64, words: Words },
    Delete(u64, u64),
    Trim { trim: Trim, approximately: bool, limit: usize },
    Range(u64, u64),
    Group(u8),
    DropGroup(u8),
    Consumer(u8, u8),
    DropConsumer(u8, u8),
    Give { group: u8, consumer: u8, id: (u64, u64) },
    Acknowledge { group: u8, id: (u64, u64) },
    Copy,
}

fn id() -> impl Strategy<Value = (u64, u64)> {
    (0..60_u64, 0..3_u64)
}

fn words() -> impl Strategy<Value = Words> {
    let value = prop_oneof![
        (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| (number >> shift).to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..4),
        (0..200_usize).prop_map(|length| vec![b'x'; length]),
    ];
    prop_oneof![
        3 => (value.clone(), value.clone()).prop_map(|(one, other)| vec![b"f".to_vec(), one, b"g".to_vec(), other]),
        1 => prop::collection::vec((prop::collection::vec(b'a'..b'd', 0..2), value), 1..4)
            .prop_map(|pairs| pairs.into_iter().flat_map(|(field, value)| [field, value]).collect()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..3_u8;
    prop_oneof![
        12 => (0..3_u64, 0..3_u64, words()).prop_map(|(ms, seq, words)| Step::Push { ms, seq, words }),
        4 => id().prop_map(|(ms, seq)| Step::Delete(ms, seq)),
        2 => (0..30_usize, any::<bool>(), 0..9_usize)
            .prop_map(|(len, approximately, limit)| Step::Trim { trim: Trim::ToLength(len), approximately, limit }),
        2 => (id(), any::<bool>(), 0..9_usize).prop_map(|((ms, seq), approximately, limit)| {
            Step::Trim { trim: Trim::Before(Id::new(ms, seq)), approximately, limit }
        }),
        3 => (0..70_u64, 0..70_u64).prop_map(|(from, to)| Step::Range(from, to)),
        2 => name().prop_map(Step::Group),
        1 => name().prop_map(Step::DropGroup),
        2 => (name(), name()).prop_map(|(group, consumer)| Step::Consumer(group, consumer)),
        1 => (name(), name()).prop_map(|(group, consumer)| Step::DropConsumer(group, consumer)),
        8 => (name(), name(), id()).prop_map(|(group, consumer, id)| Step::Give { group, consumer, id }),
        4 => (name(), id()).prop_map(|(group, id)| Step::Acknowledge { group, id }),
        1 => Just(Step::Copy),
    ]
}

/// A group: its consumers, and whose each pending entry is.
#[derive(Default)]
struct Readers {
    consumers: Vec<u8>,
    pending: BTreeMap<Id, u8>,
}

/// A stream and its model.
struct Pair {
    stream: Stream,
    entries: Vec<(Id, Words)>,
    groups: BTreeMap<u8, Readers>,
    limits: Limits,
}

impl Pair {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Push { ms, seq, words } => {
                let last = self.stream.log().last();
                let id = if *ms == 0 { Id::new(last.ms, last.seq + 1 + seq) } else { Id::new(last.ms + ms, *seq) };
                self.stream.log_mut().push(id, words.iter().map(Vec::as_slice), &self.limits);
                self.entries.push((id, words.clone()));
            }
            Step::Delete(ms, seq) => {
                let id = Id::new(*ms, *seq);
                let place = self.entries.iter().position(|(other, _)| *other == id);
                assert_eq!(self.stream.log_mut().delete(id), place.is_some());
                place.map(|place| self.entries.remove(place));
            }
            Step::Trim { trim, approximately, limit } => self.trim(*trim, *approximately, *limit),
            Step::Range(from, to) => self.range(Id::new(*from, 1), Id::new(*to, 1)),
            Step::Copy => self.stream = self.stream.clone(),
            _ => self.read(step),
        }
    }

    /// Approximately or with a limit, no more may go than exactly, and only from the beginning.
    fn trim(&mut self, trim: Trim, approximately: bool, limit: usize) {
        let most = match trim {
            Trim::ToLength(len) => self.entries.len().saturating_sub(len),
            Trim::Before(id) => self.entries.iter().filter(|(other, _)| *other < id).count(),
        };
        let limit = if approximately { limit } else { 0 };
        let gone = self.stream.log_mut().trim(trim, approximately, limit);
        assert!(gone <= most && (approximately || gone == most), "{gone} of {most}");
        assert!(limit == 0 || gone <= limit);
        self.entries.drain(..gone);
    }

    fn range(&self, from: Id, to: Id) {
        let expected = self.entries.iter().filter(|(id, _)| (from..=to).contains(id)).map(|(id, _)| *id);
        let log = self.stream.log();
        assert!(log.range(from, to).map(|entry| entry.id()).eq(expected.clone()));
        assert!(log.range_back(from, to).map(|entry| entry.id()).eq(expected.rev()));
    }

    fn read(&mut self, step: &Step) {
        match *step {
            Step::Group(name) => {
                let is_new = self.stream.add_group(&[name], Id::MIN, None);
                assert_eq!(is_new, !self.groups.contains_key(&name));
                self.groups.entry(name).or_default();
            }
            Step::DropGroup(name) => {
                assert_eq!(self.stream.remove_group(&[name]), self.groups.remove(&name).is_some());
            }
            Step::Consumer(group, name) => {
                let is_new = self.stream.edit_group(&[group], |_, group| group.add_consumer(&[name], 1).1);
                let expected = self.groups.get_mut(&group).map(|readers| {
                    let is_new = !readers.consumers.contains(&name);
                    readers.consumers.extend(is_new.then_some(name));
                    is_new
                });
                assert_eq!(is_new, expected);
            }
            Step::DropConsumer(group, name) => {
                let gone = self.stream.edit_group(&[group], |_, group| group.remove_consumer(&[name])).flatten();
                let Some(readers) = self.groups.get_mut(&group) else { return };
                let is_there = readers.consumers.contains(&name);
                let expected = readers.pending.values().filter(|owner| **owner == name).count();
                assert_eq!(gone, is_there.then_some(expected));
                readers.consumers.retain(|other| *other != name);
                readers.pending.retain(|_, owner| *owner != name);
            }
            Step::Give { group, consumer, id: (ms, seq) } => {
                let id = Id::new(ms, seq);
                self.stream.edit_group(&[group], |_, group| {
                    let (number, _) = group.add_consumer(&[consumer], 1);
                    group.deliver(id, number, 2);
                });
                let Some(readers) = self.groups.get_mut(&group) else { return };
                if !readers.consumers.contains(&consumer) {
                    readers.consumers.push(consumer);
                }
                readers.pending.insert(id, consumer);
            }
            Step::Acknowledge { group, id: (ms, seq) } => {
                let id = Id::new(ms, seq);
                let done = self.stream.edit_group(&[group], |_, group| group.acknowledge(id));
                assert_eq!(done, self.groups.get_mut(&group).map(|readers| readers.pending.remove(&id).is_some()));
            }
            _ => {}
        }
    }

    fn compare(&self) {
        self.stream.check();
        let log = self.stream.log();
        assert_eq!(log.len(), self.entries.len());
        assert_eq!(log.last_entry().map(|entry| entry.id()), self.entries.last().map(|(id, _)| *id));
        let entries = log.range(Id::MIN, Id::MAX).map(|entry| {
            (entry.id(), entry.pairs().flat_map(|(field, value)| [field.to_vec(), value.to_vec()]).collect::<Words>())
        });
        assert!(entries.eq(self.entries.iter().cloned()));
        for (name, readers) in &self.groups {
            let group = self.stream.group(&[*name]).expect("it was added");
            let pending =
                group.pending_from(Id::MIN).map(|pending| (pending.id(), group.consumer(pending.consumer()).name()[0]));
            assert!(pending.eq(readers.pending.iter().map(|(id, owner)| (*id, *owner))));
            for (number, consumer) in group.consumers() {
                let own = readers.pending.iter().filter(|(_, owner)| **owner == consumer.name()[0]).map(|(id, _)| *id);
                assert!(group.pending_of(number, Id::MIN).map(|pending| pending.id()).eq(own));
            }
        }
    }
}

fn run(limits: Limits, steps: &[Step]) {
    let mut pair = Pair { stream: Stream::new(), entries: Vec::new(), groups: BTreeMap::new(), limits };
    for step in steps {
        pair.take(step);
        pair.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn blocks_of_few_entries_hold_what_the_model_holds(
        entries in 1..5_usize,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        run(Limits { entries, ..Limits::default() }, &steps);
    }

    #[test]
    fn blocks_of_few_bytes_hold_what_the_model_holds(
        bytes in 1..300_usize,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        run(Limits { bytes, entries: 0 }, &steps);
    }

    #[test]
    fn a_stream_of_usual_size_holds_what_the_model_holds(steps in prop::collection::vec(step(), 0..300)) {
        run(Limits::default(), &steps);
    }
}
