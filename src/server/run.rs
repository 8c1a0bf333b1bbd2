//! Starts and ends a server: opens the sockets, makes the engine, starts the threads, and joins them at the end.
//!
//! [`Server::open`] does everything that can fail, so its caller gets every error at once. No client is served yet, but
//! clients that connect already wait in the sockets' queues. [`Server::serve`] serves them on the thread that calls it,
//! and on further ones as `io-threads` allows, until [`Shared::stop`] is called.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, watch};
use tracing::warn;

use super::aof_rewrite;
use super::aof_writer::AofWriter;
use super::clock::Clock;
use super::contain::contain;
use super::deliveries;
use super::first_of::first_of;
use super::listen::{self, Acceptor};
use super::listeners::Listeners;
use super::loops::Loops;
use super::migrate_client::MigrateClient;
use super::nodes;
use super::os_host::{self, HostFiles, OsHost};
use super::processors;
use super::shared::{Phase, Shared};
use super::timer;
use super::worlds::{WorldConfig, Worlds};
use crate::commands;
use crate::engine::exec::kit::waits;
use crate::engine::exec::{acl, persistence};
use crate::engine::state::host::Facts;
use crate::engine::state::kit::DiskFaults;
use crate::engine::{Engine, Settings, Table};
use crate::storage::Storage;

/// Everything that a server is started with.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    /// Whether to listen on TCP; with port 0 the system picks a port.
    pub(crate) tcp: bool,
    pub(crate) clock: Clock,
    /// The seed of random choices and of hashing.
    pub(crate) seed: u64,
    /// Whether the seed was chosen by the user, so that runs with it must be repeatable.
    pub(crate) is_deterministic: bool,
    /// Facts about the program's start: its configuration file and its supervisor. Empty in other programs.
    pub(crate) facts: Facts,
    /// The file system of the data: that of the machine, but for tests of what fails.
    pub(crate) storage: Arc<dyn Storage>,
    /// The rules by which that file system fails, in servers with the test kit.
    pub(crate) disk_faults: Option<DiskFaults>,
}

/// A server whose sockets are open.
#[derive(Debug)]
pub(crate) struct Server {
    shared: Arc<Shared>,
    runtime: Runtime,
    listeners: Arc<Listeners>,
    unix_socket: Option<listen::UnixSocketServer>,
    addresses: Vec<SocketAddr>,
    loops: Arc<Loops>,
    /// The list of processors that the event loops may run on (`server-cpulist`); empty for all.
    processors: String,
    disk_faults: Option<DiskFaults>,
}

/// The allocator's name in INFO and `--version`.
pub(crate) const ALLOCATOR: &str = "libc";

/// The most task polls (turns of connections and other tasks) before the event loop checks for I/O events. A turn of a
/// client that streams requests takes some 50 microseconds with its system calls ([`super::fairness`]), so the check
/// comes after some 13 ms at most.
const POLLS_BETWEEN_EVENTS: u32 = 256;

