//! Snapshots: named states of the whole engine to roll back to (DUNLIN SNAPSHOT).
//!
//! They are a stack. Rolling back to one drops those that were taken since, and keeps the snapshot itself. Restored
//! are all databases (values, deadlines of keys and fields, streams with their groups, when keys were used), the
//! settings, users, scripts, functions, the random generator, the order of keys, and the clock: its time and its speed.
//! Not restored are the listeners, the clients with what they watch, track, subscribe to and wait for, counters and
//! logs, and the variables of functions. To clients, a rollback is a change like any other: watches of a changed key
//! break, clients that track it are notified, and clients blocked on a key that exists again are served. They wait, and
//! a pause lasts, for as long as was left. No keyspace events are published.
//!
//! In a cluster each node has the same snapshots, since one order takes, drops or rolls back to those of all nodes. The
//! nodes must have the roles and the slots that they had. Replicas get the data of their primaries anew.
//!
//! Costs: taking one copies the settings and begins a level in each database, a few microseconds in all; rolling back
//! takes time proportional to the changes since. Users and sources are shared until they change: the first change of
//! a user, script or function since the last snapshot copies the list of them all, without their contents.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::ctx::databases;
use crate::engine::exec::scripts::load;
use crate::engine::exec::{acl, blocking, changes, cluster, eviction, replication, tracking};
use crate::engine::spec::{Error, Flags, KitError};
use crate::engine::state::databases::Move;
use crate::engine::state::snapshots::{Part, Snapshot};
use crate::engine::state::{ClockOrder, Databases, Effect, Presence, Settings, SnapshotOrder};
use crate::keyspace::Database;

/// Takes a snapshot; it replaces the one of that name.
pub fn take_snapshot(engine: &mut Engine, name: &[u8]) {
    // Usually there is none of that name.
    let _ = engine.databases.drop_snapshot(name);
    engine.databases.snapshots.taken += 1;
    let snapshot = Snapshot {
        name: name.into(),
        number: engine.databases.snapshots.taken,
        settings: Box::new(engine.settings.clone()),
        users: Arc::clone(&engine.acl.users),
        generator: engine.generator.clone(),
        orders: engine.databases.orders(),
        is_deterministic: engine.switches.is_deterministic,
        now: engine.now(),
        speed: engine.host.clock_speed(),
        part: part_in_cluster(engine),
        scripts: None,
        functions: None,
    };
    engine.databases.snapshots.all.push(snapshot);
    engine.databases.begin_level();
    // Eviction restarts from here at each rollback.
    engine.databases.pressure.forget();
}

/// The part of this node in its cluster, if it is a node of one.
fn part_in_cluster(engine: &Engine) -> Option<Part> {
    let view = engine.peers.cluster.as_deref()?;
    let myself = view.myself();
    Some(Part { primary: myself.primary, slots: view.ranges_of(myself.id) })
}

/// Whether this node has the role and the slots in its cluster that it had at that snapshot.
///
/// # Errors
/// There is no snapshot of that name.
pub fn has_same_part(engine: &Engine, name: &[u8]) -> Result<bool, KitError> {
    let place = engine.databases.snapshots.place(name)?;
    Ok(engine.databases.snapshots.all[place].part == part_in_cluster(engine))
}

/// Restores the state of that snapshot, and drops those that were taken since.
///
/// # Errors
/// There is no snapshot of that name, or a script takes too long; nothing has changed then.
pub fn roll_back(engine: &mut Engine, name: &[u8]) -> Result<(), Error> {
    let place = engine.databases.snapshots.place(name)?;
    engine.scripts.gate(Flags::NONE)?;
    let snapshot = &engine.databases.snapshots.all[place];
    let (now, speed) = (snapshot.now, snapshot.speed);
    engine.effects.propagation.request_base();
    // Deadlines are compared with the restored clock, also when blocked clients are served.
    engine.jump(now);
    let youngest = engine.databases.snapshots.all.len() - 1;
    for level in (place..=youngest).rev() {
        undo_level(engine);
        if level > place {
            engine.databases.end_level(level);
        }
    }
    restore_scripts(engine, place);
    engine.databases.snapshots.all.truncate(place + 1);
    engine.observers.forget_traces_since(engine.databases.snapshots.all[place].number);
    restore_settings_and_users(engine, place);
    let orders = Arc::clone(&engine.databases.snapshots.all[place].orders);
    engine.databases.restore_orders(&orders);
    engine.effects.push(Effect::Clock(ClockOrder::Speed(speed)));
    engine.effects.push(Effect::Clock(ClockOrder::Set(now)));
    Ok(())
}

/// Takes a snapshot, rolls back to one, or drops it.
///
/// # Errors
/// There is no snapshot of that name, or a script takes too long; nothing has changed then.
pub fn carry_out(engine: &mut Engine, order: &SnapshotOrder) -> Result<(), Error> {
    match order {
        SnapshotOrder::Take(name) => {
            take_snapshot(engine, name);
            Ok(())
        }
        SnapshotOrder::RollBack(name) => roll_back(engine, name),
        SnapshotOrder::Drop(name) => engine.databases.drop_snapshot(name),
    }
}

/// Gives another engine, which has none, the data and functions of a snapshot. Nothing changes here.
///
/// # Errors
/// There is no snapshot of that name.
pub fn copy_snapshot(engine: &Engine, name: &[u8], other: &mut Engine) -> Result<(), Error> {
    let place = engine.databases.snapshots.place(name)?;
    let snapshots = &engine.databases.snapshots.all[place..];
    let functions = snapshots.iter().find_map(|snapshot| snapshot.functions.clone());
    load::restore_functions(other, functions.unwrap_or_else(|| engine.scripts.functions.registry.sources()));
    other.databases = engine.databases.copied();
    for level in (place..place + snapshots.len()).rev() {
        undo_level(other);
        other.databases.end_level(level);
    }
    other.jump(snapshots[0].now);
    Ok(())
}

