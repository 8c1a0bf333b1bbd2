//! One world of a server: its name, its port, and its end.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem};

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
    phase: Mutex<WorldPhase>,
    /// The task of its timer and its deliveries.
    task: Mutex<Option<AbortHandle>>,
    /// Its own port, if it has one, and what listens there.
    port: Mutex<Option<(u16, Listeners)>>,
}

/// How far a world is from its end. Each step towards that is made under the lock of the world's engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorldPhase {
    /// Clients may enter.
    Open,
    /// No client may enter until it is known whether the world ends.
    Closing,
    /// No client may enter any more.
    Ended,
}

impl World {
    /// A world of that name, without port and task.
    pub(super) fn of(name: WorldName) -> World {
        World {
            name,
            is_temporary: AtomicBool::new(false),
            phase: Mutex::new(WorldPhase::Open),
            task: Mutex::default(),
            port: Mutex::default(),
        }
    }

    /// Stores the task of this world, which is aborted when the world ends.
    pub(super) fn set_task(&self, task: AbortHandle) {
        *self.task.lock() = Some(task);
    }

    /// Whether clients may enter: the world has not ended and is not about to.
    pub(crate) fn is_open(&self) -> bool {
        *self.phase.lock() == WorldPhase::Open
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
        self.change_phase(WorldPhase::Closing, WorldPhase::Open);
    }

    /// Changes the phase if it is `from`; returns whether it was.
    fn change_phase(&self, from: WorldPhase, to: WorldPhase) -> bool {
        let mut phase = self.phase.lock();
        let is_there = *phase == from;
        if is_there {
            *phase = to;
        }
        is_there
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.is_temporary.load(Ordering::Acquire)
    }

    /// Opens the port of this world, which `shared` is, where `settings` say, unless it is open; `None` if no client
    /// may enter.
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
        if !self.is_open() {
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
    /// When a socket cannot be registered with the event loop, or no client may enter any more.
    pub(super) fn accept(
        &self,
        shared: &Arc<Shared>,
        sockets: Vec<TcpListener>,
        config: &WorldConfig,
    ) -> io::Result<()> {
        let mut own = self.port.lock();
        if !self.is_open() {
            return Err(io::Error::other("the node has ended"));
        }
        *own = Some(opened(shared, sockets, config)?);
        Ok(())
    }

    /// Closes the port of this world. Clients that came through it stay.
    pub(super) fn close_port(&self) {
        if let Some((_, listeners)) = self.port.lock().take() {
            listeners.close();
        }
    }
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

    /// The port of this world, 0 for none; that of the first world is the one that it started with, and each node of a
    /// cluster has its own.
    pub(super) fn port(&self) -> u16 {
        let start = self.worlds().settings_at_start().port;
        match self.world() {
            Some(world) if self.membership().is_none() => world.port.lock().as_ref().map_or(0, |(port, _)| *port),
            _ => self.membership().map_or(start, |own| own.port),
        }
    }

    /// Calls `act` with the listeners of this world, if it has a port.
    pub(super) fn with_listeners<R>(&self, act: impl FnOnce(&Listeners) -> R) -> Option<R> {
        match self.world() {
            Some(world) => world.port.lock().as_ref().map(|(_, listeners)| act(listeners)),
            None => self.worlds().first_listeners().map(|listeners| act(listeners)),
        }
    }

    /// Whether clients may enter this world; always, if it is the first one.
    pub(crate) fn is_open(&self) -> bool {
        self.world().is_none_or(World::is_open)
    }

    /// Ends this world if it is temporary and has no clients.
    pub(super) fn end_if_left(&self, engine: &mut Engine) {
        match self.world().filter(|world| world.is_temporary() && engine.sessions.clients_of_users() == 0) {
            Some(_) if self.membership().is_some() => self.end_nodes_if_left(),
            Some(_) => self.end_world(engine),
            None => {}
        }
    }

    /// Ends this world and its clients' connections; does nothing to the first world.
    pub(super) fn end_world(&self, engine: &mut Engine) {
        let Some(world) = self.world() else { return };
        if mem::replace(&mut *world.phase.lock(), WorldPhase::Ended) != WorldPhase::Ended {
            self.worlds().keep_findings(engine);
            self.worlds().forget(self, &world.name);
            world.close_port();
            world.task.lock().take().iter().for_each(AbortHandle::abort);
            self.disconnect_all(engine);
        }
    }

    /// Lets no more clients into this world if it is temporary and has none; returns whether it did.
    pub(super) fn close_if_left(&self, engine: &Engine) -> bool {
        let world = self.world().filter(|world| world.is_temporary() && engine.sessions.clients_of_users() == 0);
        world.is_some_and(|world| world.change_phase(WorldPhase::Open, WorldPhase::Closing))
    }

    /// Ends all connections, and disconnects the in-process clients, which have none.
    pub(super) fn disconnect_all(&self, engine: &mut Engine) {
        self.notify_all(WakeFlag::Close);
        let is_direct = |session: &&Session| session.origin.transport == Transport::Direct;
        let direct: Vec<SessionId> = engine.sessions.iter().filter(is_direct).map(|session| session.id).collect();
        direct.into_iter().for_each(|session| engine.disconnect(session));
    }
}
