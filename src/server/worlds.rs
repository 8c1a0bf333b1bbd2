//! The worlds of one server: private servers behind its listeners, each with data, clients, clock and rules of its own.
//!
//! A world is one more [`Shared`], made from what the server was started with, or from a template, when somebody enters
//! it first. All of them share the sockets, the event loops, the table of commands and the threads that free memory and
//! call on other servers; each has a task that keeps its time. A client comes in by the first world, and asks to be let
//! into another ([`HostCall`]): [`answer`] gives it a session there, and ends the one it had.
//!
//! A world ends when somebody drops it, when it is told to shut down, or, if it is temporary, when its last client
//! leaves. Whoever wants to enter then makes a fresh one. The first world ends with the server.
//!
//! Lock order: an engine's first, then that of the list of worlds. Who holds the lock of one
//! engine takes that of no other.
//!
//! Costs: the list is looked at when a client changes its world, not when it is served.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::clock::Clock;
use super::deliveries;
use super::lazy_free::LazyFreeThread;
use super::loops::Loops;
use super::migrate_client::MigrateClient;
use super::os_host::{self, OsHost};
use super::shared::{Phase, Shared};
use super::timer;
use super::wake_flags::{WakeFlag, WakeFlags};
use crate::acl::Users;
use crate::commands::dunlin;
use crate::engine::host::Facts;
use crate::engine::{
    Engine, HostCall, HostReply, KitError, SessionId, SessionTransfer, Settings, Table, Template, Transport,
    WorldFigures, WorldName,
};

/// How many worlds a server has at most, beside the first.
const MOST_WORLDS: usize = 10_000;

/// What the worlds of a server are made of.
#[derive(Debug)]
pub(crate) struct WorldConfig {
    pub(crate) table: Table,
    /// As they were at the start.
    pub(crate) settings: Settings,
    pub(crate) users: Arc<Users>,
    /// One that shows what clocks show at the start; nobody changes it.
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) repeats: bool,
    pub(crate) facts: Facts,
    pub(crate) migrate_client: Arc<MigrateClient>,
    pub(crate) loops: Arc<Loops>,
    pub(crate) event_loop: Handle,
    pub(crate) phase: watch::Sender<Phase>,
}

/// All worlds of a server.
#[derive(Debug)]
pub(crate) struct Worlds {
    config: WorldConfig,
    lazy_free_thread: Arc<LazyFreeThread>,
    first: OnceLock<Weak<Shared>>,
    /// Worlds that are made keep a journal from the start.
    keeps_journals: AtomicBool,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// Those beside the first.
    worlds: BTreeMap<WorldName, Arc<Shared>>,
    template: Option<Arc<Template>>,
    /// The server ends, and no world is made any more.
    is_closed: bool,
}

/// What makes a [`Shared`] a world beside the first.
#[derive(Debug)]
pub(crate) struct World {
    name: WorldName,
    /// It ends when its last client leaves.
    is_temporary: AtomicBool,
    /// It has ended: nobody is let in. Set under its engine's lock.
    has_ended: AtomicBool,
    /// Keeps its time, and wakes those who are told something.
    task: Mutex<Option<AbortHandle>>,
}

/// A session, and where it is.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: SessionId,
    pub(crate) wake_flags: Arc<WakeFlags>,
}

impl World {
    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// The name of the world.
    pub(crate) fn name(&self) -> &WorldName {
        &self.name
    }

    /// Has it end when its last client leaves.
    pub(crate) fn make_temporary(&self) {
        self.is_temporary.store(true, Ordering::Release);
    }

    fn is_temporary(&self) -> bool {
        self.is_temporary.load(Ordering::Acquire)
    }
}

/// Answers what a session asks, whose request is to be run again. Answers where it goes on if that is elsewhere; what
/// the old world had to tell it is added to `output`.
pub(crate) fn answer(shared: &Arc<Shared>, session: SessionId, output: &mut Vec<u8>) -> Option<Attachment> {
    let ask = shared.engine().take_host_call(session)?;
    let worlds = shared.worlds();
    let (answer, attachment) = match &ask {
        HostCall::Enter { world, is_temporary } => match worlds.enter(shared, session, world, *is_temporary) {
            Ok(attachment) => (HostReply::Done, attachment),
            Err(why) => (HostReply::Refused(why), None),
        },
        HostCall::Worlds => (HostReply::Worlds(worlds.figures()), None),
        HostCall::Dump(name) => {
            (worlds.dump(name, shared, session).map_or_else(HostReply::Refused, HostReply::Text), None)
        }
        HostCall::DropWorld(name) => (worlds.end(name).map_or_else(HostReply::Refused, |()| HostReply::Done), None),
    };
    match &attachment {
        None => shared.engine().answer_host_call(session, ask, answer),
        Some(attachment) => {
            attachment.shared.engine().answer_host_call(attachment.session, ask, answer);
            if let Some(client) = shared.engine().sessions.get_mut(session) {
                client.push_queue.take(output, usize::MAX);
            }
            shared.disconnect(session);
        }
    }
    attachment
}

