//! A Rust backend that goes on while its cluster changes, with redis-rs. What it reads and writes is in
//! [`crate::resharding`].
//!
//! Its workers share a pool of connections of the cluster's client. One that has failed is not used again: it may have
//! replies to come of a pipeline that was sent to some nodes only.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

use redis::cluster::{ClusterClient, ClusterConnection, cluster_pipe};
use redis::{Commands, Connection, ConnectionLike, ProtocolVersion, RedisResult, Script, pipe, transaction};

const WATCHED: &str = "{0}:watched";
const BOTH: &str = "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('RPUSH', KEYS[2], ARGV[1])";

/// Connections that are not in use.
struct Pool {
    client: ClusterClient,
    idle: Mutex<Vec<ClusterConnection>>,
}

impl Pool {
    fn with<R>(&self, act: impl FnOnce(&mut ClusterConnection) -> RedisResult<R>) -> RedisResult<R> {
        let idle = self.idle.lock().expect("no thread panics").pop();
        let mut connection = idle.map_or_else(|| self.client.get_connection(), Ok)?;
        let result = act(&mut connection)?;
        self.idle.lock().expect("no thread panics").push(connection);
        Ok(result)
    }
}

/// A connection to the node that has the watched list. The cluster's client would send what follows WATCH to another
/// node when the slot has moved, on a connection that watches nothing.
struct Watcher {
    first: String,
    node: Option<Connection>,
}

impl Watcher {
    fn add_next(&mut self) -> RedisResult<()> {
        let connection = match &mut self.node {
            Some(connection) => connection,
            none => none.insert(redis::Client::open(&*self.first)?.get_connection()?),
        };
        let added = transaction(connection, &[WATCHED], |connection, pipe| {
            let length: usize = connection.llen(WATCHED)?;
            pipe.rpush(WATCHED, length + 1).query::<Option<(usize,)>>(connection)
        });
        added.map(drop).inspect_err(|error| {
            let owner = error.redirect_node().map(|(address, _)| format!("redis://{address}/"));
            self.node = owner.and_then(|url| redis::Client::open(url).ok()?.get_connection().ok());
        })
    }
}

/// What a worker does, with the numbers from 1 on.
type Work<'pool> = Box<dyn FnMut(usize) -> RedisResult<()> + Send + 'pool>;

struct Worker {
    kind: &'static str,
    keys: Vec<String>,
}

#[derive(Clone, Default)]
struct Progress {
    sent: usize,
    acknowledged: usize,
    unknown: Vec<usize>,
}

struct Backend {
    workers: Vec<Worker>,
    progress: Mutex<Vec<Progress>>,
    has_changed: Condvar,
    is_done: AtomicBool,
}

impl Backend {
    /// Works until all is done.
    fn work(&self, place: usize, mut work: Work<'_>) {
        let progress = || self.progress.lock().expect("no thread panics");
        while !self.is_done.load(Ordering::Acquire) {
            let number = {
                let own = &mut progress()[place];
                own.sent += 1;
                own.sent
            };
            let outcome = work(number);
            let own = &mut progress()[place];
            match outcome {
                Ok(()) => own.acknowledged = number,
                Err(_) => own.unknown.push(number),
            }
            self.has_changed.notify_all();
        }
    }

    /// Waits until each worker of these kinds has done something that it began since.
    fn wait_for(&self, kinds: &str) {
        let progress = self.progress.lock().expect("no thread panics");
        let is_meant = |worker: &Worker| kinds.split(' ').any(|kind| kind == worker.kind);
        let workers = self.workers.iter().zip(progress.iter()).enumerate();
        let awaited: Vec<(usize, usize)> =
            workers.filter(|(_, (worker, _))| is_meant(worker)).map(|(place, (_, own))| (place, own.sent)).collect();
        let is_behind = |all: &[Progress]| awaited.iter().any(|(place, sent)| all[*place].acknowledged <= *sent);
        drop(self.has_changed.wait_while(progress, |all| is_behind(all)).expect("no thread panics"));
    }

