//! Lazy freeing: a thread that frees large values, so that no client waits for it.
//!
//! The thread starts with the first value that it is given, and ends with the server.

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
    /// Makes one whose thread will run on the processors of a list.
    pub(crate) fn on(processors: &str) -> LazyFreeThread {
        LazyFreeThread { inbox: OnceLock::new(), processors: processors.to_owned() }
    }

    /// Sends `lazy_free` to the thread, which frees it soon. If no thread can be started, it is freed here.
    pub(crate) fn free(&self, lazy_free: LazyFree) {
        drop(self.inbox.get_or_init(|| start(self.processors.clone())).send(lazy_free));
    }
}

fn start(processors: String) -> Sender<LazyFree> {
    let (inbox, arrivals) = channel();
    let run = move || {
        processors::keep_beside(&processors);
        for lazy_free in arrivals {
            contain("the lazy-free thread", || drop(lazy_free));
        }
    };
    // If no thread starts, the receiver is dropped at once, and sending returns the value, which the sender drops.
    drop(thread::Builder::new().name("dunlin-lazyfree".to_owned()).spawn(run));
    inbox
}
