//! The operations that commands perform beside reading and writing keys, each by a name.
//!
//! A handler reads everything through [`Ctx::engine`], and changes keys only through the methods of [`Ctx`]. All else
//! that it may change is here, or is one of the structs of the state that [`Ctx`] hands out whole ([`Ctx::stats_mut`],
//! [`Ctx::switches_mut`], [`Ctx::observers_mut`]). Each operation passes on to the module that knows how; those of
//! whole databases, of hash fields and of WATCH stand beside [`Ctx`] itself.

pub use crate::engine::exec::ctx::{
    expire_fields, flush_database, may_read, may_read_all_keys, push_reply, record_expired_fields, remove_present,
    swap_databases, unblock_client, unwatch_all, watch_key,
};
pub use crate::engine::exec::propagation::{
    is_loading, is_propagating, propagate_also, propagate_instead, propagate_nothing,
};

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::cluster::{NodeId, View};
use crate::engine::exec::ctx::may_block;
use crate::engine::exec::prefetch::{KEYS_TOGETHER, prefetch_keys};
use crate::engine::exec::scripts::{Policy, load, run};
use crate::engine::exec::{
    Ctx, acl, aof, cluster, cluster_compatibility, eviction, failover, kit, monitor, persistence, publish, replication,
    scripts, sleep, snapshots, timing, tracking,
};
use crate::engine::spec::{Error, Flags, Now, ServerError};
use crate::engine::state::kit::Filter;
use crate::engine::state::replication::FailoverWay;
use crate::engine::state::scripts::{Digest, ScriptOrFunction};
use crate::engine::state::tracking::Mode;
use crate::engine::state::{
    Block, LateReply, LogLevel, PauseScope, RemoteRequest, RemoteResult, SaveWait, SessionId, Settings, SnapshotOrder,
    Topic,
};
use crate::keyspace::KeyHandle;
use crate::script::Function;

pub use crate::engine::exec::aof::await_sync;
pub use crate::engine::exec::persistence::{ReloadOptions, ShutdownOptions};

// The cluster.

/// Changes this node's view of its cluster, with all that follows; `None` if the server is no node.
pub fn change_cluster<R>(cx: &mut Ctx<'_>, act: impl FnOnce(&mut View) -> R) -> Option<R> {
    cluster::change(cx.engine, act)
}

/// Counts that many operations that a cluster refuses, as far as they are sampled.
pub fn count_incompatible(cx: &mut Ctx<'_>, operations: usize) {
    cluster_compatibility::count_sampled(cx.engine, operations);
}

/// Makes this node of a cluster and all that it knows meet another one. False if no node of this process listens there.
pub fn meet_node(cx: &mut Ctx<'_>, ip: &str, port: u16) -> bool {
    cluster::meet(cx.engine, ip, port)
}

/// Makes this node of a cluster, and all others, forget another one.
pub fn forget_node(cx: &mut Ctx<'_>, node: NodeId) {
    cluster::forget(cx.engine, node);
}

/// Makes this node of a cluster a replica of another one.
pub fn follow_primary(cx: &mut Ctx<'_>, primary: NodeId) {
    cluster::follow(cx.engine, primary);
}

/// Makes this node of a cluster a primary without data, if it is a replica.
pub fn end_replication(cx: &mut Ctx<'_>) {
    replication::become_empty_primary(cx.engine);
}

/// Changes the replication id of the data (DEBUG CHANGE-REPL-ID).
pub fn change_replication_id(cx: &mut Ctx<'_>) {
    replication::change_replication_id(cx.engine);
}

/// Begins a failover that the client orders at this node.
///
/// # Errors
/// This node is no replica, or its primary does not run.
pub fn fail_over(cx: &mut Ctx<'_>, way: FailoverWay) -> Result<(), Error> {
    failover::order(cx.engine, way)
}

/// Makes the blocking client wait until `count` replicas have acknowledged the stream up to `offset`, where its writes
/// end.
pub fn await_replicas(cx: &mut Ctx<'_>, count: usize, offset: u64) {
    if !cx.is_nested() {
        replication::await_replicas(cx.engine, cx.session, cx.command, count, offset);
    }
}

// The process: its settings, time and counters.

/// Puts other settings in force, with what follows from them but is not an effect: the default user's password, and
/// eviction if the memory limit is lower now. Returns the settings before.
pub fn replace_settings(cx: &mut Ctx<'_>, settings: Settings) -> Settings {
    let before = std::mem::replace(&mut cx.engine.settings, settings);
    cluster::apply_settings(cx.engine);
    if cx.engine.settings.password != before.password {
        let password = cx.engine.settings.password.clone();
        acl::set_default_password(cx.engine, &password);
    }
    eviction::begin_evicting(cx.engine);
    before
}

