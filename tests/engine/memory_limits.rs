//! `maxmemory` and `maxmemory-clients`: which commands are refused, and which keys and clients are evicted.

use std::collections::BTreeMap;

use dunlin::engine::exec::eviction;
use dunlin::engine::{Effect, Flow, Settings};

use crate::world::World;

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

fn keys(world: &mut World) -> usize {
    world.engine.databases.len()
}

/// A world with `count` keys of ten bytes, and a limit that it has just reached.
fn full(count: usize, policy: &str) -> World {
    let mut world = World::fresh();
    for number in 0..count {
        world.ask(&format!("SET key:{number} value{number:05}"));
    }
    world.ask(&format!("CONFIG SET maxmemory-policy {policy} maxmemory-samples 10"));
    let used = eviction::used_bytes(&world.engine);
    world.ask(&format!("CONFIG SET maxmemory {used}"));
    world
}

#[test]
fn without_eviction_commands_that_may_add_are_refused_and_others_are_not() {
    let mut world = World::fresh();
    world.ask("SET key value");
    world.ask("CONFIG SET maxmemory 1");
    assert_eq!(world.ask("SET other value"), OOM);
    assert_eq!(world.ask("RPUSH list a"), OOM);
    assert_eq!(world.ask("GET key"), "$5\r\nvalue\r\n");
    assert_eq!(world.ask("DEL key"), ":1\r\n");
    assert!(world.ask("INFO stats").contains("evicted_keys:0\r\n"));
    world.ask("CONFIG SET maxmemory 0");
    assert_eq!(world.ask("SET other value"), "+OK\r\n");
}

#[test]
fn a_transaction_is_refused_when_it_is_queued_and_when_it_is_run() {
    let mut world = World::fresh();
    world.ask("MULTI");
    world.ask("SET key value");
    world.ask("CONFIG SET maxmemory 1");
    let other = world.join();
    world.ask_as(other, "CONFIG SET maxmemory 1");
    assert_eq!(
        world.ask("EXEC"),
        "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.\r\n"
    );
    world.ask("MULTI");
    assert_eq!(world.ask("SET key value"), OOM);
    assert_eq!(world.ask("EXEC"), "-EXECABORT Transaction discarded because of previous errors.\r\n");
    world.ask("MULTI");
    assert_eq!(world.ask("GET key"), "+QUEUED\r\n");
    assert_eq!(world.ask("EXEC"), "*1\r\n$-1\r\n");
}

#[test]
fn memory_stays_within_its_limit_under_every_policy_that_evicts() {
    for policy in [
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        let mut world = World::fresh();
        let used = eviction::used_bytes(&world.engine);
        let limit = used + 200_000;
        world.ask(&format!("CONFIG SET maxmemory {limit} maxmemory-policy {policy}"));
        for number in 0..20_000 {
            assert_eq!(world.ask(&format!("SETEX key:{number} {} value", 10_000 + number)), "+OK\r\n", "{policy}");
            // The last command may take one more segment of the table.
            assert!(eviction::used_bytes(&world.engine) <= limit + 6_000, "{policy} lets memory grow");
        }
        let left = keys(&mut world);
        assert!((1_000..10_000).contains(&left), "{policy} leaves {left} keys");
        assert_eq!(world.engine.stats.evicted_keys as usize + left, 20_000, "{policy}");
    }
}

#[test]
fn volatile_policies_spare_keys_without_a_deadline_and_refuse_when_no_others_are_left() {
    for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
        let mut world = full(1_000, policy);
        let mut refused = 0;
        for number in 0..500 {
            refused += usize::from(world.ask(&format!("SETEX volatile:{number} 1000 value")) == OOM);
        }
        assert!(refused < 500, "{policy}");
        for number in 0..500 {
            refused += usize::from(world.ask(&format!("SET lasting:{number} value")) == OOM);
        }
        assert!(refused > 400, "{policy} refused {refused}");
        for number in 0..1_000 {
            assert_eq!(world.ask(&format!("EXISTS key:{number}")), ":1\r\n", "{policy} took key:{number}");
        }
    }
}

