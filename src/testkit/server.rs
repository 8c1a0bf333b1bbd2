//! A server on its own thread, which runs until its handle is dropped.

use std::ops::Deref;
use std::sync::Arc;
#[cfg(feature = "page")]
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};

use super::world::{World, refused};
use super::{Builder, CallError, DiskFaultRule, StartError};
use crate::engine::exec::persistence::ShutdownOptions;
use crate::engine::{KitError, WorldName};
#[cfg(feature = "page")]
use crate::server::page::Page;
use crate::server::run::{self, Plan};
use crate::server::wake_flags::WakeFlag;

/// A Redis-compatible server in this process. When it is dropped, it stops and its port is free again. With save points
/// (`.set("save", "3600 1")`) it saves its data first, as Redis does when it is asked to end.
///
/// Start one for each test, or give each test a [`World`] of one server. The server dereferences to its first world, so
/// it has all methods of [`World`].
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
    #[cfg(feature = "page")]
    page: Option<Page>,
}

impl Server {
    /// Starts a server with Redis's defaults on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// [`StartError::System`] if the system has no free port, descriptor or thread.
    pub fn start() -> Result<Server, StartError> {
        Server::builder().start()
    }

    /// Returns a builder for a server with other options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a builder for a cluster of that many primaries, at least 1 and at most 1000: each has a port of its own
    /// and owns a part of the slots, and all run in this process with one clock. They agree on a change before the
    /// command that causes it gets its reply; Redis's nodes take seconds for that.
    ///
    /// [`Builder::replicas`] gives each of them replicas. The server dereferences to its first node;
    /// [`World::nodes`] returns all.
    ///
    /// ```
    /// let cluster = dunlin::Server::cluster(3).start()?;
    /// println!("a cluster client connects to {}", cluster.url());
    ///
    /// let [first, _, third] = &cluster.nodes()[..] else { panic!("there are three") };
    /// let moved = first.client()?.call(["GET", "foo"]).expect_err("another node owns the slot of this key");
    /// assert_eq!(moved.to_string(), format!("MOVED 12182 {}", third.addr()));
    /// assert_eq!(third.client()?.call(["SET", "foo", "bar"])?, "OK");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cluster(primaries: u16) -> Builder {
        Builder::default().primaries(primaries)
    }

    pub(super) fn run(plan: Plan) -> Result<Server, StartError> {
        let password = plan.settings.password.clone();
        let server = run::Server::open(plan)?;
        let address = server.addresses().first().copied().ok_or_else(no_address)?;
        let first = World::of(Arc::clone(server.shared()), address, password);
        let serve = move || server.serve();
        let thread = thread::Builder::new().name("dunlin".to_owned()).spawn(serve)?;
        Ok(Server {
            first,
            thread: Some(thread),
            #[cfg(feature = "page")]
            page: None,
        })
    }

    /// Serves the page where the settings say, if they do. The server has its data by now.
    #[cfg(feature = "page")]
    pub(super) fn with_page(mut self) -> Result<Server, StartError> {
        self.page = Page::start(self.first.shared(), &Arc::new(AtomicBool::new(true)))?;
        Ok(self)
    }

    /// Returns the URL of the page with its token, for the browser; `None` without [`Builder::page`]. For the metrics,
    /// replace the part from `#` on by `metrics`.
    #[cfg(feature = "page")]
    pub fn page_url(&self) -> Option<String> {
        self.page.as_ref().map(Page::link)
    }

    /// Returns the world with this name: a private server behind the same port, which is created if it does not exist.
    /// Clients that connect to its URL enter it ([`World::url`]). It remains, with or without clients, until
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
    /// [`CallError::Refused`]: the name is not 1 to 64 letters, digits, `-`, `_` or `.`; or there are ten thousand
    /// worlds.
    pub fn world(&self, name: &str) -> Result<World, CallError> {
        self.find_or_make(name).map_err(refused)
    }

    fn find_or_make(&self, name: &str) -> Result<World, KitError> {
        let shared = self.first.shared().worlds().find_or_make(&WorldName::parse(name.as_bytes())?)?;
        Ok(self.first.beside(shared))
    }

    /// Starts a rule by which calls of the file system fail or take long, with this name; the rule applies once its
    /// failure is set, and replaces the rule of the same name. [`World::remove_fault`] and [`World::clear_faults`]
    /// remove it.
    pub fn disk_fault(&self, name: &str) -> DiskFaultRule {
        let mut engine = self.first.shared().engine();
        engine.observers.kit().faults.remove(name.as_bytes());
        engine.observers.put_kit_away();
        // The first world of a server with the test kit has them.
        DiskFaultRule::of(&engine.host.disk_faults().cloned().unwrap_or_default(), name)
    }

    /// Returns the names of the existing worlds, the first one first.
    pub fn worlds(&self) -> Vec<String> {
        let figures = self.first.shared().worlds().figures();
        figures.into_iter().map(|world| world.name.as_str().to_owned()).collect()
    }

    /// Makes its worlds keep journals from their start.
    pub(super) fn keep_journals(&self) {
        self.first.shared().worlds().keep_journals();
    }

    /// Returns all existing worlds, the first one first.
    pub(super) fn all(&self) -> impl Iterator<Item = World> {
        self.first.shared().worlds().all().into_iter().map(|shared| self.first.beside(shared))
    }

    /// Ends a world and closes the connections of its clients. The next client to enter this name gets a new world.
    ///
    /// # Errors
    /// [`CallError::Refused`]: no world has this name, or it is the first one.
    pub fn drop_world(&self, name: &str) -> Result<(), CallError> {
        let name = WorldName::parse(name.as_bytes()).map_err(refused)?;
        self.first.shared().worlds().end(&name).map_err(refused)
    }

    /// Makes new worlds start empty, and no longer from the template of [`World::make_template`].
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
        // With save points the data are saved first; where that fails, the server ends all the same.
        if !shared.saves_at_end() || !shared.save_and_stop(ShutdownOptions::default()) {
            shared.stop();
        }
        // A direct client that is blocked would wait for ever.
        shared.notify_all(WakeFlag::Close);
        shared.worlds().notify_all(WakeFlag::Close);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the panic was reported where it happened.
            drop(thread.join());
        }
        #[cfg(feature = "page")]
        if let Some(page) = self.page.take() {
            page.join();
        }
    }
}

fn no_address() -> std::io::Error {
    std::io::Error::other("there is no address to listen on")
}
