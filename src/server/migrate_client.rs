//! The MIGRATE client: a thread that sends requests to other servers.
//!
//! MIGRATE waits for the result and holds the engine's lock, so no other client is served meanwhile, as in Redis. The
//! wait always ends: each step has a timeout, and a server that is shutting down abandons it. The client has a thread
//! of its own because the waiting thread may be an event loop, which cannot await anything within a request. Requests
//! of several worlds are sent at the same time: none waits for the server of another one.
//!
//! A connection is kept for further requests to the same address, until it was unused for [`KEPT`]. The other side may
//! have closed it meanwhile, so a request that got no reply at all is tried once more on a new connection.
//!
//! The thread starts with the first request and ends with the server. A node of the same cluster in this
//! process gets its requests without it ([`super::nodes`]).
//!
//! Source: the connections that Redis 8.0.6 makes, keeps and closes for MIGRATE.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc as results;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, timeout, timeout_at};

use super::contain::contain_async;
use super::first_of::first_of;
use super::processors;
use super::shared::Phase;
use crate::engine::{RemoteFault, RemoteRequest, RemoteResult};

/// The time for which an unused connection is kept.
const KEPT: Duration = Duration::from_secs(10);
/// The most connections that are kept.
const MAX_KEPT: usize = 64;
/// The most bytes that one step sends; each step has its own timeout.
const PART_BYTES: usize = 64 << 10;
/// The most bytes that one read takes.
const READ_BYTES: usize = 16 << 10;
/// The longest reply line in bytes; a longer one counts as several lines.
const LONGEST_LINE: usize = 1023;

/// Stands for a connection whose selected database is not known. As in Redis, a MIGRATE to database -1 then sends no
/// SELECT, so its keys go to the database that was selected last.
const UNKNOWN: i64 = -1;

/// Sends requests to other servers, on a thread that starts with the first one.
#[derive(Debug)]
pub(crate) struct MigrateClient {
    /// `None` while no thread runs.
    inbox: Mutex<Option<mpsc::UnboundedSender<Order>>>,
    kept: Arc<AtomicUsize>,
    phase: watch::Receiver<Phase>,
    processors: String,
}

/// A request, and the channel for its result.
type Order = (RemoteRequest, results::Sender<RemoteResult>);

impl MigrateClient {
    /// A client that gives up once `phase` says that the server ends. Its thread runs on the processors of the list
    /// `processors`.
    pub(crate) fn new(phase: watch::Receiver<Phase>, processors: &str) -> MigrateClient {
        MigrateClient { inbox: Mutex::default(), kept: Arc::default(), phase, processors: processors.to_owned() }
    }

    /// The number of connections that are kept now.
    pub(crate) fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Sends a request, and waits for its result.
    pub(crate) fn send(&self, remote: RemoteRequest) -> RemoteResult {
        let (sender, result) = results::channel();
        let mut inbox = self.inbox.lock();
        if inbox.get_or_insert_with(|| self.start()).send((remote, sender)).is_err() {
            // The next request tries to start a thread again.
            *inbox = None;
            return RemoteResult::of(RemoteFault::Connecting);
        }
        drop(inbox);
        // No result means that the thread has stopped, as the server ends.
        result.recv().unwrap_or_else(|_| RemoteResult::of(RemoteFault::Reading))
    }

    fn start(&self) -> mpsc::UnboundedSender<Order> {
        let (inbox, orders) = mpsc::unbounded_channel();
        let (kept, mut phase, processors) = (Arc::clone(&self.kept), self.phase.clone(), self.processors.clone());
        let run = move || {
            processors::pin_background_thread(&processors);
            let Ok(runtime) = Builder::new_current_thread().enable_io().enable_time().build() else { return };
            let pool = Rc::new(ConnectionPool { peers: RefCell::default(), kept });
            LocalSet::new().block_on(&runtime, async {
                let ending = async { drop(phase.wait_for(|&phase| phase > Phase::Serving).await) };
                first_of(pin!(ending), pin!(pool.serve(orders))).await;
            });
            // Does not wait for a name lookup that is still running.
            runtime.shutdown_background();
        };
        // If no thread starts, the receiver is dropped at once, and sending fails.
        drop(thread::Builder::new().name("dunlin-migrate".to_owned()).spawn(run));
        inbox
    }
}

