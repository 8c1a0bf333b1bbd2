//! From settings to a server that serves: opens the sockets, makes the engine, starts the threads, ends them.
//!
//! [`Server::open`] does everything that can fail, so whoever starts a server learns of it there and then; nobody is
//! served yet, but clients that connect already wait in the sockets' queues. [`Server::serve`] serves them on the
//! thread that calls it, and on further ones if `io-threads` asks for them, until [`Shared::stop`] is called.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tracing::warn;

use super::clock::Clock;
use super::contain::contain;
use super::deliveries;
use super::listen::{self, Acceptor};
use super::listeners::Listeners;
use super::loops::Loops;
use super::migrate_client::MigrateClient;
use super::os_host::{self, OsHost};
use super::processors;
use super::shared::{Phase, Shared};
use super::timer;
use super::worlds::{WorldConfig, Worlds};
use crate::commands;
use crate::engine::host::Facts;
use crate::engine::{Engine, Settings, Table};

/// What a server is made of.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    /// Whether to listen on TCP; with port 0 the system picks a port.
    pub(crate) tcp: bool,
    pub(crate) clock: Clock,
    /// Chance and hashing follow from it.
    pub(crate) seed: u64,
    /// Whether somebody chose the seed, so that chance shall repeat itself.
    pub(crate) repeats: bool,
    /// The path of the configuration file, empty without one.
    pub(crate) config_file: String,
}

/// A server whose sockets are open.
#[derive(Debug)]
pub(crate) struct Server {
    shared: Arc<Shared>,
    runtime: Runtime,
    listeners: Arc<Listeners>,
    unix_door: Option<listen::UnixSocketServer>,
    addresses: Vec<SocketAddr>,
    loops: Arc<Loops>,
    /// Those that the event loops may run on, as a list; empty for all.
    processors: String,
}

/// What INFO and `--version` call the allocator.
pub(crate) const ALLOCATOR: &str = "libc";

/// How many turns of connections, and other tasks, are taken at most before the system is asked for events. A turn of
/// a client that streams requests takes some 50 microseconds with its system calls ([`super::fairness`]), so that is
/// some 13 ms at most.
const TURNS: u32 = 256;

