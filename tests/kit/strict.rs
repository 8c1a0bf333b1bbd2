//! Strict mode: each rule with commands that it finds, and with similar ones that are correct.

mod cluster;
mod nodes;

use std::thread;
use std::time::Duration;

use dunlin::{Client, Level, Reply, Rule, Server};

use crate::{call, error, served};

/// A server that holds one rule at one level.
fn held(rule: Rule, level: Level) -> (Server, Client) {
    let (server, client) = served();
    server.strict().set(rule, level);
    (server, client)
}

/// The words of a line as redis-cli reads them.
fn words(line: &str) -> Vec<Vec<u8>> {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    dunlin::resp::split_words(line.as_bytes(), &mut text, &mut spans).expect("quotes are balanced");
    spans.into_iter().map(|span| text[span.start..span.end].to_vec()).collect()
}

/// Runs commands, of which the rules may refuse the last one; returns its reply.
fn play(client: &mut Client, lines: &[&str]) -> Result<Reply, String> {
    let (last, before) = lines.split_last().expect("there is a line");
    for line in before {
        client.call(words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    client.call(words(last)).map_err(|error| error.to_string())
}

/// Each of these plays ends in a command that violates the rule: it runs where the rule is a warning, is refused with
/// the message where it is an error, and has no finding where the rule is off.
fn finds(rule: Rule, culprits: &[(&[&str], &str)]) {
    for (lines, text) in culprits {
        let expected = format!("STRICT {}: {text}", rule.name());
        let (server, mut client) = held(rule, Level::Error);
        assert_eq!(play(&mut client, lines).map_err(|error| error.replace("ERR ", "")), Err(expected), "{lines:?}");
        let findings = server.strict().findings();
        assert_eq!((findings.len(), findings[0].rule, findings[0].level), (1, rule, Level::Error), "{lines:?}");
        assert!(findings[0].text == *text && findings[0].times == 1);
        let (server, mut client) = held(rule, Level::Warn);
        let warned = play(&mut client, lines);
        assert_eq!(server.strict().findings().len(), 1, "{lines:?}");
        assert_eq!(server.strict().findings()[0].level, Level::Warn);
        let (server, mut client) = held(rule, Level::Off);
        assert_eq!(play(&mut client, lines), warned, "{lines:?}");
        assert!(server.strict().findings().is_empty());
    }
}

/// None of these plays has a command that violates the rule.
fn admits(rule: Rule, innocents: &[&[&str]]) {
    for lines in innocents {
        let (server, mut client) = held(rule, Level::Error);
        let (_, mut free) = served();
        assert_eq!(play(&mut client, lines), play(&mut free, lines), "{lines:?}");
        assert_eq!(server.strict().findings(), Vec::new(), "{lines:?}");
    }
}

#[test]
fn a_script_must_use_only_its_declared_keys() {
    let message = |key: &str| {
        format!(
            "the script uses {key}, which is not among its KEYS; pass every key in KEYS, since a cluster sends the script \
             to the node that has them"
        )
    };
    let script = " script: ";
    let (server, mut client) = held(Rule::UndeclaredKeys, Level::Error);
    let refused = error(&mut client, ["EVAL", "return redis.call('GET', 'user:' .. ARGV[1])", "0", "7"]);
    assert!(refused.starts_with(&format!("STRICT undeclared-keys: {}{script}", message("user:7"))), "{refused}");
    assert_eq!(server.strict().findings()[0].command, "GET user:7");
    let caught = "return redis.pcall('GET', KEYS[1] .. 'x')['err']";
    assert!(call(&mut client, ["EVAL", caught, "1", "a"]) == *format!("STRICT undeclared-keys: {}", message("ax")));
    admits(
        Rule::UndeclaredKeys,
        &[
            &["EVAL \"return redis.call('MGET', KEYS[2], KEYS[1])\" 2 a b"],
            &["EVAL \"return redis.call('PING')\" 0"],
            &["MULTI", "EVAL \"return redis.call('GET', KEYS[1])\" 1 a", "GET b", "EXEC"],
            &[
                "FUNCTION LOAD \"#!lua name=x\\nredis.register_function('f', function(keys) return \
                 redis.call('GET', keys[1]) end)\"",
                "FCALL f 1 a",
            ],
            &["GET undeclared"],
        ],
    );
    let (server, mut client) = held(Rule::UndeclaredKeys, Level::Warn);
    let eval = "EVAL \"redis.call('SET', 'other', 'x') return redis.call('GET', 'other')\" 1 a";
    assert!(play(&mut client, &["MULTI", eval, "EVAL \"return 1\" 1 other", "EXEC"]).is_ok());
    assert_eq!(server.strict().findings().iter().map(|finding| finding.times).collect::<Vec<_>>(), [2]);
}

#[test]
fn keys_that_are_used_together_must_be_in_one_slot() {
    let message = |first: &str, slot: u16, other: &str, other_slot: u16| {
        format!(
            "{first} is in slot {slot} of a cluster and {other} in slot {other_slot}; give them one hash tag, \
             as in {{id}}:a and {{id}}:b"
        )
    };
    let apart = message("foo", 12182, "bar", 5061);
    finds(
        Rule::CrossSlot,
        &[
            (&["MGET foo bar"], &apart),
            (&["MSET foo 1 foo 2 bar 3"], &apart),
            (&["RPUSH foo a", "LMOVE foo bar LEFT RIGHT"], &apart),
            (&["SINTERSTORE foo foo bar"], &apart),
            (&["XREAD COUNT 1 STREAMS foo bar 0 0"], &apart),
            (&["EVAL \"return 1\" 2 foo bar"], &apart),
            (&["MULTI", "SET foo 1", "PING", "SET bar 2"], &apart),
            (&["WATCH foo", "MULTI", "SET bar 2"], &apart),
        ],
    );
    admits(
        Rule::CrossSlot,
        &[
            &["MGET {id}:a {id}:b {id}"],
            &["MULTI", "SET {id}:a 1", "GET {id}:b", "EXEC"],
            &["SET foo 1", "SET bar 2"],
            &["MULTI", "SET foo 1", "DISCARD", "MULTI", "SET bar 2", "EXEC"],
            &["EVAL \"return redis.call('GET', KEYS[1])\" 1 foo"],
            &["ZUNION 1 foo WEIGHTS 2"],
            &["PUBLISH bar foo"],
        ],
    );
    let (server, mut client) = held(Rule::CrossSlot, Level::Error);
    let script = "redis.call('SET', ARGV[1], 1) return redis.call('SET', ARGV[2], 2)";
    assert!(
        error(&mut client, ["EVAL", script, "0", "foo", "bar"]).starts_with(&format!("STRICT cross-slot: {apart}"))
    );
    assert_eq!(call(&mut client, ["EVAL", script, "0", "{id}:1", "{id}:2"]), Reply::Status("OK".to_owned()));
    assert_eq!(server.strict().findings().len(), 1);
}

#[test]
fn the_keys_command_must_not_scan_many_keys() {
    let (server, mut client) = held(Rule::KeysCommand, Level::Error);
    server.strict().limit(Rule::KeysCommand, 2);
    call(&mut client, ["MSET", "a", "1", "b", "2"]);
    assert_eq!(call(&mut client, ["KEYS", "*"]).items().map(<[Reply]>::len), Some(2));
    call(&mut client, ["SET", "c", "3"]);
    let text = "STRICT keys-command: KEYS scans all 3 keys while other clients wait; use SCAN";
    assert_eq!(error(&mut client, ["KEYS", "a"]), text);
    call(&mut client, ["SCAN", "0", "MATCH", "a"]);
    call(&mut client, ["SELECT", "1"]);
    call(&mut client, ["KEYS", "*"]);
    assert_eq!(server.strict().findings().len(), 1);
    server.strict().set(Rule::KeysCommand, Level::Warn);
    call(&mut client, ["SELECT", "0"]);
    assert_eq!(call(&mut client, ["KEYS", "*"]).items().map(<[Reply]>::len), Some(3));
    assert_eq!(server.strict().findings()[1].level, Level::Warn);
    assert_eq!(Rule::KeysCommand.usual_limit(), Some(100));
}

#[test]
fn large_collections_must_be_read_in_parts() {
    let plays: [(&[&str], &str); 10] = [
        (
            &["SADD key a b c", "SMEMBERS key"],
            "SMEMBERS reads all 3 elements of key at once; use SSCAN, SISMEMBER or SCARD",
        ),
        (
            &["HSET key a 1 b 2 c 3", "HGETALL key"],
            "HGETALL reads all 3 elements of key at once; use HSCAN, or HMGET for the fields that are needed",
        ),
        (&["HSET key a 1 b 2 c 3", "HKEYS key"], "HKEYS reads all 3 elements of key at once; use HSCAN"),
        (
            &["HSET key a 1 b 2 c 3", "HVALS key"],
            "HVALS reads all 3 elements of key at once; use HSCAN, or HMGET for the fields that are needed",
        ),
        (&["RPUSH key a b c", "LRANGE key 0 -1"], "LRANGE reads all 3 elements of key at once; read a part of it"),
        (
            &["ZADD key 1 a 2 b 3 c", "ZRANGE key 0 -1 WITHSCORES"],
            "ZRANGE reads all 3 elements of key at once; read a part of it by rank or score, or use ZSCAN",
        ),
        (
            &["ZADD key 1 a 2 b 3 c", "ZREVRANGE key 0 -1"],
            "ZREVRANGE reads all 3 elements of key at once; read a part of it by rank or score, or use ZSCAN",
        ),
        (
            &["ZADD key 1 a 2 b 3 c", "ZRANGEBYSCORE key -inf +inf"],
            "ZRANGEBYSCORE reads all 3 elements of key at once; use LIMIT",
        ),
        (
            &["XADD key 1 a b", "XADD key 2 a b", "XADD key 3 a b", "XRANGE key - +"],
            "XRANGE reads all 3 elements of key at once; use COUNT, and continue after the last id",
        ),
        (
            &["XADD key 1 a b", "XADD key 2 a b", "XADD key 3 a b", "XREVRANGE key + -"],
            "XREVRANGE reads all 3 elements of key at once; use COUNT, and continue after the last id",
        ),
    ];
    for (lines, text) in plays {
        let (server, mut client) = held(Rule::WholeReads, Level::Error);
        server.strict().limit(Rule::WholeReads, 3);
        assert!(play(&mut client, lines).is_ok(), "{lines:?}");
        server.strict().limit(Rule::WholeReads, 2);
        let last = &lines[lines.len() - 1..];
        assert_eq!(play(&mut client, last), Err(format!("STRICT whole-reads: {text}")));
        server.strict().set(Rule::WholeReads, Level::Warn);
        assert!(play(&mut client, last).is_ok());
        assert_eq!(server.strict().findings().len(), 2);
    }
    let (server, mut client) = held(Rule::WholeReads, Level::Error);
    server.strict().limit(Rule::WholeReads, 0);
    play(&mut client, &["RPUSH list a b", "LRANGE list 0 0", "LRANGE list 1 -1"]).expect("no rule is violated");
    play(&mut client, &["ZADD zset 1 a", "ZRANGE zset 0 9 REV", "ZRANGEBYSCORE zset -inf +inf LIMIT 0 9"])
        .expect("no rule is violated");
    play(&mut client, &["XADD stream 1 a b", "XRANGE stream - + COUNT 9", "SCARD set", "SMEMBERS set"])
        .expect("no rule is violated");
    server.strict().assert_none();
}

#[test]
fn elements_must_be_small() {
    let large = "x".repeat(1025);
    let text = |key: &str| {
        format!("an element of 1025 bytes goes into {key}; keep an id there and the rest in a key of its own")
    };
    let lines = ["LPUSH", "RPUSH", "SADD"].map(|command| format!("{command} key id {large}"));
    let zadd = format!("ZADD key 1 id 2 {large}");
    finds(
        Rule::LargeElements,
        &[
            (&[&lines[0]], &text("key")),
            (&[&lines[1]], &text("key")),
            (&[&lines[2]], &text("key")),
            (&[&zadd], &text("key")),
        ],
    );
    let (fits, long_key) = (format!("LPUSH key {}", "x".repeat(1024)), format!("LPUSH {large} id"));
    let (string, hash, removed) =
        (format!("SET key {large}"), format!("HSET hash field {large}"), format!("SREM set {large}"));
    admits(Rule::LargeElements, &[&[&fits], &[&long_key], &[&string], &[&hash], &[&removed]]);
}

#[test]
fn a_collection_must_have_a_bound_when_the_test_ends() {
    let culprits = [
        ("LPUSH key a", "LPUSH key", "LTRIM it with each push, or EXPIRE it"),
        ("SADD key a", "SADD key", "EXPIRE it, as with a key for each hour"),
        ("ZADD key 1 a", "ZADD key", "ZREMRANGEBYRANK or ZREMRANGEBYSCORE what is old, or EXPIRE it"),
        ("ZINCRBY key 1 a", "ZINCRBY key", "ZREMRANGEBYRANK or ZREMRANGEBYSCORE what is old, or EXPIRE it"),
        ("XADD key * a b", "XADD key", "XADD with MAXLEN or MINID, or EXPIRE it"),
        (
            "EVAL \"return redis.call('LPUSH', KEYS[1], 'a')\" 1 key",
            "LPUSH key",
            "LTRIM it with each push, or EXPIRE it",
        ),
        ("GEOADD key 1 1 a", "GEOADD key", "ZREMRANGEBYRANK or ZREMRANGEBYSCORE what is old, or EXPIRE it"),
    ];
    for (line, command, instead) in culprits {
        for level in [Level::Warn, Level::Error] {
            let (server, mut client) = held(Rule::UnboundedCollection, level);
            play(&mut client, &["CLIENT SETNAME web", line]).expect("it shows only at the end");
            let findings = server.strict().findings();
            let [finding] = &findings[..] else { panic!("{line}: {findings:?}") };
            assert_eq!((finding.rule, finding.level, &*finding.command), (Rule::UnboundedCollection, level, command));
            assert_eq!(finding.client_name, b"web");
            let text = format!("key is never trimmed and has no deadline; {instead}, or allow what is to grow");
            assert_eq!(finding.text, text);
            server.strict().allow(Rule::UnboundedCollection, "k*");
            server.strict().assert_none();
        }
    }
    admits(
        Rule::UnboundedCollection,
        &[
            &["LPUSH key a", "LTRIM key 0 99"],
            &["MULTI", "LPUSH key a", "LTRIM key 0 99", "EXEC"],
            &["LPUSH key a", "BRPOP key 1", "LPUSH key b"],
            &["SADD key a", "EXPIRE key 60"],
            &["SADD key a", "SADD key b", "DEL key"],
            &["SADD key a", "SREM key b"],
            &["ZADD key 1 a", "ZREMRANGEBYRANK key 0 -31"],
            &["ZADD key 1 a", "ZREMRANGEBYSCORE key -inf 0"],
            &["XADD key MAXLEN ~ 1000 5-1 a b"],
            &["XADD key NOMKSTREAM MINID 5 5-1 a b"],
            &["XADD key 5-1 a b", "XTRIM key MAXLEN 9"],
            &["EVAL \"redis.call('SADD', KEYS[1], 'a') return redis.call('EXPIRE', KEYS[1], 9)\" 1 key"],
            &["SET key a", "INCR count", "HSET user:1 name ann", "PFADD sketch a"],
            &["RPUSH source a", "EXPIRE source 9", "SORT source ALPHA STORE sorted", "SINTERSTORE set nothing"],
        ],
    );
}

#[test]
fn collections_from_before_the_rules_are_not_reported() {
    let (server, mut client) = served();
    call(&mut client, ["SADD", "countries", "de", "fr"]);
    server.strict().set_all(Level::Error);
    call(&mut client, ["EXPIRE", "countries", "60"]);
    call(&mut client, ["PERSIST", "countries"]);
    server.strict().assert_none();
}

#[test]
fn a_command_that_fails_or_changes_nothing_has_neither_written_nor_trimmed_a_key() {
    let (server, mut client) = served();
    play(&mut client, &["SADD tags a b", "SET lock ann", "RPUSH jobs a", "SET text x"])
        .expect("there are no rules yet");
    server.strict().set_all(Level::Error);
    for line in ["INCR tags", "INCR jobs", "INCR text", "EVAL \"return redis.pcall('INCR', KEYS[1])\" 1 jobs"] {
        play(&mut client, &[line]).expect_err("the value is no number");
    }
    let renewed = ["SADD tags a", "SET lock bob NX", "EXPIRE lock 60", "EXPIRE text 60", "MULTI", "INCR jobs", "EXEC"];
    play(&mut client, &renewed).expect("nothing was written before the deadlines");
    server.strict().assert_none();
    play(&mut client, &["SADD tags c"]).expect("it shows at the end only");
    play(&mut client, &["LPOP tags"]).expect_err("a set is no list");
    let findings = server.strict().findings();
    assert!(findings.len() == 1 && findings[0].command == "SADD tags", "{findings:?}");
}

#[test]
fn a_blocked_command_is_recorded_once_it_is_blocked() {
    let (server, mut client) = held(Rule::UnboundedCollection, Level::Error);
    let mut worker = server.client().expect("there is room");
    let taken = thread::spawn(move || call(&mut worker, ["BLMOVE", "jobs", "taken", "LEFT", "RIGHT", "5"]));
    server.wait_until_blocked("jobs", Duration::from_secs(5)).expect("the worker waits");
    call(&mut client, ["RPUSH", "jobs", "a"]);
    assert_eq!(taken.join().expect("it ends"), *"a");
    let findings = server.strict().findings();
    assert!(findings.len() == 1 && findings[0].command == "BLMOVE taken", "{findings:?}");
}

#[test]
fn a_key_must_get_its_deadline_with_its_value() {
    let message = |command: &str, instead: &str| {
        format!(
            "key has had no deadline since {command}, and would live for ever if the application had died in \
             between; {instead}"
        )
    };
    let both = "send both in one script or MULTI";
    let set = format!("use SET with EX, or {both}");
    finds(
        Rule::LateExpire,
        &[
            (&["SADD key a", "EXPIRE key 60"], &message("SADD", both)),
            (&["SADD key a", "SCARD key", "SADD key b", "PEXPIRE key 60000"], &message("SADD", both)),
            (&["LPUSH key a", "LTRIM key 0 9", "EXPIREAT key 99999999999"], &message("LPUSH", both)),
            (&["INCR key", "EXPIRE key 60 NX"], &message("INCR", both)),
            (&["SETNX key a", "PEXPIREAT key 99999999999000"], &message("SETNX", &set)),
            (&["MULTI", "SADD key a", "EXEC", "EXPIRE key 60"], &message("SADD", both)),
            (&["EVAL \"return redis.call('ZADD', KEYS[1], 1, 'a')\" 1 key", "EXPIRE key 60"], &message("ZADD", both)),
            (&["SET key a EX 60", "SET key b", "EXPIRE key 60"], &message("SET", &set)),
        ],
    );
    admits(
        Rule::LateExpire,
        &[
            &["MULTI", "SADD key a", "EXPIRE key 60", "EXEC"],
            &["EVAL \"redis.call('SADD', KEYS[1], 'a') return redis.call('EXPIRE', KEYS[1], 60)\" 1 key"],
            &["SET key a EX 60", "EXPIRE key 90"],
            &["MULTI", "INCR key", "EXPIRE key 60", "EXEC", "INCR key", "EXPIRE key 60"],
            &["SET key a EX 60", "PERSIST key", "EXPIRE key 60"],
            &["EXPIRE key 60"],
            &["SADD key a", "DEL key", "EXPIRE key 60"],
            &["SADD key a", "EXPIRE other 60"],
        ],
    );
    let (server, mut client) = held(Rule::LateExpire, Level::Error);
    let mut other = server.client().expect("there is room");
    call(&mut client, ["SADD", "pooled", "a"]);
    assert!(
        error(&mut other, ["EXPIRE", "pooled", "60"]).starts_with("STRICT late-expire: pooled has had no deadline")
    );
    assert_eq!(call(&mut client, ["TTL", "pooled"]), -1);
}

#[test]
fn scores_must_be_integers_that_a_double_can_represent() {
    let message = |member: &str, score: &str| {
        format!(
            "the score of {member} would be {score}, and a double cannot hold every integer beyond 2^53; keep one \
             number in the score, and the rest in the member"
        )
    };
    finds(
        Rule::LossyScores,
        &[
            (&["ZADD key 1783012441000000000 job"], &message("job", "1783012441000000000")),
            (&["ZADD key GT CH 1 a -9007199254740994 b"], &message("b", "-9007199254740994")),
            (&["ZADD key 9007199254740992 a", "ZINCRBY key 2 a"], &message("a", "9007199254740994")),
            (&["ZADD key 9007199254740992 a", "ZADD key INCR 2 a"], &message("a", "9007199254740994")),
            (&["MULTI", "ZADD key 1e300 a"], &message("a", &format!("{:.0}", 1e300))),
        ],
    );
    admits(
        Rule::LossyScores,
        &[
            &["ZADD key 1783012441000 job"],
            &["ZADD key 9007199254740992 a -9007199254740992 b 0.5 c"],
            &["ZADD key +inf a -inf b"],
            &["ZADD key 9007199254740992 a", "ZINCRBY key -2 a"],
            &["ZADD key nonsense a"],
            &["ZRANGEBYSCORE key 0 1783012441000000000"],
        ],
    );
}

#[test]
fn a_blocking_command_must_have_a_timeout() {
    for (line, innocent) in [
        ("BLPOP key 0", "BLPOP key 0.01"),
        ("BRPOP key 0.0", "BRPOP key 0.01"),
        ("BLMOVE {a}1 {a}2 LEFT RIGHT 0", "BLMOVE {a}1 {a}2 LEFT RIGHT 0.01"),
        ("BRPOPLPUSH {a}1 {a}2 0", "BRPOPLPUSH {a}1 {a}2 0.01"),
        ("BLMPOP 0 1 key LEFT", "BLMPOP 0.01 1 key LEFT"),
        ("BZMPOP 0 1 key MIN", "BZMPOP 0.01 1 key MIN"),
        ("BZPOPMIN key 0", "BZPOPMIN key 0.01"),
        ("BZPOPMAX key 0", "BZPOPMAX key 0.01"),
        ("XREAD BLOCK 0 STREAMS key $", "XREAD BLOCK 10 STREAMS key $"),
        ("XREAD COUNT 1 block 0 STREAMS key $", "XREAD COUNT 1 STREAMS BLOCK 0"),
        ("WAIT 1 0", "WAIT 1 10"),
        ("WAITAOF 0 1 0", "WAIT 0 0"),
    ] {
        let (server, mut client) = held(Rule::EndlessWaits, Level::Error);
        let name = line.split(' ').next().expect("it has a name");
        let text = format!(
            "STRICT endless-waits: {name} would wait for ever; use a timeout of some seconds and call it again, so that \
             its caller can stop"
        );
        assert_eq!(play(&mut client, &[line]), Err(text));
        server.strict().clear();
        play(&mut client, &[innocent]).unwrap_or_else(|error| panic!("{innocent}: {error}"));
        play(&mut client, &["RPUSH key a", "MULTI", "BLPOP key 0", "EXEC"]).expect("nothing waits there");
        server.strict().assert_none();
    }
    let (server, mut client) = held(Rule::EndlessWaits, Level::Warn);
    assert!(play(&mut client, &["RPUSH key a", "BLPOP key 0"]).is_ok());
    assert_eq!(server.strict().findings()[0].level, Level::Warn);
}

#[test]
fn a_command_that_fails_anyway_is_not_checked() {
    let (server, mut client) = served();
    server.strict().set_all(Level::Error);
    call(&mut client, ["ACL", "SETUSER", "reader", "on", "nopass", "+@read", "~*"]);
    assert!(error(&mut client, ["MGET"]).starts_with("ERR wrong number"));
    assert!(error(&mut client, ["NOSUCH", "foo", "bar"]).starts_with("ERR unknown command"));
    call(&mut client, ["AUTH", "reader", ""]);
    assert!(error(&mut client, ["MSET", "foo", "1", "bar", "2"]).starts_with("NOPERM"));
    assert!(error(&mut client, ["MGET", "foo", "bar"]).starts_with("STRICT cross-slot"));
    assert_eq!(server.strict().findings().len(), 1);
}

#[test]
fn a_refused_command_changes_nothing_and_aborts_its_transaction() {
    let (_server, mut client) = held(Rule::CrossSlot, Level::Error);
    assert!(error(&mut client, ["MSET", "foo", "1", "bar", "2"]).starts_with("STRICT"));
    assert_eq!(call(&mut client, ["DBSIZE"]), 0);
    call(&mut client, ["MULTI"]);
    call(&mut client, ["SET", "foo", "1"]);
    assert!(error(&mut client, ["SET", "bar", "2"]).starts_with("STRICT"));
    assert_eq!(error(&mut client, ["EXEC"]), "EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(call(&mut client, ["DBSIZE"]), 0);
}

#[test]
fn a_rollback_removes_the_traces_of_keys_and_keeps_the_findings() {
    let (server, mut client) = served();
    server.strict().set_all(Level::Error);
    call(&mut client, ["SADD", "before", "a"]);
    server.snapshot("start");
    call(&mut client, ["SADD", "since", "a"]);
    call(&mut client, ["SREM", "before", "b"]);
    assert!(error(&mut client, ["MGET", "foo", "bar"]).starts_with("STRICT"));
    assert_eq!(server.strict().findings().len(), 2);
    server.rollback("start").expect("it is there");
    let commands: Vec<String> = server.strict().findings().into_iter().map(|finding| finding.command).collect();
    assert_eq!(commands, ["MGET foo bar", "SADD before"]);
    call(&mut client, ["DUNLIN", "LOAD", "SADD since a\nSADD before a\n"]);
    call(&mut client, ["EXPIRE", "since", "60"]);
    assert_eq!(server.strict().findings().len(), 1);
}

#[test]
fn a_deadline_that_has_passed_leaves_no_collection() {
    let (server, mut client) = held(Rule::UnboundedCollection, Level::Error);
    server.freeze();
    play(&mut client, &["SADD key a", "EXPIRE key 60"]).expect("it is written");
    server.advance(std::time::Duration::from_secs(60));
    server.strict().assert_none();
    call(&mut client, ["SADD", "key", "a"]);
    assert_eq!(server.strict().findings().len(), 1);
}

fn field<'r>(map: &'r Reply, name: &str) -> &'r Reply {
    let Reply::Map(fields) = map else { panic!("it is no map: {map:?}") };
    &fields.iter().find(|(key, _)| *key == name).expect("the field exists").1
}

#[test]
fn rules_are_listed_and_set_over_the_wire() {
    let (_server, mut client) = served();
    let listed = |client: &mut Client| call(client, ["DUNLIN", "STRICT"]).items().expect("an array").to_vec();
    let names: Vec<String> = listed(&mut client)
        .iter()
        .map(|rule| {
            format!("{} {}", field(rule, "rule").text().expect("a name"), field(rule, "level").text().expect("a level"))
        })
        .collect();
    assert_eq!(names, Rule::ALL.map(|rule| format!("{} off", rule.name())));
    call(&mut client, ["DUNLIN", "STRICT", "SET", "ALL", "warn"]);
    call(&mut client, ["DUNLIN", "STRICT", "SET", "keys-command", "ERROR", "LIMIT", "7"]);
    call(&mut client, ["DUNLIN", "STRICT", "ALLOW", "unbounded-collection", "jobs:*"]);
    let rules = listed(&mut client);
    let expected = |rule: &Rule| match rule {
        Rule::KeysCommand => "error",
        rule if Rule::GENERAL.contains(rule) => "warn",
        _ => "off",
    };
    let levels: Vec<&Reply> = rules.iter().map(|rule| field(rule, "level")).collect();
    assert_eq!(levels, Rule::ALL.iter().map(expected).collect::<Vec<_>>());
    assert_eq!((field(&rules[2], "limit"), field(&rules[0], "limit")), (&Reply::Integer(7), &Reply::Null));
    assert_eq!(field(&rules[5], "allowed").items().map(|patterns| patterns[0] == "jobs:*"), Some(true));
    for (words, text) in [
        (
            "SET nosuch warn",
            "ERR unknown rule 'nosuch'; the rules are undeclared-keys, cross-slot, keys-command, whole-reads, \
             large-elements, unbounded-collection, late-expire, lossy-scores, endless-waits, select, whole-server, \
             sort-outside, moved-unhandled, stale-read",
        ),
        ("SET cross-slot warn LIMIT 3", "ERR that rule has no limit"),
        ("SET ALL warn LIMIT 3", "ERR each rule has a limit of its own"),
        ("SET keys-command warn LIMIT -1", "ERR value is not an integer or out of range"),
        ("SET cross-slot loud", "ERR syntax error"),
        ("SET cross-slot", "ERR syntax error"),
        ("FINDINGS now", "ERR syntax error"),
        ("NOSUCH", "ERR syntax error"),
    ] {
        let got = error(&mut client, ["DUNLIN", "STRICT"].into_iter().chain(words.split(' ')));
        let syntax = "ERR syntax error, usage: DUNLIN STRICT [<<SET rule|ALL|CLUSTER <OFF|WARN|ERROR> [LIMIT limit]>|\
                      <ALLOW rule|ALL|CLUSTER pattern>|FINDINGS|CHECK|CLEAR>]";
        assert_eq!(got, if text == "ERR syntax error" { syntax } else { text }, "{words}");
    }
}

#[test]
fn findings_are_listed_checked_and_cleared_over_the_wire() {
    let (_server, mut client) = served();
    call(&mut client, ["DUNLIN", "STRICT", "SET", "ALL", "error"]);
    call(&mut client, ["DUNLIN", "STRICT", "SET", "late-expire", "warn"]);
    call(&mut client, ["CLIENT", "SETNAME", "web"]);
    call(&mut client, ["SET", "key", "value"]);
    call(&mut client, ["EXPIRE", "key", "60"]);
    assert_eq!(call(&mut client, ["DUNLIN", "STRICT", "CHECK"]), Reply::Status("OK".to_owned()));
    for _ in 0..2 {
        error(&mut client, ["BLPOP", "queue", "0"]);
    }
    let findings = call(&mut client, ["DUNLIN", "STRICT", "FINDINGS"]);
    let [late, endless] = findings.items().expect("an array") else { panic!("there are two: {findings:?}") };
    assert!(*field(late, "rule") == "late-expire" && *field(late, "level") == "warn");
    assert!(*field(endless, "command") == "BLPOP queue 0" && *field(endless, "client-name") == "web");
    assert_eq!((field(late, "times"), field(endless, "times")), (&Reply::Integer(1), &Reply::Integer(2)));
    let id = call(&mut client, ["CLIENT", "ID"]).integer().expect("a number");
    let text = format!(
        "ERR strict mode found 1: error endless-waits: client {id} (web): BLPOP queue 0 (2 times): BLPOP would wait \
         for ever; use a timeout of some seconds and call it again, so that its caller can stop"
    );
    assert_eq!(error(&mut client, ["DUNLIN", "STRICT", "CHECK"]), text);
    call(&mut client, ["DUNLIN", "STRICT", "CLEAR"]);
    assert_eq!(call(&mut client, ["DUNLIN", "STRICT", "FINDINGS"]).items(), Some(&[][..]));
}

#[test]
fn secrets_are_in_no_finding() {
    let (server, mut client) = held(Rule::CrossSlot, Level::Error);
    error(&mut client, ["MIGRATE", "127.0.0.1", "1", "", "0", "9", "AUTH", "a-secret", "KEYS", "foo", "bar"]);
    let findings = server.strict().findings();
    assert!(findings.len() == 1 && !findings[0].to_string().contains("a-secret"), "{findings:?}");
}

#[test]
fn each_world_has_rules_of_its_own() {
    let (server, mut first) = served();
    let other = server.world("other").expect("there is room");
    let mut client = other.client().expect("there is room");
    other.strict().set(Rule::EndlessWaits, Level::Error);
    play(&mut first, &["RPUSH queue job", "BLPOP queue 0"]).expect("no rule holds there");
    assert!(error(&mut client, ["BLPOP", "queue", "0"]).starts_with("STRICT endless-waits"));
    assert_eq!((server.strict().findings().len(), other.strict().findings().len()), (0, 1));
}
