//! `POST /command`: runs a batch of commands as one client, and answers their replies as JSON.
//!
//! The client exists for the batch: what a command sets about it, such as MULTI, ends with the batch.
//!
//! A batch may ask for replies whose long strings are cut, so that its reader sees the beginning of any value.
//!
//! Limits: [`BODY_BYTES`] for the commands, [`REPLY_BYTES`] for a reply, [`ANSWER_BYTES`] for an answer, which is built
//! as a whole, and [`UNREAD_BYTES`] for all answers together that their readers have not taken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::client::Client;
use super::guards::{NO_WORLD, Refusal};
use super::json::{Batch, put_array, put_reply};
use super::responses::{PageResponse, json, refused_in_json};
use super::{Site, login};
use crate::resp::{Frame, ReplyBuffer};

/// The most bytes of commands at a time.
const BODY_BYTES: usize = 1 << 20;
/// The most bytes of a reply, as RESP.
const REPLY_BYTES: usize = 16 << 20;
/// The most bytes of an answer, after which no command of the batch runs.
const ANSWER_BYTES: usize = 64 << 20;
/// The bytes of answers that may be unread at a time; a longer one, only while there is no other.
const UNREAD_BYTES: usize = 32 << 20;
/// The unit in which memory for answers is taken.
const UNIT_BYTES: usize = 64 << 10;

const TOO_LONG: Refusal = Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, why: "The body may have 1 MiB at most." };
const TOO_SLOW: Refusal = Refusal { status: StatusCode::REQUEST_TIMEOUT, why: "The body did not arrive." };
const NO_DATABASE: Refusal = Refusal { status: StatusCode::BAD_REQUEST, why: "There is no such database." };
const FULL: Refusal = Refusal { status: StatusCode::SERVICE_UNAVAILABLE, why: "There are too many clients." };
const UNREAD: Refusal =
    Refusal { status: StatusCode::SERVICE_UNAVAILABLE, why: "Other answers are too long, and have not been read yet." };

/// The reply in place of one that is too long. The command has run.
const REPLY_TOO_LONG: &[u8] = b"ERR the reply is too long for one answer; ask for a part of it";

/// The reply to a command that was not run, as the replies before it are too long.
const REPLIES_TOO_LONG: &[u8] = b"ERR the replies before this one are too long for one batch";
/// The reply to a command that was not run, as the client was closed before.
const CLOSED: &[u8] = b"ERR the client was closed";

/// An answer that is not sent yet, with the permits for its bytes among all that may be unread.
struct UnreadAnswer {
    bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for UnreadAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The permits for the bytes of answers that may be unread, one for each unit.
pub(super) fn unread_permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(UNREAD_BYTES / UNIT_BYTES))
}

impl Site {
    /// Answers a batch of commands, whose head has passed the guards.
    pub(super) async fn command(&self, request: Request<Incoming>, peer: SocketAddr) -> PageResponse {
        let (head, body) = request.into_parts();
        match self.run_batch(&head.headers, body, peer).await {
            Ok(replies) => json(StatusCode::OK, replies),
            Err(refusal) => refused_in_json(&refusal),
        }
    }

    async fn run_batch(&self, headers: &HeaderMap, body: Incoming, peer: SocketAddr) -> Result<Bytes, Refusal> {
        self.guards.check_command(headers)?;
        let body = read(body, self.request_timeout).await?;
        let why = |why| Refusal { status: StatusCode::BAD_REQUEST, why };
        let batch = Batch::read(&body).map_err(why)?;
        let world = self.shared.worlds().find(&batch.world).ok_or(NO_WORLD)?;
        let user = world.act(|engine| login::user(engine, headers, peer))?;
        if batch.database >= world.engine().databases.count() {
            return Err(NO_DATABASE);
        }
        let mut client = Client::connect(&world, peer, Arc::clone(&user), batch.database, batch.cut).ok_or(FULL)?;
        self.with_permits(run(&mut client, &batch).await)
    }

