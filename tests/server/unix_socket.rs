//! The Unix socket: its permissions, and its file.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use dunlin::{Server, StartError};

use crate::program::{Running, begin};
use crate::timeout::{TIMEOUT, wait_until};
use crate::wire::Wire;

/// A path that no other test uses.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("dunlin-{}-{name}.sock", std::process::id()))
}

fn connect(path: &PathBuf) -> Wire<UnixStream> {
    let stream = UnixStream::connect(path).expect("the server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
    Wire::new(stream)
}

#[test]
fn the_socket_has_the_configured_permissions_and_is_removed_with_the_server() {
    let path = path("serves");
    let server = Server::builder().unix_socket(&path).set("unixsocketperm", "700").start().expect("it starts");
    connect(&path).ask("SET a 1\r\n", "+OK\r\n");
    assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o700);
    drop(server);
    assert!(!path.exists());
}

/// The identity of a file, which differs from that of a file that replaces it.
fn file(found: &fs::Metadata) -> (u64, Option<SystemTime>) {
    (found.ino(), found.created().ok())
}

/// The variable that makes the test below the client of another user, and names the socket.
const SOCKET: &str = "DUNLIN_TEST_SOCKET";
/// A user that is nobody, as on most systems.
const NOBODY: u32 = 65_534;

/// CVE-2023-45145: a client that connects before the permissions are set. The client is a process of another user,
/// which only a privileged test can start; without it, the test checks what a client of the same user finds.
#[test]
fn no_client_connects_before_the_permissions_are_set() {
    if let Some(socket) = std::env::var_os(SOCKET) {
        try_to_connect(Path::new(&socket));
        return;
    }
    let path = path("quick");
    let mut nobody = start_as_nobody(&path);
    let (is_over, connected) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let quick = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let before = fs::metadata(&path);
                if UnixStream::connect(&path).is_ok()
                    && let (Ok(before), Ok(found)) = (before, fs::metadata(&path))
                    && file(&before) == file(&found)
                {
                    assert_eq!(found.permissions().mode() & 0o777, 0o700);
                    connected.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        (0..1000).for_each(|_| drop(start_without_umask(&path)));
        // At last one that stays until the other was quick enough once.
        let server = start_without_umask(&path);
        wait_until("somebody is quick", || connected.load(Ordering::Relaxed) > 0 || quick.is_finished());
        is_over.store(true, Ordering::Relaxed);
        quick.join().expect("the thread does not panic");
        drop(server);
    });
    let _ = fs::remove_file(&path);
    if let Some(nobody) = &mut nobody {
        drop(nobody.stdin.take());
        assert!(nobody.wait().expect("it ends").success(), "another user has connected");
    }
}

/// Starts a server whose files everybody may use until their permissions are set.
fn start_without_umask(socket: &Path) -> Running {
    let program = env!("CARGO_BIN_EXE_dunlin");
    let command = format!("umask 0; exec {program} --port 0 --unixsocket {} --unixsocketperm 700", socket.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    begin(&mut shell, "")
}

/// Starts this test as a process of [`NOBODY`]; `None` if that is not allowed. It runs until its input ends.
fn start_as_nobody(socket: &Path) -> Option<Child> {
    let program = std::env::current_exe().expect("it has a name");
    let mut command = Command::new(program);
    command.args(["--exact", "unix_socket::no_client_connects_before_the_permissions_are_set"]).env(SOCKET, socket);
    let mut nobody = command.uid(NOBODY).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut lines = BufReader::new(nobody.stdout.take().expect("its output is a pipe")).lines();
    let begins = lines.by_ref().map_while(Result::ok).any(|line| line.contains(BEGINS));
    // What it says later is read, too, or it would wait.
    thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    begins.then_some(nobody)
}

/// The line by which the process of another user says that it begins.
const BEGINS: &str = "it tries to connect";

/// Tries to connect to a socket until the input ends, and wants to be refused each time.
fn try_to_connect(socket: &Path) {
    writeln!(io::stdout(), "{BEGINS}").expect("somebody reads");
    let is_over = thread::spawn(|| io::stdin().read_to_end(&mut Vec::new()));
    while !is_over.is_finished() {
        assert!(UnixStream::connect(socket).is_err(), "nobody may connect");
    }
}

#[test]
fn a_socket_that_a_killed_server_left_is_taken_over() {
    let path = path("left");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("the path is free"));
    assert!(path.exists());
    let _server = Server::builder().unix_socket(&path).start().expect("it starts");
    connect(&path).ask("GET a\r\n", "$-1\r\n");
}

#[test]
fn a_file_that_is_not_a_socket_is_not_replaced() {
    let path = path("file");
    fs::write(&path, "precious").expect("it can be written");
    let refused = Server::builder().unix_socket(&path).start();
    assert!(matches!(refused, Err(StartError::System(_))));
    assert_eq!(fs::read(&path).expect("it is there"), b"precious");
    fs::remove_file(&path).expect("it can be removed");
}
