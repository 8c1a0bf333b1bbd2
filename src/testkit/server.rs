//! A server on a thread of its own, for as long as its handle lives.

use std::ops::Deref;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::world::{World, refused};
use super::{Builder, CallError, StartError};
use crate::engine::{KitError, WorldName};
use crate::server::run::{self, Plan};
use crate::server::wake_flags::WakeFlag;

/// A Redis-compatible server in this process. It ends, and its port is free again, when this is dropped.
///
/// Start as many as there are tests, or give each test a [`World`] of one server. What a server can do itself is what
/// its first world can, which it dereferences to.
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
    first: World,
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
        let first = World::of(Arc::clone(server.shared()), address, password);
        let serve = move || server.serve();
        let thread = thread::Builder::new().name("dunlin".to_owned()).spawn(serve)?;
        Ok(Server { first, thread: Some(thread) })
    }

    /// The world of that name: a private server behind the same port, made now unless it is there already. Over the
    /// wire its name in the URL leads there ([`World::url`]). It stays, whether anybody is in it or not, until
    /// [`Server::drop_world`] or the server's end.
    ///
    /// ```
    /// let server = dunlin::Server::start()?;
    /// let (cart, stock) = (server.world("cart")?, server.world("stock")?);
    /// cart.client()?.call(["SET", "key", "value"])?;
    /// assert_eq!(stock.client()?.call(["GET", "key"])?, dunlin::Reply::Null);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::Refused`]: no world can have that name, which is 1 to 64 flags, digits, `-`, `_` or
    /// `.`; or there are ten thousand.
    pub fn world(&self, name: &str) -> Result<World, CallError> {
        self.find_or_make(name).map_err(refused)
    }

    fn find_or_make(&self, name: &str) -> Result<World, KitError> {
        let shared = self.first.shared().worlds().find_or_make(&WorldName::parse(name.as_bytes())?)?;
        Ok(self.first.beside(shared))
    }

    /// The names of the worlds there are, the first one first.
    pub fn worlds(&self) -> Vec<String> {
        let figures = self.first.shared().worlds().figures();
        figures.into_iter().map(|world| world.name.as_str().to_owned()).collect()
    }

    /// Has its worlds keep their journals from the start.
    pub(super) fn keep_journals(&self) {
        self.first.shared().worlds().keep_journals();
    }

    /// All worlds that are there, the first one first.
    pub(super) fn all(&self) -> impl Iterator<Item = World> {
        self.first.shared().worlds().all().into_iter().map(|shared| self.first.beside(shared))
    }

    /// Ends a world, and the connections of its clients. The next to enter one of that name finds a fresh one.
    ///
    /// # Errors
    /// [`CallError::Refused`]: there is none of that name, or it is the first.
    pub fn drop_world(&self, name: &str) -> Result<(), CallError> {
        let name = WorldName::parse(name.as_bytes()).map_err(refused)?;
        self.first.shared().worlds().end(&name).map_err(refused)
    }

    /// Has worlds that are made from now on begin empty, and no longer as [`World::make_template`] said.
    pub fn drop_template(&self) {
        self.first.shared().worlds().set_template(None);
    }
}

impl Deref for Server {
    type Target = World;

    fn deref(&self) -> &World {
        &self.first
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let shared = self.first.shared();
        shared.stop();
        // A direct client that waits has nothing to wait for any more.
        shared.notify_all(WakeFlag::Close);
        shared.worlds().notify_all(WakeFlag::Close);
        if let Some(thread) = self.thread.take() {
            // Had the thread panicked, the panic would have been told where it happened.
            drop(thread.join());
        }
    }
}

fn no_address() -> std::io::Error {
    std::io::Error::other("there is no address to listen on")
}
