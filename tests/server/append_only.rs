//! The append-only file: what survives a restart, a kill, a torn end; rewrites; and what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dunlin::{Reply, Server};

use crate::files::{DATA, Folder, ask, clients, error, info, names_in, run, told, told_by};
use crate::oracle::{Process, Program};
use crate::program::dunlin;
use crate::timeout::wait_until;

impl Folder {
    /// A server with an append-only file here.
    pub(crate) fn appending(&self) -> Server {
        self.appending_with("everysec")
    }

    fn appending_with(&self, policy: &str) -> Server {
        let builder = Server::builder().set("dir", self.text()).set("appendonly", "yes").set("appendfsync", policy);
        builder.allow_debug().start().expect("it starts")
    }

    /// The path of a file of the append-only file.
    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.0.join("appendonlydir").join(name)
    }

    /// The names of the files of the append-only file.
    pub(crate) fn parts(&self) -> Vec<String> {
        names_in(&self.0.join("appendonlydir"))
    }

    /// Adds bytes to the end of the first incremental file.
    pub(crate) fn tear(&self, bytes: &[u8]) {
        let path = self.part("appendonly.aof.1.incr.aof");
        let mut log = fs::read(&path).expect("it is there");
        log.extend_from_slice(bytes);
        fs::write(&path, log).expect("it can be written");
    }
}

/// Waits until no rewrite is in progress, and expects that the last one succeeded.
fn wait_for_rewrite(server: &Server) {
    wait_until("the rewrite has ended", || {
        // In this order: one that was scheduled may begin in between.
        info(server, "aof_rewrite_scheduled") == "0" && info(server, "aof_rewrite_in_progress") == "0"
    });
    assert_eq!(info(server, "aof_last_bgrewrite_status"), "ok");
}

#[test]
fn a_start_removes_what_a_rewrite_has_replaced_unless_that_is_kept() {
    let folder = Folder::new("aof-history");
    run(&folder.appending(), "SET a 1");
    let (manifest, old) = (folder.part("appendonly.aof.manifest"), "appendonly.aof.9.base.rdb");
    let listed = fs::read_to_string(&manifest).expect("it is there");
    fs::write(folder.part(old), "what a crash has left").expect("it can be written");
    fs::write(&manifest, format!("{listed}file {old} seq 9 type h\n")).expect("it can be written");
    let kept = Server::builder().set("dir", folder.text()).set("appendonly", "yes").set("aof-disable-auto-gc", "yes");
    drop(kept.start().expect("it starts"));
    assert!(folder.part(old).exists());
    let server = folder.appending();
    assert!(!folder.part(old).exists());
    assert!(!fs::read_to_string(&manifest).expect("it is there").contains("type h"));
    assert_eq!(ask(&server, "GET a"), "1");
}

/// As Redis 8.0.6 counts them.
#[test]
fn a_start_counts_the_keys_of_the_base_as_loaded_and_the_commands_behind_it_as_unsaved_changes() {
    let folder = Folder::new("aof-counts");
    let server = folder.appending();
    run(&server, "SET a 1\nSET b 2\nBGREWRITEAOF");
    wait_for_rewrite(&server);
    run(&server, "SET c 3\nRPUSH l 1 2 3\nDEL a");
    drop(server);
    let server = folder.appending();
    assert_eq!(info(&server, "rdb_last_load_keys_loaded"), "2");
    assert_eq!(info(&server, "rdb_changes_since_last_save"), "5");
    assert_eq!(ask(&server, "DEBUG LOADAOF"), "OK");
    assert_eq!(info(&server, "rdb_changes_since_last_save"), "0");
}

#[test]
fn changes_are_there_after_a_restart() {
    let folder = Folder::new("aof-restart");
    let before = {
        let server = folder.appending();
        run(&server, DATA);
        server.dump()
    };
    assert_eq!(folder.parts(), ["appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof", "appendonly.aof.manifest"]);
    assert_eq!(folder.files(), ["appendonlydir"]);
    let server = folder.appending();
    assert_eq!(server.dump(), before);
    run(&server, "SET later 1\nDEBUG LOADAOF");
    assert_eq!(ask(&server, "GET later"), "1");
    let before = server.dump();
    drop(server);
    assert_eq!(folder.appending().dump(), before);
}

