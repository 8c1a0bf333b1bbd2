//! `dunlin ping`: whether a server answers PING, as an exit status. It is for health checks, in images without a shell
//! and another client too, and for scripts that wait for a server (`--wait`).

use std::env;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use super::polling::{seconds, sleep_before_next_poll};
use crate::server::clock::monotonic_us;
use crate::server::os_host::reason;
use crate::server::url::unescaped;

/// The text that `dunlin ping --help` prints.
const HELP: &str = "\
dunlin ping: exits with 0 when the server answers PONG, and with 1 when it does not

Usage: dunlin ping [option ...] [url]

  -h host         the host, 127.0.0.1 by default
  -p port         the port, 6379 by default
  -s socket       the path of a Unix socket, in the place of host and port
  -a password     the password; by default that in the variable REDISCLI_AUTH, if it is set
  --user name     the user; without one, the password is that of the default user
  -u url          all of these: redis://user:password@host:port or unix://user:password@/path; -u can be left out
  --wait seconds  tries again for that long; otherwise it tries once
  --help          prints this help
";

/// The port of a server on its defaults.
const DEFAULT_PORT: u16 = 6379;
/// The time that a try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two tries.
const RETRY: Duration = Duration::from_millis(20);
/// The longest line of a reply that is read.
const LONGEST_LINE: u64 = 1024;

/// The options of a call.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    host: String,
    port: u16,
    /// The path of a Unix socket, empty for TCP.
    socket: String,
    /// The user, empty for the default one.
    user: String,
    password: Option<String>,
    wait: Duration,
}

/// Runs `dunlin ping` with the words behind its name; returns the exit code.
pub(super) fn run(words: &[Vec<u8>]) -> ExitCode {
    if words == [b"--help"] {
        return super::print(HELP);
    }
    let answer = options(words, env::var("REDISCLI_AUTH").ok()).and_then(|options| ask_until(&options));
    match answer {
        Ok(()) => super::print("PONG\n"),
        Err(why) => {
            // When the standard error is closed, the exit code alone has to say it.
            let _ = writeln!(io::stderr(), "dunlin ping: {why}");
            ExitCode::FAILURE
        }
    }
}

fn options(words: &[Vec<u8>], password: Option<String>) -> Result<Options, String> {
    let mut options = Options {
        host: "127.0.0.1".to_owned(),
        port: DEFAULT_PORT,
        socket: String::new(),
        user: String::new(),
        password,
        wait: Duration::ZERO,
    };
    let mut words = words.iter().map(|word| shown(word));
    while let Some(word) = words.next() {
        let (name, text) = if word.contains("://") {
            ("-u".to_owned(), word)
        } else if !word.starts_with('-') {
            return Err(no_url(&word));
        } else {
            let value = words.next();
            let value = value.ok_or_else(|| format!("'{word}' is not an option with a value; see dunlin ping --help"));
            (word, value?)
        };
        let invalid = || format!("'{text}' is not a value for {name}");
        match name.as_bytes() {
            b"-h" => options.host = text,
            b"-p" => options.port = text.parse().map_err(|_| invalid())?,
            b"-s" => options.socket = text,
            b"-a" => options.password = Some(text),
            b"--user" => options.user = text,
            b"-u" => options.set_url(&text).ok_or_else(invalid)?,
            b"--wait" => options.wait = seconds(&text).ok_or_else(invalid)?,
            _ => return Err(format!("unknown option '{name}'; see dunlin ping --help")),
        }
    }
    Ok(options)
}

/// Says that a word that stands alone is no URL, and which one may be meant.
fn no_url(word: &str) -> String {
    let is_port = word.parse::<u16>().is_ok();
    let url = if is_port { format!("redis://127.0.0.1:{word}") } else { format!("redis://{word}") };
    format!("'{word}' is no URL, as {url} is; see dunlin ping --help")
}

fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// Asks until the server answers, or the time to wait is over.
fn ask_until(options: &Options) -> Result<(), String> {
    let end_us = monotonic_us() + u64::try_from(options.wait.as_micros()).unwrap_or(u64::MAX / 2);
    loop {
        let left = Duration::from_micros(end_us.saturating_sub(monotonic_us()));
        let why = match ask(options, if options.wait.is_zero() { TRY_TIMEOUT } else { left.clamp(RETRY, TRY_TIMEOUT) })
        {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        if left <= RETRY {
            return Err(format!("{}: {why}", options.place()));
        }
        sleep_before_next_poll(RETRY);
    }
}

impl Options {
    /// Takes the place, and the user and password if there are some, from a URL. What stands alone before the @ is a
    /// password, as redis-cli has it. `None` if it is no URL of a server.
    fn set_url(&mut self, url: &str) -> Option<()> {
        let (scheme, rest) = url.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (login, place) =
            authority.rsplit_once('@').map_or((None, authority), |(login, place)| (Some(login), place));
        match scheme {
            "redis" => {
                let port = place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
                let (host, port) =
                    port.map_or(Some((place, DEFAULT_PORT)), |(host, port)| Some((host, port.parse().ok()?)))?;
                let host = host.trim_start_matches('[').trim_end_matches(']');
                self.host = if host.is_empty() { "127.0.0.1".to_owned() } else { host.to_owned() };
                self.port = port;
                self.socket.clear();
            }
            "unix" if place.is_empty() && path.starts_with('/') => {
                self.socket = unescaped(path.split('?').next()?)?;
            }
            _ => return None,
        }
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or(("", login));
            (self.user, self.password) = (unescaped(user)?, Some(unescaped(password)?));
        }
        Some(())
    }

    /// Where the server is to be.
    fn place(&self) -> String {
        if self.socket.is_empty() { format!("{}:{}", self.host, self.port) } else { self.socket.clone() }
    }
}

