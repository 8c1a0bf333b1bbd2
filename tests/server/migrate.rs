//! MIGRATE to another server: one of ours, one that a test simulates, and a real one if DUNLIN_ORACLE names it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use dunlin::Server;
use dunlin::rdb;

use crate::oracle::{Process, Program};
use crate::timeout::{TIMEOUT, wait_until};
use crate::wire::{Wire, connect, request};

/// Of every type and with a deadline; the hash has one of its fields.
const DATA: &[&str] = &[
    "SET text hello PX 100000",
    "RPUSH list a b 3",
    "SADD set 1 2 x",
    "SADD integers 1 2 3",
    "ZADD zset 1 a 2.5 b",
    "HSET hash f v g w",
    "HPEXPIRE hash 90000 FIELDS 1 f",
    "XADD stream 1-1 f v",
    "XGROUP CREATE stream group 0",
    "XREADGROUP GROUP group ann COUNT 1 STREAMS stream >",
    "PFADD sketch a b",
];

const KEYS: &str = "text list set integers zset hash stream sketch";

fn start() -> Server {
    Server::builder().allow_debug().start().expect("it starts")
}

/// A server that a test plays.
struct Played {
    listener: TcpListener,
    address: SocketAddr,
}

impl Played {
    fn open() -> Played {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        Played { listener, address }
    }

    fn accept(&self) -> Wire<TcpStream> {
        let (stream, _) = self.listener.accept().expect("the server connects");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
        Wire::new(stream)
    }
}

fn ask(client: &mut Wire<TcpStream>, command: &str, reply: &str) {
    client.ask(format!("{command}\r\n"), format!("{reply}\r\n"));
}

fn line(client: &mut Wire<TcpStream>, command: &str) -> String {
    client.send(format!("{command}\r\n"));
    client.read_until(b"\r\n")
}

fn migrate(to: SocketAddr, rest: &str) -> String {
    format!("MIGRATE {} {} {rest}", to.ip(), to.port())
}

/// The bytes of a RESTORE of that key, which holds that text; its payload is of the version of Redis 7.0.
fn restore(key: &str, text: &str, ttl_ms: &str, option: Option<&str>) -> Vec<u8> {
    let mut world = connect_alone();
    let dump = world.dump(text);
    let payload = rdb::with_footer_of(rdb::without_footer(&dump, true).expect("a footer").to_vec(), 10);
    let mut words = vec![b"RESTORE", key.as_bytes(), ttl_ms.as_bytes(), &payload];
    words.extend(option.map(str::as_bytes));
    request(&words)
}

/// A server that provides payloads.
struct Alone {
    _server: Server,
    client: Wire<TcpStream>,
}

fn connect_alone() -> Alone {
    let server = start();
    let client = connect(server.addr());
    Alone { _server: server, client }
}

impl Alone {
    fn dump(&mut self, text: &str) -> Vec<u8> {
        ask(&mut self.client, &format!("SET key {text}"), "+OK");
        self.client.send("DUMP key\r\n");
        self.client.read_bulk()
    }
}

#[test]
fn keys_of_every_type_migrate_unchanged() {
    let (here, there) = (start(), start());
    go_and_come_back(here.addr(), there.addr());
}

#[test]
fn only_hashes_with_deadlines_of_fields_need_a_target_of_the_last_version() {
    let (server, target) = (start(), Played::open());
    let mut client = connect(server.addr());
    for command in DATA {
        client.send(format!("{command}\r\n"));
    }
    client.send(format!("{}\r\n", migrate(target.address, &format!("\"\" 0 5000 KEYS {KEYS}"))));
    let mut peer = target.accept();
    peer.expect(request(&[b"SELECT", b"0"]));
    let mut versions = Vec::new();
    for key in KEYS.split(' ') {
        let words = peer.read_request();
        assert_eq!(words[1], key.as_bytes());
        versions.push((key, words[3][words[3].len() - 10]));
    }
    let expected = [
        ("text", 10),
        ("list", 10),
        ("set", 11),
        ("integers", 10),
        ("zset", 10),
        ("hash", 12),
        ("stream", 11),
        ("sketch", 10),
    ];
    assert_eq!(versions, expected);
}

#[test]
fn keys_migrate_to_a_real_server_and_back() {
    let Some(program) = Program::from_environment("MIGRATE to a real server") else { return };
    let (here, there) = (start(), Process::start(&program).expect("the real server starts"));
    go_and_come_back(here.addr(), there.address);
}

