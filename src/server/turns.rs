//! How often the event loops turn, and how long they take for it, for INFO.
//!
//! A turn is all that a loop does from waking up until it has nothing to do. It is counted when the loop goes to sleep,
//! which costs two looks at the clock beside the system calls that sleeping and waking are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Builder;

use super::clock::monotonic_ns;
use crate::engine::host;

/// The turns of all event loops of a server.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    count: AtomicU64,
    busy_ns: AtomicU64,
}

impl Turns {
    /// Has the turns of a loop be counted.
    pub(crate) fn count(self: &Arc<Turns>, event_loop: &mut Builder) {
        let began_ns = Arc::new(AtomicU64::new(monotonic_ns()));
        let (turns, woken) = (Arc::clone(self), Arc::clone(&began_ns));
        event_loop.on_thread_unpark(move || woken.store(monotonic_ns(), Ordering::Relaxed));
        event_loop.on_thread_park(move || turns.add(monotonic_ns().saturating_sub(began_ns.load(Ordering::Relaxed))));
    }

    fn add(&self, busy_ns: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
    }

    /// All so far.
    pub(crate) fn so_far(&self) -> host::Turns {
        host::Turns { count: self.count.load(Ordering::Relaxed), busy_us: self.busy_ns.load(Ordering::Relaxed) / 1000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_goes_from_waking_up_to_falling_asleep() {
        let turns = Arc::new(Turns::default());
        let mut builder = Builder::new_current_thread();
        turns.count(builder.enable_time());
        let runtime = builder.build().expect("it can be built");
        let before = turns.so_far();
        runtime.block_on(async {
            for _ in 0..3 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        });
        let turned = turns.so_far().since(before);
        assert!(turned.count >= 3, "{turned:?}");
    }
}
