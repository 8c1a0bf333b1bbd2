//! The TCP listeners: opened at the start, and replaced when `port` or `bind` are set while the server runs.
//!
//! A listener owns its socket, and a task on the first event loop accepts from it. The task upgrades a weak pointer
//! only while it polls, so closing a listener frees its port at once, and other addresses of the same port can be
//! opened. Clients that connected through it stay.
//!
//! Lock order: the engine's before the listeners'.

use std::io;
use std::mem;
use std::sync::{Arc, Weak};
use std::thread;

use parking_lot::Mutex;
use socket2::Socket;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tracing::warn;

use super::listen::{self, Acceptor};
use crate::engine::Settings;

/// All TCP listeners of one server.
#[derive(Debug)]
pub(crate) struct Listeners {
    event_loop: Handle,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    listeners: Vec<Listener>,
    /// Sockets that keep the port from others while there are no listeners.
    reserved: Vec<Socket>,
    /// Takes the accepted clients; `None` before the server serves and after it has ended.
    acceptor: Option<Arc<Acceptor>>,
}

#[derive(Debug)]
struct Listener {
    socket: Arc<TcpListener>,
    accepting: Option<AbortHandle>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.iter().for_each(AbortHandle::abort);
    }
}

impl Listeners {
    /// Registers listening sockets with an event loop. Clients that connect wait in the sockets' queues until
    /// [`Listeners::accept_into`] is called.
    ///
    /// # Errors
    /// When a socket cannot be registered with the event loop.
    pub(crate) fn new(sockets: Vec<std::net::TcpListener>, event_loop: Handle) -> io::Result<Listeners> {
        let listeners = Listeners { event_loop, open: Mutex::default() };
        listeners.open.lock().listeners = listeners.registered(sockets)?;
        Ok(listeners)
    }

    fn registered(&self, sockets: Vec<std::net::TcpListener>) -> io::Result<Vec<Listener>> {
        let _entered = self.event_loop.enter();
        let listener = |socket| Ok(Listener { socket: Arc::new(TcpListener::from_std(socket)?), accepting: None });
        sockets.into_iter().map(listener).collect()
    }

    /// Starts accepting clients and handing them to `acceptor`.
    pub(crate) fn accept_into(&self, acceptor: &Arc<Acceptor>) {
        let mut open = self.open.lock();
        open.acceptor = Some(Arc::clone(acceptor));
        self.start_accepting(&mut open);
    }

    fn start_accepting(&self, open: &mut Open) {
        let Some(acceptor) = &open.acceptor else { return };
        for listener in &mut open.listeners {
            let accept = listen::accept_tcp(Arc::downgrade(&listener.socket), Arc::clone(acceptor));
            listener.accepting = Some(self.event_loop.spawn(accept).abort_handle());
        }
    }

    /// Closes all listeners for good.
    pub(crate) fn close(&self) {
        *self.open.lock() = Open::default();
    }

    /// Replaces the listeners of the settings `before` by those of `after`. Returns false when the new ones cannot be
    /// opened; the old ones are kept then.
    pub(crate) fn change(&self, before: &Settings, after: &Settings) -> bool {
        let mut open = self.open.lock();
        if before.port == after.port {
            // On the same port, an open listener may block a new one (`*` and 127.0.0.1 overlap), so close first.
            close(&mut open.listeners);
            let opened = self.opened(after).inspect_err(warn_of_old_listeners);
            let is_changed = opened.is_ok();
            open.listeners = opened.or_else(|_| self.opened(before)).unwrap_or_else(|error| {
                warn!("cannot open the former listeners again: {error}");
                Vec::new()
            });
            self.start_accepting(&mut open);
            return is_changed;
        }
        let Ok(listeners) = self.opened(after).inspect_err(warn_of_old_listeners) else { return false };
        // The reply means that nobody can connect to the old port any more.
        close(&mut open.listeners);
        open.listeners = listeners;
        self.start_accepting(&mut open);
        true
    }

    /// Closes all listeners until [`Listeners::resume`]; returns when nobody can connect. Their port, which `settings`
    /// have, is kept from others.
    pub(crate) fn suspend(&self, settings: &Settings) {
        let mut open = self.open.lock();
        close(&mut open.listeners);
        // Another process may have taken the port just now; it may be free again when it is needed.
        open.reserved = listen::reserve_tcp(settings).unwrap_or_default();
    }

    /// Listens again, where `settings` say, unless this is already so.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    pub(crate) fn resume(&self, settings: &Settings) -> io::Result<()> {
        let mut open = self.open.lock();
        if open.listeners.is_empty() {
            let reserved = mem::take(&mut open.reserved);
            open.listeners = if reserved.is_empty() {
                self.opened(settings)?
            } else {
                listen::listen_on(reserved, settings).and_then(|sockets| self.registered(sockets))?
            };
            self.start_accepting(&mut open);
        }
        Ok(())
    }

    fn opened(&self, settings: &Settings) -> io::Result<Vec<Listener>> {
        let sockets = if settings.port == 0 { Ok(Vec::new()) } else { listen::open_tcp(settings) };
        sockets.and_then(|sockets| self.registered(sockets))
    }
}

fn warn_of_old_listeners(error: &io::Error) {
    warn!("cannot rebind, keeping the current listeners: {error}");
}

/// Closes listeners, and returns when their ports are free.
fn close(listeners: &mut Vec<Listener>) {
    let sockets: Vec<Weak<TcpListener>> = listeners.iter().map(|listener| Arc::downgrade(&listener.socket)).collect();
    listeners.clear();
    // The accept task may run on another thread and holds the socket while it polls.
    while sockets.iter().any(|socket| socket.strong_count() > 0) {
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;
    use tokio::runtime::Builder;

    /// A change of `port` waits for the accept task, which may be polling the old socket on another thread.
    #[test]
    fn the_old_socket_is_closed_when_the_port_has_changed() {
        let runtime = Builder::new_current_thread().enable_io().build().expect("there is an event loop");
        let bound = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
        bound.set_nonblocking(true).expect("a socket has modes");
        let before = Settings { port: bound.local_addr().expect("it is bound").port(), ..Settings::default() };
        let listeners = Listeners::new(vec![bound], runtime.handle().clone()).expect("it is registered");
        let polled = Arc::clone(&listeners.open.lock().listeners[0].socket);
        let old = Arc::downgrade(&polled);
        thread::scope(|scope| {
            scope.spawn(move || {
                (0..1000).for_each(|_| thread::yield_now());
                drop(polled);
            });
            assert!(listeners.change(&before, &Settings { port: 0, ..before.clone() }));
            assert_eq!(old.strong_count(), 0, "the port is free");
        });
    }

    #[test]
    fn a_port_is_kept_from_others_while_nobody_can_connect() {
        let runtime = Builder::new_current_thread().enable_io().build().expect("there is an event loop");
        let mut settings = Settings { port: 0, ..Settings::default() };
        let sockets = listen::open_tcp(&settings).expect("there is a port");
        let address = sockets[0].local_addr().expect("it is bound");
        settings.port = address.port();
        let listeners = Listeners::new(sockets, runtime.handle().clone()).expect("it is registered");
        for _ in 0..3 {
            let client = TcpStream::connect(address).expect("it listens");
            listeners.suspend(&settings);
            let refused = TcpStream::connect(address).expect_err("nobody listens");
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            let taken = std::net::TcpListener::bind(address).expect_err("it is bound");
            assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
            assert!(listen::open_tcp(&settings).is_err(), "nor can one that reuses addresses");
            listeners.resume(&settings).expect("the port is kept");
            drop(client);
        }
    }
}
