//! `GET /stream`: what happens on the server, as it happens, as server-sent events.
//!
//! A stream reads the feed of a world ([`crate::engine::state::kit::Feed`]) with a session of its own, by which the
//! engine wakes it. What it has taken is written when the socket has room; until then the feed keeps the last
//! commands, and counts those that it drops. So a browser that does not read costs a little memory.
//!
//! Streams are for users with all rights: they show the commands of all clients, and the replies.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::connections::Busy;
use super::guards::{NO_WORLD, Refusal};
use super::json::{put_bytes, put_cut, put_reply, put_separated};
use super::query::parameters;
use super::responses::{Body, PageResponse, refused_in_json};
use super::{Site, login};
use crate::engine::state::kit::{FeedEvent, Filter, Finding, Shown, ShownReply, Unread, pattern_of};
use crate::engine::{Now, WorldName};
use crate::server::clock::{Clock, monotonic_us};
use crate::server::shared::Shared;

/// The least time between two looks at the feed, so that many commands are taken at a time.
const PAUSE: Duration = Duration::from_millis(10);
/// The time after which the clock and the findings are looked at, and names of changed keys are sent.
const LOOK: Duration = Duration::from_millis(100);
/// A deviation of at most this many microseconds, at normal speed, does not mean that the clock was set.
const TOLERANCE_US: f64 = 20_000.0;
/// Commands are taken in parts of about this many bytes: a slow reader holds only a few parts, and the rest stays in
/// the feed, where readers share it.
const PART_BYTES: usize = 16 << 10;
/// The parts between two pauses: some 20,000 short commands a second. Of more the oldest are dropped; to write them all
/// would take the processor from the commands themselves.
const PARTS_AT_ONCE: usize = 6;
/// The number of polls without an event after which a comment is sent, so that a closed connection is noticed.
const LOOKS_IN_SILENCE: u32 = 150;

const UNKNOWN: Refusal = Refusal {
    status: StatusCode::BAD_REQUEST,
    why: "The parameters are 'world', 'command', 'key', 'client', 'errors' and 'page'.",
};
const NO_COMMAND: Refusal = Refusal { status: StatusCode::BAD_REQUEST, why: "There is no command of that name." };
const RESTRICTED: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    why: "A stream shows what all clients do, so its user must have all rights.",
};
const FULL: Refusal =
    Refusal { status: StatusCode::SERVICE_UNAVAILABLE, why: "There are too many streams, or clients." };

/// The query of a stream.
#[derive(Debug)]
struct Wanted {
    world: WorldName,
    filter: Filter,
    shows_page: bool,
}

impl Wanted {
    fn read(query: &str) -> Result<Wanted, Refusal> {
        let mut wanted = Wanted { world: WorldName::first(), filter: Filter::default(), shows_page: false };
        for (name, value) in parameters(query) {
            match name {
                "world" => wanted.world = WorldName::parse(&value).map_err(|_| NO_WORLD)?,
                "command" => wanted.filter.command = Some(value),
                "key" => wanted.filter.key = Some(value),
                "client" => wanted.filter.client = Some(value),
                "errors" => wanted.filter.errors = value == b"1",
                "page" => wanted.shows_page = value == b"1",
                _ => return Err(UNKNOWN),
            }
        }
        Ok(wanted)
    }
}

impl Site {
    /// Begins a stream.
    pub(super) fn stream(&self, request: &Request<Incoming>, peer: SocketAddr, busy: Busy) -> PageResponse {
        self.begin_stream(request, peer, busy).unwrap_or_else(|refusal| refused_in_json(&refusal))
    }

    fn begin_stream(&self, request: &Request<Incoming>, peer: SocketAddr, busy: Busy) -> Result<PageResponse, Refusal> {
        self.guards.check_token(request.headers())?;
        let wanted = Wanted::read(request.uri().query().unwrap_or_default())?;
        let world = self.shared.worlds().find(&wanted.world).ok_or(NO_WORLD)?;
        let user = world.act(|engine| login::user(engine, request.headers(), peer))?;
        if !user.is_unrestricted() {
            return Err(RESTRICTED);
        }
        // Nothing would come for a name that is mistyped, and the reader would wait.
        if wanted.filter.command.as_ref().is_some_and(|name| world.engine().table.known(name).is_none()) {
            return Err(NO_COMMAND);
        }
        let place = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| FULL)?;
        let client = Client::connect(&world, peer, user, 0, None).ok_or(FULL)?;
        let session = client.session();
        let findings = {
            let mut engine = world.engine();
            engine.observers.kit().feed.join(session, wanted.filter, wanted.shows_page);
            // Those that are known already are not what happens now.
            engine.observers.strict().map_or(0, |strict| strict.findings().len())
        };
        let (sender, channel) = Channel::new(1);
        let stream =
            EventStream { world, client, number: 0, clock: None, findings, keys_us: 0, _place: place, _busy: busy };
        tokio::spawn(stream.run(sender));
        let mut answer = Response::new(Body::Right(channel));
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        // A proxy is not to gather events before it passes them on.
        answer.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(answer)
    }
}

