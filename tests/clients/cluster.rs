//! Clients of clusters against nodes of the program: while slots move from one primary to another, and while replicas
//! replace their primaries.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redis::cluster::ClusterClient;
use redis::{Commands, Connection, RedisResult, Script, Value, cmd};

use crate::binary::Binary;
use crate::programs::{Program, run};
use crate::timeout::wait_until;

/// The counters that the programs count with, whose slots move.
const COUNTERS: usize = 20;
const ROUNDS: i64 = 40;

/// A change to the cluster while a client works.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The slot of a counter moves to the next primary.
    SlotMoves,
    /// A replica replaces the primary of a counter.
    FailsOver,
}

/// Three primaries, perhaps with a replica each, and a connection to each node.
pub struct Cluster {
    pub program: Binary,
    pub nodes: Vec<Node>,
}

pub struct Node {
    pub id: String,
    pub port: u16,
    pub connection: Connection,
}

impl Cluster {
    pub fn start(replicas: u16) -> Cluster {
        // Within twice the timeout, nodes vote for replicas of one primary only once.
        let (wanted, timeout_ms) = (replicas.to_string(), "5");
        let words = ["--cluster", "3", "--replicas", &wanted, "--cluster-node-timeout", timeout_ms];
        let program = Binary::start_with(&words);
        let first: u16 = program.port().parse().expect("it is a number");
        let node = |port: u16| -> RedisResult<Node> {
            let mut connection = redis::Client::open(format!("redis://127.0.0.1:{port}/"))?.get_connection()?;
            let id = cmd("CLUSTER").arg("MYID").query(&mut connection)?;
            Ok(Node { id, port, connection })
        };
        let nodes =
            (first..first + 3 * (1 + replicas)).map(node).collect::<RedisResult<_>>().expect("each node answers");
        Cluster { program, nodes }
    }

    /// Where the nodes are, as redis-cli names them.
    pub fn places(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect()
    }

    /// Makes all nodes know no other, the replicas first.
    pub fn reset(&mut self) {
        for node in self.nodes.iter_mut().rev() {
            let () = cmd("CLUSTER").arg("RESET").arg("HARD").query(&mut node.connection).expect("it is reset");
        }
    }

