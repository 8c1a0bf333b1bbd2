//! Checks on a request to the page, before it is answered.
//!
//! - `Host` is a name of the loopback interface with this port, or one of `page-host`. So a foreign name that resolves
//!   to this machine (DNS rebinding) gets nothing.
//! - `Origin` and `Sec-Fetch-Site`, where a browser sends them, are of this site. So no other site can send a request
//!   that does anything.
//! - A command has the token of the URL that the server prints (`page-token`), in a header of its own, and a body of a
//!   type that no form can send. So a browser asks first whether another site may send it (CORS preflight), which is
//!   refused.
//! - The client is on this machine, or users have to log in, or `protected-mode` is off: the rule of Redis.

use std::net::SocketAddr;

use hyper::StatusCode;
use hyper::header::{self, HeaderMap};

use crate::engine::Engine;
use crate::server::listen;

/// The names by which the page may be asked for.
#[derive(Debug)]
pub(super) struct Guards {
    /// Names with this port.
    own: Vec<String>,
    /// The names of `page-host`, which may come with any port: another one may be published in its place.
    named: Vec<String>,
    /// The token that a command has to bring; `None` if it needs none.
    token: Option<String>,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) why: &'static str,
}

const OTHER_HOST: Refusal = Refusal {
    status: StatusCode::MISDIRECTED_REQUEST,
    why: "This name is not one of this server's: name it in the parameter 'page-host'.\n",
};
const OTHER_SITE: Refusal =
    Refusal { status: StatusCode::FORBIDDEN, why: "Requests of other sites are not answered.\n" };
const PROTECTED: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    why: "The server has no password, so only this machine is served: see the parameter 'protected-mode'.\n",
};

const OTHER_TYPE: Refusal =
    Refusal { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, why: "The body must be of the type application/json." };
const NO_TOKEN: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    why: "The header 'X-Dunlin' must have the token of the address that the server prints.",
};

/// The world that is named does not exist.
pub(super) const NO_WORLD: Refusal = Refusal { status: StatusCode::NOT_FOUND, why: "There is no such world.\n" };

impl Guards {
    /// The guards of a page on a port, which has these names beside its own, and this token.
    pub(super) fn new(port: u16, hosts: &[String], token: Option<String>) -> Guards {
        let with_port = |name: &str| format!("{name}:{port}");
        Guards {
            own: ["localhost", "127.0.0.1", "[::1]"].map(with_port).to_vec(),
            named: hosts.iter().map(|name| name.to_ascii_lowercase()).collect(),
            token,
        }
    }

    /// Checks a request of a client.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn check(&self, headers: &HeaderMap, peer: SocketAddr, engine: &Engine) -> Result<(), Refusal> {
        self.check_site(headers)?;
        if !listen::is_local(peer) && listen::is_protected(engine) { Err(PROTECTED) } else { Ok(()) }
    }

    /// Checks the head of a request that has a token.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let given = headers.get("x-dunlin").ok_or(NO_TOKEN)?.as_bytes();
        let is_right = self.token.as_ref().is_none_or(|token| are_equal(token.as_bytes(), given));
        if is_right { Ok(()) } else { Err(NO_TOKEN) }
    }

    /// Checks the head of a request that has commands.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn check_command(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        self.check_token(headers)?;
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(OTHER_TYPE) }
    }

    fn check_site(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if hosts.next().is_some() || !self.has_host(host) {
            return Err(OTHER_HOST);
        }
        let is_own_origin =
            |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host));
        let mut origins = headers.get_all(header::ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default());
        let mut sites = headers.get_all("sec-fetch-site").iter().map(|site| site.to_str().unwrap_or_default());
        let is_own = origins.all(is_own_origin) && sites.all(|site| matches!(site, "same-origin" | "none"));
        if is_own { Ok(()) } else { Err(OTHER_SITE) }
    }

    fn has_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let name = name.map_or(&*host, |(name, _)| name);
        self.own.contains(&host) || self.named.iter().any(|named| named == name || *named == host)
    }
}

