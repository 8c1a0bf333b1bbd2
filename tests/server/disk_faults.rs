//! Rules by which the disk fails (DUNLIN FAULT ADD .. DISK): what clients of a server with real files notice.

use dunlin::Server;

use crate::files::{Folder, names_in, told, told_by};
use crate::program::Running;
use crate::timeout::wait_until;

/// A program with the test kit and an append-only file.
fn appending(folder: &Folder, policy: &str) -> Running {
    let program = folder.program(&["--test-kit", "yes", "--appendonly", "yes", "--appendfsync", policy]);
    wait_until("it is loaded", || told(&program, "PING") == "+PONG");
    program
}

/// A server that saves its data here when it is asked to.
fn saving(folder: &Folder) -> Server {
    Server::builder().set("dir", folder.text()).start().expect("it starts")
}

fn ask(server: &Server, command: &str) -> String {
    told_by(server.addr(), command)
}

fn persistence(program: &Running, field: &str) -> bool {
    told(program, "INFO persistence").lines().any(|line| line == field)
}

const REFUSED: &str = "-MISCONF Errors writing to the AOF file: No space left on device";

#[test]
fn a_full_disk_refuses_writes_until_the_rule_is_removed() {
    let folder = Folder::new("fault-full");
    let program = appending(&folder, "everysec");
    assert_eq!(told(&program, "SET key before"), "+OK");
    assert_eq!(told(&program, "DUNLIN FAULT ADD full DISK WRITE ENOSPC"), "+OK");
    // The write that fails first is answered, as in Redis.
    wait_until("writes are refused", || told(&program, "SET key full") == REFUSED);
    assert_eq!(told(&program, "PING"), REFUSED);
    assert_eq!(told(&program, "GET key"), "$4\r\nfull");
    assert!(persistence(&program, "aof_last_write_status:err"));
    assert_eq!(told(&program, "DUNLIN FAULT REMOVE full"), ":1");
    wait_until("writes go on", || told(&program, "SET key after") == "+OK");
    drop(program);
    assert_eq!(told(&appending(&folder, "everysec"), "GET key"), "$5\r\nafter");
}

#[test]
fn a_disk_with_little_space_takes_what_fits_and_what_is_torn_is_cut_off() {
    let folder = Folder::new("fault-space");
    let program = appending(&folder, "everysec");
    assert_eq!(told(&program, "SET key before"), "+OK");
    assert_eq!(told(&program, "DUNLIN FAULT ADD little DISK WRITE SPACE 10"), "+OK");
    wait_until("writes are refused", || told(&program, "SET key torn") == REFUSED);
    let log = std::fs::read(folder.0.join("appendonlydir/appendonly.aof.1.incr.aof")).expect("it is there");
    assert!(log.ends_with(b"*3\r\n$3\r\nSET"[..10].as_ref()), "{}", log.escape_ascii());
    drop(program);
    assert_eq!(told(&appending(&folder, "everysec"), "GET key"), "$6\r\nbefore");
}

#[test]
fn a_sync_that_fails_refuses_writes_until_new_files_are_durable() {
    let folder = Folder::new("fault-sync");
    let program = appending(&folder, "everysec");
    assert_eq!(told(&program, "DUNLIN FAULT ADD sync DISK SYNC FILE *.1.incr.aof TIMES 1 EIO"), "+OK");
    // No new base can replace the files.
    assert_eq!(told(&program, "DUNLIN FAULT ADD base DISK WRITE FILE temp-* ENOSPC"), "+OK");
    let refused = "-MISCONF Errors writing to the AOF file: Input/output error";
    wait_until("writes are refused", || told(&program, "INCR key") == refused);
    // However often that has failed, it is tried again soon.
    assert_eq!(told(&program, "DUNLIN WAIT FAULT base 5"), "+OK");
    assert_eq!(told(&program, "DUNLIN FAULT REMOVE base"), ":1");
    wait_until("writes go on", || told(&program, "SET key healed") == "+OK");
    drop(program);
    let parts = names_in(&folder.0.join("appendonlydir"));
    assert!(parts.contains(&"appendonly.aof.2.base.rdb".to_owned()), "{parts:?}");
    assert_eq!(told(&appending(&folder, "everysec"), "GET key"), "$6\r\nhealed");
}