#[test]
fn volatile_ttl_takes_the_keys_that_fall_due_first() {
    let mut world = World::fresh();
    for number in 0..1_000 {
        world.ask(&format!("SETEX key:{number} {} value", 1_000 + (number * 7919) % 1_000));
    }
    world.ask("CONFIG SET maxmemory-policy volatile-ttl maxmemory-eviction-tenacity 100");
    let limit = eviction::used_bytes(&world.engine) - 10_000;
    world.ask(&format!("CONFIG SET maxmemory {limit}"));
    world.ask("PING");
    let left: Vec<u64> = (0..1_000u64)
        .filter(|number| world.ask(&format!("EXISTS key:{number}")) == ":1\r\n")
        .map(|number| (number * 7919) % 1_000)
        .collect();
    let gone = 1_000 - left.len() as u64;
    assert!((50..500).contains(&gone), "{gone} are gone");
    assert!(left.iter().all(|&due| due >= gone), "a key went before one that falls due earlier");
}

/// The share of keys in use among the evicted ones, when a third of all keys is evicted.
fn used_among_the_gone(policy: &str, samples: usize) -> f64 {
    let mut world = World::fresh();
    world.ask(&format!("CONFIG SET maxmemory-policy {policy} maxmemory-samples {samples} lfu-log-factor 1"));
    let count = 3_000;
    (0..count).for_each(|number| _ = world.ask(&format!("SET key:{number} value{number:05}")));
    world.pass_ms(60_000);
    for _ in 0..5 {
        (0..count).step_by(2).for_each(|number| _ = world.ask(&format!("GET key:{number}")));
    }
    world.pass_ms(60_000);
    let limit = eviction::used_bytes(&world.engine) * 3 / 4;
    world.ask(&format!("CONFIG SET maxmemory {limit} maxmemory-eviction-tenacity 100"));
    world.ask("PING");
    let gone: Vec<usize> = (0..count).filter(|number| world.ask(&format!("EXISTS key:{number}")) == ":0\r\n").collect();
    assert!(gone.len() > 500, "{} are gone", gone.len());
    gone.iter().filter(|number| *number % 2 == 0).count() as f64 / gone.len() as f64
}

#[test]
fn keys_in_use_stay_and_others_are_evicted() {
    for policy in ["allkeys-lru", "allkeys-lfu"] {
        let (few, many) = (used_among_the_gone(policy, 5), used_among_the_gone(policy, 10));
        assert!(few < 0.02 && many < 0.01, "{policy}: {few} and {many} of the keys that went were in use");
    }
    let random = used_among_the_gone("allkeys-random", 5);
    assert!((0.4..0.6).contains(&random), "{random}");
}

#[test]
fn random_eviction_takes_keys_of_every_database() {
    let mut world = World::fresh();
    for database in [0, 3, 5] {
        world.ask(&format!("SELECT {database}"));
        (0..1_000).for_each(|number| _ = world.ask(&format!("SET key:{number} value")));
    }
    world.ask("CONFIG SET maxmemory-policy allkeys-random maxmemory-eviction-tenacity 100");
    let limit = eviction::used_bytes(&world.engine) / 2;
    world.ask(&format!("CONFIG SET maxmemory {limit}"));
    world.ask("PING");
    let left: Vec<usize> = [0, 3, 5].map(|number| world.engine.databases.get(number).len()).into();
    assert!(left.iter().all(|&len| len.abs_diff(left[0]) <= 1) && left[0] < 900, "{left:?}");
}

#[test]
fn the_same_seed_evicts_the_same_keys() {
    let gone = |seed: u64| {
        let mut world = World::seeded(seed, |settings| settings.policy = dunlin::engine::Policy::AllkeysLru);
        (0..500).for_each(|number| _ = world.ask(&format!("SET key:{number} value")));
        let limit = eviction::used_bytes(&world.engine) * 3 / 4;
        world.ask(&format!("CONFIG SET maxmemory {limit}"));
        world.ask("PING");
        (0..500).filter(|number| world.ask(&format!("EXISTS key:{number}")) == ":0\r\n").collect::<Vec<_>>()
    };
    assert_eq!(gone(7), gone(7));
    assert_ne!(gone(7), gone(8));
}

#[test]
fn an_evicted_key_is_announced_and_counted() {
    let mut world = full(100, "allkeys-random");
    world.engine.switches.records_key_events = true;
    (0..20).for_each(|number| _ = world.ask(&format!("SET more:{number} value")));
    let evicted = world.events().iter().filter(|event| event.contains(" evicted ")).count();
    assert!(evicted > 5, "{evicted}");
    assert_eq!(world.engine.stats.evicted_keys as usize, evicted);
}

