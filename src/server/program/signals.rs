//! Signals that end the process (SIGINT, SIGTERM): the first one shuts the server down cleanly, the second one ends the
//! process at once, whatever it is doing.
//!
//! They are received on a thread of their own, which holds no lock and never waits long for the engine's: so they also
//! end a server that hangs in a script or in a long command. Only the `dunlin` program has this thread; a program that
//! embeds a server handles signals itself.
//!
//! While DEBUG PAUSE-CRON is in force, the shutdown is postponed, and SHUTDOWN ABORT cancels it: the next signal then
//! counts as the first one.

use std::future;
use std::io;
use std::pin::pin;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tracing::{info, warn};

use super::log;
use crate::server::contain::contain;
use crate::server::race::first_of;
use crate::server::shared::Shared;

/// The exit code of the process at the second signal, as in Redis.
const INSISTED: i32 = 1;
/// The time that callers which must not hang (signals) wait for the engine's lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// Starts the thread that ends the server on signals.
///
/// # Errors
/// When the system has no thread or no descriptor for it.
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

/// The state of the signal thread.
struct Receiver {
    shared: Arc<Shared>,
    /// Whether a signal has asked the server to end.
    was_asked: bool,
}

impl Receiver {
    fn receive(&mut self, runtime: &Runtime, mut signals: Signals) {
        loop {
            contain("the signal thread", || {
                let name = runtime.block_on(signals.next());
                self.obey(name);
            });
        }
    }

    fn obey(&mut self, name: &str) {
        if self.was_asked && !is_shutdown_called_off(&self.shared) {
            warn!("You insist... exiting now.");
            log::flush();
            process::exit(INSISTED);
        }
        self.was_asked = true;
        info!("Received {name} scheduling shutdown...");
        stop_or_postpone(&self.shared);
    }
}

/// Ends the server because of a signal. While DEBUG PAUSE-CRON is in force, the shutdown is only recorded, and done
/// when that is over. Waits for the engine's lock no longer than [`LOCK_TIMEOUT`].
fn stop_or_postpone(shared: &Shared) {
    match shared.engine.try_lock_for(LOCK_TIMEOUT) {
        Some(mut engine) if engine.switches.cron_paused => engine.switches.shutdown_pending = true,
        _ => shared.stop(),
    }
}

/// Whether a shutdown that a signal asked for was cancelled (SHUTDOWN ABORT). Waits for the engine's lock no longer
/// than [`LOCK_TIMEOUT`].
fn is_shutdown_called_off(shared: &Shared) -> bool {
    let is_pending = || shared.engine.try_lock_for(LOCK_TIMEOUT).is_none_or(|engine| engine.switches.shutdown_pending);
    !shared.is_ending() && !is_pending()
}

/// The stream of signals. From its creation on, signals no longer end the process by themselves.
#[cfg(unix)]
struct Signals {
    signals: io::Result<[tokio::signal::unix::Signal; 2]>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Signals {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = || signal(SignalKind::terminate());
        // The end of the terminal must not end the server, as in Redis. Catching SIGHUP once disables its default.
        drop(signal(SignalKind::hangup()));
        Signals { signals: signal(SignalKind::interrupt()).and_then(|interrupt| Ok([interrupt, terminate()?])) }
    }

    /// Waits for the next signal, and returns its name.
    async fn next(&mut self) -> &'static str {
        match &mut self.signals {
            Ok([interrupt, terminate]) => {
                let named = async |signal: &mut tokio::signal::unix::Signal, name| {
                    signal.recv().await;
                    name
                };
                first_of(pin!(named(interrupt, "SIGINT")), pin!(named(terminate, "SIGTERM"))).await
            }
            Err(error) => {
                warn!("cannot receive signals: {error}");
                future::pending().await
            }
        }
    }
}

/// The stream of signals: on other systems only Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Signals {
        Signals
    }

    /// Waits for the next signal, and returns its name.
    async fn next(&mut self) -> &'static str {
        if let Err(error) = tokio::signal::ctrl_c().await {
            warn!("cannot receive signals: {error}");
            future::pending().await
        }
        "SIGINT"
    }
}
