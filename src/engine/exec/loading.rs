//! Loading an RDB file into an engine: at its start, for DEBUG RELOAD and for the test kit.
//!
//! Keys go straight into the databases, past the commands: nothing is counted as a change, notified or propagated. The
//! caller decides how much is loaded at a time, so clients can be told meanwhile that the server is loading.

use std::io::Read;
use std::ops::Range;

use crate::engine::Engine;
use crate::engine::exec::scripts::load;
use crate::engine::state::{Effect, LoadCounts, lru};
use crate::keyspace::New;
use crate::rdb;
use crate::rdb::file::{Checksum, Entry, Fault, Loaded, Loader, Record};
use crate::value::text::TextView;

/// The most collections without elements that the log names.
const NAMED_EMPTY: u64 = 10;
/// The seconds by which another machine's clock may be ahead of this one's without being named.
const MOST_AHEAD_S: i64 = 60;
/// The number of texts that are stored together, and the most bytes that each has with its key.
const GATHERED: usize = 16;
const GATHERED_BYTES: usize = 512;

/// A file that is being loaded.
#[derive(Debug)]
pub struct Load<R> {
    loader: Loader<R>,
    progress: Progress,
}

/// How far a load is, and what it has found.
#[derive(Debug, Default)]
struct Progress {
    /// Whether keys and libraries replace present ones of the same name.
    replaces: bool,
    /// The database of the next keys.
    database: usize,
    /// How many keys the file says that database has; 0 if it does not.
    expected: usize,
    counts: LoadCounts,
    used_bytes: u64,
    lines: Vec<String>,
    /// Texts that are not stored yet.
    batch: Batch,
    /// The bytes of the file before the record that is being taken.
    offset: u64,
    /// The text of a batch that was refused: the bytes before its record, and its key.
    refused: Option<(u64, Vec<u8>)>,
}

impl<R: Read> Load<R> {
    /// Begins to load a file; `verifies` says whether its checksum is looked at.
    ///
    /// # Errors
    /// It is no RDB file.
    pub fn begin(source: R, verifies: bool) -> Result<Load<R>, Fault> {
        Ok(Load { loader: Loader::open(source, verifies)?, progress: Progress::default() })
    }

    /// Lets keys and libraries replace present ones of the same name, which otherwise make the load fail.
    #[must_use]
    pub fn replacing(mut self, replaces: bool) -> Load<R> {
        self.progress.replaces = replaces;
        self
    }

    /// Loads the next part of the file into the databases of an engine; false at the end.
    ///
    /// # Errors
    /// Why the file cannot be loaded, and where. What was loaded before stays.
    pub fn step(&mut self, engine: &mut Engine) -> Result<bool, Fault> {
        let (forms, progress) = (engine.settings.forms(), &mut self.progress);
        progress.offset = self.loader.offset();
        let taken = self.loader.next(&forms, |record| progress.take(engine, record));
        taken.map_err(|fault| match progress.refused.take() {
            Some((offset, key)) => Fault { offset, key: Some(key), kind: Some(rdb::TEXT), ..fault },
            None => fault,
        })
    }

    /// Loads the whole file into the databases of an engine, and returns what was counted.
    ///
    /// # Errors
    /// Why the file cannot be loaded, and where. What was loaded before stays.
    pub fn finish(mut self, engine: &mut Engine) -> Result<LoadCounts, Fault> {
        while self.step(engine)? {}
        Ok(self.progress.counts)
    }

    /// The bytes behind the file, which was loaded to its end, with their offset.
    pub fn into_rest(self) -> (impl Read + use<R>, u64) {
        self.loader.into_rest()
    }

    /// The counts so far.
    pub fn counts(&self) -> LoadCounts {
        self.progress.counts
    }

    /// The bytes of the file that were loaded.
    pub fn offset(&self) -> u64 {
        self.loader.offset()
    }

    /// The memory that the data took when the file was written, or 0 if it does not say.
    pub fn used_bytes(&self) -> u64 {
        self.progress.used_bytes
    }

    /// Takes the lines for the log.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.progress.lines)
    }
}

impl Engine {
    /// Ends the loading of a file: commands that need the data are served from now on, and keys expire.
    pub fn end_load(&mut self, counts: LoadCounts) {
        self.persistence.loading = None;
        self.persistence.loaded = counts;
        // Counting the keys as changes moves the deadlines that the timer knows; they do not need to be saved.
        self.stats.changes += counts.keys;
        self.persistence.forget_changes(self.stats.changes - counts.unsaved);
    }
}

/// Short texts that are stored together, so that the reads of the places where their keys go overlap.
#[derive(Debug, Default)]
struct Batch {
    /// The keys and texts, one behind the other.
    bytes: Vec<u8>,
    entries: Vec<Gathered>,
}

/// A key with a text in a batch.
#[derive(Clone, Debug)]
struct Gathered {
    key: Range<usize>,
    text: Range<usize>,
    metadata: Metadata,
    /// The bytes of the file before its record.
    offset: u64,
}

/// The attributes of a key beside its value.
#[derive(Clone, Copy, Debug)]
struct Metadata {
    deadline_ms: Option<i64>,
    access: u32,
}

impl Batch {
    fn add(&mut self, key: &[u8], text: &[u8], metadata: Metadata, offset: u64) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.entries.push(Gathered { key: start..middle, text: middle..self.bytes.len(), metadata, offset });
    }
}