/// Moves keys from one server to the other and back, and sees that they are the same.
fn go_and_come_back(here: SocketAddr, there: SocketAddr) {
    let (mut ours, mut theirs) = (connect(here), connect(there));
    for command in DATA {
        ours.send(format!("{command}\r\n"));
    }
    ours.ask("ECHO done\r\n", "");
    drop(ours.read_until(b"done\r\n"));
    let digest = line(&mut ours, "DEBUG DIGEST");
    ask(&mut ours, &migrate(there, &format!("\"\" 0 5000 KEYS {KEYS} missing")), "+OK");
    ask(&mut ours, "DBSIZE", ":0");
    assert_eq!(line(&mut theirs, "DEBUG DIGEST"), digest);
    let ttl = line(&mut theirs, "PTTL text");
    let ttl: u64 = ttl.trim_start_matches(':').trim_end().parse().expect("there is a deadline");
    assert!((1..=100_000).contains(&ttl), "{ttl}");
    ask(&mut theirs, &migrate(here, &format!("\"\" 3 5000 COPY KEYS {KEYS}")), "+OK");
    ask(&mut theirs, "DBSIZE", ":8");
    ask(&mut ours, "SELECT 3", "+OK");
    ask(&mut ours, "DBSIZE", ":8");
    ask(&mut ours, "XPENDING stream group - + 10 ann", "*1\r\n*4\r\n$3\r\n1-1\r\n$3\r\nann");
}

#[test]
fn a_key_that_the_target_has_is_refused_and_stays_while_the_others_move() {
    let (here, there) = (start(), start());
    let (mut ours, mut theirs) = (connect(here.addr()), connect(there.addr()));
    ask(&mut ours, "MSET a 1 b 2 c 3", "+OK");
    ask(&mut theirs, "SET b other", "+OK");
    let refusal = "-ERR Target instance replied with error: BUSYKEY Target key name already exists.";
    ask(&mut ours, &migrate(there.addr(), "\"\" 0 5000 KEYS a b c"), refusal);
    ask(&mut ours, "EXISTS a b c", ":1");
    ask(&mut theirs, "MGET a b c", "*3\r\n$1\r\n1\r\n$5\r\nother\r\n$1\r\n3");
    ask(&mut ours, &migrate(there.addr(), "b 0 5000 REPLACE"), "+OK");
    ask(&mut theirs, "GET b", "$1\r\n2");
    ask(&mut ours, "EXISTS b", ":0");
}

#[test]
fn migrating_only_missing_keys_opens_no_connection() {
    let server = start();
    let mut client = connect(server.addr());
    ask(&mut client, "MIGRATE nowhere.invalid 1 a 0 10", "+NOKEY");
    ask(&mut client, "MIGRATE nowhere.invalid 1 \"\" 0 10 KEYS a b", "+NOKEY");
}

#[test]
fn the_requests_to_the_target_are_those_of_redis() {
    let (server, target) = (start(), Played::open());
    let mut client = connect(server.addr());
    ask(&mut client, "MSET a 1 b 2", "+OK");
    client.send(format!("{}\r\n", migrate(target.address, "a 5 5000 AUTH2 ann secret")));
    let mut peer = target.accept();
    peer.expect(request(&[b"AUTH", b"ann", b"secret"]));
    peer.expect(request(&[b"SELECT", b"5"]));
    peer.expect(restore("a", "1", "0", None));
    peer.send("+OK\r\n+OK\r\n+OK\r\n");
    client.expect("+OK\r\n");
    // The connection is kept, and its database is known.
    client.send(format!("{}\r\n", migrate(target.address, "b 5 5000 REPLACE AUTH secret")));
    peer.expect(request(&[b"AUTH", b"secret"]));
    peer.expect(restore("b", "2", "0", Some("REPLACE")));
    peer.send("+OK\r\n+OK\r\n");
    client.expect("+OK\r\n");
    client.send("INFO stats\r\n");
    assert!(client.read_until(b"slave_expires_tracked_keys:").contains("migrate_cached_sockets:1\r\n"));
}

