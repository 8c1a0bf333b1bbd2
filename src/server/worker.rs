//! A thread beside the event loops that carries out orders, one after the other, so that no client waits for them.
//!
//! It starts with the first order, and ends with the server.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use parking_lot::Mutex;

use super::processors;

/// Carries out orders on a thread of its own.
#[derive(Debug)]
pub(super) struct Worker<T> {
    /// `None` while no thread runs.
    inbox: Mutex<Option<Sender<T>>>,
    name: &'static str,
    processors: String,
    carry_out: fn(T),
}

impl<T: Send + 'static> Worker<T> {
    /// Makes a worker whose thread gets this name and runs on the processors of a list. The thread ends if `carry_out`
    /// panics.
    pub(super) fn new(name: &'static str, processors: &str, carry_out: fn(T)) -> Worker<T> {
        Worker { inbox: Mutex::new(None), name, processors: processors.to_owned(), carry_out }
    }

    /// Sends an order to the thread. If no thread can be started, it is carried out here.
    pub(super) fn send(&self, order: T) {
        let mut inbox = self.inbox.lock();
        if let Err(returned) = inbox.get_or_insert_with(|| self.start()).send(order) {
            // The next order tries to start a thread again.
            *inbox = None;
            drop(inbox);
            (self.carry_out)(returned.0);
        }
    }

    fn start(&self) -> Sender<T> {
        let (inbox, orders) = channel();
        let (processors, carry_out) = (self.processors.clone(), self.carry_out);
        let run = move || {
            processors::pin_background_thread(&processors);
            orders.into_iter().for_each(carry_out);
        };
        // If no thread starts, the receiver is dropped at once, and sending returns the order.
        drop(thread::Builder::new().name(self.name.to_owned()).spawn(run));
        inbox
    }
}
