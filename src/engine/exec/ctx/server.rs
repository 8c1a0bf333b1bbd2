//! What a handler may do to the server beside its data: all of it, each by a name.
//!
//! A handler reads everything through [`Ctx::engine`], and changes data only through the forms of [`Ctx`]. What it
//! changes of the server itself is listed here: a struct of the state that stands alone is handed out whole, and what
//! concerns several of them is an operation, which passes on to the module that knows how.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::scripts::load::Policy;
use crate::engine::exec::scripts::{load, run};
use crate::engine::exec::{Ctx, eviction, measure, monitor, publish, rights, scripts, snapshots, tracking};
use crate::engine::spec::Error;
use crate::engine::state::scripts::{Digest, Kind};
use crate::engine::state::tracking::Mode;
use crate::engine::state::{
    Observers, Pause, RemoteRequest, RemoteResult, SessionId, Settings, Stats, Switches, Topic,
};
use crate::script::Function;

/// Structs of the state that stand alone.
impl Ctx<'_> {
    /// The settings, to change one that nothing else depends on. All others change by [`Ctx::replace_settings`].
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.engine.settings
    }

    /// The counters behind INFO, to count something.
    pub fn stats_mut(&mut self) -> &mut Stats {
        &mut self.engine.stats
    }

    /// The switches of DEBUG.
    pub fn switches_mut(&mut self) -> &mut Switches {
        &mut self.engine.switches
    }

    /// The pause of clients (CLIENT PAUSE), to begin or end it.
    pub fn pause_mut(&mut self) -> &mut Pause {
        self.engine.timing.pause_mut()
    }

    /// The observers, among them the test kit.
    pub fn observers_mut(&mut self) -> &mut Observers {
        &mut self.engine.observers
    }
}

/// The process: its settings, time and counters.
impl Ctx<'_> {
    /// Puts other settings in force, with what follows from them but is not an effect: the default user's
    /// password, and eviction if the memory limit is lower now.
    pub fn replace_settings(&mut self, settings: Settings) {
        let is_password_other = self.engine.settings.password != settings.password;
        self.engine.settings = settings;
        if is_password_other {
            let password = self.engine.settings.password.clone();
            rights::set_default_password(self.engine, &password);
        }
        eviction::begin_evicting(self.engine);
    }

    /// Sets all counters behind INFO to zero (CONFIG RESETSTAT).
    pub fn reset_statistics(&mut self) {
        self.engine.stats.reset(self.engine.host.turns());
        self.engine.scripts.cache.evicted = 0;
    }

    /// Takes a sample of the instantaneous metrics now, for INFO.
    pub fn sample_metrics(&mut self) {
        let (now, bytes, turns) = (self.now(), self.engine.databases.memory_bytes(), self.engine.host.turns());
        self.engine.stats.sample(now, now, bytes, turns);
    }

    /// Makes all clients wait once the command has ended (DEBUG SLEEP).
    pub fn stall(&mut self, stall_us: u64) {
        measure::stall(self.engine, stall_us);
    }

    /// Restarts all random choices and the order of keys from `seed`.
    pub fn reseed(&mut self, seed: u64) {
        self.engine.seed(seed);
    }

    /// Bytes that nobody can guess, except in deterministic mode.
    pub fn secret(&mut self) -> [u8; 32] {
        self.engine.secret()
    }
}

