//! [`Ctx`]: the only access that command handlers have to the data and the engine.
//!
//! A handler sees the engine only through its [`Ctx`]. Reading and writing use a handful of methods, the forms, and
//! each writing form does everything that must follow a change, so no handler can forget a part of it:
//!
//! 1. a key that holds another type is refused with `WRONGTYPE` and nothing happens;
//! 2. a missing key is created only where the caller wants it;
//! 3. a collection that became empty is removed, with the event `del`;
//! 4. the change is counted (`rdb_changes_since_last_save`);
//! 5. the change's event is published (keyspace notifications);
//! 6. a large value that was replaced or removed is freed on another thread.
//!
//! The forms: [`Ctx::view`], [`Ctx::read`], [`Ctx::text`], [`Ctx::text_to_change`], [`Ctx::glance`] and [`Ctx::peek`]
//! read; [`Ctx::edit`], [`Ctx::edit_and_reply`], [`Ctx::upsert`], [`Ctx::edit_metadata`], [`Ctx::edit_text`],
//! [`Ctx::count_text`], [`Ctx::put`], [`Ctx::store`], [`Ctx::remove`], [`Ctx::set_deadline`], [`Ctx::expire`] and
//! [`Ctx::persist`] write one key; [`Ctx::relocate`] and [`Ctx::duplicate`] move or copy one key to another;
//! [`Ctx::empty`] and [`Ctx::swap`] change whole databases. [`Ctx::run`] runs a command within this one, and
//! [`Ctx::block_or`] blocks its client.
//!
//! A key whose deadline has passed does not exist for handlers: the first access deletes it, and counts as its expiry.

mod blocking;
pub(in crate::engine) mod databases;
mod metadata;
mod multi_key;
mod peek;
mod server;
mod stored;
mod text;
mod transfer;

pub use metadata::MetadataChange;
pub use peek::Peek;
pub use stored::Stored;

use crate::engine::Engine;
use crate::engine::exec::{access, changes, delivery, fields, publish};
use crate::engine::spec::{CommandId, Entry, Error, Event, Now, Table};
use crate::engine::state::{Block, Databases, Effects, Session, SessionId, Settings};
use crate::keyspace::{Database, LazyFree, New, Slot};
use crate::resp::Reply;
use crate::value::text::TextView;
use crate::value::{Hash, View};

/// A change that a closure made: the number of elements that it changed (0: nothing follows, unless it is
/// [`Changed::announced`]), and the closure's result.
#[derive(Debug)]
pub struct Changed<R> {
    /// The number of changes that this counts as.
    pub count: u64,
    /// The result for the handler.
    pub result: R,
    /// Whether its event is published even if it counts as no change.
    is_event: bool,
    /// A value that is no longer needed, to be freed.
    lazy_free: LazyFree,
}

impl<R> Changed<R> {
    /// A change that counts as `count` changes, with a result.
    pub fn by(count: usize, result: R) -> Changed<R> {
        Changed { count: count as u64, result, is_event: count > 0, lazy_free: LazyFree::default() }
    }

    /// This change, with a key event though it may count as none.
    pub fn announced(self) -> Changed<R> {
        Changed { is_event: true, ..self }
    }

    /// This change, with `lazy_free` to be freed.
    pub fn leaving(self, lazy_free: impl Into<LazyFree>) -> Changed<R> {
        Changed { lazy_free: lazy_free.into(), ..self }
    }
}

/// The deadline of a key that gets another value: cleared, kept or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// The deadline is cleared.
    Clear,
    /// The old deadline is kept.
    Keep,
    /// The deadline is that time, in unix milliseconds.
    At(i64),
}

/// A handler's view of the engine, while one command runs.
#[derive(Debug)]
pub struct Ctx<'c> {
    pub(super) engine: &'c mut Engine,
    pub(super) session: SessionId,
    pub(super) command: CommandId,
    pub(super) database: usize,
    pub(super) reply: Reply<'c>,
    /// The command runs within another one, so it cannot block.
    is_nested: bool,
    /// The handler's request to block its client, if it made one.
    block: Option<Box<Block>>,
    /// Why the command ends without a reply.
    pub(super) halt: Halt,
}

/// Why a command ends without a reply, though it is not blocked on anything in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// It ends with a reply, or blocks.
    No,
    /// A script in it was suspended.
    Rests,
    /// It calls the engine's host ([`Ctx::call_host`]).
    CallsHost,
}

