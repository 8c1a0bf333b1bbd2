//! Waits for the first of two futures. It is all that the server needs of `tokio::select!`, whose procedural macro
//! would be built with every program that embeds a server.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Polls both futures until one of them is ready, `first` before `second`. They stay where the caller has pinned them,
/// so the wait takes no room beside them.
pub(super) fn first_of<T>(
    mut first: Pin<&mut impl Future<Output = T>>,
    mut second: Pin<&mut impl Future<Output = T>>,
) -> impl Future<Output = T> {
    poll_fn(move |context| match first.as_mut().poll(context) {
        Poll::Pending => second.as_mut().poll(context),
        ready => ready,
    })
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn polled<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_future_that_is_ready_ends_the_wait_and_the_first_one_if_both_are() {
        assert_eq!(polled(first_of(pin!(pending()), pin!(ready(2)))), Poll::Ready(2));
        assert_eq!(polled(first_of(pin!(ready(1)), pin!(pending()))), Poll::Ready(1));
        assert_eq!(polled(first_of(pin!(ready(1)), pin!(ready(2)))), Poll::Ready(1));
        assert_eq!(polled(first_of(pin!(pending::<u8>()), pin!(pending()))), Poll::Pending);
    }
}
