//! The RDB file: saved, loaded, refused.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use dunlin::{Reply, Server, StartError};

use crate::files::{DATA, Folder, ask, error, info, names_in, run, told, told_by};
use crate::oracle::{Process, Program};
use crate::program::{Running, dunlin};
use crate::timeout::wait_until;
use crate::wire::connect;

#[test]
fn saved_data_are_there_after_a_restart() {
    let folder = Folder::new("restart");
    let before = {
        let server = folder.server();
        run(&server, DATA);
        assert_eq!(ask(&server, "SAVE"), "OK");
        server.dump()
    };
    assert_eq!(folder.files(), ["dump.rdb"]);
    let server = folder.server();
    assert_eq!(server.dump(), before);
    assert_eq!(info(&server, "rdb_last_load_keys_loaded"), "12");
    assert_eq!(info(&server, "rdb_changes_since_last_save"), "0");
}

#[test]
fn a_server_that_is_asked_for_no_files_leaves_none_and_reads_none() {
    let folder = Folder::new("none");
    fs::write(folder.dump(), "not an RDB file").expect("it can be written");
    let mut command = dunlin(&["--port", "0"]);
    let mut program = crate::program::begin(command.current_dir(&folder.0), "");
    assert_eq!(told(&program, "SET a 1"), "+OK");
    assert_eq!(told(&program, "SHUTDOWN"), "");
    assert!(program.end().0.success());
    assert_eq!(folder.files(), ["dump.rdb"]);
    assert_eq!(fs::read(folder.dump()).expect("it is there"), b"not an RDB file");
}

/// Files are made in the folder of the process where a server has no other one.
#[test]
fn an_embedded_server_leaves_no_file() {
    let is_of_data = |name: &String| ["dump", "temp-", "appendonly"].iter().any(|start| name.starts_with(start));
    let folder = Folder::new("embedded");
    for (builder, more) in [(Server::builder(), "DEBUG RELOAD"), (Server::builder().set("dir", folder.text()), "")] {
        let server = builder.allow_debug().start().expect("it starts");
        run(&server, DATA);
        run(&server, more);
        drop(server);
        assert_eq!(names_in(Path::new(".")).into_iter().find(is_of_data), None);
        assert!(folder.files().is_empty());
    }
}

#[test]
fn a_client_that_wants_a_file_and_no_stream_gets_all_data_or_the_libraries_alone() {
    let folder = Folder::new("sync");
    let server = folder.server();
    run(&server, DATA);
    let library = "#!lua name=l\nredis.register_function('f', function() return 7 end)";
    let loaded = server.client().and_then(|mut client| client.call(["FUNCTION", "LOAD", library]));
    assert_eq!(loaded, Ok(Reply::Bytes(b"l".to_vec())));
    let received = |lines: &str| {
        let mut client = connect(server.addr());
        client.send(lines);
        client.rest()
    };
    let all = received("REPLCONF rdb-only 1\r\nSYNC\r\n");
    let all = all.strip_prefix(b"+OK\r\n$").expect("it is a file");
    let (length, file) = all.split_at(all.iter().position(|&byte| byte == b'\r').expect("a length stands before it"));
    let file = file.strip_prefix(b"\r\n").expect("the length ends");
    assert_eq!(String::from_utf8_lossy(length), file.len().to_string());
    let seeded = |name: &str, file: &[u8]| {
        let path = folder.0.join(name);
        fs::write(&path, file).expect("it can be written");
        let path = path.to_str().expect("its name is text");
        Server::builder().set("load", path).allow_debug().start().expect("it starts")
    };
    assert_eq!(seeded("all.rdb", file).dump(), server.dump());

    let parts = received("REPLCONF capa eof rdb-only 1 rdb-filter-only functions\r\nPSYNC ? -1\r\n");
    let text = String::from_utf8_lossy(&parts);
    assert!(text.starts_with("+OK\r\n+FULLRESYNC "), "{text}");
    let start = text.find("$EOF:").expect("it ends with a mark") + "$EOF:".len();
    let mark = &text[start..start + 40];
    assert!(text.ends_with(mark) && text.matches(mark).count() == 2, "{text}");
    let id = text.split("+FULLRESYNC ").nth(1).and_then(|rest| rest.get(..40)).expect("it has an id");
    let facts = [&b"repl-stream-db\xc0\0\xfa\x07repl-id\x28"[..], id.as_bytes(), b"\xfa\x0brepl-offset"].concat();
    assert!(parts.windows(facts.len()).any(|bytes| bytes == facts), "{text}");
    let first = parts.windows(5).position(|bytes| bytes == b"REDIS").expect("it is a file");
    let libraries = seeded("functions.rdb", &parts[first..parts.len() - 40]);
    assert_eq!([ask(&libraries, "DBSIZE"), ask(&libraries, "FCALL f 0")], [0, 7].map(Reply::Integer));
    received("REPLCONF rdb-only 1\r\nPSYNC 8371445ee48fb5d6ac5a3be3bd9d7ce4e4f8f0ff 1\r\n");
    let stats = ask(&server, "INFO stats").text().expect("INFO is text").into_owned();
    assert!(stats.contains("sync_full:3\r\nsync_partial_ok:0\r\nsync_partial_err:1\r\n"), "{stats}");

    let refused = "-ERR this server does not replicate\r\n";
    let replies = received("REPLCONF listening-port 1\r\nPSYNC ? -1\r\nSYNC\r\nQUIT\r\n");
    assert_eq!(String::from_utf8_lossy(&replies), format!("{refused}{refused}{refused}+OK\r\n"));
    let mut direct = server.client().expect("there is room");
    direct.call(["REPLCONF", "rdb-only", "1"]).expect("it is taken");
    let direct = direct.call(["SYNC"]).expect("it is sent");
    assert_eq!(seeded("direct.rdb", direct.bytes().expect("it is a string")).dump(), server.dump());
}

