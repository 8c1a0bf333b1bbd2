//! The connections themselves: what they cost a server when they come and go, when there are many, and when one of them
//! sends much at once or reads slowly.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use crate::peer::Peer;
use crate::support::load::{Clients, Outcome, Until};
use crate::support::plan::Plan;
use crate::support::requests::Requests;
use crate::support::stream::Address;

/// The commands that connections send, and the number of their keys.
const GET: &[&str] = &["GET s:{key}"];
const SET: &[&str] = &["SET s:{key} {value:20}"];
const KEYS: u64 = 1000;

/// The number of connections that are open at the same time where they come and go.
const COMING: usize = 50;
/// The number of clients of which only some speak, and of those that do.
const CROWD: usize = 10_000;
const SPEAKERS: usize = 100;
/// The length of the pipeline that is sent in one write.
const IN_ONE_WRITE: usize = 10_000;
/// The number of replies of a megabyte that the slow reader requests.
const SLOW_REPLIES: usize = 30;
/// The number of bytes that the slow reader reads at a time, and of commands that others send in between.
const SLOW_BYTES: usize = 64 << 10;
const BESIDE_SLOW: u64 = 200;

/// One round on one server.
#[derive(Clone, Copy)]
pub struct Sample {
    /// The processor time of the server for a command or a connection.
    pub cpu_ns: f64,
    pub a_second: f64,
}

/// The figures of a row: for each server, ours first, its rounds.
pub struct Connected {
    pub name: &'static str,
    pub servers: Vec<Vec<Sample>>,
}

/// A server, with a Unix socket if it has one.
struct Server {
    peer: Peer,
    socket: PathBuf,
}

/// Measures one round on one server.
type Round = fn(&mut Server, Duration) -> Result<Sample, Box<dyn Error>>;

const IN_A_CROWD: &str = "GET of 100 of 10,000 clients";
const ROWS: &[(&str, Round)] = &[
    ("a connection that sends PING and is closed", come_and_go),
    ("GET over TCP", |server, length| plain(server, &Address::Tcp(server.peer.address()), 50, 1, GET, length)),
    ("GET over a Unix socket", |server, length| {
        plain(server, &Address::Unix(server.socket.clone()), 50, 1, GET, length)
    }),
    ("GET over a Unix socket, pipelined", |server, length| {
        plain(server, &Address::Unix(server.socket.clone()), 8, 16, GET, length)
    }),
    ("GET, 10,000 in one write", |server, length| {
        plain(server, &Address::Tcp(server.peer.address()), 1, IN_ONE_WRITE, GET, length)
    }),
    ("SET, 10,000 in one write", |server, length| {
        plain(server, &Address::Tcp(server.peer.address()), 1, IN_ONE_WRITE, SET, length)
    }),
    ("GET beside a slow reader of 30 MB", beside_slow_reader),
];

/// Runs all rows.
pub fn measured(plan: &Plan) -> Result<Vec<Connected>, Box<dyn Error>> {
    let rows: Vec<_> = ROWS.iter().filter(|(name, _)| plan.includes(name)).collect();
    let has_crowd = plan.includes(IN_A_CROWD) && !plan.is_short();
    if rows.is_empty() && !has_crowd {
        return Ok(Vec::new());
    }
    let servers: Result<Vec<Server>, _> =
        plan.programs.iter().enumerate().map(|(index, program)| Server::start(program, index)).collect();
    let mut servers = servers?;
    let mut table = Vec::new();
    for (name, round) in rows {
        let mut row = Connected { name, servers: vec![Vec::new(); servers.len()] };
        for _ in 0..plan.rounds {
            for (server, samples) in servers.iter_mut().zip(&mut row.servers) {
                samples.push(round(server, plan.length).map_err(|error| format!("{name}: {error}"))?);
            }
        }
        table.push(row);
    }
    if has_crowd {
        table.push(Connected { name: IN_A_CROWD, servers: in_a_crowd(&mut servers, plan)? });
    }
    Ok(table)
}

impl Server {
    fn start(program: &Path, index: usize) -> Result<Server, Box<dyn Error>> {
        let socket = env::temp_dir().join(format!("dunlin-commands-{}-{index}.sock", process::id()));
        let peer = Peer::start_with(program, &["--unixsocket", &socket.to_string_lossy()])?;
        let mut server = Server { peer, socket };
        let most = CROWD + SPEAKERS;
        server.peer.call_all([format!("CONFIG SET maxclients {most}")].map(words).into_iter())?;
        let values = (0..KEYS).map(|number| words(format!("SET s:{number} {}", "v".repeat(20))));
        server.peer.call_all(values)?;
        server.peer.call_all([format!("SET large {}", "v".repeat(1_000_000))].map(words).into_iter())?;
        Ok(server)
    }

