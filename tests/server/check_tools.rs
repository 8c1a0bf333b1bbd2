//! `dunlin check` beside Redis's own tools, which report the same about damaged files.
//!
//! Not compared, as they differ on purpose:
//!
//! - the reason and the offset within an RDB file: Redis's tool names a function of its source and how far it has
//!   read, ours has the offset of the damaged record;
//! - annotations of an append-only file that have no end: Redis takes them for whole, and loses what is appended;
//! - commands without a word: Redis's tool takes them for right, and its server refuses them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dunlin::Server;

use crate::files::{Folder, run};
use crate::oracle::Program;
use crate::program::dunlin;

/// A tool's report about a file, and what it left of it.
#[derive(Debug, PartialEq)]
struct Report {
    code: Option<i32>,
    lines: Vec<String>,
    left: Vec<u8>,
}

/// Ours under the name of Redis's tool.
fn our_tool(folder: &Folder, kind: &str) -> PathBuf {
    let tool = folder.0.join(format!("redis-check-{kind}"));
    symlink(dunlin(&[]).get_program(), &tool).expect("it can be linked");
    tool
}

/// Has a tool check a file; it is told to go on if it asks.
fn report(tool: &Path, folder: &Folder, bytes: &[u8], options: &[&str]) -> Report {
    let path = folder.0.join("damaged");
    fs::write(&path, bytes).expect("it can be written");
    let mut command = Command::new(tool);
    command.args(options).arg("damaged").current_dir(&folder.0);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    // One that does not ask may have ended before.
    let _ = child.stdin.take().expect("it is piped").write_all(b"y\n");
    let output = child.wait_with_output().expect("it ends");
    let lines = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    Report { code: output.status.code(), lines, left: fs::read(path).expect("it is there") }
}

#[test]
fn a_torn_rdb_file_is_reported_as_by_redis_check_rdb() {
    let Some(program) = Program::from_environment("torn RDB files of a real server") else { return };
    let Some(theirs) = program.check_tool("rdb") else { return };
    let folder = Folder::new("check-tools-rdb");
    let ours = our_tool(&folder, "rdb");
    let server = Server::builder().set("dir", folder.0.to_str().expect("it is text")).start().expect("it starts");
    run(
        &server,
        "SET text hello\nRPUSH list a 1\nSADD set a b\nSADD numbers 1 2\nZADD zset 1 a\nHSET hash a 1\n\
         XADD stream 1-1 a 1\nXGROUP CREATE stream group 0\nXREADGROUP GROUP group ann STREAMS stream >\nSAVE",
    );
    let whole = fs::read(folder.0.join("dump.rdb")).expect("it is there");
    let library = b"REDIS0012\xf5\x40\x57#!lua name=l\nredis.register_function('f', function() return 1 end)";
    let deadline = b"REDIS0012\xfe\0\xfb\x01\x01\xfc\0\0\0\0\0\0\0";
    let cuts = (0..whole.len()).step_by(3).chain([whole.len()]).map(|length| &whole[..length]);
    let others = [&library[..], &library[..10], deadline, &deadline[..11], b"REDIS0099", b"REDIX0012"];
    let told = |tool: &Path, bytes: &[u8]| {
        let mut report = report(tool, &folder, bytes, &[]);
        report.lines.retain(|line| line.starts_with("[additional info]") || line.starts_with("[info]"));
        report
    };
    for bytes in cuts.chain(others) {
        assert_eq!(told(&ours, bytes), told(&theirs, bytes), "{} bytes", bytes.len());
    }
}

#[test]
fn a_damaged_append_only_file_is_reported_and_mended_as_by_redis_check_aof() {
    let Some(program) = Program::from_environment("damaged append-only files of a real server") else { return };
    let Some(theirs) = program.check_tool("aof") else { return };
    let folder = Folder::new("check-tools-aof");
    let ours = our_tool(&folder, "aof");
    let whole = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\xe4\0\r\n\
                  *1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n1\r\n*1\r\n$4\r\nEXEC\r\n*1\r\n$4\r\nPING\r\n";
    let flipped = (0..whole.len()).map(|at| {
        let mut bytes = whole.to_vec();
        bytes[at] ^= [0x10, 0x04, 0x80][at % 3];
        bytes
    });
    let told = |tool: &Path, bytes: &[u8], options: &[&str]| {
        let mut report = report(tool, &folder, bytes, options);
        // Of a line without an end, Redis's tool shows what its buffer had from another.
        report.lines.iter_mut().for_each(|line| line.truncate(line.find("got: ").unwrap_or(line.len())));
        report
    };
    for bytes in (0..=whole.len()).map(|length| whole[..length].to_vec()).chain(flipped) {
        for options in [&[][..], &["--fix"]] {
            let expected = told(&theirs, &bytes, options);
            assert_eq!(told(&ours, &bytes, options), expected, "{}, {options:?}", bytes.escape_ascii());
        }
    }
}
