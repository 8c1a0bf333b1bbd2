//! The reaper: a thread that frees what is large, so that no client waits for it.
//!
//! It is started when there is something for it to do the first time, and ends with the server.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::keyspace::Trash;

/// Frees large values on a thread of its own.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    inbox: OnceLock<Sender<Trash>>,
}

impl Reaper {
    /// Frees `trash` soon. Where no thread can be started it is freed here.
    pub(crate) fn free(&self, trash: Trash) {
        drop(self.inbox.get_or_init(start).send(trash));
    }
}

fn start() -> Sender<Trash> {
    let (inbox, arrivals) = channel();
    // Without a thread the other end is dropped at once, and sending hands the trash back to be dropped by the sender.
    drop(thread::Builder::new().name("dunlin-reaper".to_owned()).spawn(move || arrivals.into_iter().for_each(drop)));
    inbox
}
