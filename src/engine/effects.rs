//! Effects: what a command wants done outside the engine.
//!
//! The engine cannot close a socket, free memory on another thread or end the process. It records the effect here, and
//! the server carries it out after each request or tick, while it still holds the engine's lock. An effect that nobody
//! carries out changes nothing inside, so the engine stays deterministic.

use crate::engine::{LogLevel, Now, SessionId, Template};
use crate::keyspace::LazyFree;

/// Wishes, in the order in which they came up.
#[derive(Debug, Default)]
pub struct Effects {
    wishes: Vec<Effect>,
}

/// One wish.
#[derive(Debug)]
pub enum Effect {
    /// End that session's connection once its replies are sent (CLIENT KILL).
    Close(SessionId),
    /// End that session's connection at once, and say in the log why: it does not read what waits for it
    /// ([`crate::engine::Engine::close_log_line`]).
    CutOff(SessionId),
    /// Fetch what that session is to be told ([`crate::engine::PushQueue`]).
    Wake(SessionId),
    /// Let connections go on that a pause holds (CLIENT UNPAUSE).
    Resume,
    /// Keep everyone waiting for so many microseconds (DEBUG SLEEP).
    Stall(u64),
    /// Change what the clock shows, or how fast it runs (DUNLIN).
    Clock(ClockOrder),
    /// End the process (SHUTDOWN).
    Shutdown,
    /// A parameter changed that the server acts on (CONFIG SET); its name.
    Setting(&'static str),
    /// Free this somewhere else: it is large.
    Free(LazyFree),
    /// Have worlds that are made from now on begin with this, or with nothing (DUNLIN TEMPLATE).
    Template(Option<Box<Template>>),
    /// Write this line into the server's log (DEBUG LOG, `redis.log`).
    Log(LogLevel, String),
    /// A key changed, in the words of keyspace notifications. Recorded only while
    /// [`crate::engine::Switches::records_key_events`] is on.
    KeyEvent {
        /// The database.
        database: usize,
        /// What happened, such as `zadd`.
        name: &'static str,
        /// To which key.
        key: Vec<u8>,
    },
}

/// What a clock is told to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockOrder {
    /// Show that moment, unless it shows a later one; what falls due on the way happens first.
    Reach(Now),
    /// Show that moment; nothing happens on the way.
    Set(Now),
    /// Go on so many times as fast as time passes; at 0 it stands still.
    Speed(f64),
}

impl Effects {
    /// Adds a wish.
    pub fn push(&mut self, wish: Effect) {
        self.wishes.push(wish);
    }

    /// True when there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.wishes.is_empty()
    }

    /// Takes all wishes.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wishes)
    }
}
