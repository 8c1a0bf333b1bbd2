//! Files of other servers than the one as which this one replies: Redis 7 and Valkey load what is written here with the
//! `rdb-version` that they read, and what they write is loaded here; no side's tool for files finds anything wrong.

use std::fs;
use std::path::Path;

use dunlin::Server;

use crate::files::{Folder, ask, run, told_by};
use crate::oracle::{Process, Program};
use crate::program::dunlin;
use crate::timeout::wait_until;

/// A script that fills collections of every type, small and large. There is nothing of which these servers compute
/// another digest: Redis 7 writes a score in 17 digits, and Valkey has deadlines of fields in it, which have a test of
/// their own.
const FILL: &str = "for i = 1, 600 do \
    local text = string.rep('x', i % 70) .. i; \
    redis.call('SET', 'text' .. i, text); redis.call('SET', 'number' .. i, i * 7919); \
    redis.call('RPUSH', 'list', text, i); redis.call('RPUSH', 'list' .. i % 9, i, text); \
    redis.call('SADD', 'set', text); redis.call('SADD', 'set' .. i % 9, i); redis.call('SADD', 'some' .. i % 40, text); \
    redis.call('ZADD', 'zset', i / 8, text); redis.call('ZADD', 'zset' .. i % 40, i, text); \
    redis.call('HSET', 'hash', text, i); redis.call('HSET', 'hash' .. i % 40, i, text); \
    redis.call('XADD', 'stream', i .. '-1', text, i, 'field', text); redis.call('PFADD', 'sketch', text); \
    if i % 3 == 0 then redis.call('PEXPIRE', 'text' .. i, 100000000 + i) end end; \
    redis.call('XGROUP', 'CREATE', 'stream', 'group', '0'); redis.call('XDEL', 'stream', '5-1', '17-1'); \
    redis.call('XREADGROUP', 'GROUP', 'group', 'ann', 'COUNT', 50, 'STREAMS', 'stream', '>')";
const LIBRARY: &str = r##"FUNCTION LOAD "#!lua name=lib\nredis.register_function('one', function() return 1 end)""##;

/// A server of another version, and the version of RDB files that it writes and reads.
struct Other {
    program: Program,
    name: String,
    rdb_version: &'static str,
    is_valkey: bool,
}

/// The servers of other versions on this machine.
fn others(task: &str) -> Vec<Other> {
    let other = |program: Program| {
        let info = told_by(Process::start(&program).expect("it starts").address, "INFO server");
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let valkey = field("valkey_version:");
        let version = field("redis_version:").expect("INFO has it");
        let rdb_version = match version.as_str() {
            _ if valkey.is_some() => "11",
            old if old.starts_with("7.0.") => "10",
            old if old.starts_with("7.2.") => "11",
            _ => "12",
        };
        let is_valkey = valkey.is_some();
        Other { program, name: valkey.map_or(version, |version| format!("Valkey {version}")), rdb_version, is_valkey }
    };
    Program::others(task).into_iter().map(other).collect()
}

impl Other {
    fn start(&self, arguments: &[&str]) -> Process {
        Process::start_with(&self.program, arguments).expect("it starts")
    }
}

/// The digest of a server's data, the number of keys, and the reply of a function of its library.
fn contents(told: impl Fn(&str) -> String) -> [String; 3] {
    ["DEBUG DIGEST", "DBSIZE", "FCALL one 0"].map(told)
}

fn contents_of(server: &Server) -> [String; 3] {
    let address = server.addr();
    contents(|command| told_by(address, command))
}

/// Panics if our tool finds something wrong with a file.
pub(crate) fn expect_whole(file: &Path) {
    let output = dunlin(&["check", file.to_str().expect("it is text")]).output().expect("it runs");
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stdout));
}

#[test]
fn rdb_files_go_to_other_versions_and_back() {
    for other in others("RDB files of other versions") {
        let theirs = other.start(&[]);
        let told = |command: &str| told_by(theirs.address, command);
        assert_eq!(told(&format!("EVAL \"{FILL}\" 0")), "$-1", "{}", other.name);
        assert_eq!(told(LIBRARY), "$3\r\nlib", "{}", other.name);
        assert_eq!(told("SAVE"), "+OK");
        let before = contents(told);
        expect_whole(&theirs.folder().join("dump.rdb"));
        let ours = Server::builder().set("dir", theirs.folder().to_str().expect("it is text"));
        let ours = ours.set("rdb-version", other.rdb_version).allow_debug().start().expect("their file is loaded");
        assert_eq!(contents_of(&ours), before, "{} to here", other.name);

        run(&ours, "RPUSH list1 more\nSET new 1\nSELECT 7\nSET other 2\nSAVE");
        other.program.expect_accepted("rdb", &theirs.folder().join("dump.rdb"));
        assert_eq!(told("DEBUG RELOAD NOSAVE"), "+OK", "from here to {}", other.name);
        assert_eq!(contents(told), contents_of(&ours), "from here to {}", other.name);
    }
}

