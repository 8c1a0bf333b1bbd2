//! Journals as transcripts: what the test kit exports can be played again.

use std::io::Write;
use std::net::TcpStream;

use dunlin::{Client, Reply, Server};

use crate::runner::Transcript;
use crate::runner::in_process::InProcess;
use crate::runner::oracle::Oracle;
use crate::runner::over_tcp::OverTcp;
use crate::support::process::Program;
use crate::support::reply::Protocol;

fn call<'a>(client: &mut Client, words: impl IntoIterator<Item = &'a str>) -> Reply {
    client.call(words).expect("the server answers")
}

/// Commands of two clients, one of which waits, in one protocol each.
fn record_a_journal(server: &Server) {
    server.freeze();
    let mut client = server.client().expect("there is room");
    let mut wire = TcpStream::connect(server.addr()).expect("it listens");
    call(&mut client, ["ZADD", "board", "1.5", "ann", "2", "bob the \"builder\""]);
    call(&mut client, ["ZSCORE", "board", "ann"]);
    call(&mut client, ["HSET", "hash", "field", "\r\n\0"]);
    call(&mut client, ["HGETALL", "hash"]);
    wire.write_all(b"SELECT 0\r\nBLPOP queue 0\r\n").expect("it reads");
    call(&mut client, ["DUNLIN", "WAIT", "BLOCKED", "queue"]);
    call(&mut client, ["RPUSH", "queue", "job"]);
    call(&mut client, ["MULTI"]);
    call(&mut client, ["SET", "session", "x", "PX", "1000"]);
    call(&mut client, ["EXEC"]);
    call(&mut client, ["DUNLIN", "ADVANCE", "1200"]);
    call(&mut client, ["GET", "session"]);
    client.call(["INCR", "board"]).expect_err("it is no number");
    call(&mut client, ["TIME"]);
}

#[test]
fn the_transcript_can_be_played_again() {
    let server = Server::start().expect("it starts");
    let mut client = server.client().expect("there is room");
    let journal = server.journal();
    record_a_journal(&server);
    let text = call(&mut client, ["DUNLIN", "JOURNAL", "EXPORT"]).text().expect("it is a text").into_owned();
    assert_eq!(text.strip_prefix("txt:").unwrap_or(&text), journal.transcript());
    assert!(text.contains("c2>& BLPOP queue 0\n") && text.contains("c2<\n1) \"queue\"\n2) \"job\"\n"), "{text}");
    let path = std::env::temp_dir().join(format!("dunlin-journal-{}.txt", std::process::id()));
    std::fs::write(&path, journal.transcript()).expect("it can be written");
    let transcript = Transcript::read(&path).expect("it is well formed");
    std::fs::remove_file(&path).expect("it is there");
    let mut served = OverTcp::start().expect("it starts");
    let real = Program::from_environment("a journal played on a real server");
    let mut real = real.map(|program| Oracle::start(&program).expect("the real server starts"));
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let differences = [
            transcript.check(&mut InProcess::new(), "our engine", protocol),
            transcript.check(&mut served, "our server", protocol),
            real.as_mut().map_or_else(Vec::new, |real| transcript.check(real, "real server", protocol)),
        ];
        assert_eq!(differences.concat(), Vec::<String>::new(), "{text}");
    }
}
