//! Fairness between connections: how much a connection does each time it is polled, before others are served.
//!
//! A client that streams requests without waiting for replies always has more to run. Its connection stops after
//! [`TURN_NS`], or after [`TURN_REPLY_BYTES`] of replies, whichever comes first, keeps what it has not run, and asks
//! to be polled again *after* the event loop has asked the system for events ([`wake_after_others`]). So in each round
//! of the loop every client that has sent something is served once, and a client that waits for its reply waits for
//! one turn of each of the others, as in Redis, where a round takes at most 20 KB of requests from each client.
//!
//! A pipeline of up to [`READ_AT_ONCE`] bytes that was sent at once runs as a whole, however long it takes: no other
//! client's command runs in between. Redis reads that much before it runs any, so tests and applications rely on it.
//! What ends a batch in Redis ends it here (a command that blocks, a pause, an error of the protocol), and so do a
//! login, a command of the test kit that other worlds or nodes carry out, and [`WHOLE_REPLY_BYTES`] of replies.
//!
//! For a client with a limit on its replies (`client-output-buffer-limit`) a turn has no time limit either: in Redis
//! the limit applies to all replies to the requests that were sent together.
//!
//! Costs: for a client that streams, one reading of the clock for a batch that is not the last of its turn, or for a
//! command that is not brief. A client that waits for its replies never pays it.

use std::cell::Cell;
use std::pin::pin;
use std::task::Context;

use super::clock::monotonic_ns;

/// The time for which a connection that streams runs requests before others are served. Shorter turns cost throughput,
/// as each ends with a write; longer ones make others wait.
const TURN_NS: u64 = 30_000;

/// The most bytes of replies that a turn of a client that streams produces; only the last reply may exceed it.
pub(crate) const TURN_REPLY_BYTES: usize = 256 << 10;

/// The most requests of a batch of a client that streams.
pub(crate) const PART_REQUESTS: usize = 32;

/// The most bytes of requests that run as a whole: as many as Redis 8 and Valkey 9 read at once, which is 16 KiB and
/// what their allocator adds to a buffer of that size.
pub(crate) const READ_AT_ONCE: usize = 20_474;

/// The most bytes of replies to a pipeline that runs as a whole; only the last reply may exceed it. Redis has no such
/// end: it keeps them all in memory.
const WHOLE_REPLY_BYTES: usize = 4 << 20;

/// The most bytes that a turn writes to a socket that keeps taking them; only the last call may exceed it.
pub(crate) const TURN_WRITE_BYTES: usize = 1 << 20;

/// How much of a client's pipeline runs before other clients are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchLimit {
    /// All of it: it was sent together, and is no more than Redis reads at once.
    WholePipeline,
    /// As much as fits into a turn.
    OneTurn,
}

impl BatchLimit {
    /// How much of that many bytes runs, of a client that streams or does not.
    pub(crate) fn of(bytes: usize, is_streaming: bool) -> BatchLimit {
        if bytes <= READ_AT_ONCE && !is_streaming { BatchLimit::WholePipeline } else { BatchLimit::OneTurn }
    }

    /// The most requests of a batch.
    pub(crate) fn most_requests(self) -> usize {
        match self {
            BatchLimit::WholePipeline => usize::MAX,
            BatchLimit::OneTurn => PART_REQUESTS,
        }
    }

    /// The bytes of replies from which on no more requests run.
    pub(crate) fn most_reply_bytes(self) -> usize {
        match self {
            BatchLimit::WholePipeline => WHOLE_REPLY_BYTES,
            BatchLimit::OneTurn => TURN_REPLY_BYTES,
        }
    }
}

/// The end of a turn. It is set by [`TurnEnd::begin`] or at the first check, so a short turn never reads the clock.
#[derive(Debug, Default)]
pub(crate) struct TurnEnd {
    at_ns: Cell<Option<u64>>,
}

impl TurnEnd {
    /// Sets the end, if it is not set.
    pub(crate) fn begin(&self) {
        if self.at_ns.get().is_none() {
            self.at_ns.set(Some(monotonic_ns() + TURN_NS));
        }
    }

    /// Whether the turn's time is over.
    pub(crate) fn is_reached(&self) -> bool {
        let Some(at_ns) = self.at_ns.get() else {
            self.begin();
            return false;
        };
        monotonic_ns() >= at_ns
    }

    /// Removes the limit on the turn's time; its bytes alone end it.
    pub(crate) fn remove_time_limit(&self) {
        self.at_ns.set(Some(u64::MAX));
    }
}

/// Wakes the task once the event loop has checked for I/O events and all ready tasks had their turns. After a plain
/// wake-up it would run before the loop checks, and then no other client would ever be served.
pub(crate) fn wake_after_others(cx: &mut Context<'_>) {
    let mut yielded = pin!(tokio::task::yield_now());
    // The first poll only leaves the waker with the event loop.
    let _ = yielded.as_mut().poll(cx);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};
    use std::rc::Rc;
    use std::task::Poll;

    use super::*;

    /// Polls of a task that wakes itself each time, until a socket that is readable from the start is read.
    fn polls_before_an_event(mut wake: impl FnMut(&mut Context<'_>) + 'static) -> usize {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let mut sender = std::net::TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (mut receiver, _) = listener.accept().expect("somebody connects");
        sender.write_all(b"x").expect("the socket takes a byte");
        receiver.read_exact(&mut [0]).expect("it has arrived");
        sender.write_all(b"x").expect("the socket takes a byte");
        receiver.set_nonblocking(true).expect("a socket can be");
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().event_interval(1000).build().expect("it can be built");
        let (polls, counted) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(None)));
        let tasks = tokio::task::LocalSet::new();
        let (count, count_seen) = (Rc::clone(&polls), Rc::clone(&polls));
        let seen = Rc::clone(&counted);
        tasks.spawn_local(poll_fn(move |cx| {
            *count.borrow_mut() += 1;
            wake(cx);
            Poll::<()>::Pending
        }));
        tasks.block_on(&runtime, async move {
            let stream = tokio::net::TcpStream::from_std(receiver).expect("it joins the loop");
            stream.readable().await.expect("it is open");
            *seen.borrow_mut() = Some(*count_seen.borrow());
        });
        counted.borrow().expect("the byte arrives")
    }

    #[test]
    fn a_turn_ends_when_its_time_is_over() {
        let end = TurnEnd::default();
        assert!(!end.is_reached());
        end.at_ns.set(Some(monotonic_ns()));
        assert!(end.is_reached());
    }

    #[test]
    fn the_event_loop_asks_for_events_before_a_task_that_lets_others_go_first() {
        assert!(polls_before_an_event(wake_after_others) < 10);
    }
}
