//! The server of `dunlin run`: on a free port, and on a Unix socket in a folder that only this user may enter.
//!
//! The `dunlin` server changes settings of its process: huge pages, the out-of-memory score, the processor affinity.
//! This one does not, as the command would inherit them. It raises the limit on descriptors, but the command is started
//! under the old one.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::options::Options;
use super::private_folder::PrivateFolder;
use crate::commands::dunlin;
use crate::engine::exec::persistence::ShutdownOptions;
use crate::engine::state::host::Facts;
use crate::engine::state::kit::{Finding, Journal, MAX_ENTRIES};
use crate::engine::{Launch, Settings};
use crate::server::clock::{Clock, monotonic_us};
use crate::server::faulty_storage;
use crate::server::loading;
use crate::server::os_host;
use crate::server::page::Page;
use crate::server::program::launch::{self, Addresses, Announcer, PortFile};
use crate::server::program::polling::sleep_before_next_poll;
use crate::server::program::{event_loops, log, signals};
use crate::server::run::{Plan, Server};
use crate::server::shared::Shared;

/// The time between two looks at the clients that are left when the command has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A server that runs beside a command.
#[derive(Debug)]
pub(super) struct CommandServer {
    shared: Arc<Shared>,
    /// The thread that serves, until it was waited for.
    thread: Option<JoinHandle<()>>,
    launch: Launch,
    addresses: Addresses,
    descriptors: DescriptorLimit,
    _port_file: Option<PortFile>,
    _folder: Option<PrivateFolder>,
}

impl CommandServer {
    /// Starts a server, and returns when it has loaded its data and clients can connect.
    ///
    /// # Errors
    /// A sentence with the reason why it cannot be started.
    pub(super) fn start(options: &Options) -> Result<CommandServer, String> {
        let (mut settings, folder) = settings(options)?;
        let launch = settings.process.launch.clone();
        let descriptors = DescriptorLimit::now();
        settings.max_clients = os_host::make_room_for(settings.max_clients);
        let (unix_socket, password) = (settings.unix_socket.clone(), settings.password.clone());
        let (storage, disk_faults) = faulty_storage::of_real_files(&settings);
        // Worlds that are clusters begin without data.
        let fills_worlds = loading::file_to_load(&settings).is_some() && settings.cluster.nodes() == 0;
        let data = loading::source_at_start(&*storage, &settings, None);
        let plan = Plan {
            settings,
            tcp: true,
            clock: Clock::system(),
            seed: RandomState::new().hash_one(0),
            is_deterministic: false,
            facts: Facts::default(),
            storage: Arc::clone(&storage),
            disk_faults,
        };
        let server = Server::open(plan).map_err(|error| error.to_string())?;
        let shared = Arc::clone(server.shared());
        let has_loaded = Arc::new(AtomicBool::new(false));
        // Its thread ends with the server, before the process does.
        let page = Page::start(&shared, &has_loaded).map_err(|error| error.to_string())?;
        let addresses = Addresses::of(server.addresses(), &unix_socket, &password, page.as_ref().map(Page::link));
        if let Some(level) = options.strict {
            shared.worlds().begin_strict(level);
        }
        if !options.journal.is_empty() {
            shared.engine().observers.kit().journal = Some(Journal::of(MAX_ENTRIES));
        }
        let loaded = loading::load_before_clients(&shared, &*storage, data);
        loaded.map_err(|(file, why)| format!("{file}: {why}"))?;
        if fills_worlds {
            let mut template = shared.engine().template();
            // The loaded data have no time of their own, so worlds go on with the system's.
            template.clock = None;
            shared.worlds().set_template(Some(template));
        }
        has_loaded.store(true, Ordering::Release);
        let port = addresses.tcp.map(|address| address.port()).filter(|_| !launch.port_file.is_empty());
        let port_file = port.map(|port| PortFile::write(&launch.port_file, port)).transpose()?;
        let thread = thread::Builder::new().name("dunlin".to_owned()).spawn(move || server.serve());
        let thread = Some(thread.map_err(|error| os_host::reason(&error))?);
        Ok(CommandServer { shared, thread, launch, addresses, descriptors, _port_file: port_file, _folder: folder })
    }

    /// Makes the server end on a signal and by the settings for launchers; if these name no process, with the process
    /// `id`. It is not forced to end if something `is_written_at_end`.
    ///
    /// # Errors
    /// A sentence with the reason why the process cannot be watched.
    pub(super) fn end_with_process(&mut self, id: u32, is_written_at_end: bool) -> Result<(), String> {
        if self.launch.end_with.is_empty() {
            self.launch.end_with.processes.push(id);
        }
        let requests = signals::end_when_signalled(Arc::clone(&self.shared));
        let requests = requests.map_err(|error| os_host::reason(&error))?;
        let watched = launch::end_with_launcher(&self.launch, &self.shared, &requests, is_written_at_end);
        watched.map_err(|error| error.to_string())
    }

