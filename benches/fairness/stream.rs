//! The load: clients that send requests without waiting for any reply, on one thread.
//!
//! Each writes as much as its socket takes and reads whatever has arrived, so the server always has more to do than it
//! can. Nothing is measured here: what matters is how long other clients wait meanwhile.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

/// The most bytes of one write, and of one read.
const WRITE_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 256 << 10;

/// The most writes or reads of one client before the next one is served.
const CALLS_AT_ONCE: usize = 4;

/// One client: its socket, and its position in the bytes that it sends repeatedly.
struct Client {
    socket: TcpStream,
    sent: usize,
    can_write: bool,
    can_read: bool,
}

/// Streams `request` from `count` clients until `is_over`.
pub fn stream(address: SocketAddr, count: usize, request: &[u8], is_over: &AtomicBool) -> Result<(), Box<dyn Error>> {
    let bytes = request.repeat((WRITE_BYTES / request.len()).max(1));
    let mut poll = Poll::new()?;
    let mut clients = Vec::new();
    for number in 0..count {
        let mut socket = TcpStream::connect(address)?;
        poll.registry().register(&mut socket, Token(number), Interest::READABLE | Interest::WRITABLE)?;
        clients.push(Client { socket, sent: 0, can_write: false, can_read: false });
    }
    let (mut events, mut replies) = (Events::with_capacity(64), vec![0; READ_BYTES]);
    while !is_over.load(Ordering::Relaxed) {
        let is_idle = !clients.iter().any(|client| client.can_write || client.can_read);
        poll.poll(&mut events, Some(if is_idle { Duration::from_millis(5) } else { Duration::ZERO }))?;
        for event in &events {
            let client = &mut clients[event.token().0];
            client.can_write |= event.is_writable();
            client.can_read |= event.is_readable();
        }
        for client in &mut clients {
            client.write(&bytes)?;
            client.read(&mut replies)?;
        }
    }
    Ok(())
}

impl Client {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        for _ in 0..CALLS_AT_ONCE {
            if !self.can_write {
                break;
            }
            match self.socket.write(&bytes[self.sent..]) {
                Ok(count) => self.sent = (self.sent + count) % bytes.len(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.can_write = false,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self, replies: &mut [u8]) -> std::io::Result<()> {
        for _ in 0..CALLS_AT_ONCE {
            if !self.can_read {
                break;
            }
            match self.socket.read(replies) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.can_read = false,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
