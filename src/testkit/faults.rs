//! Fault rules, as a test in Rust adds them.

use std::time::Duration;

use super::journal::assert_known;
use crate::engine::state::kit::{Failure, Fault, FaultEffect, State};
use crate::server::shared::Shared;

/// The builder of a fault rule: first the commands that it matches, then, as the last call, the failure.
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
#[must_use = "a rule has no effect until its failure is set, as by `.drop_after()`"]
pub struct FaultRule<'s> {
    shared: &'s Shared,
    /// The number of the node that gets the rule, if it is named.
    node: Option<usize>,
    rule: Fault,
}

impl<'s> FaultRule<'s> {
    pub(super) fn of(shared: &'s Shared, name: &str) -> FaultRule<'s> {
        FaultRule { shared, node: None, rule: Fault::of(name.as_bytes()) }
    }

    /// Matches only calls of this command: a name in any case, `container|subcommand`, or a container.
    ///
    /// # Panics
    /// No command has this name.
    #[track_caller]
    pub fn command(mut self, name: &str) -> FaultRule<'s> {
        assert_known(self.shared, name);
        self.rule.command = Some(name.into());
        self
    }

    /// Matches only commands with a key that matches the glob.
    pub fn key(mut self, pattern: impl AsRef<[u8]>) -> FaultRule<'s> {
        self.rule.key = Some(pattern.as_ref().to_vec());
        self
    }

    /// Matches only clients with this name (CLIENT SETNAME).
    pub fn client(mut self, name: impl AsRef<[u8]>) -> FaultRule<'s> {
        self.rule.client = Some(name.as_ref().to_vec());
        self
    }

    /// Adds the rule at the node of the cluster with this number.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).start()?;
    /// cluster.fault("overloaded").at_node(2).command("SET").times(1).error("BUSY later");
    /// let mut client = cluster.nodes()[2].client()?;
    /// assert_eq!(client.call(["SET", "foo", "1"]).expect_err("once").to_string(), "BUSY later");
    /// assert_eq!(client.call(["SET", "foo", "1"])?, "OK");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// There is no such node.
    #[track_caller]
    pub fn at_node(mut self, number: usize) -> FaultRule<'s> {
        assert!(self.shared.cluster().node(number).is_ok(), "no node {number}");
        self.node = Some(number);
        self
    }

    /// Fires from the n-th match on, counted from 1, and once unless [`FaultRule::times`] sets another number.
    pub fn nth(mut self, nth: u64) -> FaultRule<'s> {
        self.rule.trigger.set_nth(nth);
        self
    }

    /// Fires at most this many times.
    pub fn times(mut self, times: u64) -> FaultRule<'s> {
        self.rule.trigger.times = Some(times);
        self
    }

    /// Fires with this probability, from 0 to 100 percent, which the server's seed makes repeatable.
    pub fn percent(mut self, percent: f64) -> FaultRule<'s> {
        self.rule.trigger.percent = Some(percent);
        self
    }

    /// Adds the rule: matching commands run this much later, by the server's clock.
    pub fn delay(self, by: Duration) {
        self.fail(Failure::Delay { ms: i64::try_from(by.as_millis()).unwrap_or(i64::MAX) });
    }

    /// Adds the rule: matching commands are not run but get this error, which begins with its code. Line ends become
    /// spaces.
    pub fn error(self, text: &str) {
        self.fail(Failure::Error(text.to_owned()));
    }

    /// Adds the rule: matching commands are not run, and their connection is closed.
    pub fn drop_before(self) {
        self.fail(Failure::DropBefore);
    }

    /// Adds the rule: matching commands take effect, and their connection is closed without a reply.
    pub fn drop_after(self) {
        self.fail(Failure::DropAfter);
    }

    /// Adds the rule: matching commands take effect, and their connection is closed in the middle of the reply.
    pub fn half_reply(self) {
        self.fail(Failure::HalfReply);
    }

    /// Adds the rule: each byte of the replies to matching commands is written separately.
    pub fn split_reply(self) {
        self.fail(Failure::SplitReply);
    }

    /// Adds the rule: matching commands are not run, and their connection gets no more replies.
    pub fn silence(self) {
        self.fail(Failure::Silence);
    }

    /// Adds the rule: matching commands are refused as by a server in this state, if it refuses them.
    pub fn state(mut self, state: State) {
        self.rule.effect = FaultEffect::State(state);
        self.add();
    }

    fn fail(mut self, failure: Failure) {
        self.rule.effect = FaultEffect::Failure(failure);
        self.add();
    }

    fn add(self) {
        match self.node {
            None => self.shared.engine().observers.kit().faults.add(self.rule),
            // Its number was checked; without nodes the world has ended.
            Some(number) => _ = self.shared.cluster().add_fault(number, self.rule),
        }
    }
}
