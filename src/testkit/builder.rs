//! The builder of a server: sets its options before it starts.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use thiserror::Error;

use super::{Disk, Server};
use crate::config::{self, Assigned};
use crate::engine::cluster::MAX_NODES;
use crate::engine::state::host::Facts;
use crate::engine::state::kit::DiskFaults;
use crate::engine::{Permission, Settings};
use crate::server::clock::{Clock, from_system, system_time};
use crate::server::faulty_storage::FaultyStorage;
use crate::server::loading::{self, Source};
use crate::server::os_storage::OsStorage;
use crate::server::run::Plan;
use crate::storage::Storage;

/// Sets the options of a [`Server`] before it starts.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// let server = dunlin::Server::builder().password("secret").databases(1).frozen_at(SystemTime::UNIX_EPOCH).start()?;
/// assert_eq!(server.now(), SystemTime::UNIX_EPOCH);
/// # Ok::<(), dunlin::StartError>(())
/// ```
#[derive(Debug)]
#[must_use = "a server runs when `start` is called"]
pub struct Builder {
    settings: Settings,
    frozen_at: Option<SystemTime>,
    seed: Option<u64>,
    data: Option<Source>,
    disk: Option<Disk>,
    fault: Option<StartError>,
}

/// The reason why a server could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no parameter of this name.
    #[error("there is no setting '{0}'")]
    UnknownSetting(String),
    /// The parameter cannot have this value.
    #[error("the setting '{name}' cannot be '{value}': {reason}")]
    InvalidSetting {
        /// The name of the parameter.
        name: String,
        /// The value that was given.
        value: String,
        /// The reason.
        reason: String,
    },
    /// The data to start with cannot be loaded.
    #[error("{file}: {reason}")]
    Data {
        /// The path of the file, or `the bytes`.
        file: String,
        /// The reason, with the offset and the key.
        reason: String,
    },
    /// The system refused to listen at this address, or to start a thread.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Default for Builder {
    fn default() -> Builder {
        let bind = vec!["127.0.0.1".to_owned()];
        let settings = Settings { port: 0, bind, test_kit: true, ..Settings::default() };
        Builder { settings, frozen_at: None, seed: None, data: None, disk: None, fault: None }
    }
}

impl Builder {
    /// Sets the TCP port on 127.0.0.1. By default the system chooses a free port.
    pub fn port(mut self, port: u16) -> Builder {
        self.settings.port = port;
        self
    }

    /// Adds a Unix socket.
    pub fn unix_socket(mut self, path: impl AsRef<Path>) -> Builder {
        self.settings.unix_socket = path.as_ref().display().to_string();
        self
    }

    /// Sets the number of the cluster's primaries.
    pub(super) fn primaries(mut self, count: u16) -> Builder {
        self.settings.start_cluster(count.clamp(1, MAX_NODES as u16));
        self
    }

    /// Sets the number of replicas of each primary of a cluster ([`Server::cluster`](super::Server::cluster)), none by
    /// default. They are the nodes behind the primaries: of three primaries with one replica each, node 3 is that of
    /// node 0. All nodes together are at most 1000, or the server does not start.
    pub fn replicas(mut self, count: u16) -> Builder {
        self.settings.cluster_mut().replicas = count;
        self
    }

    /// Sets the number of databases, 16 by default; 0 counts as 1.
    pub fn databases(mut self, count: usize) -> Builder {
        self.settings.databases = count.max(1);
        self
    }

    /// Sets the password that clients need.
    pub fn password(mut self, password: impl Into<String>) -> Builder {
        self.settings.password = password.into();
        self
    }

    /// Starts with the clock frozen at the present time until [`Server::advance`](super::World::advance) moves it.
    pub fn frozen(self) -> Builder {
        self.frozen_at(system_time())
    }

    /// Starts with the clock frozen at `time` until [`Server::advance`](super::World::advance) moves it.
    pub fn frozen_at(mut self, time: SystemTime) -> Builder {
        self.frozen_at = Some(time);
        self
    }