/// The share, and the words behind it, in the next line of a program that tells how far its work is.
fn progress(program: &mut Running, work: &str) -> (u8, String) {
    let line = program.line_with(work).expect("it takes longer than the time between two lines");
    let numbers = line.split_once(work).and_then(|(_, progress)| progress.split_once(" %, "));
    let (percent, keys) = numbers.expect("it tells a share and a count");
    (percent.parse().expect("it is a number"), keys.to_owned())
}

#[test]
fn a_load_and_a_save_that_take_long_log_how_far_they_are() {
    let (folder, copy) = (Folder::new("progress-of-save"), Folder::new("progress-of-load"));
    // At these paces, both would take until the timeout.
    let mut saving = folder.program(&["--enable-debug-command", "yes"]);
    for command in ["DEBUG POPULATE 10000", "SAVE", "CONFIG SET rdb-key-save-delay 10000"] {
        assert_eq!(told(&saving, command), "+OK");
    }
    assert_eq!(told(&saving, "BGSAVE"), "+Background saving started");
    fs::copy(folder.dump(), copy.dump()).expect("it is there");
    let mut loading = copy.program(&["--save", "900 1", "--key-load-delay", "10000"]);
    let (percent, keys) = progress(&mut loading, "Loading the DB: ");
    assert!(
        percent < 100 && keys.strip_suffix(" keys so far").is_some_and(|keys| keys.parse::<u32>().is_ok()),
        "{keys}"
    );
    let (percent, keys) = progress(&mut saving, "Saving the DB: ");
    let count = keys.strip_suffix(" of 10000 keys").and_then(|keys| keys.parse::<u32>().ok());
    let expected = count.map(|keys| (f64::from(keys) / 100.0).round() as u8);
    assert_eq!(expected, Some(percent), "{keys}");
}

#[test]
fn a_start_removes_what_a_killed_save_has_left_and_nothing_else() {
    let folder = Folder::new("leftovers");
    let saving = folder.server();
    run(&saving, "SET a 1\nCONFIG SET rdb-key-save-delay 100000000\nBGSAVE");
    wait_until("the save has its file", || folder.files().len() == 1);
    let mut kept = folder.files();
    let others = ["temp-1.rdb", "temp-x-1.rdb", "temp-1-1.rdbs"];
    for name in ["temp-1-1.rdb"].iter().chain(&others) {
        fs::write(folder.0.join(name), "half a file").expect("it can be written");
    }
    let not_yet_locked = "temp-1-2.rdb";
    fs::write(folder.0.join(not_yet_locked), "").expect("it can be written");
    drop(folder.server());
    kept.extend([not_yet_locked].iter().chain(&others).map(ToString::to_string));
    kept.sort();
    assert_eq!(folder.files(), kept);
}

