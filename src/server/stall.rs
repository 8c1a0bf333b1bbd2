//! The stall of DEBUG SLEEP: no client is served for a while.

use std::time::Duration;

use super::clock::later;
use super::shared::Shared;
use crate::engine::Engine;

/// The most time that a stall continues once the server is asked to end.
const STALL_PART: Duration = Duration::from_millis(50);

impl Shared {
    /// Blocks all clients for `length` (DEBUG SLEEP), at a server that is no node of a cluster. A frozen clock is
    /// advanced instead, without sleeping.
    pub(super) fn stall(&self, engine: &mut Engine, length: Duration) {
        if self.clock().is_frozen() {
            self.move_engine_to(engine, later(self.clock().now(), length));
        } else {
            self.sleep(length);
        }
    }

    /// Sleeps in short parts, so that a server that is asked to end does.
    fn sleep(&self, length: Duration) {
        let mut rest = length;
        while !rest.is_zero() && !self.is_ending() {
            let part = rest.min(STALL_PART);
            #[expect(
                clippy::disallowed_methods,
                reason = "DEBUG SLEEP is there to make a server that does not answer"
            )]
            std::thread::sleep(part);
            rest -= part;
        }
    }
}
