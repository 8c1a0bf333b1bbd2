//! The queue of log lines that are still to be written to a pipe or a terminal. A thread of their own writes them, so a
//! pipe that nobody reads blocks only that thread.
//!
//! Lines wait in order, at most [`MAX_BYTES`] of them. A line that does not fit is dropped and counted, and a line
//! reports the count once there is room again: a server that waited for its log would stop serving as soon as its
//! reader stops, such as one that only wanted the first line.
//!
//! Only the program has a log, so only the program has this thread, and only where the log is no file.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The most bytes of lines that wait.
const MAX_BYTES: usize = 1 << 20;

/// The queue of lines, and the thread that writes them.
#[derive(Clone, Debug)]
pub(super) struct LogQueue(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Notified when there is something to write.
    arrived: Condvar,
    /// Notified when everything was written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// The number of lines that did not fit since the last report.
    dropped: u64,
    is_writing: bool,
}

impl Waiting {
    fn has_any(&self) -> bool {
        !self.lines.is_empty() || self.dropped > 0
    }

    fn add(&mut self, line: &[u8]) {
        if self.bytes + line.len() > MAX_BYTES {
            self.dropped += 1;
            return;
        }
        self.bytes += line.len();
        self.lines.push_back(line.into());
    }
}

impl LogQueue {
    /// Starts the thread that writes to `output`. `drop_notice` makes the line that reports how many were dropped.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(
        output: impl Write + Send + 'static,
        drop_notice: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<LogQueue> {
        let queue = Arc::new(Queue::default());
        let of_thread = Arc::clone(&queue);
        thread::Builder::new()
            .name("dunlin-log".to_owned())
            .spawn(move || of_thread.write_all_to(output, drop_notice))?;
        Ok(LogQueue(queue))
    }

    /// Adds a line.
    pub(super) fn add(&self, line: &[u8]) {
        self.0.waiting.lock().add(line);
        self.0.arrived.notify_one();
    }

    /// Waits until all lines are written, but no longer than `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let mut waiting = self.0.waiting.lock();
        // Lines not written by then are lost; there is nowhere to report it.
        let _ = self.0.written.wait_while_for(&mut waiting, |waiting| waiting.has_any() || waiting.is_writing, limit);
    }
}

impl Queue {
    fn write_all_to(&self, mut output: impl Write, drop_notice: impl Fn(u64) -> String) {
        loop {
            let mut waiting = self.waiting.lock();
            self.arrived.wait_while(&mut waiting, |waiting| !waiting.has_any());
            let Waiting { lines, dropped, .. } =
                mem::replace(&mut *waiting, Waiting { is_writing: true, ..Waiting::default() });
            drop(waiting);
            let notice = (dropped > 0).then(|| drop_notice(dropped).into_bytes().into());
            for line in lines.into_iter().chain(notice) {
                // There is nowhere to report that the log cannot be written.
                let _ = output.write_all(&line);
            }
            let _ = output.flush();
            self.waiting.lock().is_writing = false;
            self.written.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    /// An output that takes one line each time it is opened.
    struct Gate {
        lines: mpsc::Sender<String>,
        opened: mpsc::Receiver<()>,
    }

    impl Write for Gate {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.opened.recv().map_err(io::Error::other)?;
            self.lines.send(String::from_utf8_lossy(line).into_owned()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn queue() -> (LogQueue, mpsc::Sender<()>, mpsc::Receiver<String>) {
        let ((lines, written), (open, opened)) = (mpsc::channel(), mpsc::channel());
        let queue =
            LogQueue::start(Gate { lines, opened }, |count| format!("{count} dropped")).expect("a thread starts");
        (queue, open, written)
    }

    #[test]
    fn lines_are_written_in_their_order_and_flushing_waits_for_them() {
        let (queue, open, written) = queue();
        for line in ["one", "two", "three"] {
            queue.add(line.as_bytes());
            open.send(()).expect("the thread runs");
        }
        queue.flush(TIMEOUT);
        assert_eq!(written.try_iter().collect::<Vec<_>>(), ["one", "two", "three"]);
    }

    #[test]
    fn lines_that_do_not_fit_are_dropped_and_counted_without_waiting() {
        let (queue, open, written) = queue();
        let line = "x".repeat(MAX_BYTES / 4);
        // Some of the first may have been taken by the thread, which waits with them.
        for _ in 0..20 {
            queue.add(line.as_bytes());
        }
        queue.flush(Duration::ZERO);
        (0..30).for_each(|_| open.send(()).expect("the thread runs"));
        queue.flush(TIMEOUT);
        let lines: Vec<String> = written.try_iter().collect();
        let dropped = lines.last().and_then(|last| last.strip_suffix(" dropped")).expect("it says how many");
        let dropped: usize = dropped.parse().expect("it is a number");
        assert_eq!(lines.len() - 1 + dropped, 20);
        assert!(dropped >= 12, "{dropped}");
    }
}
