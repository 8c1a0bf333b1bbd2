//! The addresses of a server as its clients use them.

use std::net::SocketAddr;
use std::path::{self, PathBuf};

use crate::server::listen::reachable;
use crate::server::url::escaped;

/// Where a server can be reached.
#[derive(Clone, Debug)]
pub(in super::super) struct Addresses {
    /// The address of TCP clients; `None` without TCP.
    pub(in super::super) tcp: Option<SocketAddr>,
    /// The full path of the Unix socket; `None` without one.
    pub(in super::super) socket: Option<PathBuf>,
    /// Where a browser opens the page, with its token; `None` without one.
    pub(in super::super) page: Option<String>,
    password: String,
}

impl Addresses {
    /// The addresses of a server that listens on `bound`. The first one counts; clients reach a server that listens on
    /// every address of the machine through the loopback interface.
    pub(in super::super) fn of(
        bound: &[SocketAddr],
        unix_socket: &str,
        password: &str,
        page: Option<String>,
    ) -> Addresses {
        let socket = Some(unix_socket).filter(|path| !path.is_empty());
        Addresses {
            tcp: bound.first().copied().map(reachable),
            // Without a working directory the path stays relative.
            socket: socket.map(|path| path::absolute(path).unwrap_or_else(|_| path.into())),
            page,
            password: password.to_owned(),
        }
    }

    /// Where programs find the page: without its token, so that they can append a path.
    pub(in super::super) fn page_url(&self) -> Option<String> {
        let link = self.page.as_deref()?;
        Some(link.split('#').next().unwrap_or(link).to_owned())
    }

    /// The password that clients need, empty for none.
    pub(in super::super) fn password(&self) -> &str {
        &self.password
    }

    /// The URL for clients, with the password if there is one: that of TCP, or of the Unix socket without TCP.
    pub(in super::super) fn url(&self) -> String {
        let login = if self.password.is_empty() { String::new() } else { format!(":{}@", escaped(&self.password)) };
        match (self.tcp, &self.socket) {
            (Some(address), _) => format!("redis://{login}{address}"),
            (None, Some(path)) => format!("unix://{login}{}", path.display()),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(bound: &[&str], unix_socket: &str, password: &str) -> Addresses {
        let bound: Vec<SocketAddr> = bound.iter().map(|text| text.parse().expect("it is an address")).collect();
        Addresses::of(&bound, unix_socket, password, None)
    }

    #[test]
    fn the_url_has_the_first_address_and_the_password() {
        assert_eq!(addresses(&["127.0.0.1:7000", "[::1]:7000"], "/s", "").url(), "redis://127.0.0.1:7000");
        assert_eq!(addresses(&["[::1]:7000"], "", "a/b").url(), "redis://:a%2Fb@[::1]:7000");
        assert_eq!(addresses(&[], "/run/a.sock", "").url(), "unix:///run/a.sock");
        assert_eq!(addresses(&[], "/run/a.sock", "pw").url(), "unix://:pw@/run/a.sock");
    }

    #[test]
    fn a_server_on_every_address_is_reached_through_the_loopback_interface() {
        assert_eq!(addresses(&["0.0.0.0:1"], "", "").url(), "redis://127.0.0.1:1");
        assert_eq!(addresses(&["[::]:1"], "", "").url(), "redis://[::1]:1");
        assert_eq!(addresses(&["192.0.2.1:1"], "", "").url(), "redis://192.0.2.1:1");
    }
}
