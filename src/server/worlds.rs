//! The worlds of one server: private servers behind its listeners, each with its own data, clients, clock and rules.
//!
//! A world is one more [`Shared`], made when a client enters it for the first time, from what the server was started
//! with or from a template. All worlds share the event loops, the command table and the threads for lazy
//! freeing and MIGRATE; each has a timer task of its own. A client connects to the first world, and enters another one
//! by a [host call](super::host_call): [`Worlds::enter`] gives it a session there, and its old one ends. A world may
//! have a port of its own, for clients that can name no world: they come straight into it.
//!
//! A world ends when it is dropped, when a client shuts it down, or, if it is temporary, when its last client leaves.
//! The next client that enters its name makes a fresh one. The first world ends with the server.
//!
//! Lock order: an engine's first, then that of the list of worlds, then that of a world's port. A thread that holds the
//! lock of one engine takes that of no other, but for MIGRATE between nodes of a cluster ([`super::nodes`]).
//!
//! On a server that is started as a cluster each world is a cluster: its nodes are listed one by one, by the names of
//! nodes ([`WorldName::of_node`]), and are made and end together.
//!
//! Costs: the list is read when a client changes its world, not when it is served.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::{io, ptr};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::aof_writer::AofWriter;
use super::background_saver::BackgroundSaver;
use super::clock::Clock;
use super::data_reader::DataReader;
use super::deliveries;
use super::dump_file::OwnDump;
use super::first_of::first_of;
use super::host_call::Attachment;
use super::lazy_free::LazyFreeThread;
use super::listeners::Listeners;
use super::loops::Loops;
use super::migrate_client::MigrateClient;
use super::nodes::{self, Cluster, Membership};
use super::os_host::{self, HostFiles, OsHost};
use super::shared::{Phase, Shared};
use super::strict_worlds::StrictWorlds;
use super::timer;
use super::wake_flags::WakeFlag;
use super::world::World;
use crate::acl::Users;
use crate::commands::dunlin;
use crate::engine::cluster::View;
use crate::engine::exec::cluster;
use crate::engine::exec::host_call;
#[cfg(feature = "program")]
use crate::engine::exec::kit::strict as rules;
use crate::engine::state::host::Facts;
#[cfg(feature = "program")]
use crate::engine::state::kit::{Finding, Level};
use crate::engine::{
    Engine, KitError, SessionId, SessionTransfer, Settings, Table, Template, Transport, WorldFigures, WorldName,
};
use crate::storage::Storage;
use crate::value::hashing::Key;

/// The most worlds of a server, beside the first. The nodes of a cluster count one by one.
const MAX_WORLDS: usize = 10_000;

/// Everything that the worlds of a server are made with.
#[derive(Debug)]
pub(crate) struct WorldConfig {
    pub(crate) table: Table,
    /// The settings at the server's start.
    pub(crate) settings: Settings,
    pub(crate) users: Arc<Users>,
    /// The clock that the clocks of new worlds are copied from; it never changes.
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) is_deterministic: bool,
    pub(crate) facts: Facts,
    pub(crate) migrate_client: Arc<MigrateClient>,
    pub(crate) loops: Arc<Loops>,
    pub(crate) event_loop: Handle,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) files: HostFiles,
    pub(crate) aof: Arc<AofWriter>,
}

/// All worlds of a server.
#[derive(Debug)]
pub(crate) struct Worlds {
    config: WorldConfig,
    lazy_free_thread: Arc<LazyFreeThread>,
    data_reader: DataReader,
    saver: BackgroundSaver,
    first: OnceLock<Weak<Shared>>,
    first_listeners: OnceLock<Arc<Listeners>>,
    /// Whether new worlds keep a journal from the start.
    keeps_journals: AtomicBool,
    /// Strict mode in all worlds, if it was ordered.
    strict: OnceLock<StrictWorlds>,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// The worlds beside the first, by name.
    worlds: BTreeMap<WorldName, Arc<Shared>>,
    template: Option<Arc<Template>>,
    /// The server is ending, and no more worlds are made.
    is_closed: bool,
}

