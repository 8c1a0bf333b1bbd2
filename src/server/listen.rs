//! Accepts clients: TCP on every address of `bind`, and a Unix socket.
//!
//! [`super::listeners`] owns the TCP sockets and the tasks that accept from them. Sockets are opened before anything
//! else, so a server that cannot listen does not start; it reports this in Redis's words, because programs that start a
//! server look for them. Accepting never stops and never spins: a client that has already left is skipped, and when the
//! system is out of descriptors the next try is [`EXHAUSTED_PAUSE`] later, while connected clients are served. Clients
//! that get one of the last descriptors receive the error for too many clients, whatever `maxclients` is.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
#[cfg(feature = "page")]
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, warn};

use super::connection::Connection;
use super::contain::keep_running;
use super::loops::{LoopAssignment, Loops};
use super::os_host::{is_last_descriptor, reason};
use super::shared::Shared;
use super::stream::{self, Stream};
use crate::engine::{Engine, Origin, Settings, Transport};

/// The pause after the system could not accept a client, usually because it is out of descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// The number of ports that are tried when the system picks one.
const FREE_PORT_TRIES: usize = 10;

/// The words that the standard library puts before the system's reason why a name could not be resolved.
const LOOKUP_PREFIX: &str = "failed to lookup address information: ";

/// The number of the event loop that accepts clients.
const ACCEPTING: usize = 0;

/// The errors that rejected clients receive, in Redis's words.
const FULL: &str = "-ERR max number of clients reached\r\n";
const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is enabled and no password \
    is set for the default user. In this mode connections are only accepted from the loopback interface. If you want \
    to connect from external computers to Redis you may adopt one of the following solutions: 1) Just disable \
    protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to \
    Redis from the same host the server is running, however MAKE SURE Redis is not publicly accessible from internet \
    if you do so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the \
    protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', and then \
    restarting the server. 3) If you started the server manually just for testing, restart it with the \
    '--protected-mode no' option. 4) Set up an authentication password for the default user. NOTE: You only need to do \
    one of the above things in order for the server to start accepting connections from the outside.\r\n";

/// Opens a TCP socket on each address of `bind`. With port 0 the system picks one, the same for all of them: it picks
/// for the first address, so another one may have the port in use, and then it picks again.
///
/// # Errors
/// When an address cannot be bound and is not marked with `-` as optional, or when no address can be bound.
pub(crate) fn open_tcp(settings: &Settings) -> io::Result<Vec<std::net::TcpListener>> {
    let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    let tries = if settings.port == 0 { FREE_PORT_TRIES } else { 1 };
    let open = || Ok(bind_each(settings, |socket| listen(socket, settings))?.into_iter().map(Into::into).collect());
    for _ in 1..tries {
        match open() {
            Err(error) if is_taken(&error) => {}
            opened => return opened,
        }
    }
    open()
}

/// Binds a socket to each address of `bind` that nobody can connect to: the port is kept from others until
/// [`listen_on`] is called.
///
/// # Errors
/// Those of [`open_tcp`].
pub(crate) fn reserve_tcp(settings: &Settings) -> io::Result<Vec<Socket>> {
    // Where a socket may be bound to an address in use, all that share it have to allow that.
    bind_each(settings, |socket| allow_reuse(socket, false))
}

/// Listens on sockets that [`reserve_tcp`] has bound.
///
/// # Errors
/// The system's.
pub(crate) fn listen_on(sockets: Vec<Socket>, settings: &Settings) -> io::Result<Vec<std::net::TcpListener>> {
    let listen = |socket: Socket| {
        allow_reuse(&socket, true)?;
        listen(&socket, settings)?;
        Ok(socket.into())
    };
    sockets.into_iter().map(listen).collect()
}

fn listen(socket: &Socket, settings: &Settings) -> io::Result<()> {
    socket.listen(i32::try_from(settings.tcp_backlog).unwrap_or(i32::MAX))
}

/// Lets a socket be bound to an address that closed connections still use. Windows would let it take those in use.
fn allow_reuse(socket: &Socket, allows: bool) -> io::Result<()> {
    if cfg!(unix) { socket.set_reuse_address(allows) } else { Ok(()) }
}

