//! The doors for TCP clients: listening sockets, opened at the start, and others in their place when `port` or `bind`
//! are set while the server runs.
//!
//! A door is a socket that stands here, and a task on the first event loop that lets clients in. The task has the
//! socket only while it asks it, so a door that is closed gives its port back at once: other addresses of the same port
//! can be opened in its place. Clients who came through it stay.
//!
//! Lock order: the engine's before the doors'.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tracing::warn;

use super::listen::{self, Hall};
use crate::engine::Settings;

/// All TCP doors of one server.
#[derive(Debug)]
pub(crate) struct Doors {
    event_loop: Handle,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    doors: Vec<Door>,
    /// Where clients go who are let in; none before the server serves, and after.
    hall: Option<Arc<Hall>>,
}

#[derive(Debug)]
struct Door {
    listener: Arc<TcpListener>,
    accepting: Option<AbortHandle>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.accepting.iter().for_each(AbortHandle::abort);
    }
}

impl Doors {
    /// Doors of sockets that listen, on that event loop. Who comes waits before them until
    /// [`Doors::admit_to`] is called.
    ///
    /// # Errors
    /// When the event loop cannot take a socket.
    pub(crate) fn new(listeners: Vec<std::net::TcpListener>, event_loop: Handle) -> io::Result<Doors> {
        let doors = Doors { event_loop, open: Mutex::default() };
        doors.open.lock().doors = doors.made_of(listeners)?;
        Ok(doors)
    }

    fn made_of(&self, listeners: Vec<std::net::TcpListener>) -> io::Result<Vec<Door>> {
        let _entered = self.event_loop.enter();
        let door = |listener| Ok(Door { listener: Arc::new(TcpListener::from_std(listener)?), accepting: None });
        listeners.into_iter().map(door).collect()
    }

    /// Lets clients into that hall from now on.
    pub(crate) fn admit_to(&self, hall: &Arc<Hall>) {
        let mut open = self.open.lock();
        open.hall = Some(Arc::clone(hall));
        self.attend(&mut open);
    }

    fn attend(&self, open: &mut Open) {
        let Some(hall) = &open.hall else { return };
        for door in &mut open.doors {
            let accept = listen::accept_tcp(Arc::downgrade(&door.listener), Arc::clone(hall));
            door.accepting = Some(self.event_loop.spawn(accept).abort_handle());
        }
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        *self.open.lock() = Open::default();
    }

    /// Opens the doors that `after` asks for, and closes those that `before` did. False when that cannot
    /// be: the doors are as they were.
    pub(crate) fn change(&self, before: &Settings, after: &Settings) -> bool {
        let mut open = self.open.lock();
        if before.port == after.port {
            // What stands open may be in the way of what is to be.
            close(&mut open.doors);
            let opened = self.opened(after);
            let is_changed = opened.is_ok();
            open.doors = opened.or_else(|_| self.opened(before)).unwrap_or_default();
            self.attend(&mut open);
            return is_changed;
        }
        let Ok(doors) = self.opened(after) else { return false };
        open.doors = doors;
        self.attend(&mut open);
        true
    }

    fn opened(&self, settings: &Settings) -> io::Result<Vec<Door>> {
        let listeners = if settings.port == 0 { Ok(Vec::new()) } else { listen::open_tcp(settings) };
        let doors = listeners.and_then(|listeners| self.made_of(listeners));
        doors.inspect_err(|error| warn!("the doors stay as they are: {error}"))
    }
}

/// Closes doors, and returns when their ports are free.
fn close(doors: &mut Vec<Door>) {
    let sockets: Vec<Weak<TcpListener>> = doors.iter().map(|door| Arc::downgrade(&door.listener)).collect();
    doors.clear();
    // A task on another thread may have one for the length of a look.
    while sockets.iter().any(|socket| socket.strong_count() > 0) {
        thread::yield_now();
    }
}
