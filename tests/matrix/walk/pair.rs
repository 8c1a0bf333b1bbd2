//! A real server and ours, each with the same clients over real connections, which send requests one after the other.
//!
//! The first client is the walk's own: it reads the state that all others have left, and shows when a request is
//! complete. When it has got two replies, one after the other, every client has all consequences of the request before,
//! be it a reply, a message or the end of its connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use dunlin::Server;

use crate::process::{Process, wait};
use crate::reply::{Reply, Undecoded, decode};
use crate::server::{Form, encoded};

/// The place of the walk's own client.
pub(crate) const OWN: usize = 0;

/// The most time that a server may take for anything that must arrive.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The time, and the number of times, that one server may lag behind the other.
const LAG: Duration = Duration::from_millis(5);
const LAGS: usize = 100;

/// The number of expiry cycles after which a real server has found everything that is due, and the time between them.
const CYCLES: usize = 40;
const BETWEEN_CYCLES: Duration = Duration::from_millis(2);

/// The bytes that one client receives.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Received {
    pub(crate) replies: Vec<Reply>,
    pub(crate) closed: bool,
}

/// The servers and their clients.
pub(crate) struct Pair {
    sides: [Side; 2],
    _real: Process,
    ours: Server,
}

impl Pair {
    /// Starts both servers with this number of clients, which have the same numbers on both.
    pub(crate) fn new(real: Process, ours: Server, clients: usize) -> Pair {
        let mut sides = [("real", real.address), ("other", ours.addr())].map(|(name, address)| Side {
            name,
            address,
            links: vec![Link::to(name, address)],
        });
        let numbers = sides.each_mut().map(Side::own_number);
        let behind = usize::from(numbers[0] > numbers[1]);
        for _ in 0..numbers[0].abs_diff(numbers[1]) {
            sides[behind].links[OWN] = sides[behind].join();
        }
        for side in &mut sides {
            for _ in 1..clients {
                let link = side.join();
                side.links.push(link);
            }
        }
        let mut pair = Pair { sides, _real: real, ours };
        pair.wait_until_processed();
        pair
    }

    /// Our server.
    pub(crate) fn ours(&self) -> &Server {
        &self.ours
    }

    /// Sends a request from one client; returns what each client of the real server, and of ours, receives. `None` when
    /// the walk's own client is gone.
    pub(crate) fn ask(&mut self, who: usize, words: &[Vec<u8>]) -> Option<[Vec<Received>; 2]> {
        for side in &mut self.sides {
            side.links[who].send(&encoded(Form::Resp2, words));
        }
        self.wait_until_processed().then(|| self.receive())
    }

    /// Sends a request whose deadline falls due at once: this time passes on both servers before anything is read.
    pub(crate) fn ask_and_wait(&mut self, who: usize, words: &[Vec<u8>], time: Duration) -> Option<[Vec<Received>; 2]> {
        for side in &mut self.sides {
            side.links[who].send(&encoded(Form::Resp2, words));
        }
        self.wait_until_processed();
        self.ours.advance(time);
        wait(time);
        // A real server searches for due keys between two rounds of requests, in one database after the other.
        let mut cycle = || {
            wait(BETWEEN_CYCLES);
            self.wait_until_processed()
        };
        (0..CYCLES).all(|_| cycle()).then(|| self.receive())
    }

    /// The replies of both servers to the walk's own client.
    pub(crate) fn ask_own(&mut self, words: &[&[u8]]) -> [Reply; 2] {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        for side in &mut self.sides {
            side.links[OWN].send(&encoded(Form::Resp2, &words));
        }
        self.sides.each_mut().map(|side| side.links[OWN].next().expect("the walk's own client is answered"))
    }

    /// Replaces a client by a new one.
    pub(crate) fn replace(&mut self, who: usize) {
        for side in &mut self.sides {
            let _ = side.links[who].socket.shutdown(std::net::Shutdown::Both);
        }
        self.wait_until_processed();
        for side in &mut self.sides {
            side.links[who] = side.join();
        }
        self.wait_until_processed();
    }

