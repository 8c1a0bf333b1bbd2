//! Lazy freeing: a thread that frees what is large, so that no client waits for it.
//!
//! It is started when there is something for it to do the first time, and ends with the server.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::contain::contain;
use super::processors;
use crate::keyspace::LazyFree;

/// Frees large values on a thread of its own.
#[derive(Debug)]
pub(crate) struct LazyFreeThread {
    inbox: OnceLock<Sender<LazyFree>>,
    processors: String,
}

impl LazyFreeThread {
    /// One that works on the processors of that list.
    pub(crate) fn on(processors: &str) -> LazyFreeThread {
        LazyFreeThread { inbox: OnceLock::new(), processors: processors.to_owned() }
    }

    /// Frees `lazy_free` soon. Where no thread can be started it is freed here.
    pub(crate) fn free(&self, lazy_free: LazyFree) {
        drop(self.inbox.get_or_init(|| start(self.processors.clone())).send(lazy_free));
    }
}

fn start(processors: String) -> Sender<LazyFree> {
    let (inbox, arrivals) = channel();
    let run = move || {
        processors::keep_beside(&processors);
        for lazy_free in arrivals {
            contain("the reaper", || drop(lazy_free));
        }
    };
    // Without a thread the other end is dropped at once, and sending hands the value back to be dropped by the sender.
    drop(thread::Builder::new().name("dunlin-reaper".to_owned()).spawn(run));
    inbox
}
