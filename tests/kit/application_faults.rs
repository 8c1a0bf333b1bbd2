//! Typical faults of applications, caused on purpose by fault rules, with a common client library: lost jobs, keys
//! without a deadline, and unsafe retries.

use dunlin::{Client, Reply, Server};
use redis::{Commands, Connection, RedisResult};

use crate::{call, served};

const FIRST_SEEN: &str = include_str!("../patterns/scripts/first-seen.lua");
const CLAIM_DUE: &str = include_str!("../patterns/scripts/claim-due.lua");

fn application(server: &Server) -> Connection {
    let client = redis::Client::open(server.url()).expect("the address is right");
    client.get_connection().expect("it listens")
}

fn ttl_ms(client: &mut Client, key: &str) -> Option<i64> {
    call(client, ["PTTL", key]).integer()
}

#[test]
fn an_application_that_dies_between_sadd_and_expire_leaves_a_key_that_lives_for_ever() {
    let (server, mut client) = served();
    server.fault("dies").command("EXPIRE").drop_before();
    let mut application = application(&server);
    let added: i64 = application.sadd("seen", "event-1").expect("it is answered");
    let expires: RedisResult<bool> = application.expire("seen", 7200);
    assert!(added == 1 && expires.expect_err("the connection is lost").is_connection_dropped());
    assert_eq!(ttl_ms(&mut client, "seen"), Some(-1));
}

#[test]
fn an_application_that_dies_in_a_script_or_transaction_leaves_no_such_key() {
    let (server, mut client) = served();
    server.fault("dies").command("EVAL").drop_after();
    let see = || -> RedisResult<i64> {
        let mut command = redis::cmd("EVAL");
        command.arg(FIRST_SEEN).arg(1).arg("seen").arg("event-1").arg(7200);
        command.query(&mut application(&server))
    };
    assert!(see().is_err());
    assert!(ttl_ms(&mut client, "seen").is_some_and(|ttl_ms| ttl_ms > 7_000_000));
    server.clear_faults();
    assert_eq!(see().expect("it is answered"), 0);
    server.fault("dies").command("EXEC").drop_before();
    let lost: RedisResult<()> =
        redis::pipe().atomic().sadd("atomic", 1).expire("atomic", 10).query(&mut application(&server));
    assert!(lost.is_err());
    assert_eq!(call(&mut client, ["EXISTS", "atomic"]), 0);
}

#[test]
fn a_job_whose_worker_dies_after_the_claim_is_claimed_again_when_its_time_is_over() {
    let (server, mut client) = served();
    call(&mut client, ["ZADD", "delayed", "100", "job"]);
    server.fault("dies").command("EVAL").times(1).drop_after();
    let claim = |from: &str, to: &str, now: i64| -> RedisResult<Vec<String>> {
        let mut worker = application(&server);
        let mut command = redis::cmd("EVAL");
        command.arg(CLAIM_DUE).arg(2).arg(from).arg(to).arg(now).arg(10).arg(now + 30);
        command.query(&mut worker)
    };
    assert!(claim("delayed", "processing", 100).is_err());
    assert_eq!(call(&mut client, ["ZCARD", "delayed"]), 0);
    assert_eq!(call(&mut client, ["ZSCORE", "processing", "job"]), Reply::Double(130.0));
    assert_eq!(claim("delayed", "processing", 101).expect("it runs"), Vec::<String>::new());
    assert_eq!(claim("processing", "delayed", 131).expect("it runs"), ["job"]);
    assert_eq!(claim("delayed", "processing", 161).expect("it runs"), ["job"]);
}

#[test]
fn a_job_popped_by_a_worker_that_dies_is_gone_but_a_moved_one_is_not() {
    let (server, mut client) = served();
    for (command, words) in [
        ("BLPOP", vec!["BLPOP", "queue", "0"]),
        ("BLMOVE", vec!["BLMOVE", "queue", "processing", "LEFT", "RIGHT", "0"]),
    ] {
        server.fault("dies").command(command).drop_after();
        let worker = std::thread::spawn({
            let mut worker = application(&server);
            move || {
                let mut command = redis::cmd(words[0]);
                words[1..].iter().for_each(|word| _ = command.arg(*word));
                command.query::<redis::Value>(&mut worker)
            }
        });
        server.wait_until_blocked("queue", std::time::Duration::from_secs(60)).expect("a client blocks");
        call(&mut client, ["RPUSH", "queue", "job"]);
        assert!(worker.join().expect("it ends").is_err(), "{command}");
        assert_eq!(call(&mut client, ["LLEN", "queue"]), 0);
    }
    assert_eq!(call(&mut client, ["LRANGE", "processing", "0", "-1"]).items().map(<[Reply]>::len), Some(1));
}

#[test]
fn a_zadd_whose_reply_was_lost_does_no_harm_when_it_is_tried_again_and_an_increment_does() {
    let (server, mut client) = served();
    let journal = server.journal();
    server.fault("lost").command("ZADD").times(1).drop_after();
    server.fault("lost too").command("ZINCRBY").times(1).drop_after();
    let retried = |words: [&str; 4]| {
        let run = || redis::cmd(words[0]).arg(&words[1..]).query::<redis::Value>(&mut application(&server));
        run().or_else(|_| run()).expect("the second one is answered")
    };
    assert_eq!(retried(["ZADD", "board", "7", "ann"]), redis::Value::Int(0));
    assert_eq!(call(&mut client, ["ZSCORE", "board", "ann"]), Reply::Double(7.0));
    retried(["ZINCRBY", "board", "1", "bob"]);
    assert_eq!(call(&mut client, ["ZSCORE", "board", "bob"]), Reply::Double(2.0));
    journal.command("ZADD").assert_exactly(2);
}

#[test]
fn a_client_reads_a_reply_that_arrives_byte_by_byte() {
    let (server, mut client) = served();
    call(&mut client, ["RPUSH", "list", "a", "b", "c"]);
    server.fault("slow").split_reply();
    let mut application = application(&server);
    let all: Vec<String> = application.lrange("list", 0, -1).expect("it is whole");
    let length: usize = application.llen("list").expect("it is whole");
    assert_eq!((all.concat(), length), ("abc".to_owned(), 3));
}
