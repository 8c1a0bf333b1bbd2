//! A consumer group: how far it has read, its consumers, and the entries delivered to each and not yet acknowledged.
//!
//! ```text
//! pending:    5-0 ann 3x   5-1 ben 1x   7-0 ann 1x   ...      by id: delivery time, count and consumer
//! consumers:  ann { 5-0, 7-0 }   ben { 5-1 }                  by name: the ids of each
//! ```
//!
//! A pending entry names its consumer by a number, which the consumer keeps while it exists; numbers of removed
//! consumers are used again.
//!
//! - Invariant: an id is pending exactly if one consumer has it, the one that the pending entry names; consumers are
//!   in the order of their names.
//! - A pending entry takes 56 bytes.
//!
//! Costs: delivering, acknowledging and claiming an entry are O(log pending), adding a consumer O(log consumers),
//! removing one O(log consumers) and a removal for each entry that it has.

use super::id::Id;
use super::log::Log;
use crate::value::sorted_chunks::{Keyed, SortedChunks};
use std::cmp::Ordering;

/// A consumer group of a stream.
pub struct Group {
    name: Box<[u8]>,
    /// The id of the last entry that was delivered to any consumer.
    pub last: Id,
    /// The number of entries that were read, if it is known.
    pub read: Option<i64>,
    pending: SortedChunks<Pending>,
    consumers: Vec<Option<Consumer>>,
    /// The numbers of the consumers, in the order of their names.
    order: SortedChunks<u32>,
    /// The numbers of removed consumers, to be used again.
    free: Vec<u32>,
    /// Bytes of the allocations of all consumers.
    consumer_bytes: usize,
}

/// An entry that was delivered to a consumer and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    id: Id,
    /// The time of the last delivery, in unix milliseconds.
    pub delivered_ms: i64,
    /// The number of deliveries.
    pub times: u64,
    consumer: u32,
}

/// A consumer of a group.
#[derive(Clone)]
pub struct Consumer {
    name: Box<[u8]>,
    /// The time of its last attempt to read or claim, in unix milliseconds.
    pub seen_ms: i64,
    /// The time when it last received an entry, in unix milliseconds.
    pub active_ms: Option<i64>,
    pending: SortedChunks<Id>,
}

/// A consumer of a group, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerNumber(u32);

impl Clone for Group {
    /// A copy whose allocations have no spare capacity.
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
    /// The id of the entry.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The consumer that owns the pending entry.
    pub fn consumer(&self) -> ConsumerNumber {
        ConsumerNumber(self.consumer)
    }
}

impl Consumer {
    /// The name of the consumer.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The number of entries that it has not acknowledged.
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

    /// The name of the group.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Bytes of its allocations.
    pub(super) fn memory(&self) -> usize {
        let places =
            self.consumers.capacity() * size_of::<Option<Consumer>>() + self.free.capacity() * size_of::<u32>();
        self.name.len() + self.pending.memory() + self.order.memory() + places + self.consumer_bytes
    }

    /// The number of consumers.
    pub fn consumer_count(&self) -> usize {
        self.order.len()
    }

    /// The consumers, in the order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = (ConsumerNumber, &Consumer)> + Clone {
        self.order.iter().map(|&number| (ConsumerNumber(number), self.consumer(ConsumerNumber(number))))
    }

    /// The consumer with that number, which must exist.
    pub fn consumer(&self, number: ConsumerNumber) -> &Consumer {
        self.consumers[number.0 as usize].as_ref().expect("no number of a removed consumer is in use")
    }

    /// The consumer with that number, which must exist, for changing.
    pub fn consumer_mut(&mut self, number: ConsumerNumber) -> &mut Consumer {
        self.consumers[number.0 as usize].as_mut().expect("no number of a removed consumer is in use")
    }

    /// The number of the consumer with that name.
    pub fn find_consumer(&self, name: &[u8]) -> Option<ConsumerNumber> {
        self.order.get_by(by_name(&self.consumers, name)).copied().map(ConsumerNumber)
    }

    /// Adds a consumer that was seen now; if one of that name exists, returns its number and false.
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
        // The position in the order is found before the number is inserted: no name is looked up by its own number.
        self.order.insert_by(number, by_name(&self.consumers, name));
        self.consumers[number as usize] = Some(consumer);
        (ConsumerNumber(number), true)
    }

    /// Removes a consumer with all its pending entries; returns how many these were, `None` if there is no such
    /// consumer.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let number = self.order.remove_by(by_name(&self.consumers, name))?;
        let consumer = self.consumers[number as usize].take()?;
        self.free.push(number);
        self.consumer_bytes -= consumer.memory();
        consumer.pending.iter().for_each(|&id| _ = self.pending.remove(id));
        Some(consumer.pending.len())
    }

    /// The number of pending entries of the group.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// The pending entries from an id on.
    pub fn pending_from(&self, id: Id) -> impl Iterator<Item = &Pending> {
        self.pending.from(id)
    }

    /// The first and the last pending id.
    pub fn pending_ends(&self) -> Option<(Id, Id)> {
        Some((self.pending.first()?.id, self.pending.last()?.id))
    }

    /// The pending entries of one consumer from an id on.
    pub fn pending_of(&self, number: ConsumerNumber, id: Id) -> impl Iterator<Item = &Pending> {
        self.consumer(number).pending.from(id).filter_map(|&id| self.pending.get(id))
    }

    /// The pending entry with that id.
    pub fn pending(&self, id: Id) -> Option<&Pending> {
        self.pending.get(id)
    }

    /// The pending entry with that id, for changing.
    pub fn pending_mut(&mut self, id: Id) -> Option<&mut Pending> {
        self.pending.get_mut(id)
    }

    /// Moves the group's last read id on to an entry of `log`; the number of entries read follows, if it is known.
    pub fn advance(&mut self, log: &Log, id: Id) {
        self.read = match self.read {
            Some(read) if self.last >= log.first() && !log.is_fragmented_from(self.last) => Some(read.wrapping_add(1)),
            _ if log.added() > 0 => log.place(id).map(u64::cast_signed),
            read => read,
        };
        self.last = id;
    }

    /// Delivers an entry to a consumer, whichever had it before: its delivery count becomes 1.
    pub fn deliver(&mut self, id: Id, number: ConsumerNumber, now_ms: i64) {
        self.assign(id, number, now_ms, 1);
        self.consumer_mut(number).active_ms = Some(now_ms);
    }

    /// Assigns an entry to a consumer, with a delivery time and a delivery count.
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

    /// Removes an entry from the pending ones; false if it was not pending.
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
            assert!(consumer.pending.iter().all(is_owner), "each entry of a consumer is pending and names it");
        }
        assert_eq!(pending, self.pending.len());
        let bytes: usize = self.consumers().map(|(_, consumer)| consumer.memory()).sum();
        assert_eq!(bytes, self.consumer_bytes);
    }
}

/// Compares the name of the consumer with a number to a name.
fn by_name(consumers: &[Option<Consumer>], name: &[u8]) -> impl Fn(&u32) -> Ordering {
    |&number| consumers[number as usize].as_ref().map(Consumer::name).cmp(&Some(name))
}
