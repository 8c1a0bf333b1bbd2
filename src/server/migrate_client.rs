//! The MIGRATE client: a thread that sends requests to other servers.
//!
//! MIGRATE waits for the result and holds the engine's lock, so no other client is served meanwhile, as in Redis. The
//! wait always ends: each step has a timeout, and a server that is shutting down abandons it. The client has a thread
//! of its own because the waiting thread may be an event loop, which cannot await anything within a request.
//!
//! A connection is kept for further requests to the same address, until it was unused for [`KEPT`]. The other side may
//! have closed it meanwhile, so a request that got no reply at all is tried once more on a new connection.
//!
//! The thread starts with the first request and ends with the server. A node of the same cluster in this
//! process gets its requests without it ([`super::nodes`]).
//!
//! Source: the connections that Redis 8.0.6 makes, keeps and closes for MIGRATE.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc as answers;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::contain::contain_async;
use super::processors;
use super::race::first_of;
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
    inbox: OnceLock<mpsc::UnboundedSender<Order>>,
    kept: Arc<AtomicUsize>,
    phase: watch::Receiver<Phase>,
    processors: String,
}

/// A request, and the channel for its result.
type Order = (RemoteRequest, answers::Sender<RemoteResult>);

impl MigrateClient {
    /// A client that gives up once `phase` says that the server ends. Its thread runs on the processors of the list
    /// `processors`.
    pub(crate) fn new(phase: watch::Receiver<Phase>, processors: &str) -> MigrateClient {
        MigrateClient { inbox: OnceLock::new(), kept: Arc::default(), phase, processors: processors.to_owned() }
    }

    /// The number of connections that are kept now.
    pub(crate) fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Sends a request, and waits for its result.
    pub(crate) fn send(&self, remote: RemoteRequest) -> RemoteResult {
        let (sender, report) = answers::channel();
        let inbox = self.inbox.get_or_init(|| self.start());
        if inbox.send((remote, sender)).is_err() {
            return RemoteResult::of(RemoteFault::Connecting);
        }
        // No result means that the thread has stopped, as the server ends.
        report.recv().unwrap_or_else(|_| RemoteResult::of(RemoteFault::Reading))
    }