impl Server {
    /// Opens the sockets and makes the engine.
    ///
    /// # Errors
    /// When it cannot listen where it shall, or the system is out of descriptors.
    pub(crate) fn open(plan: Plan) -> io::Result<Server> {
        let Plan { mut settings, tcp, clock, seed, repeats, config_file } = plan;
        let table = table(&settings).map_err(io::Error::other)?;
        let listeners = if tcp { listen::open_tcp(&settings)? } else { Vec::new() };
        let addresses = listeners.iter().map(std::net::TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        settings.port = addresses.first().map_or(0, SocketAddr::port);
        let loops = Loops::new(settings.event_loops());
        let runtime = event_loop(&loops, 0)?;
        let (listeners, unix_door) = match open_doors(&runtime, listeners, &settings) {
            Ok(listeners) => listeners,
            Err(error) => {
                // Who embeds us may start us within a runtime, where another one that is dropped panics.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let processors = settings.process.server_processors.clone();
        let facts = os_host::completed(Facts {
            run_id: os_host::run_id(&mut fastrand::Rng::with_seed(seed)),
            config_file,
            unix_socket: settings.unix_socket.clone(),
            allocator: ALLOCATOR,
            ..Facts::default()
        });
        let phase = watch::Sender::new(Phase::Serving);
        let migrate_client = Arc::new(MigrateClient::new(phase.subscribe(), &settings.process.background_processors));
        let first_clock = Arc::new(clock.like());
        let host = Box::new(OsHost::new(
            facts.clone(),
            Arc::clone(&first_clock),
            Arc::clone(&migrate_client),
            Some(Arc::clone(&listeners)),
            Arc::clone(&loops),
        ));
        let mut engine = Engine::new(table.clone(), settings, seed, clock.now(), host);
        engine.switches.is_deterministic = repeats;
        engine.enlist_users().map_err(io::Error::other)?;
        let worlds = Worlds::new(WorldConfig {
            table,
            settings: engine.settings.clone(),
            users: Arc::clone(&engine.acl.users),
            clock,
            seed,
            repeats,
            facts,
            migrate_client,
            loops: Arc::clone(&loops),
            event_loop: runtime.handle().clone(),
            phase: phase.clone(),
        });
        let shared = Shared::first(engine, first_clock, phase, worlds);
        Ok(Server { shared, runtime, listeners, unix_door, addresses, loops, processors })
    }

    /// What others need to talk to it.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Its event loops.
    #[cfg(test)]
    pub(super) fn loops(&self) -> &Arc<Loops> {
        &self.loops
    }

    /// The TCP addresses it listens on.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until it is told to stop; then all connections are closed.
    pub(crate) fn serve(self) {
        processors::keep_to(&self.processors);
        let threads = start_threads(&self.shared, &self.loops);
        let acceptor = Arc::new(Acceptor::new(Arc::clone(&self.shared), Arc::clone(&self.loops)));
        let serve_accepted = serve_accepted(Arc::clone(&self.shared), &self.loops, 0);
        self.runtime.block_on(async {
            tokio::spawn(timer::run(Arc::clone(&self.shared)));
            tokio::spawn(deliveries::deliver(Arc::clone(&self.shared)));
            tokio::spawn(serve_accepted);
            self.listeners.accept_into(&acceptor);
            let _file = self.unix_door.map(|listener| listener.accept_into(&acceptor));
            self.shared.stopped().await;
            // Who sees his connection close finds nobody to connect to.
            self.listeners.close();
            self.shared.close_connections();
        });
        self.shared.worlds().close();
        // Its connections end with the runtime.
        drop(self.runtime);
        for thread in threads {
            // A thread that panicked has said so.
            drop(thread.join());
        }
    }
}

/// The commands that there are. Those of most servers are the same, and made once.
fn table(settings: &Settings) -> Result<Table, &'static str> {
    static USUAL: [OnceLock<Table>; 2] = [OnceLock::new(), OnceLock::new()];
    let usual = &USUAL[usize::from(settings.test_kit)];
    let table = usual.get_or_init(|| Table::of(commands::families(settings.test_kit))).clone();
    table.renamed(&settings.renames)
}

/// Opens what lets clients in, on that event loop.
fn open_doors(
    event_loop: &Runtime,
    listeners: Vec<std::net::TcpListener>,
    settings: &Settings,
) -> io::Result<(Arc<Listeners>, Option<listen::UnixSocketServer>)> {
    let _entered = event_loop.enter();
    let listeners = Listeners::new(listeners, event_loop.handle().clone())?;
    Ok((Arc::new(listeners), listen::UnixSocketServer::open(settings)?))
}

/// What serves the connections of one thread. It asks the system for events only when all connections that had some
/// have been served, as long as there are not too many: what they send meanwhile is found together.
fn event_loop(loops: &Arc<Loops>, number: usize) -> io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    loops.watch(number, builder.enable_io().enable_time().event_interval(TURNS));
    builder.build()
}

/// Starts the event loops beside the first, or as many of them as can be had.
fn start_threads(shared: &Arc<Shared>, loops: &Arc<Loops>) -> Vec<thread::JoinHandle<()>> {
    let mut threads = Vec::new();
    for number in 1..loops.count() {
        match start_thread(Arc::clone(shared), loops, number) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                warn!("no thread could be started for another event loop: {error}");
                loops.keep(number);
                break;
            }
        }
    }
    threads
}

fn start_thread(shared: Arc<Shared>, loops: &Arc<Loops>, number: usize) -> io::Result<thread::JoinHandle<()>> {
    let runtime = event_loop(loops, number)?;
    let serve_accepted = serve_accepted(Arc::clone(&shared), loops, number);
    let serve = move || {
        runtime.block_on(async {
            tokio::select! {
                () = shared.connections_closed() => {}
                () = serve_accepted => {}
            }
        });
    };
    thread::Builder::new().name(format!("dunlin-{number}")).spawn(serve)
}

/// Serves who is sent to a loop.
fn serve_accepted(shared: Arc<Shared>, loops: &Arc<Loops>, number: usize) -> impl Future<Output = ()> + use<> {
    let (inbox, mut accepted_clients) = mpsc::unbounded_channel();
    loops.open(number, inbox);
    async move {
        while let Some(accepted) = accepted_clients.recv().await {
            contain("the serve_accepted of a client", || listen::serve_accepted(&shared, accepted));
        }
    }
}
