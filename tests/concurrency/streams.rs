//! A queue on a stream: workers of one group, some of which crash in the middle of their work.

use std::collections::{BTreeSet, HashMap};
use std::thread;
use std::time::Duration;

use dunlin::Server;
use fastrand::Rng;
use redis::{Connection, RedisResult, cmd};

use crate::timeout::TIMEOUT;
use crate::{at_once, connect};

const JOBS: usize = 4_000;
const PRODUCERS: usize = 2;
const WORKERS: usize = 8;

/// Entries with their fields and values.
type Entries = Vec<(String, Vec<String>)>;

/// The new entries for that consumer, which waits a second for them; empty when there are none.
fn read(connection: &mut Connection, consumer: &str, count: usize) -> RedisResult<Entries> {
    let read: Option<Vec<(String, Entries)>> = cmd("XREADGROUP")
        .arg(&["GROUP", "workers", consumer, "COUNT"])
        .arg(count)
        .arg(&["BLOCK", "1000", "STREAMS", "jobs", ">"])
        .query(connection)?;
    Ok(read.unwrap_or_default().into_iter().flat_map(|(_, entries)| entries).collect())
}

/// The number of entries that were not delivered to any consumer yet.
fn lag(connection: &mut Connection) -> usize {
    let groups: Vec<HashMap<String, redis::Value>> =
        cmd("XINFO").arg(&["GROUPS", "jobs"]).query(connection).expect("it is answered");
    redis::from_redis_value_ref(&groups[0]["lag"]).expect("nothing was deleted, so it is known")
}

/// Whether it was this one who had the entry acknowledged.
fn acknowledge(connection: &mut Connection, id: &str) -> bool {
    cmd("XACK").arg(&["jobs", "workers", id]).query(connection) == Ok(1)
}

/// Works until no entries are left, and crashes now and then with the entries that it has. Returns the ids of the
/// entries that it acknowledged.
fn work(server: &Server, number: usize) -> Vec<String> {
    let (mut rng, mut lives, mut done) = (Rng::with_seed(number as u64), 0, Vec::new());
    let mut connection = connect(server);
    loop {
        let consumer = format!("worker-{number}-{lives}");
        let entries = read(&mut connection, &consumer, rng.usize(1..8)).expect("it is read");
        if entries.is_empty() {
            return done;
        }
        let falls_over_after = if rng.u8(..6) == 0 { rng.usize(..=entries.len()) } else { usize::MAX };
        for (id, fields) in entries.iter().take(falls_over_after) {
            assert_eq!(fields[0], "job");
            if acknowledge(&mut connection, id) {
                done.push(id.clone());
            }
        }
        if falls_over_after != usize::MAX {
            lives += 1;
            connection = connect(server);
        }
    }
}

/// Takes over what others have had for half a minute, until none is left.
fn take_over(connection: &mut Connection, consumer: &str) -> Vec<String> {
    let (mut next, mut done) = ("0-0".to_owned(), Vec::new());
    loop {
        let (cursor, entries, gone): (String, Entries, Vec<String>) = cmd("XAUTOCLAIM")
            .arg(&["jobs", "workers", consumer, "30000", &next, "COUNT", "3"])
            .query(connection)
            .expect("they are taken over");
        assert!(gone.is_empty(), "no entry was deleted");
        done.extend(entries.into_iter().map(|(id, _)| id).filter(|id| acknowledge(connection, id)));
        next = cursor;
        if next == "0-0" {
            return done;
        }
    }
}

#[test]
fn a_group_of_crashing_workers_does_every_job_and_acknowledges_each_once() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut connection = connect(&server);
    let () =
        cmd("XGROUP").arg(&["CREATE", "jobs", "workers", "$", "MKSTREAM"]).query(&mut connection).expect("it is made");
    let acknowledged = thread::scope(|scope| {
        let server = &server;
        let workers: Vec<_> = (0..WORKERS).map(|number| scope.spawn(move || work(server, number))).collect();
        at_once(server, PRODUCERS, |producer, connection| {
            for job in 0..JOBS / PRODUCERS {
                let name = format!("{producer}-{job}");
                let () = cmd("XADD").arg(&["jobs", "*", "job", &name]).query(connection).expect("it is added");
            }
        });
        // The clock is frozen, so when all workers wait, all jobs have been delivered.
        server.wait_for_blocked("jobs", WORKERS as u64, TIMEOUT).expect("all workers wait");
        assert_eq!(lag(&mut connection), 0);
        server.advance(Duration::from_secs(1));
        workers.into_iter().flat_map(|worker| worker.join().expect("no worker fails")).collect::<Vec<String>>()
    });
    server.advance(Duration::from_secs(30));
    let taken_over = at_once(&server, WORKERS, |number, connection| take_over(connection, &format!("heir-{number}")));
    let all: Vec<String> = acknowledged.into_iter().chain(taken_over.into_iter().flatten()).collect();
    assert_eq!(all.len(), JOBS, "each job is acknowledged, and none twice");
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), JOBS);
    let pending: (usize, redis::Value, redis::Value, redis::Value) =
        cmd("XPENDING").arg(&["jobs", "workers"]).query(&mut connection).expect("it is answered");
    assert_eq!(pending.0, 0, "nothing is pending");
}
