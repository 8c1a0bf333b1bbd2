//! A server for one test, which tells more when the test fails, and fails it for what would break in production.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::thread;

use super::assertions::last_commands_once;
use super::{Builder, Server};
use crate::engine::FIRST_WORLD;
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
/// - The [journals](super::World::journal) of its worlds are kept from the start, and the last commands are told
///   when the test fails, with the seed that repeats what was left to chance ([`Builder::seed`]). A test that
///   returns an error ends like one that passes, so they are written where a test's output is in any case, and the
///   harness shows them for tests that fail.
/// - When it is dropped, and the test has not failed yet, it fails the test for what rules of [strict
///   mode](super::World::strict) found that are errors, in any of the worlds that are there then. Warnings are
///   told where a test's output is.
/// - It does not fail to start, it panics.
///
/// Its clock runs, as code under test may wait for something to time out; [`Server::advance`](super::World::advance)
/// moves it on all the same, and [`Server::freeze`](super::World::freeze), or [`Builder::frozen`] and
/// [`Builder::test`], have it stand still. Chance differs from run to run, as it does in production.
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
        server.keep_journals();
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
        let findings = if thread::panicking() { Vec::new() } else { self.findings() };
        let (errors, warnings): (Vec<_>, Vec<_>) = findings.into_iter().partition(|(level, _)| *level == Level::Error);
        if !warnings.is_empty() {
            eprintln!("strict mode warns of {}:{}", warnings.len(), lines(&warnings));
        }
        let commands = last_commands_once(self.server.all());
        if errors.is_empty() {
            eprintln!("the server's seed: {}{commands}", self.seed);
        } else {
            panic!("strict mode found {}:{}{commands}", errors.len(), lines(&errors));
        }
    }
}

impl TestServer {
    /// What strict mode has found in all worlds that are there, each with its level and
    /// the world if it is not the first.
    fn findings(&self) -> Vec<(Level, String)> {
        let told = self.server.all().flat_map(|world| {
            let place = if world.name() == FIRST_WORLD { String::new() } else { format!("world {}: ", world.name()) };
            world.strict().findings().into_iter().map(move |finding| (finding.level, format!("{place}{finding}")))
        });
        told.collect()
    }
}

fn lines(findings: &[(Level, String)]) -> String {
    findings.iter().map(|(_, text)| format!("\n  {text}")).collect()
}