/// Writes a line to the server's log.
pub fn log(cx: &mut Ctx<'_>, level: LogLevel, line: String) {
    persistence::log(cx.engine, level, line);
}

/// Saves all databases to the RDB file; the client waits for that, unless it cannot wait (SAVE).
///
/// # Errors
/// A save in the background is in progress, or the file could not be written; the log has the reason.
pub fn save(cx: &mut Ctx<'_>) -> Result<(), Error> {
    if !may_block(cx) {
        persistence::save(cx.engine)?;
        cx.engine.persistence.saves += 1;
        cx.reply().ok();
        return Ok(());
    }
    let wait = SaveWait { session: cx.session().id, command: cx.command };
    persistence::begin_awaited_save(cx.engine, wait)?;
    cx.block(Block::until(None, LateReply::Ok), |_| {});
    Ok(())
}

/// Begins to save all databases to the RDB file in the background (BGSAVE).
///
/// # Errors
/// This is not the first world, which alone has a file.
pub fn begin_save(cx: &mut Ctx<'_>) -> Result<(), Error> {
    persistence::begin_save(cx.engine)
}

/// Begins to rewrite the append-only file, or, where it cannot begin now, as soon as it can (BGREWRITEAOF). Returns
/// whether it begins now.
///
/// # Errors
/// A rewrite is in progress, or this is not the first world, which alone has files.
pub fn rewrite_aof(cx: &mut Ctx<'_>) -> Result<bool, Error> {
    aof::request_rewrite(cx.engine, cx.is_nested())
}

/// Switches the append-only file on or off, as the settings say.
///
/// # Errors
/// It cannot be made; the log has the reason.
pub fn switch_aof(cx: &mut Ctx<'_>) -> Result<(), ServerError> {
    aof::switch(cx.engine, cx.is_nested())
}

/// Writes the rest of the append-only file, and loads all data from it (DEBUG LOADAOF).
///
/// # Errors
/// The files cannot be loaded; the log has the reason.
pub fn load_aof(cx: &mut Ctx<'_>) -> Result<(), Error> {
    aof::reload(cx.engine)
}

/// Schedules a save in the background for the end of the transaction (BGSAVE within MULTI).
pub fn schedule_save(cx: &mut Ctx<'_>) {
    cx.engine.persistence.is_scheduled = true;
}

/// Follows up on the emptying of all databases for the RDB file (FLUSHALL).
pub fn save_flushed(cx: &mut Ctx<'_>) {
    persistence::save_flushed(cx.engine);
}

/// Saves the data before the server ends, if they are to be saved (SHUTDOWN).
///
/// # Errors
/// They cannot be saved, or a script is suspended, of whose changes the file would have a part: the server goes on.
pub fn prepare_shutdown(cx: &mut Ctx<'_>, options: ShutdownOptions) -> Result<(), Error> {
    if !options.skips_save {
        cx.engine.scripts.gate(Flags::NONE)?;
    }
    persistence::prepare_shutdown(cx.engine, options)
}

/// Cancels a shutdown that was requested and has not happened; false if there is none.
pub fn cancel_shutdown(cx: &mut Ctx<'_>) -> bool {
    std::mem::take(&mut cx.engine.persistence.shutdown.is_pending)
}

/// Replaces all data by those of the RDB file (DEBUG RELOAD).
///
/// # Errors
/// The file could not be written or loaded; the log has the reason.
pub fn reload(cx: &mut Ctx<'_>, options: ReloadOptions) -> Result<(), Error> {
    persistence::reload(cx.engine, options)
}

/// Sets all counters behind INFO to zero (CONFIG RESETSTAT).
pub fn reset_statistics(cx: &mut Ctx<'_>) {
    cx.engine.stats.reset(cx.engine.host.loop_cycles());
    cx.engine.scripts.cache.evicted = 0;
}

/// Takes a sample of the instantaneous metrics and of the largest buffers now, for INFO.
pub fn sample_metrics(cx: &mut Ctx<'_>) {
    timing::sample_for_info(cx.engine);
}

/// Makes all clients wait once the command has ended (DEBUG SLEEP).
pub fn stall(cx: &mut Ctx<'_>, stall_us: u64) {
    if cx.engine.peers.cluster.is_some() {
        sleep::begin(cx.engine, cx.session, stall_us);
    } else {
        timing::stall(cx.engine, stall_us);
    }
}

/// Restarts all random choices and the order of keys from `seed`.
pub fn reseed(cx: &mut Ctx<'_>, seed: u64) {
    cx.engine.seed(seed);
}

/// Bytes that nobody can guess, except in deterministic mode.
pub fn secret(cx: &mut Ctx<'_>) -> [u8; 32] {
    cx.engine.secret()
}

