//! The patterns of a Rust backend with redis-rs: blocking, on tokio, and through a connection manager that reconnects
//! when its server is back.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::{AsyncCommands, AsyncConnectionConfig, Commands, Connection, PushKind, RedisResult, Script};

use crate::binary::Binary;
use crate::timeout::{TIMEOUT, wait_until};

const FIRST_SEEN: &str =
    "local added = redis.call('SADD', KEYS[1], ARGV[1]) redis.call('EXPIRE', KEYS[1], ARGV[2]) return added";

fn client(server: &Binary, protocol: &str) -> redis::Client {
    let url = format!("redis://127.0.0.1:{}/?protocol={protocol}", server.port());
    redis::Client::open(url).expect("the address is right")
}

fn on_tokio<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there are threads").block_on(work)
}

/// The patterns for a program that waits for each reply.
pub fn blocking(server: &Binary, protocol: &str) -> RedisResult<()> {
    let client = client(server, protocol);
    let mut connection = client.get_connection()?;
    let () = connection.flushall()?;
    a_pipeline_keeps_a_list_of_what_was_viewed_last(&mut connection)?;
    a_transaction_that_was_overtaken_is_tried_again(&client)?;
    let script = Script::new(FIRST_SEEN);
    for expected in [1, 0, 0] {
        let added: i32 = script.key("dedupe").arg("event-1").arg(7200).invoke(&mut connection)?;
        assert_eq!(added, expected);
    }
    messages_reach_who_listens_in_order(&client)?;
    workers_take_jobs_as_they_come(&client)?;
    let keys: Vec<(String, i32)> = (0..500).map(|number| (format!("user:{number}"), number)).collect();
    let () = connection.mset(&keys)?;
    let met: HashSet<String> = connection.scan_match("user:*")?.collect::<RedisResult<_>>()?;
    assert_eq!(met.len(), 500);
    let () = connection.pset_ex("session", "ann", 30)?;
    wait_until("a key ends on its millisecond", || connection.exists("session").is_ok_and(|is_there: bool| !is_there));
    assert_eq!(connection.pttl::<_, i64>("session")?, -2);
    Ok(())
}

fn a_pipeline_keeps_a_list_of_what_was_viewed_last(connection: &mut Connection) -> RedisResult<()> {
    for moment in 0..35 {
        let mut pipe = redis::pipe();
        pipe.zadd("rv:42", format!("page-{moment}"), moment).zrembylex("rv:42", "[x", "[y").ignore();
        pipe.zremrangebyrank("rv:42", 0, -31).expire("rv:42", 3600);
        let (added, trimmed, expires): (i32, i32, bool) = pipe.query(connection)?;
        assert_eq!((added, trimmed, expires), (1, i32::from(moment >= 30), true));
    }
    let newest: Vec<(String, f64)> = connection.zrevrange_withscores("rv:42", 0, 1)?;
    assert_eq!(newest, [("page-34".to_owned(), 34.0), ("page-33".to_owned(), 33.0)]);
    let missing: Option<f64> = connection.zscore("rv:42", "nobody")?;
    assert_eq!(missing, None);
    Ok(())
}

fn a_transaction_that_was_overtaken_is_tried_again(client: &redis::Client) -> RedisResult<()> {
    let () = client.get_connection()?.set("stock", 43)?;
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = client.get_connection().expect("there is room");
                for _ in 0..5 {
                    let (left,): (i32,) = redis::transaction(&mut connection, &["stock"], |connection, pipe| {
                        let left: i32 = connection.get("stock")?;
                        pipe.set("stock", left - 1).ignore().get("stock").query(connection)
                    })
                    .expect("it is tried until it succeeds");
                    assert!(left < 43);
                }
            });
        }
    });
    assert_eq!(client.get_connection()?.get::<_, i32>("stock")?, 3);
    Ok(())
}

fn messages_reach_who_listens_in_order(client: &redis::Client) -> RedisResult<()> {
    let (mut connection, mut other) = (client.get_connection()?, client.get_connection()?);
    let mut listener = connection.as_pubsub();
    listener.subscribe("news")?;
    listener.psubscribe("other*")?;
    for number in 0..50 {
        let () = other.publish(if number % 2 == 0 { "news" } else { "others" }, number)?;
    }
    for number in 0..50 {
        assert_eq!(listener.get_message()?.get_payload::<i32>()?, number);
    }
    Ok(())
}

fn workers_take_jobs_as_they_come(client: &redis::Client) -> RedisResult<()> {
    let mut connection = client.get_connection()?;
    thread::scope(|scope| -> RedisResult<()> {
        let worker = scope.spawn(|| -> RedisResult<usize> {
            let mut own = client.get_connection()?;
            let mut done = 0;
            while own.blpop::<_, [String; 2]>(&["urgent", "jobs"], 5.0)?[1] != "stop" {
                done += 1;
            }
            Ok(done)
        });
        for number in 0..50 {
            let () = connection.rpush("jobs", number)?;
        }
        let () = connection.rpush("jobs", "stop")?;
        assert_eq!(worker.join().expect("it does not fail")?, 50);
        Ok(())
    })?;
    let nothing: Option<[String; 2]> = connection.blpop("nothing", 0.1)?;
    assert_eq!(nothing, None);
    Ok(())
}

