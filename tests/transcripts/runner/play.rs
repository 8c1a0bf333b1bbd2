//! Plays the steps of a section against a target, and returns the replies.

use super::format::{Action, Step};
use super::matching::{self, Clock};
use super::target::{Link, Received, Target};
use crate::reply::{self, Order, Protocol, Reply, Undecoded, render};
use crate::words::quote;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

/// The text for a missing reply.
pub(crate) const SILENCE: &str = "(nothing)";
/// The text for a reply on a connection that the server closed.
const CLOSED: &str = "(closed)";

/// The most time for a reply that must arrive.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The time to wait where no reply is expected.
const SILENCE_PATIENCE: Duration = Duration::from_millis(60);
/// The time to wait for bytes that are not expected.
const SURPLUS_PATIENCE: Duration = Duration::from_millis(150);

/// The time that a player may lose to other work of the machine before its answers are in doubt.
const LATENESS: Duration = Duration::from_millis(15);

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    /// A reply, rendered.
    Lines(Vec<String>),
    /// Bytes, and whether the connection was closed after them.
    Bytes(Vec<u8>, bool),
    /// This step has no answer.
    Done,
    /// The target cannot play this step, nor those after it.
    Beyond,
}

impl Got {
    /// Whether this is what `step` expects.
    pub(crate) fn fits(&self, step: &Step, protocol: Protocol, clock: Clock) -> bool {
        match self {
            Self::Lines(lines) => matching::accepts(step.expected.lines(protocol), lines, clock),
            Self::Bytes(bytes, closed) => {
                *bytes == step.expected.bytes && *closed == step.expected.closed && (*closed || !bytes.is_empty())
            }
            Self::Done | Self::Beyond => true,
        }
    }
}

/// Plays one section; its connections end with it.
pub(crate) struct Player<'t> {
    target: &'t mut dyn Target,
    protocol: Protocol,
    connections: BTreeMap<String, Connection>,
    started: Instant,
    /// The time that the steps until now were to wait.
    planned: Duration,
}

struct Connection {
    link: Box<dyn Link>,
    protocol: Protocol,
    input: Vec<u8>,
    pushes: VecDeque<Reply>,
}

impl<'t> Player<'t> {
    #[expect(clippy::disallowed_methods, reason = "the clock of a real server is the wall clock")]
    pub(crate) fn new(target: &'t mut dyn Target, protocol: Protocol) -> Self {
        Self { target, protocol, connections: BTreeMap::new(), started: Instant::now(), planned: Duration::ZERO }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.target.clock()
    }

    /// Whether the wall clock went on by more than the steps were to wait.
    pub(crate) fn is_late(&self) -> bool {
        self.clock() == Clock::Wall && self.started.elapsed() > self.planned + LATENESS
    }

    pub(crate) fn perform(&mut self, step: &Step) -> io::Result<Got> {
        let timeout = match step.expected.is_silence(self.protocol) {
            true => SILENCE_PATIENCE,
            false => TIMEOUT,
        };
        self.planned += match &step.action {
            Action::Advance(by) => *by,
            Action::Call(..) | Action::Receive(_) if timeout == SILENCE_PATIENCE => timeout,
            _ => Duration::ZERO,
        };
        Ok(match &step.action {
            Action::Advance(by) if self.target.advance(*by)? => Got::Done,
            Action::Advance(_) => Got::Beyond,
            Action::Log => match self.target.log()? {
                None => Got::Beyond,
                Some(lines) if lines.is_empty() => Got::Lines(vec![SILENCE.to_owned()]),
                Some(lines) => Got::Lines(lines),
            },
            Action::Call(args, order) => Got::Lines(self.connection(step)?.ask(args, *order, timeout)?),
            Action::Receive(order) => {
                let connection = self.connection(step)?;
                let message = connection.message(timeout)?;
                Got::Lines(connection.lines(message, *order))
            }
            Action::ReceiveBytes => {
                let connection = self.connection(step)?;
                let (bytes, closed) = connection.bytes(step.expected.bytes.len(), step.expected.closed)?;
                Got::Bytes(bytes, closed)
            }
            Action::Send(args) => {
                self.connection(step)?.link.send(&encoded(args))?;
                self.target.wait_until_read()?;
                Got::Done
            }
            Action::SendBytes(bytes) => {
                self.connection(step)?.link.send(bytes)?;
                self.target.wait_until_read()?;
                Got::Done
            }
        })
    }

