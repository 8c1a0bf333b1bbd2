//! A real `redis-server` as a process of the test: started on a free port, in a folder of its own, ended with the test.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A `redis-server` process of our own; it ends with this value.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    folder: PathBuf,
}

impl Process {
    /// Starts `program` on a free port of 127.0.0.1, without persistence, and waits until it listens.
    pub(crate) fn start(program: &Path) -> io::Result<Self> {
        Self::start_with(program, &[])
    }

    /// The same with more arguments. A port that was free a moment ago may be somebody else's when the server wants
    /// it, so it is tried with several.
    pub(crate) fn start_with(program: &Path, arguments: &[&str]) -> io::Result<Self> {
        const FURTHER_TRIES: usize = 4;
        let try_once = || Self::start_somewhere(program, arguments);
        (0..FURTHER_TRIES).fold(try_once(), |tried, _| tried.or_else(|_| try_once()))
    }

    fn start_somewhere(program: &Path, arguments: &[&str]) -> io::Result<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("dunlin-oracle-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let child = Command::new(program)
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--enable-debug-command", "yes", "--logfile", "log"])
            .args(arguments)
            .arg("--dir")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let mut process = Self { child, address, folder };
        process.wait_until_it_listens()?;
        Ok(process)
    }

    /// It says so in its log. Who answers at its port may be another one.
    fn wait_until_it_listens(&mut self) -> io::Result<()> {
        for _ in 0..6000 {
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if log.contains("Ready to accept connections") {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("the real server ended with {status}: {log}")));
            }
            wait(Duration::from_millis(10));
        }
        Err(io::Error::other("the real server does not listen"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, after SHUTDOWN: nothing is left to do then.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Lets real time pass.
#[expect(clippy::disallowed_methods, reason = "the clock of a real server cannot be moved, only waited for")]
pub(crate) fn wait(time: Duration) {
    std::thread::sleep(time);
}