    /// Takes the permits for the bytes of an answer, which come back when it is sent.
    fn with_permits(&self, mut bytes: Vec<u8>) -> Result<Bytes, Refusal> {
        bytes.shrink_to_fit();
        let units = bytes.len().min(UNREAD_BYTES) / UNIT_BYTES;
        let permit = Arc::clone(&self.unread_permits).try_acquire_many_owned(units as u32).map_err(|_| UNREAD)?;
        Ok(Bytes::from_owner(UnreadAnswer { bytes, _permit: permit }))
    }
}

/// The body of a request.
async fn read(body: Incoming, longest: Duration) -> Result<Bytes, Refusal> {
    let body = timeout(longest, Limited::new(body, BODY_BYTES).collect()).await.map_err(|_| TOO_SLOW)?;
    let why = |error: Box<dyn std::error::Error + Send + Sync>| match error.is::<LengthLimitError>() {
        true => TOO_LONG,
        false => TOO_SLOW,
    };
    body.map(|body| body.to_bytes()).map_err(why)
}

/// Runs the commands of a batch, and returns the body of the answer.
async fn run(client: &mut Client, batch: &Batch) -> Vec<u8> {
    let (mut out, mut is_open, mut is_full) = (b"{\"replies\":[".to_vec(), true, false);
    let mut output = ReplyBuffer::default();
    for (place, request) in batch.commands.iter().filter_map(|command| command.iter().next()).enumerate() {
        if place > 0 {
            out.push(b',');
        }
        if !is_open || is_full {
            put_reply(&mut out, &Frame::Error(if is_open { REPLIES_TOO_LONG } else { CLOSED }));
            continue;
        }
        output.clear();
        is_open = client.run(request, &mut output).await.unwrap_or(false);
        let reply = output.flatten(0);
        let (before, is_short) = (out.len(), reply.len() <= REPLY_BYTES);
        if is_short {
            put_replies(&mut out, reply);
        }
        // As JSON, bytes that are no text take up to six times as much.
        is_full = out.len() > ANSWER_BYTES;
        if !is_short || is_full {
            out.truncate(before);
            put_reply(&mut out, &Frame::Error(REPLY_TOO_LONG));
        }
        // The commands of other requests get their turn.
        yield_now().await;
    }
    out.extend_from_slice(b"]}");
    out
}

/// Appends the reply among what the server has sent for a command. Messages around it are dropped; several replies,
/// and pushes in place of one, are an array.
fn put_replies(out: &mut Vec<u8>, mut sent: &[u8]) {
    let mut frames = Vec::new();
    while let Ok(Some((frame, length))) = Frame::decode(sent) {
        frames.push(frame);
        sent = &sent[length..];
    }
    if !sent.is_empty() {
        frames.push(Frame::Error(b"ERR the reply nests too deep"));
    }
    let is_push = |frame: &Frame<'_>| matches!(frame, Frame::Push(_));
    if !frames.iter().all(is_push) {
        frames.retain(|frame| !is_push(frame));
    }
    match &frames[..] {
        [] => put_reply(out, &Frame::Null),
        [frame] => put_reply(out, frame),
        frames => put_array(out, frames),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_one_reply_whatever_comes_with_it() {
        for (sent, expected) in [
            ("", "null"),
            ("+OK\r\n", r#"{"status":"OK"}"#),
            (">1\r\n+a\r\n+OK\r\n>1\r\n+b\r\n", r#"{"status":"OK"}"#),
            (">1\r\n+a\r\n", r#"{"push":[{"status":"a"}]}"#),
            (":1\r\n:2\r\n", r#"[{"integer":"1"},{"integer":"2"}]"#),
        ] {
            let mut out = Vec::new();
            put_replies(&mut out, sent.as_bytes());
            assert_eq!(String::from_utf8_lossy(&out), expected, "{sent}");
        }
    }

    #[test]
    fn a_reply_that_nests_too_deep_is_an_error() {
        let mut out = Vec::new();
        put_replies(&mut out, "*1\r\n".repeat(5000).as_bytes());
        assert_eq!(String::from_utf8_lossy(&out), r#"{"error":"ERR the reply nests too deep"}"#);
    }
}