#[test]
fn a_program_that_syncs_always_ends_when_a_sync_or_a_write_fails() {
    let cases = [
        ("SYNC", "EIO", "Can't persist AOF for fsync error when the AOF fsync policy is 'always': Input/output error"),
        ("WRITE", "ENOSPC", "Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting..."),
    ];
    for (calls, failure, line) in cases {
        let folder = Folder::new(&format!("fault-always-{calls}"));
        let mut program = appending(&folder, "always");
        assert_eq!(told(&program, "SET key kept"), "+OK");
        assert_eq!(told(&program, &format!("DUNLIN FAULT ADD end DISK {calls} {failure}")), "+OK");
        assert_eq!(told(&program, "SET key lost"), "", "nothing is acknowledged");
        assert!(program.line_with(line).is_some(), "{calls}");
        assert_eq!(program.end().0.code(), Some(1));
        let value = told(&appending(&folder, "always"), "GET key");
        assert!(["$4\r\nkept", "$4\r\nlost"].contains(&value.as_str()), "{value}");
    }
}

#[test]
fn a_slow_disk_delays_a_save_and_not_the_clients() {
    let folder = Folder::new("fault-slow");
    let server = saving(&folder);
    assert_eq!(ask(&server, "SET key value"), "+OK");
    assert_eq!(ask(&server, "DUNLIN FAULT ADD slow DISK SYNC FILE temp-* DELAY 600000"), "+OK");
    assert_eq!(ask(&server, "BGSAVE"), "+Background saving started");
    assert_eq!(ask(&server, "DUNLIN WAIT FAULT slow 1"), "+OK");
    assert_eq!(ask(&server, "GET key"), "$5\r\nvalue");
    assert!(ask(&server, "INFO persistence").contains("rdb_bgsave_in_progress:1"));
    assert_eq!(ask(&server, "DUNLIN FAULT CLEAR"), "+OK");
    wait_until("it is saved", || ask(&server, "INFO persistence").contains("rdb_bgsave_in_progress:0"));
    assert_eq!(folder.files(), ["dump.rdb"]);
}

#[test]
fn a_rewrite_that_fails_leaves_the_append_only_file_to_other_servers_while_it_is_off() {
    let folder = Folder::new("fault-rewrite");
    let server = saving(&folder);
    assert_eq!(ask(&server, "DUNLIN FAULT ADD full DISK WRITE FILE *.base TIMES 1 ENOSPC"), "+OK");
    assert_eq!(ask(&server, "BGREWRITEAOF"), "+Background append only file rewriting started");
    wait_until("it has failed", || ask(&server, "INFO persistence").contains("aof_last_bgrewrite_status:err"));
    let other = Server::builder().set("dir", folder.text()).set("appendonly", "yes").start();
    drop(other.expect("nobody has the files"));
    drop(server);
}

#[test]
fn the_end_of_a_server_does_not_wait_for_a_slow_disk() {
    let folder = Folder::new("fault-end");
    let server = saving(&folder);
    assert_eq!(ask(&server, "DUNLIN FAULT ADD slow DISK ANY DELAY 600000"), "+OK");
    assert_eq!(ask(&server, "BGSAVE"), "+Background saving started");
    assert_eq!(ask(&server, "DUNLIN WAIT FAULT slow 1"), "+OK");
    drop(server);
}

#[test]
fn a_save_that_cannot_be_renamed_leaves_the_old_file() {
    let folder = Folder::new("fault-rename");
    let server = saving(&folder);
    assert_eq!(ask(&server, "SET key old"), "+OK");
    assert_eq!(ask(&server, "SAVE"), "+OK");
    let before = std::fs::read(folder.dump()).expect("it is saved");
    assert_eq!(ask(&server, "SET key new"), "+OK");
    assert_eq!(ask(&server, "DUNLIN FAULT ADD once DISK RENAME TIMES 1 EIO"), "+OK");
    assert_eq!(ask(&server, "SAVE"), "-ERR");
    assert_eq!(std::fs::read(folder.dump()).expect("it is there"), before);
    assert_eq!(folder.files(), ["dump.rdb"]);
    assert_eq!(ask(&server, "SAVE"), "+OK");
}