#[test]
fn a_background_save_has_the_data_of_its_moment() {
    let folder = Folder::new("moment");
    let server = folder.server();
    run(&server, DATA);
    let before = server.dump();
    run(&server, "CONFIG SET rdb-key-save-delay 100000\nBGSAVE");
    assert_eq!(error(&server, "BGSAVE"), "ERR Background save already in progress");
    assert_eq!(error(&server, "SAVE"), "ERR Background save already in progress");
    assert_eq!(info(&server, "rdb_bgsave_in_progress"), "1");
    run(&server, "SET text other\nRPUSH list more\nDEL set\nHSET hash c 3\nZADD zset 7 z\nSET late z\nXDEL stream 1-1");
    wait_until("the save has ended", || info(&server, "rdb_bgsave_in_progress") == "0");
    assert_eq!(info(&server, "rdb_last_bgsave_status"), "ok");
    assert_eq!(info(&server, "rdb_changes_since_last_save"), "7");
    let after = server.dump();
    assert_ne!(after, before);
    assert_eq!(folder.server().dump(), before);
    assert_eq!(folder.files(), ["dump.rdb"]);
}

#[test]
fn everything_goes_on_as_before_when_a_background_save_has_ended() {
    let folder = Folder::new("on");
    let server = folder.server();
    run(&server, DATA);
    for round in 0..3 {
        run(&server, &format!("BGSAVE\nSET round {round}\nSADD set m{round}"));
        wait_until("the save has ended", || info(&server, "rdb_bgsave_in_progress") == "0");
        run(&server, &format!("RPUSH list {round}"));
    }
    run(&server, "SAVE");
    assert_eq!(folder.server().dump(), server.dump());
    assert_eq!(info(&server, "rdb_saves"), "4");
}

#[test]
fn a_save_within_a_transaction_begins_behind_it() {
    let folder = Folder::new("transaction");
    let server = folder.server();
    let mut client = server.client().expect("it connects");
    for line in ["MULTI", "BGSAVE", "SET a 1"] {
        client.call(line.split(' ')).expect("it is answered");
    }
    let replies = client.call(["EXEC"]).expect("it is answered");
    let expected = ["Background saving scheduled", "OK"].map(|text| Reply::Status(text.to_owned()));
    assert_eq!(replies.items(), Some(&expected[..]));
    wait_until("it is saved", || info(&server, "rdb_saves") == "1");
    assert_eq!(folder.server().dump(), server.dump());
}

#[test]
fn a_save_point_saves_when_its_seconds_have_passed() {
    let folder = Folder::new("point");
    let builder = Server::builder().set("dir", folder.text()).set("save", "60 2 3600 1");
    let server = builder.frozen_at(SystemTime::UNIX_EPOCH + Duration::from_secs(1000)).start().expect("it starts");
    run(&server, "SET a 1");
    server.advance(Duration::from_secs(120));
    assert!(folder.files().is_empty());
    run(&server, "SET b 1");
    wait_until("it is saved", || info(&server, "rdb_saves") == "1");
    run(&server, "SET c 1\nSET d 1");
    server.advance(Duration::from_secs(60));
    assert_eq!(info(&server, "rdb_bgsave_in_progress"), "0");
    server.advance(Duration::from_millis(1000));
    wait_until("it is saved again", || info(&server, "rdb_saves") == "2");
    assert_eq!(info(&server, "rdb_changes_since_last_save"), "0");
}

#[test]
fn writes_are_refused_while_the_save_points_cannot_be_kept() {
    let folder = Folder::new("misconf");
    let server = folder.server();
    let mut client = server.client().expect("it connects");
    client.call(["CONFIG", "SET", "save", "3600 1"]).expect("it is answered");
    run(&server, "SET a 1");
    fs::remove_dir_all(&folder.0).expect("it is ours");
    run(&server, "BGSAVE");
    wait_until("it has failed", || info(&server, "rdb_last_bgsave_status") == "err");
    let refused = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. \
                   Commands that may modify the data set are disabled, because this instance is configured to report \
                   errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check \
                   the Redis logs for details about the RDB error.";
    assert_eq!(error(&server, "SET a 2"), refused);
    assert_eq!(error(&server, "PING"), refused);
    assert_eq!(ask(&server, "GET a"), "1");
    assert_eq!(error(&server, "SAVE"), "ERR");
    fs::create_dir_all(&folder.0).expect("it can be made again");
    run(&server, "SAVE\nSET a 2");
}

