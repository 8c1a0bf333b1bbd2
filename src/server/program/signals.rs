//! The end of the process by signals (SIGINT, SIGTERM) or requests of the program itself: the first one shuts the
//! server down cleanly, the second one ends the process at once, whatever it is doing.
//!
//! They are received on a thread of their own, which never waits long for the engine's lock: so they also end a server
//! that hangs in a script or in a long command. The save that comes before the end has another thread, and the second
//! signal makes it fail, which leaves the file of the save before. Only the `dunlin` program has these threads; a
//! program that embeds a server handles signals itself.
//!
//! While DEBUG PAUSE-CRON is in force, the shutdown is postponed, and SHUTDOWN ABORT cancels it: the next signal then
//! counts as the first one.

use std::future;
use std::io;
use std::pin::pin;
use std::process;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tracing::{info, warn};

use super::log;
use crate::engine::Settings;
use crate::engine::exec::persistence::ShutdownOptions;
use crate::server::background_saver;
use crate::server::contain::contain;
use crate::server::first_of::first_of;
use crate::server::shared::Shared;

/// The exit code of the process at the second signal, as in Redis.
const INSISTED: i32 = 1;
/// The time that callers which must not hang (signals) wait for the engine's lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
/// The time that a save has to remove its temporary file at the second signal.
const REMOVAL_TIMEOUT: Duration = Duration::from_millis(500);
/// The time between two attempts to get it.
const RETRY: Duration = Duration::from_millis(20);

/// Asks the signal thread to end the server, as a signal does.
#[derive(Clone, Debug)]
pub(super) struct ShutdownRequests(UnboundedSender<&'static str>);

impl ShutdownRequests {
    /// Asks for the end, for a reason that the log shows: the second time is like the second signal.
    pub(super) fn send(&self, why: &'static str) {
        // The signal thread ends with the process only.
        let _ = self.0.send(why);
    }
}

/// Starts the thread that ends the server on signals and requests.
///
/// # Errors
/// When the system has no thread or no descriptor for it.
pub(super) fn end_when_signalled(shared: Arc<Shared>) -> io::Result<ShutdownRequests> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let signals = {
        let _entered = runtime.enter();
        Signals::new()
    };
    let (sender, requests) = mpsc::unbounded_channel();
    let mut receiver = Receiver { shared, requests, asked: None, is_waiting: false, shutdown: None };
    thread::Builder::new().name("dunlin-signals".to_owned()).spawn(move || receiver.receive(&runtime, signals))?;
    Ok(ShutdownRequests(sender))
}

/// The state of the signal thread.
struct Receiver {
    shared: Arc<Shared>,
    requests: UnboundedReceiver<&'static str>,
    /// The signal that has asked the server to end.
    asked: Option<Signal>,
    /// The engine's lock could not be taken, so the shutdown is to be tried again.
    is_waiting: bool,
    /// The thread of the shutdown that was begun, which tells whether the server ends.
    shutdown: Option<JoinHandle<bool>>,
}

/// A reason for the process to end: a signal, or a request.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Interrupt,
    #[cfg(unix)]
    Terminate,
    Request(&'static str),
}

impl Signal {
    /// The line of the log.
    fn received(self) -> String {
        match self {
            Signal::Interrupt => "Received SIGINT".to_owned(),
            #[cfg(unix)]
            Signal::Terminate => "Received SIGTERM".to_owned(),
            Signal::Request(why) => format!("{why},"),
        }
    }

    /// The options of SHUTDOWN that the settings have for it (`shutdown-on-sigint`, `shutdown-on-sigterm`). A request
    /// is like a SIGTERM.
    fn options(self, settings: &Settings) -> ShutdownOptions {
        let words = match self {
            Signal::Interrupt => &settings.process.on_sigint,
            #[cfg(unix)]
            Signal::Terminate => &settings.process.on_sigterm,
            Signal::Request(_) => &settings.process.on_sigterm,
        };
        let has = |option| words.split(' ').any(|word| word == option);
        ShutdownOptions { saves: has("save"), skips_save: has("nosave"), is_forced: has("force") }
    }
}

