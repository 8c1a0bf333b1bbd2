//! Clients that keep a server busy: one thread, many connections, each with a number of operations in flight.
//!
//! A connection sends its operations in one write, reads until all their replies have arrived, and sends the next ones,
//! as a client with a pipeline does. The thread of the clients takes one core and leaves the other to the server.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::frames::Frames;
use crate::requests::Requests;

/// The longest time that a server may send nothing at all.
const TIMEOUT: Duration = Duration::from_secs(10);

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
    pub elapsed: Duration,
    /// The times from a write to the last reply of what was in flight together, ascending.
    pub waits: Vec<Duration>,
}

struct Connection {
    stream: TcpStream,
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
    let begin = Instant::now();
    send_until(address, shape, requests, |_| begin.elapsed() >= length)
}

/// Sends the given number of operations, or a few more.
///
/// # Errors
/// As of [`drive`].
pub fn fill(address: SocketAddr, shape: Shape, requests: &mut Requests, operations: u64) -> io::Result<Outcome> {
    let commands = operations * requests.commands_per_operation() as u64;
    send_until(address, shape, requests, |answered| answered >= commands)
}

fn send_until(
    address: SocketAddr,
    shape: Shape,
    requests: &mut Requests,
    is_enough: impl Fn(u64) -> bool,
) -> io::Result<Outcome> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    for index in 0..shape.connections {
        let mut connection = Connection::open(address)?;
        poll.registry().register(&mut connection.stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        connections.push(connection);
    }
    let (begin, mut events) = (Instant::now(), Events::with_capacity(shape.connections));
    let mut outcome = Outcome { commands: 0, errors: 0, elapsed: Duration::ZERO, waits: Vec::new() };
    for connection in &mut connections {
        connection.send_operations(requests, shape.operations_in_flight)?;
    }
    let mut scratch = vec![0; 1 << 16];
    while !is_enough(outcome.commands) {
        poll.poll(&mut events, Some(TIMEOUT))?;
        if events.is_empty() {
            return Err(ErrorKind::TimedOut.into());
        }
        for event in &events {
            let connection = &mut connections[event.token().0];
            connection.flush()?;
            outcome.commands += connection.receive(&mut scratch)?;
            if connection.awaited == 0 {
                outcome.waits.push(connection.since.elapsed());
                connection.send_operations(requests, shape.operations_in_flight)?;
            }
        }
    }
    outcome.elapsed = begin.elapsed();
    outcome.errors = connections.iter().map(|connection| connection.frames.errors).sum();
    outcome.waits.sort_unstable();
    Ok(outcome)
}

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream: TcpStream::from_std(stream),
            frames: Frames::default(),
            unsent: Vec::new(),
            sent: 0,
            awaited: 0,
            since: Instant::now(),
        })
    }

    fn send_operations(&mut self, requests: &mut Requests, operations: usize) -> io::Result<()> {
        self.unsent.clear();
        self.sent = 0;
        for _ in 0..operations {
            requests.write_operation(&mut self.unsent);
        }
        self.awaited = (operations * requests.commands_per_operation()) as u64;
        self.since = Instant::now();
        self.flush()
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
        let mut complete = 0;
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    complete += self.frames.take(&scratch[..count]);
                    if count < scratch.len() && complete >= self.awaited {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.awaited = self.awaited.saturating_sub(complete);
        Ok(complete)
    }
}