/// Access to everything but the data: the session, the settings, the random generator, the clock.
impl<'c> Ctx<'c> {
    pub(super) fn new(
        engine: &'c mut Engine,
        session: SessionId,
        command: CommandId,
        reply: Reply<'c>,
        is_nested: bool,
    ) -> Ctx<'c> {
        let database = engine.sessions.get(session).map_or(0, |session| session.database);
        Ctx { engine, session, command, database, reply, is_nested, block: None, halt: Halt::No }
    }

    /// The longest reply, in bytes, whose length the client chose; a command whose reply would be longer fails with
    /// [`Error::ReplyTooLong`].
    pub fn reply_room(&self) -> usize {
        delivery::reply_room(self.engine, self.session, self.is_in_script())
    }

    /// The running command.
    pub fn command(&self) -> &Entry {
        self.engine.table.entry(self.command)
    }

    /// The writer of the reply.
    pub fn reply(&mut self) -> &mut Reply<'c> {
        &mut self.reply
    }

    /// Replies with a push, which CLIENT REPLY does not silence.
    pub fn push(&mut self, write: impl FnOnce(&mut Reply<'_>)) {
        if self.session().wants_reply() {
            return write(&mut self.reply);
        }
        let mut frame = Vec::new();
        write(&mut Reply::new(&mut frame, self.reply.protocol()));
        delivery::tell(self.engine, self.session, frame.into());
    }

    /// The moment at which this command runs.
    pub fn now(&self) -> Now {
        self.engine.now()
    }

    /// The time in unix milliseconds, the unit of deadlines.
    pub fn now_ms(&self) -> i64 {
        self.now().unix_ms()
    }

    /// The latest deadline that ends a key or field now ([`crate::engine::Timing::due_ms`]).
    pub fn due_ms(&self) -> i64 {
        self.engine.timing.due_ms()
    }

    /// The session that sent the command.
    pub fn session(&self) -> &Session {
        self.engine.sessions.get(self.session).expect("a session lives while its command runs")
    }

    /// The session that sent the command.
    pub fn session_mut(&mut self) -> &mut Session {
        self.engine.sessions.get_mut(self.session).expect("a session lives while its command runs")
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.engine.settings
    }

    /// The table of all commands.
    pub fn table(&self) -> &Table {
        &self.engine.table
    }

    /// A random number, the same for the same seed and history.
    pub fn random(&mut self) -> u64 {
        self.engine.generator.u64(..)
    }

    /// A random number below `bound`, which must not be 0.
    pub fn random_below(&mut self, bound: usize) -> usize {
        self.engine.generator.usize(..bound)
    }

    /// A random key of the selected database; `None` when it is empty.
    pub fn random_slot(&mut self) -> Option<Slot> {
        let Engine { databases, generator, .. } = &mut *self.engine;
        databases.get(self.database).random(&mut || generator.u64(..))
    }

    /// The whole engine, to read. What a handler may change of it beside the data is in `ctx/server`.
    pub fn engine(&self) -> &Engine {
        self.engine
    }

    /// The engine, to read, and the writer at once.
    pub fn engine_and_reply(&mut self) -> (&Engine, &mut Reply<'c>) {
        (self.engine, &mut self.reply)
    }

    /// The effects that the server carries out after the command.
    pub fn effects(&mut self) -> &mut Effects {
        &mut self.engine.effects
    }

    /// The number of the selected database.
    pub fn database_index(&self) -> usize {
        self.database
    }

    /// All databases, for commands about whole databases (FLUSHALL, SWAPDB, SCAN).
    pub fn databases(&mut self) -> &mut Databases {
        &mut self.engine.databases
    }

    /// The selected database, for commands about a whole database (DBSIZE, SCAN, RANDOMKEY).
    pub fn database(&self) -> &Database {
        self.engine.databases.get(self.database)
    }
}

/// Reading.
impl<'c> Ctx<'c> {
    /// The value of `key`, of any type: counts a hit or a miss and records the access.
    #[inline]
    pub fn view(&mut self, key: &[u8]) -> (Option<View<'_>>, &mut Reply<'c>) {
        let slot = self.look_up(key);
        let database = self.engine.databases.get(self.database);
        (slot.map(|slot| database.view(slot)), &mut self.reply)
    }