/// Clients: their users, channels, tracking and connections.
impl Ctx<'_> {
    /// Makes this client the user `name`, if the password is right; `word` is the command, for the log of denials.
    ///
    /// # Errors
    /// [`Error::WrongPassword`].
    pub fn log_in(&mut self, name: &[u8], password: &[u8], word: &[u8]) -> Result<(), Error> {
        rights::log_in(self.engine, self.session, name, password, word)
    }

    /// Makes this client the default user again, which may have to log in.
    pub fn log_out(&mut self) {
        rights::log_out(self.engine, self.session);
    }

    /// Creates or changes a user by ACL rules, and closes the clients that lose a right which they use.
    ///
    /// # Errors
    /// The name or a rule is not valid; nothing has changed.
    pub fn set_user(&mut self, name: &[u8], rules: &[Vec<u8>]) -> Result<(), Error> {
        rights::set_user(self.engine, Some(self.session), name, rules)
    }

    /// Removes a user and closes its clients; false when there is none of that name.
    pub fn remove_user(&mut self, name: &[u8]) -> bool {
        rights::remove_user(self.engine, Some(self.session), name)
    }

    /// Replaces all users by those of the ACL file.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not valid; nothing has changed.
    pub fn load_users(&mut self) -> Result<(), String> {
        rights::load_users(self.engine, Some(self.session))
    }

    /// Writes all users to the ACL file; false when that failed.
    pub fn save_users(&mut self) -> bool {
        rights::save_users(self.engine)
    }

    /// Removes all entries of the log of denials (ACL LOG RESET).
    pub fn clear_acl_log(&mut self) {
        self.engine.acl.log.clear();
    }

    /// Subscribes this client to a channel or pattern.
    pub fn subscribe(&mut self, topic: Topic, name: &[u8]) {
        publish::subscribe(self.engine, self.session, topic, name);
    }

    /// Ends a subscription of this client.
    pub fn unsubscribe(&mut self, topic: Topic, name: &[u8]) {
        publish::unsubscribe(self.engine, self.session, topic, name);
    }

    /// Ends all subscriptions of this client, its tracking and its MONITOR.
    pub fn unsubscribe_all(&mut self) {
        publish::unsubscribe_all(self.engine, self.session);
    }

    /// Sends a message to the subscribers of a channel; returns how many clients received it.
    pub fn publish(&mut self, topic: Topic, channel: &[u8], message: &[u8]) -> usize {
        publish::publish(self.engine, topic, channel, message)
    }

    /// Sends this client every command from now on (MONITOR); false when it receives them already.
    pub fn monitor(&mut self) -> bool {
        monitor::monitor(self.engine, self.session)
    }

    /// Starts client-side caching for this client.
    pub fn track(&mut self, mode: Mode) {
        tracking::track(self.engine, self.session, mode);
    }

    /// Ends client-side caching for this client.
    pub fn untrack(&mut self) {
        tracking::untrack(self.engine, self.session);
    }

    /// Sends the clients that track keys the message that all keys were deleted.
    pub fn invalidate_all(&mut self) {
        tracking::invalidate_all(self.engine);
    }

    /// Ends another session at once (CLIENT KILL).
    pub fn close_session(&mut self, session: SessionId) {
        self.engine.remove(session);
    }

    /// Sends requests to another server and waits for its replies, while all clients wait (MIGRATE).
    pub fn send_remote(&mut self, request: RemoteRequest) -> RemoteResult {
        self.engine.host.send_remote(request)
    }
}

/// Scripts and functions.
impl Ctx<'_> {
    /// Compiles a script and keeps it; returns its name.
    ///
    /// # Errors
    /// The script cannot be compiled.
    pub fn load_script(&mut self, source: &[u8]) -> Result<Digest, Error> {
        run::load_script(self.engine, source)
    }

    /// Removes all scripts.
    pub fn flush_scripts(&mut self) {
        scripts::flush_scripts(self.engine);
    }

    /// Ends the running script or function, if it has written nothing yet.
    ///
    /// # Errors
    /// None runs, or the one that runs must go on.
    pub fn kill_script(&mut self, kind: Kind) -> Result<(), Error> {
        self.engine.scripts.kill(kind)
    }

    /// Loads a library of functions; returns its name.
    ///
    /// # Errors
    /// The source is not a library, or there is one of that name and `replaces` is not set.
    pub fn load_library(&mut self, source: &[u8], replaces: bool) -> Result<String, Error> {
        load::load_library(self.engine, source, replaces)
    }

    /// Removes a library.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn delete_library(&mut self, name: &[u8]) -> Result<(), Error> {
        load::delete_library(self.engine, name)
    }

    /// Loads the libraries of a payload of FUNCTION DUMP.
    ///
    /// # Errors
    /// The payload is not valid, or a name is taken; nothing has changed.
    pub fn restore_libraries(&mut self, payload: &[u8], policy: Policy) -> Result<(), Error> {
        load::restore_libraries(self.engine, payload, policy)
    }

    /// Removes all libraries.
    pub fn flush_functions(&mut self) {
        scripts::flush_functions(self.engine);
    }

    /// The function of that name, of a library that is loaded now if it was only described by a template.
    pub fn find_function(&mut self, name: &[u8]) -> Option<Arc<Function>> {
        load::load_described(self.engine);
        self.engine.scripts.functions.registry.find(name).map(Arc::clone)
    }
}

/// The test kit: states of the whole engine.
impl Ctx<'_> {
    /// Takes a snapshot, or takes it again if there is one of that name.
    pub fn take_snapshot(&mut self, name: &[u8]) {
        snapshots::take_snapshot(self.engine, name);
    }

    /// Brings back the state of a snapshot.
    ///
    /// # Errors
    /// There is none of that name, or a script runs.
    pub fn roll_back(&mut self, name: &[u8]) -> Result<(), Error> {
        snapshots::roll_back(self.engine, name)
    }

    /// Removes a snapshot and those that were taken since.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn drop_snapshot(&mut self, name: &[u8]) -> Result<(), Error> {
        self.engine.databases.drop_snapshot(name)
    }

    /// Replaces all data and functions by those of another engine.
    pub fn take_over(&mut self, other: Engine) {
        snapshots::take_over(self.engine, other);
    }
}
