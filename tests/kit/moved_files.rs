//! Where the append-only file is made when its folder is set before it is switched on, or begins.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use dunlin::{Disk, Server};

use crate::saves::ask;
use crate::timeout::{TIMEOUT, wait_until};

/// A folder that the simulated disk has beside the one of the server.
const ELSEWHERE: &str = "/tmp";

/// A server without an append-only file.
fn start(disk: &Disk) -> Server {
    disk.write("/tmp/other", "");
    let builder = Server::builder().disk(disk).set("enable-protected-configs", "yes");
    builder.start().expect("it starts")
}

fn shows(server: &Server, field: &str) -> bool {
    ask(server, "INFO persistence").lines().any(|line| line == field)
}

/// Waits until the file has a base, and expects it in the other folder, and nothing in the first one.
fn assert_is_elsewhere(disk: &Disk, server: &Server) {
    wait_until("it has a base", || ask(server, "WAITAOF 1 0 100").contains("(1)"));
    let is_of_file = |path: &PathBuf| path.to_string_lossy().contains("append");
    let files: Vec<_> = disk.paths().into_iter().filter(is_of_file).collect();
    assert!(!files.is_empty() && files.iter().all(|path| path.starts_with(ELSEWHERE)), "{files:?}");
}

#[test]
fn a_file_that_is_switched_on_after_a_rewrite_that_failed_is_where_the_settings_say() {
    let disk = Disk::new();
    let server = start(&disk);
    disk.fault("full").writes().file("*.base*").times(1).full();
    assert_eq!(ask(&server, "BGREWRITEAOF"), "Background append only file rewriting started");
    wait_until("it has failed", || shows(&server, "aof_last_bgrewrite_status:err"));
    assert_eq!(ask(&server, &format!("CONFIG SET dir {ELSEWHERE}")), "OK");
    assert_eq!(ask(&server, "CONFIG SET appendonly yes"), "OK");
    assert_is_elsewhere(&disk, &server);
}

#[test]
fn a_file_that_a_save_puts_off_is_where_the_settings_say_when_it_begins() {
    let disk = Disk::new();
    let server = start(&disk);
    disk.fault("held").writes().file("*.rdb").times(1).delay(Duration::from_secs(3600));
    assert_eq!(ask(&server, "BGSAVE"), "Background saving started");
    assert_eq!(ask(&server, "CONFIG SET appendonly yes"), "OK");
    assert!(shows(&server, "aof_rewrite_scheduled:1"));
    assert_eq!(ask(&server, &format!("CONFIG SET dir {ELSEWHERE}")), "OK");
    assert!(disk.remove_fault("held"));
    assert_is_elsewhere(&disk, &server);
}

/// A large base takes a while to be read.
#[test]
fn the_file_is_switched_off_while_a_rewrite_reads_its_base_once_more() {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).set("appendonly", "yes").start().expect("it starts");
    disk.fault("slow").reads().file("*.base*").delay(2 * TIMEOUT);
    assert_eq!(ask(&server, "BGREWRITEAOF"), "Background append only file rewriting started");
    server.wait_until_fired("slow", 1, TIMEOUT).expect("the base is read");
    thread::scope(|scope| {
        let switched_off = scope.spawn(|| ask(&server, "CONFIG SET appendonly no"));
        wait_until("it is switched off", || switched_off.is_finished());
        assert_eq!(switched_off.join().expect("it does not panic"), "OK");
    });
    disk.remove_fault("slow");
}