impl Worlds {
    /// The worlds of a new server: only the first, which [`Worlds::set_first`] sets.
    pub(crate) fn new(config: WorldConfig) -> Arc<Worlds> {
        let lazy_free_thread = Arc::new(LazyFreeThread::on(&config.settings.process.background_processors));
        let data_reader = DataReader::on(&config.settings.process.background_processors);
        let saver = BackgroundSaver::on(&config.settings.process.save_processors);
        let (first, keeps_journals, list) = (OnceLock::new(), AtomicBool::new(false), Mutex::default());
        Arc::new(Worlds {
            config,
            lazy_free_thread,
            data_reader,
            saver,
            first,
            first_listeners: OnceLock::new(),
            keeps_journals,
            strict: OnceLock::new(),
            list,
        })
    }

    /// Sets the first world. The server calls it before it serves any client.
    pub(crate) fn set_first(&self, first: &Arc<Shared>) {
        self.first.get_or_init(|| Arc::downgrade(first));
    }

    /// The thread that frees large values for all worlds.
    pub(crate) fn lazy_free_thread(&self) -> &Arc<LazyFreeThread> {
        &self.lazy_free_thread
    }

    /// The thread that reads data for clients.
    pub(super) fn data_reader(&self) -> &DataReader {
        &self.data_reader
    }

    /// The threads that save in the background.
    pub(crate) fn saver(&self) -> &BackgroundSaver {
        &self.saver
    }

