//! The engine: takes a request and the time, and returns a reply and effects that the server carries out.
//!
//! It opens no socket and no file and starts no thread. The caller passes the time with each request. All that the
//! engine needs from outside while a request runs is in [`Host`]: the clock again, to measure the commands of a batch
//! and of a transaction; facts for INFO; the files of CONFIG REWRITE, ACL and SAVE; the listeners; another server
//! (MIGRATE); secrets. With [`state::host::NoHost`], which has none of these, the same seed, requests and moments give
//! the same replies, byte for byte. The other promises of the project depend on that: a clock that tests move, many
//! engines in one process, tests that never sleep.
//!
//! Four rooms, each of which uses only those before it: [`spec`] describes commands, [`cluster`] holds what a node of a
//! cluster knows of the others, [`state`] what the server knows, and [`exec`] executes. [`Engine`] composes the state.
//! Its methods are what a host calls; anything else is a method of one struct of the state or a function of a module of
//! `exec`.
//!
//! The path of a request: [`Engine::run`] resolves the name, asks the gates (`exec/gates`), runs the stages around the
//! command (`exec/stages`), and calls the handler, which reaches the data through [`Ctx`]. A data command skips gates
//! and stages while none is active (`exec/fast_path`). The commands that exist are passed in as a [`Table`].

pub mod cluster;
pub mod exec;
pub mod spec;
pub mod state;

pub use exec::{Changed, Ctx, Deadline, DueState, Flow, Lookup, MetadataChange, Missing, Peek, Stored};
pub use spec::{
    AclError, Args, Arity, Begin, BitmapError, CATEGORIES, Change, Channels, Class, ClusterError, Command, CommandId,
    Description, Entry, Error, Event, Family, Find, Flags, FunctionError, GeoError, Handler, HyperLogLogError,
    KeyFlags, KeyRange, KeySpec, KitError, Notifications, Now, Propagated, REDACTED, REDIS_VERSION, RestoreError,
    Secrets, ServerError, StreamError, Table, TrackingError, VectorSetError, says, shown,
};
#[cfg(feature = "page")]
pub use state::Page;
pub use state::{
    Acl, Advance, Aof, AofProgress, AofState, Asking, Block, Buffers, Capacity, Checkpoint, ClientsLimit, ClockOrder,
    CommandStats, Counts, Databases, Effect, Effects, ErrorCounts, FIRST_WORLD, FaultOrder, FileSettings, Host,
    HostCall, HostReply, InstantMetrics, JournalOrder, LatencyHistogram, LatencyMonitor, LinkOrder, LoadCounts,
    Loading, LogLevel, MAX_SAMPLES, NodeFigures, NodeMessage, NodeOrder, Observers, OomScore, Origin, OutputLimit,
    OutputLimits, Pause, PauseScope, Peers, PendingHostCall, Permission, Persistence, Policy, Presence, Pressure,
    Process, Propagation, PushQueue, RemoteFault, RemoteRequest, RemoteResult, ReplicationSettings, ReplyMode,
    ReplyRoom, Sample, SavePoint, Saving, Scripts, Series, Session, SessionId, SessionTransfer, Sessions, Settings,
    SlotMigrationStep, SlowCommand, SlowLog, SnapshotOrder, Stats, Subscribed, Subscriptions, Supervisor, Switches,
    SyncPolicy, Template, Timing, Topic, Transaction, Transfers, Transport, Wait, Waiting, Watches, WorldFigures,
    WorldName,
};
#[cfg(feature = "program")]
pub use state::{EndWith, Launch};

use std::sync::Arc;

use self::exec::{acl, blocking, kit};
use self::state::measures::Measures;
use crate::keyspace::LazyFree;
use crate::value::hashing::Key;

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
    /// The state of saving and loading the data.
    pub persistence: Persistence,
    /// Switches that DEBUG and tests set.
    pub switches: Switches,
    /// The current moment, the running command, and whether time stands still.
    pub timing: Timing,
    /// The other servers: those of its cluster, its replicas, and its primary.
    pub peers: Peers,
}