/// Undoes the changes recorded in the youngest level.
fn undo_level(engine: &mut Engine) {
    let moves = engine.databases.take_moves();
    if !moves.is_empty() {
        tracking::invalidate_all(engine);
    }
    for moved in moves.into_iter().rev() {
        match moved {
            Move::Swapped(one, other) => {
                databases::exchange_databases(engine, one, other, |databases| databases.exchange(one, other))
            }
            Move::Replaced(number, before) => put_back(engine, number, *before),
        }
    }
    for number in 0..engine.databases.count() {
        for (key, lazy_free) in engine.databases.get_mut(number).roll_back() {
            engine.free(lazy_free);
            engine.stats.changes += 1;
            changes::touched(engine, number, &key);
            blocking::signal_key_ready(engine, number, &key);
            blocking::signal_nokey(engine, number, &key);
        }
    }
}

fn put_back(engine: &mut Engine, number: usize, before: Database) {
    engine.stats.changes += 1;
    let due_ms = engine.timing.due_ms();
    let current = engine.databases.get(number);
    let watches = &mut engine.observers.watches;
    watches.replace(number, |key| Presence::of(current, key, due_ms), |key| Presence::of(&before, key, due_ms));
    let lazy_free = engine.databases.put(number, before).into_lazy_free();
    engine.free(lazy_free);
    blocking::signal_all(engine, number);
}

/// Replaces all data and functions by those of another engine, whose databases are like the ones here
/// ([`crate::engine::Databases::like_empty`]).
///
/// # Errors
/// The server is a replica; nothing has changed then.
pub fn take_over(engine: &mut Engine, other: Engine) -> Result<(), Error> {
    if replication::is_replica(engine) {
        return Err(KitError::DataOfPrimary.into());
    }
    engine.effects.propagation.request_base();
    let functions = other.scripts.functions.registry.sources();
    replace_data(engine, other.databases, functions);
    Ok(())
}

/// Replaces all data and functions by those of the primary of this server (full synchronization).
pub(super) fn replace_data(engine: &mut Engine, databases: Databases, functions: Vec<Arc<[u8]>>) {
    engine.observers.forget_traces_since(0);
    before_functions_change(engine);
    load::restore_functions(engine, functions);
    tracking::invalidate_all(engine);
    for (number, database) in databases.into_all().into_iter().enumerate() {
        let (due_ms, current) = (engine.timing.due_ms(), engine.databases.get(number));
        let watches = &mut engine.observers.watches;
        watches.replace(number, |key| Presence::of(current, key, due_ms), |key| Presence::of(&database, key, due_ms));
        engine.stats.changes += 1;
        let lazy_free = engine.databases.replace(number, database);
        engine.free(lazy_free);
        blocking::signal_all(engine, number);
    }
}

/// Restores the users, the random generator, and the settings that can go back.
fn restore_settings_and_users(engine: &mut Engine, place: usize) {
    let snapshot = &engine.databases.snapshots.all[place];
    engine.generator = snapshot.generator.clone();
    engine.switches.is_deterministic = snapshot.is_deterministic;
    engine.databases.pressure.forget();
    let before = std::mem::replace(&mut engine.settings, Settings::clone(&snapshot.settings));
    // The listeners stay: no client is to be locked out of where it connected.
    (engine.settings.port, engine.settings.bind) = (before.port, before.bind);
    // So do the settings of the files, which do not go back with the data, and those of the process.
    (engine.settings.directory, engine.settings.files) = (before.directory, before.files);
    engine.settings.process = before.process;
    let users = Arc::clone(&snapshot.users);
    cluster::apply_settings(engine);
    if !Arc::ptr_eq(&users, &engine.acl.users) {
        let caller = engine.timing.running.map(|running| running.session);
        acl::replace_users(engine, caller, users);
    }
    eviction::begin_evicting(engine);
    for name in ["timeout", "loglevel"] {
        engine.effects.push(Effect::Setting(name));
    }
}

/// Restores the scripts and functions of the snapshot at `place`: those that it or the first one behind it saved,
/// as nothing had changed before that.
fn restore_scripts(engine: &mut Engine, place: usize) {
    let mut snapshots = engine.databases.snapshots.all[place..].iter_mut();
    let (mut scripts, mut functions) = (None, None);
    for snapshot in snapshots.by_ref() {
        scripts = scripts.or(snapshot.scripts.take());
        functions = functions.or(snapshot.functions.take());
    }
    if let Some(scripts) = scripts {
        engine.scripts.restore(scripts);
    }
    if let Some(functions) = functions {
        load::restore_functions(engine, functions);
    }
}

/// Saves the scripts for the last snapshot: they are about to change.
pub(in crate::engine) fn before_scripts_change(engine: &mut Engine) {
    if let Some(snapshot) = engine.databases.snapshots.all.last_mut()
        && snapshot.scripts.is_none()
    {
        snapshot.scripts = Some(engine.scripts.cache.saved());
    }
}

/// Saves the functions for the last snapshot: they are about to change.
pub(in crate::engine) fn before_functions_change(engine: &mut Engine) {
    if let Some(snapshot) = engine.databases.snapshots.all.last_mut()
        && snapshot.functions.is_none()
    {
        snapshot.functions = Some(engine.scripts.functions.registry.sources());
    }
}