#[test]
fn a_flush_of_everything_stops_a_save_and_empties_the_file_of_save_points() {
    let folder = Folder::new("flush");
    let server = Server::builder().set("dir", folder.text()).set("save", "3600 1").start().expect("it starts");
    run(&server, DATA);
    run(&server, "CONFIG SET rdb-key-save-delay 200000\nBGSAVE\nFLUSHALL");
    assert_eq!(info(&server, "rdb_bgsave_in_progress"), "0");
    assert_eq!(info(&server, "rdb_saves"), "0");
    wait_until("the thread has ended", || folder.files() == ["dump.rdb"]);
    assert_eq!(folder.server().dump(), "");
}

#[test]
fn an_embedded_server_with_save_points_saves_when_it_is_dropped() {
    let folder = Folder::new("drop");
    let server = || Server::builder().set("dir", folder.text()).set("save", "3600 1").start().expect("it starts");
    run(&server(), "SET a 1");
    assert_eq!(ask(&server(), "GET a"), "1");
}

#[test]
fn an_embedded_server_that_cannot_load_its_data_does_not_replace_its_file() {
    let folder = Folder::new("unloaded");
    let server = || Server::builder().set("dir", folder.text()).set("save", "3600 1");
    run(&server().start().expect("it starts"), "SET a 1");
    let whole = fs::read(folder.dump()).expect("it was saved");
    let damaged = &whole[..whole.len() - 12];
    fs::write(folder.dump(), damaged).expect("it can be written");
    server().start().expect_err("the file is damaged");
    assert_eq!(fs::read(folder.dump()).expect("it is there"), damaged);

    fs::write(folder.dump(), &whole).expect("it can be written");
    fs::create_dir(folder.0.join("appendonlydir")).expect("it can be made");
    fs::write(folder.0.join("appendonlydir/appendonly.aof.manifest"), "damaged\n").expect("it can be written");
    server().set("appendonly", "yes").start().expect_err("the manifest is damaged");
    assert_eq!(fs::read(folder.dump()).expect("it is there"), whole);
}

#[test]
fn a_program_with_save_points_saves_before_it_ends() {
    let folder = Folder::new("end");
    let mut program = folder.program(&["--save", "3600 1"]);
    assert_eq!(told(&program, "SET a 1"), "+OK");
    assert_eq!(told(&program, "SHUTDOWN"), "");
    let (status, lines) = program.end();
    assert!(status.success());
    let wanted = ["User requested shutdown...", "Saving the final RDB snapshot before exiting.", "DB saved on disk"];
    let said: Vec<&String> = lines.iter().filter(|line| wanted.iter().any(|words| line.ends_with(words))).collect();
    assert_eq!(said.len(), wanted.len(), "{lines:?}");
    let mut program = folder.program(&[]);
    wait_until("it is loaded", || told(&program, "GET a") == "$1\r\n1");
    assert_eq!(told(&program, "SET a 2"), "+OK");
    assert_eq!(told(&program, "SHUTDOWN SAVE"), "");
    assert!(program.end().0.success());
    let mut program = folder.program(&["--save", "1 1"]);
    wait_until("it is loaded", || told(&program, "GET a") == "$1\r\n2");
    assert_eq!(told(&program, "SET a 3"), "+OK");
    assert_eq!(told(&program, "SHUTDOWN NOSAVE"), "");
    assert!(program.end().0.success());
    assert_eq!(ask(&folder.server(), "GET a"), "2");
}

