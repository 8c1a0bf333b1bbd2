//! Looking keys up: one function with flags, like Redis's `lookupKeyReadWithFlags`, and the typed forms over it.
//!
//! A look-up may leave four traces: it counts a hit or a miss, publishes the event of a miss, records the access for
//! LRU and LFU, and deletes a key whose deadline has passed. [`Lookup`] says which of them it leaves.
//!
//! Costs: the typed forms are on the path of every GET, so `find` is inlined into them with constant flags, and no
//! flag is tested there. All other look-ups share one instance of it, which tests a bit for each trace.

use super::Ctx;
use crate::engine::exec::prefetch::{KEYS_TOGETHER, prefetch_keys};
use crate::engine::exec::{Peek, Stored, access, publish};
use crate::engine::spec::{Error, Event};
use crate::keyspace::KeyHandle;
use crate::resp::Reply;
use crate::value::View;
use crate::value::text::TextView;

/// The flags of a look-up: what it does besides finding the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup(u8);

impl Lookup {
    /// No flag: a hit or a miss is counted, the event of a miss is published, the access is recorded.
    pub const READ: Lookup = Lookup(0);
    /// No access is recorded (EXISTS, TTL, TYPE, OBJECT).
    pub const NO_TOUCH: Lookup = Lookup(1);
    /// Neither a hit nor a miss is counted.
    pub const NO_STATS: Lookup = Lookup(1 << 1);
    /// No event of a miss is published.
    pub const NO_NOTIFY: Lookup = Lookup(1 << 2);
    /// The access is recorded even for a client with CLIENT NO-TOUCH (TOUCH).
    pub const FORCE_TOUCH: Lookup = Lookup(1 << 3);
    /// Nothing expires: a key that has expired and is not deleted yet is found, too (DEBUG OBJECT).
    pub const WITH_EXPIRED: Lookup = Lookup(1 << 4);
    /// The look-up of a command that is about to write the key: only the access is recorded, and not again when the
    /// command changes the key.
    pub const WRITE: Lookup = Lookup::NO_STATS.and(Lookup::NO_NOTIFY);
    /// Nothing is counted, published or recorded; a key whose deadline has passed is deleted all the same.
    pub const NO_TRACE: Lookup = Lookup::WRITE.and(Lookup::NO_TOUCH);

    /// The flags of both.
    pub const fn and(self, other: Lookup) -> Lookup {
        Lookup(self.0 | other.0)
    }

    const fn has(self, flag: Lookup) -> bool {
        self.0 & flag.0 != 0
    }
}

impl<'c> Ctx<'c> {
    /// The key in the selected database, if it exists.
    pub fn lookup(&mut self, key: &[u8], flags: Lookup) -> Option<Peek<'_>> {
        self.lookup_in(self.database, key, flags)
    }

    /// Like [`Ctx::lookup`], in a database that exists.
    pub fn lookup_in(&mut self, database: usize, key: &[u8], flags: Lookup) -> Option<Peek<'_>> {
        let handle = find(self, database, key, flags)?;
        Some(Peek::new(self.engine.databases.get(database), handle))
    }

    /// The value of `key`, of any type, with the reply: [`Lookup::READ`].
    #[inline]
    pub fn view(&mut self, key: &[u8]) -> (Option<View<'_>>, &mut Reply<'c>) {
        let handle = find(self, self.database, key, Lookup::READ);
        let database = self.engine.databases.get(self.database);
        (handle.map(|handle| database.view(handle)), &mut self.reply)
    }

    /// The collection that `key` holds, with the reply: [`Lookup::READ`].
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

    /// The string that `key` holds, with the reply: [`Lookup::READ`].
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

    /// The values of several keys in their order, with the reply: [`Lookup::READ`] for each, up to the first value
    /// that does not fit, which is the last one returned. Keys behind it are not looked up.
    pub fn views(&mut self, keys: &[&[u8]], fits: fn(&View<'_>) -> bool) -> (Vec<Option<View<'_>>>, &mut Reply<'c>) {
        let len_before = self.engine.databases.get(self.database).len();
        let mut handles = handles_while_fitting(self, keys, fits);
        if self.engine.databases.get(self.database).len() != len_before {
            // A key had expired and was deleted, so handles found before are stale. Now nothing is deleted any more.
            let looked_up = &keys[..handles.len()];
            handles = looked_up.iter().map(|key| access::live(self.engine, self.database, key)).collect();
        }
        let database = self.engine.databases.get(self.database);
        (handles.into_iter().map(|handle| handle.map(|handle| database.view(handle))).collect(), &mut self.reply)
    }
}

/// Looks up keys in their order, up to the first whose value does not fit, and returns their handles.
fn handles_while_fitting(cx: &mut Ctx<'_>, keys: &[&[u8]], fits: fn(&View<'_>) -> bool) -> Vec<Option<KeyHandle>> {
    let mut handles = Vec::with_capacity(keys.len());
    for keys in keys.chunks(KEYS_TOGETHER) {
        prefetch_keys(cx.engine.databases.get(cx.database), keys.iter().copied());
        for key in keys {
            let handle = find(cx, cx.database, key, Lookup::READ);
            handles.push(handle);
            let database = cx.engine.databases.get(cx.database);
            if handle.is_some_and(|handle| !fits(&database.view(handle))) {
                return handles;
            }
        }
    }
    handles
}

/// The one look-up. It is inlined so that flags which the caller knows cost nothing.
#[inline(always)]
fn find(cx: &mut Ctx<'_>, database: usize, key: &[u8], flags: Lookup) -> Option<KeyHandle> {
    let handle = if flags.has(Lookup::WITH_EXPIRED) {
        cx.engine.databases.get(database).find(key)
    } else {
        access::live(cx.engine, database, key)
    };
    let Some(found) = handle else {
        if !flags.has(Lookup::NO_STATS) {
            cx.engine.stats.keyspace_misses += 1;
        }
        if !flags.has(Lookup::NO_NOTIFY) {
            publish::notify(cx.engine, database, Event::MISS, key);
        }
        return None;
    };
    if !flags.has(Lookup::NO_STATS) {
        cx.engine.stats.keyspace_hits += 1;
    }
    if flags.has(Lookup::FORCE_TOUCH) {
        access::record_access(cx.engine, database, found);
    } else if !flags.has(Lookup::NO_TOUCH) {
        touch(cx, database, found);
        if flags.has(Lookup::NO_STATS) && database == cx.database {
            cx.used = handle;
        }
    }
    handle
}

/// Records the access to a key that is about to change, unless a look-up for writing has done so.
#[inline]
pub(super) fn touch_changed(cx: &mut Ctx<'_>, handle: KeyHandle) {
    if cx.used != Some(handle) {
        touch(cx, cx.database, handle);
    }
}

/// Records the access to a key, unless the client has set CLIENT NO-TOUCH.
#[inline]
pub(super) fn touch(cx: &mut Ctx<'_>, database: usize, handle: KeyHandle) {
    if !cx.session().no_touch {
        access::record_access(cx.engine, database, handle);
    }
}
