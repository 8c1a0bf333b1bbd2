//! The connections to the page, at most a fixed number. When all places are taken, a new connection replaces the one
//! that has been idle longest: browsers keep idle connections and reopen them silently.
//!
//! A connection is idle while it is not answered: between requests, and while the head of one arrives. One that is
//! answered, or that takes what was sent, keeps its place.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// The time after which a new connection looks again for an idle one, if all are being answered.
const LOOK: Duration = Duration::from_millis(50);

/// The connections that have a place.
#[derive(Debug)]
pub(super) struct Connections {
    open: Mutex<Vec<Arc<Activity>>>,
    most: usize,
    /// Told when a place is free again.
    freed: Notify,
}

/// The activity of a connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    /// Told when the connection has to end.
    end: Notify,
}

#[derive(Debug)]
struct State {
    /// The moment of the last byte that came or went.
    last: Instant,
    /// The number of reasons for which it keeps its place.
    reasons: usize,
    is_ending: bool,
}

/// The place of a connection, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    pub(super) activity: Arc<Activity>,
}

/// A reason for which a connection keeps its place, until it is dropped.
#[derive(Debug)]
pub(super) struct Busy {
    activity: Arc<Activity>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Connections {
        Connections { open: Mutex::default(), most, freed: Notify::new() }
    }

    /// Gives a connection a place, as soon as there is one.
    pub(super) async fn place(self: &Arc<Connections>) -> Place {
        loop {
            if let Some(activity) = self.try_add() {
                return Place { connections: Arc::clone(self), activity };
            }
            self.end_longest_idle();
            // Nobody tells when a connection becomes idle.
            drop(timeout(LOOK, self.freed.notified()).await);
        }
    }

    fn try_add(&self) -> Option<Arc<Activity>> {
        let mut open = self.open.lock();
        if open.len() >= self.most {
            return None;
        }
        let state = State { last: Instant::now(), reasons: 0, is_ending: false };
        let activity = Arc::new(Activity { state: Mutex::new(state), end: Notify::new() });
        open.push(Arc::clone(&activity));
        Some(activity)
    }

    fn end_longest_idle(&self) {
        let open = self.open.lock();
        let idle = open.iter().filter_map(|activity| Some((activity.idle_since()?, activity)));
        if let Some((_, activity)) = idle.min_by_key(|(since, _)| *since) {
            activity.state.lock().is_ending = true;
            activity.end.notify_one();
        }
    }
}

impl Activity {
    /// Notes that bytes came or went.
    pub(super) fn touch(&self) {
        self.state.lock().last = Instant::now();
    }

    /// Keeps the place of the connection for a while, also if it was to end: its next request has come before that.
    pub(super) fn keep(self: &Arc<Activity>) -> Busy {
        let mut state = self.state.lock();
        state.reasons += 1;
        state.is_ending = false;
        drop(state);
        Busy { activity: Arc::clone(self) }
    }

    /// Waits until the connection has to end.
    pub(super) async fn ended(&self) {
        while !self.state.lock().is_ending {
            self.end.notified().await;
        }
    }

    fn idle_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        (state.reasons == 0 && !state.is_ending).then_some(state.last)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.reasons -= 1;
        state.last = Instant::now();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open.lock().retain(|open| !Arc::ptr_eq(open, &self.activity));
        self.connections.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    /// Runs a future on a loop of its own.
    fn run(test: impl Future<Output = ()>) {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.expect("there is a loop").block_on(test);
    }

    #[test]
    fn the_longest_idle_connection_makes_room_for_another_one() {
        run(async {
            let connections = Arc::new(Connections::new(3));
            let [first, second, third] =
                [connections.place().await, connections.place().await, connections.place().await];
            let answered = first.activity.keep();
            third.activity.touch();
            let (place, ()) = tokio::join!(connections.place(), async {
                second.activity.ended().await;
                drop(second);
            });
            drop((place, answered, third));
            assert_eq!(connections.open.lock().len(), 1);
        });
    }

    #[test]
    fn a_connection_whose_request_arrives_as_it_is_to_end_is_answered_and_ends_later() {
        run(async {
            let connections = Arc::new(Connections::new(1));
            let first = connections.place().await;
            connections.end_longest_idle();
            let answered = first.activity.keep();
            let ended = timeout(LOOK, first.activity.ended()).await;
            assert!(ended.is_err(), "it ends while its request is answered");
            drop(answered);
            let (_place, ()) = tokio::join!(connections.place(), async {
                first.activity.ended().await;
                drop(first);
            });
        });
    }

    #[test]
    fn a_connection_that_is_answered_keeps_its_place_until_it_is_idle() {
        run(async {
            let connections = Arc::new(Connections::new(1));
            let first = connections.place().await;
            let answered = first.activity.keep();
            let none = timeout(LOOK * 3, connections.place()).await;
            assert!(none.is_err(), "there is no place");
            drop(answered);
            let (_place, ()) = tokio::join!(connections.place(), async {
                first.activity.ended().await;
                drop(first);
            });
        });
    }
}
