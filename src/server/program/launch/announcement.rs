//! The announcement of a server (`announce yes`): one line of JSON, the only one that it writes to the standard output.
//!
//! It reports that the server is ready, with its addresses, or why it could not start. So a launcher reads exactly one
//! line, and nobody has to drain the output after that. The log goes to the standard error meanwhile.

use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Addresses;
use crate::engine::REDIS_VERSION;

/// Writes the announcement, once.
#[derive(Debug, Default)]
pub(in super::super) struct Announcer {
    /// Whether there is to be an announcement, and there was none yet.
    is_due: AtomicBool,
}

impl Announcer {
    /// Makes the server announce itself, if `is_wanted`.
    pub(in super::super) fn want(&self, is_wanted: bool) {
        self.is_due.store(is_wanted, Ordering::Release);
    }

    /// Whether the announcement is not written yet; nothing else may go to the standard output before it.
    pub(in super::super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Acquire)
    }

    /// Announces a server that is ready.
    pub(in super::super) fn ready(&self, addresses: &Addresses) {
        self.announce(|| ready_line(addresses));
    }

    /// Announces that the server could not start, unless it has announced that it is ready.
    pub(in super::super) fn failed(&self, why: &str) {
        self.announce(|| format!("{{\"error\":{}}}\n", quoted(why.trim())));
    }

    fn announce(&self, line: impl FnOnce() -> String) {
        if self.is_due.swap(false, Ordering::AcqRel) {
            let mut output = io::stdout().lock();
            // Nobody may read it any more; what the server ends with decides whether it goes on.
            let _ = output.write_all(line().as_bytes()).and_then(|()| output.flush());
        }
    }
}

fn ready_line(addresses: &Addresses) -> String {
    let (version, id) = (env!("CARGO_PKG_VERSION"), process::id());
    let or_null = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
    let host = or_null(addresses.tcp.map(|address| quoted(&address.ip().to_string())));
    let port = or_null(addresses.tcp.map(|address| address.port().to_string()));
    let socket = or_null(addresses.socket.as_ref().map(|path| quoted(&path.display().to_string())));
    let url = quoted(&addresses.url());
    let page = or_null(addresses.page.as_deref().map(quoted));
    format!(
        "{{\"dunlin\":\"{version}\",\"redis\":\"{REDIS_VERSION}\",\"pid\":{id},\"host\":{host},\"port\":{port},\
         \"socket\":{socket},\"url\":{url},\"page\":{page}}}\n"
    )
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    let mut json = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\n' => json.push_str("\\n"),
            character if character.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => json.push(character),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_json_strings() {
        assert_eq!(quoted("a \"b\" \\ c"), r#""a \"b\" \\ c""#);
        assert_eq!(quoted("two\nlines\t\u{7f}é"), "\"two\\nlines\\u0009\\u007fé\"");
    }

    #[test]
    fn an_announcement_has_every_field_and_null_for_what_a_server_does_not_have() {
        let only_socket = ready_line(&Addresses::of(&[], "/run/a \"b\"", "", None));
        let fields = r#""host":null,"port":null,"socket":"/run/a \"b\"","url":"unix:///run/a \"b\"","page":null}"#;
        assert!(only_socket.ends_with(&format!("{fields}\n")), "{only_socket}");
        let bound = ["127.0.0.1:7000".parse().expect("it is an address")];
        let only_tcp = ready_line(&Addresses::of(&bound, "", "", None));
        let (version, id) = (env!("CARGO_PKG_VERSION"), process::id());
        assert_eq!(
            only_tcp,
            format!(
                "{{\"dunlin\":\"{version}\",\"redis\":\"8.0.6\",\"pid\":{id},\"host\":\"127.0.0.1\",\"port\":7000,\
                 \"socket\":null,\"url\":\"redis://127.0.0.1:7000\",\"page\":null}}\n"
            )
        );
    }
}
