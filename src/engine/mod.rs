//! The engine: takes a request and the time, and returns a reply and effects that the server carries out.
//!
//! It opens no socket and no file and starts no thread. The caller passes the time with each request. All that the
//! engine needs from outside while a request runs is in [`Host`]: the clock again, to measure the commands of a batch
//! and of a transaction; facts for INFO; the files of CONFIG REWRITE and ACL; the listeners; another server (MIGRATE);
//! secrets. With [`host::NoHost`], which has none of these, the same seed, requests and moments give the same replies,
//! byte for byte. The other promises of the project depend on that: a clock that tests move, many engines in one
//! process, tests that never sleep.
//!
//! The path of a request: [`Engine::run`] resolves the name, asks the gates ([`gates`]), runs the stages around the
//! command ([`stages`]), and calls the handler, which reaches the data through [`Ctx`]. A data command skips gates and
//! stages while none is active ([`fast_path`]). What a command *is* is defined here ([`Command`]); the commands that
//! exist are passed in as a [`Table`].

mod acl;
mod args;
mod blocking;
mod capacity;
mod client_line;
mod command;
mod ctx;
mod databases;
mod delivery;
mod derived;
mod dispatch;
mod due;
mod effects;
mod error;
mod error_counts;
mod event;
mod eviction;
mod fast_path;
mod fields;
mod gates;
mod history;
pub mod host;
mod host_call;
mod instant_metrics;
mod key_spec;
mod keys;
pub mod kit;
mod latency_histogram;
mod latency_monitor;
pub mod lru;
mod measure;
mod moment;
mod monitor;
pub mod observers;
mod pause;
mod peek;
mod prefetch;
mod process;
mod publish;
mod push_queue;
mod remote_request;
mod rights;
pub mod scripts;
mod secrets;
mod session;
mod settings;
mod slow_log;
mod snapshots;
mod stages;
mod stats;
mod stored;
mod table;
mod template;
pub mod tracking;
mod transaction;

pub use acl::Acl;
pub use args::{Args, says};
pub use capacity::Capacity;
pub use command::{Arity, Channels, Command, Family, Flags, Handler};
pub use ctx::{Changed, Ctx, Deadline, MetadataChange};
pub use databases::Databases;
pub use delivery::{OutputLimit, OutputLimits};
pub use derived::{CATEGORIES, KeyRange};
pub use dispatch::Flow;
pub use due::DueState;
pub use effects::{ClockOrder, Effect, Effects};
pub use error::{
    BitmapError, Error, GeoError, HyperLogLogError, KitError, RestoreError, RightsError, ServerError, StreamError,
    TrackingError, shown,
};
pub use error_counts::ErrorCounts;
pub use event::{Class, Event, Notifications};
pub use eviction::{ClientsLimit, Policy, Pressure};
pub use history::Change;
pub use host::Host;
pub use host_call::{FIRST_WORLD, HostCall, HostReply, PendingHostCall, SessionTransfer, WorldFigures, WorldName};
pub use instant_metrics::{Counts, InstantMetrics};
pub use key_spec::{Begin, Find, KeyFlags, KeySpec};
pub use latency_histogram::LatencyHistogram;
pub use latency_monitor::{LatencyMonitor, MOST_SAMPLES, Sample, Series};
pub use moment::Now;
pub use observers::{Block, Observers, Presence, Subscribed, Subscriptions, Topic, Wait, Waiting, Watches};
pub use pause::{Pause, PauseScope};
pub use peek::Peek;
pub use process::{OomScore, Process, Supervisor};
pub use push_queue::PushQueue;
pub use remote_request::{RemoteFault, RemoteRequest, RemoteResult};
pub use scripts::Scripts;
pub use secrets::{REDACTED, Secrets};
pub use session::{Buffers, Origin, ReplyMode, ReplyRoom, Session, SessionId, Sessions, Transport};
pub use settings::{LogLevel, Permission, Settings};
pub use slow_log::{SlowCommand, SlowLog};
pub use stats::{CommandStats, Stats, Transfers};
pub use stored::Stored;
pub use table::{CommandId, Entry, Table};
pub use template::Template;
pub use transaction::Transaction;

use std::sync::Arc;

use crate::keyspace::{Database, LazyFree, Slot};
use crate::value::hashing::Key;

/// The version of Redis that this server answers as.
pub const REDIS_VERSION: &str = "8.0.6";

/// The build id that INFO shows, in the place of Redis's.
pub fn build_id() -> String {
    format!("{:016x}", crate::rdb::crc64(env!("CARGO_PKG_VERSION").as_bytes()))
}

/// The state of a server, without its sockets.
#[derive(Debug)]
pub struct Engine {
    /// The table of all commands.
    pub table: Table,
    /// The settings in force.
    pub settings: Settings,
    /// The databases, with all keys.
    pub databases: Databases,
    /// The sessions of all clients.
    pub sessions: Sessions,
    /// The users of the clients, and the log of denied requests.
    pub acl: Acl,
    /// The random generator, seeded.
    pub generator: fastrand::Rng,
    /// The counters behind INFO.
    pub stats: Stats,
    /// Effects that the server has not carried out yet.
    pub effects: Effects,
    /// The interface to the world outside.
    pub host: Box<dyn Host>,
    /// Scripts, functions, and the script that runs.
    pub scripts: Scripts,
    /// The sessions that other sessions' commands concern.
    pub observers: Observers,
    /// Switches that DEBUG and tests set.
    pub switches: Switches,
    /// The current moment, the running command, and whether time stands still.
    timing: Timing,
}

