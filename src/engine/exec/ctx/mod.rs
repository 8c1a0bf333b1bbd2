//! [`Ctx`]: the only access that command handlers have to the data and the engine.
//!
//! A handler sees the engine only through its [`Ctx`]. Each form that writes does everything that must follow a change,
//! so no handler can forget a part of it:
//!
//! 1. a key that holds another type is refused with `WRONGTYPE` and nothing happens;
//! 2. a missing key is created only where the caller wants it;
//! 3. a collection that became empty is removed, with the event `del`;
//! 4. the change is counted (`rdb_changes_since_last_save`);
//! 5. the change's event is published (keyspace notifications);
//! 6. a large value that was replaced or removed is freed on another thread.
//!
//! Its methods, all of them:
//!
//! - Find a key: [`Ctx::lookup`], [`Ctx::lookup_in`], with the flags of [`Lookup`].
//! - Read it, with the reply at hand: [`Ctx::view`], [`Ctx::read`], [`Ctx::text`], [`Ctx::views`].
//! - Change its value: [`Ctx::update`], [`Ctx::update_metadata`], [`Ctx::update_text`], [`Ctx::update_int`].
//! - Replace it: [`Ctx::put`], [`Ctx::store`], [`Ctx::restore`], [`Ctx::relocate`], [`Ctx::remove`].
//! - Change its deadline: [`Ctx::set_deadline`].
//! - Whole databases: [`Ctx::database`], [`Ctx::database_index`], [`Ctx::databases`].
//! - The reply: [`Ctx::reply`], [`Ctx::reply_room`].
//! - The client and its command: [`Ctx::session`], [`Ctx::session_mut`], [`Ctx::command`], [`Ctx::is_nested`],
//!   [`Ctx::is_in_script`].
//! - The server: [`Ctx::settings`], [`Ctx::table`], [`Ctx::random`], [`Ctx::effects`], [`Ctx::engine`],
//!   [`Ctx::engine_and_reply`], [`Ctx::stats_mut`], [`Ctx::switches_mut`], [`Ctx::observers_mut`]; the rest of what
//!   a handler may change is in [`crate::engine::exec::operations`].
//! - The time: [`Ctx::now`], [`Ctx::now_ms`], [`Ctx::due_ms`].
//! - Run another command, and suspend this one: [`Ctx::run`], [`Ctx::block`], [`Ctx::call_host`].
//!
//! There are four updates and not one because values differ: a collection is a type of its own that is removed when it
//! is empty; a stream's metadata is changed without breaking WATCH, and decides itself which event follows; a string's
//! bytes are in the key's record and may be empty; INCR replaces a number with one look-up and no bytes in between.
//!
//! A function serves in the place of a method where only one family of commands needs it: all of them are in
//! [`crate::engine::exec::operations`].
//!
//! A key whose deadline has passed does not exist for handlers: the first access deletes it, and counts as its expiry.

mod blocking;
pub(in crate::engine) mod databases;
mod fields;
mod lookup;
mod metadata;
mod peek;
mod stored;
mod text;
mod transfer;

pub use blocking::{may_block, may_read, may_read_all_keys, push_reply, unblock_client};
pub use databases::{flush_database, swap_databases, unwatch_all, watch_key};
pub use fields::{expire_fields, record_expired_fields};
pub use lookup::Lookup;
pub use metadata::MetadataChange;
pub use peek::Peek;
pub use stored::Stored;

use crate::engine::Engine;
use crate::engine::exec::{access, changes, delivery};
use crate::engine::spec::{CommandId, Entry, Error, Event, Now, Table};
use crate::engine::state::{Block, Databases, Effects, Observers, Session, SessionId, Settings, Stats, Switches};
use crate::keyspace::{Database, KeyHandle, LazyFree, New};
use crate::resp::Reply;
use lookup::touch_changed;

/// A change that a closure made: the number of elements that it changed (0: nothing follows, unless it is
/// [`Changed::announced`]), and the closure's result.
#[derive(Debug)]
pub struct Changed<R> {
    /// The number of changes that this counts as.
    pub count: u64,
    /// The result for the handler.
    pub result: R,
    /// Whether its event is published, though it may count as no change.
    is_event: bool,
    /// Whether the key is then ready for its blocked clients; a new key is ready in any case.
    is_ready: bool,
    /// A value that is no longer needed, to be freed.
    lazy_free: LazyFree,
}

impl<R> Changed<R> {
    /// A change that counts as `count` changes, with a result.
    pub fn by(count: usize, result: R) -> Changed<R> {
        Changed { count: count as u64, result, is_event: count > 0, is_ready: false, lazy_free: LazyFree::default() }
    }