/// The patterns for a program with many tasks on one connection.
pub fn on_one_connection(server: &Binary, protocol: &str) -> RedisResult<()> {
    on_tokio(async {
        let client = client(server, protocol);
        let mut connection = client.get_multiplexed_async_connection().await?;
        let () = connection.flushall().await?;
        many_tasks_share(connection.clone()).await?;
        patterns_of_tasks(&mut connection).await?;
        let mut waiting = client.get_multiplexed_async_connection().await?;
        let job = tokio::spawn(async move { waiting.blpop::<_, [String; 2]>("jobs", 5.0).await });
        let () = connection.rpush("jobs", "job").await?;
        assert_eq!(job.await.expect("it does not fail")?, ["jobs", "job"]);
        Ok(())
    })
}

async fn many_tasks_share<C>(connection: C) -> RedisResult<()>
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    let visits: Vec<_> = (0..100)
        .map(|_| {
            let mut connection = connection.clone();
            tokio::spawn(async move { connection.incr::<_, _, i32>("visits", 1).await })
        })
        .collect();
    let mut counts = HashSet::new();
    for visit in visits {
        counts.insert(visit.await.expect("it does not fail")?);
    }
    assert_eq!(counts, (1..=100).collect());
    Ok(())
}

async fn patterns_of_tasks<C: ConnectionLike + Send + Sync>(connection: &mut C) -> RedisResult<()> {
    let mut pipe = redis::pipe();
    pipe.atomic().zadd("rv:42", "page-1", 1).zadd("rv:42", "page-2", 2).expire("rv:42", 3600);
    assert_eq!(pipe.query_async::<(i32, i32, bool)>(connection).await?, (1, 1, true));
    assert_eq!(connection.zrevrange::<_, Vec<String>>("rv:42", 0, 0).await?, ["page-2"]);
    let script = Script::new(FIRST_SEEN);
    for expected in [1, 0] {
        let added: i32 = script.key("dedupe").arg("event-1").arg(7200).invoke_async(connection).await?;
        assert_eq!(added, expected);
    }
    let keys: Vec<(String, i32)> = (0..200).map(|number| (format!("user:{number}"), number)).collect();
    let () = connection.mset(&keys).await?;
    let mut names = connection.scan_match::<_, String>("user:*").await?;
    let mut met = HashSet::new();
    while let Some(name) = names.next_item().await {
        met.insert(name?);
    }
    assert_eq!(met.len(), 200);
    drop(names);
    let () = connection.pset_ex("session", "ann", 30).await?;
    tokio::time::timeout(TIMEOUT, until_gone(connection, "session")).await.expect("a key ends on its millisecond")
}

async fn until_gone<C: ConnectionLike + Send + Sync>(connection: &mut C, key: &str) -> RedisResult<()> {
    while connection.exists(key).await? {}
    Ok(())
}

/// Messages come between the replies of RESP3.
pub fn receives_pushes(server: &Binary) -> RedisResult<()> {
    on_tokio(async {
        let (sender, mut pushes) = tokio::sync::mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let mut connection = client(server, "resp3").get_multiplexed_async_connection_with_config(&config).await?;
        connection.subscribe("news").await?;
        for number in 0..50 {
            let receivers: i32 = connection.publish("news", number).await?;
            assert_eq!(receivers, 1);
        }
        let mut received = 0;
        while received < 50 {
            let push = pushes.recv().await.expect("the connection is open");
            if push.kind == PushKind::Message {
                assert_eq!(redis::from_redis_value_ref::<i32>(&push.data[1])?, received);
                received += 1;
            }
        }
        Ok(())
    })
}

/// A connection manager reconnects when its connection is closed.
pub fn through_a_manager(server: &Binary, protocol: &str) -> RedisResult<()> {
    on_tokio(async {
        let client = client(server, protocol);
        let config = ConnectionManagerConfig::new().set_min_delay(Duration::from_millis(1));
        let mut manager = ConnectionManager::new_with_config(client.clone(), config).await?;
        let () = manager.flushall().await?;
        many_tasks_share(manager.clone()).await?;
        patterns_of_tasks(&mut manager).await?;
        let mut other = client.get_multiplexed_async_connection().await?;
        let () = redis::cmd("CLIENT").arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]).query_async(&mut other).await?;
        while manager.set::<_, _, ()>("greeting", "hello").await.is_err() {}
        assert_eq!(other.get::<_, String>("greeting").await?, "hello");
        Ok(())
    })
}
