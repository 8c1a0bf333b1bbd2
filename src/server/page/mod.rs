//! The HTTP port of a server (`page-port`): a page for the browser, commands for it to run, the metrics for
//! Prometheus, and whether the server is ready.
//!
//! Requests are answered on a thread of their own with its own event loop, so no client of the server waits for them
//! longer than for the engine's lock. A page that is off costs nothing: there is no thread and no socket.
//!
//! Every website that a developer opens can send requests to this port, and so can every name that resolves to this
//! machine. So a request is refused before anything else happens unless it passes the [`guards`]. Only `/command`
//! changes data, and it needs a token.
//!
//! Limits: [`MAX_CONNECTIONS`] at a time ([`connections`]), [`HEAD_BYTES`] for the head of a request, ten seconds for
//! its arrival and for that of a body, and a time for which a reader may leave unread what is sent
//! ([`write_timeout`]), so that it holds its place no longer. Bodies are read only by `/command`, which has limits of
//! its own.

mod assets;
mod client;
mod command;
mod connections;
mod guards;
mod json;
mod login;
mod query;
mod responses;
mod stream;
mod write_timeout;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::MutexGuard;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tracing::{debug, warn};

use super::contain::contain_async;
use super::first_of::first_of;
use super::listen;
use super::shared::Shared;
use crate::commands::info::{self, Surroundings};
use crate::engine::exec::measures::Readings;
use crate::engine::{Engine, Settings, WorldName};
use crate::value::hexadecimal;
use connections::{Activity, Connections};
use guards::{Guards, Refusal};
use responses::{PageResponse, complete, of_type, only, refused, refused_in_json, text};
use write_timeout::WriteTimeoutStream;

/// The most connections at a time; for a further one, the longest idle one ends.
const MAX_CONNECTIONS: usize = 128;
/// The most streams at a time, so that connections are left for everything else.
const MAX_STREAMS: usize = 64;
/// The most bytes of the head of a request.
const HEAD_BYTES: usize = 16 << 10;

const ONLY_WORLD: Refusal = Refusal { status: StatusCode::BAD_REQUEST, why: "The only parameter is 'world'.\n" };

/// The type of Prometheus's text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The running thread that serves HTTP.
#[derive(Debug)]
pub(crate) struct Page {
    address: SocketAddr,
    token: Option<String>,
    thread: JoinHandle<()>,
}

impl Page {
    /// Starts the HTTP port of the settings, until the server is asked to end; `None` if `page-port` is not set.
    /// `has_loaded` is set once the server has loaded its data.
    ///
    /// # Errors
    /// An address cannot be listened on, or the system has no thread.
    pub(crate) fn start(shared: &Arc<Shared>, has_loaded: &Arc<AtomicBool>) -> io::Result<Option<Page>> {
        let settings = shared.engine().settings.clone();
        let page = settings.process.page.clone();
        let Some(port) = page.port else { return Ok(None) };
        let sockets = listen::open_tcp(&Settings { port, bind: page.bind, ..settings })?;
        let address = sockets.first().ok_or_else(|| io::Error::other("'page-bind' has no address"))?.local_addr()?;
        let token = if page.has_token { Some(token(&shared.engine())?) } else { None };
        let guards = Guards::new(address.port(), &page.hosts, token.clone());
        let (shared, has_loaded) = (Arc::clone(shared), Arc::clone(has_loaded));
        let site = Arc::new(Site {
            shared,
            guards,
            has_loaded,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            unread_permits: command::unread_permits(),
            request_timeout: page.request_timeout,
        });
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let serve = move || serve(&runtime, sockets, &site);
        let thread = thread::Builder::new().name("dunlin-page".to_owned()).spawn(serve)?;
        Ok(Some(Page { address, token, thread }))
    }

    /// Where it can be reached.
    pub(super) fn url(&self) -> String {
        format!("http://{}/", listen::reachable(self.address))
    }

    /// Where a browser opens it: with the token, if there is one.
    pub(crate) fn link(&self) -> String {
        let token = self.token.as_ref().map(|token| format!("#token={token}"));
        self.url() + &token.unwrap_or_default()
    }

    /// Waits for its end, which comes with that of the server.
    pub(crate) fn join(self) {
        // Nothing depends on how it ended.
        drop(self.thread.join());
    }
}

/// Accepts connections until the server is asked to end.
fn serve(runtime: &Runtime, sockets: Vec<TcpListener>, site: &Arc<Site>) {
    runtime.block_on(async {
        let connections = Arc::new(Connections::new(MAX_CONNECTIONS));
        for socket in sockets {
            match tokio::net::TcpListener::from_std(socket) {
                Ok(socket) => drop(tokio::spawn(accept_from(socket, Arc::clone(&connections), Arc::clone(site)))),
                Err(error) => warn!("the page cannot listen: {error}"),
            }
        }
        site.shared.stopped().await;
    });
}

/// Accepts connections from one socket, the next when there is a place for the one before.
async fn accept_from(socket: tokio::net::TcpListener, connections: Arc<Connections>, site: Arc<Site>) {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                let (site, place) = (Arc::clone(&site), connections.place().await);
                tokio::spawn(async move {
                    let conversation = pin!(site.converse(stream, peer, &place.activity));
                    first_of(conversation, pin!(place.activity.ended())).await;
                });
            }
            Err(error) => listen::back_off(&error).await,
        }
    }
}

