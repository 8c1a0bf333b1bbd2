//! The oracle: a real `redis-server` with whose replies ours are compared. All tests start it here.
//!
//! DUNLIN_ORACLE names the program; `tests/oracle/fetch` downloads one, and `none` means that there is none.
//! DUNLIN_TEST_SERVERS names servers of other versions, whose files are loaded here and that load ours. The oracle's
//! version is checked before anything else: another version replies differently, and UPDATE=1 would write its replies
//! into the project. Each process runs on a free port, in its own folder, and ends with the test.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The version as which dunlin replies, and so the only one that is used.
const VERSION: &str = "8.0.6";

/// A `redis-server` of the right version.
#[derive(Clone, Debug)]
pub(crate) struct Program(OsString);

impl Program {
    /// The program that DUNLIN_ORACLE names. Without one, `task` is skipped, which is printed; it fails instead where
    /// nothing may be skipped (DUNLIN_TEST_EVERYTHING) and where replies are to be written (UPDATE).
    pub(crate) fn from_environment(task: &str) -> Option<Program> {
        let named = std::env::var_os("DUNLIN_ORACLE");
        if let Some(program) = named.clone().filter(|name| name != "none") {
            static CHECKED: OnceLock<()> = OnceLock::new();
            let program = Program(program);
            CHECKED.get_or_init(|| program.check_version());
            return Some(program);
        }
        assert!(!updates(), "UPDATE=1 writes what a real server answers, and DUNLIN_ORACLE names none");
        let may_be_skipped = named.is_some() || std::env::var_os("DUNLIN_TEST_EVERYTHING").is_none();
        assert!(may_be_skipped, "{task}: DUNLIN_ORACLE names no real server, and nothing may be skipped");
        writeln!(io::stderr(), "skipped: {task}: DUNLIN_ORACLE names no real server").expect("stderr can be written");
        None
    }

    /// Servers of other versions, whose files and ours go both ways: those that DUNLIN_TEST_SERVERS names, with colons
    /// in between. Without it `task` is skipped as above.
    pub(crate) fn others(task: &str) -> Vec<Program> {
        let named = std::env::var_os("DUNLIN_TEST_SERVERS");
        let may_be_skipped = named.is_some() || std::env::var_os("DUNLIN_TEST_EVERYTHING").is_none();
        assert!(may_be_skipped, "{task}: DUNLIN_TEST_SERVERS names no server, and nothing may be skipped");
        let named = named.filter(|names| names != "none").unwrap_or_default();
        if named.is_empty() {
            writeln!(io::stderr(), "skipped: {task}: DUNLIN_TEST_SERVERS names no server")
                .expect("stderr can be written");
        }
        std::env::split_paths(&named)
            .filter(|path| !path.as_os_str().is_empty())
            .map(|path| Program(path.into()))
            .collect()
    }

    /// Where the program is.
    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// Its own tool for files of that kind, `rdb` or `aof`, which stands beside the server; without it, what needs it
    /// is skipped as above.
    pub(crate) fn check_tool(&self, kind: &str) -> Option<PathBuf> {
        let names = ["redis", "valkey"].map(|server| self.path().with_file_name(format!("{server}-check-{kind}")));
        let tool = names.into_iter().find(|tool| tool.exists());
        if tool.is_none() {
            let may_be_skipped = std::env::var_os("DUNLIN_TEST_EVERYTHING").is_none();
            assert!(may_be_skipped, "there is no tool for {kind} files beside {:?}", self.0);
            writeln!(io::stderr(), "skipped: there is no tool for {kind} files beside {:?}", self.0)
                .expect("stderr can be written");
        }
        tool
    }

    /// Panics if its own tool for files of that kind finds something wrong with one.
    pub(crate) fn expect_accepted(&self, kind: &str, file: &Path) {
        let Some(tool) = self.check_tool(kind) else { return };
        let output = Command::new(&tool).arg(file).output().expect("the tool runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {text}", tool.display());
    }

    /// Starts the server once and reads its version.
    fn check_version(&self) {
        let process = Process::start(self).unwrap_or_else(|error| panic!("DUNLIN_ORACLE={:?}: {error}", self.0));
        let info = process.info().unwrap_or_else(|error| panic!("DUNLIN_ORACLE={:?}: {error}", self.0));
        let fault = fault_of(&info);
        assert!(fault.is_none(), "DUNLIN_ORACLE={:?}: {}", self.0, fault.unwrap_or_default());
    }
}