    /// Sets the seed of the random generator: with an equal seed, equal commands at equal times get equal replies.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = Some(seed);
        self
    }

    /// Returns this builder with a seed, chosen by `choose` if it has none, and the seed.
    pub(super) fn seeded(self, choose: impl FnOnce() -> u64) -> (Builder, u64) {
        let seed = self.seed.unwrap_or_else(choose);
        (Builder { seed: Some(seed), ..self }, seed)
    }

    /// Starts with the data of a file: a `dump.rdb` of Redis or Valkey, the text of [`World::dump`], or an append-only
    /// file, as its folder, its manifest or one file of commands. It is only read. With `.set("dir", ..)`, data that
    /// the server has saved there itself come first.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("dunlin-doc-{}.txt", std::process::id()));
    /// std::fs::write(&path, "SET greeting hello\n")?;
    /// let server = dunlin::Server::builder().load(&path).start()?;
    /// assert_eq!(server.client()?.call(["GET", "greeting"])?, "hello");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`World::dump`]: super::World::dump
    pub fn load(mut self, path: impl AsRef<Path>) -> Builder {
        self.data = Some(Source::File(path.as_ref().to_owned()));
        self
    }

    /// Like [`Builder::load`], with the contents of the file as bytes.
    pub fn load_bytes(mut self, bytes: impl Into<Arc<[u8]>>) -> Builder {
        self.data = Some(Source::Bytes(bytes.into()));
        self
    }

    /// Keeps the files of the data on a simulated disk, and not on that of the machine. Data to start with are read
    /// from it, too.
    pub fn disk(mut self, disk: &Disk) -> Builder {
        Arc::make_mut(&mut self.settings.files).loads_at_start = true;
        self.disk = Some(disk.clone());
        self
    }

    /// Serves the page for the browser, and the metrics for Prometheus, on this port of the loopback interface; 0 for
    /// one that the system picks. [`Server::page_url`] has the address. Needs the feature `page`.
    ///
    /// When a test stops, its keys, its commands and its clock can be inspected there.
    ///
    /// ```
    /// let server = dunlin::Server::builder().page(0).start()?;
    /// server.client()?.call(["SET", "greeting", "hello"])?;
    /// println!("look at {}", server.page_url().unwrap_or_default());
    /// // To stop here, wait for a line: std::io::stdin().read_line(&mut String::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "page")]
    pub fn page(mut self, port: u16) -> Builder {
        self.settings.process_mut().page.port = Some(port);
        self
    }

    /// Allows the DEBUG command.
    pub fn allow_debug(mut self) -> Builder {
        self.settings.debug_command = Permission::Yes;
        self
    }

    /// Sets any parameter of `redis.conf`, for example `.set("zset-max-listpack-entries", "64")`. [`Builder::start`]
    /// fails if the name or value is invalid.
    pub fn set(mut self, name: &str, value: &str) -> Builder {
        if let Err(fault) = assign(&mut self.settings, name, value) {
            self.fault.get_or_insert(fault);
        }
        self
    }

    /// Starts the server. When this returns, clients can connect.
    ///
    /// # Errors
    /// [`StartError`]: a parameter that does not exist, an invalid value, or a port or path that is not available.
    pub fn start(self) -> Result<Server, StartError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let clock = self.frozen_at.map_or_else(Clock::system, |time| Clock::frozen(from_system(time)));
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let is_deterministic = self.seed.is_some();
        let settings = self.settings;
        let (inner, faults): (Arc<dyn Storage>, _) = match &self.disk {
            Some(disk) => (disk.attach(&settings.directory), disk.faults().for_next_server()),
            None => (Arc::new(OsStorage), DiskFaults::default()),
        };
        let (storage, disk_faults) = (FaultyStorage::over(inner, faults.clone()), Some(faults));
        let data = loading::source_at_start(&*storage, &settings, self.data);
        let (facts, files) = (Facts::default(), Arc::clone(&storage));
        let plan = Plan { settings, tcp: true, clock, seed, is_deterministic, facts, storage: files, disk_faults };
        let server = Server::run(plan)?;
        let loaded = loading::load_before_clients(server.shared(), &*storage, data);
        loaded.map_err(|(file, reason)| StartError::Data { file, reason })?;
        #[cfg(feature = "page")]
        let server = server.with_page()?;
        Ok(server)
    }
}

fn assign(settings: &mut Settings, name: &str, value: &str) -> Result<(), StartError> {
    let Some((parameter, _)) = config::find(name) else { return Err(StartError::UnknownSetting(name.to_owned())) };
    let reason = match parameter.assign_text(settings, value) {
        Ok(Assigned::InForce) => return Ok(()),
        Ok(Assigned::Differs { actual, .. }) => format!("this server behaves as with '{actual}'"),
        Err(reason) => reason,
    };
    Err(StartError::InvalidSetting { name: name.to_owned(), value: value.to_owned(), reason })
}

#[cfg(all(test, feature = "page"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;
    use crate::server::clock::monotonic_us;

    /// What a page sends to a client that sends no more than the beginning of a request, until it gives up.
    fn answer(request: impl Fn(&str, &str) -> String) -> String {
        let timeout = Duration::from_millis(50);
        let mut builder = Server::builder().page(0);
        builder.settings.process_mut().page.request_timeout = timeout;
        let server = builder.start().expect("it starts");
        let url = server.page_url().expect("it has a page");
        let (address, token) = url.trim_start_matches("http://").split_once("/#token=").expect("it has a token");
        let began_us = monotonic_us();
        let mut client = TcpStream::connect(address).expect("it listens");
        client.write_all(request(address, token).as_bytes()).expect("it reads");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it ends the connection");
        let elapsed = Duration::from_micros(monotonic_us() - began_us);
        assert!(elapsed >= timeout, "it waits as long as that");
        answer
    }

    #[test]
    fn a_request_whose_head_does_not_arrive_has_no_answer() {
        assert_eq!(answer(|address, _| format!("GET / HTTP/1.1\r\nHost: {address}\r\n")), "");
    }

    #[test]
    fn a_request_whose_body_does_not_arrive_is_answered_408() {
        let answer = answer(|address, token| {
            let headers = format!("Host: {address}\r\nX-Dunlin: {token}\r\nContent-Type: application/json");
            format!("POST /command HTTP/1.1\r\n{headers}\r\nContent-Length: 100\r\n\r\n{{\"commands\":")
        });
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("The body did not arrive."), "{answer}");
    }
}
