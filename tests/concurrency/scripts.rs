//! Patterns whose steps must be atomic, each step a script: recent activity, events that are handled once, delayed
//! jobs, and a rate limiter with a sliding window.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use dunlin::Server;
use redis::{Commands, Connection, Script, pipe};

use crate::{at_once, connect};

const FIRST_SEEN: &str = include_str!("../patterns/scripts/first-seen.lua");
const CLAIM_DUE: &str = include_str!("../patterns/scripts/claim-due.lua");
const RATE_LIMIT: &str = include_str!("../patterns/scripts/rate-limit.lua");

fn frozen() -> Server {
    Server::builder().frozen().start().expect("it starts")
}

fn now_ms(server: &Server) -> u64 {
    server.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

fn is_empty(server: &Server) -> bool {
    redis::cmd("DBSIZE").query(&mut connect(server)) == Ok(0)
}

/// Runs `act`, and calls `watch` again and again until `act` has ended.
fn watched(server: &Server, mut watch: impl FnMut(&mut Connection) + Send, act: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = connect(server);
            while !is_over.load(Ordering::Relaxed) {
                watch(&mut connection);
            }
        });
        act();
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn recent_activity_has_at_most_a_hundred_entries_and_always_a_deadline() {
    const USERS: usize = 3;
    const KEPT: usize = 100;
    const THIRTY_DAYS_S: u64 = 30 * 86_400;
    let server = frozen();
    let script = Script::new(
        "redis.call('LPUSH', KEYS[1], ARGV[1])
         redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[2]) - 1)
         redis.call('EXPIRE', KEYS[1], tonumber(ARGV[3]))
         return redis.call('LLEN', KEYS[1])",
    );
    let key = |user: usize| format!("user:{user}:recent");
    let watch = |connection: &mut Connection| {
        for user in 0..USERS {
            let (length, ttl): (usize, i64) =
                pipe().atomic().llen(key(user)).ttl(key(user)).query(connection).expect("it is answered");
            assert!(length <= KEPT && (length == 0 || ttl > 0), "{length} activities for {ttl} seconds");
        }
    };
    watched(&server, watch, || {
        at_once(&server, 8, |client, connection| {
            for number in 0..300 {
                let mut call = script.key(key(number % USERS));
                call.arg(format!("activity-{client}-{number}")).arg(KEPT).arg(THIRTY_DAYS_S);
                let length: usize = call.invoke(connection).expect("it is added");
                assert!((1..=KEPT).contains(&length));
            }
        });
    });
    let mut connection = connect(&server);
    for user in 0..USERS {
        assert_eq!(connection.llen(key(user)), Ok(KEPT));
    }
    server.advance(Duration::from_secs(THIRTY_DAYS_S));
    assert!(is_empty(&server));
}

#[test]
fn an_event_is_new_exactly_once_and_every_bucket_expires_although_receivers_die() {
    const EVENTS: usize = 400;
    const RECEIVERS: usize = 8;
    let server = frozen();
    let script = Script::new(FIRST_SEEN);
    // The bucket by the hour of the event, the shard by its name.
    let bucket = |event: usize| format!("dedupe:payment-events:202607021{}:{:02}", event / 200, event % 7);
    let watch = |connection: &mut Connection| {
        for event in (0..EVENTS).step_by(29) {
            let ttl: i64 = connection.ttl(bucket(event)).expect("it is answered");
            assert_ne!(ttl, -1, "{} has no end", bucket(event));
        }
    };
    let mut first_seen = Vec::new();
    watched(&server, watch, || {
        first_seen = at_once(&server, RECEIVERS, |client, connection| {
            let met = (0..EVENTS).map(|number| (number * 7 + client * 61) % EVENTS);
            met.filter(|event| {
                let mut call = script.key(bucket(*event));
                call.arg(format!("event-{event}")).arg(7200);
                if event % 50 == client {
                    // Another receiver dies while it waits for this answer.
                    let request = redis::cmd("EVAL")
                        .arg(FIRST_SEEN)
                        .arg(1)
                        .arg(bucket(EVENTS + event))
                        .arg(format!("event-{event}"))
                        .arg(7200)
                        .get_packed_command();
                    connect(&server).send_packed_command(&request).expect("it is sent");
                }
                call.invoke::<bool>(connection).expect("it is noted")
            })
            .collect::<Vec<_>>()
        });
    });
    let seen: Vec<usize> = first_seen.into_iter().flatten().collect();
    assert_eq!(seen.len(), EVENTS);
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len(), EVENTS);
    server.advance(Duration::from_secs(7200));
    assert!(is_empty(&server));
}

const DELAYED: &str = "retry:quote-pricing:delayed";
const PROCESSING: &str = "retry:quote-pricing:processing";
const VISIBILITY_MS: u64 = 60_000;

/// Jobs that are due later, with one connection.
struct Scheduler<'c> {
    server: &'c Server,
    connection: &'c mut Connection,
    claim: Script,
}

