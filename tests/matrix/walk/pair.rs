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
const PATIENCE: Duration = Duration::from_secs(20);

/// The time, and the number of times, that one server may lag behind the other.
const LAG: Duration = Duration::from_millis(5);
const LAGS: usize = 100;

/// The number of expiry cycles after which a real server has found everything that is due, and the time between them.
const LOOKS: usize = 40;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// The bytes that one client receives.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heard {
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
        pair.settle();
        pair
    }

    /// Sends a request from one client; returns what each client of the real server, and of ours, receives. `None` when
    /// the walk's own client is gone.
    pub(crate) fn ask(&mut self, who: usize, words: &[Vec<u8>]) -> Option<[Vec<Heard>; 2]> {
        for side in &mut self.sides {
            side.links[who].send(&encoded(Form::Resp2, words));
        }
        self.settle().then(|| self.hear())
    }

    /// Sends a request whose deadline falls due at once: this time passes on both servers before anything is read.
    pub(crate) fn ask_and_wait(&mut self, who: usize, words: &[Vec<u8>], time: Duration) -> Option<[Vec<Heard>; 2]> {
        for side in &mut self.sides {
            side.links[who].send(&encoded(Form::Resp2, words));
        }
        self.settle();
        self.ours.advance(time);
        wait(time);
        // A real server searches for due keys between two rounds of requests, in one database after the other.
        let mut look = || {
            wait(BETWEEN_LOOKS);
            self.settle()
        };
        (0..LOOKS).all(|_| look()).then(|| self.hear())
    }

    /// The replies of both servers to the walk's own client.
    pub(crate) fn ask_own(&mut self, words: &[&[u8]]) -> [Reply; 2] {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        for side in &mut self.sides {
            side.links[OWN].send(&encoded(Form::Resp2, &words));
        }
        self.sides.each_mut().map(|side| side.links[OWN].next().expect("the walk's own client is answered"))
    }

    /// Another client comes in the place of that one.
    pub(crate) fn replace(&mut self, who: usize) {
        for side in &mut self.sides {
            let _ = side.links[who].socket.shutdown(std::net::Shutdown::Both);
        }
        self.settle();
        for side in &mut self.sides {
            side.links[who] = side.join();
        }
        self.settle();
    }

    /// Waits until both servers have run all requests. False when the walk's own client is gone.
    fn settle(&mut self) -> bool {
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
    fn hear(&mut self) -> [Vec<Heard>; 2] {
        let mut heard = self.sides.each_mut().map(Side::hear);
        for _ in 0..LAGS {
            let counts = heard.each_ref().map(|side| side.iter().map(|one| (one.replies.len(), one.closed)).collect());
            let [real, ours]: [Vec<_>; 2] = counts;
            if real == ours {
                break;
            }
            wait(LAG);
            for (heard, side) in heard.iter_mut().zip(&mut self.sides) {
                for (heard, more) in heard.iter_mut().zip(side.hear()) {
                    heard.replies.extend(more.replies);
                    heard.closed |= more.closed;
                }
            }
        }
        heard
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

    fn hear(&mut self) -> Vec<Heard> {
        let own = std::iter::once(Heard::default());
        own.chain(self.links.iter_mut().skip(1).map(Link::hear)).collect()
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
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket has options");
        Link { of, socket, unread: Vec::new(), closed: false }
    }

    /// Sends what a server that has hung up does not want.
    fn send(&mut self, bytes: &[u8]) {
        self.socket.set_nonblocking(false).expect("a socket has options");
        let _ = self.socket.write_all(bytes);
    }

    /// The next reply, which is waited for; `None` when the server has hung up.
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

    /// All that has come.
    fn hear(&mut self) -> Heard {
        self.socket.set_nonblocking(true).expect("a socket has options");
        while !self.closed && self.read() {}
        self.socket.set_nonblocking(false).expect("a socket has options");
        let mut heard = Heard::default();
        while !self.unread.is_empty() {
            // Of a long reply only the beginning may have come.
            let Some(reply) = self.next() else { break };
            if !is_of_the_walk(&reply) {
                heard.replies.push(reply);
            }
        }
        heard.closed = self.closed;
        heard
    }

    /// Reads once; false when nothing came.
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
