//! The servers beside each other: they get the same data and the same commands, and each is timed.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::peer::Peer;
use crate::rows::Row;
use crate::support::frames::Frames;
use crate::support::load::{Clients, Until};
use crate::support::plan::Plan;
use crate::support::requests::Requests;
use crate::support::stream::Address;

/// `{key}` in a row that sets no bound of its own.
const KEYS: u64 = 1000;
/// The number of operations that are sent together to store data.
const FILLING_OPERATIONS: usize = 16;
/// The seed of the requests that time, and of those that store data.
const SEED: u64 = 1;
/// How often a line that stores data runs in a short round, at most.
const SHORT_TIMES: u64 = 1000;

/// One operation in so many of a round is sent before it, to warm its connections.
const WARMING_SHARE: u64 = 8;

/// How often a row is tried again before its cost is known.
const MORE_TRIES: usize = 3;

/// A command that takes longer than this is sent by fewer clients.
const MANY_CLIENTS_BELOW: Duration = Duration::from_micros(100);
/// A command that takes longer than this is sent by one client, and not in pipelines.
const PIPELINES_BELOW: Duration = Duration::from_millis(1);

/// The beginnings of a reply to a command that a server does not have.
const UNKNOWN: [&[u8]; 2] = [b"-ERR unknown command", b"-ERR unknown subcommand"];

pub struct Contest {
    servers: Vec<Server>,
    rounds: usize,
    length: Duration,
    is_short: bool,
}

struct Server {
    name: String,
    peer: Peer,
    address: SocketAddr,
    clients: Clients,
    /// The text of the reply to the last command that stored data.
    reply: Vec<u8>,
}

/// The figures of a row.
pub struct Timed {
    pub name: String,
    /// For each server, ours first, the processor time for a command in nanoseconds in each round; empty if it does not
    /// have the command.
    pub servers: Vec<Vec<f64>>,
}

/// The number of clients, and of operations that each sends before it waits.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    clients: usize,
    operations: usize,
}

impl Contest {
    /// Starts all servers.
    pub fn start(plan: &Plan) -> Result<Contest, Box<dyn Error>> {
        let servers: Result<Vec<Server>, Box<dyn Error>> = plan
            .programs
            .iter()
            .map(|program| {
                let peer = Peer::start(program)?;
                let address = peer.address();
                let clients = Clients::open(&Address::Tcp(address), 0)?.in_step();
                Ok(Server { name: program.display().to_string(), peer, address, clients, reply: Vec::new() })
            })
            .collect();
        Ok(Contest { servers: servers?, rounds: plan.rounds, length: plan.length, is_short: plan.is_short() })
    }

    /// Removes all data and statistics, and the clients that listen.
    pub fn clear(&mut self) -> Result<(), Box<dyn Error>> {
        for server in &mut self.servers {
            server.clients = Clients::open(&Address::Tcp(server.address), 0)?.in_step();
            for command in ["FLUSHALL SYNC", "FUNCTION FLUSH SYNC", "SCRIPT FLUSH SYNC", "CONFIG RESETSTAT"] {
                server.replies(&mut server.requests(&[command]))?;
            }
        }
        Ok(())
    }

    /// Stores data: sends the command as often as it says.
    pub fn fill(&mut self, times: u64, command: &'static str) -> Result<(), Box<dyn Error>> {
        let times = if self.is_short { times.min(SHORT_TIMES) } else { times };
        for server in &mut self.servers {
            let mut requests = server.requests(&[command]);
            if times == 1 {
                let reply = server.replies(&mut requests)?.pop().ok_or("a command has a reply")?;
                server.accept(command, reply.starts_with(b"-").then(|| text_of(&reply)))?;
                server.reply = content(&reply);
                continue;
            }
            server.clients.renew(&Address::Tcp(server.address), 1)?;
            let outcome = server.clients.send(&mut requests, FILLING_OPERATIONS, Until::Operations(times))?;
            server.accept(command, outcome.first_error)?;
        }
        Ok(())
    }

    /// Opens clients that send the command and then listen.
    pub fn listen(&mut self, count: u64, command: &'static str) -> Result<(), Box<dyn Error>> {
        for server in &mut self.servers {
            let mut requests = server.requests(&[command]);
            server.clients.listen(&Address::Tcp(server.address), count, &mut requests)?;
        }
        Ok(())
    }

    /// Checks the replies to a row, and times it.
    pub fn time(&mut self, row: &Row, timed: &mut Vec<Timed>) -> Result<(), Box<dyn Error>> {
        let (has_row, cost) = self.check(row)?;
        if self.is_short {
            return Ok(());
        }
        for shape in shapes(cost) {
            let servers = self.timed(row, *shape, &has_row).map_err(|error| format!("{}: {error}", row.name))?;
            timed.push(Timed { name: format!("{}{}", row.name, shape.name), servers });
        }
        Ok(())
    }

    /// Sends one operation to each server; returns which of them have its commands, and our time for one of them.
    fn check(&mut self, row: &Row) -> Result<(Vec<bool>, Duration), Box<dyn Error>> {
        let (mut has_row, mut kinds, mut cost) = (Vec::new(), None, Duration::ZERO);
        for server in &self.servers {
            let is_ours = kinds.is_none();
            let begin = Instant::now();
            let replies = server.replies(&mut server.requests(&row.operation))?;
            let mut shortest = begin.elapsed();
            // The first time may be long by chance, and decides how many clients send the row.
            for _ in 0..if self.is_short { 0 } else { MORE_TRIES } {
                let begin = Instant::now();
                server.replies(&mut server.requests(&row.operation))?;
                shortest = shortest.min(begin.elapsed());
            }
            if is_ours {
                cost = shortest / u32::try_from(replies.len())?;
            }
            let is_unknown = |reply: &Vec<u8>| UNKNOWN.iter().any(|text| reply.starts_with(text));
            if !is_ours && replies.iter().any(is_unknown) {
                has_row.push(false);
                continue;
            }
            if let Some(error) = replies.iter().find(|reply| reply.starts_with(b"-")) {
                return Err(format!("{}: {} replied {}", row.name, server.name, text_of(error)).into());
            }
            let theirs: Vec<&'static str> = replies.iter().map(|reply| kind(reply)).collect();
            let ours = kinds.get_or_insert_with(|| theirs.clone());
            if *ours != theirs {
                return Err(format!("{}: {} replied {theirs:?}, and we {ours:?}", row.name, server.name).into());
            }
            has_row.push(true);
        }
        Ok((has_row, cost))
    }

