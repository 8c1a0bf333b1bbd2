//! The workloads: single commands, which measure the path of a request, and the usage patterns that this server is made
//! for.

use crate::support::load::Shape;

/// One way to keep a server busy.
pub struct Workload {
    pub name: &'static str,
    pub shape: Shape,
    /// The number of keys: `{key}` is below it.
    pub keys: u64,
    /// The script that `{script}` names.
    pub script: &'static str,
    /// The commands that fill the server beforehand, and the number of operations.
    pub before: (&'static [&'static str], u64),
    /// The commands of an operation.
    pub operation: &'static [&'static str],
}

/// Many clients, each of which waits for a reply before it sends the next request.
const ONE_BY_ONE: Shape = Shape { connections: 50, operations_in_flight: 1 };
/// Many clients with pipelines.
const PIPELINED: Shape = Shape { connections: 50, operations_in_flight: 16 };

const DEFAULTS: Workload =
    Workload { name: "", shape: ONE_BY_ONE, keys: 10_000, script: "", before: (&[], 0), operation: &[] };

const SET: &[&str] = &["SET key:{key} 0123456789abcdef0123456789abcdef"];
const RECENCY: &[&str] =
    &["ZADD rv:{key} {moment} {random}", "ZREMRANGEBYRANK rv:{key} 0 -31", "EXPIRE rv:{key} 86400"];
const RECENT: &[&str] = &["LPUSH user:{key}:recent product-{random}", "LTRIM user:{key}:recent 0 99"];
const BOARD: &[&str] = &["ZINCRBY board {random} user-{key}"];

pub const WORKLOADS: &[Workload] = &[
    Workload { name: "ping", operation: &["PING"], ..DEFAULTS },
    Workload { name: "get", keys: 100_000, before: (SET, 500_000), operation: &["GET key:{key}"], ..DEFAULTS },
    Workload { name: "set", keys: 100_000, operation: SET, ..DEFAULTS },
    Workload {
        name: "get, pipelined",
        shape: PIPELINED,
        keys: 100_000,
        before: (SET, 500_000),
        operation: &["GET key:{key}"],
        ..DEFAULTS
    },
    Workload { name: "set, pipelined", shape: PIPELINED, keys: 100_000, operation: SET, ..DEFAULTS },
    Workload {
        name: "set with a deadline, pipelined",
        shape: PIPELINED,
        keys: 1_000_000,
        operation: &["SET key:{key} 0123456789abcdef EX 100"],
        ..DEFAULTS
    },
    Workload {
        name: "hash of a job, pipelined",
        shape: PIPELINED,
        keys: 100_000,
        operation: &["HSET job:{key} state ready tries 0 payload 0123456789abcdef"],
        ..DEFAULTS
    },
    Workload { name: "recency list: write", before: (RECENCY, 300_000), operation: RECENCY, ..DEFAULTS },
    Workload {
        name: "recency list: read",
        before: (RECENCY, 500_000),
        operation: &["ZREVRANGE rv:{key} 0 -1"],
        ..DEFAULTS
    },
    Workload {
        name: "live events",
        keys: 2000,
        operation: &[
            "ZADD ev:{key} {moment} {random}",
            "ZREMRANGEBYSCORE ev:{key} -inf 1600000000000000",
            "ZCARD ev:{key}",
        ],
        ..DEFAULTS
    },
    Workload {
        name: "recent products: write",
        shape: Shape { connections: 50, operations_in_flight: 4 },
        before: (RECENT, 300_000),
        operation: RECENT,
        ..DEFAULTS
    },
    Workload {
        name: "recent products: read",
        keys: 1000,
        before: (RECENT, 300_000),
        operation: &["LRANGE user:{key}:recent 0 99"],
        ..DEFAULTS
    },
    Workload {
        name: "queue, pipelined",
        shape: PIPELINED,
        keys: 100,
        operation: &["LPUSH queue:{key} job-{serial}", "RPOP queue:{key}"],
        ..DEFAULTS
    },
    Workload {
        name: "dedupe, pipelined",
        shape: PIPELINED,
        keys: 100,
        operation: &["SADD seen:{key} event-{random}"],
        ..DEFAULTS
    },
    Workload {
        name: "rights: two sets met",
        keys: 100,
        before: (&["SADD role:{key} right-{random}", "SADD role:{key} common"], 100_000),
        operation: &["SINTER role:{key} role:1"],
        ..DEFAULTS
    },
    Workload {
        name: "leaderboard: score, pipelined",
        shape: PIPELINED,
        keys: 1_000_000,
        before: (BOARD, 2_000_000),
        operation: &["ZINCRBY board 25 user-{key}"],
        ..DEFAULTS
    },
    Workload {
        name: "leaderboard: rank, pipelined",
        shape: PIPELINED,
        keys: 1_000_000,
        before: (BOARD, 2_000_000),
        operation: &["ZREVRANK board user-{key}"],
        ..DEFAULTS
    },
    Workload {
        name: "leaderboard: top ten",
        keys: 1_000_000,
        before: (BOARD, 2_000_000),
        operation: &["ZRANGE board 0 9 REV WITHSCORES"],
        ..DEFAULTS
    },
    Workload {
        name: "presence: a heartbeat",
        operation: &["SET online:{key} 1 EX 30", "ZADD online {moment} {key}"],
        ..DEFAULTS
    },
    Workload {
        name: "script: recent products",
        script: include_str!("../../tests/patterns/scripts/recent.lua"),
        operation: &["EVALSHA {script} 1 user:{key}:recent product-{random} 100"],
        ..DEFAULTS
    },
    Workload {
        name: "script: rate limiter",
        script: include_str!("../../tests/patterns/scripts/rate-limit.lua"),
        operation: &["EVALSHA {script} 1 rate:{key} {moment} 60000000 100 request-{serial} 60"],
        ..DEFAULTS
    },
    Workload {
        name: "script: delayed jobs",
        script: include_str!("../../tests/patterns/scripts/claim-due.lua"),
        operation: &[
            "ZADD delayed {moment} job-{serial}",
            "EVALSHA {script} 2 delayed processing 9000000000000000 10 {moment}",
        ],
        ..DEFAULTS
    },
    Workload {
        name: "publish to nobody, pipelined",
        shape: PIPELINED,
        operation: &["PUBLISH room:{key} {random}"],
        ..DEFAULTS
    },
];
