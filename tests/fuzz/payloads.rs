//! Any bytes as what DUMP would have answered: RESTORE refuses them, or makes a key of them that every command can work
//! with and that comes back the same from one more DUMP and RESTORE.

use crate::world::World;
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
    &["COPY", "key", "copy", "REPLACE"],
    &["OBJECT", "ENCODING", "key"],
    &["DEBUG", "RELOAD"],
];

thread_local! {
    /// One world for all: making one takes longer than what is tried in it.
    static WORLD: RefCell<World> = RefCell::new(World::fresh());
}

pub fn run(bytes: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        let payload = rdb::sealed(bytes.to_vec());
        if ask(world, &[b"RESTORE", b"key", b"0", &payload, b"REPLACE"]) != b"+OK\r\n" {
            return;
        }
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

/// What the key holds, if it holds something, is the same after a DUMP and a RESTORE.
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
    world.send(world.client, words).0
}

fn content(reply: &[u8]) -> Option<&[u8]> {
    let start = reply.iter().position(|&byte| byte == b'\n')? + 1;
    (!reply.starts_with(b"$-1")).then(|| &reply[start..reply.len() - 2])
}
