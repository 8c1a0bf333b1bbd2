//! The `dunlin` program: reads the command line and the configuration, and serves until it is asked to end.
//!
//! This file and its folder are all that the feature `program` adds to a server that another program embeds, with the
//! command line and the parser of configuration files (`config`).

mod background;
mod check;
mod container;
mod launch;
mod log;
mod log_queue;
mod ping;
mod polling;
mod run;
mod signals;
mod start_load;
mod supervision;
#[cfg(unix)]
mod system_log;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::hint;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use background::IdFile;
use launch::{Addresses, Announcer, PortFile};
use tracing::{info, warn};

use super::clock::Clock;
use super::faulty_storage;
use super::os_host::{self, reason};
use super::page::Page;
use super::run::{ALLOCATOR, Plan, Server, usual_table};
use super::shared::Shared;
use crate::config::{self, Files, HELP, Invocation, Loaded, Sources, Unreadable};
use crate::engine::state::host::Facts;
use crate::engine::{REDIS_VERSION, Settings, Supervisor, build_id};
use crate::value::glob;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the program with the arguments of this process; returns its exit code.
pub fn program() -> ExitCode {
    let mut words = env::args_os();
    let called = words.next().unwrap_or_default().into_encoded_bytes();
    let words: Vec<OsString> = words.collect();
    if words.first().is_some_and(|word| word == "run") {
        return run::run(words[1..].to_vec());
    }
    let words: Vec<Vec<u8>> = words.into_iter().map(OsString::into_encoded_bytes).collect();
    match &words[..] {
        [word, words @ ..] if word == b"ping" => ping::run(words),
        [word, words @ ..] if word == b"container" => {
            let (program, words) = container::called(words);
            run_tool_or_server(program.unwrap_or(&called), words, container::defaults())
        }
        words => run_tool_or_server(&called, words, Settings::default()),
    }
}

/// Runs the tool that the program was called as, or else a server, which starts from these settings.
fn run_tool_or_server(called: &[u8], words: &[Vec<u8>], settings: Settings) -> ExitCode {
    if let Some((tool, words)) = check::tool(called, words) {
        return check::run(&tool, &words);
    }
    match config::invocation(words) {
        Invocation::Version => print(&version()),
        Invocation::Help => print(HELP),
        Invocation::Run(sources) => {
            let announcer = Arc::default();
            run_server(&sources, settings, &announcer).unwrap_or_else(|fault| {
                announcer.failed(&sentence(fault.as_ref()));
                // When the standard error is closed, there is nowhere left to report the fault.
                let _ = writeln!(io::stderr(), "{fault}");
                ExitCode::FAILURE
            })
        }
    }
}