/// The size in bytes from which an element is a node of a list by itself, or 0 for the usual one (DEBUG
/// QUICKLIST-PACKED-THRESHOLD).
pub fn set_list_node_bytes(cx: &mut Ctx<'_>, bytes: usize) {
    cx.engine.settings.list_nodes.large = NonZeroUsize::new(bytes);
}

// Clients: their users, channels, tracking and connections.

/// Makes this client the user `name`, if the password is right; `word` is the command, for the log of denials.
///
/// # Errors
/// [`Error::WrongPassword`].
pub fn log_in(cx: &mut Ctx<'_>, name: &[u8], password: &[u8], word: &[u8]) -> Result<(), Error> {
    acl::log_in(cx.engine, cx.session, name, password, word)
}

/// Makes this client the default user again, which may have to log in.
pub fn log_out(cx: &mut Ctx<'_>) {
    acl::log_out(cx.engine, cx.session);
}

/// Creates or changes a user by ACL rules, and closes the clients that lose a right which they use.
///
/// # Errors
/// The name or a rule is not valid; nothing has changed.
pub fn set_user(cx: &mut Ctx<'_>, name: &[u8], rules: &[Vec<u8>]) -> Result<(), Error> {
    acl::set_user(cx.engine, Some(cx.session), name, rules)
}

/// Removes a user and closes its clients; false when there is none of that name.
pub fn remove_user(cx: &mut Ctx<'_>, name: &[u8]) -> bool {
    acl::remove_user(cx.engine, Some(cx.session), name)
}

/// Replaces all users by those of the ACL file.
///
/// # Errors
/// The file cannot be read, or a line is not valid; nothing has changed.
pub fn load_users(cx: &mut Ctx<'_>) -> Result<(), String> {
    acl::load_users(cx.engine, Some(cx.session))
}

/// Writes all users to the ACL file; false when that failed.
pub fn save_users(cx: &mut Ctx<'_>) -> bool {
    acl::save_users(cx.engine)
}

/// Removes all entries of the log of denials (ACL LOG RESET).
pub fn clear_acl_log(cx: &mut Ctx<'_>) {
    cx.engine.acl.log.clear();
}

/// Subscribes this client to a channel or pattern.
pub fn subscribe(cx: &mut Ctx<'_>, topic: Topic, name: &[u8]) {
    publish::subscribe(cx.engine, cx.session, topic, name);
}

/// Ends a subscription of this client.
pub fn unsubscribe(cx: &mut Ctx<'_>, topic: Topic, name: &[u8]) {
    publish::unsubscribe(cx.engine, cx.session, topic, name);
}

/// Ends all subscriptions of this client, its tracking, its MONITOR and its feed.
pub fn unsubscribe_all(cx: &mut Ctx<'_>) {
    publish::unsubscribe_all(cx.engine, cx.session);
}

/// Sends a message to the subscribers of a channel, at all nodes of a cluster, or of a shard channel, at those of its
/// shard; returns how many clients of this one received it.
pub fn publish(cx: &mut Ctx<'_>, topic: Topic, channel: &[u8], message: &[u8]) -> usize {
    cluster::publish_elsewhere(cx.engine, topic, channel, message);
    publish::publish(cx.engine, topic, channel, message)
}

/// Sends this client the commands that a filter admits from now on, with their replies (DUNLIN FEED).
pub fn start_feed(cx: &mut Ctx<'_>, filter: Filter) {
    if let Some(client) = cx.engine.sessions.get_mut(cx.session) {
        cx.engine.observers.start_feed(client, cx.command, filter);
    }
}

/// Ends the feed of this client.
pub fn end_feed(cx: &mut Ctx<'_>) {
    if let Some(client) = cx.engine.sessions.get_mut(cx.session) {
        cx.engine.observers.end_feed(client);
    }
}

/// Removes the fault rule of that name; returns whether there was one.
pub fn remove_fault(cx: &mut Ctx<'_>, name: &[u8]) -> bool {
    kit::faults::remove(cx.engine, name)
}

/// Removes all fault rules.
pub fn clear_faults(cx: &mut Ctx<'_>) {
    kit::faults::clear(cx.engine);
}

/// Sends this client every command from now on (MONITOR); false when it receives them already.
pub fn monitor(cx: &mut Ctx<'_>) -> bool {
    monitor::monitor(cx.engine, cx.session)
}

/// Starts client-side caching for this client.
pub fn track(cx: &mut Ctx<'_>, mode: Mode) {
    tracking::track(cx.engine, cx.session, mode);
}

/// Ends client-side caching for this client.
pub fn untrack(cx: &mut Ctx<'_>) {
    tracking::untrack(cx.engine, cx.session);
}

/// Sends the clients that track keys the message that all keys were deleted.
pub fn invalidate_all(cx: &mut Ctx<'_>) {
    tracking::invalidate_all(cx.engine);
}