    /// The collection that `key` holds; counts a hit or a miss and records the access.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key holds another type.
    pub fn read<'s, T: Stored + 's>(
        &'s mut self,
        key: &[u8],
    ) -> Result<(Option<T::View<'s>>, &'s mut Reply<'c>), Error> {
        let (view, reply) = self.view(key);
        let Some(view) = view else { return Ok((None, reply)) };
        let Some(stored) = T::of(view) else { return Err(Error::WrongType) };
        Ok((Some(stored), reply))
    }

    /// The string that `key` holds; counts a hit or a miss and records the access.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key holds another type.
    #[inline]
    pub fn text(&mut self, key: &[u8]) -> Result<(Option<TextView<'_>>, &mut Reply<'c>), Error> {
        let (view, reply) = self.view(key);
        match view {
            None => Ok((None, reply)),
            Some(View::Text(text)) => Ok((Some(text), reply)),
            Some(_) => Err(Error::WrongType),
        }
    }

    /// The string that `key` holds, for a command that is about to change it: counts no hit or miss, records no access.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key holds another type.
    pub fn text_to_change(&mut self, key: &[u8]) -> Result<Option<TextView<'_>>, Error> {
        let Some(slot) = access::live(self.engine, self.database, key) else { return Ok(None) };
        match self.engine.databases.get(self.database).view(slot) {
            View::Text(text) => Ok(Some(text)),
            _ => Err(Error::WrongType),
        }
    }

    /// Looks a key up without a trace: no hit or miss, no access.
    pub fn peek(&mut self, key: &[u8]) -> Option<Peek<'_>> {
        let slot = access::live(self.engine, self.database, key)?;
        Some(Peek::new(self.engine.databases.get(self.database), slot))
    }

    /// Like [`Ctx::peek`], but also finds an expired key that has not been deleted yet (DEBUG OBJECT).
    pub fn peek_at_remains(&self, key: &[u8]) -> Option<Peek<'_>> {
        let database = self.engine.databases.get(self.database);
        database.find(key).map(|slot| Peek::new(database, slot))
    }

    /// Looks a key up and counts a hit or miss, but no access (TTL, TYPE).
    pub fn glance(&mut self, key: &[u8]) -> Option<Peek<'_>> {
        let slot = access::live(self.engine, self.database, key);
        self.count_look_up(key, slot);
        slot.map(|slot| Peek::new(self.engine.databases.get(self.database), slot))
    }

    /// Like [`Ctx::glance`], with the reply, and without the key event for a miss (OBJECT).
    pub fn inspect(&mut self, key: &[u8]) -> (Option<Peek<'_>>, &mut Reply<'c>) {
        let slot = access::live(self.engine, self.database, key);
        match slot {
            Some(_) => self.engine.stats.keyspace_hits += 1,
            None => self.engine.stats.keyspace_misses += 1,
        }
        let database = self.engine.databases.get(self.database);
        (slot.map(|slot| Peek::new(database, slot)), &mut self.reply)
    }

    /// Whether a key exists; counts nothing.
    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.exists_in(self.database, key)
    }

    /// Deletes a key whose deadline has passed, unless a pause keeps it.
    pub fn end_if_due(&mut self, key: &[u8]) {
        self.exists(key);
    }

    /// Whether a key exists in that database, which exists; counts nothing.
    pub fn exists_in(&mut self, database: usize, key: &[u8]) -> bool {
        access::live(self.engine, database, key).is_some()
    }

    /// Whether a key exists that is about to be changed: records the access.
    pub fn exists_to_change(&mut self, key: &[u8]) -> bool {
        let slot = access::live(self.engine, self.database, key);
        slot.into_iter().for_each(|slot| self.note_access(slot));
        slot.is_some()
    }

    /// Whether a key exists; counts a hit or miss and records the access, as reading its value does.
    pub fn meet(&mut self, key: &[u8]) -> bool {
        self.look_up(key).is_some()
    }

    /// Like [`Ctx::meet`], but records the access even for a client with CLIENT NO-TOUCH.
    pub fn touch(&mut self, key: &[u8]) -> bool {
        let slot = access::live(self.engine, self.database, key);
        self.count_look_up(key, slot);
        if let Some(slot) = slot {
            access::note_access(self.engine, self.database, slot);
        }
        slot.is_some()
    }

    /// Calls `act` to remove expired fields from the hash that `key` holds, if it holds one; `act` returns how many it
    /// removed. Only while expired fields stay until they are accessed.
    pub fn meet_fields(&mut self, key: &[u8], act: impl FnOnce(&mut Hash, i64) -> usize) {
        fields::meet_fields(self.engine, self.database, key, act);
    }

    /// Counts and publishes that this number of fields of the hash that `key` holds have expired and are about to go.
    pub fn tell_of_ended_fields(&mut self, key: &[u8], count: usize) {
        if count > 0 {
            self.engine.stats.expired_fields += count as u64;
            changes::changed(self.engine, self.database, Event::FIELDS_EXPIRED, key);
        }
    }

    #[inline]
    fn look_up(&mut self, key: &[u8]) -> Option<Slot> {
        let slot = access::live(self.engine, self.database, key);
        self.count_look_up(key, slot);
        if let Some(slot) = slot {
            self.note_access(slot);
        }
        slot
    }

    #[inline]
    fn count_look_up(&mut self, key: &[u8], slot: Option<Slot>) {
        match slot {
            Some(_) => self.engine.stats.keyspace_hits += 1,
            None => {
                self.engine.stats.keyspace_misses += 1;
                publish::notify(self.engine, self.database, Event::MISS, key);
            }
        }
    }

    #[inline]
    pub(super) fn note_access(&mut self, slot: Slot) {
        if !self.session().no_touch {
            access::note_access(self.engine, self.database, slot);
        }
    }
}

