//! Assertions about a server. Their messages contain the command, its reply, and the commands that ran before.
//!
//! The commands of an assertion are run by the test itself ([`World::call`]): they are not in the journal, and no fault
//! or rule applies to them. The macros are a grammar over the functions of this file, which panic at the macro's line.

use std::cell::Cell;
use std::time::Duration;

pub use super::expected::Word;
use super::expected::line_of;
use super::{CallError, Expected, Reply, World};
use crate::engine::FIRST_WORLD;
use crate::engine::state::kit::{Entry, quoted};
use crate::resp::split_words;

/// The number of commands that a failing test prints.
const LAST: usize = 12;
/// The number of existing keys that are listed if one is missing.
const KEYS: usize = 10;

/// Asserts the reply to a command.
///
/// The command is a line, which is split as by redis-cli, or a list of words, which may be texts, bytes and numbers.
/// The expected reply is a text, bytes, a number, a boolean, an array of these ([`Expected`]), `nil`,
/// or `error("..")`, which contains the start of the error. Scores and counters compare with numbers and with texts,
/// and the elements of a set or map compare in any order.
///
/// ```
/// use dunlin::assert_reply;
///
/// let redis = dunlin::test();
/// let user = "ann lee";
/// redis.call(["ZADD", "board", "10", user])?;
/// assert_reply!(redis, ["ZSCORE", "board", user] == 10);
/// assert_reply!(redis, "ZRANGE board 0 -1" == ["ann lee"]);
/// assert_reply!(redis, "GET nosuch" == nil);
/// assert_reply!(redis, "INCR board" == error("WRONGTYPE"));
/// # Ok::<(), dunlin::CallError>(())
/// ```
///
/// ```should_panic
/// # let redis = dunlin::test();
/// dunlin::assert_reply!(redis, "GET visits" == 7); // the reply is not what was expected ...
/// ```
#[macro_export]
macro_rules! assert_reply {
    ($redis:expr, $command:tt == nil $(,)?) => {
        $crate::assertions::reply(&$redis, $crate::words_of_command!($command), $crate::Expected::Nil)
    };
    ($redis:expr, $command:tt == error($start:expr) $(,)?) => {
        $crate::assertions::reply(
            &$redis,
            $crate::words_of_command!($command),
            $crate::Expected::Error($start.to_string()),
        )
    };
    ($redis:expr, $command:tt == $expected:expr $(,)?) => {
        $crate::assertions::reply(&$redis, $crate::words_of_command!($command), $crate::Expected::from($expected))
    };
}

/// The words of a command, from the forms that the assertions accept.
#[doc(hidden)]
#[macro_export]
macro_rules! words_of_command {
    ([$($word:expr),+ $(,)?]) => {
        vec![$($crate::assertions::Word::word(&$word)),+]
    };
    ($line:literal) => {
        $crate::assertions::words($line)
    };
}

/// Asserts that a key exists.
///
/// ```
/// let redis = dunlin::test();
/// redis.call(["SET", "user:1", "ann"])?;
/// dunlin::assert_exists!(redis, "user:1");
/// # Ok::<(), dunlin::CallError>(())
/// ```
#[macro_export]
macro_rules! assert_exists {
    ($redis:expr, $key:expr $(,)?) => {
        $crate::assertions::exists(&$redis, &$key)
    };
}

/// Asserts that a key does not exist.
///
/// ```
/// let redis = dunlin::test();
/// redis.call(["SET", "session", "ann", "EX", "60"])?;
/// redis.advance(std::time::Duration::from_secs(60));
/// dunlin::assert_missing!(redis, "session");
/// # Ok::<(), dunlin::CallError>(())
/// ```
#[macro_export]
macro_rules! assert_missing {
    ($redis:expr, $key:expr $(,)?) => {
        $crate::assertions::missing(&$redis, &$key)
    };
}

/// Asserts the time to live of a key: an exact one (`==`), a maximum (`<=`), or none (`== none`).
///
/// A running clock goes on between the command and the assertion: `==` tolerates the time since the server started.
///
/// ```
/// use std::time::Duration;
///
/// let redis = dunlin::test();
/// redis.call(["SET", "session", "ann", "EX", "3600"])?;
/// redis.call(["SET", "config", "x"])?;
/// redis.advance(Duration::from_secs(600));
/// dunlin::assert_ttl!(redis, "session" == Duration::from_secs(3000));
/// dunlin::assert_ttl!(redis, "session" <= Duration::from_secs(3600));
/// dunlin::assert_ttl!(redis, "config" == none);
/// # Ok::<(), dunlin::CallError>(())
/// ```
#[macro_export]
macro_rules! assert_ttl {
    ($redis:expr, $key:tt == none $(,)?) => {
        $crate::assertions::has_no_ttl(&$redis, &$key)
    };
    ($redis:expr, $key:tt == $rest:expr $(,)?) => {
        $crate::assertions::ttl_is(&$redis, &$key, $rest)
    };
    ($redis:expr, $key:tt <= $rest:expr $(,)?) => {
        $crate::assertions::ttl_at_most(&$redis, &$key, $rest)
    };
}

