//! The reaper: a thread that frees what is large, so that no client waits for it.
//!
//! It is started when there is something for it to do the first time, and ends with the server.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::contain::contain;
use super::processors;
use crate::keyspace::Trash;

/// Frees large values on a thread of its own.
#[derive(Debug)]
pub(crate) struct Reaper {
    inbox: OnceLock<Sender<Trash>>,
    processors: String,
}

impl Reaper {
    /// One that works on the processors of that list.
    pub(crate) fn on(processors: &str) -> Reaper {
        Reaper { inbox: OnceLock::new(), processors: processors.to_owned() }
    }

    /// Frees `trash` soon. Where no thread can be started it is freed here.
    pub(crate) fn free(&self, trash: Trash) {
        drop(self.inbox.get_or_init(|| start(self.processors.clone())).send(trash));
    }
}

fn start(processors: String) -> Sender<Trash> {
    let (inbox, arrivals) = channel();
    let run = move || {
        processors::keep_beside(&processors);
        for trash in arrivals {
            contain("the reaper", || drop(trash));
        }
    };
    // Without a thread the other end is dropped at once, and sending hands the trash back to be dropped by the sender.
    drop(thread::Builder::new().name("dunlin-reaper".to_owned()).spawn(run));
    inbox
}