/// Ends another session at once (CLIENT KILL). The link to the primary is connected again.
pub fn close_session(cx: &mut Ctx<'_>, session: SessionId) {
    cx.engine.close_session(session);
    replication::replace_link(cx.engine, session);
}

/// Sends requests to another server and waits for its replies, while all clients wait (MIGRATE).
pub fn send_remote(cx: &mut Ctx<'_>, request: RemoteRequest) -> RemoteResult {
    cx.engine.host.send_remote(request)
}

/// Makes clients wait until that moment (CLIENT PAUSE).
pub fn pause_clients(cx: &mut Ctx<'_>, until: Now, scope: PauseScope) {
    let now = cx.now();
    cx.engine.timing.pause.begin(now, until, scope);
}

/// Ends the pause of clients (CLIENT UNPAUSE).
pub fn end_pause(cx: &mut Ctx<'_>) {
    cx.engine.timing.pause.end();
}

// Scripts and functions.

/// Compiles a script and keeps it; returns its name.
///
/// # Errors
/// The script cannot be compiled.
pub fn load_script(cx: &mut Ctx<'_>, source: &[u8]) -> Result<Digest, Error> {
    run::load_script(cx.engine, source)
}

/// Calls `act` with each of several keys in their order. In a large database, the memory that looking them up will read
/// is prefetched, so that the waits for it overlap.
pub fn each_key<'c, 'k>(
    cx: &mut Ctx<'c>,
    keys: impl ExactSizeIterator<Item = &'k [u8]> + Clone,
    mut act: impl FnMut(&mut Ctx<'c>, &'k [u8]),
) {
    let (mut keys, mut ahead) = (keys.clone(), keys);
    while keys.len() > 0 {
        prefetch_keys(cx.engine.databases.get(cx.database), ahead.by_ref().take(KEYS_TOGETHER));
        keys.by_ref().take(KEYS_TOGETHER).for_each(|key| act(cx, key));
    }
}

/// Removes all scripts.
pub fn flush_scripts(cx: &mut Ctx<'_>) {
    scripts::flush_scripts(cx.engine);
}

/// Ends the running script or function, if it has written nothing yet.
///
/// # Errors
/// None runs, or the one that runs must go on.
pub fn kill_script(cx: &mut Ctx<'_>, kind: ScriptOrFunction) -> Result<(), Error> {
    cx.engine.scripts.kill(kind)
}

/// Loads a library of functions; returns its name.
///
/// # Errors
/// The source is not a library, or there is one of that name and `replaces` is not set.
pub fn load_library(cx: &mut Ctx<'_>, source: &[u8], replaces: bool) -> Result<String, Error> {
    load::load_library(cx.engine, source, replaces)
}

/// Removes a library.
///
/// # Errors
/// There is none of that name.
pub fn delete_library(cx: &mut Ctx<'_>, name: &[u8]) -> Result<(), Error> {
    load::delete_library(cx.engine, name)
}

/// Loads the libraries of a payload of FUNCTION DUMP.
///
/// # Errors
/// The payload is not valid, or a name is taken; nothing has changed.
pub fn restore_libraries(cx: &mut Ctx<'_>, payload: &[u8], policy: Policy) -> Result<(), Error> {
    load::restore_libraries(cx.engine, payload, policy)
}

/// Removes all libraries.
pub fn flush_functions(cx: &mut Ctx<'_>) {
    scripts::flush_functions(cx.engine);
}

/// The function of that name, of a library that is loaded now if it was only described by a template.
pub fn find_function(cx: &mut Ctx<'_>, name: &[u8]) -> Option<Arc<Function>> {
    load::load_described(cx.engine);
    cx.engine.scripts.functions.registry.find(name).map(Arc::clone)
}

// The test kit: states of the whole engine.

/// Takes a snapshot, again if there is one of that name; brings back the state of one; or drops it: older and younger
/// ones can still be rolled back to.
///
/// # Errors
/// There is none of that name, or a script runs.
pub fn order_snapshots(cx: &mut Ctx<'_>, order: &SnapshotOrder) -> Result<(), Error> {
    snapshots::carry_out(cx.engine, order)
}

/// Replaces all data and functions by those of another engine.
///
/// # Errors
/// The server is a replica; nothing has changed then.
pub fn take_over(cx: &mut Ctx<'_>, other: Engine) -> Result<(), Error> {
    snapshots::take_over(cx.engine, other)
}

// Random choices.

/// A random key of the selected database; `None` when it is empty (RANDOMKEY).
pub fn random_key(cx: &mut Ctx<'_>) -> Option<KeyHandle> {
    let Engine { databases, generator, .. } = &mut *cx.engine;
    databases.get(cx.database).random(&mut || generator.u64(..))
}

/// A random number below `bound`, which must not be 0 (LOLWUT).
pub fn random_below(cx: &mut Ctx<'_>, bound: usize) -> usize {
    cx.engine.generator.usize(..bound)
}
