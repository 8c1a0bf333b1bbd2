//! A client without a socket: a call runs in the caller's thread, under the lock that all requests take.
//!
//! Messages of subscriptions are separate from the replies to calls: they wait in the server until a call or
//! [`Client::next_message`] fetches them, and count against `client-output-buffer-limit` like those of any client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::{Message, Reply};
use crate::engine::{Flow, Origin, SessionId, Transport};
use crate::resp::{DecodeError, Frame, Protocol, ReplyBuffer, Request, Span};
use crate::server::host_call::{self, Attachment, HostCallState};
use crate::server::shared::Shared;
use crate::server::wake_flags::{WakeFlag, WakeFlags};

/// Calls a server directly. For the server it is a client like any other, with its own session, which uses RESP3.
///
/// ```
/// let server = dunlin::Server::start()?;
/// let (mut first, mut second) = (server.client()?, server.client()?);
/// first.call(["SELECT", "1"])?;
/// first.set("key", "value")?;
/// assert_eq!(second.get("key")?, None, "each client has a database of its own choice");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    pub(super) shared: Arc<Shared>,
    pub(super) session: SessionId,
    pub(super) wake_flags: Arc<WakeFlags>,
    /// Messages that were fetched from the server but not returned yet.
    messages: VecDeque<Message>,
    /// The buffers of the last call, for the next one. A call takes them, and puts them back.
    buffers: Option<Box<CallBuffers>>,
}

/// The request of a call, and what the server replies.
#[derive(Debug, Default)]
pub(super) struct CallBuffers {
    words: Vec<u8>,
    spans: Vec<Span>,
    pub(super) output: ReplyBuffer,
}

/// The most capacity of a buffer that a client keeps for the next call, in bytes.
const KEPT_BYTES: usize = 64 << 10;

impl CallBuffers {
    /// Replaces the request by these words.
    pub(super) fn gather<W: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.words.clear();
        self.spans.clear();
        for word in words {
            let start = self.words.len();
            self.words.extend_from_slice(word.as_ref());
            self.spans.push(Span { start, end: self.words.len() });
        }
    }

    /// The request, and the output for its reply.
    pub(super) fn parts(&mut self) -> (Request<'_>, &mut ReplyBuffer) {
        self.output.clear();
        (Request::new(&self.words, &self.spans), &mut self.output)
    }

    /// Whether they are small enough to be kept for the next call.
    fn are_kept(&self) -> bool {
        self.words.capacity().max(self.output.written().len()) <= KEPT_BYTES
    }
}

/// The reason why a call did not succeed: the server replied with an error, or is gone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server replied with an error: its whole line, such as `ERR syntax error`.
    #[error("{0}")]
    Refused(String),
    /// The server has closed this client, or has stopped.
    #[error("the connection is closed")]
    Closed,
}

impl Client {
    pub(super) fn connect(shared: Arc<Shared>) -> Result<Client, CallError> {
        Client::come(shared, false)
    }

    /// A client of the test itself, to which no journal, fault, rule or limit applies.
    pub(super) fn examine(shared: Arc<Shared>) -> Result<Client, CallError> {
        Client::come(shared, true)
    }

    fn come(shared: Arc<Shared>, is_test_client: bool) -> Result<Client, CallError> {
        let direct = Origin { transport: Transport::Direct, descriptor: -1, is_local: true, ..Origin::default() };
        let origin = Origin { is_test_client, ..direct };
        let full = || CallError::Refused("ERR max number of clients reached".to_owned());
        let not_let_in = || if shared.is_open() { full() } else { CallError::Closed };
        let (session, wake_flags) = shared.connect(origin).ok_or_else(not_let_in)?;
        if let Some(own) = shared.engine().sessions.get_mut(session) {
            own.authenticated = true;
            own.protocol = Protocol::Resp3;
        }
        Ok(Client { shared, session, wake_flags, messages: VecDeque::new(), buffers: None })
    }