#[test]
fn what_is_loaded_counts_as_no_command() {
    let folder = Folder::new("aof-uncounted");
    run(&folder.appending(), "SET key 1\nMULTI\nINCR key\nEXEC");
    let builder = Server::builder().set("dir", folder.text()).set("appendonly", "yes");
    let server = builder.set("slowlog-log-slower-than", "0").start().expect("it starts");
    assert_eq!(ask(&server, "SLOWLOG LEN"), Reply::Integer(0));
    let statistics = ask(&server, "INFO commandstats").text().expect("INFO is text").into_owned();
    assert!(!statistics.contains("incr"), "{statistics}");
    assert_eq!(ask(&server, "GET key"), "2");
}

#[test]
fn a_killed_program_has_written_what_it_has_acknowledged() {
    for policy in ["always", "everysec", "no"] {
        let folder = Folder::new(&format!("aof-kill-{policy}"));
        for round in 0..3 {
            let program = folder.program(&["--appendonly", "yes", "--appendfsync", policy]);
            wait_until("it is loaded", || told(&program, "PING") == "+PONG");
            for past in 0..round {
                assert_eq!(told(&program, &format!("GET key:{past}:99")), "$2\r\n99", "{policy} {round}");
            }
            for number in 0..100 {
                assert_eq!(told(&program, &format!("SET key:{round}:{number} {number}")), "+OK");
            }
        }
    }
}

