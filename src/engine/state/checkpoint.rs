//! A checkpoint: the data of a server at a moment, to be saved as an RDB file while the server goes on.
//!
//! It shares the data with the databases ([`crate::keyspace::FrozenDatabase`]), so taking it costs microseconds, and it
//! may be written on another thread. It knows nothing of files: whoever writes it has one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::aof::rewrite::Rewriter;
use crate::engine::spec::{Now, REDIS_VERSION};
use crate::engine::state::replication::History;
use crate::engine::state::{FileSettings, RdbParts, Settings, lru};
use crate::keyspace::{FrozenDatabase, FrozenKey};
use crate::rdb::file::{LruHint, Options, SavedKey, Saver};

/// The data of a server at a moment.
#[derive(Debug)]
pub struct Checkpoint {
    id: u64,
    databases: Vec<FrozenDatabase>,
    libraries: Vec<Arc<[u8]>>,
    options: Options,
    usage: Usage,
    now: Now,
    used_bytes: usize,
    /// Whether it is the base of an append-only file.
    is_base: bool,
    /// Whether a client waits until it is written.
    pub(in crate::engine) is_awaited: bool,
    /// The point in the history of the data that the file tells, for a client that follows it (SYNC).
    history: Option<History>,
    /// The number of keys that were written, for INFO.
    pub(in crate::engine) saved_keys: Arc<AtomicUsize>,
}

/// The threads that serialize the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// That of the caller.
    One,
    /// That of the caller, and some others where the machine has the processors.
    Several,
}

/// The use of keys as it is saved: what the eviction policy in force goes by.
#[derive(Clone, Copy, Debug)]
enum Usage {
    Nothing,
    Idle,
    Frequency { decay_minutes: u32 },
}

impl Checkpoint {
    /// A checkpoint of these databases, and of the sources of libraries.
    pub(in crate::engine) fn new(
        id: u64,
        databases: Vec<FrozenDatabase>,
        libraries: Vec<Arc<[u8]>>,
        settings: &Settings,
        now: Now,
        used_bytes: usize,
    ) -> Checkpoint {
        let usage = match () {
            () if settings.policy.counts_uses() => Usage::Frequency { decay_minutes: settings.lfu.decay_minutes },
            () if settings.policy.is_lru() => Usage::Idle,
            () => Usage::Nothing,
        };
        let files = &settings.files;
        let options =
            Options { compresses: files.compresses, has_checksum: files.has_checksum, version: files.rdb_version };
        Checkpoint {
            id,
            databases,
            libraries,
            options,
            usage,
            now,
            used_bytes,
            is_base: false,
            is_awaited: false,
            history: None,
            saved_keys: Arc::default(),
        }
    }

    /// This checkpoint as the base of an append-only file.
    pub(in crate::engine) fn into_base(self) -> Checkpoint {
        Checkpoint { is_base: true, ..self }
    }

    /// This checkpoint with its point in the history of the data.
    pub fn with_history(self, history: History) -> Checkpoint {
        Checkpoint { history: Some(history), ..self }
    }

    /// This checkpoint with those of its parts only.
    pub fn of_parts(mut self, parts: RdbParts) -> Checkpoint {
        if !parts.keys {
            self.databases.clear();
        }
        if !parts.functions {
            self.libraries.clear();
        }
        self
    }

    /// Whether a client waits until it is written (SAVE).
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// The number of the save, counted from 1; it tells apart those that are stopped from those that replace them.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.databases.iter().map(FrozenDatabase::len).sum()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys that were written so far.
    pub fn saved_keys(&self) -> usize {
        self.saved_keys.load(Ordering::Relaxed)
    }

    /// Writes it as an RDB file, and returns the file's length in bytes. `on_key` is called for each key, and may end
    /// it with an error.
    ///
    /// # Errors
    /// That of the output, or of `on_key`.
    pub fn write(&self, out: impl io::Write, on_key: impl FnMut() -> io::Result<()>) -> io::Result<u64> {
        self.write_by(Threads::One, out, on_key)
    }