impl Worlds {
    /// None beside the first yet.
    pub(crate) fn new(config: WorldConfig) -> Arc<Worlds> {
        let lazy_free_thread = Arc::new(LazyFreeThread::on(&config.settings.process.background_processors));
        let (first, keeps_journals, list) = (OnceLock::new(), AtomicBool::new(false), Mutex::default());
        Arc::new(Worlds { config, lazy_free_thread, first, keeps_journals, list })
    }

    /// Says which is the first world. The server does so before it serves anybody.
    pub(crate) fn begin_with(&self, first: &Arc<Shared>) {
        self.first.get_or_init(|| Arc::downgrade(first));
    }

    /// What frees memory for all of them.
    pub(crate) fn lazy_free_thread(&self) -> &Arc<LazyFreeThread> {
        &self.lazy_free_thread
    }

    /// The world of that name, which is made if there is none.
    ///
    /// # Errors
    /// There are too many, or the server ends.
    pub(crate) fn find_or_make(self: &Arc<Worlds>, name: &WorldName) -> Result<Arc<Shared>, KitError> {
        if name.is_first() {
            return self.first.get().and_then(Weak::upgrade).ok_or(KitError::TooManyWorlds);
        }
        let mut list = self.list.lock();
        if let Some(world) = list.worlds.get(name) {
            return Ok(Arc::clone(world));
        }
        if list.is_closed || list.worlds.len() >= MOST_WORLDS {
            return Err(KitError::TooManyWorlds);
        }
        let world = self.make(name, list.template.as_deref());
        list.worlds.insert(name.clone(), Arc::clone(&world));
        Ok(world)
    }

    fn make(self: &Arc<Worlds>, name: &WorldName, template: Option<&Template>) -> Arc<Shared> {
        let config = &self.config;
        let clock = Arc::new(match template {
            Some(template) => Clock::running(template.now, template.speed),
            None => config.clock.like(),
        });
        let engine = self.engine(name, template, &clock);
        let world = World {
            name: name.clone(),
            is_temporary: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            task: Mutex::default(),
        };
        let shared = Arc::new(Shared::of_world(engine, clock, config.phase.clone(), Arc::clone(self), world));
        let (kept, delivered) = (Arc::clone(&shared), Arc::clone(&shared));
        let task = async { tokio::join!(timer::run(kept), deliveries::deliver(delivered)) };
        let task = config.event_loop.spawn(task).abort_handle();
        if let Some(world) = shared.world() {
            *world.task.lock() = Some(task);
        }
        shared
    }

    fn engine(&self, name: &WorldName, template: Option<&Template>, clock: &Arc<Clock>) -> Engine {
        let config = &self.config;
        let name_seed = crate::value::hashing::Key::of(config.seed).hash(name.as_str().as_bytes());
        let facts = Facts {
            run_id: os_host::run_id(&mut fastrand::Rng::with_seed(name_seed)),
            config_file: String::new(),
            world: name.as_str().to_owned(),
            ..config.facts.clone()
        };
        let (migrate_client, loops) = (Arc::clone(&config.migrate_client), Arc::clone(&config.loops));
        let host = OsHost::new(facts, Arc::clone(clock), migrate_client, None, loops);
        let (table, settings) = (config.table.clone(), config.settings.clone());
        let mut engine = Engine::new(table, settings, config.seed, clock.now(), Box::new(host));
        engine.switches.is_deterministic = config.repeats;
        match template {
            Some(template) => engine.begin_as(template),
            None => engine.begin_with_users(&config.users),
        }
        if self.keeps_journals.load(Ordering::Acquire) {
            engine.kit().begin_journal();
        }
        // The files are those of the first world.
        engine.settings.user_file.clear();
        engine
    }

    /// Lets a session of `shared` into a world; `None` if that is where it is.
    fn enter(
        self: &Arc<Worlds>,
        shared: &Arc<Shared>,
        session: SessionId,
        name: &WorldName,
        is_temporary: bool,
    ) -> Result<Option<Attachment>, KitError> {
        loop {
            let target = self.find_or_make(name)?;
            if is_temporary {
                target.world().ok_or(KitError::LastingWorld)?.make_temporary();
            }
            if Arc::ptr_eq(&target, shared) {
                return Ok(None);
            }
            let Some(transfer) = shared.engine().export_session(session) else { return Ok(None) };
            match let_in(&target, transfer) {
                Some(attachment) => return Ok(Some(attachment)),
                // It ended meanwhile, and the next one of that name is another.
                None if target.has_ended() => {}
                None => return Err(KitError::FullWorld),
            }
        }
    }

    /// All worlds, the first one first, then by their names.
    pub(crate) fn all(&self) -> Vec<Arc<Shared>> {
        let first = self.first.get().and_then(Weak::upgrade);
        first.into_iter().chain(self.list.lock().worlds.values().map(Arc::clone)).collect()
    }

