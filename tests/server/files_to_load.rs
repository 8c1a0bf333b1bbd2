//! Files that a server starts with (`load`, `seed`), or that it is sent: they are only read.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dunlin::{Reply, Server};

use crate::files::{DATA, Folder, ask, info, names_in, run, told};
use crate::program::{begin, dunlin, start};
use crate::timeout::wait_until;
use crate::wire::connect;

#[test]
fn a_file_to_load_is_only_read_and_a_saved_one_comes_first() {
    let (folder, other) = (Folder::new("load"), Folder::new("load-own"));
    {
        let server = folder.server();
        run(&server, "SET a seeded\nSAVE");
    }
    let bytes = fs::read(folder.dump()).expect("it is there");
    let path = folder.dump().display().to_string();
    for option in ["--load", "--seed"] {
        let mut program = start(&["--port", "0", option, &path]);
        wait_until("it is loaded", || told(&program, "GET a") == "$6\r\nseeded");
        assert_eq!(told(&program, "SET a 1"), "+OK");
        assert_eq!(told(&program, "SHUTDOWN"), "");
        assert!(program.end().0.success());
    }
    let mut program = start(&["--port", "0", "--dir", other.text(), "--load", &path]);
    wait_until("it is loaded", || told(&program, "GET a") == "$6\r\nseeded");
    assert_eq!(told(&program, "SET a own"), "+OK");
    assert_eq!(told(&program, "SHUTDOWN SAVE"), "");
    assert!(program.end().0.success());
    let mut program = start(&["--port", "0", "--dir", other.text(), "--load", &path]);
    let line = program.line_with("dump.rdb is not loaded").expect("it is said");
    assert!(line.ends_with(&format!("{path} is not loaded: the server has files of its own")), "{line}");
    wait_until("it is loaded", || told(&program, "GET a") == "$3\r\nown");
    assert_eq!(fs::read(folder.dump()).expect("it is there"), bytes);
    assert_eq!(folder.files(), ["dump.rdb"]);

    let server = Server::builder().load_bytes(bytes.clone()).start().expect("it starts");
    assert_eq!(ask(&server, "GET a"), "seeded");
    let world = server.world("other").expect("it is made");
    world.load(&bytes).expect("it is whole");
    assert_eq!(world.client().expect("it connects").call(["GET", "a"]).expect("it is answered"), "seeded");
    let refused = world.load(&bytes[..bytes.len() - 9]).expect_err("it is cut");
    assert!(refused.to_string().contains("Short read"), "{refused}");
    assert_eq!(world.client().expect("it connects").call(["GET", "a"]).expect("it is answered"), "seeded");
}

#[test]
fn a_file_of_any_age_is_loaded() {
    let bytes = [&b"REDIS0012\xfa\x05ctime\x14-9223372036854775808\xff"[..], &[0; 8]].concat();
    let server = Server::builder().load_bytes(bytes).start().expect("it is whole");
    assert_eq!(ask(&server, "DBSIZE"), 0);
}

/// As `redis-cli -x DUNLIN LOAD < dump.rdb` sends it.
#[test]
fn a_file_is_loaded_over_the_wire_as_the_last_word_of_a_command() {
    let folder = Folder::new("wire");
    let saved = folder.server();
    run(&saved, DATA);
    run(&saved, "SAVE");
    let bytes = fs::read(folder.dump()).expect("it is there");
    let server = Server::start().expect("it starts");
    let send = |file: &[u8]| {
        let mut client = connect(server.addr());
        client.send(format!("*3\r\n$6\r\nDUNLIN\r\n$4\r\nLOAD\r\n${}\r\n", file.len()));
        client.send([file, b"\r\nQUIT\r\n"].concat());
        String::from_utf8(client.rest()).expect("it is text")
    };
    assert_eq!(send(&bytes), "+OK\r\n+OK\r\n");
    assert_eq!(server.dump(), saved.dump());
    run(&server, "SET later 1");
    let refused = send(&bytes[..bytes.len() - 1]);
    assert!(refused.starts_with("-ERR Short read or OOM loading DB."), "{refused}");
    assert!(refused.contains(&format!("(at offset {}", bytes.len() - 9)), "{refused}");
    assert_eq!(ask(&server, "GET later"), "1");
}

