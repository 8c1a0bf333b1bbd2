//! Signals that ask the process to end (SIGINT, SIGTERM): the first one ends the server in order, the second one ends
//! the process, whatever it does.
//!
//! They are received on a thread of their own, which holds no lock and waits for nobody longer than a moment: a server
//! that hangs, in a script or in a long command, is ended by them like any other. Only the `dunlin` program has this
//! thread; what a signal means to a program that embeds a server is that program's business.
//!
//! A server that does nothing by itself (DEBUG PAUSE-CRON) ends later, and SHUTDOWN ABORT calls that off: the next
//! signal is the first one again.

use std::future;
use std::io;
use std::process;
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tracing::{info, warn};

use super::contain::contain;
use super::log;
use super::shared::Shared;

/// What the process ends with at the second signal, as in Redis.
const INSISTED: i32 = 1;

/// Has signals end the server from now on.
///
/// # Errors
/// When the system has no thread or no descriptor for that.
pub(super) fn end_when_signalled(shared: Arc<Shared>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let signals = {
        let _entered = runtime.enter();
        Signals::new()
    };
    let mut receiver = Receiver { shared, was_asked: false };
    thread::Builder::new().name("dunlin-signals".to_owned()).spawn(move || receiver.receive(&runtime, signals))?;
    Ok(())
}

/// What obeys the signals.
struct Receiver {
    shared: Arc<Shared>,
    /// A signal has asked the server to end.
    was_asked: bool,
}

impl Receiver {
    fn receive(&mut self, runtime: &Runtime, mut signals: Signals) {
        loop {
            contain("what receives signals", || {
                let name = runtime.block_on(signals.next());
                self.obey(name);
            });
        }
    }

    fn obey(&mut self, name: &str) {
        if self.was_asked && !self.shared.is_shutdown_called_off() {
            warn!("You insist... exiting now.");
            log::flush();
            process::exit(INSISTED);
        }
        self.was_asked = true;
        info!("Received {name} scheduling shutdown...");
        self.shared.stop_or_note();
    }
}

/// What asks the process to end. From its making on, signals do not end it at once.
#[cfg(unix)]
struct Signals {
    signals: io::Result<[tokio::signal::unix::Signal; 2]>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Signals {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = || signal(SignalKind::terminate());
        // A terminal that goes is not our end, as in Redis. What is caught once never has its usual effect again.
        drop(signal(SignalKind::hangup()));
        Signals { signals: signal(SignalKind::interrupt()).and_then(|interrupt| Ok([interrupt, terminate()?])) }
    }

    /// The name of the next one that comes.
    async fn next(&mut self) -> &'static str {
        match &mut self.signals {
            Ok([interrupt, terminate]) => tokio::select! {
                _ = interrupt.recv() => "SIGINT",
                _ = terminate.recv() => "SIGTERM",
            },
            Err(error) => {
                warn!("signals cannot be received: {error}");
                future::pending().await
            }
        }
    }
}

/// What asks the process to end.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Signals {
        Signals
    }

    /// The name of the next one that comes.
    async fn next(&mut self) -> &'static str {
        if let Err(error) = tokio::signal::ctrl_c().await {
            warn!("signals cannot be received: {error}");
            future::pending().await
        }
        "SIGINT"
    }
}
