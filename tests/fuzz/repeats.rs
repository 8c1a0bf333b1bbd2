//! Determinism: the same seed and the same requests at the same moments give the same bytes to every client. With
//! another seed, each command that chooses at random replies differently.
//!
//! Two servers get the same random requests and lines that need random choices: random members, orders of scans,
//! scripts, and eviction. A third one has another seed, and is compared command by command.

use std::collections::BTreeSet;

use crate::choices::Choices;
use crate::play::Play;
use crate::world::World;

/// Requests that chance has a part in, and what they need.
const LINES: &[&str] = &[
    "SADD set # # # # #",
    "SPOP set",
    "SPOP set 3",
    "SRANDMEMBER set 5",
    "SRANDMEMBER set -5",
    "SSCAN set #",
    "SADD words a# b# c#",
    "SMEMBERS words",
    "HSET hash f# # f# # f# #",
    "HRANDFIELD hash 5 WITHVALUES",
    "HRANDFIELD hash -5",
    "HSCAN hash #",
    "ZADD zset # m# # m#",
    "ZRANDMEMBER zset 5 WITHSCORES",
    "ZRANDMEMBER zset -5",
    "ZSCAN zset #",
    "SET key:# # PX #",
    "SET key:# #",
    "SETRANGE key:# # x",
    "GET key:#",
    "DEL key:# key:#",
    "RANDOMKEY",
    "SCAN #",
    "SCAN 0 COUNT 50",
    "KEYS *",
    "SORT set BY nosort LIMIT 0 5",
    "EVAL return{math.random(1000),redis.call('SRANDMEMBER','set')} 0",
    "CLIENT ID",
    "ACL GENPASS",
    "LOLWUT",
    "PFADD sketch # #",
    "PFCOUNT sketch",
    "CONFIG SET maxmemory-policy allkeys-random",
    "CONFIG SET maxmemory-policy allkeys-lru",
    "CONFIG SET maxmemory-policy allkeys-lfu",
    "CONFIG SET maxmemory-policy volatile-lru",
    "CONFIG SET maxmemory-policy volatile-random",
    "CONFIG SET maxmemory-policy volatile-ttl",
    "CONFIG SET maxmemory 12000",
    "CONFIG SET maxmemory 15000",
    "CONFIG SET maxmemory 0",
    "INFO stats",
    "OBJECT FREQ key:#",
    "CLIENT TRACKING ON",
    "CONFIG SET tracking-table-max-keys 5",
];

/// Commands that answer otherwise with another seed, though everything else is the same.
const CHOOSING: &[&str] = &[
    "SPOP numbers 5",
    "SRANDMEMBER numbers 5",
    "SRANDMEMBER numbers -5",
    "HRANDFIELD fields 5",
    "ZRANDMEMBER scores 5",
    "RANDOMKEY",
    "SCAN 0 COUNT 20",
    "KEYS key:1*",
    "EVAL return{math.random(1000000)} 0",
    "ACL GENPASS",
    "LOLWUT",
];

/// Plays twice with one seed.
pub fn run(seed: u64, rounds: u64) {
    let [mut one, mut two] = [seed; 2].map(Play::new);
    (one.lines, two.lines) = (LINES, LINES);
    let (mut choices, mut again) = (Choices::Seed(seed | 1), Choices::Seed(seed | 1));
    let (mut evicted, mut counted) = (0, 0);
    for round in 0..rounds {
        let context = format!("seed {seed} round {round}");
        one.step(&mut choices, &context);
        two.step(&mut again, &context);
        if one.received != two.received {
            assert_eq!(without_addresses(&one), without_addresses(&two), "{context}");
        }
        // The counter can be reset.
        evicted += one.world.engine.stats.evicted_keys.saturating_sub(counted);
        counted = one.world.engine.stats.evicted_keys;
    }
    assert!(evicted > rounds / 1000, "only {evicted} keys were evicted");
    let differing: BTreeSet<&str> = (0..5).flat_map(|other| differing(seed, seed + 1 + other)).collect();
    assert_eq!(differing, CHOOSING.iter().copied().collect());
}

/// The commands whose replies differ on a server with another seed.
fn differing(seed: u64, other: u64) -> Vec<&'static str> {
    let [mut one, mut same, mut other] = [seed, seed, other].map(|seed| {
        let mut world = World::seeded(seed, |_| ());
        for number in 0..100 {
            world.ask(&format!("SADD numbers {number}"));
            world.ask(&format!("HSET fields f{number} v"));
            world.ask(&format!("ZADD scores 0 m{number}"));
            world.ask(&format!("SET key:{number} v"));
        }
        world
    });
    let differs = |line: &&&str| {
        let reply = one.ask(line);
        assert_eq!(same.ask(line), reply, "{line}");
        other.ask(line) != reply
    };
    CHOOSING.iter().filter(differs).copied().collect()
}

/// The received lines, without those that depend on addresses in memory: the memory of script interpreters, whose
/// tables are ordered by addresses, the length of a text with that figure, and the order in which Lua has a RESP3 set
/// whose members are tables.
pub fn without_addresses(play: &Play) -> Vec<String> {
    let text = play.received.escape_ascii().to_string();
    let is_info = text.contains("used_memory_lua:");
    let (mut lines, mut follows_sum) = (Vec::new(), false);
    for line in text.split("\\r\\n") {
        let is_sum = ["$", "=", "used_memory_lua", "used_memory_vm"].iter().any(|start| line.starts_with(start));
        let is_of_info = is_sum || line.contains("_lua:");
        if !(follows_sum || is_info && is_of_info) {
            lines.push(line.to_owned());
        }
        follows_sum = line == "script.VMs";
    }
    if play.last_request.contains("setresp(3)") {
        lines.sort_unstable();
    }
    lines
}