#[test]
fn append_only_files_go_to_other_versions_and_back() {
    for other in others("append-only files of other versions") {
        let folder = Folder::new(&format!("aof-{}", other.name));
        let ours = Server::builder().set("dir", folder.text()).set("appendonly", "yes");
        let ours = ours.set("rdb-version", other.rdb_version).allow_debug().start().expect("it starts");
        let ask_ours = |command: &str| told_by(ours.addr(), command);
        assert_eq!(ask_ours(&format!("EVAL \"{FILL}\" 0")), "$-1");
        assert_eq!(ask_ours(LIBRARY), "$3\r\nlib");
        run(&ours, "BGREWRITEAOF");
        wait_until("it is rewritten", || ask_ours("INFO persistence").contains("aof_rewrite_in_progress:0"));
        run(&ours, "SET text1 later\nXADD stream 1000-1 f v\nRPUSH list x\nSPOP set\nINCRBYFLOAT number1 1.5");
        let files = folder.0.join("appendonlydir");
        other.program.expect_accepted("aof", &files.join("appendonly.aof.manifest"));

        let theirs = other.start(&["--appendonly", "yes"]);
        let told = |command: &str| told_by(theirs.address, command);
        let their_files = theirs.folder().join("appendonlydir");
        for name in crate::files::names_in(&files) {
            fs::copy(files.join(&name), their_files.join(&name)).expect("it can be copied");
        }
        assert_eq!(told("DEBUG LOADAOF"), "+OK", "from here to {}", other.name);
        assert_eq!(contents(told), contents_of(&ours), "from here to {}", other.name);

        assert_eq!(told("BGREWRITEAOF"), "+Background append only file rewriting started");
        wait_until("it has rewritten them", || told("INFO persistence").contains("aof_rewrite_in_progress:0"));
        assert_eq!(told("RPUSH list again"), ":1202", "{}", other.name);
        expect_whole(&their_files.join("appendonly.aof.manifest"));
        let loaded = Server::builder().load(&their_files).allow_debug().start().expect("their files are loaded");
        assert_eq!(contents_of(&loaded), contents(told), "{} to here", other.name);
        assert_eq!(ask(&loaded, "DBSIZE"), ask(&ours, "DBSIZE"));
    }
}

/// Valkey has a form of them in its files that no Redis reads.
#[test]
fn deadlines_of_fields_come_here_from_valkey() {
    let fields = "for i = 1, 600 do redis.call('HSET', 'large', 'f' .. i, i) end";
    for other in others("deadlines of fields in files of Valkey").iter().filter(|other| other.is_valkey) {
        let theirs = other.start(&["--appendonly", "yes"]);
        let told = |command: &str| told_by(theirs.address, command);
        assert_eq!(told(&format!("EVAL \"{fields}\" 0")), "$-1", "{}", other.name);
        assert_eq!(told("HSET small a 1 b two"), ":2");
        assert_eq!(told("HPEXPIREAT small 4000000000000 FIELDS 1 a"), "*1\r\n:1");
        assert_eq!(told("HPEXPIREAT large 4000000000123 FIELDS 2 f7 f600"), "*2\r\n:1\r\n:1");
        assert_eq!(told("SAVE"), "+OK");
        let dump = theirs.folder().join("dump.rdb");
        expect_whole(&dump);
        let lines = [
            "HPEXPIRETIME small FIELDS 2 a b",
            "HPEXPIRETIME large FIELDS 3 f6 f7 f600",
            "HGETALL small",
            "HLEN large",
        ];
        let ours = Server::builder().load(&dump).start().expect("their file is loaded");
        assert_eq!(lines.map(|line| told_by(ours.addr(), line)), lines.map(told), "{}", other.name);
        assert_eq!(told("HPEXPIRETIME small FIELDS 2 a b"), "*2\r\n:4000000000000\r\n:-1");

        assert_eq!(told("BGREWRITEAOF"), "+Background append only file rewriting started");
        wait_until("it has rewritten them", || told("INFO persistence").contains("aof_rewrite_in_progress:0"));
        assert_eq!(told("HPEXPIREAT large 4000000000456 FIELDS 1 f6"), "*1\r\n:1");
        let ours =
            Server::builder().load(theirs.folder().join("appendonlydir")).start().expect("their files are loaded");
        assert_eq!(lines.map(|line| told_by(ours.addr(), line)), lines.map(told), "{}", other.name);
    }
}

#[test]
fn keys_migrate_to_other_versions_and_back() {
    const KEYS: &str = "text1 number1 list set zset hash";
    for other in others("keys that migrate to other versions") {
        let (theirs, ours) = (other.start(&[]), Server::builder().allow_debug().start().expect("it starts"));
        let (told, ask_ours) =
            (|command: &str| told_by(theirs.address, command), |command: &str| told_by(ours.addr(), command));
        assert_eq!(ask_ours(&format!("EVAL \"{FILL}\" 0")), "$-1");
        let digests = |told: &dyn Fn(&str) -> String| told(&format!("DEBUG DIGEST-VALUE {KEYS}"));
        let before = digests(&ask_ours);
        let migrate = |port: u16| format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 KEYS {KEYS}");
        assert_eq!(ask_ours(&migrate(theirs.address.port())), "+OK", "from here to {}", other.name);
        assert_eq!(digests(&told), before, "from here to {}", other.name);
        assert_eq!(ask_ours("EXISTS hash"), ":0");
        assert_eq!(told(&migrate(ours.addr().port())), "+OK", "from {} to here", other.name);
        assert_eq!(digests(&ask_ours), before, "from {} to here", other.name);
        if other.is_valkey {
            assert_eq!(told("HSET deadlines a 1 b two"), ":2");
            assert_eq!(told("HPEXPIREAT deadlines 4000000000000 FIELDS 1 a"), "*1\r\n:1");
            let fields = ["HPEXPIRETIME deadlines FIELDS 2 a b", "HGETALL deadlines"];
            let before = fields.map(told);
            assert_eq!(told(&format!("MIGRATE 127.0.0.1 {} deadlines 0 5000", ours.addr().port())), "+OK");
            assert_eq!(fields.map(ask_ours), before, "from {} to here", other.name);
        }
    }
}