/// Compares two texts in constant time: the time does not show where they differ.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |found, (one, other)| found | (one ^ other));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::host::NoHost;
    use crate::engine::{Now, Settings};
    use crate::server::run::usual_table;

    fn check(host: &str, more: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, host.parse().expect("it is a value"));
        for (name, value) in more {
            headers.append(*name, value.parse().expect("it is a value"));
        }
        Guards::new(8000, &["metrics.test".to_owned(), "10.0.0.5".to_owned()], None).check_site(&headers)
    }

    #[test]
    fn only_names_of_this_server_are_answered() {
        for host in [
            "localhost:8000",
            "LOCALHOST:8000",
            "127.0.0.1:8000",
            "[::1]:8000",
            "metrics.test",
            "metrics.test:80",
            "10.0.0.5:9",
        ] {
            assert_eq!(check(host, &[]), Ok(()), "{host}");
        }
        for host in [
            "",
            "localhost",
            "localhost:80",
            "localhost.:8000",
            "0.0.0.0:8000",
            "127.0.0.2:8000",
            "evil.test:8000",
            "metrics.test.:8000",
            "metrics.test:x",
            "localhost:8000@evil.test",
            "[::1]",
        ] {
            assert_eq!(check(host, &[]), Err(OTHER_HOST), "{host}");
        }
        assert_eq!(check("localhost:8000", &[("host", "localhost:8000")]), Err(OTHER_HOST), "two names");
        assert_eq!(Guards::new(8000, &[], None).check_site(&HeaderMap::new()), Err(OTHER_HOST), "no name");
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let host = "localhost:8000";
        for own in [
            &[("origin", "http://localhost:8000")][..],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
        ] {
            assert_eq!(check(host, own), Ok(()), "{own:?}");
        }
        for other in [
            &[("origin", "http://evil.test")][..],
            &[("origin", "null")],
            &[("origin", "http://localhost:80")],
            &[("origin", "http://127.0.0.1:8000")],
            &[("origin", "https://localhost:8000")],
            &[("origin", "http://localhost:8000"), ("origin", "http://evil.test")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(check(host, other), Err(OTHER_SITE), "{other:?}");
        }
    }

    #[test]
    fn only_this_machine_is_served_where_nobody_logs_in_unless_that_is_allowed() {
        let check = |protected_mode: bool, peer: &str| {
            let settings = Settings { protected_mode, ..Settings::default() };
            let host = Box::new(NoHost::advancing(0));
            let engine = Engine::new(usual_table(false).clone(), settings, 0, Now::default(), host);
            let headers = HeaderMap::from_iter([(header::HOST, "localhost:8000".parse().expect("it is a value"))]);
            Guards::new(8000, &[], None).check(&headers, peer.parse().expect("it is an address"), &engine)
        };
        for own in ["127.0.0.1:5", "[::1]:5", "[::ffff:127.0.0.1]:5"] {
            assert_eq!(check(true, own), Ok(()), "{own}");
        }
        for other in ["10.0.0.5:5", "[2001:db8::1]:5", "[::ffff:10.0.0.5]:5"] {
            assert_eq!(check(true, other), Err(PROTECTED), "{other}");
            assert_eq!(check(false, other), Ok(()), "{other}");
        }
    }

    #[test]
    fn a_command_has_the_token_and_is_json() {
        let check = |token: Option<&str>, headers: &[(&'static str, &str)]| {
            let value = |value: &str| value.parse().expect("it is a value");
            let headers = headers.iter().map(|(name, text)| (name.parse().expect("it is a name"), value(text)));
            Guards::new(8000, &[], token.map(str::to_owned)).check_command(&HeaderMap::from_iter(headers))
        };
        let json = ("content-type", "Application/JSON; charset=utf-8");
        assert_eq!(check(Some("abc"), &[json, ("x-dunlin", "abc")]), Ok(()));
        for wrong in ["", "ab", "abd", "abcd", "ABC"] {
            assert_eq!(check(Some("abc"), &[json, ("x-dunlin", wrong)]), Err(NO_TOKEN), "{wrong}");
        }
        assert_eq!(check(Some("abc"), &[json]), Err(NO_TOKEN));
        assert_eq!(check(None, &[json, ("x-dunlin", "")]), Ok(()));
        assert_eq!(check(None, &[json]), Err(NO_TOKEN), "a browser has to ask first");
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
            assert_eq!(check(None, &[("content-type", kind), ("x-dunlin", "")]), Err(OTHER_TYPE), "{kind}");
        }
    }
}
