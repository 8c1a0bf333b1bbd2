//! Faults, as a test in Rust orders them.

use std::time::Duration;

use super::journal::assert_known;
use crate::engine::kit::{Disturbance, Failure, Fault, State};
use crate::server::shared::Shared;

/// A rule by which commands go wrong, in the making: first which commands, then, at last, how.
///
/// ```
/// let server = dunlin::Server::start()?;
/// server.fault("flaky").command("GET").nth(2).error("ERR try again");
/// let mut client = server.client()?;
/// assert!(client.call(["GET", "key"]).is_ok());
/// assert!(client.call(["GET", "key"]).is_err());
/// assert!(client.call(["GET", "key"]).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing goes wrong before it is said how"]
pub struct FaultRule<'s> {
    shared: &'s Shared,
    rule: Fault,
}

impl<'s> FaultRule<'s> {
    pub(super) fn of(shared: &'s Shared, name: &str) -> FaultRule<'s> {
        FaultRule { shared, rule: Fault::of(name.as_bytes()) }
    }

    /// For calls of this command alone: a name in any case, `container|subcommand`, or a container.
    ///
    /// # Panics
    /// There is no command of that name.
    #[track_caller]
    pub fn command(mut self, name: &str) -> FaultRule<'s> {
        assert_known(self.shared, name);
        self.rule.command = Some(name.into());
        self
    }

    /// For commands with a key that matches the glob alone.
    pub fn key(mut self, pattern: impl AsRef<[u8]>) -> FaultRule<'s> {
        self.rule.key = Some(pattern.as_ref().to_vec());
        self
    }

    /// For clients of that name alone (CLIENT SETNAME).
    pub fn client(mut self, name: impl AsRef<[u8]>) -> FaultRule<'s> {
        self.rule.client = Some(name.as_ref().to_vec());
        self
    }

    /// From the n-th match on, counted from 1, and once unless [`FaultRule::times`] says otherwise.
    pub fn nth(mut self, nth: u64) -> FaultRule<'s> {
        self.rule.nth = nth;
        self.rule.times = self.rule.times.or(Some(1));
        self
    }

    /// So often at most.
    pub fn times(mut self, times: u64) -> FaultRule<'s> {
        self.rule.times = Some(times);
        self
    }

    /// With that chance, from 0 to 100, which the server's seed repeats.
    pub fn percent(mut self, percent: f64) -> FaultRule<'s> {
        self.rule.percent = Some(percent);
        self
    }

    /// They are run so much later, by the server's clock.
    pub fn delay(self, by: Duration) {
        self.fail(Failure::Delay { ms: i64::try_from(by.as_millis()).unwrap_or(i64::MAX) });
    }

    /// They are not run but answered with this line, which begins with its code. Line ends become spaces.
    pub fn error(self, text: &str) {
        self.fail(Failure::Error(text.to_owned()));
    }

    /// The connection is closed, and they are not run.
    pub fn drop_before(self) {
        self.fail(Failure::DropBefore);
    }

    /// They take effect, and the connection is closed without a reply.
    pub fn drop_after(self) {
        self.fail(Failure::DropAfter);
    }

    /// They take effect, and the connection is closed within the reply.
    pub fn half_reply(self) {
        self.fail(Failure::HalfReply);
    }

    /// Each byte of their replies is written by itself.
    pub fn split_reply(self) {
        self.fail(Failure::SplitReply);
    }

    /// They are not run, and nothing is answered on their connection any more.
    pub fn silence(self) {
        self.fail(Failure::Silence);
    }

    /// They are refused as by a server in that state, if it refuses them.
    pub fn state(mut self, state: State) {
        self.rule.disturbance = Disturbance::State(state);
        self.add();
    }

    fn fail(mut self, failure: Failure) {
        self.rule.disturbance = Disturbance::Failure(failure);
        self.add();
    }

    fn add(self) {
        self.shared.engine().kit().faults.add(self.rule);
    }
}