/// Binds a socket to each address of `bind`; `prepare` does the rest with it.
fn bind_each(settings: &Settings, prepare: impl Fn(&Socket) -> io::Result<()>) -> io::Result<Vec<Socket>> {
    let mut sockets: Vec<Socket> = Vec::new();
    let mut port = settings.port;
    let mut missing = None;
    for name in &settings.bind {
        let (name, may_be_missing) = name.strip_prefix('-').map_or((name.as_str(), false), |name| (name, true));
        match bind(name, port, settings, &prepare) {
            Ok(socket) => {
                port = socket.local_addr()?.as_socket().map_or(port, |address| address.port());
                sockets.push(socket);
            }
            Err(error) if may_be_missing && is_of_address(&error) => missing = Some(error),
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if sockets.is_empty() => Err(error),
        _ => Ok(sockets),
    }
}

/// Whether binding failed because the machine has no such address (and not because it is in use or forbidden).
fn is_of_address(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

fn bind(name: &str, port: u16, settings: &Settings, prepare: impl Fn(&Socket) -> io::Result<()>) -> io::Result<Socket> {
    let explain = |call: &str, error: io::Error| {
        let reason = reason(&error);
        let reason = reason.strip_prefix(LOOKUP_PREFIX).unwrap_or(&reason);
        let why = format!("Could not create server TCP listening socket {name}:{port}: {call}{reason}");
        io::Error::new(error.kind(), why)
    };
    let address = resolve(name, port).map_err(|error| explain("", error))?;
    let bind = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        allow_reuse(&socket, true)?;
        socket.set_nonblocking(true)?;
        mark(&socket, settings.process.socket_mark);
        socket.bind(&address.into())?;
        prepare(&socket)?;
        Ok(socket)
    };
    bind().map_err(|error| explain("bind: ", error))
}

/// Sets a socket's firewall mark (`socket-mark-id`, Linux only), unless the mark is 0.
fn mark(socket: &Socket, mark: u32) {
    #[cfg(target_os = "linux")]
    if mark != 0
        && let Err(error) = socket.set_mark(mark)
    {
        warn!("socket-mark-id {mark} has no effect: {error}");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, mark);
}

/// The address by which clients of this machine reach a server that listens on `address`: through the loopback
/// interface if that is every address of the machine.
#[cfg(feature = "page")]
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
        _ => address,
    }
}

/// Resolves an entry of `bind`; `*` means all IPv4 addresses, `::*` all IPv6 addresses.
fn resolve(name: &str, port: u16) -> io::Result<SocketAddr> {
    match name {
        "*" => Ok(SocketAddr::from(([0_u8; 4], port))),
        "::*" => Ok(SocketAddr::from(([0_u16; 8], port))),
        _ => match name.parse::<IpAddr>() {
            Ok(address) => Ok(SocketAddr::new(address, port)),
            Err(_) => (name, port).to_socket_addrs()?.next().ok_or_else(|| io::ErrorKind::NotFound.into()),
        },
    }
}

/// Distributes accepted clients over the event loops in use, in turn. They come into one world, the first or the one
/// that has a port of its own.
#[derive(Debug)]
pub(crate) struct Acceptor {
    shared: Arc<Shared>,
    loops: Arc<Loops>,
}

/// A client on its way to the loop that will serve it.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// A client that has just connected, and the world that it comes into.
    New { world: Arc<Shared>, socket: stream::Socket, origin: Origin, assignment: LoopAssignment },
    /// A client that another loop served before.
    Moves { socket: stream::Socket, connection: Box<Connection> },
}

impl Acceptor {
    pub(crate) fn new(shared: Arc<Shared>, loops: Arc<Loops>) -> Acceptor {
        Acceptor { shared, loops }
    }

    fn admit(&self, stream: Stream, mut origin: Origin) {
        let assignment = LoopAssignment::of(Arc::clone(&self.loops), self.loops.count_arrival());
        origin.event_loop = assignment.number();
        match assignment.number() {
            ACCEPTING => serve(&self.shared, stream, origin, assignment),
            other => match stream.leave() {
                Ok(socket) => {
                    let world = Arc::clone(&self.shared);
                    self.loops.send(other, Accepted::New { world, socket, origin, assignment });
                }
                Err(error) => debug!("a client was lost while moving to its event loop: {error}"),
            },
        }
    }
}

/// Serves an accepted client on this thread's loop.
pub(crate) fn serve_accepted(accepted: Accepted) {
    let served = match accepted {
        Accepted::New { world, socket, origin, assignment } => {
            socket.join().map(|stream| serve(&world, stream, origin, assignment))
        }
        Accepted::Moves { socket, connection } => connection.arrive(socket).map(|served| drop(tokio::spawn(served))),
    };
    if let Err(error) = served {
        debug!("a client was lost while moving to its event loop: {error}");
    }
}

