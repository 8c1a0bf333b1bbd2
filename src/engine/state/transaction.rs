//! MULTI: the requests that a session has queued, and their combined flags.

use crate::engine::spec::Flags;
use crate::resp::{Request, Requests};

/// A transaction that was begun and not yet run.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The queued requests.
    pub queue: Requests,
    /// The flags of all commands in it.
    pub flags: Flags,
    /// A request was refused, so it can only be discarded.
    pub is_faulty: bool,
}

impl Transaction {
    /// A transaction without requests.
    pub fn begin() -> Transaction {
        Transaction { queue: Requests::default(), flags: Flags::NONE, is_faulty: false }
    }

    /// Queues a request of a command with these flags.
    pub fn queue(&mut self, request: Request<'_>, flags: Flags) {
        self.flags = self.flags.and(flags);
        self.queue.push(request);
    }
}