#[test]
fn a_refused_login_at_the_target_keeps_the_keys() {
    let (server, target) = (start(), Played::open());
    let mut client = connect(server.addr());
    ask(&mut client, "MSET a 1 b 2", "+OK");
    client.send(format!("{}\r\n", migrate(target.address, "\"\" 0 5000 AUTH secret KEYS a b")));
    let mut peer = target.accept();
    // The login is refused although the server accepts everything else, as one without a password does.
    peer.send("-ERR no password is set\r\n+OK\r\n+OK\r\n+OK\r\n");
    client.expect("-ERR Target instance replied with error: ERR no password is set\r\n");
    ask(&mut client, "EXISTS a b", ":2");
    drop(peer);
    client.send(format!("{}\r\n", migrate(target.address, "a 99 5000")));
    let mut peer = target.accept();
    peer.expect(request(&[b"SELECT", b"99"]));
    peer.send("-ERR DB index is out of range\r\n+OK\r\n");
    client.expect("-ERR Target instance replied with error: ERR DB index is out of range\r\n");
    // The selected database of that connection is unknown now.
    client.send(format!("{}\r\n", migrate(target.address, "a 0 5000")));
    peer.expect(restore("a", "1", "0", None));
    peer.expect(request(&[b"SELECT", b"0"]));
    peer.expect(restore("a", "1", "0", None));
    peer.send("+OK\r\n+OK\r\n");
    client.expect("+OK\r\n");
}

#[test]
fn a_target_that_disconnects_has_the_keys_that_it_has_confirmed() {
    let (server, target) = (start(), Played::open());
    let mut client = connect(server.addr());
    ask(&mut client, "MSET a 1 b 2", "+OK");
    client.send(format!("{}\r\n", migrate(target.address, "\"\" 0 5000 KEYS a b")));
    let mut peer = target.accept();
    peer.send("+OK\r\n+OK\r\n");
    peer.expect(request(&[b"SELECT", b"0"]));
    peer.expect(restore("a", "1", "0", None));
    peer.expect(restore("b", "2", "0", None));
    drop(peer);
    client.expect("-IOERR error or timeout reading to target instance\r\n");
    ask(&mut client, "KEYS *", "*1\r\n$1\r\nb");
}

#[test]
fn a_connection_that_was_closed_meanwhile_is_reopened_once() {
    let (server, target) = (start(), Played::open());
    let mut client = connect(server.addr());
    ask(&mut client, "MSET a 1 b 2", "+OK");
    client.send(format!("{}\r\n", migrate(target.address, "a 0 5000")));
    let mut peer = target.accept();
    peer.send("+OK\r\n+OK\r\n");
    client.expect("+OK\r\n");
    drop(peer);
    client.send(format!("{}\r\n", migrate(target.address, "b 0 5000")));
    let mut peer = target.accept();
    peer.expect(request(&[b"SELECT", b"0"]));
    peer.expect(restore("b", "2", "0", None));
    peer.send("+OK\r\n+OK\r\n");
    client.expect("+OK\r\n");
    ask(&mut client, "SET c 3", "+OK");
    drop(peer);
    client.send(format!("{}\r\n", migrate(target.address, "c 0 5000")));
    let mut peer = target.accept();
    peer.expect(request(&[b"SELECT", b"0"]));
    peer.expect(restore("c", "3", "0", None));
    drop(peer);
    client.expect("-IOERR error or timeout reading to target instance\r\n");
    ask(&mut client, "EXISTS c", ":1");
}

#[test]
fn a_migration_waits_for_a_silent_or_missing_target_until_the_timeout_only() {
    let (server, target) = (start(), Played::open());
    let mut client = connect(server.addr());
    ask(&mut client, "SET a 1", "+OK");
    ask(&mut client, &migrate(target.address, "a 0 20"), "-IOERR error or timeout reading to target instance");
    let address = target.address;
    drop(target);
    ask(&mut client, &migrate(address, "a 0 1000"), "-IOERR error or timeout writing to target instance");
    ask(&mut client, "MIGRATE nowhere.invalid 1 a 0 5000", "-IOERR error or timeout connecting to the client");
    ask(&mut client, "EXISTS a", ":1");
}

#[test]
fn writes_of_other_clients_during_a_migration_are_not_lost() {
    let (server, target) = (start(), Played::open());
    let (mut client, mut other) = (connect(server.addr()), connect(server.addr()));
    ask(&mut client, "SET a 1", "+OK");
    ask(&mut other, "PING", "+PONG");
    client.send(format!("{}\r\n", migrate(target.address, "a 0 5000")));
    let mut peer = target.accept();
    peer.expect(request(&[b"SELECT", b"0"]));
    peer.expect(restore("a", "1", "0", None));
    other.send("SET a 2 XX GET\r\nSET a 2\r\n");
    peer.send("+OK\r\n+OK\r\n");
    client.expect("+OK\r\n");
    other.expect("$-1\r\n+OK\r\n");
    ask(&mut client, "GET a", "$1\r\n2");
}