#[test]
fn a_torn_transaction_is_cut_off_and_what_is_written_then_stays() {
    let folder = Folder::new("aof-transaction");
    run(&folder.appending(), "SET a 1");
    folder.tear(b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n1\r\n*3\r\n$3\r\nSET\r\n$1\r\nc");
    {
        let server = folder.appending();
        assert_eq!(ask(&server, "EXISTS a b c"), 1);
        run(&server, "SET d 1\nSET e 1");
    }
    assert_eq!(ask(&folder.appending(), "EXISTS a b c d e"), 3);
}

#[test]
fn a_torn_annotation_and_zeros_are_cut_off() {
    let zeros = [0; 5000];
    let tails: [&[u8]; 5] =
        [b"#TS:18", b"#", b"*3\r\n$3\r\nSET\r\n$1\r\nx", &zeros, b"*3\r\n$3\r\nSET\r\n$1\0\0\0\0\0\0"];
    for (number, tail) in tails.into_iter().enumerate() {
        let folder = Folder::new(&format!("aof-tail-{number}"));
        run(&folder.appending(), "SET a 1");
        folder.tear(tail);
        for round in 0..3 {
            let server = folder.appending();
            assert_eq!(ask(&server, "DBSIZE"), round + 1, "{number}");
            run(&server, &format!("SET round:{round} 1"));
        }
    }
}

#[test]
fn a_flipped_bit_is_found_by_checksums_which_go_on_over_restarts_and_rewrites() {
    let folder = Folder::new("aof-checksum");
    let with = |checks: &str| {
        let builder = Server::builder().set("dir", folder.text()).set("appendonly", "yes").set("aof-checksum", checks);
        builder.allow_debug().start()
    };
    for step in ["SET a 1\nSET b 1", "SET c 1\nDEBUG LOADAOF\nSET d 1", "BGREWRITEAOF", "SET e value\nSET f 1"] {
        let server = with("yes").expect("it starts");
        run(&server, step);
        wait_for_rewrite(&server);
    }
    run(&with("no").expect("it starts"), "SET g 1");
    assert_eq!(ask(&with("yes").expect("it starts"), "DBSIZE"), 7);
    let path = folder.part("appendonly.aof.2.incr.aof");
    let log = fs::read(&path).expect("it is there");
    let text = String::from_utf8_lossy(&log);
    assert_eq!(text.matches("#CRC:").count(), 2, "{text}");
    let place = text.find("value").expect("it was written");
    fs::write(&path, text.replacen("value", "valve", 1)).expect("it can be written");
    let start = text[..place].rfind("#CRC:").map_or(0, |line| line + text[line..].find('\n').unwrap_or(0) + 1);
    let refused = with("yes").expect_err("a bit has flipped").to_string();
    let expected = format!(
        "Wrong checksum in the append only file {}: it is damaged at or behind offset {start}",
        "appendonly.aof.2.incr.aof"
    );
    assert!(refused.contains(&expected), "{refused}");
    assert_eq!(ask(&with("no").expect("it starts"), "GET e"), "valve");
}

#[test]
fn the_transaction_that_switches_the_file_off_has_a_checksum_too() {
    let folder = Folder::new("aof-checksum-end");
    let server = Server::builder().set("dir", folder.text()).set("appendonly", "yes").set("aof-checksum", "yes");
    run(&server.start().expect("it starts"), "MULTI\nSET a 1\nCONFIG SET appendonly no\nEXEC");
    let log = fs::read(folder.part("appendonly.aof.1.incr.aof")).expect("it is there");
    let log = String::from_utf8(log).expect("it is text");
    assert!(log.contains("SET\r\n") && log.lines().next_back().is_some_and(|line| line.starts_with("#CRC:")), "{log}");
}

/// Starts a server that cannot load its append-only file, and returns why.
fn refusal(folder: &Folder, setting: (&str, &str)) -> String {
    let builder = Server::builder().set("dir", folder.text()).set("appendonly", "yes").set(setting.0, setting.1);
    builder.start().expect_err("it does not start").to_string()
}

#[test]
fn a_file_that_is_damaged_is_refused() {
    let folder = Folder::new("aof-damaged");
    run(&folder.appending(), "SET a 1");
    let path = folder.part("appendonly.aof.1.incr.aof");
    let whole = fs::read(&path).expect("it is there");
    let cases: [(&[u8], &str); 4] = [
        (b"*2\r\n$3\r\nGET", "Unexpected end of file reading the append only file appendonly.aof.1.incr.aof"),
        (b"hello\r\n", "Bad file format reading the append only file appendonly.aof.1.incr.aof"),
        (b"*2\r\n$3\r\nFOO\r\n$1\r\na\r\n", "Unknown command 'FOO' reading the append only file"),
        (b"*2\r\n$3\r\nSET\r\n$1\r\na\r\n", "Wrong number of arguments for 'set' reading the append only file"),
    ];
    for (tail, why) in cases {
        fs::write(&path, [&whole[..], tail].concat()).expect("it can be written");
        let refusal = refusal(&folder, ("aof-load-truncated", "no"));
        assert!(refusal.contains(why), "{refusal}");
        assert_eq!(fs::read(&path).expect("it is there"), [&whole[..], tail].concat(), "it was changed");
    }
}

/// The deadlines in the base have passed long ago when it is loaded; the commands behind it remove some of them.
#[test]
fn no_key_expires_before_the_whole_file_is_loaded() {
    let folder = Folder::new("aof-deadlines");
    {
        let builder = Server::builder().set("dir", folder.text()).set("appendonly", "yes");
        let early = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let server = builder.frozen_at(early).start().expect("it starts");
        run(&server, "SET kept x PX 30\nSET gone x PX 30\nHSET hash f v g w h x\nHPEXPIRE hash 30 FIELDS 2 f g");
        run(&server, "BGREWRITEAOF");
        wait_for_rewrite(&server);
        run(&server, "APPEND kept y\nPERSIST kept\nHPERSIST hash FIELDS 1 f\nSET late x PX 30\nPERSIST late");
    }
    let server = folder.appending();
    assert_eq!(ask(&server, "GET kept"), "xy");
    assert_eq!(ask(&server, "GET late"), "x");
    let fields = [Reply::Bytes(b"v".to_vec()), Reply::Null, Reply::Bytes(b"x".to_vec())];
    assert_eq!(ask(&server, "HMGET hash f g h"), Reply::Array(fields.to_vec()));
    assert_eq!(ask(&server, "EXISTS gone"), 0);
}

#[test]
fn a_rewrite_leaves_a_base_with_the_data_and_what_came_meanwhile() {
    let folder = Folder::new("aof-rewrite");
    let before = {
        let server = folder.appending();
        run(&server, DATA);
        run(&server, "CONFIG SET rdb-key-save-delay 50000\nBGREWRITEAOF");
        assert_eq!(error(&server, "BGREWRITEAOF"), "ERR Background append only file rewriting already in progress");
        assert_eq!(
            error(&server, "BGSAVE"),
            "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to \
             schedule a BGSAVE whenever possible."
        );
        assert_eq!(info(&server, "aof_rewrite_in_progress"), "1");
        run(&server, "SET text other\nRPUSH list more\nDEL set\nHSET hash c 3\nSELECT 3\nSET late z");
        wait_for_rewrite(&server);
        run(&server, "CONFIG SET rdb-key-save-delay 0\nSELECT 3\nSET later z");
        server.dump()
    };
    assert_eq!(folder.parts(), ["appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof", "appendonly.aof.manifest"]);
    let server = folder.appending();
    assert_eq!(server.dump(), before);
    for round in 0..3 {
        run(&server, &format!("BGREWRITEAOF\nSET round {round}"));
        wait_for_rewrite(&server);
    }
    let before = server.dump();
    drop(server);
    assert_eq!(folder.appending().dump(), before);
}

#[test]
fn a_rewrite_waits_for_a_save_and_for_the_end_of_a_transaction() {
    let folder = Folder::new("aof-scheduled");
    let server = folder.appending();
    run(&server, "SET a 1\nCONFIG SET rdb-key-save-delay 100000\nBGSAVE");
    assert_eq!(ask(&server, "BGREWRITEAOF"), Reply::Status("Background append only file rewriting scheduled".into()));
    assert_eq!(info(&server, "aof_rewrite_scheduled"), "1");
    wait_for_rewrite(&server);
    assert_eq!(info(&server, "rdb_saves"), "1");
    assert_eq!(info(&server, "aof_rewrites"), "1");
    let mut client = server.client().expect("it connects");
    for line in ["MULTI", "BGREWRITEAOF", "EXEC"] {
        client.call(line.split(' ')).expect("it is answered");
    }
    wait_until("it has begun", || info(&server, "aof_rewrites") == "2");
    wait_for_rewrite(&server);
    drop(server);
    assert_eq!(ask(&folder.appending(), "GET a"), "1");
}

#[test]
fn it_is_switched_on_and_off_while_the_server_runs() {
    let folder = Folder::new("aof-switch");
    let server = folder.server();
    run(&server, DATA);
    run(&server, "CONFIG SET appendonly yes");
    assert_eq!(info(&server, "aof_enabled"), "1");
    wait_for_rewrite(&server);
    run(&server, "SET on 1");
    let before = server.dump();
    assert!(folder.is_refused());
    run(&server, "CONFIG SET appendonly no\nSET off 1");
    assert_eq!(info(&server, "aof_enabled"), "0");
    assert_eq!(folder.appending().dump(), before);
    run(&server, "CONFIG SET appendonly yes");
    wait_for_rewrite(&server);
    let before = server.dump();
    drop(server);
    assert_eq!(folder.appending().dump(), before);
}

impl Folder {
    /// Whether another server refuses these files, as one has them.
    fn is_refused(&self) -> bool {
        Server::builder().set("dir", self.text()).set("appendonly", "yes").start().is_err()
    }
}

#[test]
fn it_is_rewritten_when_it_has_grown() {
    let folder = Folder::new("aof-growth");
    let server = folder.appending();
    run(&server, "CONFIG SET auto-aof-rewrite-min-size 1000 auto-aof-rewrite-percentage 50");
    // What is written during the rewrite counts as its base, so no more is written then.
    let mut last = 0;
    wait_until("it is rewritten", || {
        last += 1;
        run(&server, &format!("SET key {last}"));
        info(&server, "aof_rewrites") != "0"
    });
    wait_for_rewrite(&server);
    let size = |field: &str| info(&server, field).parse::<u64>().expect("it is a number");
    assert!(size("aof_base_size") < 1000 && size("aof_current_size") < 6000, "the sizes are those of all that was");
    drop(server);
    assert_eq!(ask(&folder.appending(), "GET key"), last.to_string().as_str());
}

#[test]
fn after_a_start_all_that_came_after_the_base_counts_as_growth() {
    let folder = Folder::new("aof-growth-before");
    let server = folder.appending();
    run(&server, "DEL nosuch\nSET key value");
    let bytes: u64 = info(&server, "aof_current_size").parse().expect("it is a number");
    assert_eq!(info(&server, "aof_base_size"), "0", "the first base is of no rewrite");
    drop(server);
    let server = folder.appending();
    let size = |field: &str| info(&server, field).parse::<u64>().expect("it is a number");
    assert!(size("aof_base_size") > 0);
    assert_eq!(size("aof_current_size"), size("aof_base_size") + bytes);
    run(&server, "CONFIG SET auto-aof-rewrite-min-size 100 auto-aof-rewrite-percentage 10");
    wait_until("it is rewritten without a further change", || info(&server, "aof_rewrites") == "1");
}

#[test]
fn a_client_waits_until_its_writes_are_synced() {
    let folder = Folder::new("aof-wait");
    let server = folder.appending_with("always");
    let mut client = server.client().expect("it connects");
    let mut ask = |line: &str| client.call(line.split(' ')).expect("it is answered");
    let answer = |own: i64| Reply::Array(vec![Reply::Integer(own), Reply::Integer(0)]);
    assert_eq!(ask("WAITAOF 1 0 0"), answer(1));
    ask("SET a 1");
    assert_eq!(ask("WAITAOF 1 0 0"), answer(1));
    ask("CONFIG SET appendfsync no");
    ask("SET a 2");
    assert_eq!(ask("WAITAOF 1 0 20"), answer(0));
    assert_eq!(ask("WAITAOF 0 0 0"), answer(0));
    ask("CONFIG SET appendfsync everysec");
    ask("SET a 3");
    assert_eq!(ask("WAITAOF 1 0 0"), answer(1));
    ask("CONFIG SET appendfsync no");
    ask("SET a 4");
    let other = server.client().expect("it connects");
    let waiting = std::thread::spawn(move || {
        let mut other = other;
        other.call(["SET", "b", "1"]).expect("it is answered");
        other.call(["WAITAOF", "1", "0", "0"]).expect_err("the file is closed").to_string()
    });
    wait_until("it waits", || info(&server, "aof_enabled") == "1" && clients(&server, "blocked_clients") == "1");
    ask("CONFIG SET appendonly no");
    let refused = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    assert_eq!(waiting.join().expect("it ends"), refused);
}

#[test]
fn a_real_server_loads_our_files_and_we_load_its() {
    let Some(program) = Program::from_environment("append-only files of a real server") else { return };
    let folder = Folder::new("aof-real");
    let digest = |server: &Server| ask(server, "DEBUG DIGEST").text().expect("it is text").into_owned();
    let ours = {
        let server = folder.appending();
        run(&server, DATA);
        run(&server, "BGREWRITEAOF");
        wait_for_rewrite(&server);
        run(&server, "SET text later\nXADD stream 3-1 f v\nRPUSH list x\nSPOP set\nINCRBYFLOAT number 1.5");
        digest(&server)
    };
    program.expect_accepted("aof", &folder.part("appendonly.aof.manifest"));
    program.expect_accepted("rdb", &folder.part("appendonly.aof.2.base.rdb"));
    let theirs = Process::start_with(&program, &["--appendonly", "yes"]).expect("it starts");
    let their_folder = theirs.folder().join("appendonlydir");
    for name in folder.parts() {
        fs::copy(folder.part(&name), their_folder.join(&name)).expect("it can be copied");
    }
    let told = |command: &str| told_by(theirs.address, command);
    assert_eq!(told("DEBUG LOADAOF"), "+OK");
    assert_eq!(told("DEBUG DIGEST"), format!("+{ours}"));
    assert_eq!(told("BGREWRITEAOF"), "+Background append only file rewriting started");
    assert_eq!(told("RPUSH list theirs"), ":5");
    wait_until("it has rewritten them", || told("INFO persistence").contains("aof_rewrite_in_progress:0"));
    assert_eq!(told("RPUSH list again"), ":6");
    let digest_of_theirs = told("DEBUG DIGEST");
    let server = Server::builder().set("load", their_folder.to_str().expect("it is text")).allow_debug();
    let server = server.start().expect("it loads their files");
    assert_eq!(format!("+{}", digest(&server)), digest_of_theirs);
}

/// Every end that a crash may leave is cut off at the start; what is appended behind it belongs to no torn transaction.
#[test]
fn a_real_server_loads_our_files_after_a_crash() {
    let Some(program) = Program::from_environment("torn append-only files of a real server") else { return };
    let torn: [&[u8]; 4] = [
        b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n1\r\n*3\r\n$3\r\nSET\r\n$1\r\nc",
        b"#TS:18",
        b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$5\r\nva",
        &[0; 700],
    ];
    let theirs = Process::start_with(&program, &["--appendonly", "yes"]).expect("it starts");
    for (number, tail) in torn.into_iter().enumerate() {
        let folder = Folder::new(&format!("aof-real-torn-{number}"));
        run(&folder.appending(), DATA);
        folder.tear(tail);
        let server = folder.appending();
        run(&server, "SET after 1\nMULTI\nSET both 1\nRPUSH list both\nEXEC");
        let digest = ask(&server, "DEBUG DIGEST").text().expect("it is text").into_owned();
        drop(server);
        program.expect_accepted("aof", &folder.part("appendonly.aof.manifest"));
        for name in folder.parts() {
            let their_folder = theirs.folder().join("appendonlydir");
            fs::copy(folder.part(&name), their_folder.join(&name)).expect("it can be copied");
        }
        assert_eq!(told_by(theirs.address, "DEBUG LOADAOF"), "+OK", "{number}");
        assert_eq!(told_by(theirs.address, "DEBUG DIGEST"), format!("+{digest}"), "{number}");
    }
}

#[test]
fn the_check_finds_nothing_wrong_with_what_a_server_has_written() {
    let folder = Folder::new("aof-check");
    {
        let server = folder.appending();
        run(&server, DATA);
        run(&server, "BGREWRITEAOF");
        wait_for_rewrite(&server);
        run(&server, "CONFIG SET aof-timestamp-enabled yes\nSET text later");
    }
    let check = || {
        let manifest = folder.part("appendonly.aof.manifest").display().to_string();
        let output = dunlin(&["check", &manifest]).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("it is text"))
    };
    let (status, text) = check();
    assert_eq!(status, Some(0), "{text}");
    for line in ["RDB preamble is OK, proceeding with AOF tail...\n", "All AOF files and manifest are valid\n"] {
        assert!(text.contains(line), "{text}");
    }
    let log = folder.part("appendonly.aof.2.incr.aof");
    let whole = fs::read(&log).expect("it is there");
    fs::write(&log, &whole[..whole.len() - 1]).expect("it can be written");
    let (status, text) = check();
    assert_eq!(status, Some(1), "{text}");
}