/// A fault of the configuration in one line.
fn sentence(fault: &(dyn std::error::Error + 'static)) -> String {
    match fault.downcast_ref() {
        Some(config::Fatal::Line { line, reason, .. }) => format!("{}: {reason}", line.trim()),
        _ => fault.to_string(),
    }
}

/// The text of `--version`: Redis's line, for programs that check the version before they start a server, and then our
/// own version.
fn version() -> String {
    let (bits, build) = (usize::BITS, build_id());
    format!(
        "Redis server v={REDIS_VERSION} sha=00000000:0 malloc={ALLOCATOR} bits={bits} build={build} dunlin={VERSION}\n"
    )
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Serves until the server is asked to end. A fault before the log is open is returned; a later one is logged.
fn run_server(
    sources: &Sources,
    settings: Settings,
    announcer: &Arc<Announcer>,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    announcer.want(config::is_announced(&sources.directives));
    let directory = env::current_dir();
    let mut stdin = Vec::new();
    if sources.stdin {
        io::stdin().read_to_end(&mut stdin)?;
    }
    let (Loaded { mut settings, warnings }, config_file) = load(settings, sources, &stdin, announcer)?;
    launch::check(&settings, sources)?;
    let in_background = settings.process.in_background && !supervision::is_wanted(settings.process.supervisor);
    if in_background && !background::is_here() {
        background::start(&directory?, &stdin)?;
        return Ok(ExitCode::SUCCESS);
    }
    if settings.directory.is_empty() {
        settings.directory = current_directory();
    }
    complete_load_file(&mut settings, directory.ok());
    let stream = if settings.process.launch.is_announced { log::Stream::Error } else { log::Stream::Output };
    log::begin(&settings, stream)?;
    for warning in warnings {
        warn!("{warning}");
    }
    let supervisor = set_up_process(&mut settings, in_background);
    let id_file = IdFile::write(&settings.process.id_file);
    // The log states why the server could not run.
    let result = serve(settings, config_file, supervisor, announcer);
    let result = result.inspect_err(|error| {
        warn!("{error}");
        announcer.failed(&error.to_string());
    });
    supervision::ending(supervisor);
    drop(id_file);
    if result.is_ok() {
        warn!("Redis is now ready to exit, bye bye...");
    }
    log::flush();
    Ok(result.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

/// Resolves the path of `load` against the directory in which the process was started.
fn complete_load_file(settings: &mut Settings, directory: Option<PathBuf>) {
    if let Some(directory) = directory.filter(|_| !settings.files.load_file.is_empty()) {
        let path = directory.join(&settings.files.load_file).display().to_string();
        settings.files_mut().load_file = path;
    }
}

/// Applies the settings that concern the process, and stores in the settings what depends on the process and machine.
/// Returns the supervisor of this process.
fn set_up_process(settings: &mut Settings, in_background: bool) -> Supervisor {
    let process = settings.process_mut();
    if in_background {
        background::leave_terminal();
        if process.id_file.is_empty() {
            process.id_file = background::DEFAULT_ID_FILE.to_owned();
        }
    }
    let supervisor = supervision::begin(process.supervisor);
    if matches!(supervisor, Supervisor::Upstart | Supervisor::Systemd) {
        process.supervisor = supervisor;
    }
    if process.refuses_huge_pages {
        refuse_huge_pages();
    }
    keep_freed_memory();
    os_host::set_oom_score(process);
    limit_clients(settings);
    settings.usual_event_loops = event_loops();
    supervisor
}

/// The most event loops on this machine.
fn event_loops() -> usize {
    event_loops_on(thread::available_parallelism().map_or(1, usize::from))
}

/// Disables transparent huge pages for this process (Linux only).
fn refuse_huge_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_thp_disable(true) {
        warn!("cannot disable transparent huge pages: {error}");
    }
}

/// The length of the block that [`keep_freed_memory`] frees.
const FREED_BYTES: usize = 4 << 20;

/// Makes the allocator keep freed memory for later values, by freeing a long block that was never filled.
///
/// The GNU C library returns free memory to the system once it is more than twice the longest block that it has seen
/// freed (128 KiB at first), and its setting for that cannot be reached from safe code. Getting the pages of a value of
/// a megabyte back takes longer than copying the value. Other allocators are not affected.
fn keep_freed_memory() {
    drop(hint::black_box(Vec::<u8>::with_capacity(FREED_BYTES)));
}

/// The most event loops for a number of cores: half of the cores are left to the clients, and more than four loops
/// would wait for each other.
fn event_loops_on(cores: usize) -> usize {
    (cores / 2).clamp(1, 4)
}

/// Serves until the server is asked to end.
fn serve(
    mut settings: Settings,
    config_file: String,
    supervisor: Supervisor,
    announcer: &Arc<Announcer>,
) -> io::Result<()> {
    let tcp = launch::opens_tcp(&settings);
    let launch = settings.process.launch.clone();
    if launch.uses_free_port {
        settings.port = 0;
    }
    let (unix_socket, password) = (settings.unix_socket.clone(), settings.password.clone());
    let seed = RandomState::new().hash_one(0);
    let facts = Facts { config_file, supervisor, ..Facts::default() };
    let clock = Clock::system();
    let (storage, disk_faults) = faulty_storage::of_real_files(&settings);
    let server =
        Server::open(Plan { settings, tcp, clock, seed, is_deterministic: false, facts, storage, disk_faults })?;
    if server.addresses().is_empty() && unix_socket.is_empty() {
        return Err(io::Error::other("Configured to not listen anywhere, exiting."));
    }
    server.shared().worlds().aof().end_on_failure(|why| {
        warn!("{why}");
        log::flush();
        process::exit(1);
    });
    let has_loaded = Arc::new(AtomicBool::new(false));
    let page = Page::start(server.shared(), &has_loaded)?;
    let requests = signals::end_when_signalled(Arc::clone(server.shared()))?;
    launch::end_with_launcher(&launch, server.shared(), &requests, false)?;
    log_start(&server, &unix_socket, page.as_ref());
    let transports = [("tcp", tcp), ("unix", !unix_socket.is_empty())];
    let readiness = Arc::new(Readiness {
        addresses: Addresses::of(server.addresses(), &unix_socket, &password, page.as_ref().map(Page::link)),
        port_path: launch.port_file,
        port_file: OnceLock::new(),
        announcer: Arc::clone(announcer),
        fault: OnceLock::new(),
    });
    let (of_ready, of_fail) = (Arc::clone(&readiness), Arc::clone(&readiness));
    let shared = Arc::clone(server.shared());
    let ready = move || {
        for (transport, _) in transports.iter().filter(|(_, is_open)| *is_open) {
            info!("Ready to accept connections {transport}");
        }
        supervision::ready(supervisor);
        has_loaded.store(true, Ordering::Release);
        of_ready.tell(&shared);
    };
    let fail = move |why: &str, file: Option<&Path>| of_fail.fail(why, file);
    start_load::load_at_start(server.shared(), ready, fail)?;
    server.serve();
    if let Some(page) = page {
        page.join();
    }
    readiness.fault.get().map_or(Ok(()), |why| Err(io::Error::other(why.as_str())))
}

/// Logs where the server is, in lines that programs which start one wait for.
fn log_start(server: &Server, unix_socket: &str, page: Option<&Page>) {
    // The first line of a server that has started: tests read from it the port that the system picked.
    info!("dunlin {VERSION} ready on {}", places(server.addresses(), unix_socket));
    let nodes = server.shared().cluster().node_figures();
    if let [first, .., last] = &nodes[..] {
        info!("The {} nodes of the cluster have the ports {} to {}", nodes.len(), first.port, last.port);
    }
    if let Some(page) = page {
        info!("The page is at {}", page.link());
    }
    info!("it answers as Redis version={REDIS_VERSION}, bits={}, PID: {}", usize::BITS, process::id());
    // Programs that start a Redis and wait for it look for these words in its log, after the line with the PID.
    info!("Server initialized");
}

/// Reports the outcome of a start: the notices that the server is ready, or the fault that ended it.
struct Readiness {
    addresses: Addresses,
    /// The path of the file with the port, empty for none.
    port_path: String,
    port_file: OnceLock<PortFile>,
    announcer: Arc<Announcer>,
    /// The last line of the log of a server that could not start.
    fault: OnceLock<String>,
}

impl Readiness {
    /// Reports to launchers that the server is ready; stops the server if the port file cannot be written.
    fn tell(&self, shared: &Shared) {
        if let Some(address) = self.addresses.tcp.filter(|_| !self.port_path.is_empty()) {
            match PortFile::write(&self.port_path, address.port()) {
                Ok(file) => _ = self.port_file.set(file),
                Err(why) => {
                    let _ = self.fault.set(why);
                    return shared.stop();
                }
            }
        }
        self.announcer.ready(&self.addresses);
    }

    /// Reports why the data cannot be loaded, and the RDB file if it is one.
    fn fail(&self, why: &str, file: Option<&Path>) {
        log::flush();
        if let Some(file) = file.filter(|_| !self.announcer.is_due()) {
            check::report(file);
        }
        self.announcer.failed(why);
        let _ = self.fault.set(start_load::FATAL.to_owned());
    }
}

/// Reads the configuration into `settings`, which has the values for what it does not set. Returns it with the path of
/// the configuration file.
fn load(
    settings: Settings,
    sources: &Sources,
    stdin: &[u8],
    announcer: &Announcer,
) -> Result<(Loaded, String), Box<dyn std::error::Error>> {
    let mut files = Disk;
    let (mut file, mut path) = (Vec::new(), String::new());
    if let Some(name) = &sources.file {
        path = String::from_utf8_lossy(name).into_owned();
        file = fs::read(&path).map_err(|error| config::Fatal::Unreadable(unreadable(&path, &error)))?;
        path = fs::canonicalize(&path)?.display().to_string();
    }
    let text = sources.text(&file, stdin);
    announcer.want(config::is_announced(&text));
    let loaded = config::load(settings, &text, &mut files, usual_table(false))?;
    announcer.want(loaded.settings.process.launch.is_announced);
    Ok((loaded, path))
}

/// Lowers `maxclients`, and logs it, where the system does not allow enough descriptors, as Redis does.
fn limit_clients(settings: &mut Settings) {
    let enough_for = os_host::make_room_for(settings.max_clients);
    if enough_for < settings.max_clients {
        warn!("maxclients lowered to {enough_for} (open-file limit)");
        settings.max_clients = enough_for;
    }
}

fn places(addresses: &[SocketAddr], unix_socket: &str) -> String {
    let mut places: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    if !unix_socket.is_empty() {
        places.push(unix_socket.to_owned());
    }
    places.join(", ")
}

fn current_directory() -> String {
    env::current_dir().map_or_else(|_| String::new(), |path| path.display().to_string())
}

fn unreadable(path: &str, error: &io::Error) -> Unreadable {
    Unreadable { path: path.to_owned(), reason: reason(error) }
}

/// The file system of this machine.
struct Disk;

impl Files for Disk {
    fn read(&mut self, pattern: &str) -> Result<Vec<Vec<u8>>, Unreadable> {
        let paths = if pattern.contains(['*', '?', '[']) { matching(pattern) } else { vec![pattern.into()] };
        let read = |path: &PathBuf| fs::read(path).map_err(|error| unreadable(&path.to_string_lossy(), &error));
        paths.iter().map(read).collect()
    }

    fn enter(&mut self, directory: &str) -> Result<String, String> {
        env::set_current_dir(directory).map_err(|error| reason(&error))?;
        Ok(current_directory())
    }
}

/// The files whose names match the last part of `pattern`, in the order of their names.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let (folder, name) = pattern.rsplit_once('/').map_or((".", pattern), |(folder, name)| (folder, name));
    let folder = if folder.is_empty() { "/" } else { folder };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_meant = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().as_encoded_bytes();
        glob::matches(name.as_bytes(), file, false) && (!file.starts_with(b".") || name.starts_with('.'))
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_meant).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::event_loops_on;

    /// The page faults of this thread so far that read no file.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn page_faults() -> i64 {
        use nix::sys::resource::{UsageWho, getrusage};
        getrusage(UsageWho::RUSAGE_THREAD).expect("a thread may ask for its own usage").minor_page_faults()
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn the_pages_of_freed_values_are_used_again() {
        const VALUES: usize = 4;
        let fill = || drop(std::hint::black_box([(); VALUES].map(|()| vec![1_u8; 1 << 20])));
        super::keep_freed_memory();
        fill();
        let before = page_faults();
        (0..10).for_each(|_| fill());
        let faults = page_faults() - before;
        assert!(faults < 256, "{faults} page faults: one value of forty has 256 pages");
    }

    #[test]
    fn half_of_the_cores_are_left_to_the_clients() {
        assert_eq!([1, 2, 3, 4, 6, 8, 16, 128].map(event_loops_on), [1, 1, 1, 2, 3, 4, 4, 4]);
    }
}
