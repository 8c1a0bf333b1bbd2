//! The Unix socket: its permissions, and its file.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use dunlin::{Server, StartError};

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

/// CVE-2023-45145: a client that connects before the permissions are set.
#[test]
fn no_client_connects_before_the_permissions_are_set() {
    let path = path("quick");
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
        for _ in 0..1000 {
            drop(Server::builder().unix_socket(&path).set("unixsocketperm", "700").start().expect("it starts"));
        }
        // At last one that stays until the other was quick enough once.
        let server = Server::builder().unix_socket(&path).set("unixsocketperm", "700").start().expect("it starts");
        wait_until("somebody is quick", || connected.load(Ordering::Relaxed) > 0 || quick.is_finished());
        is_over.store(true, Ordering::Relaxed);
        quick.join().expect("the thread does not panic");
        drop(server);
    });
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