fn serve(shared: &Arc<Shared>, stream: Stream, origin: Origin, assignment: LoopAssignment) {
    if !origin.is_local && is_protected(&shared.engine()) {
        shared.engine().stats.connections_refused += 1;
        tokio::spawn(reject(stream, PROTECTED));
        return;
    }
    if is_last_descriptor(origin.descriptor) {
        // `maxclients` counts each world's clients separately, and other servers of this process use descriptors too.
        shared.engine().stats.connections_refused += 1;
        tokio::spawn(reject(stream, FULL));
        return;
    }
    let address = origin.address.clone();
    match shared.connect(origin) {
        Some((session, wake_flags)) => {
            debug!("client {} connected from {address}", session.number);
            drop(tokio::spawn(
                Connection::new(Arc::clone(shared), stream, session, wake_flags, assignment).into_task(),
            ));
        }
        None => drop(tokio::spawn(reject(stream, FULL))),
    }
}

/// Whether a client is on this machine.
pub(super) fn is_local(peer: SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback()
}

/// Whether only clients of this machine are served: there is no password (`protected-mode`).
pub(super) fn is_protected(engine: &Engine) -> bool {
    engine.settings.protected_mode && engine.acl.users.default_user().needs_no_password()
}

/// Sends a rejected client the error `why`, without waiting for a client that does not take the few bytes at once.
async fn reject(mut stream: Stream, why: &'static str) {
    poll_fn(|cx| {
        drop(stream.poll_write(cx, why.as_bytes()));
        Poll::Ready(())
    })
    .await;
}

/// Accepts TCP clients until the listener is closed (the weak pointer can no longer be upgraded). After
/// `max-new-connections-per-cycle` clients in a row, the loop serves its other tasks first.
pub(crate) async fn accept_tcp(listener: Weak<TcpListener>, acceptor: Arc<Acceptor>) {
    keep_running("the listener for TCP clients", || accept_each(&listener, &acceptor)).await;
}

async fn accept_each(listener: &Weak<TcpListener>, acceptor: &Acceptor) {
    let next = |cx: &mut Context<'_>| match listener.upgrade() {
        Some(listener) => listener.poll_accept(cx).map(Some),
        None => Poll::Ready(None),
    };
    let mut at_once = 0;
    while let Some(accepted) = poll_fn(next).await {
        match accepted {
            Ok((stream, peer)) => {
                let (keepalive_s, most_at_once) = {
                    let engine = acceptor.shared.engine();
                    (engine.settings.tcp_keepalive_s, engine.settings.accepted_at_once)
                };
                if let Err(error) = prepare(&stream, keepalive_s) {
                    debug!("a client left before it was accepted: {error}");
                    continue;
                }
                let origin = tcp_origin(&stream, peer);
                #[cfg(test)]
                acceptor.shared.test_panics().panic_if_ordered("listener");
                acceptor.admit(Stream::Tcp(stream), origin);
                at_once += 1;
                if at_once >= most_at_once {
                    at_once = 0;
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => back_off(&error).await,
        }
    }
}

/// Sets TCP_NODELAY, so small replies are sent at once, and keepalive, so a peer that vanished is noticed.
fn prepare(stream: &TcpStream, keepalive_s: u32) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if keepalive_s > 0 {
        let idle = Duration::from_secs(keepalive_s.into());
        let keepalive = TcpKeepalive::new().with_time(idle).with_interval((idle / 3).max(Duration::from_secs(1)));
        #[cfg(not(windows))]
        let keepalive = keepalive.with_retries(3);
        SockRef::from(stream).set_tcp_keepalive(&keepalive)?;
    }
    Ok(())
}

fn tcp_origin(stream: &TcpStream, peer: SocketAddr) -> Origin {
    Origin {
        transport: Transport::Tcp,
        address: peer.to_string(),
        local_address: stream.local_addr().map_or_else(|_| String::new(), |address| address.to_string()),
        descriptor: descriptor_of(stream),
        is_local: is_local(peer),
        ..Origin::default()
    }
}

#[cfg(unix)]
fn descriptor_of(stream: &impl std::os::fd::AsRawFd) -> i64 {
    stream.as_raw_fd().into()
}

#[cfg(windows)]
fn descriptor_of(stream: &impl std::os::windows::io::AsRawSocket) -> i64 {
    i64::try_from(stream.as_raw_socket()).unwrap_or(-1)
}

/// Waits after a failed accept: not at all if only this client is the cause, [`EXHAUSTED_PAUSE`] if the system is.
pub(super) async fn back_off(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | WouldBlock) {
        debug!("a client left before it was accepted: {error}");
    } else {
        warn!("cannot accept clients now: {error}");
        tokio::time::sleep(EXHAUSTED_PAUSE).await;
    }
}

#[cfg(unix)]
pub(crate) use unix::UnixSocketServer;

/// The Unix socket server of a system without Unix sockets: it has no values.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) enum UnixSocketServer {}

