//! Clients that keep a server busy: one thread, many connections, each with a number of operations in flight.
//!
//! A connection sends its operations in one write, reads until all their replies are there and sends the next, as a
//! client with a pipeline does. The thread of the clients takes one core and leaves the other to the server.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use super::frames::Frames;
use super::requests::Requests;
use super::stream::{Address, Stream};

/// The longest time that a server may send nothing at all.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Nothing more is expected for those that listen once nothing has come for so long.
const DRAINED: Duration = Duration::from_millis(3);

/// The number by which the poll calls the first connection that only listens.
const FIRST_LISTENER: usize = 1 << 32;

/// The number of clients, and how much each sends before it waits.
#[derive(Clone, Copy)]
pub struct Shape {
    pub connections: usize,
    pub operations_in_flight: usize,
}

/// The result of a load.
pub struct Outcome {
    pub commands: u64,
    pub errors: u64,
    /// The first error of a connection that got one, since it was opened.
    pub first_error: Option<String>,
    pub elapsed: Duration,
    /// The times from a write to the last reply of what was in flight together, ascending.
    pub waits: Vec<Duration>,
}

/// When a load ends.
#[derive(Clone, Copy)]
pub enum Until {
    /// After this time, whatever is then still in flight.
    Elapsed(Duration),
    /// When so many operations are answered.
    Operations(u64),
}

/// How connections follow each other.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// Each sends as soon as it has its replies.
    Alone,
    /// All send together once all have their replies, so that a server wakes up for many commands at once. Waking up
    /// costs several times as much as a short command, and otherwise other load decides how often it happens.
    InStep,
}

/// Open connections to one server, and others that only read what it sends to them.
pub struct Clients {
    connections: Vec<Connection>,
    listeners: Vec<Stream>,
    poll: Poll,
    events: Events,
    scratch: Vec<u8>,
    pace: Pace,
}

struct Connection {
    stream: Stream,
    frames: Frames,
    unsent: Vec<u8>,
    sent: usize,
    awaited: u64,
    since: Instant,
}

/// Keeps the server at `address` busy for `length`.
///
/// # Errors
/// When a connection fails, or the server sends nothing for too long.
pub fn drive(address: SocketAddr, shape: Shape, requests: &mut Requests, length: Duration) -> io::Result<Outcome> {
    let mut clients = Clients::open(&Address::Tcp(address), shape.connections)?;
    clients.send(requests, shape.operations_in_flight, Until::Elapsed(length))
}

/// Sends the given number of operations.
///
/// # Errors
/// As of [`drive`].
pub fn fill(address: SocketAddr, shape: Shape, requests: &mut Requests, operations: u64) -> io::Result<Outcome> {
    let mut clients = Clients::open(&Address::Tcp(address), shape.connections)?;
    clients.send(requests, shape.operations_in_flight, Until::Operations(operations))
}

impl Clients {
    /// Opens a number of connections.
    ///
    /// # Errors
    /// When a connection fails.
    pub fn open(address: &Address, count: usize) -> io::Result<Clients> {
        let mut clients = Clients {
            connections: Vec::new(),
            listeners: Vec::new(),
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            scratch: vec![0; 1 << 16],
            pace: Pace::Alone,
        };
        clients.renew(address, count)?;
        Ok(clients)
    }

    /// Makes the connections send in step from now on.
    pub fn in_step(mut self) -> Clients {
        self.pace = Pace::InStep;
        self
    }

    /// The number of connections that send.
    pub fn count(&self) -> usize {
        self.connections.len()
    }

    /// Closes the connections, but not those that only listen, and opens new ones.
    ///
    /// # Errors
    /// When a connection fails.
    pub fn renew(&mut self, address: &Address, count: usize) -> io::Result<()> {
        self.connections.clear();
        for index in 0..count {
            let mut stream = Stream::open(address)?;
            stream.register(self.poll.registry(), Token(index))?;
            self.connections.push(Connection {
                stream,
                frames: Frames::default(),
                unsent: Vec::new(),
                sent: 0,
                awaited: 0,
                since: Instant::now(),
            });
        }
        Ok(())
    }

