//! A consumer group: how far it has read, who reads, and what was given to whom and not acknowledged yet.
//!
//! ```text
//! pending:    5-0 ann 3x   5-1 ben 1x   7-0 ann 1x   ...      by id: when, how often and to whom it was given
//! consumers:  ann { 5-0, 7-0 }   ben { 5-1 }                  by name: the ids of each
//! ```
//!
//! A pending entry names its consumer by a number, which the consumer keeps for life; numbers of those
//! that are gone are given again.
//!
//! - Invariant: an id is pending exactly if one consumer has it, the one that the pending entry names; consumers
//!   lie in the order of their names.
//! - A pending entry takes 56 bytes.
//!
//! Costs: giving, acknowledging and claiming an entry are O(log pending), adding a consumer O(log consumers), removing
//! one O(log consumers) and a removal for each entry that it has.

use super::id::Id;
use super::log::Log;
use crate::value::sorted_chunks::{Keyed, SortedChunks};
use std::cmp::Ordering;

/// A consumer group.
pub struct Group {
    name: Box<[u8]>,
    /// The last entry that was given to anyone.
    pub last: Id,
    /// How many entries were read, as far as is known.
    pub read: Option<i64>,
    pending: SortedChunks<Pending>,
    consumers: Vec<Option<Consumer>>,
    /// The numbers of the consumers, in the order of their names.
    order: SortedChunks<u32>,
    /// The numbers of those that are gone.
    free: Vec<u32>,
    /// Bytes of the allocations of all consumers.
    consumer_bytes: usize,
}

/// An entry that was given to a consumer and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    id: Id,
    /// When it was given last, in unix milliseconds.
    pub delivered_ms: i64,
    /// How often it was given.
    pub times: u64,
    consumer: u32,
}

/// One that reads.
#[derive(Clone)]
pub struct Consumer {
    name: Box<[u8]>,
    /// When it last asked for anything, in unix milliseconds.
    pub seen_ms: i64,
    /// When it last got anything.
    pub active_ms: Option<i64>,
    pending: SortedChunks<Id>,
}

/// A consumer of a group, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerNumber(u32);

impl Clone for Group {
    /// A copy, whose allocations have no room to spare.
    fn clone(&self) -> Group {
        let consumers = self.consumers.clone();
        let consumer_bytes = consumers.iter().flatten().map(Consumer::memory).sum();
        let (name, pending) = (self.name.clone(), self.pending.clone());
        let (order, free) = (self.order.clone(), self.free.clone());
        Group { name, last: self.last, read: self.read, pending, consumers, order, free, consumer_bytes }
    }
}

impl Keyed for Pending {
    type Key = Id;

    fn key(&self) -> Id {
        self.id
    }
}

impl Pending {
    /// The entry.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Whose it is.
    pub fn consumer(&self) -> ConsumerNumber {
        ConsumerNumber(self.consumer)
    }
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How many entries it has not acknowledged.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    fn memory(&self) -> usize {
        self.name.len() + self.pending.memory()
    }
}

impl Group {
    pub(super) fn new(name: &[u8], last: Id, read: Option<i64>) -> Group {
        Group {
            name: name.into(),
            last,
            read,
            pending: SortedChunks::default(),
            consumers: Vec::new(),
            order: SortedChunks::default(),
            free: Vec::new(),
            consumer_bytes: 0,
        }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Bytes of its allocations.
    pub(super) fn memory(&self) -> usize {
        let places =
            self.consumers.capacity() * size_of::<Option<Consumer>>() + self.free.capacity() * size_of::<u32>();
        self.name.len() + self.pending.memory() + self.order.memory() + places + self.consumer_bytes
    }

    /// How many consumers there are.
    pub fn consumer_count(&self) -> usize {
        self.order.len()
    }

    /// The consumers, in the order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = (ConsumerNumber, &Consumer)> + Clone {
        self.order.iter().map(|&number| (ConsumerNumber(number), self.consumer(ConsumerNumber(number))))
    }

    /// The consumer of that number, which is there.
    pub fn consumer(&self, number: ConsumerNumber) -> &Consumer {
        self.consumers[number.0 as usize].as_ref().expect("numbers of those that are gone are not kept")
    }

    /// The same, to be changed.
    pub fn consumer_mut(&mut self, number: ConsumerNumber) -> &mut Consumer {
        self.consumers[number.0 as usize].as_mut().expect("numbers of those that are gone are not kept")
    }

    /// The number of the consumer of that name.
    pub fn find_consumer(&self, name: &[u8]) -> Option<ConsumerNumber> {
        self.order.get_by(by_name(&self.consumers, name)).copied().map(ConsumerNumber)
    }