/// Asks once.
fn ask(options: &Options, limit: Duration) -> Result<(), String> {
    let told = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => reason(&error),
    };
    if options.socket.is_empty() {
        let stream = connect(&options.host, options.port, limit).map_err(told)?;
        stream.set_read_timeout(Some(limit)).map_err(told)?;
        return talk(stream, options).map_err(|why| why.told(told));
    }
    #[cfg(unix)]
    {
        let stream = std::os::unix::net::UnixStream::connect(&options.socket).map_err(told)?;
        stream.set_read_timeout(Some(limit)).map_err(told)?;
        talk(stream, options).map_err(|why| why.told(told))
    }
    #[cfg(not(unix))]
    Err("there are no Unix sockets on this system".to_owned())
}

/// Connects to the first address of a host that accepts.
fn connect(host: &str, port: u16, limit: Duration) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Why there was no PONG.
enum Failure {
    System(io::Error),
    Answer(String),
}

impl Failure {
    fn told(self, told: impl Fn(io::Error) -> String) -> String {
        match self {
            Failure::System(error) => told(error),
            Failure::Answer(line) if line.is_empty() => "the connection was closed without an answer".to_owned(),
            Failure::Answer(line) => format!("the answer was: {line}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::System(error)
    }
}

/// Logs in if there is a password, and asks.
fn talk(mut stream: impl Read + Write, options: &Options) -> Result<(), Failure> {
    let auth =
        |password| if options.user.is_empty() { vec!["AUTH", password] } else { vec!["AUTH", &options.user, password] };
    let login = options.password.as_deref().map(|password| (auth(password), "+OK"));
    for (words, expected) in login.into_iter().chain([(vec!["PING"], "+PONG")]) {
        stream.write_all(Request(&words).to_string().as_bytes())?;
        let mut line = String::new();
        BufReader::new((&mut stream).take(LONGEST_LINE)).read_line(&mut line)?;
        if line.trim_end() != expected {
            return Err(Failure::Answer(line.trim_end().to_owned()));
        }
    }
    Ok(())
}

/// A request, which displays as RESP.
struct Request<'a>(&'a [&'a str]);

impl fmt::Display for Request<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "*{}\r\n", self.0.len())?;
        self.0.iter().try_for_each(|word| write!(formatter, "${}\r\n{word}\r\n", word.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<Vec<u8>> = line.split_ascii_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        options(&words, Some("of the variable".to_owned()))
    }

    #[test]
    fn options_are_those_of_redis_cli() {
        let (host, wait) = ("a".to_owned(), Duration::from_millis(1500));
        let (socket, user, password) = ("/s".to_owned(), "c".to_owned(), Some("b".to_owned()));
        let all = Options { host, port: 7, socket, user, password, wait };
        assert_eq!(parsed("-h a -p 7 -s /s -a b --user c --wait 1.5"), Ok(all));
        assert_eq!(
            parsed("").map(|options| (options.port, options.password)),
            Ok((6379, Some("of the variable".into())))
        );
        for line in ["-p", "-p x", "-u", "-u a", "-p 70000", "--wait -1", "--wait soon", "-x 1", "7000"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_word_that_stands_alone_is_no_url_and_the_error_names_one() {
        for (line, url) in [
            ("-a secret 127.0.0.1:7", "'127.0.0.1:7' is no URL, as redis://127.0.0.1:7 is"),
            ("127.0.0.1:7 --wait 1", "'127.0.0.1:7' is no URL, as redis://127.0.0.1:7 is"),
            ("7000", "'7000' is no URL, as redis://127.0.0.1:7000 is"),
        ] {
            let why = parsed(line).expect_err("it is refused");
            assert_eq!(why, format!("{url}; see dunlin ping --help"), "{line}");
        }
        let why = parsed("-p").expect_err("it is refused");
        assert!(why.starts_with("'-p' is not an option with a value"), "{why}");
    }

    #[test]
    fn a_url_has_the_place_and_the_login() {
        let of = |url: &str| {
            let read = parsed(url).ok()?;
            Some(format!(
                "{} {} {} {} {}",
                read.host,
                read.port,
                read.socket,
                read.user,
                read.password.unwrap_or_default()
            ))
        };
        for (url, expected) in [
            ("redis://", "127.0.0.1 6379   of the variable"),
            ("-u redis://a", "a 6379   of the variable"),
            ("redis://a:7/1?x=y", "a 7   of the variable"),
            ("redis://[::1]", "::1 6379   of the variable"),
            ("redis://[::1]:7", "::1 7   of the variable"),
            ("redis://secret@a", "a 6379   secret"),
            ("redis://ann:p%40ss%3a@a:7", "a 7  ann p@ss:"),
            ("unix:///tmp/a@b?db=1", "127.0.0.1 6379 /tmp/a@b  of the variable"),
            ("unix://:b@/s", "127.0.0.1 6379 /s  b"),
        ] {
            assert_eq!(of(url).as_deref(), Some(expected), "{url}");
        }
        for url in
            ["rediss://a", "a://b", "redis://a:x", "redis://a:70000", "redis://%4@a", "redis://%ff@a", "unix://a/s"]
        {
            assert_eq!(of(url), None, "{url}");
        }
    }
}