/// Switches that DEBUG and tests set.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// Keys are removed at their deadline; if off, only when they are accessed (DEBUG SET-ACTIVE-EXPIRE).
    pub active_expiry: bool,
    /// Scripts may call commands that inspect the server, as its tests do (DEBUG SET-DISABLE-DENY-SCRIPTS).
    pub scripts_inspect: bool,
    /// Nothing runs when it falls due: no active expiry, no closing of idle clients (DEBUG PAUSE-CRON).
    pub cron_paused: bool,
    /// The number of times that the replication id was changed (DEBUG CHANGE-REPL-ID).
    pub replid_generation: u32,
    /// Key events are recorded among the effects.
    pub records_key_events: bool,
    /// The checksums of payloads are verified (DEBUG SET-SKIP-CHECKSUM-VALIDATION).
    pub verifies_checksums: bool,
    /// The capacity limits of collections and databases.
    pub capacity: Capacity,
    /// The size of the reply buffer that each client keeps (DEBUG REPLYBUFFER).
    pub reply_room: ReplyRoom,
    /// A shutdown was requested during [`Switches::cron_paused`]; it happens when that is over.
    pub shutdown_pending: bool,
    /// A test has chosen the seed: the system's randomness and wall-clock budgets are not used.
    pub is_deterministic: bool,
}

#[derive(Debug)]
struct Timing {
    started: Now,
    now: Now,
    running: Option<measure::Running>,
    put_off: measure::PutOff,
    /// When the current batch of requests began.
    batch_began: Now,
    /// The length of all stalls so far.
    stalled_us: u64,
    pause: Pause,
    /// The clock is held: it moves only when a test moves it.
    is_held: bool,
}

/// The size from which a value is freed on another thread, in bytes or parts: a smaller one is freed faster than
/// handed over.
const LARGE_BYTES: usize = 64 << 10;
const MANY_PARTS: usize = 64;

/// The seeds of key hashing, member hashing and random choices. They are independent, so that what clients see of one
/// does not reveal the others.
fn parts_of(seed: u64) -> [u64; 3] {
    [b"keys".as_slice(), b"members", b"chance"].map(|what| Key::of(seed).hash(what))
}

impl Engine {
    /// An engine without keys or clients, started at `now`, whose random choices and hashing follow from `seed`.
    pub fn new(table: Table, mut settings: Settings, seed: u64, now: Now, host: Box<dyn Host>) -> Engine {
        let [keys, members, chance] = parts_of(seed);
        settings.seed_members(members);
        let password = settings.password.clone();
        let mut engine = Engine {
            databases: Databases::new(settings.databases, keys),
            stats: Stats::new(table.entries().len()),
            table,
            settings,
            sessions: Sessions::default(),
            acl: Acl::default(),
            generator: fastrand::Rng::with_seed(chance),
            effects: Effects::default(),
            host,
            scripts: Scripts::default(),
            observers: Observers::default(),
            switches: Switches {
                active_expiry: true,
                scripts_inspect: false,
                cron_paused: false,
                replid_generation: 0,
                records_key_events: false,
                verifies_checksums: true,
                capacity: Capacity::default(),
                reply_room: ReplyRoom::default(),
                shutdown_pending: false,
                is_deterministic: false,
            },
            timing: Timing {
                started: now,
                now,
                running: None,
                put_off: measure::PutOff::default(),
                batch_began: now,
                stalled_us: 0,
                pause: Pause::default(),
                is_held: true,
            },
        };
        engine.stats.startup_bytes = engine.databases.memory_bytes() as u64;
        engine.set_default_password(&password);
        engine
    }

    /// Restarts all random choices and the order of keys from `seed`, as in an engine created with it. Takes time
    /// proportional to the number of keys.
    pub fn seed(&mut self, seed: u64) {
        let [keys, members, chance] = parts_of(seed);
        self.settings.seed_members(members);
        self.databases.reseed(keys);
        self.databases.pressure.forget();
        self.generator = fastrand::Rng::with_seed(chance);
        self.switches.is_deterministic = true;
    }

    /// Bytes that nobody can guess, except in deterministic mode.
    pub fn secret(&mut self) -> [u8; 32] {
        let secret = if self.switches.is_deterministic { None } else { self.host.secret() };
        secret.unwrap_or_else(|| {
            let mut bytes = [0; 32];
            self.generator.fill(&mut bytes);
            bytes
        })
    }

    /// The time of the current request or tick.
    pub fn now(&self) -> Now {
        self.timing.now
    }

    /// The pause in force, if any (CLIENT PAUSE).
    pub fn pause(&self) -> &Pause {
        &self.timing.pause
    }

