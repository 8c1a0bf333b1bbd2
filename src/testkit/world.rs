//! A world, as a test in Rust uses it: the one that a server starts with, or another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::journal::LONGEST_MS;
use super::{CallError, Client, Entry, FaultRule, Journal, Strict};
use crate::commands::dunlin;
use crate::engine::kit::Filter;
use crate::engine::{ClockOrder, FIRST_WORLD};
use crate::server::clock::{from_system, to_system};
use crate::server::shared::Shared;
use crate::server::worlds::World as Place;

/// A private server behind a server's port: with data, clients, clock, settings, users, scripts and snapshots of its
/// own. [`super::Server::world`] makes one; a server itself is the first of its worlds.
///
/// ```
/// use std::time::Duration;
///
/// let server = dunlin::Server::start()?;
/// let (early, late) = (server.world("early")?, server.world("late")?);
/// late.advance(Duration::from_secs(3600));
/// assert!(late.now() > early.now());
/// println!("any Redis client can connect to {} or {}", early.url(), late.url());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct World {
    shared: Arc<Shared>,
    address: SocketAddr,
    password: String,
    /// When the first world began, by the machine's own clock, in microseconds.
    began_us: u64,
}

/// What stands in a URL where any password is right, as some clients do not log in without one.
const ANY_PASSWORD: &str = "any";

impl World {
    pub(super) fn of(shared: Arc<Shared>, address: SocketAddr, password: String) -> World {
        let began_us = shared.engine().host.elapsed_us();
        World { shared, address, password, began_us }
    }

    /// Another world behind the same port.
    pub(super) fn beside(&self, shared: Arc<Shared>) -> World {
        World { shared, ..self.clone() }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Its name: `default` if it is the first.
    pub fn name(&self) -> &str {
        self.shared.world().map_or(FIRST_WORLD, |world| world.name().as_str())
    }

    /// Where TCP clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The same as Redis clients want it: `redis://127.0.0.1:PORT/`, with the password if there is one; or
    /// `redis://world.NAME:PASSWORD@127.0.0.1:PORT/`, where any password will do unless the server wants one.
    pub fn url(&self) -> String {
        let (user, password) = match (self.shared.world(), &*self.password) {
            (None, "") => return format!("redis://{}/", self.address),
            (None, password) => (String::new(), password),
            (Some(world), password) => {
                (format!("world.{}", world.name().as_str()), if password.is_empty() { ANY_PASSWORD } else { password })
            }
        };
        format!("redis://{user}:{}@{}/", escaped(password), self.address)
    }

    /// Has it end when its last client leaves, direct ones included. The first world cannot: it ends with its server.
    pub fn make_temporary(&self) {
        self.shared.world().into_iter().for_each(Place::make_temporary);
    }

    /// Has the worlds that are made from now on begin as a copy of what this one is now: data, settings, users,
    /// scripts, functions, chance, the clock and the rules of strict mode.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// server.client()?.call(["SET", "fixture", "loaded once"])?;
    /// server.make_template();
    /// let mut client = server.world("one")?.client()?;
    /// assert_eq!(client.call(["GETDEL", "fixture"])?, "loaded once");
    /// assert_eq!(server.world("two")?.client()?.call(["GET", "fixture"])?, "loaded once");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn make_template(&self) {
        let template = self.shared.act(|engine| engine.template());
        self.shared.worlds().set_template(Some(template));
    }

    /// A client that calls it directly, without a socket, and is logged in.
    ///
    /// # Errors
    /// [`CallError`] when there are as many clients as `maxclients` allows.
    pub fn client(&self) -> Result<Client, CallError> {
        Client::connect(Arc::clone(&self.shared))
    }

    /// A client that is the test's own.
    pub(super) fn test_client(&self) -> Result<Client, CallError> {
        Client::examine(Arc::clone(&self.shared))
    }

    /// How far its clock may have come by itself.
    pub(super) fn ran_for(&self) -> Duration {
        let engine = self.shared.engine();
        let real = Duration::from_micros(engine.host.elapsed_us().saturating_sub(self.began_us));
        real.mul_f64(engine.host.clock_speed().max(1.0))
    }

