//! Panics end what they happen in, and nothing else: a task of the server that panics is logged and begun anew.
//!
//! No panic is known that could be reached. Should there be one, it ends the one connection in which it happens, which
//! tokio sees to; the tasks and threads that everybody depends on go on by what stands here.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tracing::error;

/// How long a task that panicked waits before it begins anew, so that one that does so at once leaves others time.
const PAUSE: Duration = Duration::from_millis(100);

/// What `act` answers; nothing if it panics, which is logged as a fault of `who`.
pub(super) fn contain<T>(who: &str, act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).inspect_err(|panic| tell(who, panic.as_ref())).ok()
}

/// Runs a future; a panic in it ends it without a result, and is logged.
pub(super) async fn contain_async<T>(who: &str, task: impl Future<Output = T>) -> Option<T> {
    let mut task = pin!(task);
    poll_fn(|cx| match contain(who, || task.as_mut().poll(cx)) {
        Some(Poll::Pending) => Poll::Pending,
        Some(Poll::Ready(result)) => Poll::Ready(Some(result)),
        None => Poll::Ready(None),
    })
    .await
}

/// Runs a task until it ends; it is begun anew whenever it panics.
pub(super) async fn keep_running<Task: Future<Output = ()>>(who: &str, mut begin: impl FnMut() -> Task) {
    while contain_async(who, begin()).await.is_none() {
        tokio::time::sleep(PAUSE).await;
    }
}

fn tell(who: &str, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    error!("a fault in {who}, which goes on: {text}");
}

/// Panics that tests ask for.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct Faults(parking_lot::Mutex<Vec<&'static str>>);

#[cfg(test)]
impl Faults {
    /// Has the next one who comes by that point panic.
    pub(super) fn add(&self, point: &'static str) {
        self.0.lock().push(point);
    }

    /// Whether somebody has panicked there since.
    pub(super) fn has_happened(&self, point: &str) -> bool {
        !self.0.lock().contains(&point)
    }

    /// Panics if that is asked for here.
    pub(super) fn happen(&self, point: &str) {
        let mut points = self.0.lock();
        if let Some(place) = points.iter().position(|asked| *asked == point) {
            points.remove(place);
            drop(points);
            panic!("a panic at the {point}, as asked for");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::engine::Settings;
    use crate::server::clock::Clock;
    use crate::server::run::{Plan, Server};
    use crate::server::shared::Shared;

    /// What a server answers to a request, or the beginning of it.
    fn ask(address: SocketAddr, request: &str, answer: &str) {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time can be set");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut got = vec![0; answer.len()];
        stream.read_exact(&mut got).expect("it answers");
        assert_eq!(String::from_utf8_lossy(&got), answer);
    }

    /// Has a server serve while `act` looks at it.
    fn served(act: impl FnOnce(&Shared, SocketAddr)) {
        let settings = Settings { port: 0, ..Settings::default() };
        let (clock, config_file) = (Clock::system(), String::new());
        let plan = Plan { settings, tcp: true, clock, seed: 1, repeats: true, config_file };
        let server = Server::open(plan).expect("there is a free port");
        let (shared, address) = (Arc::clone(server.shared()), server.addresses()[0]);
        let serving = thread::spawn(move || server.serve());
        act(&shared, address);
        shared.stop();
        serving.join().expect("it ends");
    }

    #[test]
    fn the_keeper_of_time_goes_on_after_a_panic() {
        served(|shared, address| {
            shared.faults().add("timer");
            for _ in 0..2 {
                ask(address, "BLPOP queue 0.001\r\n", "*-1\r\n");
            }
            assert!(shared.faults().has_happened("timer"));
        });
    }

    #[test]
    fn clients_are_let_in_after_a_panic() {
        served(|shared, address| {
            shared.faults().add("listener");
            // The one in whose place it panicked sees his connection close.
            let mut lost = TcpStream::connect(address).expect("it listens");
            assert!(matches!(lost.read(&mut [0; 1]), Ok(0) | Err(_)));
            assert!(shared.faults().has_happened("listener"));
            ask(address, "PING\r\n", "+PONG\r\n");
        });
    }

    #[test]
    fn subscribers_hear_messages_after_a_panic() {
        const SUBSCRIBERS: usize = 200;
        served(|shared, address| {
            let subscribe = |_| {
                let mut stream = TcpStream::connect(address).expect("it listens");
                stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time can be set");
                stream.write_all(b"SUBSCRIBE news\r\n").expect("it reads");
                stream.read_exact(&mut [0; 33]).expect("it answers");
                stream
            };
            let mut subscribers: Vec<TcpStream> = (0..SUBSCRIBERS).map(subscribe).collect();
            shared.faults().add("deliveries");
            ask(address, "PUBLISH news hello\r\n", ":200\r\n");
            for subscriber in &mut subscribers {
                subscriber.read_exact(&mut [0; 38]).expect("the message comes");
            }
            assert!(shared.faults().has_happened("deliveries"));
        });
    }

    #[test]
    fn what_panics_has_no_result() {
        assert_eq!(contain("a test", || 1), Some(1));
        assert_eq!(contain::<()>("a test", || panic!("as asked for")), None);
    }
}