    /// Waits until both servers have run all requests. False when the walk's own client is gone.
    fn wait_until_processed(&mut self) -> bool {
        let ping = encoded(Form::Resp2, &[b"PING".to_vec()]);
        for _ in 0..2 {
            self.sides.iter_mut().for_each(|side| side.links[OWN].send(&ping));
            let answers = self.sides.each_mut().map(|side| side.links[OWN].next());
            if answers.iter().any(Option::is_none) {
                return false;
            }
        }
        true
    }

    /// Everything that all clients have received by now.
    fn receive(&mut self) -> [Vec<Received>; 2] {
        let mut received = self.sides.each_mut().map(Side::receive);
        for _ in 0..LAGS {
            let counts =
                received.each_ref().map(|side| side.iter().map(|one| (one.replies.len(), one.closed)).collect());
            let [real, ours]: [Vec<_>; 2] = counts;
            if real == ours {
                break;
            }
            wait(LAG);
            for (received, side) in received.iter_mut().zip(&mut self.sides) {
                for (received, more) in received.iter_mut().zip(side.receive()) {
                    received.replies.extend(more.replies);
                    received.closed |= more.closed;
                }
            }
        }
        received
    }
}

/// One server.
struct Side {
    name: &'static str,
    address: SocketAddr,
    links: Vec<Link>,
}

impl Side {
    fn join(&self) -> Link {
        Link::to(self.name, self.address)
    }

    fn own_number(&mut self) -> i64 {
        let link = &mut self.links[OWN];
        link.send(&encoded(Form::Resp2, &[b"CLIENT".to_vec(), b"ID".to_vec()]));
        match link.next() {
            Some(Reply::Integer(number)) => number.parse().expect("a client's number is one"),
            other => panic!("a client has no number: {other:?}"),
        }
    }

    fn receive(&mut self) -> Vec<Received> {
        let own = std::iter::once(Received::default());
        own.chain(self.links.iter_mut().skip(1).map(Link::receive)).collect()
    }
}

/// MONITOR shows the walk's own requests too, now with this request, now with the next one.
fn is_of_the_walk(reply: &Reply) -> bool {
    matches!(reply, Reply::Simple(line) if line.ends_with(b"] \"PING\""))
}

/// A client of one server.
struct Link {
    of: &'static str,
    socket: TcpStream,
    unread: Vec<u8>,
    closed: bool,
}

impl Link {
    fn to(of: &'static str, address: SocketAddr) -> Link {
        let socket = TcpStream::connect(address).expect("the server accepts");
        socket.set_nodelay(true).expect("a socket has options");
        socket.set_read_timeout(Some(TIMEOUT)).expect("a socket has options");
        Link { of, socket, unread: Vec::new(), closed: false }
    }

    /// Sends bytes; ignores errors, since the server may have closed the connection.
    fn send(&mut self, bytes: &[u8]) {
        self.socket.set_nonblocking(false).expect("a socket has options");
        let _ = self.socket.write_all(bytes);
    }

    /// Waits for the next reply; `None` if the server has closed the connection.
    fn next(&mut self) -> Option<Reply> {
        loop {
            match decode(&self.unread) {
                Ok((reply, length)) => {
                    self.unread.drain(..length);
                    return Some(reply);
                }
                Err(Undecoded::Malformed(fault)) => panic!("{fault}"),
                Err(Undecoded::Incomplete) if self.closed => return None,
                Err(Undecoded::Incomplete) => assert!(
                    self.read(),
                    "the {} server does not answer; there is \"{}\"",
                    self.of,
                    self.unread.escape_ascii()
                ),
            }
        }
    }

    /// Takes everything that has arrived.
    fn receive(&mut self) -> Received {
        self.socket.set_nonblocking(true).expect("a socket has options");
        while !self.closed && self.read() {}
        self.socket.set_nonblocking(false).expect("a socket has options");
        let mut received = Received::default();
        while !self.unread.is_empty() {
            // Of a long reply only the beginning may have come.
            let Some(reply) = self.next() else { break };
            if !is_of_the_walk(&reply) {
                received.replies.push(reply);
            }
        }
        received.closed = self.closed;
        received
    }

    /// Reads once; false if nothing arrived.
    fn read(&mut self) -> bool {
        let mut chunk = [0; 16 * 1024];
        match self.socket.read(&mut chunk) {
            Ok(0) => self.closed = true,
            Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return false,
            Err(_) => self.closed = true,
        }
        true
    }
}