/// A stream that is being written.
struct EventStream {
    world: Arc<Shared>,
    client: Client,
    /// The number of the last event.
    number: u64,
    /// The clock as it was last read.
    clock: Option<Reading>,
    /// The number of findings that were there at the beginning, or were sent.
    findings: usize,
    /// When changed keys were last looked at, in monotonic microseconds.
    keys_us: u64,
    _place: OwnedSemaphorePermit,
    _busy: Busy,
}

/// A reading of a clock, with the moment when it was taken.
#[derive(Clone, Copy, Debug)]
struct Reading {
    shown: Now,
    speed: f64,
    /// The moment in monotonic microseconds.
    taken_us: u64,
}

impl Reading {
    fn of(clock: &Clock) -> Reading {
        Reading { shown: clock.now(), speed: clock.speed(), taken_us: monotonic_us() }
    }

    /// Whether somebody has set the clock in between.
    fn was_moved(&self, later: &Reading) -> bool {
        let passed_us = later.taken_us.saturating_sub(self.taken_us) as f64 * self.speed;
        // A clock may be set back, by which no time has passed.
        let shown_us = later.shown.since_us(self.shown) as f64 - self.shown.since_us(later.shown) as f64;
        let unexpected_us = shown_us - passed_us;
        self.speed != later.speed || unexpected_us.abs() > TOLERANCE_US * self.speed.max(1.0)
    }
}

impl EventStream {
    /// Writes until the reader is gone, or the client is closed.
    async fn run(mut self, mut sender: Sender<Bytes>) {
        let (mut silence, mut parts) = (0, 0);
        loop {
            let mut text = Vec::new();
            self.look_at_clock(&mut text);
            let Some(unread) = self.take_unread() else { return };
            let has_more = unread.has_more;
            self.put_unread(&mut text, unread);
            self.look_at_findings(&mut text);
            silence = if text.is_empty() { silence + 1 } else { 0 };
            if silence >= LOOKS_IN_SILENCE {
                text.extend_from_slice(b":\n\n");
                silence = 0;
            }
            if !text.is_empty() && sender.send_data(text.into()).await.is_err() {
                return;
            }
            parts += 1;
            if has_more && parts < PARTS_AT_ONCE {
                continue;
            }
            parts = 0;
            sleep(PAUSE).await;
            if !has_more && timeout(LOOK, self.client.pushed()).await.is_ok_and(|woken| woken.is_err()) {
                return;
            }
        }
    }

    /// Takes a part of what the feed has; names of changed keys not at each look. `None` when the stream is over: its
    /// user no longer has all rights, or the world has ended.
    fn take_unread(&mut self) -> Option<Unread> {
        let now_us = monotonic_us();
        let takes_keys = u128::from(now_us - self.keys_us) >= LOOK.as_micros();
        if takes_keys {
            self.keys_us = now_us;
        }
        let (session, mut engine) = (self.client.session(), self.world.engine());
        engine.sessions.get(session).filter(|client| client.user.is_unrestricted())?;
        engine.observers.kit.as_mut()?.feed.take(session, PART_BYTES, takes_keys)
    }

    /// Appends how many commands were dropped, the commands after them, and the changed keys.
    fn put_unread(&mut self, out: &mut Vec<u8>, unread: Unread) {
        if unread.dropped > 0 {
            self.put_event(out, "lag", |out, _| put_text(out, &format!("{{\"dropped\":{}}}", unread.dropped)));
        }
        for event in &unread.events {
            self.put_event(out, "command", |out, number| put_command(out, event, number));
        }
        if !unread.keys.is_empty() {
            self.put_event(out, "keys", |out, _| {
                out.push(b'[');
                put_separated(out, unread.keys.iter(), |out, key| put_bytes(out, key));
                if unread.more_keys > 0 {
                    put_text(out, &format!(",{{\"more\":{}}}", unread.more_keys));
                }
                out.push(b']');
            });
        }
    }