    /// The file system that the data are saved to and loaded from.
    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.config.files.storage
    }

    /// The RDB file of the server.
    pub(crate) fn own_dump(&self) -> &OwnDump {
        &self.config.files.own_dump
    }

    /// The append-only file of the first world.
    pub(crate) fn aof(&self) -> &Arc<AofWriter> {
        &self.config.aof
    }

    /// Whether each world is a cluster.
    fn are_clusters(&self) -> bool {
        self.config.settings.cluster.nodes() > 0
    }

    /// Sets the listeners of the first world, once.
    pub(super) fn set_first_listeners(&self, listeners: &Arc<Listeners>) {
        self.first_listeners.get_or_init(|| Arc::clone(listeners));
    }

    /// The listeners of the first world.
    pub(super) fn first_listeners(&self) -> Option<&Arc<Listeners>> {
        self.first_listeners.get()
    }

    /// The settings that the server was started with.
    pub(super) fn settings_at_start(&self) -> &Settings {
        &self.config.settings
    }

    /// The event loop on which worlds have their tasks.
    pub(super) fn event_loop(&self) -> &Handle {
        &self.config.event_loop
    }

    /// The clock that new worlds copy.
    pub(super) fn clock_at_start(&self) -> &Clock {
        &self.config.clock
    }

    /// The seed that belongs to the name of a world, or of a node of a cluster.
    pub(super) fn seed_of(&self, name: &WorldName) -> u64 {
        let seed = self.config.seed;
        if name.is_first() { seed } else { Key::of(seed).hash(name.as_str().as_bytes()) }
    }

    /// The first world; `None` when it has ended.
    pub(crate) fn first(&self) -> Option<Arc<Shared>> {
        self.first.get().and_then(Weak::upgrade)
    }

    /// The world of that name, made now if it does not exist. Of a cluster it is the node of that name.
    ///
    /// # Errors
    /// When there are too many worlds, or the server is ending; or the cluster has no such node.
    pub(crate) fn find_or_make(self: &Arc<Worlds>, name: &WorldName) -> Result<Arc<Shared>, KitError> {
        if name.is_first() {
            return self.first().ok_or(KitError::Ending);
        }
        let lost = self.removed_initial_node();
        let mut list = self.list.lock();
        if let Some(world) = list.worlds.get(name) {
            return Ok(Arc::clone(world));
        }
        let more = usize::from(self.config.settings.cluster.nodes()).max(1);
        if list.is_closed {
            return Err(KitError::Ending);
        }
        if list.worlds.len() + more > MAX_WORLDS {
            return Err(KitError::TooManyWorlds);
        }
        if !self.are_clusters() {
            let template = list.template.as_deref();
            let clock = match template.and_then(|template| template.clock) {
                Some((now, speed)) => Clock::running(now, speed),
                None => self.config.clock.like(),
            };
            let world = self.make(name, template, clock, None);
            list.worlds.insert(name.clone(), Arc::clone(&world));
            return Ok(world);
        }
        let (world, number) = name.world_and_node();
        if world.world_and_node().1 > 0 {
            return Err(KitError::NoWorld(world.as_str().to_owned()));
        }
        // Of a world that is there, the node was never added, or was removed.
        let is_there = world.is_first() || list.worlds.contains_key(&world);
        if is_there || number >= self.config.settings.cluster.nodes().into() {
            return Err(KitError::NoNode(number));
        }
        if let Some(lost) = lost {
            return Err(KitError::NoPort(lost));
        }
        // The names of its nodes are longer, and commands take them, too.
        WorldName::parse(world.of_node(more - 1).as_str().as_bytes())?;
        let (cluster, nodes) = nodes::make_nodes(self, &world);
        list.worlds.extend(nodes.iter().map(|node| (node.world_name(), Arc::clone(node))));
        drop(list);
        cluster.begin();
        nodes.into_iter().nth(number).ok_or(KitError::NoNode(number))
    }

    /// The number of a node that the server started with and that was removed: its port is free, so that no further
    /// world can begin.
    fn removed_initial_node(&self) -> Option<usize> {
        let first = self.first().filter(|_| self.are_clusters())?;
        (0..self.config.settings.cluster.nodes().into()).find(|&number| first.cluster().node(number).is_err())
    }

    /// The name of a world beside the first one that has a node with that number.
    pub(super) fn other_world_with_node(&self, number: usize) -> Option<WorldName> {
        let worlds = &self.list.lock().worlds;
        let mut others = worlds.keys().map(WorldName::world_and_node).filter(|(world, _)| !world.is_first());
        others.find(|(_, node)| *node == number).map(|(world, _)| world)
    }

    /// Makes a node of a cluster, which sees it as `view`, with a clock like the one given.
    pub(super) fn make_node(
        self: &Arc<Worlds>,
        name: &WorldName,
        membership: Membership,
        view: View,
        clock: &Clock,
    ) -> Arc<Shared> {
        self.make(name, None, clock.like(), Some((membership, view)))
    }

    /// Accepts clients of a node of the first world's cluster, from sockets of its own.
    ///
    /// # Errors
    /// Those of [`World::accept`].
    pub(super) fn accept(&self, node: &Arc<Shared>, sockets: Vec<TcpListener>) -> io::Result<()> {
        node.world().map_or(Ok(()), |world| world.accept(node, sockets, &self.config))
    }

    /// Lists a node of a cluster.
    ///
    /// # Errors
    /// There are too many worlds, or the server or the node's world is ending.
    pub(super) fn list_node(&self, node: &Arc<Shared>) -> Result<(), KitError> {
        let mut list = self.list.lock();
        let world = node.name_of_world();
        let is_there = |first: &Arc<Shared>| ptr::eq(first.cluster(), node.cluster());
        match () {
            () if list.is_closed => Err(KitError::Ending),
            () if !world.is_first() && !list.worlds.get(&world).is_some_and(is_there) => {
                Err(KitError::NoWorld(world.as_str().to_owned()))
            }
            () if list.worlds.len() >= MAX_WORLDS => Err(KitError::TooManyWorlds),
            () => {
                list.worlds.insert(node.world_name(), Arc::clone(node));
                Ok(())
            }
        }
    }

    fn make(
        self: &Arc<Worlds>,
        name: &WorldName,
        template: Option<&Template>,
        clock: Clock,
        node: Option<(Membership, View)>,
    ) -> Arc<Shared> {
        let (config, clock) = (&self.config, Arc::new(clock));
        let cluster = node.as_ref().map(|(own, _)| Arc::clone(&own.cluster));
        let mut engine = self.engine(name, template, &clock, cluster);
        let membership = node.map(|(membership, view)| {
            engine.settings.port = membership.port;
            cluster::join(&mut engine, view);
            membership
        });
        let world = World::of(name.clone());
        let shared = Arc::new(Shared::of_world(engine, clock, config.phase.clone(), Arc::clone(self), world));
        membership.into_iter().for_each(|membership| shared.join(membership));
        let (kept, delivered) = (Arc::clone(&shared), Arc::clone(&shared));
        // Neither of the two ends by itself.
        let task = async { first_of(pin!(timer::run(kept)), pin!(deliveries::deliver(delivered))).await };
        let task = config.event_loop.spawn(task).abort_handle();
        if let Some(world) = shared.world() {
            world.set_task(task);
        }
        shared
    }

    fn engine(
        &self,
        name: &WorldName,
        template: Option<&Template>,
        clock: &Arc<Clock>,
        cluster: Option<Arc<Cluster>>,
    ) -> Engine {
        let config = &self.config;
        let name_seed = self.seed_of(name);
        let is_node = cluster.is_some() && name.world_and_node().0.is_first();
        let facts = Facts {
            run_id: os_host::run_id(&mut fastrand::Rng::with_seed(name_seed)),
            config_file: if is_node { config.facts.config_file.clone() } else { String::new() },
            port_in_config_file: is_node.then_some(config.settings.port),
            world: name.as_str().to_owned(),
            ..config.facts.clone()
        };
        let (migrate_client, loops) = (Arc::clone(&config.migrate_client), Arc::clone(&config.loops));
        let files = HostFiles { aof: None, faults: None, ..config.files.clone() };
        let host = OsHost::new(facts, Arc::clone(clock), migrate_client, cluster, None, loops, files);
        let (table, settings) = (config.table.clone(), config.settings.clone());
        // Worlds are alike, but the nodes of a cluster must differ in their ids.
        let seed = if self.are_clusters() { name_seed } else { config.seed };
        let mut engine = Engine::new(table, settings, seed, clock.now(), Box::new(host));
        engine.switches.is_deterministic = config.is_deterministic;
        match template {
            Some(template) => engine.begin_as(template),
            None => engine.acl.begin_with_users(&config.users),
        }
        if self.keeps_journals.load(Ordering::Acquire) {
            engine.observers.kit().begin_journal();
        }
        if let Some(strict) = self.strict.get() {
            strict.begin(&mut engine.observers);
        }
        // Only the first world reads and writes the file of users.
        engine.settings.acl_file.clear();
        engine
    }

    /// The port of the world of that name, which is made now if it does not exist.
    ///
    /// # Errors
    /// Those of [`Worlds::port_of`], or there are too many worlds.
    pub(super) fn listen(self: &Arc<Worlds>, name: &WorldName) -> Result<u16, KitError> {
        if self.are_clusters() && !name.world_and_node().0.is_first() {
            return Err(KitError::NoOwnPort);
        }
        loop {
            // A world that has ended meanwhile has no port; the next try makes another one of its name.
            if let Some(port) = self.port_of(&self.find_or_make(name)?)? {
                return Ok(port);
            }
        }
    }

    /// The port of a world, which is opened now if it has none, on the addresses of the server; `None` if the world has
    /// ended. The first world has the port of the server.
    ///
    /// # Errors
    /// When no port can be opened, or the server has ended.
    pub(crate) fn port_of(&self, shared: &Arc<Shared>) -> Result<Option<u16>, KitError> {
        let first = self.first().ok_or(KitError::Ending)?;
        let mut settings = first.engine().settings.clone();
        let Some(world) = shared.world() else {
            let none = || KitError::Listen("the server has no port".to_owned());
            return Some(settings.port).filter(|port| *port != 0).ok_or_else(none).map(Some);
        };
        if let Some(port) = shared.node_port() {
            // The other nodes would send its clients to the ports of the server.
            return if world.has_port() { Ok(Some(port)) } else { Err(KitError::NoOwnPort) };
        }
        settings.port = 0;
        world.listen(shared, &settings, &self.config).map_err(|error| KitError::Listen(error.to_string()))
    }

    /// Closes the ports of all worlds, as the server ends.
    pub(crate) fn close_listeners(&self) {
        self.list.lock().worlds.values().filter_map(|shared| shared.world()).for_each(World::close_port);
    }

    /// Moves a session of `shared` to the world of that name; `None` if it is there already. A session at a node of a
    /// cluster moves to the node of the same number.
    pub(super) fn enter(
        self: &Arc<Worlds>,
        shared: &Arc<Shared>,
        session: SessionId,
        name: &WorldName,
        is_temporary: bool,
    ) -> Result<Option<Attachment>, KitError> {
        let number = shared.node_number();
        let name = if number > 0 && name.world_and_node().1 == 0 { name.of_node(number) } else { name.clone() };
        loop {
            let target = self.find_or_make(&name)?;
            if is_temporary {
                target.make_temporary()?;
            }
            if Arc::ptr_eq(&target, shared) {
                return Ok(None);
            }
            let Some(transfer) = shared.engine().export_session(session) else { return Ok(None) };
            match attach(&target, transfer) {
                Some(attachment) => return Ok(Some(attachment)),
                // The world ended meanwhile; the next try finds or makes another one of that name.
                None if !target.is_open() => std::thread::yield_now(),
                // A node that is down refuses connections.
                None if target.is_down() => {
                    shared.engine().sessions.get_mut(session).into_iter().for_each(|client| client.cut_off = true);
                    return Ok(None);
                }
                None => return Err(KitError::FullWorld),
            }
        }
    }

    /// The world of that name; `None` if there is none.
    pub(crate) fn find(&self, name: &WorldName) -> Option<Arc<Shared>> {
        if name.is_first() { self.first() } else { self.listed(name) }
    }

    /// All worlds, the first one first, then by their names.
    pub(crate) fn all(&self) -> Vec<Arc<Shared>> {
        self.first().into_iter().chain(self.list.lock().worlds.values().map(Arc::clone)).collect()
    }

    /// The figures of all worlds, the first one first, then by their names.
    pub(crate) fn figures(&self) -> Vec<WorldFigures> {
        self.all().iter().map(|shared| figures_of(shared)).collect()
    }

    /// Starts a journal in every world, and in those that are made from now on.
    pub(crate) fn keep_journals(&self) {
        self.keeps_journals.store(true, Ordering::Release);
        self.all().iter().for_each(|shared| _ = shared.engine().observers.kit().begin_journal());
    }

    /// Sets the rules of strict mode in every world, and in those that are made from now on.
    #[cfg(feature = "program")]
    pub(crate) fn begin_strict(&self, level: Level) {
        let strict = self.strict.get_or_init(|| StrictWorlds::of_level(level));
        self.all().iter().for_each(|shared| strict.begin(&mut shared.engine().observers));
    }

    /// The findings of strict mode in all worlds, and in those that have ended since [`Worlds::begin_strict`].
    #[cfg(feature = "program")]
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let present = self.all().into_iter().flat_map(|world| rules::findings(&world.engine()));
        match self.strict.get() {
            Some(strict) => strict.findings_with(present),
            None => present.collect(),
        }
    }

    /// Keeps what strict mode has found in a world that ends.
    pub(super) fn keep_findings(&self, engine: &Engine) {
        if let Some(strict) = self.strict.get() {
            strict.end(engine);
        }
    }

    /// The data of a world as text, for a session of `viewer`.
    ///
    /// # Errors
    /// When there is no world of that name, or the session may not see it.
    pub(super) fn dump(&self, name: &WorldName, viewer: &Shared, session: SessionId) -> Result<String, KitError> {
        let shared = self.find(name).ok_or_else(|| KitError::NoWorld(name.as_str().to_owned()))?;
        if shared.name_of_world().is_first()
            && !viewer.name_of_world().is_first()
            && !is_shown_to(&shared, viewer, session)
        {
            return Err(KitError::HiddenWorld);
        }
        Ok(shared.act(|engine| dunlin::dump(engine)))
    }

    fn listed(&self, name: &WorldName) -> Option<Arc<Shared>> {
        self.list.lock().worlds.get(name).map(Arc::clone)
    }

    /// Ends a world.
    ///
    /// # Errors
    /// When there is no world of that name, or it is the first.
    pub(crate) fn end(&self, name: &WorldName) -> Result<(), KitError> {
        let shared = self.find(name).ok_or_else(|| KitError::NoWorld(name.as_str().to_owned()))?;
        let world = shared.name_of_world();
        if world.is_first() {
            return Err(KitError::LastingWorld);
        }
        self.take_out(&world, shared.cluster()).iter().for_each(|shared| shared.end_world(&mut shared.engine()));
        Ok(())
    }

    /// Takes a world out of the list, with all its nodes if it is a cluster.
    fn take_out(&self, world: &WorldName, cluster: &Cluster) -> Vec<Arc<Shared>> {
        let mut list = self.list.lock();
        (0..cluster.numbers().max(1)).filter_map(|number| list.worlds.remove(&world.of_node(number))).collect()
    }

    /// Sets what new worlds start from: a template, or with `None` no data.
    pub(crate) fn set_template(&self, template: Option<Template>) {
        let before = std::mem::replace(&mut self.list.lock().template, template.map(Arc::new));
        drop(before);
    }

    /// Removes a world from the list, unless another one of its name has replaced it there.
    pub(super) fn forget(&self, shared: &Shared, name: &WorldName) {
        let mut list = self.list.lock();
        if list.worlds.get(name).is_some_and(|listed| ptr::eq(&raw const **listed, shared)) {
            list.worlds.remove(name);
        }
    }

    /// Sets a wake flag of every session of every world beside the first.
    pub(crate) fn notify_all(&self, flag: WakeFlag) {
        self.list.lock().worlds.values().for_each(|world| world.notify_all(flag));
    }

    /// Ends all worlds beside the first, as the server ends; no more are made.
    pub(crate) fn close(&self) {
        let worlds = {
            let mut list = self.list.lock();
            list.is_closed = true;
            std::mem::take(&mut list.worlds)
        };
        worlds.values().for_each(|world| world.end_world(&mut world.engine()));
    }
}

/// Connects a session that comes from another world; `None` if the world has ended or has too many clients.
fn attach(target: &Arc<Shared>, transfer: SessionTransfer) -> Option<Attachment> {
    let (session, wake_flags) = target.connect(transfer.origin().clone())?;
    target.engine().import_session(session, transfer);
    Some(Attachment { shared: Arc::clone(target), session, wake_flags })
}

/// Whether a session of another world may see the first one: an in-process client, or a user who may see everything.
fn is_shown_to(first: &Shared, viewer: &Shared, session: SessionId) -> bool {
    let (is_direct, user) = {
        let engine = viewer.engine();
        let client = engine.sessions.get(session);
        let is_direct = client.is_some_and(|client| client.origin.transport == Transport::Direct);
        (is_direct, host_call::first_user(&engine, session))
    };
    is_direct || host_call::shows_all_to(&first.engine(), user.as_deref())
}

fn figures_of(shared: &Shared) -> WorldFigures {
    let engine = shared.engine();
    let clients = engine.sessions.clients_of_users();
    WorldFigures {
        name: shared.world_name(),
        clients,
        keys: engine.databases.len(),
        is_temporary: shared.world().is_some_and(World::is_temporary),
    }
}
