//! A client's socket, TCP or Unix: reading, writing, and moving it between event loops.

use std::io::{self, IoSlice, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A connected socket, registered with the event loop of the thread that made it.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// A connected socket on its way to the event loop that will own it.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(std::net::TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Stream {
    /// Reads what has arrived. After a read that does not fill `buffer`, tokio knows that nothing is left, so the next
    /// poll waits without another system call.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }

    /// Reads what has arrived into the room behind `bytes`; `None` if nothing has.
    pub(crate) fn read_behind(&self, bytes: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let read = match self {
            Stream::Tcp(stream) => stream.try_read_buf(bytes),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.try_read_buf(bytes),
        };
        match read {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads data that have arrived after tokio found the socket empty, or that arrive as soon as the peer gets an
    /// acknowledgement; `None` if there are none.
    pub(crate) fn read_on(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let arrived = self.read_at_once(buffer)?;
        if arrived.is_some() {
            return Ok(arrived);
        }
        self.acknowledge();
        self.read_at_once(buffer)
    }

    fn read_at_once(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let socket = match self {
            Stream::Tcp(stream) => SockRef::from(stream),
            #[cfg(unix)]
            Stream::Unix(stream) => SockRef::from(stream),
        };
        match (&*socket).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Acknowledges what has arrived at once (Linux only): a sender that gathers small pieces (Nagle's algorithm) waits
    /// for the acknowledgement, which may be delayed by 40 ms, before it sends the next.
    fn acknowledge(&self) {
        #[cfg(target_os = "linux")]
        if let Stream::Tcp(stream) = self {
            // If it fails, the request is only slower.
            let _ = SockRef::from(stream).set_tcp_quickack(true);
        }
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Writes several parts in order, in one system call.
    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    /// Deregisters the socket from this thread's event loop.
    pub(crate) fn leave(self) -> io::Result<Socket> {
        match self {
            Stream::Tcp(stream) => stream.into_std().map(Socket::Tcp),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.into_std().map(Socket::Unix),
        }
    }
}

impl Socket {
    /// Registers the socket with this thread's event loop.
    pub(crate) fn join(self) -> io::Result<Stream> {
        match self {
            Socket::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            #[cfg(unix)]
            Socket::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        }
    }
}
