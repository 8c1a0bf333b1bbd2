//! Containment of panics: a task of the server that panics is logged and restarted.
//!
//! No reachable panic is known. Should there be one in a connection, tokio ends that connection only; this module keeps
//! the tasks and threads running that every client depends on.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tracing::error;

/// The pause before a task that panicked is restarted, so that one that panics at once again leaves time for others.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs `act`, and returns its result; `None` if it panics, which is logged with the name `who`.
pub(super) fn contain<T>(who: &str, act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).inspect_err(|panic| log_panic(who, panic.as_ref())).ok()
}

/// Runs a future, and returns its result; `None` if it panics, which is logged with the name `who`.
pub(super) async fn contain_async<T>(who: &str, task: impl Future<Output = T>) -> Option<T> {
    let mut task = pin!(task);
    poll_fn(|cx| match contain(who, || task.as_mut().poll(cx)) {
        Some(Poll::Pending) => Poll::Pending,
        Some(Poll::Ready(result)) => Poll::Ready(Some(result)),
        None => Poll::Ready(None),
    })
    .await
}

/// Runs a task until it ends; restarts it, after [`PAUSE`], whenever it panics.
pub(super) async fn keep_running<Task: Future<Output = ()>>(who: &str, mut begin: impl FnMut() -> Task) {
    while contain_async(who, begin()).await.is_none() {
        tokio::time::sleep(PAUSE).await;
    }
}

fn log_panic(who: &str, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    error!("panic in {who}, which continues: {text}");
}

/// Panics that tests ask for.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct TestPanics(parking_lot::Mutex<Vec<&'static str>>);

#[cfg(test)]
impl TestPanics {
    /// Makes the next task that reaches `point` panic.
    pub(super) fn add(&self, point: &'static str) {
        self.0.lock().push(point);
    }

    /// Whether a task has panicked at `point` since then.
    pub(super) fn has_panicked(&self, point: &str) -> bool {
        !self.0.lock().contains(&point)
    }

    /// Panics if a test has ordered a panic at `point`.
    pub(super) fn panic_if_ordered(&self, point: &str) {
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
    use crate::engine::state::host::Facts;
    use crate::server::clock::Clock;
    use crate::server::os_storage::OsStorage;
    use crate::server::run::{Plan, Server};
    use crate::server::shared::Shared;

    /// Sends a request to a server, and checks the beginning of its reply.
    fn ask(address: SocketAddr, request: &str, answer: &str) {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time can be set");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut got = vec![0; answer.len()];
        stream.read_exact(&mut got).expect("it answers");
        assert_eq!(String::from_utf8_lossy(&got), answer);
    }

    /// Runs `act` while a server serves.
    fn with_server(act: impl FnOnce(&Shared, SocketAddr)) {
        let settings = Settings { port: 0, ..Settings::default() };
        let (clock, facts) = (Clock::system(), Facts::default());
        let storage = Arc::new(OsStorage);
        let plan =
            Plan { settings, tcp: true, clock, seed: 1, is_deterministic: true, facts, storage, disk_faults: None };
        let server = Server::open(plan).expect("there is a free port");
        let (shared, address) = (Arc::clone(server.shared()), server.addresses()[0]);
        let serving = thread::spawn(move || server.serve());
        act(&shared, address);
        shared.stop();
        serving.join().expect("it ends");
    }

    #[test]
    fn the_timer_continues_after_a_panic() {
        with_server(|shared, address| {
            shared.test_panics().add("timer");
            for _ in 0..2 {
                ask(address, "BLPOP queue 0.001\r\n", "*-1\r\n");
            }
            assert!(shared.test_panics().has_panicked("timer"));
        });
    }

    #[test]
    fn clients_are_accepted_after_a_panic() {
        with_server(|shared, address| {
            shared.test_panics().add("listener");
            // The client that was being accepted is disconnected.
            let mut lost = TcpStream::connect(address).expect("it listens");
            assert!(matches!(lost.read(&mut [0; 1]), Ok(0) | Err(_)));
            assert!(shared.test_panics().has_panicked("listener"));
            ask(address, "PING\r\n", "+PONG\r\n");
        });
    }

    #[test]
    fn subscribers_receive_messages_after_a_panic() {
        const SUBSCRIBERS: usize = 200;
        with_server(|shared, address| {
            let subscribe = |_| {
                let mut stream = TcpStream::connect(address).expect("it listens");
                stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time can be set");
                stream.write_all(b"SUBSCRIBE news\r\n").expect("it reads");
                stream.read_exact(&mut [0; 33]).expect("it answers");
                stream
            };
            let mut subscribers: Vec<TcpStream> = (0..SUBSCRIBERS).map(subscribe).collect();
            shared.test_panics().add("deliveries");
            ask(address, "PUBLISH news hello\r\n", ":200\r\n");
            for subscriber in &mut subscribers {
                subscriber.read_exact(&mut [0; 38]).expect("the message comes");
            }
            assert!(shared.test_panics().has_panicked("deliveries"));
        });
    }

    #[test]
    fn a_function_that_panics_has_no_result() {
        assert_eq!(contain("a test", || 1), Some(1));
        assert_eq!(contain::<()>("a test", || panic!("as asked for")), None);
    }
}