#[test]
#[cfg(unix)]
fn a_signal_saves_as_its_setting_says_and_a_server_that_cannot_save_goes_on() {
    let folder = Folder::new("signal");
    let mut program = folder.program(&["--shutdown-on-sigterm", "save", "--shutdown-on-sigint", "nosave", "force"]);
    assert_eq!(told(&program, "SET a 1"), "+OK");
    program.signal("TERM");
    assert!(program.end().0.success());
    assert_eq!(ask(&folder.server(), "GET a"), "1");

    let mut program = folder.program(&["--save", "3600 1", "--shutdown-on-sigint", "nosave"]);
    wait_until("it is loaded", || told(&program, "PING") == "+PONG");
    assert_eq!(told(&program, "SET a 2"), "+OK");
    fs::remove_dir_all(&folder.0).expect("it is ours");
    program.signal("TERM");
    assert!(program.line_with("Error trying to save the DB, can't exit.").is_some());
    assert_eq!(told(&program, "GET a"), "$1\r\n2");
    assert_eq!(told(&program, "SHUTDOWN"), "-ERR Errors trying to SHUTDOWN. Check logs.");
    program.signal("INT");
    assert!(program.end().0.success());
}

#[test]
fn commands_that_need_the_data_are_refused_while_they_are_loaded() {
    let folder = Folder::new("loading");
    {
        let server = folder.server();
        run(&server, "DEBUG POPULATE 200\nSAVE");
    }
    let program = folder.program(&["--key-load-delay", "20000", "--enable-protected-configs", "yes"]);
    let refused = "-LOADING Redis is loading the dataset in memory";
    assert_eq!(told(&program, "GET key:1"), refused);
    assert_eq!(told(&program, "PING"), refused);
    let info = told(&program, "INFO persistence");
    for field in ["loading:1\r\n", "loading_total_bytes:", "loading_loaded_perc:", "async_loading:0\r\n"] {
        assert!(info.contains(field), "{info}");
    }
    assert_eq!(told(&program, "CONFIG SET maxmemory 0 dir /"), refused);
    let bytes = fs::read(folder.dump()).expect("it is there");
    let mut other = folder.program(&["--key-load-delay", "20000", "--save", "1 1"]);
    assert_eq!(told(&other, "GET key:1"), refused);
    assert_eq!(told(&other, "SHUTDOWN SAVE"), "");
    assert!(other.end().0.success());
    assert_eq!(fs::read(folder.dump()).expect("it is there"), bytes, "what was loaded so far has replaced the file");
    assert_eq!(told(&program, "CONFIG SET key-load-delay 0"), "+OK");
    wait_until("it is loaded", || told(&program, "DBSIZE") == ":200");
    assert!(!told(&program, "INFO persistence").contains("loading_total_bytes"));
}

/// The hash is the second key, behind the header, a database and a text, and is cut within its fields.
#[test]
fn a_file_that_cannot_be_loaded_ends_the_program_with_the_offset_the_type_and_the_key() {
    let folder = Folder::new("damaged");
    fs::write(folder.dump(), b"REDIS0012\xfe\0\0\x01a\x011\x04\x04hash\x02\x01f\x01v\x01").expect("it can be written");
    let mut program = folder.program(&[]);
    let (status, lines) = program.end();
    assert_eq!(status.code(), Some(1));
    let reason = "Short read or OOM loading DB. Unrecoverable error, aborting now. (at offset 16, type 4, key 'hash')";
    let fatal = "Fatal error loading the DB, check server logs. Exiting.";
    assert!(lines.iter().any(|line| line.ends_with(reason)), "{lines:?}");
    assert!(lines.iter().any(|line| line.ends_with(fatal)), "{lines:?}");

    let refused = Server::builder().load(folder.dump()).start().expect_err("it is damaged");
    assert!(matches!(refused, StartError::Data { .. }), "{refused}");
    assert!(refused.to_string().contains(reason), "{refused}");
}

#[test]
fn a_dump_that_is_no_rdb_file_is_refused_whatever_else_it_is() {
    let folder = Folder::new("no-rdb");
    let aof = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    for content in ["SET key value\n", aof, "file appendonly.aof.1.incr.aof seq 1 type i\n"] {
        fs::write(folder.dump(), content).expect("it can be written");
        let (status, lines) = folder.program(&[]).end();
        assert_eq!(status.code(), Some(1), "{content}");
        let is_told = |line: &String| line.contains("Wrong signature trying to load DB from file");
        assert!(lines.iter().any(is_told), "{content}: {lines:?}");
        let embedded = Server::builder().set("dir", folder.text()).start();
        assert!(matches!(embedded, Err(StartError::Data { .. })), "{content}");
    }
    fs::remove_file(folder.dump()).expect("it is there");
    fs::create_dir(folder.dump()).expect("a folder can be made");
    assert_eq!(folder.program(&[]).end().0.code(), Some(1));
}