    fn start(&self) -> mpsc::UnboundedSender<Order> {
        let (inbox, orders) = mpsc::unbounded_channel();
        let (kept, mut phase, processors) = (Arc::clone(&self.kept), self.phase.clone(), self.processors.clone());
        let run = move || {
            processors::pin_background_thread(&processors);
            let Ok(runtime) = Builder::new_current_thread().enable_io().enable_time().build() else { return };
            let mut pool = ConnectionPool { peers: HashMap::new(), kept };
            runtime.block_on(async {
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
    peers: HashMap<(String, u16), Peer>,
    kept: Arc<AtomicUsize>,
}

impl ConnectionPool {
    async fn serve(&mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        loop {
            let end = self.peers.values().map(|peer| peer.used + KEPT).min();
            let order = match end {
                None => Ok(orders.recv().await),
                Some(end) => timeout_at(end, orders.recv()).await,
            };
            let (remote, report) = match order {
                Ok(Some(order)) => order,
                Ok(None) => return,
                Err(_) => {
                    self.close_unused();
                    continue;
                }
            };
            // The send fails when the caller no longer waits; it needs no result then.
            let carried = contain_async("the MIGRATE client", self.carry(&remote)).await;
            drop(report.send(carried.unwrap_or_else(|| RemoteResult::of(RemoteFault::Reading))));
        }
    }

    /// Closes the connections that were unused for [`KEPT`].
    fn close_unused(&mut self) {
        self.peers.retain(|_, peer| peer.used.elapsed() < KEPT);
        self.count();
    }

    fn count(&self) {
        self.kept.store(self.peers.len(), Ordering::Relaxed);
    }

    async fn carry(&mut self, remote: &RemoteRequest) -> RemoteResult {
        let place = (remote.host.clone(), remote.port);
        let mut has_begun_anew = false;
        loop {
            let known = self.peers.remove(&place);
            self.count();
            let connected = match known {
                Some(peer) => Ok(peer),
                None => Peer::connect(remote).await,
            };
            let mut peer = match connected {
                Ok(peer) => peer,
                Err(fault) => return RemoteResult::of(fault),
            };
            let (report, trouble) = peer.carry(remote).await;
            match trouble {
                None => {
                    self.return_to_pool(place, peer);
                    return report;
                }
                Some(SendFault::Lost) if report.replies.is_empty() && !has_begun_anew => has_begun_anew = true,
                Some(_) => return report,
            }
        }
    }

    fn return_to_pool(&mut self, place: (String, u16), peer: Peer) {
        if self.peers.len() >= MAX_KEPT
            && let Some(longest) = self.peers.iter().min_by_key(|(_, peer)| peer.used).map(|(place, _)| place.clone())
        {
            self.peers.remove(&longest);
        }
        self.peers.insert(place, Peer { used: Instant::now(), ..peer });
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
        let stream = within(limit, connect).await.map_err(|trouble| match trouble {
            SendFault::TimedOut => RemoteFault::Connecting,
            SendFault::Lost => RemoteFault::Writing,
        })?;
        Ok(Peer { stream, unread: Vec::new(), database: UNKNOWN, used: Instant::now() })
    }

    async fn carry(&mut self, remote: &RemoteRequest) -> (RemoteResult, Option<SendFault>) {
        let mut report = RemoteResult::default();
        let choice = self.database != remote.database;
        let greeting = if choice { remote.greeting() } else { remote.login.clone() };
        let limit = Duration::from_millis(remote.timeout_ms);
        for part in [&greeting, &remote.requests].into_iter().flat_map(|bytes| bytes.chunks(PART_BYTES)) {
            if let Err(trouble) = within(limit, self.send(part)).await {
                report.fault = Some(RemoteFault::Writing);
                return (report, Some(trouble));
            }
        }
        let greetings = usize::from(!remote.login.is_empty()) + usize::from(choice);
        let trouble = self.read_replies(greetings, remote, &mut report).await.err();
        report.fault = trouble.map(|_| RemoteFault::Reading);
        let is_well = report.refusal.is_none() && !report.replies.iter().any(|line| line.starts_with(b"-"));
        self.database = if is_well { remote.database } else { UNKNOWN };
        (report, trouble)
    }

    async fn read_replies(
        &mut self,
        greetings: usize,
        remote: &RemoteRequest,
        report: &mut RemoteResult,
    ) -> Result<(), SendFault> {
        let limit = Duration::from_millis(remote.timeout_ms);
        for _ in 0..greetings {
            let line = within(limit, self.line()).await?;
            if line.starts_with(b"-") && report.refusal.is_none() {
                report.refusal = Some(line);
            }
        }
        for _ in 0..remote.count {
            report.replies.push(within(limit, self.line()).await?);
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
            let mut pool = ConnectionPool { peers: HashMap::new(), kept: Arc::default() };
            for (port, seconds) in [(1, 9), (2, 10), (3, 60)] {
                pool.peers.insert((String::new(), port), peer_used(Duration::from_secs(seconds)).await);
            }
            pool.close_unused();
            assert_eq!(pool.peers.keys().map(|(_, port)| *port).collect::<Vec<_>>(), [1]);
            assert_eq!(pool.kept.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn the_connection_unused_for_longest_makes_room() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("it can be built");
        runtime.block_on(async {
            let mut pool = ConnectionPool { peers: HashMap::new(), kept: Arc::default() };
            for port in 1..=MAX_KEPT as u16 {
                let seconds = if port == 7 { 5 } else { 1 };
                pool.peers.insert((String::new(), port), peer_used(Duration::from_secs(seconds)).await);
            }
            let fresh = peer_used(Duration::ZERO).await;
            pool.return_to_pool((String::new(), 0), fresh);
            assert_eq!(pool.peers.len(), MAX_KEPT);
            assert!(pool.peers.contains_key(&(String::new(), 0)) && !pool.peers.contains_key(&(String::new(), 7)));
        });
    }
}
