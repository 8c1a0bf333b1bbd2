//! One world of a server: its name, its port, and its end.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::listen::{self, Acceptor};
use super::listeners::Listeners;
use super::shared::Shared;
use super::wake_flags::WakeFlag;
use super::worlds::WorldConfig;
use crate::engine::{Engine, Session, SessionId, Settings, Transport, WorldName};

/// The part of a [`Shared`] that only worlds beside the first have.
#[derive(Debug)]
pub(crate) struct World {
    name: WorldName,
    /// Whether it ends when its last client leaves.
    is_temporary: AtomicBool,
    /// Whether it has ended: no client can enter any more. Set under its engine's lock.
    has_ended: AtomicBool,
    /// Whether no client can enter until it is known whether it ends. Set under its engine's lock.
    is_closing: AtomicBool,
    /// The task of its timer and its deliveries.
    task: Mutex<Option<AbortHandle>>,
    /// Its own port, if it has one, and what listens there.
    port: Mutex<Option<(u16, Listeners)>>,
}

impl World {
    /// A world of that name, without port and task.
    pub(super) fn of(name: WorldName) -> World {
        World {
            name,
            is_temporary: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            task: Mutex::default(),
            port: Mutex::default(),
        }
    }

    /// Keeps the task that ends with it.
    pub(super) fn keep(&self, task: AbortHandle) {
        *self.task.lock() = Some(task);
    }

    /// Whether the world has ended, or is about to: no client can enter.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire) || self.is_closing.load(Ordering::Acquire)
    }

    /// The name of the world.
    pub(crate) fn name(&self) -> &WorldName {
        &self.name
    }

    /// Makes the world end when its last client leaves.
    pub(super) fn make_temporary(&self) {
        self.is_temporary.store(true, Ordering::Release);
    }

    /// Lets clients in again, unless it has ended meanwhile.
    pub(super) fn reopen(&self) {
        self.is_closing.store(false, Ordering::Release);
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.is_temporary.load(Ordering::Acquire)
    }

    /// Opens the port of this world, which `shared` is, where `settings` say, unless it is open; `None` if the world
    /// has ended.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    pub(super) fn listen(
        &self,
        shared: &Arc<Shared>,
        settings: &Settings,
        config: &WorldConfig,
    ) -> io::Result<Option<u16>> {
        let mut own = self.port.lock();
        if self.has_ended() {
            return Ok(None);
        }
        if let Some((port, _)) = &*own {
            return Ok(Some(*port));
        }
        let opened = opened(shared, listen::open_tcp(settings)?, config)?;
        let port = opened.0;
        *own = Some(opened);
        Ok(Some(port))
    }

    /// Whether it has a port of its own.
    pub(super) fn has_port(&self) -> bool {
        self.port.lock().is_some()
    }

    /// Accepts clients from sockets that are open already.
    ///
    /// # Errors
    /// When a socket cannot be registered with the event loop.
    pub(super) fn accept(
        &self,
        shared: &Arc<Shared>,
        sockets: Vec<TcpListener>,
        config: &WorldConfig,
    ) -> io::Result<()> {
        *self.port.lock() = Some(opened(shared, sockets, config)?);
        Ok(())
    }

    /// Closes the port of this world. Clients that came through it stay.
    pub(super) fn close_port(&self) {
        if let Some((_, listeners)) = self.port.lock().take() {
            listeners.close();
        }
    }
}

/// Whether a world has no clients; the page is none, nor is the primary of a replica.
fn is_left(engine: &Engine) -> bool {
    !engine.sessions.iter().any(|session| session.origin.is_of_user())
}

/// The port of these sockets, and what accepts clients from them into a world.
fn opened(shared: &Arc<Shared>, sockets: Vec<TcpListener>, config: &WorldConfig) -> io::Result<(u16, Listeners)> {
    let port = sockets.first().ok_or_else(|| io::Error::other("'bind' has no address"))?.local_addr()?.port();
    let listeners = Listeners::new(sockets, config.event_loop.clone())?;
    listeners.accept_into(&Arc::new(Acceptor::new(Arc::clone(shared), Arc::clone(&config.loops))));
    Ok((port, listeners))
}

/// The part of a [`Shared`] that concerns it as one of the worlds.
impl Shared {
    /// The name of this world.
    pub(super) fn world_name(&self) -> WorldName {
        self.world().map_or_else(WorldName::first, |world| world.name.clone())
    }

    /// The port of this world, 0 for none; that of the first world is the one that it started with, and the nodes of a
    /// cluster have those that follow.
    pub(super) fn port(&self) -> u16 {
        let start = self.worlds().settings_at_start().port;
        match self.world() {
            Some(world) if self.membership().is_none() => world.port.lock().as_ref().map_or(0, |(port, _)| *port),
            _ => start + self.node_number() as u16,
        }
    }

    /// Does something with what listens for this world, if it has a port.
    pub(super) fn with_listeners<R>(&self, act: impl FnOnce(&Listeners) -> R) -> Option<R> {
        match self.world() {
            Some(world) => world.port.lock().as_ref().map(|(_, listeners)| act(listeners)),
            None => self.worlds().first_listeners().map(|listeners| act(listeners)),
        }
    }

    /// Whether this is a world that has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.world().is_some_and(World::has_ended)
    }

    /// Ends this world if it is temporary and has no clients.
    pub(super) fn end_if_left(&self, engine: &mut Engine) {
        let is_left = is_left(engine);
        match self.world().filter(|world| is_left && world.is_temporary()) {
            Some(_) if self.membership().is_some() => self.end_nodes_if_left(),
            Some(_) => self.end_world(engine),
            None => {}
        }
    }

    /// Ends this world and its clients' connections; does nothing to the first world.
    pub(super) fn end_world(&self, engine: &mut Engine) {
        let Some(world) = self.world() else { return };
        if !world.has_ended.swap(true, Ordering::AcqRel) {
            self.worlds().forget(self, &world.name);
            world.close_port();
            world.task.lock().take().iter().for_each(AbortHandle::abort);
            self.close_all(engine);
        }
    }

    /// Whether this world has no clients.
    pub(super) fn is_left(&self) -> bool {
        is_left(&self.engine())
    }

    /// Lets no more clients into this world if it is temporary and has none; returns whether it did.
    pub(super) fn close_if_left(&self, engine: &Engine) -> bool {
        let world = self.world().filter(|world| world.is_temporary() && is_left(engine));
        world.is_some_and(|world| !world.is_closing.swap(true, Ordering::AcqRel))
    }

    /// Ends all connections, and disconnects the in-process clients, which have none.
    pub(super) fn close_all(&self, engine: &mut Engine) {
        self.notify_all(WakeFlag::Close);
        let is_direct = |session: &&Session| session.origin.transport == Transport::Direct;
        let direct: Vec<SessionId> = engine.sessions.iter().filter(is_direct).map(|session| session.id).collect();
        direct.into_iter().for_each(|session| engine.disconnect(session));
    }
}