    /// This change, with a key event though it may count as none.
    pub fn announced(self) -> Changed<R> {
        Changed { is_event: true, ..self }
    }

    /// This change, after which the key is ready for its blocked clients; a new key is ready without this.
    pub fn ready(self) -> Changed<R> {
        Changed { is_ready: true, ..self }
    }

    /// This change, with `lazy_free` to be freed.
    pub fn leaving(self, lazy_free: impl Into<LazyFree>) -> Changed<R> {
        Changed { lazy_free: lazy_free.into(), ..self }
    }
}

/// The effect of an update when the key is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing.
    Skip,
    /// It changes an empty value, which is stored unless it stays empty.
    Create,
}

impl Missing {
    /// [`Missing::Create`] if `creates`, else [`Missing::Skip`].
    pub fn create_if(creates: bool) -> Missing {
        if creates { Missing::Create } else { Missing::Skip }
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
    pub(in crate::engine) engine: &'c mut Engine,
    pub(super) session: SessionId,
    pub(super) command: CommandId,
    pub(super) database: usize,
    pub(super) reply: Reply<'c>,
    /// The key that was looked up for writing ([`Lookup::WRITE`]), whose use is recorded.
    used: Option<KeyHandle>,
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
    Suspended,
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
        Ctx { engine, session, command, database, reply, used: None, is_nested, block: None, halt: Halt::No }
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

    /// The whole engine, to read.
    pub fn engine(&self) -> &Engine {
        self.engine
    }

    /// The engine, to read, and the writer at once.
    pub fn engine_and_reply(&mut self) -> (&Engine, &mut Reply<'c>) {
        (self.engine, &mut self.reply)
    }

    /// The counters behind INFO, to count something.
    pub fn stats_mut(&mut self) -> &mut Stats {
        &mut self.engine.stats
    }

    /// The switches of DEBUG.
    pub fn switches_mut(&mut self) -> &mut Switches {
        &mut self.engine.switches
    }

    /// The observers, among them the test kit.
    pub fn observers_mut(&mut self) -> &mut Observers {
        &mut self.engine.observers
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

/// Writing one key.
impl Ctx<'_> {
    /// Changes the collection that `key` holds, or handles a missing key as `missing` says; `None` when there is none.
    /// `act` may write the reply from elements that it is about to remove. Without an event only WATCH and key tracking
    /// notice the change, also one that removes the key.
    ///
    /// # Errors
    /// [`Error::WrongType`], or the error of `act`; in both cases nothing changed.
    pub fn update<T: Stored, R>(
        &mut self,
        key: &[u8],
        missing: Missing,
        event: impl Into<Option<Event>>,
        act: impl FnOnce(&mut T, &mut Reply<'_>) -> Result<Changed<R>, Error>,
    ) -> Result<Option<R>, Error> {
        match (access::live_to_change(self.engine, self.database, key), missing) {
            (Some(handle), _) => change(self, key, handle, event.into(), act).map(Some),
            (None, Missing::Create) => create(self, key, event.into(), act).map(Some),
            (None, Missing::Skip) => Ok(None),
        }
    }

    /// Sets `key` to this value, whatever it held.
    pub fn put(&mut self, key: &[u8], value: New<'_>, deadline: Deadline, event: Event) {
        let handle = match access::live_to_change(self.engine, self.database, key) {
            Some(handle) => {
                touch_changed(self, handle);
                let (handle, lazy_free) = self.engine.databases.get_mut(self.database).replace(handle, value);
                self.engine.free(lazy_free);
                handle
            }
            None => insert(self.engine, self.database, key, value),
        };
        let deadline_ms = match deadline {
            Deadline::Keep => None,
            Deadline::Clear => Some(None),
            Deadline::At(deadline_ms) => Some(Some(deadline_ms)),
        };
        if let Some(deadline_ms) = deadline_ms {
            self.engine.databases.get_mut(self.database).set_deadline(handle, deadline_ms);
        }
        after(self.engine, self.database, key, event, 1);
        if let Deadline::At(_) = deadline {
            changes::changed(self.engine, self.database, Event::EXPIRE, key);
        }
    }

    /// Stores the collection that a command computed in `key`, or removes the key if the collection is empty.
    pub fn store<T: Stored>(&mut self, key: &[u8], stored: T, event: Event) {
        if stored.is_empty() {
            remove_present(self, key, Event::DEL);
        } else {
            self.put(key, New::Value(stored.into_value()), Deadline::Clear, event);
        }
    }

    /// Removes `key`; false when it does not exist.
    pub fn remove(&mut self, key: &[u8], event: Event) -> bool {
        let Some(handle) = access::live_to_change(self.engine, self.database, key) else { return false };
        discard(self.engine, self.database, handle);
        after(self.engine, self.database, key, event, 1);
        true
    }

    /// Sets the deadline of `key`, with the event `expire`, or removes the key if the deadline has passed; with `None`
    /// clears its deadline, with the event `persist`. False when nothing changed: `key` does not exist, or has no
    /// deadline to clear.
    pub fn set_deadline(&mut self, key: &[u8], deadline_ms: Option<i64>) -> bool {
        let Some(handle) = access::live_to_change(self.engine, self.database, key) else { return false };
        let past_ms = self.engine.timing.past_ms();
        let database = self.engine.databases.get_mut(self.database);
        let event = match deadline_ms {
            None if database.deadline(handle).is_none() => return false,
            None => Event::PERSIST,
            Some(deadline_ms) if deadline_ms <= past_ms => {
                discard(self.engine, self.database, handle);
                after(self.engine, self.database, key, Event::DEL, 1);
                return true;
            }
            Some(_) => Event::EXPIRE,
        };
        database.set_deadline(handle, deadline_ms);
        after(self.engine, self.database, key, event, 1);
        true
    }
}

/// Removes `key` even if its deadline has passed, for a command that stores an empty result in its place; false when no
/// such key is stored.
pub fn remove_present(cx: &mut Ctx<'_>, key: &[u8], event: Event) -> bool {
    let Some(handle) = cx.engine.databases.get(cx.database).find(key) else { return false };
    discard(cx.engine, cx.database, handle);
    after(cx.engine, cx.database, key, event, 1);
    true
}

/// Changes the collection at `handle`, and does all that follows the change.
fn change<T: Stored, R>(
    cx: &mut Ctx<'_>,
    key: &[u8],
    handle: KeyHandle,
    event: Option<Event>,
    act: impl FnOnce(&mut T, &mut Reply<'_>) -> Result<Changed<R>, Error>,
) -> Result<R, Error> {
    touch_changed(cx, handle);
    let reply = &mut cx.reply;
    let database = cx.engine.databases.get_mut(cx.database);
    let (handle, edited) = database.edit_object(handle, |value| {
        let Some(stored) = value.and_then(T::of_mut) else { return Err(Error::WrongType) };
        Ok((act(stored, reply)?, stored.is_empty()))
    });
    let (changed, is_empty) = edited?;
    cx.engine.free(changed.lazy_free);
    if changed.is_event {
        after(cx.engine, cx.database, key, event, changed.count);
    }
    if changed.is_ready {
        signal(cx.engine, cx.database, key);
    }
    if is_empty {
        discard(cx.engine, cx.database, handle);
        after(cx.engine, cx.database, key, event.map(|_| Event::DEL), 0);
    }
    Ok(changed.result)
}

/// Stores the collection that `act` makes of an empty one, unless it leaves it empty.
fn create<T: Stored, R>(
    cx: &mut Ctx<'_>,
    key: &[u8],
    event: Option<Event>,
    act: impl FnOnce(&mut T, &mut Reply<'_>) -> Result<Changed<R>, Error>,
) -> Result<R, Error> {
    let mut stored = T::empty();
    let changed = act(&mut stored, &mut cx.reply)?;
    if !stored.is_empty() {
        insert(cx.engine, cx.database, key, New::Value(stored.into_value()));
        if changed.is_event {
            after(cx.engine, cx.database, key, event, changed.count);
        }
        if changed.is_ready {
            signal(cx.engine, cx.database, key);
        }
    }
    Ok(changed.result)
}

fn insert(engine: &mut Engine, database: usize, key: &[u8], value: New<'_>) -> KeyHandle {
    let handle = engine.databases.get_mut(database).insert(key, value);
    access::record_creation(engine, database, handle);
    changes::arrived(engine, database, key);
    handle
}

fn discard(engine: &mut Engine, database: usize, handle: KeyHandle) {
    let lazy_free = engine.databases.get_mut(database).delete(handle);
    engine.free(lazy_free);
}

/// Counts a change of `key` and publishes its event; without one only WATCH and key tracking notice the change.
fn after(engine: &mut Engine, database: usize, key: &[u8], event: impl Into<Option<Event>>, count: u64) {
    engine.stats.changes += count;
    match event.into() {
        Some(event) => changes::changed(engine, database, event, key),
        None => changes::touched(engine, database, key),
    }
}

/// Marks `key` as ready for its blocked clients.
fn signal(engine: &mut Engine, database: usize, key: &[u8]) {
    if !engine.observers.waiting.is_empty() {
        engine.observers.waiting.signal(database, key);
    }
}
