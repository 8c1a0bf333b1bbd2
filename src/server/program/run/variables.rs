//! The variables that a command of `dunlin run` gets: where its server is, by the names that programs and frameworks
//! look for.
//!
//! They replace what the environment has, and names for which the server has nothing are removed: a variable that is
//! left over would lead a test to a server that others use.

use std::process;

use crate::server::program::launch::Addresses;

/// The value of a variable.
enum Value {
    Url,
    /// The URL of another database of the server, for what must not meet the data of [`Value::Url`].
    UrlOfDatabase(u8),
    Host,
    Port,
    HostAndPort,
    Password,
    Socket,
    ProcessId,
    /// The URL of the page (`page-port`).
    Page,
    /// What the server never has.
    Nothing,
}

/// A name, and its value; without one, the name is to be removed from the environment.
pub(super) type Variable = (String, Option<String>);

/// The names, by those who look for them.
const USUAL: &[(&str, Value)] = &[
    // Most programs, Rails and Laravel among them. Laravel would take a password from a file where there is none here.
    ("REDIS_URL", Value::Url),
    ("REDIS_HOST", Value::Host),
    ("REDIS_PORT", Value::Port),
    ("REDIS_PASSWORD", Value::Password),
    ("REDIS_SOCKET", Value::Socket),
    ("REDIS_USERNAME", Value::Nothing),
    ("REDIS_TLS_URL", Value::Nothing),
    // Programs that use this server for their tests, and start none then.
    ("DUNLIN_URL", Value::Url),
    ("DUNLIN_PID", Value::ProcessId),
    ("DUNLIN_PAGE", Value::Page),
    // Spring Boot 3 and later, and Spring Boot 2.
    ("SPRING_DATA_REDIS_URL", Value::Url),
    ("SPRING_DATA_REDIS_HOST", Value::Host),
    ("SPRING_DATA_REDIS_PORT", Value::Port),
    ("SPRING_REDIS_URL", Value::Url),
    ("SPRING_REDIS_HOST", Value::Host),
    ("SPRING_REDIS_PORT", Value::Port),
    // Quarkus and Micronaut.
    ("QUARKUS_REDIS_HOSTS", Value::Url),
    ("REDIS_URI", Value::Url),
    // Celery, RQ, and settings of Django and Flask.
    ("CELERY_BROKER_URL", Value::Url),
    ("CELERY_RESULT_BACKEND", Value::UrlOfDatabase(1)),
    ("RQ_REDIS_URL", Value::Url),
    ("CACHE_URL", Value::Url),
    // .NET.
    ("ConnectionStrings__Redis", Value::HostAndPort),
];

/// The variables and their values: the usual ones and `names`, or only `names`, which get the URL.
pub(super) fn of(addresses: &Addresses, names: &[String], only_names: bool) -> Vec<Variable> {
    let usual = if only_names { &[] } else { USUAL };
    let usual = usual.iter().map(|(name, value)| ((*name).to_owned(), text(value, addresses)));
    usual.chain(names.iter().map(|name| (name.clone(), Some(addresses.url())))).collect()
}

/// The text of a value; `None` for what the server does not have.
fn text(value: &Value, addresses: &Addresses) -> Option<String> {
    match value {
        Value::Url => Some(addresses.url()),
        Value::UrlOfDatabase(number) => Some(format!("{}/{number}", addresses.url())),
        Value::Host => addresses.tcp.map(|address| address.ip().to_string()),
        Value::Port => addresses.tcp.map(|address| address.port().to_string()),
        Value::HostAndPort => {
            let password = addresses.password();
            let login = if password.is_empty() { String::new() } else { format!(",password={password}") };
            addresses.tcp.map(|address| format!("{address}{login}"))
        }
        Value::Password => Some(addresses.password().to_owned()),
        Value::Socket => addresses.socket.as_ref().map(|path| path.display().to_string()),
        Value::ProcessId => Some(process::id().to_string()),
        Value::Page => addresses.page_url(),
        Value::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(password: &str, socket: &str, name: &str) -> Option<String> {
        let addresses = Addresses::of(&["127.0.0.1:7000".parse().expect("it is an address")], socket, password, None);
        let variables = of(&addresses, &["CACHE".to_owned()], false);
        variables.into_iter().find(|(known, _)| known == name).and_then(|(_, value)| value)
    }

    #[test]
    fn the_documentation_has_each_name() {
        let page = include_str!("../../../../docs/run.md");
        let missing: Vec<&str> =
            USUAL.iter().map(|(name, _)| *name).filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn each_name_has_what_its_readers_expect() {
        for (name, expected) in [
            ("REDIS_URL", "redis://127.0.0.1:7000"),
            ("REDIS_HOST", "127.0.0.1"),
            ("SPRING_DATA_REDIS_PORT", "7000"),
            ("REDIS_PASSWORD", ""),
            ("CELERY_RESULT_BACKEND", "redis://127.0.0.1:7000/1"),
            ("ConnectionStrings__Redis", "127.0.0.1:7000"),
            ("CACHE", "redis://127.0.0.1:7000"),
        ] {
            assert_eq!(value("", "", name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(value("", "", "REDIS_SOCKET"), None);
        assert_eq!(value("", "/s", "REDIS_SOCKET").as_deref(), Some("/s"));
        assert_eq!(value("a/b", "", "REDIS_URL").as_deref(), Some("redis://:a%2Fb@127.0.0.1:7000"));
        assert_eq!(value("a/b", "", "REDIS_PASSWORD").as_deref(), Some("a/b"));
    }
}