#[test]
fn a_script_may_not_add_while_memory_is_short_until_it_has_written() {
    let mut world = World::fresh();
    world.ask("CONFIG SET maxmemory 1");
    let mut eval = |source: &str| {
        let client = world.client;
        String::from_utf8_lossy(&world.send(client, &[b"EVAL", source.as_bytes(), b"1", b"key"]).0).into_owned()
    };
    let refused = eval("return redis.call('set', KEYS[1], 'v')");
    assert!(refused.starts_with("-OOM command not allowed when used memory > 'maxmemory'. script: "), "{refused}");
    assert_eq!(eval("redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 'v')"), "+OK\r\n");
    assert_eq!(eval("return redis.call('get', KEYS[1])"), "$1\r\nv\r\n");
    assert_eq!(eval("#!lua\nreturn 1"), OOM);
    assert_eq!(eval("#!lua flags=no-writes\nreturn 1"), ":1\r\n");
    assert_eq!(eval("#!lua flags=allow-oom\nreturn redis.call('set', KEYS[1], 'w')"), "+OK\r\n");
}

#[test]
fn object_freq_needs_an_lfu_policy_and_object_idletime_another_one() {
    let mut world = World::with(|settings: &mut Settings| settings.lfu.log_factor = 0);
    world.ask("SET key value");
    world.pass_ms(5_000);
    assert_eq!(world.ask("OBJECT IDLETIME key"), ":5\r\n");
    assert!(world.ask("OBJECT FREQ key").starts_with("-ERR An LFU maxmemory policy is not selected"));
    world.ask("CONFIG SET maxmemory-policy allkeys-lfu");
    assert!(world.ask("OBJECT IDLETIME key").starts_with("-ERR An LFU maxmemory policy is selected"));
    assert_eq!(world.ask("OBJECT IDLETIME missing"), "$-1\r\n");
    world.ask("SET fresh value");
    assert_eq!(world.ask("OBJECT FREQ fresh"), ":5\r\n");
    (0..3).for_each(|_| _ = world.ask("GET fresh"));
    assert_eq!(world.ask("OBJECT FREQ fresh"), ":8\r\n");
    world.ask("CLIENT NO-TOUCH on");
    world.ask("GET fresh");
    assert_eq!(world.ask("OBJECT FREQ fresh"), ":8\r\n");
    world.ask("TOUCH fresh");
    assert_eq!(world.ask("OBJECT FREQ fresh"), ":9\r\n");
    world.pass_ms(120_000);
    assert_eq!(world.ask("OBJECT FREQ fresh"), ":7\r\n");
}

#[test]
fn the_largest_client_is_evicted_first_and_a_no_evict_client_never() {
    let mut world = World::fresh();
    let clients: BTreeMap<&str, _> =
        ["spared", "small", "large"].into_iter().map(|name| (name, world.join())).collect();
    world.ask_as(clients["spared"], "CLIENT NO-EVICT on");
    for (name, bytes) in [("spared", 400 << 10), ("small", 100 << 10), ("large", 300 << 10)] {
        world.ask_as(clients[name], "MULTI");
        world.send(clients[name], &[b"SET", b"key", &vec![b'x'; bytes]]);
        world.engine.sessions.account_memory(clients[name]);
    }
    world.ask("CONFIG SET maxmemory-clients 600kb");
    world.engine.evict_clients();
    let closed: Vec<_> = world.engine.effects.take();
    assert!(closed.iter().any(|effect| matches!(effect, Effect::Close(id) if *id == clients["large"])), "{closed:?}");
    assert_eq!(world.engine.stats.evicted_clients, 1);
    assert_eq!(world.ask_as(clients["large"], "PING").1, Flow::Abort);
    assert_eq!(world.ask_as(clients["small"], "DISCARD").0, "+OK\r\n");
    assert_eq!(world.ask_as(clients["spared"], "DISCARD").0, "+OK\r\n");
}

#[test]
fn maxmemory_clients_can_be_a_percentage_of_maxmemory() {
    let mut world = World::fresh();
    let large = world.join();
    world.ask_as(large, "MULTI");
    world.send(large, &[b"SET", b"key", &vec![b'x'; 200 << 10]]);
    world.engine.sessions.account_memory(large);
    world.ask("CONFIG SET maxmemory-clients 10%");
    assert_eq!(world.ask_as(large, "PING").0, "+QUEUED\r\n");
    world.ask("CONFIG SET maxmemory 10mb");
    assert_eq!(world.ask_as(large, "PING").0, "+QUEUED\r\n");
    world.ask("CONFIG SET maxmemory 1mb");
    assert_eq!(world.ask_as(large, "PING").1, Flow::Abort);
}