    /// How all of them are.
    pub(crate) fn figures(&self) -> Vec<WorldFigures> {
        self.all().iter().map(|shared| figures_of(shared)).collect()
    }

    /// Has the first world, and those that are made from now on, keep a journal from the start.
    pub(crate) fn keep_journals(&self) {
        self.keeps_journals.store(true, Ordering::Release);
        self.all().iter().for_each(|shared| _ = shared.engine().kit().begin_journal());
    }

    /// What the data of a world is, as text, for a session of `viewer`.
    ///
    /// # Errors
    /// There is none of that name, or it is not shown to that session.
    fn dump(&self, name: &WorldName, viewer: &Shared, session: SessionId) -> Result<String, KitError> {
        let shared = if name.is_first() { self.first.get().and_then(Weak::upgrade) } else { self.listed(name) };
        let shared = shared.ok_or_else(|| KitError::NoWorld(name.as_str().to_owned()))?;
        if name.is_first() && viewer.world().is_some() && !is_shown_to(&shared, viewer, session) {
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
    /// There is none of that name, or it is the first.
    pub(crate) fn end(&self, name: &WorldName) -> Result<(), KitError> {
        if name.is_first() {
            return Err(KitError::LastingWorld);
        }
        let shared = self.listed(name).ok_or_else(|| KitError::NoWorld(name.as_str().to_owned()))?;
        shared.end_world(&mut shared.engine());
        Ok(())
    }

    /// Has worlds that are made from now on begin with that, or with nothing.
    pub(crate) fn set_template(&self, template: Option<Template>) {
        let before = std::mem::replace(&mut self.list.lock().template, template.map(Arc::new));
        drop(before);
    }

    /// Takes a world off the list, unless another stands there in its place.
    fn forget(&self, shared: &Shared, name: &WorldName) {
        let mut list = self.list.lock();
        if list.worlds.get(name).is_some_and(|listed| std::ptr::eq(&raw const **listed, shared)) {
            list.worlds.remove(name);
        }
    }

    /// Leaves a flag for every session of every world beside the first.
    pub(crate) fn notify_all(&self, flag: WakeFlag) {
        self.list.lock().worlds.values().for_each(|world| world.notify_all(flag));
    }

    /// The server ends: its worlds go, and no other is made.
    pub(crate) fn close(&self) {
        let worlds = {
            let mut list = self.list.lock();
            list.is_closed = true;
            std::mem::take(&mut list.worlds)
        };
        worlds.values().for_each(|world| world.end_world(&mut world.engine()));
    }
}

fn let_in(target: &Arc<Shared>, transfer: SessionTransfer) -> Option<Attachment> {
    let (session, wake_flags) = target.connect(transfer.origin().clone())?;
    target.engine().import_session(session, transfer);
    Some(Attachment { shared: Arc::clone(target), session, wake_flags })
}

/// Whether the first world is shown to a session of another one: to the program that the server is part of, and to who
/// may see all there is.
fn is_shown_to(first: &Shared, viewer: &Shared, session: SessionId) -> bool {
    let (is_direct, user) = {
        let engine = viewer.engine();
        let client = engine.sessions.get(session);
        let is_direct = client.is_some_and(|client| client.origin.transport == Transport::Direct);
        (is_direct, engine.first_user(session))
    };
    is_direct || first.engine().shows_all_to(user.as_deref())
}

fn figures_of(shared: &Shared) -> WorldFigures {
    let engine = shared.engine();
    WorldFigures {
        name: shared.world().map_or_else(WorldName::first, |world| world.name.clone()),
        clients: engine.sessions.len(),
        keys: engine.databases.len(),
        is_temporary: shared.world().is_some_and(World::is_temporary),
    }
}

/// As one of the worlds.
impl Shared {
    /// Whether it is a world that has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.world().is_some_and(World::has_ended)
    }

    /// Ends a temporary world that nobody is in.
    pub(super) fn end_if_left(&self, engine: &mut Engine) {
        if engine.sessions.is_empty() && self.world().is_some_and(World::is_temporary) {
            self.end_world(engine);
        }
    }

    /// Ends a world, and the connections of its clients.
    pub(super) fn end_world(&self, engine: &mut Engine) {
        let Some(world) = self.world() else { return };
        if world.has_ended.swap(true, Ordering::AcqRel) {
            return;
        }
        self.worlds().forget(self, &world.name);
        world.task.lock().take().iter().for_each(AbortHandle::abort);
        self.notify_all(WakeFlag::Close);
        let is_direct = |session: &&crate::engine::Session| session.origin.transport == Transport::Direct;
        let direct: Vec<SessionId> = engine.sessions.iter().filter(is_direct).map(|session| session.id).collect();
        direct.into_iter().for_each(|session| engine.disconnect(session));
    }
}