#[test]
fn a_second_process_on_the_same_files_is_refused() {
    let folder = Folder::new("aof-second");
    let program = folder.program(&["--appendonly", "yes"]);
    wait_until("it is loaded", || told(&program, "SET a 1") == "+OK");
    let output = dunlin(&["--port", "0", "--dir", folder.text(), "--appendonly", "yes"]).output().expect("it runs");
    let log = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{log}");
    let refused = "The append-only file appendonly.aof.1.incr.aof is in use by another server";
    assert!(log.contains(refused), "{log} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(told(&program, "GET a"), "$1\r\n1");
}

/// As in Redis: what the append-only file does not have is not there. Only the log says so.
#[test]
fn a_dump_beside_the_append_only_file_is_not_loaded() {
    let folder = Folder::new("aof-and-dump");
    run(&folder.server(), "SET dumped 1\nSAVE");
    let other = Folder::new("aof-and-dump-program");
    fs::copy(folder.dump(), other.dump()).expect("it can be copied");
    let arguments = ["--port", "0", "--dir", other.text(), "--appendonly", "yes", "--end-with", "stdin"];
    for warns in [true, false] {
        let output = dunlin(&arguments).stdin(std::process::Stdio::null()).output().expect("it runs");
        let log = String::from_utf8_lossy(&output.stdout);
        let warning = "dump.rdb is not loaded, because appendonly is on and there is no append-only file.";
        assert_eq!(log.contains(warning), warns, "{log}");
    }
    assert_eq!(ask(&folder.appending(), "DBSIZE"), 0);
    run(&folder.appending(), "SET appended 1");
    assert_eq!(ask(&folder.appending(), "EXISTS dumped appended appended"), 2);
}

#[test]
fn an_append_only_file_of_older_versions_is_moved_into_its_folder() {
    let folder = Folder::new("aof-old");
    let old = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    fs::write(folder.0.join("appendonly.aof"), old).expect("it can be written");
    run(&folder.appending(), "INCR a");
    assert!(!Path::new(&folder.0.join("appendonly.aof")).exists());
    assert_eq!(ask(&folder.appending(), "GET a"), "2");
}

/// No server writes this; one may have been edited by hand.
#[test]
fn a_transaction_within_a_transaction_is_part_of_it() {
    let folder = Folder::new("aof-nested");
    let lines = ["MULTI", "SET a 1", "MULTI", "SET b 2", "EXEC", "SET c 3"];
    let words = |line: &str| line.split(' ').map(|word| format!("${}\r\n{word}\r\n", word.len())).collect::<String>();
    let log: String = lines.map(|line| format!("*{}\r\n{}", line.split(' ').count(), words(line))).concat();
    let [whole, torn] = ["whole.aof", "torn.aof"].map(|name| folder.0.join(name));
    fs::write(&whole, &log).expect("it can be written");
    fs::write(&torn, &log[..log.find("*1\r\n$4\r\nEXEC").expect("it ends")]).expect("it can be written");
    for (path, keys) in [(whole, 3), (torn, 0)] {
        assert_eq!(ask(&Server::builder().load(&path).start().expect("it is loaded"), "DBSIZE"), keys);
    }
}

#[test]
fn the_clock_decides_when_the_file_is_synced() {
    let folder = Folder::new("aof-clock");
    let builder = Server::builder().set("dir", folder.text()).set("appendonly", "yes");
    let server = builder.frozen_at(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000)).start().expect("it starts");
    let mut client = server.client().expect("it connects");
    client.call(["SET", "a", "1"]).expect("it is answered");
    server.advance(Duration::from_secs(1));
    wait_until("it is synced", || {
        client.call(["WAITAOF", "1", "0", "1"]).expect("it is answered")
            == Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)])
    });
}

