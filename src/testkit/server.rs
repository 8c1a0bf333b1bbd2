//! A server on a thread of its own, for as long as its handle lives.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use super::journal::LONGEST_MS;
use super::{Builder, CallError, Client, FaultRule, Journal, StartError, Strict};
use crate::commands::dunlin;
use crate::engine::{ClockOrder, Error};
use crate::server::clock::{from_system, to_system};
use crate::server::mailbox::Letter;
use crate::server::run::{self, Plan};
use crate::server::shared::Shared;

/// A Redis-compatible server in this process. It ends, and its port is free again, when this is dropped.
///
/// Each is a world of its own: start as many as there are tests.
///
/// ```
/// use std::time::Duration;
///
/// let server = dunlin::Server::start()?;
/// println!("any Redis client can connect to {}", server.url());
///
/// let mut client = server.client()?;
/// client.call(["SET", "session", "ann", "EX", "3600"])?;
/// server.advance(Duration::from_secs(3599));
/// assert_eq!(client.call(["GET", "session"])?, "ann");
/// server.advance(Duration::from_secs(1));
/// assert_eq!(client.call(["GET", "session"])?, dunlin::Reply::Null);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    password: String,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server with Redis's usual settings on a free port of this machine.
    ///
    /// # Errors
    /// [`StartError::System`] when the system has no port, descriptor or thread left.
    pub fn start() -> Result<Server, StartError> {
        Server::builder().start()
    }

    /// Describes a server that differs from the usual.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn run(plan: Plan) -> Result<Server, StartError> {
        let password = plan.settings.password.clone();
        let server = run::Server::open(plan)?;
        let address = server.addresses().first().copied().ok_or_else(no_address)?;
        let shared = Arc::clone(server.shared());
        let serve = move || server.serve();
        let thread = thread::Builder::new().name("dunlin".to_owned()).spawn(serve)?;
        Ok(Server { shared, address, password, thread: Some(thread) })
    }

    /// Where TCP clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The same as Redis clients want it: `redis://127.0.0.1:PORT/`, with the password if there is one.
    pub fn url(&self) -> String {
        if self.password.is_empty() {
            format!("redis://{}/", self.address)
        } else {
            format!("redis://:{}@{}/", escaped(&self.password), self.address)
        }
    }

    /// A client that calls the server directly, without a socket, and is logged in.
    ///
    /// # Errors
    /// [`CallError`] when there are as many clients as `maxclients` allows.
    pub fn client(&self) -> Result<Client, CallError> {
        Client::connect(Arc::clone(&self.shared))
    }

    /// The commands that the server runs, from now on: they are kept from the first call of this.
    pub fn journal(&self) -> Journal<'_> {
        Journal::begin(&self.shared)
    }

    /// Begins a rule of that name by which commands go wrong; it holds once it is said how. A rule of the same name is no
    /// more then.
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
    /// [`CallError::Refused`] when `timeout` is over on the server's clock; one that is frozen has it wait.
    pub fn wait_until_blocked(&self, key: impl AsRef<[u8]>, timeout: Duration) -> Result<(), CallError> {
        self.wait_until(&[b"BLOCKED", key.as_ref()], timeout)
    }

    /// Waits until so many clients, or more, listen to a channel.
    ///
    /// # Errors
    /// See [`Server::wait_until_blocked`].
    pub fn wait_for_subscribers(
        &self,
        channel: impl AsRef<[u8]>,
        count: u64,
        timeout: Duration,
    ) -> Result<(), CallError> {
        self.wait_until(&[b"SUBSCRIBERS", channel.as_ref(), count.to_string().as_bytes()], timeout)
    }

    fn wait_until(&self, condition: &[&[u8]], timeout: Duration) -> Result<(), CallError> {
        let timeout_ms = timeout.as_millis().clamp(1, LONGEST_MS).to_string();
        let words = [&[b"DUNLIN", &b"WAIT"[..]], condition, &[b"TIMEOUT", timeout_ms.as_bytes()]].concat();
        self.client()?.call(words).map(drop)
    }

    /// Moves the server's clock on, whether it runs or stands still. Everything that falls due on the way happens, in
    /// order and each at its moment, before this returns.
    pub fn advance(&self, by: Duration) {
        self.shared.advance(by);
    }

    /// Moves the clock on to when something falls due next, and lets it happen; answers when that is, or `None` if it is
    /// never. An idle client that is to be closed does not count.
    pub fn advance_to_next(&self) -> Option<SystemTime> {
        let moment = self.shared.engine().next_moment()?;
        self.shared.obey(ClockOrder::Reach(moment));
        Some(self.now())
    }

    /// Sets the clock: forward as [`Server::advance`] does, or back.
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

    /// Notes what everything is now, under a name, in the place of a snapshot of that name. This takes microseconds, however
    /// much data there is.
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

    /// Makes everything what it was at that snapshot, which stays; those that were taken since are dropped. This takes as
    /// long as what has changed.
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

    /// In which lines a text and the data differ: `-` what only the text has, `+` what only the data has. Empty if in none.
    ///
    /// # Errors
    /// [`CallError::Refused`]: a line of the text is no command that makes data.
    pub fn diff(&self, text: &str) -> Result<String, CallError> {
        self.shared.act(|engine| dunlin::diff(engine, text.as_bytes())).map_err(refused)
    }

    /// What the server's clock shows.
    pub fn now(&self) -> SystemTime {
        to_system(self.shared.clock().now())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop();
        // A direct client that waits has nothing to wait for any more.
        self.shared.post_to_all(Letter::Close);
        self.shared.worlds().post_to_all(Letter::Close);
        if let Some(thread) = self.thread.take() {
            // Had the thread panicked, the panic would have been told where it happened.
            drop(thread.join());
        }
    }
}

fn refused(error: Error) -> CallError {
    CallError::Refused(error.to_string())
}

fn no_address() -> std::io::Error {
    std::io::Error::other("there is no address to listen on")
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
