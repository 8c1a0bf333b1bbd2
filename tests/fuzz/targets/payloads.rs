//! Fuzzes payloads of RESTORE: each is refused, or creates a key that works with every command and is the same after
//! another DUMP and RESTORE.

use crate::support::limits;
use crate::support::world::World;
use dunlin::rdb;
use std::cell::RefCell;

/// Commands for any type: those for another one are refused.
const TRAFFIC: &[&[&str]] = &[
    &["APPEND", "key", "x"],
    &["SETRANGE", "key", "3", "abc"],
    &["LPUSH", "key", "a", "12"],
    &["LRANGE", "key", "0", "-1"],
    &["LINSERT", "key", "BEFORE", "a", "b"],
    &["RPOP", "key", "2"],
    &["LTRIM", "key", "1", "-2"],
    &["SADD", "key", "a", "12", "13"],
    &["SMEMBERS", "key"],
    &["SPOP", "key", "2"],
    &["SREM", "key", "12"],
    &["HSET", "key", "f", "v", "12", "13"],
    &["HGETALL", "key"],
    &["HPEXPIRE", "key", "100000", "FIELDS", "2", "f", "12"],
    &["HPTTL", "key", "FIELDS", "2", "f", "g"],
    &["HDEL", "key", "12"],
    &["ZADD", "key", "1.5", "a", "-inf", "b"],
    &["ZRANGE", "key", "0", "-1", "WITHSCORES"],
    &["ZRANGEBYSCORE", "key", "-inf", "5"],
    &["ZPOPMIN", "key", "2"],
    &["ZREM", "key", "a"],
    &["SORT", "key", "ALPHA", "LIMIT", "0", "5"],
    &["XADD", "key", "*", "f", "v"],
    &["XADD", "key", "MAXLEN", "~", "5", "*", "f", "v", "g", "12"],
    &["XRANGE", "key", "-", "+", "COUNT", "50"],
    &["XREVRANGE", "key", "+", "-", "COUNT", "5"],
    &["XREAD", "COUNT", "5", "STREAMS", "key", "0"],
    &["XINFO", "STREAM", "key", "FULL"],
    &["XINFO", "GROUPS", "key"],
    &["XGROUP", "CREATE", "key", "a", "0"],
    &["XGROUP", "CREATE", "key", "new", "$", "ENTRIESREAD", "3"],
    &["XGROUP", "CREATECONSUMER", "key", "a", "zoe"],
    &["XREADGROUP", "GROUP", "a", "ann", "COUNT", "3", "STREAMS", "key", ">"],
    &["XREADGROUP", "GROUP", "a", "ann", "STREAMS", "key", "0"],
    &["XPENDING", "key", "a"],
    &["XPENDING", "key", "a", "-", "+", "10", "ann"],
    &["XINFO", "CONSUMERS", "key", "a"],
    &["XCLAIM", "key", "a", "bob", "0", "1-0", "2-1", "3-1", "FORCE"],
    &["XDEL", "key", "1-0", "1-1", "2-1", "5-0"],
    &["XAUTOCLAIM", "key", "a", "eve", "0", "0", "COUNT", "10"],
    &["XACK", "key", "a", "1-0", "1-1", "2-1"],
    &["XGROUP", "DELCONSUMER", "key", "a", "ann"],
    &["XGROUP", "SETID", "key", "a", "0", "ENTRIESREAD", "1"],
    &["XTRIM", "key", "MAXLEN", "4"],
    &["XSETID", "key", "18446744073709551615-1"],
    &["XADD", "key", "*", "f", "v"],
    &["XGROUP", "DESTROY", "key", "new"],
    &["DEBUG", "OBJECT", "key"],
    &["DEBUG", "DIGEST"],
    &["DEBUG", "QUICKLIST-PACKED-THRESHOLD", "100b"],
    &["MEMORY", "USAGE", "key", "SAMPLES", "0"],
    &["COPY", "key", "copy", "REPLACE"],
    &["OBJECT", "ENCODING", "key"],
    &["DEBUG", "RELOAD"],
];

/// The most bytes of memory for each byte of a payload. A compressed byte represents up to 88, and each byte of a list
/// of integers may be an element.
const MAX_PER_BYTE: usize = 88 * 16;
/// The overhead of a key, in bytes of payload.
const SPARE: usize = 64;

thread_local! {
    /// One world for all: making one takes longer than what is tried in it.
    static WORLD: RefCell<World> = RefCell::new(World::fresh());
}

pub fn run(bytes: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        let payload = rdb::with_footer(bytes.to_vec());
        let before = memory_bytes(world);
        if ask(world, &[b"RESTORE", b"key", b"0", &payload, b"REPLACE"]) != b"+OK\r\n" {
            assert_eq!(memory_bytes(world), before, "a payload that is refused leaves something");
            return;
        }
        let more = memory_bytes(world) - before;
        assert!(more <= MAX_PER_BYTE * (bytes.len() + SPARE), "{} bytes become {more}", bytes.len());
        comes_back(world);
        for words in TRAFFIC {
            ask(world, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        }
        comes_back(world);
        world.engine.databases.iter().for_each(|database| database.check());
        ask(world, &[b"FLUSHALL"]);
        world.engine.effects.take();
    });
}

/// Checks that the value of the key, if it exists, is the same after a DUMP and a RESTORE.
fn comes_back(world: &mut World) {
    let reply = ask(world, &[b"DUMP", b"key"]);
    let Some(payload) = content(&reply) else { return };
    assert_eq!(ask(world, &[b"RESTORE", b"again", b"0", payload, b"REPLACE"]), b"+OK\r\n");
    let once = ask(world, &[b"DUMP", b"again"]);
    if let Some(payload) = content(&once) {
        assert_eq!(ask(world, &[b"RESTORE", b"still", b"0", payload, b"REPLACE"]), b"+OK\r\n");
        let [one, other] = [b"again", b"still"].map(|key| ask(world, &[b"DEBUG", b"DIGEST-VALUE", key]));
        assert!(one == other, "a value comes back as another");
    }
}

fn ask(world: &mut World, words: &[&[u8]]) -> Vec<u8> {
    let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
    let given = words.iter().map(|word| word.len()).sum::<usize>() + memory_bytes(world);
    let most = |reply: &Vec<u8>| limits::bytes_for(words[0], given + reply.len());
    limits::within_limits(shown, most, || world.send(world.client, words).0)
}

/// The memory of all data.
fn memory_bytes(world: &World) -> usize {
    world.engine.databases.memory_bytes()
}

fn content(reply: &[u8]) -> Option<&[u8]> {
    let start = reply.iter().position(|&byte| byte == b'\n')? + 1;
    (!reply.starts_with(b"$-1")).then(|| &reply[start..reply.len() - 2])
}