    fn sample(&self, before: Duration, count: u64, elapsed: Duration) -> Result<Sample, Box<dyn Error>> {
        let spent = self.peer.settled_processor_time()?.saturating_sub(before);
        let count = count.max(1) as f64;
        Ok(Sample { cpu_ns: spent.as_nanos() as f64 / count, a_second: count / elapsed.as_secs_f64() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have removed it.
        let _ = fs::remove_file(&self.socket);
    }
}

fn words(command: String) -> Vec<String> {
    command.split(' ').map(str::to_owned).collect()
}

/// Clients that do nothing else than send the same command.
fn plain(
    server: &Server,
    address: &Address,
    clients: usize,
    in_flight: usize,
    operation: &[&str],
    length: Duration,
) -> Result<Sample, Box<dyn Error>> {
    let mut requests = Requests::new(operation, KEYS, &[], 1);
    let mut clients = Clients::open(address, clients)?.in_step();
    speak(server, &mut clients, &mut requests, in_flight, length)
}

/// Sends for the time, after one operation of each client that does not count.
fn speak(
    server: &Server,
    clients: &mut Clients,
    requests: &mut Requests,
    in_flight: usize,
    length: Duration,
) -> Result<Sample, Box<dyn Error>> {
    let operations = (clients.count() * in_flight) as u64;
    let first = accepted(clients.send(requests, in_flight, Until::Operations(operations))?)?;
    let wanted = length.as_secs_f64() / first.elapsed.as_secs_f64();
    let operations = operations * (wanted.ceil() as u64).max(1);
    let before = server.peer.settled_processor_time()?;
    let outcome = accepted(clients.send(requests, in_flight, Until::Operations(operations))?)?;
    server.sample(before, outcome.commands, outcome.elapsed)
}

fn accepted(outcome: Outcome) -> Result<Outcome, Box<dyn Error>> {
    match &outcome.first_error {
        Some(error) => Err(error.clone().into()),
        None => Ok(outcome),
    }
}

fn come_and_go(server: &mut Server, length: Duration) -> Result<Sample, Box<dyn Error>> {
    let (address, begin, before) = (server.peer.address(), Instant::now(), server.peer.settled_processor_time()?);
    let mut count = 0;
    while count == 0 || begin.elapsed() < length {
        let mut streams = (0..COMING).map(|_| TcpStream::connect(address)).collect::<Result<Vec<TcpStream>, _>>()?;
        for stream in &mut streams {
            stream.write_all(b"*1\r\n$4\r\nPING\r\n")?;
        }
        for stream in &mut streams {
            stream.read_exact(&mut [0; 7])?;
        }
        count += COMING as u64;
    }
    server.sample(before, count, begin.elapsed())
}

/// A client asks for much and reads little of it at a time, while others go on.
fn beside_slow_reader(server: &mut Server, length: Duration) -> Result<Sample, Box<dyn Error>> {
    let address = server.peer.address();
    let mut requests = Requests::new(GET, KEYS, &[], 1);
    let mut clients = Clients::open(&Address::Tcp(address), 8)?.in_step();
    let mut slow = slow_reader(address)?;
    let mut bytes = vec![0; SLOW_BYTES];
    let (before, begin, mut count) = (server.peer.settled_processor_time()?, Instant::now(), 0);
    while count == 0 || begin.elapsed() < length {
        count += accepted(clients.send(&mut requests, 1, Until::Operations(BESIDE_SLOW))?)?.commands;
        slow.read_exact(&mut bytes)?;
    }
    server.sample(before, count, begin.elapsed())
}

/// A client that has asked for all its replies.
fn slow_reader(address: SocketAddr) -> Result<TcpStream, Box<dyn Error>> {
    let mut slow = TcpStream::connect(address)?;
    let mut requests = Requests::new(&["GET large"], KEYS, &[], 1);
    let mut bytes = Vec::new();
    for _ in 0..SLOW_REPLIES {
        requests.write_operation(&mut bytes);
    }
    slow.write_all(&bytes)?;
    Ok(slow)
}

/// Few of very many clients speak. The others stay for all rounds, so one server after the other has its rounds: all of
/// them together would need more descriptors than a process may have.
fn in_a_crowd(servers: &mut [Server], plan: &Plan) -> Result<Vec<Vec<Sample>>, Box<dyn Error>> {
    let rounds = |server: &mut Server| {
        let address = Address::Tcp(server.peer.address());
        let mut silent = Clients::open(&address, CROWD - SPEAKERS)?;
        // Each of them is known to be connected once it has had a reply.
        let everyone = (CROWD - SPEAKERS) as u64;
        accepted(silent.send(&mut Requests::new(&["PING"], KEYS, &[], 1), 1, Until::Operations(everyone))?)?;
        let mut speakers = Clients::open(&address, SPEAKERS)?.in_step();
        let mut requests = Requests::new(GET, KEYS, &[], 1);
        (0..plan.rounds).map(|_| speak(server, &mut speakers, &mut requests, 1, plan.length)).collect()
    };
    servers.iter_mut().map(rounds).collect()
}