impl Server {
    /// Opens the sockets and makes the engine.
    ///
    /// # Errors
    /// When an address cannot be listened on, or the system is out of descriptors.
    pub(crate) fn open(plan: Plan) -> io::Result<Server> {
        let Plan { mut settings, tcp, clock, seed, is_deterministic, facts, storage, disk_faults } = plan;
        let table = table(&settings).map_err(io::Error::other)?;
        let mut sockets = nodes::open_tcp(&settings, tcp)?;
        let listeners = sockets.pop_front().unwrap_or_default();
        let addresses = listeners.iter().map(std::net::TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        settings.port = addresses.first().map_or(0, SocketAddr::port);
        let loops = Loops::new(settings.event_loops());
        let runtime = event_loop(&loops, 0)?;
        let opened = open_listeners(&runtime, listeners, &settings);
        let (runtime, (listeners, unix_socket)) = with_runtime(runtime, opened)?;
        let processors = settings.process.server_processors.clone();
        let facts = os_host::completed(Facts {
            run_id: os_host::run_id(&mut fastrand::Rng::with_seed(seed)),
            unix_socket: settings.unix_socket.clone(),
            allocator: ALLOCATOR,
            ..facts
        });
        let phase = watch::Sender::new(Phase::Serving);
        let migrate_client = Arc::new(MigrateClient::new(phase.subscribe(), &settings.process.background_processors));
        let first_clock = Arc::new(clock.like());
        let aof = Arc::new(AofWriter::new(disk_faults.clone()));
        let cluster = (settings.cluster.nodes() > 0).then(Arc::default);
        let files = HostFiles::new(storage, Some(Arc::clone(&aof)), disk_faults.clone());
        let host = Box::new(OsHost::new(
            facts.clone(),
            Arc::clone(&first_clock),
            Arc::clone(&migrate_client),
            cluster.clone(),
            Some(Arc::clone(&listeners)),
            Arc::clone(&loops),
            files.clone(),
        ));
        let mut engine = Engine::new(table.clone(), settings, seed, clock.now(), host);
        engine.switches.is_deterministic = is_deterministic;
        engine.persistence.aof.progress = Arc::clone(aof.progress());
        acl::enlist_users(&mut engine).map_err(io::Error::other)?;
        let worlds = Worlds::new(WorldConfig {
            table,
            settings: engine.settings.clone(),
            users: Arc::clone(&engine.acl.users),
            clock,
            seed,
            is_deterministic,
            facts,
            migrate_client,
            loops: Arc::clone(&loops),
            event_loop: runtime.handle().clone(),
            phase: phase.clone(),
            files,
            aof,
        });
        let shared = Shared::first(engine, first_clock, phase, worlds);
        shared.worlds().set_first_listeners(&listeners);
        let started = cluster.map_or(Ok(()), |cluster| nodes::start(&shared, &cluster, sockets));
        let (runtime, ()) = with_runtime(runtime, started)?;
        disk_faults.iter().for_each(|faults| wake_waiters_on_fire(faults, &shared, runtime.handle().clone()));
        Ok(Server { shared, runtime, listeners, unix_socket, addresses, loops, processors, disk_faults })
    }

    /// The part of the server that its threads and in-process clients share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The event loops of this server.
    #[cfg(test)]
    pub(super) fn loops(&self) -> &Arc<Loops> {
        &self.loops
    }

    /// The TCP addresses that the server listens on.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until [`Shared::stop`] is called; then closes all connections and joins the threads.
    pub(crate) fn serve(self) {
        processors::pin_thread(&self.processors);
        let threads = start_threads(&self.shared, &self.loops);
        let acceptor = Arc::new(Acceptor::new(Arc::clone(&self.shared), Arc::clone(&self.loops)));
        let serve_accepted = serve_accepted(&self.loops, 0);
        self.runtime.block_on(async {
            tokio::spawn(timer::run(Arc::clone(&self.shared)));
            tokio::spawn(deliveries::deliver(Arc::clone(&self.shared)));
            tokio::spawn(serve_accepted);
            self.listeners.accept_into(&acceptor);
            let _file = self.unix_socket.map(|listener| listener.accept_into(&acceptor));
            self.shared.stopped().await;
            // Listeners close first: a client whose connection was closed can no longer reconnect.
            self.listeners.close();
            self.shared.worlds().close_listeners();
            self.shared.close_connections();
        });
        // Other event loops may not have closed their connections yet.
        persistence::end_requests(&mut self.shared.engine());
        if let Some(faults) = &self.disk_faults {
            faults.end_waits();
        }
        aof_rewrite::wait_for_last_base(&self.shared);
        self.shared.worlds().saver().close();
        self.shared.worlds().close();
        self.shared.end_aof_with_server();
        self.shared.worlds().own_dump().unlock();
        // The connections of this loop end with its runtime.
        drop(self.runtime);
        for thread in threads {
            // A panic of the thread was logged when it happened.
            drop(thread.join());
        }
    }
}

/// A runtime with what was opened for it. If that failed, the runtime ends in the background: an embedding program may
/// call this within a tokio runtime, where dropping another runtime panics.
fn with_runtime<T>(runtime: Runtime, opened: io::Result<T>) -> io::Result<(Runtime, T)> {
    match opened {
        Ok(opened) => Ok((runtime, opened)),
        Err(error) => {
            runtime.shutdown_background();
            Err(error)
        }
    }
}

/// When a fault of the disk fires, checks the clients that wait for one (DUNLIN WAIT). A fault fires on a thread that
/// may hold any lock, so a task does the check.
fn wake_waiters_on_fire(faults: &DiskFaults, shared: &Arc<Shared>, event_loop: Handle) {
    let shared = Arc::downgrade(shared);
    faults.on_fire(move || {
        let shared = Weak::clone(&shared);
        event_loop.spawn(async move {
            if let Some(shared) = shared.upgrade() {
                shared.act(waits::wake_waiters);
            }
        });
    });
}

/// The command table of a server.
fn table(settings: &Settings) -> Result<Table, &'static str> {
    usual_table(settings.test_kit).clone().renamed(&settings.renames)
}