impl Receiver {
    fn receive(&mut self, runtime: &Runtime, mut signals: Signals) {
        loop {
            contain("the signal thread", || {
                let signal = async { Some(signals.next().await) };
                let requests = &mut self.requests;
                let request = async {
                    match requests.recv().await {
                        Some(why) => Some(Signal::Request(why)),
                        None => future::pending().await,
                    }
                };
                let retry = async {
                    if self.is_waiting {
                        tokio::time::sleep(RETRY).await
                    } else {
                        future::pending().await
                    }
                    None
                };
                let next = async { first_of(pin!(signal), pin!(request)).await };
                match runtime.block_on(async { first_of(pin!(next), pin!(retry)).await }) {
                    Some(signal) => self.handle(signal),
                    None => self.try_to_stop(),
                }
            });
        }
    }

    fn handle(&mut self, signal: Signal) {
        if self.shutdown.as_ref().is_some_and(JoinHandle::is_finished) {
            let ends = self.shutdown.take().is_some_and(|thread| thread.join().unwrap_or(true));
            self.asked = self.asked.filter(|_| ends);
        }
        if self.asked.is_some() && (self.is_waiting || !is_shutdown_called_off(&self.shared)) {
            warn!("You insist... exiting now.");
            background_saver::stop_all_in_process(REMOVAL_TIMEOUT);
            log::flush();
            process::exit(INSISTED);
        }
        self.asked = Some(signal);
        info!("{} scheduling shutdown...", signal.received());
        self.try_to_stop();
    }

    /// Ends the server because of a signal, after the data were saved if they are to be. While DEBUG PAUSE-CRON is in
    /// force, the shutdown is only recorded, and done when that is over. Waits for the engine's lock no longer than
    /// [`LOCK_TIMEOUT`]: after that, a server that has nothing to save ends all the same, and another tries again.
    fn try_to_stop(&mut self) {
        let Some(signal) = self.asked else { return };
        let engine = self.shared.engine.try_lock_for(LOCK_TIMEOUT);
        self.is_waiting = engine.is_none() && self.shared.saves_at_end();
        let Some(mut engine) = engine else {
            if !self.is_waiting {
                self.shared.stop();
            }
            return;
        };
        if engine.switches.cron_paused {
            engine.persistence.shutdown.is_pending = true;
            return;
        }
        if engine.scripts.is_busy() && self.shared.saves_at_end() {
            // As in Redis, the data are saved when the script has ended.
            self.is_waiting = true;
            return;
        }
        let options = signal.options(&engine.settings);
        drop(engine);
        let shared = Arc::clone(&self.shared);
        let run = move || shut_down(&shared, options);
        match thread::Builder::new().name("dunlin-shutdown".to_owned()).spawn(run) {
            Ok(thread) => self.shutdown = Some(thread),
            // Without a thread for it, the second signal waits.
            Err(_) if shut_down(&self.shared, options) => {}
            Err(_) => self.asked = None,
        }
    }
}

/// Saves the data if they are to be, and stops the server. Returns false if that fails, and the server goes on.
fn shut_down(shared: &Shared, options: ShutdownOptions) -> bool {
    let ends = contain("the shutdown", || shared.save_and_stop(options)).unwrap_or(false);
    if !ends {
        warn!("Errors trying to shut down the server. Check the logs for more information.");
    }
    ends
}

/// Whether a shutdown that a signal asked for was cancelled (SHUTDOWN ABORT). Waits for the engine's lock no longer
/// than [`LOCK_TIMEOUT`].
fn is_shutdown_called_off(shared: &Shared) -> bool {
    let is_pending =
        || shared.engine.try_lock_for(LOCK_TIMEOUT).is_none_or(|engine| engine.persistence.shutdown.is_pending);
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

    /// Waits for the next signal.
    async fn next(&mut self) -> Signal {
        match &mut self.signals {
            Ok([interrupt, terminate]) => {
                let received = async |stream: &mut tokio::signal::unix::Signal, signal| {
                    stream.recv().await;
                    signal
                };
                first_of(pin!(received(interrupt, Signal::Interrupt)), pin!(received(terminate, Signal::Terminate)))
                    .await
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

    /// Waits for the next signal.
    async fn next(&mut self) -> Signal {
        if let Err(error) = tokio::signal::ctrl_c().await {
            warn!("cannot receive signals: {error}");
            future::pending().await
        }
        Signal::Interrupt
    }
}
