//! Files of Redis 2.8 to 6.2, which servers of these versions have written (`tests/fixtures/files/make`): RDB files
//! with the types of their time, append-only files of commands, and those whose base is an RDB file.

use std::fs;
use std::path::{Path, PathBuf};

use dunlin::Server;

use crate::files::{Folder, run, told_by};
use crate::oracle::{Process, Program};
use crate::other_versions::expect_whole;

/// What each of the servers ran.
const COMMANDS: &str = include_str!("../fixtures/files/commands.txt");
/// What those with streams ran as well.
const STREAMS: &str = include_str!("../fixtures/files/streams.txt");
const VERSIONS: [&str; 5] = ["2.8.17", "3.0.5", "3.2.6", "5.0.6", "6.2.14"];

/// Questions about what a digest leaves out.
const QUESTIONS: [&str; 17] = [
    "DEBUG DIGEST",
    "DBSIZE",
    "PEXPIRETIME due-late",
    "PEXPIRETIME due-s",
    "PEXPIRETIME zset-small",
    "OBJECT ENCODING set-numbers",
    "OBJECT ENCODING set-long",
    "OBJECT ENCODING zset-long",
    "OBJECT ENCODING hash-wide",
    "OBJECT ENCODING list-long",
    "OBJECT ENCODING long",
    "ZRANGE zset-small 0 -1 WITHSCORES",
    "XRANGE stream - +",
    "XPENDING stream workers",
    "XINFO STREAM gone",
    "XINFO GROUPS stream",
    "XINFO GROUPS gone",
];

fn file(version: &str, kind: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/files");
    folder.join(format!("redis-{version}.{kind}"))
}

fn has_streams(version: &str) -> bool {
    version >= "5"
}

/// A server that has loaded a file.
fn loaded(file: &Path) -> Server {
    Server::builder().load(file).allow_debug().start().unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn data_of_an_old_version_are_those_that_its_commands_give() {
    for version in VERSIONS {
        let expected = Server::builder().allow_debug().start().expect("it starts");
        run(&expected, COMMANDS);
        if has_streams(version) {
            run(&expected, STREAMS);
        }
        for kind in ["rdb", "aof"] {
            let file = file(version, kind);
            expect_whole(&file);
            let (loaded, name) = (loaded(&file), file.display());
            for question in ["DEBUG DIGEST", "DBSIZE", "PEXPIRETIME due-late", "PEXPIRETIME due-s"] {
                let [ours, theirs] = [&expected, &loaded].map(|server| told_by(server.addr(), question));
                assert_eq!(theirs, ours, "{question}, {name}");
            }
        }
    }
}

#[test]
fn files_of_old_versions_are_loaded_as_a_real_server_loads_them() {
    let Some(program) = Program::from_environment("files of old versions") else { return };
    for version in VERSIONS {
        let real = Process::start_with(&program, &["--appendonly", "yes"]).expect("the real server starts");
        let told = |command: &str| told_by(real.address, command);
        for (kind, reload) in [("rdb", "DEBUG RELOAD NOSAVE"), ("aof", "DEBUG LOADAOF")] {
            let (file, folder) = (file(version, kind), real.folder());
            if kind == "rdb" {
                fs::copy(&file, folder.join("dump.rdb")).expect("it can be copied");
            } else {
                let files = folder.join("appendonlydir");
                fs::copy(&file, files.join("old.aof")).expect("it can be copied");
                let manifest = files.join("appendonly.aof.manifest");
                fs::write(manifest, "file old.aof seq 1 type b\n").expect("it can be written");
            }
            assert_eq!(told(reload), "+OK", "{}", file.display());
            let ours = loaded(&file);
            assert_eq!(told("SAVE"), "+OK");
            let saved_anew = loaded(&folder.join("dump.rdb"));
            for question in QUESTIONS {
                let theirs = told(question);
                assert_eq!(told_by(ours.addr(), question), theirs, "{question}, {}", file.display());
                assert_eq!(
                    told_by(saved_anew.addr(), question),
                    theirs,
                    "{question}, saved anew from {}",
                    file.display()
                );
            }
            // Commands that are replayed set the times at which consumers were seen.
            let full = "XINFO STREAM stream FULL COUNT 0";
            assert_eq!(told_by(saved_anew.addr(), full), told(full), "{}", file.display());
            if kind == "rdb" {
                assert_eq!(told_by(ours.addr(), full), told(full), "{}", file.display());
            }
        }
    }
}

/// A file with a hash in the two forms that release candidates of Redis 7.4 gave deadlines of fields, which no release
/// writes: `large` field by field, `small` as what was saved here of it, without the least deadline.
fn of_release_candidates() -> Vec<u8> {
    let folder = Folder::new("release-candidates");
    let server = folder.server();
    run(&server, "HSET small a 1 b two\nHPEXPIREAT small 4102444800123 FIELDS 1 a\nSAVE");
    let saved = fs::read(folder.dump()).expect("it is there");
    let key = saved.windows(7).position(|bytes| bytes == b"\x19\x05small").expect("it has the compact form");
    let least = key + 7;
    let (head, listpack) = (&saved[..key], &saved[least + 8..saved.len() - 9]);
    let deadline = [&[0x81][..], &4_102_444_800_456_u64.to_be_bytes()].concat();
    let large = [&b"\x16\x05large\x02"[..], &deadline, b"\x01f\x01v\x00\x01g\x01w"].concat();
    // Zeros in the place of a checksum: there is none.
    [head, b"\x17\x05small", listpack, &large, b"\xff", &[0; 8]].concat()
}

#[test]
fn deadlines_of_fields_of_release_candidates_are_loaded() {
    let bytes = of_release_candidates();
    let lines =
        ["HGETALL small", "HPEXPIRETIME small FIELDS 2 a b", "HGETALL large", "HPEXPIRETIME large FIELDS 2 f g"];
    let ours = Server::builder().load_bytes(bytes.clone()).start().expect("it is loaded");
    let told = lines.map(|line| told_by(ours.addr(), line));
    assert_eq!(told[1], "*2\r\n:4102444800123\r\n:-1");
    assert_eq!(told[3], "*2\r\n:4102444800456\r\n:-1");
    let Some(program) = Program::from_environment("files of release candidates") else { return };
    let real = Process::start(&program).expect("the real server starts");
    fs::write(real.folder().join("dump.rdb"), bytes).expect("it can be written");
    assert_eq!(told_by(real.address, "DEBUG RELOAD NOSAVE"), "+OK");
    assert_eq!(lines.map(|line| told_by(real.address, line)), told);
}
