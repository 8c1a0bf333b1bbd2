//! A guarded test finds code that works on a developer's machine and fails in production.
//!
//! Run it with `cargo run --example guarded`: it prints the findings of strict mode in the first way to count logins,
//! and nothing of the second.

use dunlin::{Level, TestServer, assert_reply, assert_ttl};
use redis::{Commands, Connection, RedisResult};

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// Lives for ever when the application dies between the two.
fn count_carelessly(redis: &mut Connection, user: &str) -> RedisResult<()> {
    let key = format!("logins:{user}");
    redis.incr(&key, 1).and_then(|_: i64| redis.expire(&key, 3600))
}

fn count(redis: &mut Connection, user: &str) -> RedisResult<()> {
    let key = format!("logins:{user}");
    redis::pipe().atomic().incr(&key, 1).expire(&key, 3600).query(redis)
}

fn connect(redis: &TestServer) -> RedisResult<Connection> {
    redis::Client::open(redis.url())?.get_connection()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let redis = dunlin::test();
    redis.strict().set_all(Level::Error);

    let error = count_carelessly(&mut connect(&redis)?, "ann").expect_err("a rule refuses it");
    writeln(&format!("the application is told: {error}"))?;
    for finding in redis.strict().findings() {
        writeln(&format!("the test is told: {finding}"))?;
    }
    redis.strict().clear();

    count(&mut connect(&redis)?, "bob")?;
    assert_reply!(redis, "GET logins:bob" == 1);
    assert_ttl!(redis, "logins:bob" == HOUR);
    redis.strict().assert_none();
    Ok(())
}

fn writeln(line: &str) -> std::io::Result<()> {
    use std::io::Write;
    writeln!(std::io::stdout(), "{line}")
}