    /// Adds a consumer that was seen now; the one that has the name, and false, if there is one.
    pub fn add_consumer(&mut self, name: &[u8], now_ms: i64) -> (ConsumerNumber, bool) {
        if let Some(number) = self.find_consumer(name) {
            return (number, false);
        }
        let consumer =
            Consumer { name: name.into(), seen_ms: now_ms, active_ms: None, pending: SortedChunks::default() };
        self.consumer_bytes += consumer.memory();
        let number = self.free.pop().unwrap_or_else(|| {
            self.consumers.push(None);
            self.consumers.len() as u32 - 1
        });
        // Its place in the order is found before it is there: no name is looked up by its own number.
        self.order.insert_by(number, by_name(&self.consumers, name));
        self.consumers[number as usize] = Some(consumer);
        (ConsumerNumber(number), true)
    }

    /// Removes a consumer with all that it has not acknowledged; answers how many entries that were,
    /// `None` if there is no such consumer.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let number = self.order.remove_by(by_name(&self.consumers, name))?;
        let consumer = self.consumers[number as usize].take()?;
        self.free.push(number);
        self.consumer_bytes -= consumer.memory();
        consumer.pending.iter().for_each(|&id| _ = self.pending.remove(id));
        Some(consumer.pending.len())
    }

    /// How many entries are pending.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// What was given and not acknowledged, from an id on.
    pub fn pending_from(&self, id: Id) -> impl Iterator<Item = &Pending> {
        self.pending.from(id)
    }

    /// The first and the last id that are pending.
    pub fn pending_ends(&self) -> Option<(Id, Id)> {
        Some((self.pending.first()?.id, self.pending.last()?.id))
    }

    /// What a consumer was given and has not acknowledged, from an id on.
    pub fn pending_of(&self, number: ConsumerNumber, id: Id) -> impl Iterator<Item = &Pending> {
        self.consumer(number).pending.from(id).filter_map(|&id| self.pending.get(id))
    }

    /// What is pending of an entry.
    pub fn pending(&self, id: Id) -> Option<&Pending> {
        self.pending.get(id)
    }

    /// The same, to be changed.
    pub fn pending_mut(&mut self, id: Id) -> Option<&mut Pending> {
        self.pending.get_mut(id)
    }

    /// The group has read on to an entry of `log`: who counts what it read counts it too, as far as that is known.
    pub fn advance(&mut self, log: &Log, id: Id) {
        self.read = match self.read {
            Some(read) if self.last >= log.first() && !log.is_fragmented_from(self.last) => Some(read.wrapping_add(1)),
            _ if log.added() > 0 => log.place(id).map(u64::cast_signed),
            read => read,
        };
        self.last = id;
    }

    /// Gives an entry to a consumer, whoever had it: from now on it was given once.
    pub fn deliver(&mut self, id: Id, number: ConsumerNumber, now_ms: i64) {
        self.assign(id, number, now_ms, 1);
        self.consumer_mut(number).active_ms = Some(now_ms);
    }

    /// Has an entry be a consumer's, given to it so often, the last time at that moment.
    pub fn assign(&mut self, id: Id, number: ConsumerNumber, delivered_ms: i64, times: u64) {
        let assigned = Pending { id, delivered_ms, times, consumer: number.0 };
        if self.pending.insert(assigned) {
            self.of_consumer(number.0, |ids| _ = ids.insert(id));
        } else if let Some(pending) = self.pending.get_mut(id) {
            let before = std::mem::replace(pending, assigned).consumer;
            if before != number.0 {
                self.of_consumer(before, |ids| _ = ids.remove(id));
                self.of_consumer(number.0, |ids| _ = ids.insert(id));
            }
        }
    }

    /// An entry is no longer pending; false when it was not.
    pub fn acknowledge(&mut self, id: Id) -> bool {
        let Some(pending) = self.pending.remove(id) else { return false };
        self.of_consumer(pending.consumer, |ids| _ = ids.remove(id));
        true
    }

    fn of_consumer(&mut self, number: u32, act: impl FnOnce(&mut SortedChunks<Id>)) {
        let consumer = self.consumer_mut(ConsumerNumber(number));
        let before = consumer.memory();
        act(&mut consumer.pending);
        let after = consumer.memory();
        self.consumer_bytes = self.consumer_bytes - before + after;
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        self.pending.check();
        assert!(self.consumers().map(|(_, consumer)| consumer.name()).is_sorted_by(|one, next| one < next));
        self.order.check_chunks();
        assert_eq!(self.consumers.iter().flatten().count(), self.order.len());
        assert_eq!(self.consumers.len(), self.order.len() + self.free.len());
        let mut pending = 0;
        for (number, consumer) in self.consumers() {
            consumer.pending.check();
            pending += consumer.pending.len();
            let is_owner = |id: &Id| self.pending.get(*id).is_some_and(|pending| pending.consumer() == number);
            assert!(consumer.pending.iter().all(is_owner), "what a consumer has is pending and its own");
        }
        assert_eq!(pending, self.pending.len());
        let bytes: usize = self.consumers().map(|(_, consumer)| consumer.memory()).sum();
        assert_eq!(bytes, self.consumer_bytes);
    }
}

/// How the name of the consumer of a number compares with a name.
fn by_name(consumers: &[Option<Consumer>], name: &[u8]) -> impl Fn(&u32) -> Ordering {
    |&number| consumers[number as usize].as_ref().map(Consumer::name).cmp(&Some(name))
}
