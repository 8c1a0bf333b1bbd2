//! Lazy freeing: a thread that frees large values, so that no client waits for it.

use super::contain::contain;
use super::worker::Worker;
use crate::keyspace::LazyFree;

/// Frees large values on a thread of its own.
#[derive(Debug)]
pub(crate) struct LazyFreeThread(Worker<LazyFree>);

impl LazyFreeThread {
    /// Makes one whose thread will run on the processors of a list.
    pub(crate) fn on(processors: &str) -> LazyFreeThread {
        let free = |lazy_free| _ = contain("the lazy-free thread", || drop::<LazyFree>(lazy_free));
        LazyFreeThread(Worker::new("dunlin-lazyfree", processors, free))
    }

    /// Sends `lazy_free` to the thread, which frees it soon.
    pub(crate) fn free(&self, lazy_free: LazyFree) {
        self.0.send(lazy_free);
    }
}
