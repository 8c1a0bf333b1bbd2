//! The test kit in async tests, on a runtime of one thread: a waiting call does not block the other tasks.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use dunlin::{CallError, Reply, assert_reply};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Whether a future is pending after its first poll.
async fn is_pending(mut future: Pin<&mut impl Future>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}

fn job() -> Reply {
    Reply::Array(vec![Reply::Bytes(b"queue".to_vec()), Reply::Bytes(b"job".to_vec())])
}

#[tokio::test]
async fn a_wait_does_not_stop_the_task_that_it_waits_for() {
    let redis = dunlin::test();
    let application = redis::Client::open(redis.url()).expect("the address is right");
    let mut worker = application.get_multiplexed_async_connection().await.expect("it listens");
    let worker = tokio::spawn(async move {
        let mut command = redis::cmd("BLPOP");
        command.arg("queue").arg(50).query_async::<(String, String)>(&mut worker).await
    });
    redis.wait_until_blocked_async("queue", TIMEOUT).await.expect("a client blocks");
    let mut producer = redis.client().expect("there is room");
    producer.call_async(["RPUSH", "queue", "job"]).await.expect("it is answered");
    assert_eq!(worker.await.expect("it ends").expect("it is answered"), ("queue".to_owned(), "job".to_owned()));
    redis.journal().command("RPUSH").wait_for_async(1, TIMEOUT).await.expect("it was run");
    assert_reply!(redis, "EXISTS queue" == 0);
}

#[tokio::test]
async fn several_calls_can_wait_at_once() {
    let redis = dunlin::test();
    let (mut one, mut other) = (redis.client().expect("there is room"), redis.client().expect("there is room"));
    let produce = async {
        redis.wait_until_blocked_async("queue", TIMEOUT).await.expect("a client blocks");
        other.call_async(["RPUSH", "queue", "job"]).await
    };
    let (taken, pushed) = tokio::join!(one.call_async(["BLPOP", "queue", "50"]), produce);
    assert_eq!((taken, pushed), (Ok(job()), Ok(Reply::Integer(1))));
    assert_eq!(one.call_async(Vec::<&str>::new()).await, Ok(Reply::Null));
    let refused = one.call_async(["INCR"]).await.expect_err("it is malformed");
    assert!(refused.to_string().starts_with("ERR wrong number"));
}

#[tokio::test]
async fn a_wait_for_subscribers_ends_when_they_subscribe() {
    let redis = dunlin::test();
    let mut listener = redis.client().expect("there is room");
    let (waited, _) = tokio::join!(redis.wait_for_subscribers_async("news", 1, TIMEOUT), async {
        listener.call_async(["SUBSCRIBE", "news"]).await.expect("it is answered")
    });
    waited.expect("the subscriber exists");
    redis.freeze();
    let mut wait = pin!(redis.wait_for_subscribers_async("news", 2, TIMEOUT));
    assert!(is_pending(wait.as_mut()).await);
    redis.advance(TIMEOUT);
    let waited = wait.await;
    assert_eq!(waited.expect_err("there is none").to_string(), "ERR waited in vain: 1 of 2 listen to 'news'");
}

#[tokio::test]
async fn a_pause_holds_a_call_back_until_it_ends() {
    let redis = dunlin::test();
    redis.freeze();
    redis.call(["CLIENT", "PAUSE", "1000"]).expect("it is answered");
    let mut client = redis.client().expect("there is room");
    let (answer, ()) = tokio::join!(client.call_async(["SET", "key", "value"]), async {
        redis.advance(Duration::from_secs(1));
    });
    assert_eq!(answer, Ok(Reply::Status("OK".to_owned())));
}

#[tokio::test]
async fn a_call_that_is_given_up_closes_its_client() {
    let redis = dunlin::test();
    let mut client = redis.client().expect("there is room");
    {
        let mut call = pin!(client.call_async(["BLPOP", "queue", "0"]));
        assert!(is_pending(call.as_mut()).await);
    }
    assert_eq!(client.call_async(["PING"]).await, Err(CallError::Closed));
    assert_reply!(redis, "RPUSH queue job" == 1);
    assert_reply!(redis, "LLEN queue" == 1);
}

#[tokio::test]
async fn a_killed_client_gets_an_error() {
    let redis = dunlin::test();
    let mut client = redis.client().expect("there is room");
    let id = client.call_async(["CLIENT", "ID"]).await.expect("it is answered").integer().expect("a number");
    let (answer, ()) = tokio::join!(client.call_async(["BLPOP", "queue", "0"]), async {
        redis.wait_until_blocked_async("queue", TIMEOUT).await.expect("a client blocks");
        redis.call(["CLIENT", "KILL", "ID", &id.to_string()]).expect("it is answered");
    });
    assert_eq!(answer, Err(CallError::Closed));
}