#[cfg(not(unix))]
impl UnixSocketServer {
    /// Opens no socket.
    ///
    /// # Errors
    /// When `unixsocket` is set.
    pub(crate) fn open(settings: &Settings) -> io::Result<Option<UnixSocketServer>> {
        if settings.unix_socket.is_empty() {
            return Ok(None);
        }
        Err(io::Error::new(io::ErrorKind::Unsupported, "there are no Unix sockets on this system"))
    }

    pub(crate) fn accept_into(self, _: &Arc<Acceptor>) {
        match self {}
    }
}

#[cfg(unix)]
mod unix {
    //! The Unix socket: its permissions are set before anyone can connect, and its file is removed at the server's end.

    use std::fs;
    use std::io;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use socket2::{Domain, SockAddr, Socket, Type};
    use tokio::net::UnixListener;

    use super::{Acceptor, back_off, descriptor_of};
    use crate::engine::{Origin, Settings, Transport};
    use crate::server::contain::keep_running;
    use crate::server::os_host::reason;
    use crate::server::stream::Stream;

    /// A listening Unix socket.
    #[derive(Debug)]
    pub(crate) struct UnixSocketServer {
        listener: UnixListener,
        file: UnixFile,
    }

    /// The file of a Unix socket, removed when this is dropped.
    #[derive(Debug)]
    pub(crate) struct UnixFile(PathBuf);

    impl UnixSocketServer {
        /// Listens at the path `unixsocket`, on the event loop of this thread; `None` when the setting is empty. A
        /// socket file that a killed server left there is replaced.
        ///
        /// # Errors
        /// When the path cannot be bound.
        pub(crate) fn open(settings: &Settings) -> io::Result<Option<UnixSocketServer>> {
            if settings.unix_socket.is_empty() {
                return Ok(None);
            }
            let path = PathBuf::from(&settings.unix_socket);
            let explain = |error: io::Error| {
                let why = format!("Failed opening Unix socket {}: bind: {}", path.display(), reason(&error));
                io::Error::new(error.kind(), why)
            };
            let listener = listen(&path, settings).map_err(explain)?;
            let file = UnixFile(path);
            Ok(Some(UnixSocketServer { listener: UnixListener::from_std(listener)?, file }))
        }

        /// Accepts clients for as long as the event loop runs. The caller keeps the returned file for that long.
        pub(crate) fn accept_into(self, acceptor: &Arc<Acceptor>) -> UnixFile {
            let (listener, acceptor, path) = (self.listener, Arc::clone(acceptor), self.file.0.display().to_string());
            tokio::spawn(async move {
                keep_running("the listener for Unix clients", || accept_each(&listener, &path, &acceptor)).await;
            });
            self.file
        }
    }

    impl Drop for UnixFile {
        fn drop(&mut self) {
            // Somebody may have removed it already.
            let _ = fs::remove_file(&self.0);
        }
    }

    fn listen(path: &Path, settings: &Settings) -> io::Result<std::os::unix::net::UnixListener> {
        if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            fs::remove_file(path)?;
        }
        let mut socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        let mode = settings.unix_socket_mode;
        if mode != 0 {
            socket = restrict(socket, mode)?;
        }
        socket.bind(&SockAddr::unix(path)?)?;
        if mode != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
        socket.listen(i32::try_from(settings.tcp_backlog).unwrap_or(i32::MAX))?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }

    /// Gives the file that `socket` will be bound to no more than the permissions `mode`, from its first moment.
    ///
    /// Permissions set after the bind alone would come too late, even before the socket listens: the kernel checks them
    /// first and whether it listens last, so a client may be let in by the permissions that the file had at first.
    #[cfg(target_os = "linux")]
    fn restrict(socket: Socket, mode: u32) -> io::Result<Socket> {
        let file = fs::File::from(std::os::fd::OwnedFd::from(socket));
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        Ok(Socket::from(std::os::fd::OwnedFd::from(file)))
    }

    /// Other systems do not let a socket carry permissions before it is bound.
    #[cfg(not(target_os = "linux"))]
    fn restrict(socket: Socket, _mode: u32) -> io::Result<Socket> {
        Ok(socket)
    }

    /// Accepts clients over the Unix socket until the server ends.
    async fn accept_each(listener: &UnixListener, path: &str, acceptor: &Acceptor) {
        let address = format!("{path}:0");
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let origin = Origin {
                        transport: Transport::Unix,
                        address: address.clone(),
                        local_address: address.clone(),
                        descriptor: descriptor_of(&stream),
                        is_local: true,
                        ..Origin::default()
                    };
                    acceptor.admit(Stream::Unix(stream), origin);
                }
                Err(error) => back_off(&error).await,
            }
        }
    }
}