/// The command table without renamed commands: built once, and shared by all servers of the process.
pub(super) fn usual_table(has_test_kit: bool) -> &'static Table {
    static USUAL: [OnceLock<Table>; 2] = [OnceLock::new(), OnceLock::new()];
    USUAL[usize::from(has_test_kit)].get_or_init(|| Table::of(commands::families(has_test_kit)))
}

/// Registers the TCP sockets with an event loop, and opens the Unix socket.
fn open_listeners(
    event_loop: &Runtime,
    listeners: Vec<std::net::TcpListener>,
    settings: &Settings,
) -> io::Result<(Arc<Listeners>, Option<listen::UnixSocketServer>)> {
    let _entered = event_loop.enter();
    let listeners = Listeners::new(listeners, event_loop.handle().clone())?;
    Ok((Arc::new(listeners), listen::UnixSocketServer::open(settings)?))
}

/// The event loop of one thread. It checks for I/O events only when all connections that had some were served, but at
/// the latest after [`POLLS_BETWEEN_EVENTS`] polls: what clients send meanwhile is then found together.
fn event_loop(loops: &Arc<Loops>, number: usize) -> io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    loops.count_cycles(number, builder.enable_io().enable_time().event_interval(POLLS_BETWEEN_EVENTS));
    builder.build()
}

/// Starts the event loops beside the first, or as many of them as the system has threads for.
fn start_threads(shared: &Arc<Shared>, loops: &Arc<Loops>) -> Vec<thread::JoinHandle<()>> {
    let mut threads = Vec::new();
    for number in 1..loops.count() {
        match start_thread(Arc::clone(shared), loops, number) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                warn!("cannot start a thread for another event loop: {error}");
                loops.reduce_to(number);
                break;
            }
        }
    }
    threads
}

fn start_thread(shared: Arc<Shared>, loops: &Arc<Loops>, number: usize) -> io::Result<thread::JoinHandle<()>> {
    let runtime = event_loop(loops, number)?;
    let serve_accepted = serve_accepted(loops, number);
    let serve = move || {
        runtime.block_on(first_of(pin!(shared.connections_closed()), pin!(serve_accepted)));
    };
    thread::Builder::new().name(format!("dunlin-{number}")).spawn(serve)
}

/// Serves the clients that are sent to a loop, until the server ends.
fn serve_accepted(loops: &Arc<Loops>, number: usize) -> impl Future<Output = ()> + use<> {
    let (inbox, mut accepted_clients) = mpsc::unbounded_channel();
    loops.open(number, inbox);
    async move {
        while let Some(accepted) = accepted_clients.recv().await {
            contain("the start of a connection", || listen::serve_accepted(accepted));
        }
    }
}