/// Writing one key.
impl Ctx<'_> {
    /// Changes the collection that `key` holds; `None` when the key does not exist.
    ///
    /// # Errors
    /// [`Error::WrongType`], or the error of `act`; in both cases nothing changed.
    pub fn edit<T: Stored, R>(
        &mut self,
        key: &[u8],
        event: Event,
        act: impl FnOnce(&mut T) -> Result<Changed<R>, Error>,
    ) -> Result<Option<R>, Error> {
        self.upsert(key, false, event, act)
    }

    /// Changes the collection that `key` holds, or a new one if `create`; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::WrongType`], or the error of `act`; in both cases nothing changed.
    pub fn upsert<T: Stored, R>(
        &mut self,
        key: &[u8],
        create: bool,
        event: Event,
        act: impl FnOnce(&mut T) -> Result<Changed<R>, Error>,
    ) -> Result<Option<R>, Error> {
        let Some(slot) = access::live_to_change(self.engine, self.database, key) else {
            return if create { self.create(key, event, act).map(Some) } else { Ok(None) };
        };
        self.change(key, slot, event, |stored, _| act(stored)).map(Some)
    }

    /// Like [`Ctx::edit`], but `act` also writes the reply, from elements that it is about to remove.
    ///
    /// # Errors
    /// [`Error::WrongType`], or the error of `act`; in both cases nothing changed.
    pub fn edit_and_reply<T: Stored, R>(
        &mut self,
        key: &[u8],
        event: Event,
        act: impl FnOnce(&mut T, &mut Reply<'_>) -> Result<Changed<R>, Error>,
    ) -> Result<Option<R>, Error> {
        let Some(slot) = access::live_to_change(self.engine, self.database, key) else { return Ok(None) };
        self.change(key, slot, event, act).map(Some)
    }

    fn change<T: Stored, R>(
        &mut self,
        key: &[u8],
        slot: Slot,
        event: Event,
        act: impl FnOnce(&mut T, &mut Reply<'_>) -> Result<Changed<R>, Error>,
    ) -> Result<R, Error> {
        self.note_access(slot);
        let reply = &mut self.reply;
        let database = self.engine.databases.get_mut(self.database);
        let (slot, edited) = database.edit_object(slot, |value| {
            let Some(stored) = value.and_then(T::of_mut) else { return Err(Error::WrongType) };
            Ok((act(stored, reply)?, stored.is_empty()))
        });
        let (changed, is_empty) = edited?;
        self.engine.free(changed.lazy_free);
        if changed.is_event {
            self.after(key, event, changed.count);
        }
        if is_empty {
            self.discard(slot);
            changes::changed(self.engine, self.database, Event::DEL, key);
        }
        Ok(changed.result)
    }

    fn create<T: Stored, R>(
        &mut self,
        key: &[u8],
        event: Event,
        act: impl FnOnce(&mut T) -> Result<Changed<R>, Error>,
    ) -> Result<R, Error> {
        let mut stored = T::empty();
        let changed = act(&mut stored)?;
        if !stored.is_empty() {
            self.insert(key, New::Value(stored.into_value()));
            if changed.is_event {
                self.after(key, event, changed.count);
            }
        }
        Ok(changed.result)
    }

    /// Sets `key` to this value, whatever it held.
    pub fn put(&mut self, key: &[u8], value: New<'_>, deadline: Deadline, event: Event) {
        let slot = match access::live_to_change(self.engine, self.database, key) {
            Some(slot) => {
                self.note_access(slot);
                self.replace(slot, value)
            }
            None => self.insert(key, value),
        };
        let deadline_ms = match deadline {
            Deadline::Keep => None,
            Deadline::Clear => Some(None),
            Deadline::At(deadline_ms) => Some(Some(deadline_ms)),
        };
        if let Some(deadline_ms) = deadline_ms {
            self.engine.databases.get_mut(self.database).set_deadline(slot, deadline_ms);
        }
        self.after(key, event, 1);
        if let Deadline::At(_) = deadline {
            changes::changed(self.engine, self.database, Event::EXPIRE, key);
        }
    }

    /// Stores the collection that a command computed in `key`, or removes the key if the collection is empty.
    pub fn store<T: Stored>(&mut self, key: &[u8], stored: T, event: Event) {
        if stored.is_empty() {
            self.remove(key, Event::DEL);
        } else {
            self.put(key, New::Value(stored.into_value()), Deadline::Clear, event);
        }
    }

    /// Removes `key`; false when it does not exist.
    pub fn remove(&mut self, key: &[u8], event: Event) -> bool {
        let Some(slot) = access::live_to_change(self.engine, self.database, key) else { return false };
        self.discard(slot);
        self.after(key, event, 1);
        true
    }

    /// Sets or clears the deadline of `key`; false when it does not exist.
    pub fn set_deadline(&mut self, key: &[u8], deadline_ms: Option<i64>, event: Event) -> bool {
        let Some(slot) = access::live_to_change(self.engine, self.database, key) else { return false };
        self.engine.databases.get_mut(self.database).set_deadline(slot, deadline_ms);
        self.after(key, event, 1);
        true
    }

    /// Sets the deadline of `key`, or removes the key if the deadline has passed; false when the key does not exist, or
    /// `admit` refuses the change for its present deadline.
    pub fn expire(&mut self, key: &[u8], deadline_ms: i64, admit: impl FnOnce(Option<i64>) -> bool) -> bool {
        let Some(slot) = access::live_to_change(self.engine, self.database, key) else { return false };
        if !admit(self.engine.databases.get(self.database).deadline(slot)) {
            return false;
        }
        let event = if deadline_ms <= self.now_ms() {
            self.discard(slot);
            Event::DEL
        } else {
            self.engine.databases.get_mut(self.database).set_deadline(slot, Some(deadline_ms));
            Event::EXPIRE
        };
        self.after(key, event, 1);
        true
    }

    /// Clears the deadline of `key`, with the event `persist`; false when it has none or does not exist.
    pub fn persist(&mut self, key: &[u8]) -> bool {
        let Some(slot) = access::live_to_change(self.engine, self.database, key) else { return false };
        self.engine.databases.get(self.database).deadline(slot).is_some()
            && self.set_deadline(key, None, Event::PERSIST)
    }

    fn insert(&mut self, key: &[u8], value: New<'_>) -> Slot {
        let slot = self.engine.databases.get_mut(self.database).insert(key, value);
        access::note_new(self.engine, self.database, slot);
        changes::arrived(self.engine, self.database, key);
        slot
    }

    fn replace(&mut self, slot: Slot, value: New<'_>) -> Slot {
        let (slot, lazy_free) = self.engine.databases.get_mut(self.database).replace(slot, value);
        self.engine.free(lazy_free);
        slot
    }

    fn discard(&mut self, slot: Slot) {
        let lazy_free = self.engine.databases.get_mut(self.database).delete(slot);
        self.engine.free(lazy_free);
    }

    fn after(&mut self, key: &[u8], event: Event, count: u64) {
        self.engine.stats.changes += count;
        changes::changed(self.engine, self.database, event, key);
    }
}