/// The kept connections, by host and port.
struct ConnectionPool {
    peers: RefCell<HashMap<(String, u16), Peer>>,
    kept: Arc<AtomicUsize>,
}

impl ConnectionPool {
    async fn serve(self: Rc<Self>, mut orders: mpsc::UnboundedReceiver<Order>) {
        loop {
            let end = self.peers.borrow().values().map(|peer| peer.used + KEPT).min();
            let order = match end {
                None => Ok(orders.recv().await),
                Some(end) => timeout_at(end, orders.recv()).await,
            };
            let (remote, reply_to) = match order {
                Ok(Some(order)) => order,
                Ok(None) => return,
                Err(_) => {
                    self.close_unused();
                    continue;
                }
            };
            let pool = Rc::clone(&self);
            spawn_local(async move {
                let result = contain_async("the MIGRATE client", pool.carry(&remote)).await;
                // This fails when the caller no longer waits; it needs no result then.
                drop(reply_to.send(result.unwrap_or_else(|| RemoteResult::of(RemoteFault::Reading))));
            });
        }
    }

    /// Closes the connections that were unused for [`KEPT`].
    fn close_unused(&self) {
        self.peers.borrow_mut().retain(|_, peer| peer.used.elapsed() < KEPT);
        self.count();
    }

    fn count(&self) {
        self.kept.store(self.peers.borrow().len(), Ordering::Relaxed);
    }

    async fn carry(&self, remote: &RemoteRequest) -> RemoteResult {
        let place = (remote.host.clone(), remote.port);
        let mut has_reconnected = false;
        loop {
            let known = self.peers.borrow_mut().remove(&place);
            self.count();
            let connected = match known {
                Some(peer) => Ok(peer),
                None => Peer::connect(remote).await,
            };
            let mut peer = match connected {
                Ok(peer) => peer,
                Err(fault) => return RemoteResult::of(fault),
            };
            let (result, fault) = peer.carry(remote).await;
            match fault {
                None => {
                    self.return_to_pool(place, peer);
                    return result;
                }
                Some(SendFault::Lost) if result.replies.is_empty() && !has_reconnected => has_reconnected = true,
                Some(_) => return result,
            }
        }
    }

    fn return_to_pool(&self, place: (String, u16), peer: Peer) {
        let mut peers = self.peers.borrow_mut();
        if peers.len() >= MAX_KEPT
            && let Some(longest) = peers.iter().min_by_key(|(_, peer)| peer.used).map(|(place, _)| place.clone())
        {
            peers.remove(&longest);
        }
        peers.insert(place, Peer { used: Instant::now(), ..peer });
        drop(peers);
        self.count();
    }
}

/// The reason why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendFault {
    /// The connection has ended.
    Lost,
    TimedOut,
}

impl From<io::Error> for SendFault {
    fn from(_: io::Error) -> SendFault {
        SendFault::Lost
    }
}

/// Runs one step with a timeout.
async fn within<T>(limit: Duration, step: impl Future<Output = io::Result<T>>) -> Result<T, SendFault> {
    Ok(timeout(limit, step).await.map_err(|_| SendFault::TimedOut)??)
}

/// A connection to another server.
struct Peer {
    stream: TcpStream,
    /// The bytes that were read after the last complete line.
    unread: Vec<u8>,
    /// The database that is selected there, or [`UNKNOWN`].
    database: i64,
    used: Instant,
}

