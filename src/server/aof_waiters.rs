//! The connections whose replies wait for the append-only file.
//!
//! Waking a task from another thread is a system call, and a sync releases the replies of many connections at once. So
//! the thread wakes each event loop once, with a task that wakes the connections there.

use std::collections::HashMap;
use std::task::Waker;

use tokio::runtime::Handle;

/// The connections that wait, each once, by the address of its task.
#[derive(Debug, Default)]
pub(super) struct Waiters(HashMap<usize, Waiter>);

/// A connection that waits for the stream up to an offset.
#[derive(Debug)]
pub(super) struct Waiter {
    offset: u64,
    waker: Waker,
    event_loop: Handle,
}

impl Waiters {
    /// Adds the connection of the task that runs now. It may ask again before it is woken, as often as its client sends
    /// something.
    pub(super) fn add(&mut self, offset: u64, waker: &Waker) {
        let waiter = Waiter { offset, waker: waker.clone(), event_loop: Handle::current() };
        self.0.insert(waker.data().addr(), waiter);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes those that wait for no more than the stream up to `offset`.
    #[must_use = "they are to be woken"]
    pub(super) fn take(&mut self, offset: u64) -> Vec<Waiter> {
        self.0.extract_if(|_, waiter| waiter.offset <= offset).map(|(_, waiter)| waiter).collect()
    }
}

/// Wakes connections.
pub(super) fn wake(mut waiters: Vec<Waiter>) {
    let here = Handle::try_current().ok().map(|event_loop| event_loop.id());
    while let Some(first) = waiters.first() {
        let event_loop = first.event_loop.clone();
        let there = event_loop.id();
        let (group, others): (Vec<_>, _) = waiters.into_iter().partition(|waiter| waiter.event_loop.id() == there);
        let wake = move || group.into_iter().for_each(|waiter| waiter.waker.wake());
        if here == Some(there) {
            wake();
        } else {
            // A loop that has ended drops the task; its connections are gone, or have asked again in another loop.
            event_loop.spawn(async move { wake() });
        }
        waiters = others;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Poll;

    use parking_lot::Mutex;
    use tokio::runtime::Builder;
    use tokio::sync::Barrier;

    use super::*;

    /// A gate that the tasks of the test wait for.
    #[derive(Default)]
    struct Gate {
        waiters: Mutex<Waiters>,
        is_open: AtomicBool,
    }

    impl Gate {
        /// Waits as a connection does, which asks again when it is woken.
        async fn pass(&self, offset: u64) {
            poll_fn(|cx| {
                if self.is_open.load(Ordering::SeqCst) {
                    return Poll::Ready(());
                }
                self.waiters.lock().add(offset, cx.waker());
                Poll::Pending
            })
            .await;
        }
    }

    #[test]
    fn a_connection_that_asks_again_waits_once_and_for_what_it_asked_last() {
        let event_loop = Builder::new_current_thread().build().expect("there is memory");
        let mut waiters = Waiters::default();
        event_loop.block_on(poll_fn(|cx| {
            (1..=3).for_each(|offset| waiters.add(offset, cx.waker()));
            Poll::Ready(())
        }));
        assert!(waiters.take(2).is_empty());
        assert_eq!(waiters.take(3).len(), 1);
    }

    #[test]
    fn the_connections_of_several_loops_are_woken_and_an_ended_loop_hinders_none() {
        const TASKS: usize = 20;
        let gate = Arc::new(Gate::default());
        let loops: Vec<_> = (0..3).map(|_| Builder::new_current_thread().build().expect("there is memory")).collect();
        let [one, two, ended] = loops.try_into().expect("there are three");
        let all_wait = Arc::new(Barrier::new(2));
        ended.block_on(async {
            let waits = Arc::clone(&gate);
            tokio::spawn(async move { waits.pass(1).await });
            tokio::task::yield_now().await;
        });
        drop(ended);
        let threads: Vec<_> = [one, two]
            .into_iter()
            .map(|event_loop| {
                let (gate, all_wait) = (Arc::clone(&gate), Arc::clone(&all_wait));
                std::thread::spawn(move || {
                    event_loop.block_on(async move {
                        let wait = |offset| {
                            let gate = Arc::clone(&gate);
                            tokio::spawn(async move { gate.pass(offset).await })
                        };
                        let tasks: Vec<_> = (1..=TASKS as u64).map(wait).collect();
                        tokio::task::yield_now().await;
                        all_wait.wait().await;
                        for task in tasks {
                            task.await.expect("it does not panic");
                        }
                    });
                })
            })
            .collect();
        while gate.waiters.lock().0.len() < 2 * TASKS + 1 {
            std::thread::yield_now();
        }
        gate.is_open.store(true, Ordering::SeqCst);
        let few = gate.waiters.lock().take(TASKS as u64 / 2);
        assert_eq!(few.len(), TASKS + 1);
        wake(few);
        let rest = gate.waiters.lock().take(TASKS as u64);
        wake(rest);
        threads.into_iter().for_each(|thread| thread.join().expect("its tasks have ended"));
        assert!(gate.waiters.lock().is_empty());
    }
}