/// The seeds of key hashing, member hashing and random choices. They are independent, so that what clients see of one
/// does not reveal the others.
fn parts_of(seed: u64) -> [u64; 3] {
    [b"keys".as_slice(), b"members", b"chance"].map(|what| Key::of(seed).hash(what))
}

impl Engine {
    /// An engine without keys or clients, started at `now`, whose random choices and hashing follow from `seed`.
    pub fn new(table: Table, mut settings: Settings, seed: u64, now: Now, host: Box<dyn Host>) -> Engine {
        let [keys, members, random] = parts_of(seed);
        settings.seed_members(members);
        if settings.cluster.is_enabled {
            settings.databases = 1;
        }
        let password = settings.password.clone();
        let observers = Observers { measures: Measures::of(&settings.process.measures), ..Observers::default() };
        let mut engine = Engine {
            databases: Databases::new(settings.databases, keys),
            stats: Stats::new(table.entries().len()),
            table,
            settings,
            sessions: Sessions::default(),
            acl: Acl::default(),
            generator: fastrand::Rng::with_seed(random),
            effects: Effects::default(),
            host,
            scripts: Scripts::default(),
            observers,
            persistence: Persistence::starting_at(now),
            switches: Switches::default(),
            timing: Timing::starting_at(now),
            peers: Peers::default(),
        };
        if engine.settings.cluster.is_enabled {
            exec::cluster::join(&mut engine, cluster::View::alone(cluster::Node::of_seed(seed, now)));
        }
        engine.stats.startup_bytes = engine.databases.memory_bytes() as u64;
        acl::set_default_password(&mut engine, &password);
        engine
    }

    /// Restarts all random choices and the order of keys from `seed`, as in an engine created with it. Takes time
    /// proportional to the number of keys.
    pub fn seed(&mut self, seed: u64) {
        let [keys, members, random] = parts_of(seed);
        self.settings.seed_members(members);
        self.databases.reseed(keys);
        self.databases.pressure.forget();
        self.generator = fastrand::Rng::with_seed(random);
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

    /// Opens a session. `None` when there are too many; the caller replies with that error and closes the connection.
    pub fn connect(&mut self, now: Now, origin: Origin) -> Option<SessionId> {
        self.at(now);
        if self.sessions.len() >= self.settings.max_clients && !origin.is_test_client {
            self.stats.connections_refused += 1;
            return None;
        }
        self.stats.connections += u64::from(!origin.is_page);
        let needs_no_login = !self.acl.users.must_log_in();
        let default_user = Arc::clone(self.acl.users.default_user());
        let session = self.sessions.open(origin, default_user, needs_no_login, now);
        kit::waits::wake_waiters(self);
        Some(session)
    }

    /// Ends the session of a client that disconnected.
    pub fn disconnect(&mut self, session: SessionId) {
        if self.scripts.detach(session) {
            return;
        }
        blocking::stop_waiting(self, session);
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.forget(client);
        }
        self.sessions.close(session);
        kit::waits::wake_waiters(self);
    }

    /// Ends a session now (Redis's `freeClient`): it is in no list any more, and its connection closes.
    pub fn close_session(&mut self, session: SessionId) {
        self.disconnect(session);
        self.effects.push(Effect::Close(session));
    }

    /// Marks a session as closing (Redis's `freeClientAsync`): it receives nothing more, and is removed when its
    /// connection has ended.
    pub fn close_session_later(&mut self, session: SessionId) {
        blocking::stop_waiting(self, session);
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.forget(client);
            client.closing = true;
        }
        self.effects.push(Effect::Close(session));
    }

    /// Frees a small value at once, and a large one on another thread.
    #[inline]
    pub fn free(&mut self, lazy_free: LazyFree) {
        if lazy_free.takes_long() {
            self.effects.push(Effect::Free(lazy_free.alone()));
        }
    }
}