#[test]
fn a_rollback_while_the_first_base_is_written_is_in_the_file() {
    let folder = Folder::new("aof-rollback");
    let server = folder.server();
    run(&server, "SET a 1");
    server.snapshot("before");
    run(&server, "SET a 2\nCONFIG SET rdb-key-save-delay 300000\nCONFIG SET appendonly yes");
    wait_until("the base is being written", || folder.parts().iter().any(|name| name.contains("base")));
    server.rollback("before").expect("it was taken");
    run(&server, "CONFIG SET rdb-key-save-delay 0\nSET b 1");
    wait_for_rewrite(&server);
    drop(server);
    let server = folder.appending();
    assert_eq!(ask(&server, "GET a"), "1");
    assert_eq!(ask(&server, "GET b"), "1");
}

#[test]
fn a_file_that_is_switched_on_while_another_one_is_loaded_begins_behind_it() {
    let folder = Folder::new("append-behind-load");
    let load = folder.0.join("load.aof");
    fs::write(&load, "*3\r\n$3\r\nSET\r\n$6\r\nloaded\r\n$1\r\n1\r\n".repeat(100)).expect("it is written");
    let load = load.to_str().expect("it is text");
    let program = folder.program(&["--load", load, "--key-load-delay", "20000"]);
    wait_until("it is loading", || told(&program, "PING").starts_with("-LOADING"));
    assert_eq!(told(&program, "CONFIG SET appendonly yes key-load-delay 0"), "+OK");
    let has = |field: &str| told(&program, "INFO persistence").lines().any(|line| line == field);
    wait_until("it has begun", || has("aof_rewrites:1") && has("aof_rewrite_in_progress:0"));
    assert_eq!(told(&program, "SET later 2"), "+OK");
    drop(program);
    let program = folder.program(&["--appendonly", "yes"]);
    wait_until("it is loaded", || told(&program, "GET later") == "$1\r\n2");
    assert_eq!(told(&program, "GET loaded"), "$1\r\n1");
}