#[test]
fn a_dump_of_more_databases_than_there_are_ends_the_program() {
    let folder = Folder::new("many-databases");
    fs::write(folder.dump(), b"REDIS0012\xfe\x10\0\x01a\x011\xff\0\0\0\0\0\0\0\0").expect("it can be written");
    let (status, lines) = folder.program(&[]).end();
    assert_eq!(status.code(), Some(1));
    let reason =
        "FATAL: Data file was created with a Redis server configured to handle more than 16 databases. Exiting";
    assert!(lines.iter().any(|line| line.contains(reason)), "{lines:?}");
    let program = folder.program(&["--databases", "17"]);
    wait_until("it is loaded", || told(&program, "SELECT 16") == "+OK");
}

#[test]
fn only_the_first_world_has_a_file() {
    let folder = Folder::new("worlds");
    let server = folder.server();
    let mut client = server.world("other").expect("it is made").client().expect("it connects");
    for command in ["SAVE", "BGSAVE"] {
        assert_eq!(client.call([command]).expect_err("it is refused").to_string(), "ERR");
    }
    assert!(folder.files().is_empty());
}

#[test]
fn debug_reload_goes_through_the_file_where_there_is_one() {
    let folder = Folder::new("reload");
    let server = folder.server();
    run(&server, DATA);
    let before = server.dump();
    run(&server, "DEBUG RELOAD");
    assert_eq!((server.dump(), folder.files()), (before.clone(), vec!["dump.rdb".to_owned()]));
    run(&server, "SET text other\nSET more 1\nDEBUG RELOAD NOSAVE");
    assert_eq!(server.dump(), before);
    run(&server, "SET text other\nSET more 1\nDEBUG RELOAD NOSAVE NOFLUSH MERGE");
    assert_eq!(ask(&server, "GET text"), "hello");
    assert_eq!(ask(&server, "GET more"), "1");
    let refused = "ERR Error trying to load the RDB dump, check server logs.";
    assert_eq!(error(&server, "DEBUG RELOAD NOSAVE NOFLUSH"), refused);
}

#[test]
fn the_check_tells_whether_a_file_can_be_loaded_and_salvages_what_can() {
    let folder = Folder::new("check");
    {
        let server = folder.server();
        run(&server, "SET a 1\nSET b 2 PX 100000000\nSAVE");
    }
    let path = folder.dump().display().to_string();
    let output = dunlin(&["check", &path]).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(output.status.success(), "{text}");
    for line in ["AUX FIELD redis-ver = '8.0.6'", "Selecting DB ID 0", "Checksum OK", "\\o/ RDB looks OK! \\o/"] {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.ends_with("[info] 2 keys read\n[info] 1 expires\n[info] 0 already expired\n[info] 0 subexpires\n"));

    let whole = fs::read(folder.dump()).expect("it is there");
    fs::write(folder.dump(), &whole[..whole.len() - 12]).expect("it can be written");
    let salvaged = folder.0.join("salvaged.rdb").display().to_string();
    let output = dunlin(&["check", "--salvage", &salvaged, &path]).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("--- RDB ERROR DETECTED ---\n"), "{text}");
    assert!(text.contains("[info] 1 keys read\n"), "{text}");
    let server = Server::builder().load(&salvaged).start().expect("what was salvaged is whole");
    assert_eq!(ask(&server, "DBSIZE"), Reply::Integer(1));
    assert!(dunlin(&["check", &salvaged]).output().expect("it runs").status.success());
    assert_eq!(dunlin(&["check"]).output().expect("it runs").status.code(), Some(1));
    let help = dunlin(&["check", "--help"]).output().expect("it runs");
    let text = String::from_utf8(help.stdout).expect("it is text");
    assert!(help.status.success() && text.contains("--salvage") && text.contains("--fix"), "{text}");
    assert!(!dunlin(&["check", "--salvage"]).output().expect("it runs").status.success());
}