    /// Runs one command. It waits while clients are paused (CLIENT PAUSE) or the command blocks, as for any client.
    ///
    /// ```
    /// let mut client = dunlin::Server::start()?.client()?;
    /// assert_eq!(client.call(["SET", "key", "value"])?, "OK");
    /// let refused = client.call(["LPUSH", "key", "element"]).expect_err("the key holds a string");
    /// assert!(refused.to_string().starts_with("WRONGTYPE"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`] with the error that the server replied; [`CallError::Closed`] if the server sends no more
    /// replies.
    pub fn call<W: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = W>) -> Result<Reply, CallError> {
        let mut buffers = self.buffers.take().unwrap_or_default();
        buffers.gather(words);
        let reply = self.run(&mut buffers).and_then(|is_open| {
            let nothing = if is_open { Ok(Reply::Null) } else { Err(CallError::Closed) };
            self.sort(buffers.output.flatten(0), nothing)
        });
        self.buffers = Some(buffers).filter(|buffers| buffers.are_kept());
        reply
    }

    /// Like [`Client::call`], for a command with one reply: returns what `read` takes from it.
    pub(super) fn call_for<T>(&mut self, words: &[&[u8]], read: impl Fn(&Frame<'_>) -> T) -> Result<T, CallError> {
        let mut buffers = self.buffers.take().unwrap_or_default();
        buffers.gather(words);
        let is_open = self.run(&mut buffers);
        let result = is_open.and_then(|is_open| self.read(buffers.output.flatten(0), is_open, read));
        self.buffers = Some(buffers).filter(|buffers| buffers.are_kept());
        result
    }

    /// Runs a request; the output has its reply then. Returns whether the client goes on.
    fn run(&mut self, buffers: &mut CallBuffers) -> Result<bool, CallError> {
        let (request, output) = buffers.parts();
        if request.is_empty() {
            return Ok(true);
        }
        loop {
            match self.shared.call(self.session, request, output).ok_or(CallError::Closed)? {
                Flow::Next => break,
                Flow::HeldBack(_) => _ = self.wait_for(WakeFlag::Resume, None)?,
                Flow::CallHost if self.suspend_for_host(output.written_mut()) => {}
                Flow::CallHost => _ = self.wait_for(WakeFlag::Resume, None)?,
                Flow::Block => {
                    self.wait_for_answer(output)?;
                    break;
                }
                Flow::Close | Flow::Abort => {
                    self.shared.disconnect(self.session);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the next message of a subscribed channel or pattern, if one was published that was not returned yet; it
    /// does not wait.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// let (mut ann, mut bob) = (server.client()?, server.client()?);
    /// ann.call(["SUBSCRIBE", "news"])?;
    /// bob.call(["PUBLISH", "news", "hello"])?;
    /// let message = ann.next_message()?.expect("it was published");
    /// assert_eq!((&message.channel[..], &message.payload[..]), (&b"news"[..], &b"hello"[..]));
    /// assert_eq!(ann.next_message()?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Closed`] if the server has closed this client.
    pub fn next_message(&mut self) -> Result<Option<Message>, CallError> {
        if self.messages.is_empty() {
            let mut output = ReplyBuffer::default();
            self.fetch(&mut output)?;
            self.sort(output.flatten(0), Ok(Reply::Null))?;
        }
        Ok(self.messages.pop_front())
    }

    /// Returns the next message; waits for it up to `timeout`, in real time, and then returns `None`.
    ///
    /// # Errors
    /// [`CallError::Closed`] if the server has closed this client.
    pub fn wait_for_message(&mut self, timeout: Duration) -> Result<Option<Message>, CallError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test waits in its own time, whatever the server's clock shows"
        )]
        let end = Instant::now() + timeout;
        loop {
            if let Some(message) = self.next_message()? {
                return Ok(Some(message));
            }
            if !self.wait_for(WakeFlag::Pushed, Some(end))? {
                return self.next_message();
            }
        }
    }

    /// Answers a host call of the request, which may move this client to another world; false if the answer comes
    /// later.
    pub(super) fn suspend_for_host(&mut self, output: &mut Vec<u8>) -> bool {
        match host_call::answer(&self.shared, self.session, output) {
            HostCallState::Answered => {}
            HostCallState::Moved(attachment) => {
                Attachment { shared: self.shared, session: self.session, wake_flags: self.wake_flags } = attachment;
            }
            HostCallState::Pending => return false,
        }
        true
    }

    /// Takes the output that the server has for this client.
    pub(super) fn fetch(&self, output: &mut ReplyBuffer) -> Result<(), CallError> {
        self.shared.fetch(self.session, output).ok_or(CallError::Closed)
    }

    /// Stores the messages among the server's output, and returns the reply, or several replies as an array; `nothing`
    /// if there is none.
    pub(super) fn sort(&mut self, output: &[u8], nothing: Result<Reply, CallError>) -> Result<Reply, CallError> {
        if let Some(reply) = Reply::of_simple(output) {
            return Ok(reply);
        }
        // Nearly always it is one reply, which is made where the caller wants it.
        match Frame::decode(output).map_err(unreadable)? {
            Some((frame, length)) if length == output.len() && !matches!(frame, Frame::Push(_)) => {
                reply_or_refusal(frame)
            }
            _ => self.sort_several(output, nothing),
        }
    }

    /// Like [`Client::sort`], for output that is not one reply alone.
    fn sort_several(&mut self, output: &[u8], nothing: Result<Reply, CallError>) -> Result<Reply, CallError> {
        let (mut replies, mut rest) = (Vec::new(), output);
        while let Some((reply, after)) = Reply::decode(rest).map_err(unreadable)? {
            match Message::of(&reply) {
                Some(message) => self.messages.push_back(message),
                None => replies.push(reply),
            }
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

    /// Returns what `read` takes from the reply in the server's output, and stores the messages around it.
    fn read<T>(&mut self, output: &[u8], is_open: bool, read: impl Fn(&Frame<'_>) -> T) -> Result<T, CallError> {
        if let Some(string) = Frame::only_string(output) {
            return Ok(read(&Frame::Bytes(string)));
        }
        let mut result = if is_open { Ok(None) } else { Err(CallError::Closed) };
        let mut rest = output;
        while let Some((frame, length)) = Frame::decode(rest).map_err(unreadable)? {
            match &frame {
                Frame::Push(_) => self.messages.extend(Message::of(&Reply::of(frame))),
                Frame::Error(line) => {
                    result = Err(CallError::Refused(String::from_utf8_lossy(line).into_owned()));
                }
                frame => result = Ok(Some(read(frame))),
            }
            rest = &rest[length..];
        }
        result.map(|value| value.unwrap_or_else(|| read(&Frame::Null)))
    }

    /// Sleeps until the blocked command has its reply.
    fn wait_for_answer(&self, output: &mut ReplyBuffer) -> Result<(), CallError> {
        loop {
            self.wait_for(WakeFlag::Pushed, None)?;
            self.fetch(output)?;
            if !self.shared.engine().is_blocked(self.session) {
                return self.fetch(output);
            }
        }
    }

    /// Sleeps until one of these wake flags is set, or until `end`: then it returns false.
    fn wait_for(&self, flag: WakeFlag, end: Option<Instant>) -> Result<bool, CallError> {
        self.wake_flags.attach(&Waker::from(Arc::new(Unpark(thread::current()))));
        loop {
            let flags = self.wake_flags.take();
            if flags.has(WakeFlag::Close) {
                return Err(CallError::Closed);
            }
            if flags.has(flag) {
                return Ok(true);
            }
            let Some(end) = end else {
                thread::park();
                continue;
            };
            #[expect(clippy::disallowed_methods, reason = "a test waits in its own time")]
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Ok(false);
            }
            thread::park_timeout(rest);
        }
    }
}

fn unreadable(error: DecodeError) -> CallError {
    CallError::Refused(format!("ERR {error}"))
}

/// Converts the reply to a call: an error becomes [`CallError::Refused`].
#[inline(always)]
fn reply_or_refusal(frame: Frame<'_>) -> Result<Reply, CallError> {
    match frame {
        Frame::Error(line) => Err(CallError::Refused(String::from_utf8_lossy(line).into_owned())),
        frame => Ok(Reply::of(frame)),
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.disconnect(self.session);
    }
}

/// Wakes a sleeping thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
