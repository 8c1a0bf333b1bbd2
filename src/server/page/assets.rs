//! The files of the page, which are part of the program.

use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::answers::{Answer, whole};
use crate::value::hashing::Key;

/// What the page may load and do: what comes from this port, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";

/// A file of the page.
#[derive(Debug)]
pub(super) struct Asset {
    pub(super) content_type: &'static str,
    pub(super) plain: &'static [u8],
    /// Its contents compressed by gzip; `None` if that saves little.
    pub(super) gzip: Option<&'static [u8]>,
}

/// The files by their paths.
static ASSETS: [(&str, Asset); 1] =
    [("/", Asset { content_type: HTML, plain: include_bytes!("assets/index.html"), gzip: None })];

/// The file of that path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|(known, _)| *known == path).map(|(_, asset)| asset)
}

impl Asset {
    /// A text that is another one when the file is. It is weak, as the file is sent in two forms.
    fn etag(&self) -> String {
        format!("W/\"{:016x}\"", Key::of(0).hash(self.plain))
    }

    /// The answer to a request with these headers: the file, or that it is what the browser has already.
    pub(super) fn answer(&'static self, headers: &HeaderMap) -> Answer {
        let etag = self.etag();
        let is_known = listed(headers, header::IF_NONE_MATCH).any(|known| known == etag || known == "*");
        let takes_gzip = listed(headers, header::ACCEPT_ENCODING).any(|coding| coding.eq_ignore_ascii_case("gzip"));
        let gzip = self.gzip.filter(|_| takes_gzip);
        let body = if is_known { &[] } else { gzip.unwrap_or(self.plain) };
        let mut answer = Response::new(whole(Bytes::from_static(body)));
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        // A newer program may have other files, so a browser asks each time.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        headers.extend(HeaderValue::try_from(etag).ok().map(|etag| (header::ETAG, etag)));
        if is_known {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
        } else if gzip.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
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

    static FILE: Asset = Asset { content_type: "text/css", plain: b"plain", gzip: Some(b"zipped") };

    fn answer(name: header::HeaderName, value: &str) -> Answer {
        let value = HeaderValue::try_from(value).expect("it is a value");
        FILE.answer(&HeaderMap::from_iter([(name, value)]))
    }

    #[test]
    fn a_file_is_compressed_only_for_those_who_take_that() {
        for (accepted, expected) in [("gzip, deflate, br", Some("gzip")), ("br,gzip", Some("gzip")), ("br", None)] {
            let answer = answer(header::ACCEPT_ENCODING, accepted);
            let coding = answer.headers().get(header::CONTENT_ENCODING).and_then(|coding| coding.to_str().ok());
            assert_eq!(coding, expected, "{accepted}");
        }
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let tag = FILE.etag();
        for (known, status) in
            [(tag.clone(), 304), (format!("W/\"0\", {tag}"), 304), ("*".to_owned(), 304), ("W/\"0\"".to_owned(), 200)]
        {
            assert_eq!(answer(header::IF_NONE_MATCH, &known).status(), status, "{known}");
        }
    }
}