    /// Runs all rounds of a row in one shape.
    fn timed(&mut self, row: &Row, shape: Shape, has_row: &[bool]) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
        let mut requests: Vec<Requests> = self.servers.iter().map(|server| server.requests(&row.operation)).collect();
        let mut figures = vec![Vec::new(); self.servers.len()];
        let (mut warming, mut operations) = (0, (shape.clients * shape.operations) as u64);
        for (index, server) in self.servers.iter_mut().enumerate().filter(|(index, _)| has_row[*index]) {
            server.clients.renew(&Address::Tcp(server.address), shape.clients)?;
            if index > 0 {
                server.processor_ns(&mut requests[index], shape, warming)?;
                continue;
            }
            // The number of operations that take the wanted time is found on our server.
            loop {
                let begin = Instant::now();
                server.processor_ns(&mut requests[0], shape, operations)?;
                warming += operations;
                let share = self.length.as_secs_f64() / begin.elapsed().as_secs_f64();
                if share < 4.0 {
                    operations = ((operations as f64 * share) as u64).max(1);
                    break;
                }
                operations *= 4;
            }
        }
        for _ in 0..self.rounds {
            for (index, server) in self.servers.iter_mut().enumerate().filter(|(index, _)| has_row[*index]) {
                // What the kernel does for a large reply differs from one connection to the next, by several times.
                server.clients.renew(&Address::Tcp(server.address), shape.clients)?;
                let warming = (operations / WARMING_SHARE).max(shape.clients as u64);
                server.processor_ns(&mut requests[index], shape, warming)?;
                figures[index].push(server.processor_ns(&mut requests[index], shape, operations)?);
            }
        }
        Ok(figures)
    }
}

impl Server {
    fn requests(&self, operation: &[&str]) -> Requests {
        Requests::new(operation, KEYS, &[("reply", &self.reply)], SEED)
    }

    /// An error ends the line, unless a peer does not have the command.
    fn accept(&self, command: &str, error: Option<String>) -> Result<(), Box<dyn Error>> {
        match error {
            Some(error) if !error.starts_with("ERR unknown ") => {
                Err(format!("{command}: {} replied {error}", self.name).into())
            }
            _ => Ok(()),
        }
    }

    /// Sends a number of operations; returns the server's processor time for a command.
    fn processor_ns(&mut self, requests: &mut Requests, shape: Shape, operations: u64) -> Result<f64, Box<dyn Error>> {
        let before = self.peer.settled_processor_time()?;
        let outcome = self.clients.send(requests, shape.operations, Until::Operations(operations))?;
        let spent = self.peer.settled_processor_time()?.saturating_sub(before);
        match outcome.first_error {
            Some(error) => Err(format!("{} replied {error}", self.name).into()),
            None => Ok(spent.as_nanos() as f64 / outcome.commands.max(1) as f64),
        }
    }

    /// Sends one operation over a connection of its own, one command after the other; returns the replies.
    fn replies(&self, requests: &mut Requests) -> io::Result<Vec<Vec<u8>>> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        let mut buffer = vec![0; 1 << 16];
        let mut reply = |command: Vec<u8>| {
            stream.write_all(&command)?;
            let (mut frames, mut reply) = (Frames::default(), Vec::new());
            loop {
                let count = stream.read(&mut buffer)?;
                if count == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                reply.extend_from_slice(&buffer[..count]);
                if frames.take(&buffer[..count]) > 0 {
                    return Ok(reply);
                }
            }
        };
        requests.next_operation().into_iter().map(&mut reply).collect()
    }
}

/// The shapes in which a command is timed that takes `cost` in an operation of its own.
fn shapes(cost: Duration) -> &'static [Shape] {
    if cost < MANY_CLIENTS_BELOW {
        &[Shape { name: "", clients: 50, operations: 1 }, Shape { name: ", pipelined", clients: 8, operations: 16 }]
    } else if cost < PIPELINES_BELOW {
        &[Shape { name: "", clients: 2, operations: 1 }, Shape { name: ", pipelined", clients: 1, operations: 16 }]
    } else {
        &[Shape { name: "", clients: 1, operations: 1 }]
    }
}

/// The kind of a reply.
fn kind(reply: &[u8]) -> &'static str {
    match reply {
        [b'$' | b'*', b'-', ..] | [b'_', ..] => "null",
        [b'$', ..] => "text",
        [b'+', ..] => "status",
        [b':', ..] => "number",
        [b'*', ..] => "list",
        [b'%', ..] => "map",
        _ => "something else",
    }
}

/// The text of a reply that is one, without its length.
fn content(reply: &[u8]) -> Vec<u8> {
    let line = reply.iter().position(|&byte| byte == b'\n').map_or(reply.len(), |end| end + 1);
    match reply {
        [b'$', ..] => reply[line..reply.len().saturating_sub(2).max(line)].to_vec(),
        _ => Vec::new(),
    }
}

fn text_of(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).trim_start_matches('-').trim_end().to_owned()
}