    fn look_at_clock(&mut self, out: &mut Vec<u8>) {
        let (clock, reading) = (self.world.clock(), Reading::of(self.world.clock()));
        let is_frozen = clock.is_frozen();
        if self.clock.replace(reading).is_none_or(|before| before.was_moved(&reading)) {
            let (time_ms, speed) = (reading.shown.unix_ms(), reading.speed);
            self.put_event(out, "clock", |out, _| {
                put_text(out, &format!("{{\"time\":{time_ms},\"frozen\":{is_frozen},\"speed\":{speed}}}"));
            });
        }
    }

    fn look_at_findings(&mut self, out: &mut Vec<u8>) {
        let known = self.findings;
        let fresh: Vec<Finding> = {
            let engine = self.world.engine();
            let findings = engine.observers.strict().map_or(&[][..], |strict| strict.findings());
            self.findings = findings.len();
            findings.get(known..).unwrap_or_default().to_vec()
        };
        for finding in &fresh {
            self.put_event(out, "finding", |out, _| put_finding(out, finding));
        }
    }

    /// Appends an event, whose data `put` writes.
    fn put_event(&mut self, out: &mut Vec<u8>, name: &str, put: impl FnOnce(&mut Vec<u8>, u64)) {
        self.number += 1;
        put_text(out, &format!("event: {name}\nid: {}\ndata: ", self.number));
        put(out, self.number);
        out.extend_from_slice(b"\n\n");
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends `,"name":` or, as the first field, `{"name":`.
fn put_field(out: &mut Vec<u8>, before: char, name: &str) {
    put_text(out, &format!("{before}\"{name}\":"));
}

fn put_command(out: &mut Vec<u8>, event: &FeedEvent, number: u64) {
    let (time_ms, database, elapsed_us) = (event.moment.unix_ms(), event.database, event.elapsed_us);
    put_text(out, &format!("{{\"id\":{number},\"time\":{time_ms},\"database\":{database},\"duration\":{elapsed_us}"));
    put_text(out, &format!(",\"client\":\"{}\",\"source\":\"{}\"", event.client, event.source.name()));
    for (name, value) in [("address", event.address.as_bytes()), ("name", &event.client_name), ("user", &event.user)] {
        put_field(out, ',', name);
        put_bytes(out, value);
    }
    put_field(out, ',', "command");
    out.push(b'[');
    put_separated(out, event.words.iter(), put_shown);
    if event.more_words > 0 {
        put_text(out, &format!(",{{\"more\":{}}}", event.more_words));
    }
    out.push(b']');
    put_field(out, ',', "keys");
    out.push(b'[');
    let keys = || event.keys.iter().filter_map(|place| event.words.get(*place));
    put_separated(out, keys(), put_shown);
    out.push(b']');
    put_field(out, ',', "patterns");
    out.push(b'[');
    put_separated(out, keys(), |out, key| put_bytes(out, &pattern_of(&key.bytes)));
    out.push(b']');
    put_field(out, ',', "reply");
    match &event.reply {
        ShownReply::Whole(_) => match event.reply.frame() {
            Some(frame) => put_reply(out, &frame),
            None => put_text(out, "null"),
        },
        ShownReply::Text(shown) => put_shown(out, shown),
        ShownReply::Elements(count) => put_text(out, &format!("{{\"elements\":{count}}}")),
        ShownReply::Lines(lines) => {
            put_field(out, '{', "lines");
            put_bytes(out, lines.as_bytes());
            out.push(b'}');
        }
    }
    out.push(b'}');
}

/// Appends bytes, or the first of many and their number.
fn put_shown(out: &mut Vec<u8>, shown: &Shown) {
    if shown.length == shown.bytes.len() {
        return put_bytes(out, &shown.bytes);
    }
    put_cut(out, &shown.bytes, shown.length);
}

fn put_finding(out: &mut Vec<u8>, finding: &Finding) {
    let client = finding.client.to_string();
    put_text(out, &format!("{{\"time\":{}", finding.time_ms));
    let fields = [
        ("rule", finding.rule.name().as_bytes()),
        ("level", finding.level.name().as_bytes()),
        ("text", finding.text.as_bytes()),
        ("command", finding.command.as_bytes()),
        ("client", client.as_bytes()),
        ("name", &finding.client_name),
    ];
    for (name, value) in fields {
        put_field(out, ',', name);
        put_bytes(out, value);
    }
    out.push(b'}');
}
