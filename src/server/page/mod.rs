//! What the program serves over HTTP (`page-port`): the metrics for Prometheus and whether the server is ready.
//!
//! Requests are answered on a thread of their own with its own event loop, so no client of the server waits for them
//! longer than for the engine's lock. A page that is off costs nothing: there is no thread and no socket.
//!
//! Every website that a developer opens can send requests to this port, and so can every name that resolves to this
//! machine. So a request is refused before anything else happens unless it passes the [`guards`]. Nothing that is
//! served changes data.
//!
//! Limits: [`MOST_CONNECTIONS`] at a time, [`HEAD_BYTES`] for the head of a request, [`PATIENCE`] for its arrival.
//! Bodies are never read.

mod guards;
mod login;

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use super::contain::contain;
use super::listen;
use super::shared::Shared;
use crate::commands::info;
use crate::engine::{Settings, WorldName};
use guards::Guards;

/// The most connections at a time; further ones wait.
const MOST_CONNECTIONS: usize = 64;
/// The most bytes of the head of a request.
const HEAD_BYTES: usize = 16 << 10;
/// The time for the head of a request to arrive, and for which a connection is kept without one.
const PATIENCE: Duration = Duration::from_secs(10);

const PLAIN: &str = "text/plain; charset=utf-8";
/// The type of Prometheus's text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is served over HTTP by a running thread.
#[derive(Debug)]
pub(super) struct Page {
    address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Page {
    /// Starts to serve what the settings say, until the server is asked to end; `None` if that is nothing. `has_loaded`
    /// is set when the server has the data that it starts with.
    ///
    /// # Errors
    /// An address cannot be listened on, or the system has no thread.
    pub(super) fn start(shared: &Arc<Shared>, has_loaded: &Arc<AtomicBool>) -> io::Result<Option<Page>> {
        let settings = shared.engine().settings.clone();
        let page = settings.process.page.clone();
        let Some(port) = page.port else { return Ok(None) };
        let sockets = listen::open_tcp(&Settings { port, bind: page.bind, ..settings })?;
        let address = sockets.first().ok_or_else(|| io::Error::other("'page-bind' has no address"))?.local_addr()?;
        let guards = Guards::new(address.port(), &page.hosts);
        let site = Arc::new(Site { shared: Arc::clone(shared), guards, has_loaded: Arc::clone(has_loaded) });
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let serve = move || serve(&runtime, sockets, &site);
        let thread = thread::Builder::new().name("dunlin-page".to_owned()).spawn(serve)?;
        Ok(Some(Page { address, thread }))
    }

    /// Where it can be reached.
    pub(super) fn url(&self) -> String {
        format!("http://{}/", listen::reachable(self.address))
    }

    /// Waits for its end, which comes with that of the server.
    pub(super) fn join(self) {
        // Nothing depends on how it ended.
        drop(self.thread.join());
    }
}

/// Accepts connections until the server is asked to end.
fn serve(runtime: &Runtime, sockets: Vec<TcpListener>, site: &Arc<Site>) {
    runtime.block_on(async {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        for socket in sockets {
            match tokio::net::TcpListener::from_std(socket) {
                Ok(socket) => drop(tokio::spawn(accept_from(socket, Arc::clone(&places), Arc::clone(site)))),
                Err(error) => warn!("the page cannot listen: {error}"),
            }
        }
        site.shared.stopped().await;
    });
}

/// Accepts connections from one socket, each when there is a place for it.
async fn accept_from(socket: tokio::net::TcpListener, places: Arc<Semaphore>, site: Arc<Site>) {
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match socket.accept().await {
            Ok((stream, peer)) => {
                let site = Arc::clone(&site);
                tokio::spawn(async move {
                    site.converse(stream, peer).await;
                    drop(place);
                });
            }
            Err(error) => listen::back_off(&error).await,
        }
    }
}

/// What is served.
struct Site {
    shared: Arc<Shared>,
    guards: Guards,
    has_loaded: Arc<AtomicBool>,
}

type Answer = Response<Full<Bytes>>;

impl Site {
    /// Answers the requests of a connection until it ends.
    async fn converse(&self, stream: TcpStream, peer: SocketAddr) {
        let answer = service_fn(|request| ready(Ok::<_, Infallible>(self.answer(&request, peer))));
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), answer)
            .await;
        if let Err(error) = served {
            debug!("a connection to the page has ended: {error}");
        }
    }

    fn answer(&self, request: &Request<Incoming>, peer: SocketAddr) -> Answer {
        let answered = contain("a request of the page", || {
            let checked = self.guards.check(request.headers(), peer, &self.shared.engine());
            checked.map_or_else(|refusal| text(refusal.status, refusal.why), |()| self.routed(request))
        });
        let mut answer =
            answered.unwrap_or_else(|| text(StatusCode::INTERNAL_SERVER_ERROR, "It failed; see the log.\n"));
        for (name, value) in guards::ANSWER_HEADERS {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer
    }

    fn routed(&self, request: &Request<Incoming>) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are allowed.\n");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match request.uri().path() {
            "/" => text(StatusCode::OK, concat!("dunlin ", env!("CARGO_PKG_VERSION"), "\n/metrics\n/ready\n")),
            "/metrics" => self.metrics(request),
            "/ready" => self.ready(),
            _ => text(StatusCode::NOT_FOUND, "There is no such page.\n"),
        }
    }

    /// The metrics of a world, the first one if none is named.
    fn metrics(&self, request: &Request<Incoming>) -> Answer {
        let name = request.uri().query().and_then(|query| query.strip_prefix("world="));
        let world = match name.map(|name| WorldName::parse(name.as_bytes())) {
            None => Some(Arc::clone(&self.shared)),
            Some(name) => name.ok().and_then(|name| self.shared.worlds().find(&name)),
        };
        let Some(world) = world else { return text(StatusCode::NOT_FOUND, "There is no such world.\n") };
        let checked = login::check(&world.engine(), request.headers());
        match checked {
            Ok(()) => typed(StatusCode::OK, EXPOSITION, world.act(info::metrics)),
            Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
                let mut answer = text(refusal.status, refusal.why);
                answer
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"dunlin\""));
                answer
            }
            Err(refusal) => text(refusal.status, refusal.why),
        }
    }

    /// Whether clients are served: not while data are being loaded.
    fn ready(&self) -> Answer {
        let is_ready = self.has_loaded.load(Ordering::Acquire) && self.shared.engine().persistence.loading.is_none();
        if is_ready { text(StatusCode::OK, "ready\n") } else { text(StatusCode::SERVICE_UNAVAILABLE, "loading\n") }
    }
}

fn text(status: StatusCode, text: &'static str) -> Answer {
    typed(status, PLAIN, text)
}

fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