/// Asserts how often the application called a command: `at most n`, `at least n`, `exactly n`, or `no`; with `on`, only
/// calls with a key that matches a glob. A subcommand is written as a text: `"config|get"`. `no errors` asserts that no
/// command was refused.
///
/// It uses the server's [journal](crate::World::journal), which [`test()`](crate::test()) starts with the server, and
/// which any other server starts at its first use.
///
/// ```
/// use dunlin::assert_journal;
///
/// let redis = dunlin::test();
/// let mut application = redis.client()?;
/// application.call(["SET", "user:1", "ann"])?;
/// application.call(["GET", "user:1"])?;
/// assert_journal!(redis, at most 3 GET);
/// assert_journal!(redis, exactly 1 SET on "user:*");
/// assert_journal!(redis, no KEYS);
/// assert_journal!(redis, no errors);
/// # Ok::<(), dunlin::CallError>(())
/// ```
#[macro_export]
macro_rules! assert_journal {
    ($redis:expr, no errors $(,)?) => {
        $redis.journal().errors().assert_none()
    };
    ($redis:expr, no $command:tt $(on $pattern:expr)? $(,)?) => {
        $redis.journal().command($crate::name_of_command!($command))$(.key($pattern))?.assert_none()
    };
    ($redis:expr, at most $count:tt $command:tt $(on $pattern:expr)? $(,)?) => {
        $redis.journal().command($crate::name_of_command!($command))$(.key($pattern))?.assert_at_most($count)
    };
    ($redis:expr, at least $count:tt $command:tt $(on $pattern:expr)? $(,)?) => {
        $redis.journal().command($crate::name_of_command!($command))$(.key($pattern))?.assert_at_least($count)
    };
    ($redis:expr, exactly $count:tt $command:tt $(on $pattern:expr)? $(,)?) => {
        $redis.journal().command($crate::name_of_command!($command))$(.key($pattern))?.assert_exactly($count)
    };
}

/// The name of a command, from the forms that [`assert_journal`] accepts.
#[doc(hidden)]
#[macro_export]
macro_rules! name_of_command {
    ($name:literal) => {
        $name
    };
    ($name:ident) => {
        stringify!($name)
    };
}

/// The words of a line.
#[track_caller]
pub fn words(line: &str) -> Vec<Vec<u8>> {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    assert!(split_words(line.as_bytes(), &mut text, &mut spans).is_ok(), "the quotes are not balanced: {line}");
    spans.into_iter().map(|span| text[span.start..span.end].to_vec()).collect()
}

/// The function of [`assert_reply`].
#[track_caller]
pub fn reply(server: &World, words: Vec<Vec<u8>>, expected: Expected) {
    let outcome = server.call(&words);
    if !expected.is(&outcome) {
        let got = outcome.map_or_else(|error| format!("an error: {error}"), |reply| indented(&reply.to_string()));
        let command = line_of(&words);
        panic!(
            "the reply is not what was expected\n   command: {command}\n  expected: {expected}\n       got: {got}{}",
            last_commands(server)
        );
    }
}

/// The function of [`assert_exists`].
#[track_caller]
pub fn exists(server: &World, key: &(impl Word + ?Sized)) {
    let key = key.word();
    if server.call([b"EXISTS", &key[..]]) != Ok(Reply::Integer(1)) {
        panic!("the key {} does not exist{}{}", quoted(&key), keys(server), last_commands(server));
    }
}

/// The function of [`assert_missing`].
#[track_caller]
pub fn missing(server: &World, key: &(impl Word + ?Sized)) {
    let key = key.word();
    if server.call([b"EXISTS", &key[..]]) == Ok(Reply::Integer(0)) {
        return;
    }
    let kind = server.call([b"TYPE", &key[..]]).ok().and_then(|reply| reply.text().map(|text| text.into_owned()));
    let kind = kind.unwrap_or_default();
    panic!(
        "the key {} exists: a {kind}, {}{}",
        quoted(&key),
        describe_ttl(ttl_of(server, &key)),
        last_commands(server)
    );
}

/// The time to live of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ttl {
    Missing,
    Endless,
    Ms(i64),
}