impl Peer {
    /// Connects to the request's host and port. A refused connection is a writing fault, because Redis notices it only
    /// when it writes; a timeout is a connecting fault.
    async fn connect(remote: &RemoteRequest) -> Result<Peer, RemoteFault> {
        let limit = Duration::from_millis(remote.timeout_ms);
        let look_up = lookup_host((remote.host.as_str(), remote.port));
        let addresses = within(limit, look_up).await.map_err(|_| RemoteFault::Connecting)?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        let connect = async {
            let stream = TcpStream::connect(&addresses[..]).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let stream = within(limit, connect).await.map_err(|fault| match fault {
            SendFault::TimedOut => RemoteFault::Connecting,
            SendFault::Lost => RemoteFault::Writing,
        })?;
        Ok(Peer { stream, unread: Vec::new(), database: UNKNOWN, used: Instant::now() })
    }

    async fn carry(&mut self, remote: &RemoteRequest) -> (RemoteResult, Option<SendFault>) {
        let mut result = RemoteResult::default();
        let choice = self.database != remote.database;
        let greeting = if choice { remote.greeting() } else { remote.login.clone() };
        let limit = Duration::from_millis(remote.timeout_ms);
        for part in [&greeting, &remote.requests].into_iter().flat_map(|bytes| bytes.chunks(PART_BYTES)) {
            if let Err(fault) = within(limit, self.send(part)).await {
                result.fault = Some(RemoteFault::Writing);
                return (result, Some(fault));
            }
        }
        let greetings = usize::from(!remote.login.is_empty()) + usize::from(choice);
        let fault = self.read_replies(greetings, remote, &mut result).await.err();
        result.fault = fault.map(|_| RemoteFault::Reading);
        let is_well = result.refusal.is_none() && !result.replies.iter().any(|line| line.starts_with(b"-"));
        self.database = if is_well { remote.database } else { UNKNOWN };
        (result, fault)
    }

    async fn read_replies(
        &mut self,
        greetings: usize,
        remote: &RemoteRequest,
        result: &mut RemoteResult,
    ) -> Result<(), SendFault> {
        let limit = Duration::from_millis(remote.timeout_ms);
        for _ in 0..greetings {
            let line = within(limit, self.line()).await?;
            if line.starts_with(b"-") && result.refusal.is_none() {
                result.refusal = Some(line);
            }
        }
        for _ in 0..remote.count {
            result.replies.push(within(limit, self.line()).await?);
        }
        Ok(())
    }

    async fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads the next line, without its line end.
    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.unread.iter().take(LONGEST_LINE).position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.unread.drain(..=end).collect();
                line.truncate(line.len() - if line.ends_with(b"\r\n") { 2 } else { 1 });
                return Ok(line);
            }
            if self.unread.len() >= LONGEST_LINE {
                return Ok(self.unread.drain(..LONGEST_LINE).collect());
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; READ_BYTES];
        self.stream.readable().await?;
        match self.stream.try_read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.unread.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn peer_used(before: Duration) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        let stream = TcpStream::connect(address).await.expect("it listens");
        let used = Instant::now().checked_sub(before).expect("the machine has run for longer");
        Peer { stream, unread: Vec::new(), database: UNKNOWN, used }
    }

    #[test]
    fn a_connection_unused_for_ten_seconds_is_closed() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("it can be built");
        runtime.block_on(async {
            let pool = ConnectionPool { peers: RefCell::default(), kept: Arc::default() };
            for (port, seconds) in [(1, 9), (2, 10), (3, 60)] {
                let peer = peer_used(Duration::from_secs(seconds)).await;
                pool.peers.borrow_mut().insert((String::new(), port), peer);
            }
            pool.close_unused();
            assert_eq!(pool.peers.borrow().keys().map(|(_, port)| *port).collect::<Vec<_>>(), [1]);
            assert_eq!(pool.kept.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn the_connection_unused_for_longest_makes_room() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("it can be built");
        runtime.block_on(async {
            let pool = ConnectionPool { peers: RefCell::default(), kept: Arc::default() };
            for port in 1..=MAX_KEPT as u16 {
                let seconds = if port == 7 { 5 } else { 1 };
                let peer = peer_used(Duration::from_secs(seconds)).await;
                pool.peers.borrow_mut().insert((String::new(), port), peer);
            }
            let fresh = peer_used(Duration::ZERO).await;
            pool.return_to_pool((String::new(), 0), fresh);
            let peers = pool.peers.borrow();
            assert_eq!(peers.len(), MAX_KEPT);
            assert!(peers.contains_key(&(String::new(), 0)) && !peers.contains_key(&(String::new(), 7)));
        });
    }
}
