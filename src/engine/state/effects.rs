//! Effects: actions outside the engine that a command requests.
//!
//! The engine cannot close a socket, free memory on another thread or end the process. It records the effect here, and
//! the server carries it out after each request or tick, while it still holds the engine's lock. An effect that is not
//! carried out changes nothing in the engine, so the engine stays deterministic.
//!
//! The stream of changes ([`Propagation`]) is here, too: the server writes it to a file.

use std::time::Duration;

use crate::engine::spec::Now;
use crate::engine::state::{Checkpoint, Lazy, LogLevel, NodeMessage, Propagation, SessionId, Template};
use crate::keyspace::LazyFree;

/// A list of effects, in the order in which they were requested.
#[derive(Debug, Default)]
pub struct Effects {
    list: Vec<Effect>,
    /// The commands that repeat the changes of the data, while a log of changes is kept.
    pub propagation: Lazy<Propagation>,
}

/// A save on a thread. A SAVE may be in progress beside a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundSave {
    /// The RDB file is written, from the checkpoint of this number.
    Dump(u64),
    /// The append-only file is rewritten, for the time of this number.
    Rewrite(u64),
}

/// An action that the server carries out.
#[derive(Debug)]
pub enum Effect {
    /// Close that session's connection (CLIENT KILL): at once, or, if it is the caller's own, after its replies.
    Close(SessionId),
    /// Close that session's connection at once, and log the reason: it does not read its output
    /// ([`crate::engine::exec::delivery::close_log_line`]).
    CutOff(SessionId),
    /// Wake that session's connection to take its queued pushes ([`crate::engine::PushQueue`]).
    Wake(SessionId),
    /// Resume the connections that a pause holds back (CLIENT UNPAUSE).
    Resume,
    /// Make all clients wait for this number of microseconds (DEBUG SLEEP).
    Stall(u64),
    /// Keep what this node of a cluster and the others send to each other until its sleep ends (DEBUG SLEEP).
    Sleep,
    /// Set the clock, or its speed (DUNLIN).
    Clock(ClockOrder),
    /// End the process (SHUTDOWN).
    Shutdown,
    /// Write this checkpoint to the RDB file, on a thread, then call [`crate::engine::Engine::end_save`] (SAVE,
    /// BGSAVE).
    Save(Box<Checkpoint>),
    /// Stop this save: nobody needs its file any more.
    StopSave(BackgroundSave),
    /// Rewrite the append-only file, on a thread: make its next file, take the base
    /// ([`crate::engine::exec::aof::take_base`]) and write it, then call [`crate::engine::exec::aof::end_rewrite`] with
    /// this number (BGREWRITEAOF).
    Rewrite(u64),
    /// Take the base that a rewrite waits for: no script is suspended any more
    /// ([`crate::engine::exec::aof::may_take_base`]).
    TakeBase,
    /// Sync the append-only file, or try again to write it.
    SyncAof,
    /// Write and close the append-only file, then call [`crate::engine::exec::aof::end`].
    EndAof,
    /// Apply a changed parameter of that name (CONFIG SET).
    Setting(&'static str),
    /// Send this to the other nodes of the cluster, of which it may concern only some.
    SendToNodes(Box<NodeMessage>),
    /// Free this large value on another thread.
    Free(LazyFree),
    /// Start new worlds from this template, or empty without one (DUNLIN TEMPLATE).
    Template(Option<Box<Template>>),
    /// Write this line into the server's log (DEBUG LOG, `redis.log`).
    Log(LogLevel, String),
    /// A key changed, in the words of keyspace notifications. Recorded only while
    /// [`crate::engine::Switches::records_key_events`] is on.
    KeyEvent {
        /// The database.
        database: usize,
        /// The name of the event, such as `zadd`.
        name: &'static str,
        /// The key that changed.
        key: Vec<u8>,
    },
}

/// A change of the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockOrder {
    /// Advance to that moment, unless the clock shows a later one; what falls due on the way happens first.
    Reach(Now),
    /// Jump to that moment; nothing happens on the way.
    Set(Now),
    /// Run at this multiple of real time; 0 stops the clock.
    Speed(f64),
}

/// How far the clock is to be moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// By that much.
    By(Duration),
    /// To that moment, unless it is past.
    To(Now),
    /// To the next moment at which something falls due.
    ToNext,
}

impl Effects {
    /// Adds an effect.
    pub fn push(&mut self, wish: Effect) {
        self.list.push(wish);
    }

    /// Adds an effect before those that there are.
    pub fn push_first(&mut self, wish: Effect) {
        self.list.insert(0, wish);
    }

    /// True when the list is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes all effects, and leaves the list empty.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.list)
    }
}