    /// Opens connections that send the request once and from then on read what arrives, while the others send.
    ///
    /// # Errors
    /// When a connection fails.
    pub fn listen(&mut self, address: &Address, count: u64, requests: &mut Requests) -> io::Result<()> {
        for _ in 0..count {
            let mut request = Vec::new();
            requests.write_operation(&mut request);
            let mut stream = Stream::open(address)?;
            stream.write_all(&request)?;
            stream.register(self.poll.registry(), Token(FIRST_LISTENER + self.listeners.len()))?;
            self.listeners.push(stream);
        }
        Ok(())
    }

    /// Sends operations over all connections until the end.
    ///
    /// # Errors
    /// When a connection fails, or the server sends nothing for too long.
    pub fn send(&mut self, requests: &mut Requests, operations_in_flight: usize, until: Until) -> io::Result<Outcome> {
        let begin = Instant::now();
        let mut outcome =
            Outcome { commands: 0, errors: 0, first_error: None, elapsed: Duration::ZERO, waits: Vec::new() };
        let (mut left, limit) = match until {
            Until::Elapsed(limit) => (u64::MAX, limit),
            Until::Operations(operations) => (operations, Duration::MAX),
        };
        let mut in_flight = 0;
        let mut next = |connection: &mut Connection| {
            let operations = left.min(operations_in_flight as u64);
            left -= operations;
            connection.prepare(requests, operations)
        };
        while begin.elapsed() < limit {
            if in_flight == 0 {
                for connection in &mut self.connections {
                    in_flight += u64::from(next(connection));
                }
                for connection in &mut self.connections {
                    connection.flush()?;
                }
            }
            if in_flight == 0 {
                break;
            }
            self.poll.poll(&mut self.events, Some(TIMEOUT))?;
            if self.events.is_empty() {
                return Err(ErrorKind::TimedOut.into());
            }
            for event in &self.events {
                let Token(number) = event.token();
                if number >= FIRST_LISTENER {
                    self.listeners[number - FIRST_LISTENER].discard(&mut self.scratch)?;
                    continue;
                }
                let connection = &mut self.connections[number];
                connection.flush()?;
                let was_busy = connection.awaited > 0;
                outcome.commands += connection.receive(&mut self.scratch)?;
                if was_busy && connection.awaited == 0 {
                    outcome.waits.push(connection.since.elapsed());
                    if self.pace == Pace::InStep || !next(connection) {
                        in_flight -= 1;
                    }
                    connection.flush()?;
                }
            }
        }
        outcome.elapsed = begin.elapsed();
        self.drain()?;
        outcome.errors = self.connections.iter().map(|connection| connection.frames.errors).sum();
        outcome.first_error = self.connections.iter().find_map(|connection| connection.frames.first_error.clone());
        outcome.waits.sort_unstable();
        Ok(outcome)
    }

    /// Reads what still arrives for those that only listen.
    fn drain(&mut self) -> io::Result<()> {
        while !self.listeners.is_empty() {
            self.poll.poll(&mut self.events, Some(DRAINED))?;
            if self.events.is_empty() {
                break;
            }
            for Token(number) in self.events.iter().map(|event| event.token()) {
                if number >= FIRST_LISTENER {
                    self.listeners[number - FIRST_LISTENER].discard(&mut self.scratch)?;
                }
            }
        }
        Ok(())
    }
}

impl Connection {
    /// Makes the operations that the next write sends; returns whether there are some.
    fn prepare(&mut self, requests: &mut Requests, operations: u64) -> bool {
        self.unsent.clear();
        self.sent = 0;
        for _ in 0..operations {
            requests.write_operation(&mut self.unsent);
        }
        self.awaited = operations * requests.commands_per_operation() as u64;
        self.since = Instant::now();
        operations > 0
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.unsent.len() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads everything that has arrived; returns the number of replies that are now complete.
    fn receive(&mut self, scratch: &mut [u8]) -> io::Result<u64> {
        let mut ended = 0;
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    ended += self.frames.take(&scratch[..count]);
                    if count < scratch.len() && ended >= self.awaited {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.awaited = self.awaited.saturating_sub(ended);
        Ok(ended)
    }
}
