//! A server for one test: it prints more when the test fails, and fails the test for findings of strict mode.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::thread;

use super::assertions::last_commands_once;
use super::{Builder, Server};
use crate::engine::FIRST_WORLD;
use crate::engine::state::kit::Level;

/// A [`Server`] for one test, made by [`test()`].
#[derive(Debug)]
pub struct TestServer {
    server: Server,
    seed: u64,
}

/// Starts a server for one test.
///
/// It is a [`Server`] with three additions:
///
/// - The [journals](super::World::journal) of its worlds start with it. When the test fails, the last commands are
///   printed, with the seed that repeats its random choices ([`Builder::seed`]). A test that returns an error ends like
///   one that passes, so both write them to the test's output, which the harness shows for failed tests.
/// - When it is dropped and the test has not failed yet, it fails the test for findings of [strict
///   mode](super::World::strict) whose level is error, in any of the worlds that exist then. Warnings are written to
///   the test's output.
/// - If it cannot start, it panics.
///
/// Its clock runs, as code under test may wait for a timeout. [`Server::advance`](super::World::advance) moves the
/// clock forward anyway; [`Server::freeze`](super::World::freeze), or [`Builder::frozen`] and [`Builder::test`], freeze
/// it. Random choices differ from run to run, as in production.
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
/// The system has no free port, descriptor or thread.
#[track_caller]
pub fn test() -> TestServer {
    Server::builder().test()
}

impl Builder {
    /// Starts the server for one test, like [`test()`], with the options of this builder.
    ///
    /// # Panics
    /// It cannot start: [`StartError`](super::StartError).
    #[track_caller]
    pub fn test(self) -> TestServer {
        let (builder, seed) = self.seeded(|| RandomState::new().hash_one(0));
        let server = builder.start().unwrap_or_else(|error| panic!("the server cannot start: {error}"));
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
    /// The findings of strict mode in all existing worlds, each with its level and, except for the first world, the
    /// world's name.
    fn findings(&self) -> Vec<(Level, String)> {
        let findings = self.server.all().flat_map(|world| {
            let place = if world.name() == FIRST_WORLD { String::new() } else { format!("world {}: ", world.name()) };
            world.strict().findings().into_iter().map(move |finding| (finding.level, format!("{place}{finding}")))
        });
        findings.collect()
    }
}

fn lines(findings: &[(Level, String)]) -> String {
    findings.iter().map(|(_, text)| format!("\n  {text}")).collect()
}