    /// The pause, to start or end it.
    pub fn pause_mut(&mut self) -> &mut Pause {
        &mut self.timing.pause
    }

    /// Sets whether the clock is held, that is moved only by a test. On a held clock a key expires when its deadline is
    /// reached. On a running clock it expires when the deadline has passed, as in Redis: a millisecond is not over
    /// before the next begins, so no key lives for less than its time.
    pub fn hold_time(&mut self, is_held: bool) {
        self.timing.is_held = is_held;
    }

    /// The time when the engine was created.
    pub fn started(&self) -> Now {
        self.timing.started
    }

    /// Opens a session. `None` when there are too many; the caller replies with that error and closes the connection.
    pub fn connect(&mut self, now: Now, origin: Origin) -> Option<SessionId> {
        self.at(now);
        if self.sessions.len() >= self.settings.max_clients && !origin.is_test_client {
            self.stats.connections_refused += 1;
            return None;
        }
        self.stats.connections += 1;
        let needs_no_login = !self.acl.users.must_log_in();
        let default_user = Arc::clone(self.acl.users.default_user());
        let session = self.sessions.open(origin, default_user, needs_no_login, now);
        self.wake_waiters();
        Some(session)
    }

    /// Ends the session of a client that disconnected.
    pub fn disconnect(&mut self, session: SessionId) {
        if self.scripts.detach(session) {
            return;
        }
        self.stop_waiting(session);
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.forget(client);
        }
        self.sessions.close(session);
        self.wake_waiters();
    }

    /// Ends a session at once (CLIENT KILL): it is in no list any more.
    pub fn remove(&mut self, session: SessionId) {
        self.disconnect(session);
        self.effects.push(Effect::Close(session));
    }

    /// Ends a session: it receives nothing any more, and exists until its connection has ended.
    pub fn kill(&mut self, session: SessionId) {
        self.stop_waiting(session);
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.forget(client);
            client.closing = true;
        }
        self.effects.push(Effect::Close(session));
    }

    /// Looks up a live key; an expired one is deleted now, and so are expired fields of a hash.
    #[inline]
    fn live(&mut self, database: usize, key: &[u8]) -> Option<Slot> {
        let found = self.databases.get(database).find(key)?;
        let deadline_ms = self.databases.get(database).deadline(found);
        if deadline_ms.is_none_or(|deadline_ms| self.due_ms() < deadline_ms) {
            return self.without_due_fields(database, found);
        }
        if !self.timing.pause.holds(self.timing.now) {
            self.expire_slot(database, found);
        }
        None
    }

    /// Looks up a key for a command that is about to write. During a pause only commands that the pause lets through
    /// write, so an expired key is deleted for them.
    #[inline]
    fn live_to_change(&mut self, database: usize, key: &[u8]) -> Option<Slot> {
        let found = self.live(database, key);
        if found.is_none()
            && self.timing.pause.holds(self.timing.now)
            && let Some(due) = self.databases.get(database).find(key)
        {
            self.expire_slot(database, due);
        }
        found
    }

    /// Reports that a key changed. Every change passes through here, so that all observers of the key are notified.
    #[inline]
    fn changed(&mut self, database: usize, event: Event, key: &[u8]) {
        self.touched(database, key);
        self.announce(database, event, key);
        if !self.observers.waiting.is_empty() {
            self.signal_loss(database, key);
        }
    }

    /// Publishes an event of a key.
    #[inline]
    fn announce(&mut self, database: usize, event: Event, key: &[u8]) {
        if self.switches.records_key_events {
            self.effects.push(Effect::KeyEvent { database, name: event.name, key: key.to_vec() });
        }
        self.notify(database, event, key);
    }

    /// Reports that the value of a key changed, to WATCH and key tracking.
    #[inline]
    fn touched(&mut self, database: usize, key: &[u8]) {
        if self.observers.tracking.is_on() {
            self.invalidate(key);
        }
        if self.observers.watches.includes(database, key) {
            let presence = self.presence(database, key);
            self.observers.watches.touch(database, key, presence);
        }
    }

    /// Reports a new key: the clients blocked on it may go on when the command is done.
    fn arrived(&mut self, database: usize, key: &[u8]) {
        self.notify(database, Event::NEW, key);
        if !self.observers.waiting.is_empty() {
            self.observers.waiting.signal(database, key);
        }
    }

    /// Whether a key exists, is missing or has expired, without counting or recording an access.
    fn presence(&self, database: usize, key: &[u8]) -> Presence {
        presence(self.databases.get(database), key, self.due_ms())
    }

    /// Frees a small value at once, and a large one on another thread.
    #[inline]
    pub fn free(&mut self, lazy_free: LazyFree) {
        if lazy_free.memory() >= LARGE_BYTES || lazy_free.parts() > MANY_PARTS {
            self.effects.push(Effect::Free(lazy_free));
        }
    }
}

fn presence(database: &Database, key: &[u8], last_ms: i64) -> Presence {
    match database.find(key) {
        None => Presence::Missing,
        Some(slot) if database.deadline(slot).is_some_and(|deadline_ms| deadline_ms <= last_ms) => Presence::Overdue,
        Some(_) => Presence::Live,
    }
}
