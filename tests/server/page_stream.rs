//! The stream of the page: commands as they run, changed keys, the clock and findings.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::page::start_with_token;
use crate::program::Running;
use crate::support::http;
use crate::timeout::{TIMEOUT, wait_until};
use crate::wire::connect;

/// A stream that is being read.
struct Stream {
    socket: TcpStream,
    text: String,
}

impl Stream {
    /// Opens a stream, and reads its head and its first event, which shows the clock.
    fn open(address: SocketAddr, token: &str, query: &str) -> Stream {
        let mut socket = TcpStream::connect(address).expect("it listens");
        socket.set_read_timeout(Some(TIMEOUT)).expect("a time can be set");
        let head = format!("GET /stream{query} HTTP/1.0\r\nHost: {address}\r\nX-Dunlin: {token}\r\n\r\n");
        socket.write_all(head.as_bytes()).expect("it reads");
        let mut stream = Stream { socket, text: String::new() };
        stream.wait_for("\"frozen\":");
        assert!(stream.text.to_lowercase().contains("content-type: text/event-stream"), "{}", stream.text);
        stream
    }

    /// Reads until the text has this.
    fn wait_for(&mut self, part: &str) {
        let mut buffer = [0; 65_536];
        while !self.text.contains(part) {
            let length = self.socket.read(&mut buffer).expect("it comes in time");
            assert!(length > 0, "the stream has ended without {part}: {}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    }

    /// The events of a kind so far, as their data.
    fn events(&self, kind: &str) -> Vec<&str> {
        let begin = format!("event: {kind}\n");
        self.text
            .split("\n\n")
            .filter_map(|event| event.split_once(&begin)?.1.split_once("data: "))
            .map(|(_, data)| data)
            .collect()
    }
}

fn start() -> (Running, SocketAddr, String) {
    start_with_token(&["--test-kit", "yes"])
}

#[test]
fn a_stream_of_a_command_that_does_not_exist_is_refused() {
    let (_server, address, token) = start();
    let open = |command: &str| {
        let headers = format!("X-Dunlin: {token}\r\n");
        http::get(address, &format!("/stream?command={command}"), &headers).expect("it answers")
    };
    for name in ["get2", "config%7Cgot", ""] {
        let refused = open(name);
        assert_eq!(
            (refused.status, &*refused.body),
            (400, r#"{"error":"There is no command of that name."}"#),
            "{name}"
        );
    }
    for name in ["GET", "config%7Cget"] {
        Stream::open(address, &token, &format!("?command={name}"));
    }
}

#[test]
fn commands_come_with_their_replies_and_changed_keys() {
    let (server, address, token) = start();
    let mut stream = Stream::open(address, &token, "");
    let mut client = connect(server.address());
    client.ask(
        "CLIENT SETNAME app\r\nSET k v\r\nGET k\r\nLPUSH k x\r\n",
        "+OK\r\n+OK\r\n$1\r\nv\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    );
    client.ask("MULTI\r\nINCR n\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    client.ask("EVAL \"return redis.call('GET', 'k')\" 0\r\n", "$1\r\nv\r\n");
    client.ask("MGET user:1 user:17\r\n", "*2\r\n$-1\r\n$-1\r\n");
    stream.wait_for("\"EVAL\"");
    stream.wait_for("\"patterns\":[\"user:{n}\",\"user:{n}\"]");
    stream.wait_for("event: keys");
    let commands = stream.events("command");
    let of = |name: &str| commands.iter().find(|data| data.contains(&format!("[\"{name}\""))).expect("it is there");
    let get = of("GET");
    for part in [
        "\"command\":[\"GET\",\"k\"]",
        "\"keys\":[\"k\"]",
        "\"patterns\":[\"k\"]",
        "\"reply\":\"v\"",
        "\"name\":\"app\"",
        "\"user\":\"default\"",
        "\"database\":0",
    ] {
        assert!(get.contains(part), "{part} in {get}");
    }
    assert!(of("LPUSH").contains("\"reply\":{\"error\":\"WRONGTYPE"), "{}", of("LPUSH"));
    assert!(of("INCR").contains("\"source\":\"transaction\"") && !stream.text.contains("QUEUED"), "{}", stream.text);
    assert!(stream.text.contains("\"source\":\"script\""), "{}", stream.text);
    let keys = stream.events("keys").concat();
    assert!(keys.contains("\"k\"") && keys.contains("\"n\""), "{keys}");
}

#[test]
fn long_words_and_replies_are_cut() {
    let (server, address, token) = start();
    let mut stream = Stream::open(address, &token, "");
    let mut client = connect(server.address());
    let large = "x".repeat(1_000_000);
    client.ask(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n{large}\r\n"), "+OK\r\n");
    client.ask(
        "RPUSH list 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32\r\n",
        ":32\r\n",
    );
    client.ask("GETRANGE k 0 1999\r\nECHO end\r\n", format!("$2000\r\n{}\r\n$3\r\nend\r\n", &large[..2000]));
    stream.wait_for("\"end\"");
    let cut = &large[..256];
    for part in [
        &*format!("\"command\":[\"SET\",\"k\",{{\"cut\":\"{cut}\",\"length\":1000000}}]"),
        &format!("\"reply\":{{\"cut\":\"{cut}\",\"length\":2000}}"),
        ",\"30\",{\"more\":2}]",
    ] {
        assert!(stream.text.contains(part), "{part}");
    }
    assert!(stream.text.len() < 10_000, "{}", stream.text.len());
}

#[test]
fn filters_run_in_the_server_and_the_page_is_left_out() {
    let (server, address, token) = start();
    let mut stream = Stream::open(address, &token, "?command=get&key=app%3A*");
    let mut errors = Stream::open(address, &token, "?errors=1&page=1");
    let mut client = connect(server.address());
    client.ask("GET app:1\r\nGET other\r\nSET app:2 v\r\n", "$-1\r\n$-1\r\n+OK\r\n");
    let headers = format!("Content-Type: application/json\r\nX-Dunlin: {token}\r\n");
    let body = br#"{"commands":[["GET","app:page"],["INCR","app:2"]]}"#;
    assert_eq!(http::post(address, "/command", &headers, body).expect("it answers").status, 200);
    client.ask("GET app:end\r\n", "$-1\r\n");
    stream.wait_for("app:end");
    let commands: Vec<bool> =
        stream.events("command").iter().map(|data| data.contains("app:1") || data.contains("app:end")).collect();
    assert_eq!(commands, [true, true], "{}", stream.text);
    errors.wait_for("not an integer");
    assert_eq!(errors.events("command").len(), 1, "{}", errors.text);
}

#[test]
fn the_clock_and_findings_are_shown_when_they_change() {
    let (server, address, token) = start();
    let mut stream = Stream::open(address, &token, "");
    let mut client = connect(server.address());
    client.ask("DUNLIN STRICT SET lossy-scores warn\r\nZADD z 90071992547409930 m\r\n", "+OK\r\n:1\r\n");
    stream.wait_for("event: finding");
    let finding = stream.events("finding").concat();
    assert!(finding.contains(",\"rule\":\"lossy-scores\",\"level\":\"warn\",\"text\":\""), "{finding}");
    let command = stream.events("command").concat();
    let field = |name: &str, end: char| {
        let (_, rest) = command.split_once(name).expect("a command has that field");
        format!("{name}{}", rest.split(end).next().expect("it has an end"))
    };
    let (time, id) = (field("\"time\":", ','), field(",\"client\":\"", '"'));
    assert!(finding.starts_with(&format!("{{{time},")), "the time of the command: {finding} {time}");
    assert!(finding.ends_with(&format!("{id}\",\"name\":\"\"}}")), "the client of the command: {finding} {id}");
    let mut later = Stream::open(address, &token, "");
    client.ask("ZADD z 90071992547409932 n\r\n", ":1\r\n");
    later.wait_for("event: finding");
    assert_eq!(later.events("finding").len(), 1, "what was found before is not new: {}", later.text);
    client.ask("SET k v\r\nDUNLIN SET-TIME 4000000000000\r\n", "+OK\r\n:4000000000000\r\n");
    stream.wait_for("\"time\":40000000000");
    client.send("DUNLIN FREEZE\r\n");
    client.read_until(b"\r\n");
    client.ask("DUNLIN SET-TIME 3000000000000\r\n", ":3000000000000\r\n");
    stream.wait_for("{\"time\":3000000000000,\"frozen\":true");
    client.ask("DUNLIN RESUME\r\n", "+OK\r\n");
    let mut socket = connect(server.address());
    socket.ask("DUNLIN SPEED 60\r\n", "+OK\r\n");
    stream.wait_for("\"frozen\":false,\"speed\":60}");
}

#[test]
fn a_reader_that_does_not_read_loses_the_oldest_commands_and_costs_nobody_time() {
    let (server, address, token) = start();
    let readers: Vec<Stream> = (0..8).map(|_| Stream::open(address, &token, "")).collect();
    let mut client = connect(server.address());
    for _ in 0..200 {
        client
            .ask("SET k vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\r\n".repeat(500), "+OK\r\n".repeat(500));
    }
    client.ask("ECHO last\r\n", "$4\r\nlast\r\n");
    for mut reader in readers {
        reader.wait_for("event: lag\n");
        reader.wait_for("\"last\"");
    }
    wait_until("the readers have left, and nobody watches", || {
        client.ask("ECHO a\r\n", "$1\r\na\r\n");
        http::get(address, "/metrics", "").expect("it answers").body.contains("\nredis_connected_clients 1\n")
    });
}

#[test]
fn many_commands_come_whole_and_in_order() {
    let (server, address, token) = start();
    let mut stream = Stream::open(address, &token, "");
    let mut client = connect(server.address());
    let text = "v".repeat(200);
    let commands: String = (0..500).map(|number| format!("SET key:{number} {text}\r\n")).collect();
    client.ask(commands, "+OK\r\n".repeat(500));
    // The names of changed keys may come before the command.
    stream.wait_for("\"SET\",\"key:499\"");
    let keys = stream.events("command");
    let keys = keys.iter().filter_map(|data| data.split_once("\"SET\",\"")?.1.split_once('"')).map(|(key, _)| key);
    assert!(keys.eq((0..500).map(|number| format!("key:{number}"))), "{}", stream.text);
}

/// The memory of a program that is no file's, in kilobytes.
#[cfg(target_os = "linux")]
fn anonymous_kb(server: &Running) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("the system says so");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number")
}

/// On its way to a reader is a part of some commands in each place, and not all that the feed keeps.
#[cfg(target_os = "linux")]
#[test]
fn sixty_four_readers_that_do_not_read_leave_the_server_small_and_others_served() {
    let (server, address, token) = start();
    let mut client = connect(server.address());
    let text = "v".repeat(200);
    let (commands, replies) = (format!("ECHO {text}\r\n").repeat(500), format!("$200\r\n{text}\r\n").repeat(500));
    client.ask(&commands, &replies);
    let before = anonymous_kb(&server);
    let readers: Vec<Stream> = (0..64).map(|_| Stream::open(address, &token, "")).collect();
    (0..60).for_each(|_| client.ask(&commands, &replies));
    let all_kb = anonymous_kb(&server);
    let each_kb = all_kb.saturating_sub(before) / readers.len();
    assert!(each_kb < 500 && all_kb < 64 << 10, "{each_kb} KB for each reader, {all_kb} KB in all");
    assert_eq!(http::get(address, "/ready", "").expect("it answers").status, 200);
}

#[test]
fn a_stream_beyond_the_last_place_is_refused_until_one_ends() {
    let (server, address, token) = start();
    let mut client = connect(server.address());
    let mut streams: Vec<Stream> = (0..64).map(|_| Stream::open(address, &token, "")).collect();
    let headers = format!("X-Dunlin: {token}\r\n");
    let refused = http::get(address, "/stream", &headers).expect("it answers");
    assert_eq!((refused.status, &*refused.body), (503, r#"{"error":"There are too many streams, or clients."}"#));
    let body = br#"{"commands":[["PING"]]}"#;
    let headers = format!("{headers}Content-Type: application/json\r\n");
    assert_eq!(http::post(address, "/command", &headers, body).expect("it answers").status, 200, "others are served");
    drop(streams.pop());
    wait_until("its place is free", || {
        // That a reader is gone is noticed when there is something for it.
        client.ask("ECHO a\r\n", "$1\r\na\r\n");
        let mut socket = TcpStream::connect(address).expect("it listens");
        let head = format!("GET /stream HTTP/1.0\r\nHost: {address}\r\nX-Dunlin: {token}\r\n\r\n");
        socket.write_all(head.as_bytes()).expect("it reads");
        let mut status = [0; 12];
        socket.read_exact(&mut status).expect("it answers");
        status.ends_with(b" 200")
    });
}

#[test]
fn a_stream_is_passed_on_by_proxies_as_it_comes() {
    let (_server, address, token) = start();
    let stream = Stream::open(address, &token, "");
    assert!(stream.text.to_lowercase().contains("x-accel-buffering: no"), "{}", stream.text);
}

#[test]
fn a_stream_shows_the_commands_of_the_clients_with_a_name() {
    let (server, address, token) = start();
    let mut stream = Stream::open(address, &token, "?client=depot");
    let mut client = connect(server.address());
    client.ask("SET a 1\r\nCLIENT SETNAME depot\r\nSET b 2\r\n", "+OK\r\n+OK\r\n+OK\r\n");
    let mut other = connect(server.address());
    other.ask("CLIENT SETNAME shop\r\nSET c 3\r\n", "+OK\r\n+OK\r\n");
    client.ask("SET end 1\r\n", "+OK\r\n");
    stream.wait_for("\"end\"");
    let commands = stream.events("command").concat();
    assert!(commands.contains("\"SET\",\"b\""), "{commands}");
    assert!(!commands.contains("\"SET\",\"a\"") && !commands.contains("\"SET\",\"c\""), "{commands}");
}

#[test]
fn a_stream_has_a_token_a_known_world_and_a_user_with_all_rights() {
    let (server, address, token) = start();
    let get = |headers: &str, query: &str| {
        http::get(address, &format!("/stream{query}"), headers).expect("it answers").status
    };
    let token = format!("X-Dunlin: {token}\r\n");
    assert_eq!(get("", ""), 403);
    assert_eq!(get("X-Dunlin: no\r\n", ""), 403);
    assert_eq!(get(&format!("{token}Origin: http://evil.test\r\n"), ""), 403);
    assert_eq!(get(&token, "?world=none"), 404);
    assert_eq!(get(&token, "?wrong=1"), 400);
    let mut client = connect(server.address());
    client.ask("ACL SETUSER a on >x +@all ~app:*\r\nCONFIG SET requirepass pw\r\n", "+OK\r\n+OK\r\n");
    assert_eq!(get(&token, ""), 401);
    assert_eq!(get(&format!("{token}Authorization: Basic YTp4\r\n"), ""), 403);
}

#[test]
fn a_stream_ends_when_its_user_loses_rights() {
    let (server, address, token) = start();
    let mut client = connect(server.address());
    client.ask("ACL SETUSER admin on nopass +@all ~* &*\r\n", "+OK\r\n");
    let login = "Authorization: Basic YWRtaW46eA=="; // admin:x
    let mut stream = Stream::open(address, &format!("{token}\r\n{login}"), "");
    client.ask("SET a 1\r\n", "+OK\r\n");
    stream.wait_for("\"SET\"");
    client.ask("ACL SETUSER admin -@all\r\nSET b 1\r\n", "+OK\r\n+OK\r\n");
    let mut rest = Vec::new();
    stream.socket.read_to_end(&mut rest).expect("it ends");
    assert!(!String::from_utf8_lossy(&rest).contains("\"b\""), "it shows nothing more");
}

#[test]
fn a_stream_of_a_temporary_world_ends_with_its_last_client() {
    let (server, address, token) = start();
    let mut client = connect(server.address());
    client.ask("DUNLIN WORLD short TEMPORARY\r\nSET k v\r\n", "+OK\r\n+OK\r\n");
    let mut stream = Stream::open(address, &token, "?world=short");
    client.ask("GET k\r\n", "$1\r\nv\r\n");
    stream.wait_for("\"GET\"");
    drop(client);
    let mut rest = Vec::new();
    stream.socket.read_to_end(&mut rest).expect("it ends");
    let mut client = connect(server.address());
    client.ask("DUNLIN WORLD short\r\nGET k\r\n", "+OK\r\n$-1\r\n");
}