#[test]
fn a_transaction_and_a_script_wait_for_a_migration_too() {
    let (here, there) = (start(), start());
    let (mut client, mut theirs) = (connect(here.addr()), connect(there.addr()));
    ask(&mut client, "MSET a 1 b 2", "+OK");
    client.ask("MULTI\r\n", "+OK\r\n");
    ask(&mut client, &migrate(there.addr(), "a 0 5000"), "+QUEUED");
    ask(&mut client, "EXISTS a", "+QUEUED");
    ask(&mut client, "EXEC", "*2\r\n+OK\r\n:0");
    let script = "EVAL \"local r = redis.call('MIGRATE', ARGV[1], ARGV[2], KEYS[1], 0, 5000) \
                  return {r, redis.call('EXISTS', KEYS[1])}\"";
    ask(&mut client, &format!("{script} 1 b 127.0.0.1 {}", there.addr().port()), "*2\r\n+OK\r\n:0");
    ask(&mut theirs, "EXISTS a b", ":2");
}

#[test]
fn a_server_that_shuts_down_does_not_wait_for_a_migration() {
    let (server, target) = (start(), Played::open());
    let mut client = connect(server.addr());
    ask(&mut client, "SET a 1", "+OK");
    client.send(format!("{}\r\n", migrate(target.address, "a 0 86400000")));
    let peer = target.accept();
    thread::scope(|scope| {
        let end = scope.spawn(move || drop(server));
        wait_until("the server ends", || end.is_finished());
    });
    drop(peer);
}

#[test]
fn passwords_of_migrate_are_shown_nowhere() {
    let (server, target) = (start(), Played::open());
    let (mut client, mut watcher) = (connect(server.addr()), connect(server.addr()));
    ask(&mut client, "SET auth 1", "+OK");
    ask(&mut watcher, "MONITOR", "+OK");
    let rest = "\"\" 0 5000 COPY AUTH one AUTH2 two three KEYS auth key";
    client.send(format!("{}\r\n", migrate(target.address, rest)));
    let mut peer = target.accept();
    peer.expect(request(&[b"AUTH", b"two", b"three"]));
    peer.send("+OK\r\n+OK\r\n+OK\r\n");
    client.expect("+OK\r\n");
    let shown = watcher.read_until(b"\"key\"\r\n");
    let words = "\"COPY\" \"AUTH\" \"(redacted)\" \"AUTH2\" \"(redacted)\" \"(redacted)\" \"KEYS\" \"auth\" \"key\"";
    assert!(shown.contains(words), "{shown}");
}

#[test]
fn keys_that_have_moved_are_deleted_in_the_log_of_changes() {
    let (here, there) = (start(), start());
    let mut client = connect(here.addr());
    ask(&mut client, "MSET a 1 b 2 c 3 taken 4 d 5", "+OK");
    there.client().expect("there is room").call(["SET", "taken", "1"]).expect("it is set");
    here.with_engine(|engine| engine.effects.propagation.turn_on());
    ask(&mut client, &migrate(there.addr(), "\"\" 0 1000 KEYS b nosuch c"), "+OK");
    let refused = line(&mut client, &migrate(there.addr(), "\"\" 0 1000 KEYS a taken"));
    assert!(refused.contains("BUSYKEY"), "{refused}");
    ask(&mut client, &migrate(there.addr(), "d 0 1000 COPY"), "+OK");
    let log = here.with_engine(|engine| engine.effects.propagation.take().bytes);
    let log = String::from_utf8(log).expect("these words are text");
    let deletions = "*3\r\n$3\r\nDEL\r\n$1\r\nb\r\n$1\r\nc\r\n*2\r\n$3\r\nDEL\r\n$1\r\na\r\n";
    assert_eq!(log, format!("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n{deletions}"));
}

/// Both servers take requests, and never answer.
#[test]
fn a_request_does_not_wait_for_that_of_another_world() {
    let (silent, other) = (Played::open(), Played::open());
    let server = start();
    let (world, address) = (server.world("other").expect("it is made"), silent.address);
    server.client().expect("there is room").call(["SET", "key", "1"]).expect("it is stored");
    let mut client = world.client().expect("there is room");
    client.call(["SET", "key", "1"]).expect("it is stored");
    thread::scope(|scope| {
        let mut first = server.client().expect("there is room");
        let waiting = scope.spawn(move || first.call(migrate(address, "key 0 600000").split(' ')).is_err());
        let accepted = silent.accept();
        let refused = client.call(migrate(other.address, "key 0 100").split(' ')).expect_err("there is no answer");
        assert_eq!(refused.to_string(), "IOERR error or timeout reading to target instance");
        assert!(!waiting.is_finished());
        drop((accepted, silent));
        assert!(waiting.join().expect("it ends"));
    });
}