    /// The last so many commands that were kept, if any are kept, the oldest first.
    pub(super) fn last_entries(&self, count: usize) -> Vec<Entry> {
        let engine = self.shared.engine();
        let (journal, all) = (engine.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref()), Filter::default());
        let entries = journal.into_iter().flat_map(|journal| journal.matching(&all, &engine.table));
        let mut entries: Vec<Entry> = entries.cloned().collect();
        entries.drain(..entries.len().saturating_sub(count));
        entries
    }

    /// The commands that the server runs, from now on: they are kept from the first call of this.
    pub fn journal(&self) -> Journal<'_> {
        Journal::begin(&self.shared)
    }

    /// Begins a rule of that name by which commands go wrong; it holds once it is said how. A rule of
    /// the same name is no more then.
    pub fn fault(&self, name: &str) -> FaultRule<'_> {
        FaultRule::of(&self.shared, name)
    }

    /// Removes a rule; false when there is none of that name.
    pub fn remove_fault(&self, name: &str) -> bool {
        let mut engine = self.shared.engine();
        let was_there = engine.kit().faults.remove(name.as_bytes());
        engine.put_kit_away();
        was_there
    }

    /// Removes all rules by which commands go wrong. What has gone wrong stays so: a delay ends at its time.
    pub fn clear_faults(&self) {
        let mut engine = self.shared.engine();
        engine.kit().faults.clear();
        engine.put_kit_away();
    }

    /// The rules by which what would break in production fails the test.
    pub fn strict(&self) -> Strict<'_> {
        Strict::of(&self.shared)
    }

    /// Waits until a client is blocked on `key` of database 0.
    ///
    /// # Errors
    /// [`CallError::Refused`] when `timeout` is over on its clock; one that is frozen has it wait.
    pub fn wait_until_blocked(&self, key: impl AsRef<[u8]>, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(&[b"BLOCKED", key.as_ref()], timeout)
    }

    /// Waits until so many clients, or more, are blocked on `key` of database 0.
    ///
    /// # Errors
    /// See [`World::wait_until_blocked`].
    pub fn wait_for_blocked(&self, key: impl AsRef<[u8]>, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(&[b"BLOCKED", key.as_ref(), count.to_string().as_bytes()], timeout)
    }

    /// Waits until so many clients, or more, listen to a channel.
    ///
    /// # Errors
    /// See [`World::wait_until_blocked`].
    pub fn wait_for_subscribers(
        &self,
        channel: impl AsRef<[u8]>,
        count: u64,
        timeout: Duration,
    ) -> Result<(), CallError> {
        self.wait_until(&[b"SUBSCRIBERS", channel.as_ref(), count.to_string().as_bytes()], timeout)
    }

    /// Waits until a rule by which commands go wrong ([`World::fault`]) has struck so often, or more often.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let server = dunlin::Server::start()?;
    /// server.fault("the worker hangs").command("LPOP").silence();
    /// let mut worker = server.client()?;
    /// std::thread::spawn(move || worker.call(["LPOP", "queue"]));
    /// server.wait_until_fired("the worker hangs", 1, Duration::from_secs(10))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`World::wait_until_blocked`]; or there is no rule of that name.
    pub fn wait_until_fired(&self, rule: &str, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(&[b"FAULT", rule.as_bytes(), count.to_string().as_bytes()], timeout)
    }

    /// Waits until so many clients are there, neither more nor fewer: until a pool is filled, or a worker is gone. A
    /// [`Client`] counts, too.
    ///
    /// # Errors
    /// See [`World::wait_until_blocked`].
    pub fn wait_for_clients(&self, count: u64, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(&[b"CLIENTS", count.to_string().as_bytes()], timeout)
    }

    fn wait_until(&self, condition: &[&[u8]], timeout: Duration) -> Result<(), CallError> {
        let timeout_ms = timeout.as_millis().clamp(1, LONGEST_MS).to_string();
        let words = [&[b"DUNLIN", &b"WAIT"[..]], condition, &[b"TIMEOUT", timeout_ms.as_bytes()]].concat();
        self.test_client()?.call(words).map(drop)
    }

    /// Moves its clock on, whether it runs or stands still. Everything that falls due on the way happens, in
    /// order and each at its moment, before this returns.
    pub fn advance(&self, by: Duration) {
        self.shared.advance(by);
    }

    /// Moves the clock on to when something falls due next, and lets it happen; answers when that is, or `None` if it
    /// is never. An idle client that is to be closed does not count.
    pub fn advance_to_next(&self) -> Option<SystemTime> {
        let moment = self.shared.engine().next_moment()?;
        self.shared.obey(ClockOrder::Reach(moment));
        Some(self.now())
    }

    /// Sets the clock: forward as [`World::advance`] does, or back, but to no time before 1970.
    pub fn set_time(&self, time: SystemTime) {
        let moment = from_system(time);
        let is_later = moment >= self.shared.clock().now();
        self.shared.obey(if is_later { ClockOrder::Reach(moment) } else { ClockOrder::Set(moment) });
    }

    /// Has the clock stand still where it is.
    pub fn freeze(&self) {
        self.shared.obey(ClockOrder::Speed(0.0));
    }

    /// Has the clock go on from where it is, as fast as time passes.
    pub fn resume(&self) {
        self.set_speed(1.0);
    }

    /// Has the clock go on from where it is, `factor` times as fast as time passes. What is not above 0 has it stand
    /// still.
    pub fn set_speed(&self, factor: f64) {
        self.shared.obey(ClockOrder::Speed(if factor > 0.0 { factor } else { 0.0 }));
    }

    /// Notes what everything is now, under a name, in the place of a snapshot of that name. This takes
    /// microseconds, however much data there is.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// let mut client = server.client()?;
    /// client.call(["SET", "visits", "1"])?;
    /// server.snapshot("before");
    /// client.call(["INCR", "visits"])?;
    /// server.rollback("before")?;
    /// assert_eq!(client.call(["GET", "visits"])?, "1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self, name: &str) {
        self.shared.act(|engine| engine.take_snapshot(name.as_bytes()));
    }

    /// Makes everything what it was at that snapshot, which stays; those that were taken since are dropped. This
    /// takes as long as what has changed.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is none of that name, or a script runs that takes too long.
    pub fn rollback(&self, name: &str) -> Result<(), CallError> {
        self.shared.act(|engine| engine.roll_back(name.as_bytes())).map_err(refused)
    }

    /// The names of the snapshots, the oldest first.
    pub fn snapshots(&self) -> Vec<String> {
        let engine = self.shared.engine();
        engine.snapshots().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Forgets a snapshot: what has changed since stays, and it can be rolled back to older ones still.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is none of that name.
    pub fn drop_snapshot(&self, name: &str) -> Result<(), CallError> {
        self.shared.act(|engine| engine.drop_snapshot(name.as_bytes())).map_err(refused)
    }

    /// All data and functions as lines of commands that would make them, in a fixed order.
    pub fn dump(&self) -> String {
        self.shared.act(|engine| dunlin::dump(engine))
    }

    /// Puts what the commands of a text make in the place of all data and functions.
    ///
    /// # Errors
    /// [`CallError::Refused`]: a line is no command that makes data. Nothing has changed then.
    pub fn load(&self, text: &str) -> Result<(), CallError> {
        self.shared.act(|engine| dunlin::load(engine, text.as_bytes())).map_err(refused)
    }

    /// In which lines a text and the data differ: `-` what only the text has, `+` what only
    /// the data has. Empty if in none.
    ///
    /// # Errors
    /// [`CallError::Refused`]: a line of the text is no command that makes data.
    pub fn diff(&self, text: &str) -> Result<String, CallError> {
        self.shared.act(|engine| dunlin::diff(engine, text.as_bytes())).map_err(refused)
    }

    /// What its clock shows.
    pub fn now(&self) -> SystemTime {
        to_system(self.shared.clock().now())
    }
}

pub(super) fn refused(error: impl Into<crate::engine::Error>) -> CallError {
    CallError::Refused(error.into().to_string())
}

/// A password as it stands in a URL.
fn escaped(password: &str) -> String {
    let mut text = String::with_capacity(password.len());
    for byte in password.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_may_hold_what_urls_are_made_of() {
        assert_eq!(escaped("a:b@c/d é"), "a%3Ab%40c%2Fd%20%C3%A9");
    }
}