    /// Like [`Checkpoint::write`], by several threads, as somebody waits for it.
    ///
    /// # Errors
    /// That of the output, or of `on_key`.
    pub fn write_in_parallel(&self, out: impl io::Write, on_key: impl FnMut() -> io::Result<()>) -> io::Result<u64> {
        self.write_by(Threads::Several, out, on_key)
    }

    fn write_by(
        &self,
        threads: Threads,
        out: impl io::Write,
        mut on_key: impl FnMut() -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut saver = Saver::begin(out, self.options);
        saver.aux("redis-ver", REDIS_VERSION);
        saver.aux("redis-bits", &usize::BITS.to_string());
        saver.aux("ctime", &self.now.unix_s().to_string());
        saver.aux("used-mem", &self.used_bytes.to_string());
        if let Some(History { id, offset }) = self.history {
            // The stream begins in the first database.
            saver.aux("repl-stream-db", "0");
            saver.aux("repl-id", &id.to_string());
            saver.aux("repl-offset", &offset.to_string());
        }
        saver.aux("aof-base", if self.is_base { "1" } else { "0" });
        for library in &self.libraries {
            saver.function(library)?;
        }
        for (number, database) in self.databases.iter().enumerate().filter(|(_, database)| !database.is_empty()) {
            saver.database(number, database.len(), database.volatile_len());
            let mut count = || {
                self.saved_keys.fetch_add(1, Ordering::Relaxed);
                on_key()
            };
            match threads {
                Threads::One => {
                    for key in database.keys() {
                        saver.entry(self.saved(key))?;
                        count()?;
                    }
                }
                Threads::Several => {
                    let read = |handles| database.keys_of(handles).map(|key| self.saved(key));
                    saver.entries(database.len(), database.handles(), read, count)?;
                }
            }
        }
        Ok(saver.finish()?.1)
    }

    /// A key as it is saved.
    fn saved<'k>(&self, FrozenKey { key, view, deadline_ms, access }: FrozenKey<'k>) -> SavedKey<'k> {
        SavedKey { key, view, deadline_ms, hint: self.usage.of(access, self.now) }
    }

    /// Writes it as the base of an append-only file, as the settings want it: as an RDB file, or as commands
    /// (`aof-use-rdb-preamble`).
    ///
    /// # Errors
    /// That of the output, or of `on_key`.
    pub fn write_base(
        &self,
        out: impl io::Write,
        files: &FileSettings,
        on_key: impl FnMut() -> io::Result<()>,
    ) -> io::Result<u64> {
        if files.has_rdb_base {
            self.write(out, on_key)
        } else {
            self.write_commands(out, files.has_timestamps, on_key)
        }
    }

    /// Writes it as commands, the base of an append-only file with `aof-use-rdb-preamble no`; otherwise like
    /// [`Checkpoint::write`]. `has_timestamp` is `aof-timestamp-enabled`.
    ///
    /// # Errors
    /// That of the output, or of `on_key`.
    pub fn write_commands(
        &self,
        out: impl io::Write,
        has_timestamp: bool,
        mut on_key: impl FnMut() -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut rewriter = Rewriter::begin(out, has_timestamp.then(|| self.now.unix_s()));
        for library in &self.libraries {
            rewriter.function(library)?;
        }
        for (number, database) in self.databases.iter().enumerate().filter(|(_, database)| !database.is_empty()) {
            rewriter.select(number);
            for entry in database.keys() {
                rewriter.entry(entry.key, entry.view, entry.deadline_ms)?;
                self.saved_keys.fetch_add(1, Ordering::Relaxed);
                on_key()?;
            }
        }
        Ok(rewriter.finish()?.1)
    }
}

impl Usage {
    /// The hint that is saved for the access bits of a key.
    fn of(self, access: u32, now: Now) -> Option<LruHint> {
        match self {
            Usage::Nothing => None,
            Usage::Idle => Some(LruHint::Idle(lru::idle_s(access, now))),
            Usage::Frequency { decay_minutes } => Some(LruHint::Frequency(lru::frequency(access, now, decay_minutes))),
        }
    }
}