    fn serve(&self, input: impl BufRead, output: &mut impl Write) -> io::Result<()> {
        for kind in ["news", "events"] {
            writeln!(output, "leaves out {kind}: the blocking client of clusters has no subscriptions")?;
        }
        writeln!(output, "ready")?;
        for line in input.lines() {
            self.wait_for(&line?);
            writeln!(output, "went on")?;
        }
        Ok(())
    }

    fn report(&self, output: &mut impl Write) -> io::Result<()> {
        let progress = self.progress.lock().expect("no thread panics");
        let [mut tried, mut acknowledged] = [0, 0];
        for (worker, own) in self.workers.iter().zip(progress.iter()) {
            let unknown: Vec<String> = own.unknown.iter().map(usize::to_string).collect();
            let unknown = if unknown.is_empty() { "-".to_owned() } else { unknown.join(",") };
            for key in &worker.keys {
                writeln!(output, "list {key} {} {unknown}", own.sent)?;
            }
            if worker.kind == "watch" {
                tried += own.sent;
                acknowledged += own.sent - own.unknown.len();
            }
        }
        writeln!(output, "counter {WATCHED} {tried} {acknowledged}")
    }
}

fn workers_of<'pool>(number: usize, first: &str, pool: &'pool Pool) -> Vec<(Worker, Work<'pool>)> {
    let tagged = |names: &[&str]| names.iter().map(|name| format!("{{{number}}}:{name}")).collect::<Vec<_>>();
    let (appended, pair, of_script) =
        (tagged(&["appended"]), tagged(&["left", "right"]), tagged(&["script:left", "script:right"]));
    let piped: Vec<String> = (0..8).map(|key| format!("piped:{number}:{key}")).collect();
    let mut watcher = Watcher { first: first.to_owned(), node: None };
    let script = Script::new(BOTH);
    let worker = |kind, keys: &[String]| Worker { kind, keys: keys.to_vec() };
    vec![
        (
            worker("append", &appended),
            Box::new(move |value| pool.with(|connection| connection.rpush(&appended[0], value))),
        ),
        (
            worker("pipeline", &piped),
            Box::new(move |value| {
                let mut pipe = cluster_pipe();
                piped.iter().for_each(|key| _ = pipe.rpush(key, value).ignore());
                pool.with(|connection| pipe.exec(connection))
            }),
        ),
        (
            worker("transaction", &pair),
            Box::new(move |value| {
                let mut pipe = pipe();
                pair.iter().fold(pipe.atomic(), |pipe, key| pipe.rpush(key, value));
                // The client refuses pipelines, and sends this one to the node of its first key.
                let (packed, queued) = (pipe.get_packed_pipeline(), pair.len());
                pool.with(|connection| connection.req_packed_commands(&packed, 1 + queued, 1).map(drop))
            }),
        ),
        (worker("watch", &[]), Box::new(move |_| watcher.add_next())),
        (
            worker("script", &of_script),
            Box::new(move |value| {
                let mut call = script.prepare_invoke();
                of_script.iter().for_each(|key| _ = call.key(key));
                pool.with(|connection| call.arg(value).invoke(connection))
            }),
        ),
    ]
}

/// Works on the cluster of the node with that port until the input ends.
pub fn run(port: &str, protocol: &str, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let first = format!("redis://127.0.0.1:{port}/");
    let protocol = if protocol == "3" { ProtocolVersion::RESP3 } else { ProtocolVersion::RESP2 };
    let client = ClusterClient::builder([&*first]).use_protocol(protocol).build().expect("the address is right");
    let pool = Pool { client, idle: Mutex::default() };
    let (workers, works): (Vec<_>, Vec<_>) = (0..2).flat_map(|number| workers_of(number, &first, &pool)).unzip();
    let progress = Mutex::new(vec![Progress::default(); workers.len()]);
    let backend = Backend { workers, progress, has_changed: Condvar::new(), is_done: AtomicBool::new(false) };
    let served = thread::scope(|scope| {
        let backend = &backend;
        works.into_iter().enumerate().for_each(|(place, work)| _ = scope.spawn(move || backend.work(place, work)));
        let served = backend.serve(input, &mut output);
        backend.is_done.store(true, Ordering::Release);
        served
    });
    served.and_then(|()| backend.report(&mut output))
}
