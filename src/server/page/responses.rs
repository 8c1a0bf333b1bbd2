//! Answers over HTTP, and the headers that all of them have.

use http_body_util::channel::Channel;
use http_body_util::{Either, Full};
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::guards::Refusal;
use super::json;

/// The type of what is text.
const PLAIN: &str = "text/plain; charset=utf-8";
/// The type of what is JSON.
const JSON: &str = "application/json";

/// The default headers of every answer: only for this site, not cached, and without any scripts.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A body that is complete, or one that is written bit by bit.
pub(super) type Body = Either<Full<Bytes>, Channel<Bytes>>;
pub(super) type PageResponse = Response<Body>;

/// A body that is complete.
pub(super) fn full_body(bytes: impl Into<Bytes>) -> Body {
    Either::Left(Full::new(bytes.into()))
}

/// An answer of that type.
pub(super) fn of_type(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> PageResponse {
    let mut answer = Response::new(full_body(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub(super) fn text(status: StatusCode, text: &'static str) -> PageResponse {
    of_type(status, PLAIN, text)
}

pub(super) fn json(status: StatusCode, body: impl Into<Bytes>) -> PageResponse {
    of_type(status, JSON, body)
}

/// A refusal for a person or a scraper.
pub(super) fn refused(refusal: &Refusal) -> PageResponse {
    text(refusal.status, refusal.why)
}

/// A refusal for a script of the page: `{"error":"..."}`.
pub(super) fn refused_in_json(refusal: &Refusal) -> PageResponse {
    json(refusal.status, json::error(refusal.why.trim_end()))
}

/// The answer 405, with the methods that are allowed.
pub(super) fn only(methods: &'static str) -> PageResponse {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "This method is not allowed here.\n");
    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    answer
}

/// The answer with the headers that every answer has.
pub(super) fn complete(mut answer: PageResponse) -> PageResponse {
    for (name, value) in HEADERS {
        answer.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}
