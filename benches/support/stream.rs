//! A connection to a server, over TCP or over a Unix socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

/// The place of a server.
#[derive(Clone)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// An open connection that never waits.
pub enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Stream {
    /// Connects; only this waits.
    ///
    /// # Errors
    /// When nobody listens at that place, or this system has no such sockets.
    pub fn open(address: &Address) -> io::Result<Stream> {
        match address {
            Address::Tcp(address) => {
                let stream = std::net::TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Tcp(TcpStream::from_std(stream)))
            }
            #[cfg(unix)]
            Address::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(UnixStream::from_std(stream)))
            }
            #[cfg(not(unix))]
            Address::Unix(_) => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Asks the registry to report when the connection can be read or written.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Stream::Tcp(stream) => registry.register(stream, token, interest),
            #[cfg(unix)]
            Stream::Unix(stream) => registry.register(stream, token, interest),
        }
    }

    /// Reads all that has arrived, and forgets it.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn discard(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        loop {
            match self.read(scratch) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