#[test]
fn what_is_salvaged_never_replaces_a_file() {
    let folder = Folder::new("check-salvage");
    let (damaged, precious) = (folder.0.join("damaged.rdb"), folder.0.join("precious.rdb"));
    for path in [&damaged, &precious] {
        fs::write(path, "REDIS0012damaged").expect("it can be written");
        let [target, source] = [path, &damaged].map(|path| path.to_str().expect("it is text"));
        let output = dunlin(&["check", "--salvage", target, source]).output().expect("it runs");
        let text = String::from_utf8(output.stderr).expect("it is text");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text, format!("{target}: it exists already, and is not overwritten\n"));
        assert_eq!(fs::read(path).expect("it is there"), b"REDIS0012damaged");
    }
    assert_eq!(folder.files().len(), 2);
}

/// The version of the file has no form for a field with a deadline.
#[test]
fn a_reload_in_memory_that_cannot_save_keeps_the_data() {
    let server = Server::builder().set("rdb-version", "11").allow_debug().start().expect("it starts");
    run(&server, "SET text 1\nHSET hash field 1\nHPEXPIRE hash 100000000 FIELDS 1 field");
    assert_eq!(error(&server, "DEBUG RELOAD"), "ERR");
    assert_eq!(ask(&server, "DBSIZE"), Reply::Integer(2));
}

/// A script that fills collections of every type, small and large, with numbers and texts, some with deadlines.
const FILL: &str = "for i = 1, 600 do \
    local text = string.rep('x', i % 70) .. i; \
    redis.call('SET', 'text' .. i, text); redis.call('SET', 'number' .. i, i * 7919); \
    redis.call('RPUSH', 'list', text, i); redis.call('RPUSH', 'list' .. i % 9, i, text); \
    redis.call('SADD', 'set', text); redis.call('SADD', 'set' .. i % 9, i); redis.call('SADD', 'some' .. i % 40, text); \
    redis.call('ZADD', 'zset', i / 7, text); redis.call('ZADD', 'zset' .. i % 40, i, text); \
    redis.call('HSET', 'hash', text, i); redis.call('HSET', 'hash' .. i % 40, i, text); \
    redis.call('XADD', 'stream', i .. '-1', text, i, 'field', text); redis.call('PFADD', 'sketch', text); \
    if i % 3 == 0 then redis.call('PEXPIRE', 'text' .. i, 100000000 + i) end; \
    if i % 5 == 0 then redis.call('HPEXPIRE', 'hash' .. i % 40, 100000000 + i, 'FIELDS', 1, i) end end; \
    redis.call('HPEXPIRE', 'hash', 100000000, 'FIELDS', 1, 'x1'); \
    redis.call('XGROUP', 'CREATE', 'stream', 'group', '0'); redis.call('XDEL', 'stream', '5-1', '17-1'); \
    redis.call('XREADGROUP', 'GROUP', 'group', 'ann', 'COUNT', 50, 'STREAMS', 'stream', '>')";

#[test]
fn a_real_server_loads_what_is_saved_here_and_what_it_saves_is_loaded_here() {
    let Some(program) = Program::from_environment("RDB files of a real server") else { return };
    let fill = format!("EVAL \"{FILL}\" 0");
    for policy in ["noeviction", "allkeys-lru", "allkeys-lfu"] {
        let real = Process::start_with(&program, &["--maxmemory-policy", policy]).expect("the real server starts");
        assert_eq!(told_by(real.address, &fill), "$-1");
        assert_eq!(told_by(real.address, "SAVE"), "+OK");
        let digest = told_by(real.address, "DEBUG DIGEST");
        let ours = Server::builder().set("maxmemory-policy", policy).set("dir", real.folder().to_str().expect("text"));
        let ours = ours.allow_debug().start().expect("its file is loaded");
        let digest_of = |server: &Server| format!("+{}", ask(server, "DEBUG DIGEST").text().expect("it is text"));
        assert_eq!(digest_of(&ours), digest, "theirs, {policy}");

        run(&ours, "RPUSH list1 more\nSET new 1\nSELECT 7\nSET other 2\nSAVE");
        program.expect_accepted("rdb", &real.folder().join("dump.rdb"));
        assert_eq!(told_by(real.address, "DEBUG RELOAD NOSAVE"), "+OK");
        assert_eq!(told_by(real.address, "DEBUG DIGEST"), digest_of(&ours), "ours, {policy}");
    }
}