    /// Waits until it has ended.
    pub(super) fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            drop(thread.join());
        }
    }

    /// Where it can be reached.
    pub(super) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The limit on descriptors that the command is started with.
    pub(super) fn descriptors(&self) -> &DescriptorLimit {
        &self.descriptors
    }

    /// The findings of strict mode, in all worlds, those that have ended among them.
    pub(super) fn findings(&self) -> Vec<Finding> {
        self.shared.worlds().findings()
    }

    /// The data of the first world as text.
    pub(super) fn dump(&self) -> String {
        self.shared.act(|engine| dunlin::dump(engine))
    }

    /// The last commands that clients have sent to the first world, as a transcript.
    pub(super) fn journal(&self) -> String {
        let engine = self.shared.engine();
        // A client may have stopped it, so that its commands are gone.
        let journal = engine.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref());
        journal.map_or_else(String::new, |journal| journal.transcript(&engine.table))
    }

    /// Waits until no world has a client, at most for this long.
    pub(super) fn wait_for_clients_to_leave(&self, limit: Duration) {
        let begin_us = monotonic_us();
        let is_alone = || self.shared.worlds().figures().iter().all(|world| world.clients == 0);
        while !is_alone() && u128::from(monotonic_us() - begin_us) < limit.as_micros() {
            sleep_before_next_poll(LOOK);
        }
    }

    /// Ends it; with save points it saves its data.
    pub(super) fn end(mut self) {
        if !self.shared.saves_at_end() || !self.shared.save_and_stop(ShutdownOptions::default()) {
            self.shared.stop();
        }
        self.wait();
    }
}

/// The settings of the command line, and the folder of the Unix socket if they name none.
fn settings(options: &Options) -> Result<(Settings, Option<PrivateFolder>), String> {
    let directory = env::current_dir();
    let defaults = Settings { port: 0, test_kit: true, ..Settings::default() };
    let loaded = super::super::load(defaults, &options.sources, &[], &Announcer::default());
    let mut settings = loaded.map_err(|fault| super::super::sentence(fault.as_ref()))?.0.settings;
    let launch = &settings.process.launch;
    if options.exports && launch.end_with.stdin {
        return Err("'end-with stdin' cannot be used with --export: the standard input stays the shell's".to_owned());
    }
    let foreign = [
        ("announce", launch.is_announced),
        ("end-with", !launch.end_with.is_empty() && !options.exports),
        ("idle-end", launch.idle_end_s > 0 && !options.exports),
        ("daemonize", settings.process.in_background),
    ];
    if let Some((name, _)) = foreign.iter().find(|(_, is_set)| *is_set) {
        let end = if options.exports { "with the shell" } else { "with the command" };
        return Err(format!("'{name}' cannot be used here: the server ends {end}"));
    }
    if settings.process.launch.uses_free_port {
        settings.port = 0;
    }
    if options.shows_page && settings.process.page.port.is_none() {
        settings.process_mut().page.port = Some(0);
    }
    if settings.directory.is_empty() {
        settings.directory = super::super::current_directory();
    }
    super::super::complete_load_file(&mut settings, directory.ok());
    settings.usual_event_loops = event_loops();
    if options.is_verbose || !settings.log_file.is_empty() {
        log::begin(&settings, log::Stream::Error).map_err(|error| error.to_string())?;
    }
    let folder = if settings.unix_socket.is_empty() { PrivateFolder::make() } else { None };
    if let Some(folder) = &folder {
        settings.unix_socket = folder.socket();
    }
    Ok((settings, folder))
}

/// The limit on open descriptors before the server has raised it.
#[derive(Debug)]
pub(super) struct DescriptorLimit {
    #[cfg(unix)]
    before: Option<(u64, u64)>,
}

#[cfg(unix)]
impl DescriptorLimit {
    fn now() -> DescriptorLimit {
        use nix::sys::resource::{Resource, getrlimit};
        DescriptorLimit { before: getrlimit(Resource::RLIMIT_NOFILE).ok() }
    }

    /// Starts a process under the limit that there was before.
    pub(super) fn start<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let raised = getrlimit(Resource::RLIMIT_NOFILE).ok();
        let set = |limit: Option<(u64, u64)>| {
            // Where this fails, the command has a higher limit than it would have had.
            let _ = limit.map(|(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, soft, hard));
        };
        set(self.before);
        let started = start();
        set(raised);
        started
    }
}

#[cfg(not(unix))]
impl DescriptorLimit {
    fn now() -> DescriptorLimit {
        DescriptorLimit {}
    }

    /// Starts a process: on other systems there is no limit.
    pub(super) fn start<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        start()
    }
}