impl Scheduler<'_> {
    fn of<'c>(server: &'c Server, connection: &'c mut Connection) -> Scheduler<'c> {
        Scheduler { server, connection, claim: Script::new(CLAIM_DUE) }
    }

    fn schedule(&mut self, jobs: &[String], due_ms: u64) {
        let jobs: Vec<(u64, &String)> = jobs.iter().map(|job| (due_ms, job)).collect();
        let _: usize = self.connection.zadd_multiple(DELAYED, &jobs).expect("they are scheduled");
    }

    /// Jobs that are due in the set of that name.
    fn claim_from(&mut self, set: &str, limit: usize) -> Vec<String> {
        let now_ms = now_ms(self.server);
        let mut call = self.claim.key(set);
        call.key(PROCESSING).arg(now_ms).arg(limit).arg(now_ms + VISIBILITY_MS);
        call.invoke(self.connection).expect("they are claimed")
    }

    fn ack(&mut self, jobs: &[String]) {
        assert_eq!(self.connection.zrem(PROCESSING, jobs), Ok(jobs.len()));
    }

    fn retry(&mut self, job: &str, next_due_ms: u64) {
        let (is_moved, _): (bool, usize) = pipe()
            .atomic()
            .zrem(PROCESSING, job)
            .zadd(DELAYED, job, next_due_ms)
            .query(self.connection)
            .expect("the job is delayed");
        assert!(is_moved);
    }
}

/// The jobs that a worker did.
#[derive(Default)]
struct Work {
    done: Vec<String>,
    abandoned: Vec<String>,
}

/// Claims until nothing is due. Sometimes it dies after a claim, and of each lot it puts one job off.
fn work(scheduler: &mut Scheduler<'_>, set: &str, dies_at: usize) -> Work {
    let mut work = Work::default();
    for claim in 1.. {
        let mut jobs = scheduler.claim_from(set, 100);
        if jobs.is_empty() {
            break;
        }
        if claim % dies_at == 0 {
            work.abandoned.extend(jobs);
            continue;
        }
        let put_off = jobs.pop().expect("a job is claimed");
        if jobs.is_empty() {
            jobs.push(put_off);
        } else {
            scheduler.retry(&put_off, now_ms(scheduler.server) + VISIBILITY_MS);
        }
        scheduler.ack(&jobs);
        work.done.extend(jobs);
    }
    work
}

#[test]
fn fifty_workers_claim_a_hundred_thousand_jobs_and_none_is_lost_or_done_twice() {
    const WORKERS: usize = 50;
    const JOBS: usize = 100_000;
    let server = frozen();
    let start_ms = now_ms(&server);
    at_once(&server, 4, |client, connection| {
        let mut scheduler = Scheduler::of(&server, connection);
        for lot in 0..JOBS / 4000 {
            let numbers = (0..1000).map(|number| client * JOBS / 4 + lot * 1000 + number);
            let jobs: Vec<String> = numbers.map(|number| format!("job-{number}")).collect();
            scheduler.schedule(&jobs, start_ms + 1000);
        }
    });
    let claim_all = |set: &'static str, dies_at: usize| {
        at_once(&server, WORKERS, |_, connection| work(&mut Scheduler::of(&server, connection), set, dies_at))
    };
    assert!(claim_all(DELAYED, 1).iter().all(|work| work.abandoned.is_empty()), "nothing is due yet");

    server.advance(Duration::from_secs(1));
    let mut done = Vec::new();
    let mut abandoned = BTreeSet::new();
    for work in claim_all(DELAYED, 7) {
        done.extend(work.done);
        abandoned.extend(work.abandoned);
    }
    assert_eq!(connect(&server).zcard(PROCESSING), Ok(abandoned.len()));
    server.advance(Duration::from_millis(VISIBILITY_MS - 1));
    assert!(claim_all(PROCESSING, 1).iter().all(|work| work.abandoned.is_empty()), "nothing is given up yet");

    // Delayed jobs are due now, and jobs of dead workers can be claimed again, until all are done.
    for _ in 0..20 {
        server.advance(Duration::from_millis(VISIBILITY_MS));
        let works = claim_all(PROCESSING, usize::MAX).into_iter().chain(claim_all(DELAYED, usize::MAX));
        done.extend(works.flat_map(|work| work.done));
        if is_empty(&server) {
            break;
        }
    }
    assert_eq!(done.len(), JOBS);
    assert_eq!(done.into_iter().collect::<BTreeSet<_>>().len(), JOBS);
    assert!(is_empty(&server));
}

#[test]
fn a_sliding_window_admits_exactly_its_limit() {
    const CLIENTS: usize = 100;
    const LIMIT: usize = 50;
    const WINDOW_MS: u64 = 1000;
    let server = frozen();
    let script = Script::new(RATE_LIMIT);
    let admitted_of = |attempts: usize| {
        let now_ms = now_ms(&server);
        let admitted = at_once(&server, CLIENTS, |client, connection| {
            let ask = |number: &usize| {
                let mut call = script.key("rate:tenant-7:search");
                call.arg(now_ms).arg(WINDOW_MS).arg(LIMIT).arg(format!("{now_ms}-{client}-{number}")).arg(60);
                let (is_admitted, count): (bool, usize) = call.invoke(connection).expect("it is answered");
                assert!((1..=LIMIT).contains(&count));
                is_admitted
            };
            (client..attempts).step_by(CLIENTS).filter(ask).count()
        });
        admitted.iter().sum::<usize>()
    };
    // The admissions in the window: their times and numbers.
    let mut window = VecDeque::new();
    for attempts in [30, 15, 20, 300, 0, 1, 40, 7, 60, 10, 90, 5, 200, 3, 25] {
        let now_ms = now_ms(&server);
        while window.front().is_some_and(|(at_ms, _)| at_ms + WINDOW_MS <= now_ms) {
            window.pop_front();
        }
        let held: usize = window.iter().map(|(_, count)| count).sum();
        let admitted = admitted_of(attempts);
        assert_eq!(admitted, attempts.min(LIMIT - held));
        window.push_back((now_ms, admitted));
        server.advance(Duration::from_millis(270));
    }
    server.advance(Duration::from_secs(60));
    assert!(is_empty(&server));
}