fn ttl_of(server: &World, key: &[u8]) -> Ttl {
    match server.call([b"PTTL", key]).ok().and_then(|reply| reply.integer()) {
        Some(-1) => Ttl::Endless,
        Some(ms) if ms >= 0 => Ttl::Ms(ms),
        _ => Ttl::Missing,
    }
}

fn describe_ttl(rest: Ttl) -> String {
    match rest {
        Ttl::Missing => "which does not exist".to_owned(),
        Ttl::Endless => "which lives for ever".to_owned(),
        Ttl::Ms(ms) => format!("which has {} s to live", ms as f64 / 1000.0),
    }
}

#[track_caller]
fn expect_ttl(server: &World, key: &[u8], wanted: &str, is_so: impl FnOnce(Ttl) -> bool) {
    let rest = ttl_of(server, key);
    if !is_so(rest) {
        let keys = if rest == Ttl::Missing { keys(server) } else { String::new() };
        panic!("expected {wanted} of the key {}, {}{keys}{}", quoted(key), describe_ttl(rest), last_commands(server));
    }
}

/// The function of [`assert_ttl`] with `== none`.
#[track_caller]
pub fn has_no_ttl(server: &World, key: &(impl Word + ?Sized)) {
    expect_ttl(server, &key.word(), "no deadline", |rest| rest == Ttl::Endless);
}

/// The function of [`assert_ttl`] with `==`.
#[track_caller]
pub fn ttl_is(server: &World, key: &(impl Word + ?Sized), wanted: Duration) {
    let (most, slack) = (wanted.as_millis(), server.ran_for().as_millis() + 1);
    let wanted = format!("{} s to live", wanted.as_secs_f64());
    expect_ttl(
        server,
        &key.word(),
        &wanted,
        |rest| matches!(rest, Ttl::Ms(ms) if (most.saturating_sub(slack)..=most).contains(&(ms as u128))),
    );
}

/// The function of [`assert_ttl`] with `<=`.
#[track_caller]
pub fn ttl_at_most(server: &World, key: &(impl Word + ?Sized), most: Duration) {
    let wanted = format!("at most {} s to live", most.as_secs_f64());
    expect_ttl(server, &key.word(), &wanted, |rest| matches!(rest, Ttl::Ms(ms) if ms as u128 <= most.as_millis()));
}

/// The existing keys, up to a maximum number.
fn keys(server: &World) -> String {
    let Ok(Reply::Array(page)) = server.call(["SCAN", "0", "COUNT", "100"]) else { return String::new() };
    let all = page.get(1).and_then(Reply::items).unwrap_or_default();
    let mut names: Vec<String> = all.iter().filter_map(Reply::bytes).map(quoted).collect();
    names.sort();
    let more = if names.len() > KEYS { " and others" } else { "" };
    names.truncate(KEYS);
    if names.is_empty() {
        "; there are no keys".to_owned()
    } else {
        format!("; existing keys: {}{more}", names.join(", "))
    }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n            ")
}

thread_local! {
    /// This thread's test has printed the last commands, as it is about to fail.
    static HAS_PRINTED: Cell<bool> = const { Cell::new(false) };
}

/// The last commands of these worlds, unless a failed assertion has printed some already.
pub(super) fn last_commands_once(worlds: impl Iterator<Item = World>) -> String {
    let text = if HAS_PRINTED.get() { String::new() } else { worlds.map(|world| last_commands(&world)).collect() };
    HAS_PRINTED.set(false);
    text
}

/// The last commands of a world, if it has a journal.
fn last_commands(world: &World) -> String {
    HAS_PRINTED.set(true);
    let place = if world.name() == FIRST_WORLD { String::new() } else { format!(" in world {}", world.name()) };
    let entries = world.last_entries(LAST);
    let lines = entries.iter().map(Entry::to_string).collect::<Vec<_>>().join("\n  ");
    if entries.is_empty() { String::new() } else { format!("\nthe last commands{place}:\n  {lines}") }
}

impl World {
    /// Runs one command as the test itself: it is not in the journal, and no fault and no rule of strict mode applies
    /// to it. Each call is a separate client, so its state (a transaction, a selected database) ends with the call.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// server.fault("down").error("ERR down");
    /// assert_eq!(server.call(["SET", "key", "value"])?, "OK");
    /// assert!(server.client()?.call(["GET", "key"]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError`]: the server refused the command.
    pub fn call<W: AsRef<[u8]>>(&self, words: impl IntoIterator<Item = W>) -> Result<Reply, CallError> {
        self.test_client()?.call(words)
    }
}