/// The state behind the answers.
struct Site {
    shared: Arc<Shared>,
    guards: Guards,
    has_loaded: Arc<AtomicBool>,
    /// The places for streams.
    streams: Arc<Semaphore>,
    /// The permits for the bytes of answers to commands that may be unread.
    unread_permits: Arc<Semaphore>,
    /// The time for the head of a request to arrive, for which a connection is kept without one, and that for a body.
    request_timeout: Duration,
}

impl Site {
    /// Answers the requests of a connection until it ends.
    async fn converse(&self, stream: TcpStream, peer: SocketAddr, activity: &Arc<Activity>) {
        let answer = service_fn(|request| async move {
            let _busy = activity.keep();
            Ok::<_, Infallible>(self.answer(request, peer, activity).await)
        });
        let stream = WriteTimeoutStream::new(stream, Arc::clone(activity));
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.request_timeout)
            .max_buf_size(HEAD_BYTES)
            .half_close(true)
            .serve_connection(TokioIo::new(stream), answer)
            .await;
        if let Err(error) = served {
            debug!("a connection to the page has ended: {error}");
        }
    }

    async fn answer(&self, request: Request<Incoming>, peer: SocketAddr, activity: &Arc<Activity>) -> PageResponse {
        let is_api = matches!(request.uri().path(), "/command" | "/stream");
        let answered = contain_async("a request of the page", async {
            let checked = self.guards.check(request.headers(), peer, &self.shared.engine());
            match checked {
                Ok(()) => self.routed(request, peer, activity).await,
                Err(refusal) if is_api => refused_in_json(&refusal),
                Err(refusal) => refused(&refusal),
            }
        });
        let failed = || text(StatusCode::INTERNAL_SERVER_ERROR, "It failed; see the log.\n");
        complete(answered.await.unwrap_or_else(failed))
    }

    async fn routed(&self, request: Request<Incoming>, peer: SocketAddr, activity: &Arc<Activity>) -> PageResponse {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match request.uri().path() {
            "/command" if *request.method() == Method::POST => self.command(request, peer).await,
            "/command" => only("POST"),
            _ if !is_read => only("GET, HEAD"),
            "/stream" if *request.method() == Method::GET => self.stream(&request, peer, activity.keep()),
            "/metrics" => self.metrics(&request, peer).await,
            "/ready" => self.ready(),
            path => match assets::find(path) {
                Some(asset) => asset.answer(request.headers()),
                None => text(StatusCode::NOT_FOUND, "There is no such page.\n"),
            },
        }
    }

    /// The metrics of a world, the first one if none is named.
    async fn metrics(&self, request: &Request<Incoming>, peer: SocketAddr) -> PageResponse {
        let world = match self.world_of(request.uri().query().unwrap_or_default()) {
            Ok(world) => world,
            Err(refusal) => return refused(&refusal),
        };
        let checked = world.act(|engine| login::check(engine, request.headers(), peer));
        match checked {
            Ok(()) => of_type(StatusCode::OK, EXPOSITION, metrics(&world).await),
            Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
                let mut answer = refused(&refusal);
                answer
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"dunlin\""));
                answer
            }
            Err(refusal) => refused(&refusal),
        }
    }

    /// The world that the query names, the first one if it names none.
    fn world_of(&self, query: &str) -> Result<Arc<Shared>, Refusal> {
        let mut name = WorldName::first();
        for (parameter, value) in query::parameters(query) {
            if parameter != "world" {
                return Err(ONLY_WORLD);
            }
            name = WorldName::parse(&value).map_err(|_| guards::NO_WORLD)?;
        }
        self.shared.worlds().find(&name).ok_or(guards::NO_WORLD)
    }

    /// Whether clients are served: not while data are being loaded.
    fn ready(&self) -> PageResponse {
        let is_ready = self.has_loaded.load(Ordering::Acquire) && self.shared.engine().persistence.loading.is_none();
        if is_ready { text(StatusCode::OK, "ready\n") } else { text(StatusCode::SERVICE_UNAVAILABLE, "loading\n") }
    }
}

/// The metrics of a world. The keys of measures are read before the rest, a few at a time.
async fn metrics(world: &Shared) -> String {
    let mut readings = world.act(Readings::begin);
    while step(world, &mut readings) {
        yield_now().await;
    }
    let clock_offset_us = world.clock().offset_us();
    let surroundings = Surroundings { worlds: world.worlds().all().len(), clock_offset_us, readings };
    world.act(|engine| info::metrics(engine, &surroundings))
}

/// Reads some more keys of measures; false when all were read. Clients that wait meanwhile come before the next step.
fn step(world: &Shared, readings: &mut Readings) -> bool {
    let mut engine = world.engine();
    let has_more = readings.step(&mut engine);
    MutexGuard::unlock_fair(engine);
    has_more
}

/// A token of 128 bits that nobody can guess.
fn token(engine: &Engine) -> io::Result<String> {
    let secret = engine.host.secret().ok_or_else(|| io::Error::other("there are no random bytes for 'page-token'"))?;
    Ok(hexadecimal::text(&secret[..16]))
}