#[test]
fn a_program_starts_with_the_text_that_a_server_returns_of_its_data() {
    let folder = Folder::new("text");
    let saved = folder.server();
    run(&saved, DATA);
    let text = folder.0.join("fixture.txt");
    fs::write(&text, format!("# what a shop has\n{}", saved.dump())).expect("it can be written");
    let path = text.to_str().expect("it is text");
    let program = folder.program(&["--load", path]);
    assert_eq!(told(&program, "GET text"), "$5\r\nhello");
    assert_eq!(told(&program, "LRANGE list 1 1"), "*1\r\n$1\r\n2");
    drop(program);
    let embedded = Server::builder().load(&text).start().expect("it starts");
    assert_eq!(embedded.dump(), saved.dump());

    fs::write(&text, "SET a 1\nNOSUCH b\n").expect("it can be written");
    let mut ended = folder.program(&["--load", path]);
    let (status, lines) = ended.end();
    assert!(!status.success());
    let names_it = |line: &String| line.contains(path) && line.contains("NOSUCH");
    assert!(lines.iter().any(names_it), "{lines:?}");
}

#[test]
fn worlds_start_with_the_data_of_a_file_that_is_loaded_once_into_a_template() {
    let folder = Folder::new("template");
    let saved = folder.server();
    run(&saved, &DATA.replace("SELECT 3\n    SET elsewhere y", "SET elsewhere y"));
    run(&saved, "SAVE");
    let bytes = fs::read(folder.dump()).expect("it is there");
    let server = Server::builder().load(folder.dump()).start().expect("it starts");
    server.make_template();
    for name in ["first", "second"] {
        let world = server.world(name).expect("it is made");
        assert_eq!(world.dump(), saved.dump(), "{name}");
        let mut client = world.client().expect("it connects");
        assert_eq!(client.call(["RPUSH", "list", "more"]).expect("it is answered"), Reply::Integer(4));
    }
    assert_eq!(server.dump(), saved.dump());
    assert_eq!(fs::read(folder.dump()).expect("it is there"), bytes);
}

#[test]
fn an_append_only_file_to_load_is_only_read_even_if_its_end_is_torn() {
    let folder = Folder::new("aof-seed");
    run(&folder.appending(), DATA);
    let whole = folder.appending().dump();
    folder.tear(b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$4\r\ntext");
    let contents = || folder.parts().iter().map(|name| fs::read(folder.part(name)).expect("it is there")).collect();
    let before: Vec<Vec<u8>> = contents();
    let log = folder.part("appendonly.aof.1.incr.aof");
    for source in [folder.0.join("appendonlydir"), folder.part("appendonly.aof.manifest"), log] {
        let server = Server::builder().load(&source).start().expect("the torn end is passed over");
        assert_eq!(server.dump(), whole, "{}", source.display());
        run(&server, "SET more 1");
        drop(server);
        assert!(contents() == before, "{} was changed", source.display());
    }
}

/// Redis would load the file, and save it by itself.
#[test]
fn the_log_says_that_a_dump_is_not_loaded_or_not_saved_by_itself() {
    let folder = Folder::new("noted");
    run(&folder.server(), "SET a 1\nSAVE");
    let first_note = |words: &[&str]| {
        let mut program = begin(dunlin(&[&["--port", "0"], words].concat()).current_dir(&folder.0), "");
        program.line_with("dump.rdb").expect("it is said")
    };
    assert!(first_note(&[]).ends_with("dump.rdb is not loaded: none of save, dir and dbfilename is set"));
    assert!(first_note(&["--dir", "."]).ends_with("dump.rdb is written by SAVE and BGSAVE alone"));
}

#[test]
fn the_log_says_that_data_are_from_the_future_of_the_clock() {
    let folder = Folder::new("ahead");
    let server = Server::builder().frozen().set("dir", folder.text()).start().expect("it starts");
    server.advance(Duration::from_secs(1_000_000_000));
    run(&server, "SET a 1 EX 100\nSAVE");
    let line = folder.program(&[]).line_with("ahead of").expect("it is said");
    assert!(line.contains("It was saved ") && line.ends_with(": deadlines keep their times"), "{line}");
}

#[test]
fn a_shutdown_in_an_append_only_file_does_not_end_the_server_that_reads_it() {
    let folder = Folder::new("aof-shutdown");
    let path = folder.0.join("log.aof");
    let log = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n\
        *3\r\n$8\r\nSHUTDOWN\r\n$4\r\nSAVE\r\n$3\r\nNOW\r\n";
    fs::write(&path, log).expect("it can be written");
    let program = folder.program(&["--load", path.to_str().expect("it is text")]);
    wait_until("it is loaded", || told(&program, "GET a") == "$1\r\n1");
}

/// What writes into it waits for a reader, and writes once. A server that ends before that saves nothing, as its own
/// file would be loaded the next time.
#[test]
#[cfg(unix)]
fn a_file_to_load_may_be_a_pipe() {
    let folder = Folder::new("load-pipe");
    let saved = Folder::new("load-pipe-saved");
    run(&saved.server(), "SET a piped\nSAVE");
    let bytes = fs::read(saved.dump()).expect("it is there");
    let pipe = folder.0.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("the system has mkfifo");
    assert!(made.success());
    let mut ended = folder.program(&["--save", "60 1", "--load", pipe.to_str().expect("it is text")]);
    assert_eq!(told(&ended, "GET a"), "-LOADING Redis is loading the dataset in memory");
    ended.signal("TERM");
    assert!(ended.end().0.success());
    assert_eq!(folder.files(), ["pipe"]);
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, bytes).expect("somebody reads")
    });
    let program = folder.program(&["--load", pipe.to_str().expect("it is text")]);
    wait_until("it is loaded", || told(&program, "GET a") == "$5\r\npiped");
    writer.join().expect("it has written");
}