    /// The connection of `step`; opened at its first use, in RESP3 too unless that use sends bytes.
    fn connection(&mut self, step: &Step) -> io::Result<&mut Connection> {
        if !self.connections.contains_key(&step.connection) {
            let link = self.target.connect()?;
            let mut connection =
                Connection { link, protocol: Protocol::Resp2, input: Vec::new(), pushes: VecDeque::new() };
            if self.protocol == Protocol::Resp3 && !matches!(step.action, Action::SendBytes(_)) {
                let greeting = connection.ask(&[b"HELLO".to_vec(), b"3".to_vec()], Order::Given, TIMEOUT)?;
                if connection.protocol != Protocol::Resp3 {
                    return Err(io::Error::other(format!("HELLO 3 was answered with {greeting:?}")));
                }
            }
            self.connections.insert(step.connection.clone(), connection);
        }
        Ok(self.connections.get_mut(&step.connection).expect("it was inserted above if it was missing"))
    }
}

/// One message, or why there is none.
enum Message {
    Reply(Reply),
    Silence,
    Closed,
    Malformed(String),
}

impl Connection {
    fn ask(&mut self, args: &[Vec<u8>], order: Order, timeout: Duration) -> io::Result<Vec<String>> {
        self.link.send(&encoded(args))?;
        let answer = loop {
            match self.read(timeout)? {
                Message::Reply(push @ Reply::Push(_)) if !answered_by_push(args) => self.pushes.push_back(push),
                answer => break answer,
            }
        };
        if let Message::Reply(reply) = &answer {
            self.follow(args, reply);
        }
        Ok(self.lines(answer, order))
    }

    /// Notes when a command changes the protocol.
    fn follow(&mut self, args: &[Vec<u8>], reply: &Reply) {
        let is = |index: usize, word: &[u8]| args.get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
        match reply {
            Reply::Error(_) => {}
            _ if is(0, b"HELLO") && is(1, b"3") => self.protocol = Protocol::Resp3,
            _ if is(0, b"HELLO") && is(1, b"2") || is(0, b"RESET") => self.protocol = Protocol::Resp2,
            _ => {}
        }
    }

    /// The oldest push that no one has read, else the next message.
    fn message(&mut self, timeout: Duration) -> io::Result<Message> {
        match self.pushes.pop_front() {
            Some(push) => Ok(Message::Reply(push)),
            None => self.read(timeout),
        }
    }

    fn read(&mut self, timeout: Duration) -> io::Result<Message> {
        loop {
            match reply::decode(&self.input) {
                Ok((reply, used)) => {
                    self.input.drain(..used);
                    return Ok(Message::Reply(reply));
                }
                Err(Undecoded::Malformed(reason)) => return Ok(Message::Malformed(reason)),
                Err(Undecoded::Incomplete) => {}
            }
            match self.link.receive(&mut self.input, timeout)? {
                Received::Bytes => {}
                Received::Nothing if self.input.is_empty() => return Ok(Message::Silence),
                Received::Closed if self.input.is_empty() => return Ok(Message::Closed),
                _ => return Ok(Message::Malformed(format!("half a reply: {}", quote(&self.input)))),
            }
        }
    }

    fn lines(&self, message: Message, order: Order) -> Vec<String> {
        match message {
            Message::Reply(reply) => render(&reply, self.protocol, order),
            Message::Silence => vec![SILENCE.to_owned()],
            Message::Closed => vec![CLOSED.to_owned()],
            Message::Malformed(reason) => vec![format!("(malformed) {reason}")],
        }
    }

    /// `count` bytes and, where it `must_close`, the end; more if more is there.
    fn bytes(&mut self, count: usize, must_close: bool) -> io::Result<(Vec<u8>, bool)> {
        let mut closed = false;
        while !closed && (self.input.len() < count || must_close) {
            match self.link.receive(&mut self.input, TIMEOUT)? {
                Received::Bytes => {}
                Received::Nothing => break,
                Received::Closed => closed = true,
            }
        }
        let surplus = count == 0 || self.input.len() > count;
        while surplus && !closed {
            match self.link.receive(&mut self.input, SURPLUS_PATIENCE)? {
                Received::Bytes => {}
                Received::Nothing => break,
                Received::Closed => closed = true,
            }
        }
        Ok((std::mem::take(&mut self.input), closed))
    }
}

/// Whether RESP3 answers this command with a push.
fn answered_by_push(args: &[Vec<u8>]) -> bool {
    const NAMES: [&str; 6] = ["SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE"];
    args.first().is_some_and(|word| NAMES.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())))
}

fn encoded(args: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
