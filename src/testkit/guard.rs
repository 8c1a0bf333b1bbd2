//! A server for one test, which tells more when the test fails, and fails it for what would break in production.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::thread;

use super::assertions::last_commands_once;
use super::strict::listed;
use super::{Builder, Server};
use crate::engine::kit::Level;

/// A [`Server`] for one test: [`test()`].
#[derive(Debug)]
pub struct TestServer {
    server: Server,
    seed: u64,
}

/// Starts a server for one test.
///
/// It is a [`Server`] with three things more:
///
/// - Its [journal](super::World::journal) is kept from the start, and the last commands are told when the test panics, with the
///   seed that repeats what was left to chance ([`Builder::seed`]).
/// - When it is dropped, and the test has not failed yet, it fails the test for what rules of [strict mode](super::World::strict)
///   found in its first world that are errors. Warnings are told where a test's output is.
/// - It does not fail to start, it panics.
///
/// Its clock runs, as code under test may wait for something to time out; [`Server::advance`](super::World::advance) moves it on all the same, and
/// [`Server::freeze`](super::World::freeze), or [`Builder::frozen`] and [`Builder::test`], have it stand still. Chance differs from run to run, as it
/// does in production.
///
/// ```
/// use std::time::Duration;
///
/// use dunlin::{assert_missing, assert_reply};
/// use redis::Commands;
///
/// // In a #[test]:
/// let redis = dunlin::test();
/// let mut application = redis::Client::open(redis.url())?.get_connection()?;
/// let () = application.set_ex("session", "ann", 60)?;
/// assert_reply!(redis, "GET session" == "ann");
/// redis.advance(Duration::from_secs(60));
/// assert_missing!(redis, "session");
/// # Ok::<(), redis::RedisError>(())
/// ```
///
/// # Panics
/// The system has no port, descriptor or thread left.
#[track_caller]
pub fn test() -> TestServer {
    Server::builder().test()
}

impl Builder {
    /// Starts the server for one test: [`test()`], for one that differs from the usual.
    ///
    /// # Panics
    /// It cannot start: [`super::StartError`].
    #[track_caller]
    pub fn test(self) -> TestServer {
        let (builder, seed) = self.seeded(|| RandomState::new().hash_one(0));
        let server = builder.start().unwrap_or_else(|error| panic!("the server does not start: {error}"));
        let _ = server.journal();
        TestServer { server, seed }
    }
}

impl Deref for TestServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the server's seed: {}{}", self.seed, last_commands_once(&self.server));
            return;
        }
        let findings = self.server.strict().findings();
        let (errors, warnings): (Vec<_>, Vec<_>) =
            findings.into_iter().partition(|finding| finding.level == Level::Error);
        if !warnings.is_empty() {
            eprintln!("strict mode warns of {}:\n  {}", warnings.len(), listed(&warnings));
        }
        assert!(
            errors.is_empty(),
            "strict mode found {}:\n  {}{}",
            errors.len(),
            listed(&errors),
            last_commands_once(&self.server)
        );
    }
}
