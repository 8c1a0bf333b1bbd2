//! A client without a socket: a call runs in the thread of the caller, under the same lock as everyone's requests.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use thiserror::Error;

use super::Reply;
use crate::engine::{Flow, Origin, SessionId, Transport};
use crate::resp::{Protocol, Request, Span};
use crate::server::mailbox::{Letter, Mailbox};
use crate::server::shared::Shared;

/// Calls a server directly. To the server it is a client like any other, with a session of its own, which speaks RESP3.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    session: SessionId,
    mailbox: Arc<Mailbox>,
}

/// Why a call has no reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered an error: its whole line, such as `ERR syntax error`.
    #[error("{0}")]
    Refused(String),
    /// The server has closed this client, or has ended itself.
    #[error("the connection is closed")]
    Closed,
}

impl Client {
    pub(super) fn connect(shared: Arc<Shared>) -> Result<Client, CallError> {
        let origin = Origin { transport: Transport::Direct, descriptor: -1, is_local: true, ..Origin::default() };
        let full = || CallError::Refused("ERR max number of clients reached".to_owned());
        let (session, mailbox) = shared.connect(origin).ok_or_else(full)?;
        if let Some(own) = shared.engine().sessions.get_mut(session) {
            own.authenticated = true;
            own.protocol = Protocol::Resp3;
        }
        Ok(Client { shared, session, mailbox })
    }

    /// Runs one command. While clients are paused (CLIENT PAUSE), or a command blocks, it waits, as any client does.
    ///
    /// # Errors
    /// [`CallError::Refused`] with the error that the server answered; [`CallError::Closed`] when it answers no more.
    pub fn call<W: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = W>) -> Result<Reply, CallError> {
        let (mut buffer, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            let start = buffer.len();
            buffer.extend_from_slice(word.as_ref());
            spans.push(Span { start, end: buffer.len() });
        }
        if spans.is_empty() {
            return Ok(Reply::Null);
        }
        let (request, mut output) = (Request::new(&buffer, &spans), Vec::new());
        loop {
            match self.shared.run(self.session, request, &mut output) {
                Flow::Next => return reply(&output, Ok(Reply::Null)),
                Flow::Wait(_) => self.wait_for(Letter::Resume)?,
                Flow::Block => {
                    self.wait_for_answer(&mut output)?;
                    return reply(&output, Ok(Reply::Null));
                }
                Flow::Close | Flow::Abort => {
                    self.shared.disconnect(self.session);
                    return reply(&output, Err(CallError::Closed));
                }
            }
        }
    }

    /// Sleeps until the command that waits is answered.
    fn wait_for_answer(&self, output: &mut Vec<u8>) -> Result<(), CallError> {
        loop {
            self.wait_for(Letter::Told)?;
            let mut engine = self.shared.engine();
            let session = engine.sessions.get_mut(self.session).ok_or(CallError::Closed)?;
            session.outgoing.take(output, usize::MAX);
            if !engine.is_blocked(self.session) {
                return Ok(());
            }
        }
    }

    /// Sleeps until there is such a letter.
    fn wait_for(&self, letter: Letter) -> Result<(), CallError> {
        self.mailbox.attach(&Waker::from(Arc::new(Unpark(thread::current()))));
        loop {
            let letters = self.mailbox.take();
            if letters.has(Letter::Close) {
                return Err(CallError::Closed);
            }
            if letters.has(letter) {
                return Ok(());
            }
            thread::park();
        }
    }
}

/// What a call wrote: one reply, or several of them as an array; `nothing` if it wrote none.
fn reply(output: &[u8], nothing: Result<Reply, CallError>) -> Result<Reply, CallError> {
    let (mut replies, mut rest) = (Vec::new(), output);
    while let Some((reply, after)) = Reply::decode(rest) {
        replies.push(reply);
        rest = after;
    }
    match replies.len() {
        0 => nothing,
        1 => match replies.remove(0) {
            Reply::Error(line) => Err(CallError::Refused(line)),
            reply => Ok(reply),
        },
        _ => Ok(Reply::Array(replies)),
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.disconnect(self.session);
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
