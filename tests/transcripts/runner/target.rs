//! The interface of a server for the runner: bytes in, bytes out, a clock, a fresh start.
//!
//! A target knows nothing of replies; [`super::play`] encodes commands and decodes answers for all of them alike.

use super::format::Section;
use super::matching::Clock;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A server that transcripts can be played against.
pub(crate) trait Target {
    /// The kind of clock that the server reads.
    fn clock(&self) -> Clock;
    /// Whether the server offers the command that `words` name; a section that needs another one is left out.
    fn knows(&self, _words: &[Vec<u8>]) -> bool {
        true
    }
    /// Makes `section` start from no data, no connections and the default configuration.
    fn fresh(&mut self, section: &Section) -> io::Result<()>;
    /// Opens a connection.
    fn connect(&mut self) -> io::Result<Box<dyn Link>>;
    /// Lets `by` pass for the server. False: this target cannot, and the rest of the section is left out.
    fn advance(&mut self, by: Duration) -> io::Result<bool>;
    /// The commands that have gone into the log of changes since this was last called, or since the section began, as
    /// [`super::log::lines`] writes them. `None`: this target shows no log, and the rest of the section is left out.
    fn log(&mut self) -> io::Result<Option<Vec<String>>> {
        Ok(None)
    }
    /// Returns when the server has taken up all that was sent to it before.
    fn wait_until_read(&mut self) -> io::Result<()>;
}

/// One connection to a target.
pub(crate) trait Link {
    /// Sends all of `bytes`.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Appends what arrives next to `buffer`, waiting at most for `timeout`.
    fn receive(&mut self, buffer: &mut Vec<u8>, timeout: Duration) -> io::Result<Received>;
}

/// The data that arrived over a [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Bytes,
    Nothing,
    Closed,
}

/// A link over TCP.
pub(crate) struct TcpLink(TcpStream);

impl TcpLink {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }
}

impl Link for TcpLink {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.0.write_all(bytes) {
            // The server closed the connection; what it sent before can still be read.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(()),
            done => done,
        }
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, timeout: Duration) -> io::Result<Received> {
        self.0.set_read_timeout(Some(timeout))?;
        let mut chunk = [0; 16 * 1024];
        match self.0.read(&mut chunk) {
            Ok(0) => Ok(Received::Closed),
            Ok(count) => {
                buffer.extend_from_slice(&chunk[..count]);
                Ok(Received::Bytes)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(Received::Nothing),
                ErrorKind::ConnectionReset => Ok(Received::Closed),
                _ => Err(error),
            },
        }
    }
}

/// Sends commands on a connection of their own, gives their answers and waits until it is closed, or until nothing
/// comes for `timeout`.
pub(crate) fn exchange(address: SocketAddr, commands: &str, timeout: Duration) -> io::Result<Vec<u8>> {
    let mut link = TcpLink::open(address)?;
    link.send(commands.as_bytes())?;
    link.send(b"QUIT\r\n")?;
    let mut answers = Vec::new();
    while link.receive(&mut answers, timeout)? == Received::Bytes {}
    Ok(answers)
}

/// Returns when the server at `address` has read everything that was sent to it before on other connections.
///
/// It reads its sockets in the order in which they became readable, so a reply on a later connection comes after the
/// work of the earlier ones; the second connection is for those of the same round. The request is refused because a
/// word is missing, which a server does even while a pause holds back all commands.
pub(crate) fn wait_until_read(address: SocketAddr) -> io::Result<()> {
    for _ in 0..2 {
        let mut link = TcpLink::open(address)?;
        link.send(b"ECHO\r\n")?;
        link.0.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        while link.receive(&mut answer, READ_TIMEOUT)? == Received::Bytes {}
    }
    Ok(())
}

/// The most time that a server may take to read a request.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
