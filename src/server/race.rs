//! Waits for the first of two futures. It is all that the server needs of `tokio::select!`, whose procedural macro
//! would be built with every program that embeds a server.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// Polls both futures until one of them is ready, `first` before `second`; the other one is dropped.
pub(super) async fn first_of<T>(first: impl Future<Output = T>, second: impl Future<Output = T>) -> T {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|context| match first.as_mut().poll(context) {
        Poll::Pending => second.as_mut().poll(context),
        ready => ready,
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;

    fn polled<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_future_that_is_ready_ends_the_wait_and_the_first_one_if_both_are() {
        assert_eq!(polled(first_of(pending(), ready(2))), Poll::Ready(2));
        assert_eq!(polled(first_of(ready(1), pending())), Poll::Ready(1));
        assert_eq!(polled(first_of(ready(1), ready(2))), Poll::Ready(1));
        assert_eq!(polled(first_of(pending::<u8>(), pending())), Poll::Pending);
    }
}
