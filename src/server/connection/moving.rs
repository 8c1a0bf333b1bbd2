//! A connection as the task of an event loop, until it ends or moves to another loop.
//!
//! A client that now belongs to another event loop (see [`crate::server::loops`]) moves there the next time its task
//! runs: its socket is deregistered from this loop, and the connection is sent along unchanged, with its unsent replies
//! and unread requests. Flags that are set meanwhile stay in its wake flags until the new task checks them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tracing::debug;

use super::{Connection, SCRATCH};
use crate::server::listen::Accepted;
use crate::server::stream::{Socket, Stream};

/// A connection that its event loop serves.
pub(crate) struct ConnectionTask(Option<Box<Connection>>);

impl Connection {
    /// Makes it a task for the event loop of this thread.
    pub(crate) fn into_task(self) -> ConnectionTask {
        ConnectionTask(Some(Box::new(self)))
    }

    /// Moves to the event loop that its assignment names now.
    fn leave(mut self: Box<Self>) {
        match self.stream.take().map(Stream::leave) {
            Some(Ok(socket)) => {
                let (loops, number) = (Arc::clone(self.assignment.loops()), self.assignment.number());
                loops.send(number, Accepted::Moves { socket, connection: self });
            }
            Some(Err(error)) => {
                debug!("client {} was lost while moving to its event loop: {error}", self.session.number)
            }
            None => {}
        }
    }

    /// Registers with the event loop of this thread, after a move.
    ///
    /// # Errors
    /// When the event loop cannot take the socket; the connection has ended then.
    pub(crate) fn arrive(mut self: Box<Self>, socket: Socket) -> io::Result<ConnectionTask> {
        (self.stream, self.is_new) = (Some(socket.join()?), true);
        if let Some(session) = self.shared.engine().sessions.get_mut(self.session) {
            session.origin.event_loop = self.assignment.number();
        }
        Ok(ConnectionTask(Some(self)))
    }
}

impl Future for ConnectionTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(connection) = &mut self.0 else { return Poll::Ready(()) };
        if connection.assignment.changes() {
            self.0.take().into_iter().for_each(Connection::leave);
            return Poll::Ready(());
        }
        let ended = SCRATCH.with_borrow_mut(|scratch| connection.turn(cx, scratch));
        if ended.is_pending() && connection.holds_back {
            cx.waker().wake_by_ref();
        }
        ended.map(|_ended| ())
    }
}