#[test]
fn the_nth_call_fails_and_only_of_the_file_that_is_meant() {
    let folder = Folder::new("fault-nth");
    let server = saving(&folder);
    assert_eq!(ask(&server, "DUNLIN FAULT ADD third DISK SYNC FILE temp-*.rdb NTH 3 EIO"), "+OK");
    assert_eq!(ask(&server, "DUNLIN FAULT ADD never DISK ANY FILE other* EIO"), "+OK");
    let saves = ["SAVE", "SAVE", "SAVE", "SAVE"].map(|save| ask(&server, save));
    assert_eq!(saves, ["+OK", "+OK", "-ERR", "+OK"]);
    let list = ask(&server, "DUNLIN FAULT LIST");
    assert!(list.contains("DISK SYNC FILE temp-*.rdb NTH 3 TIMES 1 EIO\r\n$7\r\nmatched\r\n:4\r\n$5\r\nfired\r\n:1"));
    assert!(list.contains("DISK ANY FILE other* EIO\r\n$7\r\nmatched\r\n:0"), "{list}");
    // A rule for commands replaces the one of its name.
    assert_eq!(ask(&server, "DUNLIN FAULT ADD never COMMAND GET OOM"), "+OK");
    assert!(!ask(&server, "DUNLIN FAULT LIST").contains("other*"));
    assert_eq!(ask(&server, "DUNLIN FAULT ADD never DISK READ EIO"), "+OK");
    assert_eq!(ask(&server, "GET key"), "$-1");
    assert_eq!(ask(&server, "DUNLIN FAULT REMOVE never"), ":1");
    assert_eq!(ask(&server, "DUNLIN FAULT REMOVE never"), ":0");
}

#[test]
fn an_impossible_rule_for_the_disk_is_refused() {
    let server = Server::start().expect("it starts");
    for rule in [
        "DISK",
        "DISK SYNC",
        "DISK EIO",
        "DISK SYNC KEY k EIO",
        "DISK SYNC COMMAND SAVE EIO",
        "DISK SYNC EIO EIO",
        "DISK SYNC OOM",
        "DISK SYNC SPACE 10",
        "DISK WRITE SPACE -1",
        "DISK WRITE DELAY",
        "DISK WRITE NTH 0 EIO",
        "COMMAND SAVE EIO",
    ] {
        let reply = ask(&server, &format!("DUNLIN FAULT ADD x {rule}"));
        assert!(reply.starts_with("-ERR"), "{rule}: {reply}");
    }
    assert_eq!(ask(&server, "DUNLIN FAULT LIST"), "*0");
    let world = server.world("other").expect("it can be made");
    let refused = world.client().expect("there is room").call("DUNLIN FAULT ADD x DISK ANY EIO".split(' '));
    assert_eq!(refused.expect_err("it has no files").to_string(), "ERR only the first world has files");
}

#[test]
fn settings_that_come_with_a_file_that_cannot_be_made_are_as_before() {
    let folder = Folder::new("fault-settings");
    let program = folder.program(&["--test-kit", "yes"]);
    wait_until("it is loaded", || told(&program, "PING") == "+PONG");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = free.local_addr().expect("it is bound").port();
    drop(free);
    assert_eq!(told(&program, "DUNLIN FAULT ADD full DISK WRITE ENOSPC"), "+OK");
    let refused = "-ERR CONFIG SET failed (possibly related to argument 'appendonly') - Unable to turn on AOF. Check \
                   server logs.";
    assert_eq!(told(&program, &format!("CONFIG SET port {port} appendonly yes")), refused);
    assert_eq!(told(&program, "PING"), "+PONG");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}