/// Why the server with that INFO cannot be the oracle.
pub(crate) fn fault_of(info: &str) -> Option<String> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let version = field("redis_version").unwrap_or("of no version");
    if version != VERSION {
        return Some(format!("it is {version}, and answers are held to those of {VERSION}"));
    }
    let (name, is_dunlin) = (field("server_name"), field("dunlin_version").is_some());
    (name.is_some() || is_dunlin).then(|| format!("it is {}, and no Redis", name.unwrap_or("dunlin")))
}

/// True when the real server's replies are to be written into the project.
pub(crate) fn updates() -> bool {
    std::env::var_os("UPDATE").is_some_and(|value| value == "1")
}

/// The beginning of the names of folders, before the id of the test's process.
const FOLDER: &str = "dunlin-oracle-";

/// Removes the folders of tests that were killed more than an hour ago, where the system shows which processes exist.
fn remove_leftovers() {
    const OLD: Duration = Duration::from_secs(3600);
    let processes = Path::new("/proc");
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten().filter(|_| processes.join("self").exists()) {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.split('-').next());
        let is_over = process.is_some_and(|id| !id.is_empty() && !processes.join(id).exists());
        let made = entry.metadata().and_then(|found| found.modified());
        if is_over && made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > OLD)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A `redis-server` process of our own; it ends with this value.
pub(crate) struct Process {
    child: Child,
    /// The port of the server; there is none for one that was started on a socket file.
    pub(crate) address: SocketAddr,
    folder: PathBuf,
}

impl Process {
    /// Starts `program` on a free port of 127.0.0.1, without persistence, and waits until it listens.
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        Self::start_with(program, &[])
    }

    /// Starts `program` as [`Process::start`] does, with more arguments. A port that was free a moment ago may be in
    /// use when the server binds it, so several are tried.
    pub(crate) fn start_with(program: &Program, arguments: &[&str]) -> io::Result<Self> {
        const FURTHER_TRIES: usize = 4;
        let try_once = || {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
            let words = ["--port", &port.to_string(), "--bind", "127.0.0.1"];
            Self::start_at(program, port, &[&words, arguments].concat())
        };
        (0..FURTHER_TRIES).fold(try_once(), |tried, _| tried.or_else(|_| try_once()))
    }

    /// Starts `program` on a socket file alone: `bind` keeps its default then.
    pub(crate) fn start_on_socket(program: &Program) -> io::Result<Self> {
        Self::start_at(program, 0, &["--port", "0", "--unixsocket", "socket"])
    }

    fn start_at(program: &Program, port: u16, arguments: &[&str]) -> io::Result<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            remove_leftovers();
        }
        let folder = std::env::temp_dir().join(format!("{FOLDER}{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        // Not by `--logfile`, which would be a parameter that is not at its default.
        let log = File::create(folder.join("log"))?;
        let child = Command::new(&program.0)
            .args(arguments)
            .args(["--save", "", "--enable-debug-command", "yes"])
            .arg("--dir")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(log)
            .spawn()
            .inspect_err(|_| _ = std::fs::remove_dir_all(&folder))?;
        let mut process = Self { child, address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), folder };
        process.wait_until_it_listens()?;
        Ok(process)
    }

    /// The folder in which it has its files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket file of a process that was started on one.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Waits for the log line that it listens, since another server may answer at its port.
    fn wait_until_it_listens(&mut self) -> io::Result<()> {
        for _ in 0..6000 {
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if log.contains("Ready to accept connections") {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("the real server ended with {status}: {log}")));
            }
            wait(Duration::from_millis(10));
        }
        Err(io::Error::other("the real server does not listen"))
    }

    /// The reply to INFO server.
    fn info(&self) -> io::Result<String> {
        let mut client = TcpStream::connect(self.address)?;
        client.write_all(b"INFO server\r\nQUIT\r\n")?;
        let mut text = String::new();
        client.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended by itself, after SHUTDOWN: then nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Lets real time pass.
#[expect(clippy::disallowed_methods, reason = "the clock of a real server cannot be moved, only waited for")]
pub(crate) fn wait(time: Duration) {
    std::thread::sleep(time);
}