    /// The place of the node that owns a slot.
    fn owner(&mut self, slot: u16) -> usize {
        let lines: String = cmd("CLUSTER").arg("NODES").query(&mut self.nodes[0].connection).expect("it answers");
        let owns = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let bounds = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
            bounds.is_some_and(|(first, last)| (first..=last).contains(&slot))
        };
        let line = lines.lines().find(|line| line.split(' ').skip(8).any(owns)).expect("each slot has an owner");
        self.nodes.iter().position(|node| line.starts_with(&node.id)).expect("the owner is one of them")
    }

    /// Makes the replica of the primary that owns a slot replace it.
    fn fail_over(&mut self, slot: u16) -> RedisResult<()> {
        let place = self.owner(slot);
        let owner = self.nodes[place].id.clone();
        let mut replicas = cmd("CLUSTER");
        let lines: Vec<String> = replicas.arg("REPLICAS").arg(owner).query(&mut self.nodes[0].connection)?;
        let replica = self.nodes.iter_mut().find(|node| lines.iter().any(|line| line.starts_with(&node.id)));
        cmd("CLUSTER").arg("FAILOVER").query(&mut replica.expect("it has a replica").connection)
    }

    /// Moves a slot to the next node, key by key, as redis-cli does it.
    fn move_slot(&mut self, slot: u16) -> RedisResult<()> {
        let from = self.owner(slot);
        let to = (from + 1) % self.nodes.len();
        let (source, target) = (self.nodes[from].id.clone(), self.nodes[to].id.clone());
        self.set_slot(to, slot, "IMPORTING", &source)?;
        self.set_slot(from, slot, "MIGRATING", &target)?;
        let port = self.nodes[to].port;
        loop {
            let connection = &mut self.nodes[from].connection;
            let keys: Vec<String> = cmd("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(1).query(connection)?;
            if keys.is_empty() {
                break;
            }
            let mut migrate = cmd("MIGRATE");
            let migrate = migrate.arg("127.0.0.1").arg(port).arg("").arg(0).arg(5000).arg("KEYS").arg(&keys);
            let _: Value = migrate.query(connection)?;
        }
        self.set_slot(to, slot, "NODE", &target)?;
        self.set_slot(from, slot, "NODE", &target)
    }

    /// How often the nodes have run INCR.
    fn increments(&mut self) -> RedisResult<u64> {
        let mut sum = 0;
        for node in &mut self.nodes {
            let info: String = cmd("INFO").arg("commandstats").query(&mut node.connection)?;
            let calls = info.lines().find_map(|line| line.strip_prefix("cmdstat_incr:calls=")?.split(',').next());
            sum += calls.and_then(|calls| calls.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    pub fn set_slot(&mut self, node: usize, slot: u16, action: &str, id: &str) -> RedisResult<()> {
        let mut set_slot = cmd("CLUSTER");
        set_slot.arg("SETSLOT").arg(slot).arg(action).arg(id).query(&mut self.nodes[node].connection)
    }
}

/// Does `work` while the cluster changes: it concerns one counter each time that the counters were incremented as often
/// as there are counters. Clients give up if something changes whenever they ask.
fn during<R: Send>(change: Change, work: impl FnOnce(&str) -> R + Send) -> R {
    let mut cluster = Cluster::start(if change == Change::FailsOver { 1 } else { 0 });
    let port = cluster.program.port();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let mover = scope.spawn(|| {
            let mut next = 0;
            for counter in (0..COUNTERS).cycle() {
                let mut increments = 0;
                wait_until("the counters go on", || {
                    increments = cluster.increments().expect("the nodes answer");
                    increments >= next || is_done.load(Ordering::Acquire)
                });
                if is_done.load(Ordering::Acquire) {
                    break;
                }
                next = increments + COUNTERS as u64;
                let key = format!("counter:{counter}");
                let mut key_slot = cmd("CLUSTER");
                let slot = key_slot.arg("KEYSLOT").arg(key).query(&mut cluster.nodes[0].connection)?;
                match change {
                    Change::SlotMoves => cluster.move_slot(slot)?,
                    Change::FailsOver => cluster.fail_over(slot)?,
                }
            }
            Ok::<(), redis::RedisError>(())
        });
        let worker = scope.spawn(|| work(&port));
        let result = worker.join();
        is_done.store(true, Ordering::Release);
        mover.join().expect("no thread panics").expect("the cluster changes");
        result.expect("the work succeeds")
    })
}

fn succeeds(change: Change, program: Option<Program>, file: &str, says: &str) {
    let Some(program) = program else { return };
    let file = format!("{}/tests/clients/{file}", env!("CARGO_MANIFEST_DIR"));
    for protocol in ["2", "3"] {
        let output = during(change, |port| run(program.command().args([&*file, port, protocol]), ""));
        assert_eq!(output.trim(), format!("{says} is content"));
    }
}

#[test]
fn redis_py_finds_its_way_while_slots_move() {
    succeeds(Change::SlotMoves, Program::python_with("redis"), "redis_py_cluster.py", "redis-py");
}

#[test]
fn redis_py_survives_failovers() {
    succeeds(Change::FailsOver, Program::python_with("redis"), "redis_py_cluster.py", "redis-py");
}

#[test]
fn ioredis_finds_its_way_while_slots_move() {
    succeeds(Change::SlotMoves, Program::node_with("ioredis"), "ioredis_cluster.js", "ioredis");
}

#[test]
fn ioredis_survives_failovers() {
    succeeds(Change::FailsOver, Program::node_with("ioredis"), "ioredis_cluster.js", "ioredis");
}

#[test]
fn node_redis_finds_its_way_while_slots_move() {
    succeeds(Change::SlotMoves, Program::node_with("redis"), "node_redis_cluster.js", "node-redis");
}

#[test]
fn node_redis_survives_failovers() {
    succeeds(Change::FailsOver, Program::node_with("redis"), "node_redis_cluster.js", "node-redis");
}

#[test]
fn lettuce_finds_its_way_while_slots_move() {
    succeeds(Change::SlotMoves, Program::java_with_clients(), "java/LettuceCluster.java", "Lettuce");
}

#[test]
fn lettuce_survives_failovers() {
    succeeds(Change::FailsOver, Program::java_with_clients(), "java/LettuceCluster.java", "Lettuce");
}

#[test]
fn jedis_finds_its_way_while_slots_move() {
    succeeds(Change::SlotMoves, Program::java_with_clients(), "java/JedisCluster.java", "Jedis");
}

#[test]
fn jedis_survives_failovers() {
    succeeds(Change::FailsOver, Program::java_with_clients(), "java/JedisCluster.java", "Jedis");
}

fn go_redis_succeeds(change: Change) {
    let Some(program) = Program::of_go() else { return };
    for protocol in ["2", "3"] {
        let output = during(change, |port| run(program.command().args([port, protocol, "cluster"]), ""));
        assert_eq!(output.trim(), "go-redis is content");
    }
}

#[test]
fn go_redis_finds_its_way_while_slots_move() {
    go_redis_succeeds(Change::SlotMoves);
}

#[test]
fn go_redis_survives_failovers() {
    go_redis_succeeds(Change::FailsOver);
}

fn redis_rs_succeeds(change: Change) {
    during(change, |port| -> RedisResult<()> {
        let mut connection = ClusterClient::new([format!("redis://127.0.0.1:{port}/")])?.get_connection()?;
        for _ in 0..ROUNDS {
            for counter in 0..COUNTERS {
                let () = connection.incr(format!("counter:{counter}"), 1)?;
            }
        }
        for counter in 0..COUNTERS {
            assert_eq!(connection.get::<_, i64>(format!("counter:{counter}"))?, ROUNDS);
        }
        let () = connection.mset(&[("{cart:7}:apples", 1), ("{cart:7}:pears", 2)])?;
        let take = Script::new("return {redis.call('DECR', KEYS[1]), redis.call('INCR', KEYS[2])}");
        let counts: Vec<i64> = take.key("{cart:7}:apples").key("{cart:7}:pears").invoke(&mut connection)?;
        assert_eq!(counts, [0, 3]);
        Ok(())
    })
    .expect("the client works");
}

#[test]
fn redis_rs_finds_its_way_while_slots_move() {
    redis_rs_succeeds(Change::SlotMoves);
}

#[test]
fn redis_rs_survives_failovers() {
    redis_rs_succeeds(Change::FailsOver);
}
