//! The files of the page, which are part of the program.

use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::responses::{PageResponse, full_body};
use crate::value::hashing::Key;

/// The content security policy: the page loads from this port, and from nowhere else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the page. It is sent uncompressed: for a browser on the same machine that is faster, and the program
/// contains each file only once. `tests/page` limits the sizes after gzip all the same.
#[derive(Debug)]
pub(super) struct Asset {
    pub(super) content_type: &'static str,
    pub(super) bytes: &'static [u8],
}

/// A module of the page, at its path below `assets`.
macro_rules! script {
    ($name:literal) => {
        (
            concat!("/assets/", $name),
            Asset { content_type: JAVASCRIPT, bytes: include_bytes!(concat!("assets/", $name)) },
        )
    };
}

/// The files by their paths.
static ASSETS: &[(&str, Asset)] = &[
    ("/", Asset { content_type: HTML, bytes: include_bytes!("assets/index.html") }),
    ("/assets/style.css", Asset { content_type: CSS, bytes: include_bytes!("assets/style.css") }),
    script!("vendor/preact.js"),
    script!("app.js"),
    script!("collections.js"),
    script!("console.js"),
    script!("decode.js"),
    script!("feed.js"),
    script!("keys.js"),
    script!("launchers.js"),
    script!("link.js"),
    script!("load.js"),
    script!("pacing.js"),
    script!("parts.js"),
    script!("rules.js"),
    script!("scrolling.js"),
    script!("state.js"),
    script!("streams.js"),
    script!("time.js"),
    script!("value.js"),
    script!("vectors.js"),
    script!("words.js"),
];

/// The file of that path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|(known, _)| *known == path).map(|(_, asset)| asset)
}

impl Asset {
    /// The entity tag: a hash of the contents.
    fn etag(&self) -> String {
        format!("\"{:016x}\"", Key::of(0).hash(self.bytes))
    }

    /// The answer to a request with these headers: the file, or 304 if the browser has this version.
    pub(super) fn answer(&'static self, headers: &HeaderMap) -> PageResponse {
        let etag = self.etag();
        let is_known = listed(headers, header::IF_NONE_MATCH).any(|known| known == etag || known == "*");
        let body = if is_known { &[] } else { self.bytes };
        let mut answer = Response::new(full_body(Bytes::from_static(body)));
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        // A newer program may have other files, so a browser asks each time.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.extend(HeaderValue::try_from(etag).ok().map(|etag| (header::ETAG, etag)));
        if is_known {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
        }
        answer
    }
}

/// The words of all headers of a name, which are lists.
fn listed(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    static FILE: Asset = Asset { content_type: "text/css", bytes: b"text" };

    fn answer(name: header::HeaderName, value: &str) -> PageResponse {
        let value = HeaderValue::try_from(value).expect("it is a value");
        FILE.answer(&HeaderMap::from_iter([(name, value)]))
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let tag = FILE.etag();
        for (known, status) in
            [(tag.clone(), 304), (format!("\"0\", {tag}"), 304), ("*".to_owned(), 304), ("\"0\"".to_owned(), 200)]
        {
            assert_eq!(answer(header::IF_NONE_MATCH, &known).status(), status, "{known}");
        }
    }
}
