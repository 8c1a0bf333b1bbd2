//! Servers that have the same RDB file: one of them saves, and the others are told.

use std::fs;

use dunlin::{Disk, Reply, Server, StartError};

use crate::files::{Folder, ask, error, info, run, told};
use crate::program::dunlin;
use crate::timeout::wait_until;

/// A folder whose file has the key `saved`.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    run(&folder.server(), "SET saved 1\nSAVE");
    folder
}

impl Folder {
    /// A server whose files are here, and which saves them by itself.
    fn saving(&self) -> Result<Server, StartError> {
        Server::builder().set("dir", self.text()).set("save", "3600 1").allow_debug().start()
    }

    /// The sentence about the file.
    fn in_use(&self) -> String {
        format!("The RDB file {} is in use by another server", self.dump().display())
    }

    /// What a server would load.
    fn keys(&self) -> Reply {
        ask(&Server::builder().load(self.dump()).start().expect("a file that is only loaded needs no lock"), "KEYS *")
    }
}

fn keys(names: &[&str]) -> Reply {
    Reply::Array(names.iter().map(|name| Reply::Bytes(name.as_bytes().to_vec())).collect())
}

#[test]
#[cfg(unix)]
fn a_second_program_with_save_points_is_refused_until_the_first_has_ended_or_was_killed() {
    let folder = folder("shared-program");
    let mut first = folder.program(&["--save", "3600 1"]);
    wait_until("it is loaded", || told(&first, "GET saved") == "$1\r\n1");
    for _ in 0..2 {
        let arguments = ["--port", "0", "--dir", folder.text(), "--save", "3600 1"];
        let output = dunlin(&arguments).output().expect("it runs");
        let log = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{log}");
        assert!(log.contains(&folder.in_use()), "{log}");
        assert!(!log.contains("RDB looks OK"), "nothing is wrong with the file: {log}");
        // Its lock is on each file that replaces the one before.
        assert_eq!(told(&first, "SAVE"), "+OK");
    }
    first.signal("KILL");
    first.end();
    let second = folder.program(&["--save", "3600 1"]);
    wait_until("it is loaded", || told(&second, "GET saved") == "$1\r\n1");
    assert_eq!(told(&second, "SAVE"), "+OK");
    assert_eq!(folder.files(), ["dump.rdb"]);
}

#[test]
fn a_second_server_of_a_program_is_refused_until_the_first_is_dropped() {
    let folder = folder("shared-embedded");
    let first = folder.saving().expect("nobody has the file");
    let refused = folder.saving().expect_err("the first has the file");
    assert!(refused.to_string().contains(&folder.in_use()), "{refused}");
    drop(first);
    folder.saving().expect("nobody has the file any more");
}

#[test]
fn a_server_without_save_points_has_the_file_from_its_first_save_on() {
    let folder = folder("shared-save");
    let (mut first, second) = (folder.program(&[]), folder.server());
    wait_until("it is loaded", || told(&first, "SET first 1") == "+OK");
    run(&second, "SET second 1\nSAVE");
    assert_eq!(told(&first, "SAVE"), "-ERR");
    assert!(first.line_with(&format!("Error saving DB on disk: {}", folder.in_use())).is_some());
    assert_eq!(told(&first, "BGSAVE"), "+Background saving started");
    wait_until("it has failed", || told(&first, "INFO persistence").contains("rdb_last_bgsave_status:err"));
    assert_eq!(told(&first, "SHUTDOWN SAVE"), "-ERR Errors trying to SHUTDOWN. Check logs.");
    assert_eq!(told(&first, "GET first"), "$1\r\n1");
    run(&second, "FLUSHALL\nSET second 2\nBGSAVE");
    wait_until("it is saved", || info(&second, "rdb_saves") == "2");
    assert_eq!(folder.keys(), keys(&["second"]));
    drop(second);
    assert_eq!(told(&first, "SAVE"), "+OK");
    assert!(folder.saving().is_err());
    assert_eq!(folder.files(), ["dump.rdb"]);
}

/// There is nothing to lock before a file exists.
#[test]
fn of_two_servers_without_a_file_the_first_to_save_has_it() {
    let folder = Folder::new("shared-new");
    let [first, second] = [folder.saving(), folder.saving()].map(|server| server.expect("there is no file"));
    run(&first, "SET first 1");
    run(&second, "SET second 1\nFLUSHALL\nSET second 1\nSAVE");
    assert_eq!(error(&first, "SAVE"), "ERR");
    drop(first);
    assert_eq!(folder.keys(), keys(&["second"]));
}

#[test]
fn a_reload_and_a_flush_keep_the_file() {
    let folder = folder("shared-reload");
    let first = folder.saving().expect("nobody has the file");
    for command in ["DEBUG RELOAD", "DEBUG RELOAD NOSAVE", "FLUSHALL", "SAVE"] {
        run(&first, command);
        assert!(folder.saving().is_err(), "{command}");
    }
}

#[test]
fn a_server_that_goes_on_with_another_file_leaves_the_first_one() {
    let folder = folder("shared-renamed");
    let builder = Server::builder().set("enable-protected-configs", "yes").set("dir", folder.text());
    let first = builder.set("save", "3600 1").start().expect("nobody has the file");
    run(&first, "CONFIG SET dbfilename other.rdb\nSAVE");
    let second = folder.saving().expect("the first has another file");
    run(&second, "SAVE");
    run(&first, "SAVE\nCONFIG SET dbfilename dump.rdb");
    assert_eq!(error(&first, "SAVE"), "ERR");
    run(&second, "DEBUG RELOAD");
    assert_eq!(folder.files(), ["dump.rdb", "other.rdb"]);
}

#[test]
fn a_file_that_another_program_puts_in_its_place_is_that_of_the_server_that_saves_first() {
    let folder = folder("shared-replaced");
    let first = folder.saving().expect("nobody has the file");
    let copy = folder.0.join("copy.rdb");
    fs::copy(folder.dump(), &copy).expect("a lock keeps nobody from reading");
    fs::rename(&copy, folder.dump()).expect("a lock keeps nobody from renaming");
    let second = folder.saving().expect("this file is not the one that the first has");
    assert_eq!(error(&first, "SAVE"), "ERR");
    drop(second);
    run(&first, "SAVE");
    fs::remove_file(folder.dump()).expect("a lock keeps nobody from removing");
    run(&first, "SAVE");
    assert!(folder.saving().is_err());
}

#[test]
fn whoever_only_reads_the_file_needs_no_lock() {
    let folder = folder("shared-read");
    let server = folder.saving().expect("nobody has the file");
    assert_eq!(folder.keys(), keys(&["saved"]));
    let path = folder.dump();
    assert!(dunlin(&["check", path.to_str().expect("it is text")]).output().expect("it runs").status.success());
    assert_eq!(ask(&folder.server(), "GET saved"), "1");
    run(&server, "SAVE");
}

#[test]
fn servers_on_a_simulated_disk_share_its_file_as_on_a_real_one() {
    let disk = Disk::new();
    let start = || Server::builder().disk(&disk).set("save", "3600 1").start();
    run(&start().expect("nobody has the file"), "SET saved 1");
    let first = start().expect("nobody has the file");
    run(&first, "SAVE");
    assert!(start().expect_err("the first has it").to_string().ends_with("is in use by another server"));
    disk.power_loss(1);
    assert_eq!(ask(&start().expect("its machine was turned off"), "GET saved"), "1");
}
