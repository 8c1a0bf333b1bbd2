//! A socket with a write timeout: writing fails when the peer has taken nothing for a while. It records
//! activity, and keeps its connection's place while the socket is full.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::connections::{Activity, Busy};

/// The time without progress after which a write fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A socket with a limit on the time for which it takes nothing.
#[derive(Debug)]
pub(super) struct WriteTimeoutStream {
    stream: TcpStream,
    longest: Duration,
    activity: Arc<Activity>,
    /// Runs while the socket is full.
    limit: Option<(Pin<Box<Sleep>>, Busy)>,
}

impl WriteTimeoutStream {
    pub(super) fn new(stream: TcpStream, activity: Arc<Activity>) -> WriteTimeoutStream {
        WriteTimeoutStream::with(stream, activity, LONGEST_PAUSE)
    }

    fn with(stream: TcpStream, activity: Arc<Activity>, longest: Duration) -> WriteTimeoutStream {
        WriteTimeoutStream { stream, longest, activity, limit: None }
    }

    /// Returns the result of a write, or fails if the socket was full for too long.
    fn watch<T>(&mut self, cx: &mut Context<'_>, taken: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if taken.is_ready() {
            self.limit = None;
            self.activity.touch();
            return taken;
        }
        let longest = self.longest;
        let activity = &self.activity;
        let (limit, _) = self.limit.get_or_insert_with(|| (Box::pin(sleep(longest)), activity.keep()));
        limit.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.activity.touch();
        }
        read
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let taken = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(cx, taken)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let taken = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(cx, taken)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::runtime::Builder;

    use super::*;
    use crate::server::page::connections::Connections;

    #[test]
    fn who_reads_nothing_is_left_after_a_while() {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        runtime.expect("there is a loop").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
            let _silent = TcpStream::connect(listener.local_addr().expect("it is bound")).await.expect("it listens");
            let (stream, _) = listener.accept().await.expect("it was connected");
            let place = Arc::new(Connections::new(1)).place().await;
            let activity = Arc::clone(&place.activity);
            let mut patient = WriteTimeoutStream::with(stream, activity, Duration::from_millis(10));
            let sent = async {
                while patient.write(&[0; 65_536]).await? > 0 {}
                Ok::<_, io::Error>(())
            };
            assert_eq!(sent.await.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        });
    }
}
