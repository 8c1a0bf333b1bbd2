//! A connection's two ends of bytes, over TCP or a Unix socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A connected socket, known to the event loop of the thread that made it.
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
    /// Reads what has arrived. A read that does not fill `buffer` tells tokio that nothing is left, so the next poll
    /// waits without asking the system once more.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Takes it off this thread's event loop.
    pub(crate) fn leave(self) -> io::Result<Socket> {
        match self {
            Stream::Tcp(stream) => stream.into_std().map(Socket::Tcp),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.into_std().map(Socket::Unix),
        }
    }
}

impl Socket {
    /// Puts it on this thread's event loop.
    pub(crate) fn join(self) -> io::Result<Stream> {
        match self {
            Socket::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            #[cfg(unix)]
            Socket::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        }
    }
}
