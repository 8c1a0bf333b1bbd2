//! Queues with blocked clients, over sockets: no job is lost or delivered twice.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use dunlin::Server;
use redis::{Client, Commands, Connection};

use crate::timeout::TIMEOUT;

const WORKERS: usize = 20;
const PRODUCERS: usize = 5;
const JOBS_EACH: usize = 400;
const STOP: &str = "stop";

fn connect(server: &Server) -> Connection {
    let client = Client::open(server.url()).expect("the URL is valid");
    client.get_connection().expect("it connects")
}

fn produce(server: &Server, producer: usize) {
    let mut connection = connect(server);
    for job in 0..JOBS_EACH {
        let _: () = connection.lpush("jobs", format!("{producer}:{job}")).expect("it is pushed");
    }
}

fn all_jobs() -> BTreeSet<String> {
    (0..PRODUCERS).flat_map(|producer| (0..JOBS_EACH).map(move |job| format!("{producer}:{job}"))).collect()
}

#[test]
fn twenty_workers_and_five_producers_lose_and_repeat_no_job() {
    let server = Server::start().expect("it starts");
    let work = || {
        let mut connection = connect(&server);
        let mut done = Vec::new();
        loop {
            let (_, job): (String, String) = connection.brpop("jobs", 0.0).expect("a job comes");
            if job == STOP {
                return done;
            }
            done.push(job);
        }
    };
    let done: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let server = &server;
                scope.spawn(move || produce(server, producer));
            }
        });
        let stops = vec![STOP; WORKERS];
        let _: () = connect(&server).lpush("jobs", stops).expect("they are pushed");
        workers.into_iter().flat_map(|worker| worker.join().expect("no worker fails")).collect()
    });
    assert_eq!(done.len(), PRODUCERS * JOBS_EACH);
    assert_eq!(done.into_iter().collect::<BTreeSet<_>>(), all_jobs());
}

/// Each worker moves a job to its own list, does it, and removes it there. At every seventh job it dies instead, and
/// another worker that finds its list puts the job back.
#[test]
fn jobs_of_workers_that_crash_are_done_by_others() {
    let server = Server::start().expect("it starts");
    let crashes = AtomicUsize::new(0);
    let work = |worker: usize| {
        let (own, mut connection) = (format!("processing:{worker}"), connect(&server));
        for number in 1.. {
            let moving = redis::cmd("BLMOVE").arg(&["jobs", &own, "RIGHT", "LEFT", "0"]).take();
            let job: String = moving.query(&mut connection).expect("a job comes");
            if job == STOP {
                let _: () = connection.lrem(&own, 1, &job).expect("it is removed");
                return;
            }
            if number % 7 == 0 {
                crashes.fetch_add(1, Ordering::Relaxed);
                connection = connect(&server);
                let _: Option<String> = connection.rpoplpush(&own, "jobs").expect("the job is put back");
                continue;
            }
            let (_, count, _): (u32, usize, u32) = redis::pipe()
                .atomic()
                .sadd("done", &job)
                .incr("count", 1)
                .lrem(&own, 1, &job)
                .query(&mut connection)
                .expect("it is done");
            if count == PRODUCERS * JOBS_EACH {
                let _: () = connection.lpush("finished", "all of them").expect("the list accepts it");
            }
        }
    };
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let work = &work;
            scope.spawn(move || work(worker));
        }
        thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let server = &server;
                scope.spawn(move || produce(server, producer));
            }
        });
        let mut connection = connect(&server);
        let finished: Option<(String, String)> = connection.blpop("finished", TIMEOUT.as_secs_f64()).expect("it waits");
        assert!(finished.is_some(), "not all jobs are done");
        let _: () = connection.lpush("jobs", vec![STOP; WORKERS]).expect("they are pushed");
    });
    assert!(crashes.into_inner() > 0);
    let mut connection = connect(&server);
    assert_eq!(connection.smembers::<_, BTreeSet<String>>("done").expect("a set"), all_jobs());
    assert_eq!(
        connection.keys::<_, BTreeSet<String>>("*").expect("keys"),
        BTreeSet::from(["count".into(), "done".into()])
    );
}

#[test]
fn a_client_that_disconnects_while_it_is_blocked_pops_nothing() {
    let server = Server::start().expect("it starts");
    let mut other = connect(&server);
    for round in 0..50 {
        let mut vanishing = connect(&server);
        vanishing
            .send_packed_command(&redis::cmd("BLPOP").arg("jobs").arg(0).get_packed_command())
            .expect("it is sent");
        drop(vanishing);
        server.wait_for_clients(1, TIMEOUT).expect("the client is gone");
        let _: () = other.rpush("jobs", round).expect("it is pushed");
        assert_eq!(other.lpop::<_, Option<i64>>("jobs", None).expect("a job"), Some(round));
    }
}