/// As Redis 4 to 6 wrote it.
#[test]
fn an_append_only_file_that_begins_with_an_rdb_file_is_loaded_as_a_whole() {
    let folder = Folder::new("aof-preamble");
    let base = b"REDIS0009\xfa\x09redis-ver\x056.2.6\xfa\x0caof-preamble\xc0\x01\xfe\x00\x00\x01a\xc0\x01\xff";
    let commands = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n";
    let path = folder.0.join("old.aof");
    fs::write(&path, [&base[..], &[0; 8], commands].concat()).expect("it can be written");
    assert_eq!(ask(&Server::builder().load(&path).start().expect("it is whole"), "GET a"), "2");
    let program = folder.program(&["--load", path.to_str().expect("it is text")]);
    wait_until("it is loaded", || told(&program, "GET a") == "$1\r\n2");
}

/// Redis 8.0.6 cannot write such a base: the process that does so crashes at a vector set.
#[test]
fn a_base_of_commands_has_vector_sets() {
    let folder = Folder::new("aof-vector-sets");
    let begin = || {
        let builder = Server::builder().set("dir", folder.text()).set("appendonly", "yes");
        builder.set("aof-use-rdb-preamble", "no").start().expect("it starts")
    };
    let server = begin();
    run(
        &server,
        "VADD bytes VALUES 3 1 2 3 first SETATTR {\"year\":1984}
        VADD bytes VALUES 3 3 2 1 second
        VADD floats VALUES 2 1 0 first NOQUANT
        VADD bits VALUES 2 1 0 first BIN
        VADD reduced REDUCE 2 VALUES 3 1 2 3 first
        PEXPIRE floats 100000000
        BGREWRITEAOF",
    );
    wait_until("it is rewritten", || {
        info(&server, "aof_rewrites") == "1" && info(&server, "aof_rewrite_in_progress") == "0"
    });
    let facts = |server: &Server| {
        let keys = ["bytes", "floats", "bits", "reduced"];
        let ask_for = |command: &str| keys.map(|key| ask(server, &format!("{command} {key} first")));
        [ask_for("VEMB"), ask_for("VLINKS"), ask_for("VGETATTR")]
    };
    let before = facts(&server);
    drop(server);
    let base = names_in(&folder.0.join("appendonlydir")).into_iter().find(|name| name.contains(".base."));
    assert!(base.expect("there is a base").ends_with(".aof"));
    let server = begin();
    assert_eq!(facts(&server), before);
    assert_eq!(ask(&server, "VCARD bytes"), 2);
}

#[test]
fn the_first_base_counts_if_it_has_data() {
    let folder = Folder::new("aof-first-base");
    let server = folder.server();
    run(&server, "SET key value\nSAVE");
    let seed = Path::new(folder.text()).join("dump.rdb");
    drop(server);
    let server = Server::builder().load(seed).set("dir", folder.text()).set("appendonly", "yes").start();
    let server = server.expect("it starts");
    assert_ne!(info(&server, "aof_base_size"), "0");
    assert_eq!(info(&server, "aof_base_size"), info(&server, "aof_current_size"));
}