impl Progress {
    fn take(&mut self, engine: &mut Engine, record: Record<'_>) -> Result<(), String> {
        if !matches!(record, Record::Entry(_)) {
            self.store_batch(engine)?;
        }
        match record {
            Record::Aux(name, value) => self.note(engine, &name, &value),
            Record::Function(source) => load::load_saved_library(engine, &source, self.replaces)?,
            Record::Database(number) => {
                self.expect(engine, 0);
                let count = engine.databases.count();
                let found = usize::try_from(number).ok().filter(|&number| number < count);
                self.database = found.ok_or_else(|| {
                    format!(
                        "FATAL: Data file was created with a Redis server configured to handle more than {count} \
                         databases. Exiting"
                    )
                })?;
            }
            Record::Entry(entry) => self.add(engine, entry)?,
            Record::Sizes(keys, _) => {
                // Files of a cluster tell the sizes of the slots, too.
                let keys = usize::try_from(keys).unwrap_or(usize::MAX);
                self.expect(engine, keys.max(self.expected));
            }
            Record::End(checksum) => {
                self.expect(engine, 0);
                if matches!(checksum, Checksum::Disabled) {
                    self.lines.push("RDB file was saved with checksum disabled: no check performed.".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Announces how many keys the present database will have; 0 for no more.
    fn expect(&mut self, engine: &mut Engine, keys: usize) {
        self.expected = keys;
        engine.databases.get_mut(self.database).expect(keys);
    }

    /// Notes a fact about the server that wrote the file.
    fn note(&mut self, engine: &Engine, name: &[u8], value: &[u8]) {
        let shown = String::from_utf8_lossy(value);
        let number = shown.parse::<i64>().unwrap_or(0);
        let age_s = engine.now().unix_s().saturating_sub(number);
        if name == b"ctime" && age_s < -MOST_AHEAD_S {
            let ahead_s = age_s.unsigned_abs();
            let line =
                format!("It was saved {ahead_s} seconds ahead of this server's clock: deadlines keep their times");
            self.lines.push(line);
        }
        self.lines.push(match name {
            b"redis-ver" => format!("Loading RDB produced by version {shown}"),
            b"valkey-ver" => format!("Loading RDB produced by Valkey version {shown}"),
            b"ctime" => format!("RDB age {} seconds", age_s.max(0)),
            b"used-mem" => {
                self.used_bytes = number.max(0).cast_unsigned();
                format!("RDB memory usage when created {:.2} Mb", self.used_bytes as f64 / f64::from(1 << 20))
            }
            name if name.starts_with(b"%") => format!("RDB '{}': {shown}", String::from_utf8_lossy(name)),
            _ => return,
        });
    }

    fn add(&mut self, engine: &mut Engine, entry: Entry<'_>) -> Result<(), String> {
        if matches!(entry.value, Loaded::Empty) {
            self.skip_empty(&entry.key);
            return Ok(());
        }
        let now = engine.now();
        if entry.deadline_ms.is_some_and(|deadline_ms| deadline_ms < engine.timing.past_ms()) {
            self.counts.expired += 1;
            return Ok(());
        }
        let access = lru::initial(entry.hint, &engine.settings, now);
        let metadata = Metadata { deadline_ms: entry.deadline_ms, access };
        match entry.value {
            Loaded::Text(text) if entry.key.len() + text.len() <= GATHERED_BYTES => {
                self.batch.add(&entry.key, &text, metadata, self.offset);
                if self.batch.entries.len() < GATHERED { Ok(()) } else { self.store_batch(engine) }
            }
            Loaded::Text(text) => self.store(engine, &entry.key, New::Text(TextView::of(&text)), metadata),
            Loaded::Value(value) => self.store(engine, &entry.key, New::Value(value), metadata),
            Loaded::Empty => Ok(()),
        }
    }

    /// Stores the gathered texts.
    fn store_batch(&mut self, engine: &mut Engine) -> Result<(), String> {
        let mut batch = std::mem::take(&mut self.batch);
        let keys = batch.entries.iter().map(|entry| &batch.bytes[entry.key.clone()]);
        engine.databases.get(self.database).prefetch(keys);
        for Gathered { key, text, metadata, offset } in batch.entries.drain(..) {
            let (key, value) = (&batch.bytes[key], New::Text(TextView::of(&batch.bytes[text])));
            self.store(engine, key, value, metadata).inspect_err(|_| self.refused = Some((offset, key.to_vec())))?;
        }
        batch.bytes.clear();
        self.batch = batch;
        Ok(())
    }

    fn store(&mut self, engine: &mut Engine, key: &[u8], value: New<'_>, metadata: Metadata) -> Result<(), String> {
        let data = engine.databases.get_mut(self.database);
        match data.find(key) {
            Some(handle) if self.replaces => {
                let lazy_free = data.delete(handle);
                if lazy_free.takes_long() {
                    engine.effects.push(Effect::Free(lazy_free.alone()));
                }
            }
            Some(_) => {
                let (key, database) = (String::from_utf8_lossy(key), self.database);
                return Err(format!("RDB has duplicated key '{key}' in DB {database}"));
            }
            None => {}
        }
        let handle = data.insert(key, value);
        let handle = data.set_deadline(handle, metadata.deadline_ms);
        data.set_access(handle, metadata.access);
        self.counts.keys += 1;
        Ok(())
    }

    fn skip_empty(&mut self, key: &[u8]) {
        self.counts.empty += 1;
        if self.counts.empty <= NAMED_EMPTY {
            self.lines.push(format!("rdbLoadObject skipping empty key: {}", String::from_utf8_lossy(key)));
        }
    }
}
