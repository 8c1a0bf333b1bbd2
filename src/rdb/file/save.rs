//! Writes an RDB file.
//!
//! To find a key in memory and to serialize it takes most of the time, and needs nothing but the key:
//! [`Saver::entries`] has other threads do that for batches of keys, and writes what they have serialized in the order
//! of the keys. The file is the same as with one thread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use super::{LruHint, opcode};
use crate::rdb::checksum::continued;
use crate::rdb::jobs::{Jobs, MAX_JOBS, helpers};
use crate::rdb::text::Sink;
use crate::rdb::{Writer, kind};
use crate::value::View;

/// The bytes that are gathered before they are written.
const GATHERED_BYTES: usize = 64 << 10;

/// The settings that a save follows.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `rdbcompression`: whether long texts are compressed.
    pub compresses: bool,
    /// `rdbchecksum`: whether the file ends with its checksum, and not with 0.
    pub has_checksum: bool,
    /// `rdb-version`: the version of the format, for servers that do not know the present one.
    pub version: u16,
}

/// The least number of keys that are shared among threads.
const MIN_SHARED: usize = 1 << 12;
/// The most keys of a batch that a thread serializes.
const BATCH_KEYS: usize = 1 << 10;
/// The keys of each batch until one was serialized, which tells how large these keys are.
const FIRST_BATCH_KEYS: usize = 1 << 6;
/// The most elements of a batch. A batch of keys that turn out to have more is left from there on to the thread that
/// writes, which serializes large collections in parts.
const BATCH_ELEMENTS: usize = 1 << 14;
/// The bytes that count as an element.
const ELEMENT_BYTES: usize = 64;

/// A key to be saved.
#[derive(Clone, Copy, Debug)]
pub struct SavedKey<'k> {
    /// The key.
    pub key: &'k [u8],
    /// Its value.
    pub view: View<'k>,
    /// Its deadline, in unix milliseconds.
    pub deadline_ms: Option<i64>,
    /// How recently or how often it was accessed, if that is saved.
    pub hint: Option<LruHint>,
}

/// Writes an RDB file, part by part, in the order of the methods.
#[derive(Debug)]
pub struct Saver<W> {
    writer: Writer,
    output: Output<W>,
}

/// Where the file goes, and what is known of its bytes so far.
#[derive(Debug)]
struct Output<W> {
    checksum: Option<u64>,
    out: W,
    written_bytes: u64,
}

impl<W: io::Write> Saver<W> {
    /// Begins a file with its magic.
    pub fn begin(out: W, options: Options) -> Saver<W> {
        let mut writer = Writer::in_parts(options.compresses, options.version, GATHERED_BYTES);
        writer.out.extend_from_slice(format!("REDIS{:04}", options.version).as_bytes());
        let checksum = options.has_checksum.then_some(0);
        Saver { writer, output: Output { checksum, out, written_bytes: 0 } }
    }

    /// Adds a fact about the server.
    pub fn aux(&mut self, name: &str, value: &str) {
        self.writer.byte(opcode::AUX);
        self.writer.text(name.as_bytes());
        self.writer.text(value.as_bytes());
    }

    /// Adds a library of functions.
    ///
    /// # Errors
    /// That of the output.
    pub fn function(&mut self, source: &[u8]) -> io::Result<()> {
        self.writer.byte(opcode::FUNCTION);
        self.writer.text(source);
        self.writer.pass_on(&mut |gathered| self.output.take(gathered))
    }

    /// Begins a database of which the number of keys is not known.
    pub fn select(&mut self, number: u64) {
        self.writer.byte(opcode::DATABASE);
        self.writer.length(number);
    }

    /// Begins a database with that many keys, of which some have deadlines.
    pub fn database(&mut self, number: usize, keys: usize, deadlines: usize) {
        self.select(number as u64);
        self.writer.byte(opcode::SIZES);
        self.writer.length(keys as u64);
        self.writer.length(deadlines as u64);
    }

    /// Adds a key.
    ///
    /// # Errors
    /// That of the output; or the version of the file has no form for the value.
    pub fn entry(&mut self, saved: SavedKey<'_>) -> io::Result<()> {
        self.writer.entry(saved, &mut |gathered| self.output.take(gathered))
    }

    /// Adds `count` keys, which are known by handles, and which `read` finds. Where they are many and the machine has
    /// the processors, other threads read and serialize them. `on_key` is called for each, and may end it with an
    /// error.
    ///
    /// # Errors
    /// Those of [`Saver::entry`] and of `on_key`.
    pub fn entries<'k, H: Send, K: Iterator<Item = SavedKey<'k>> + Send>(
        &mut self,
        count: usize,
        handles: impl Iterator<Item = H>,
        read: impl Fn(Vec<H>) -> K + Sync,
        on_key: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let helpers = if count < MIN_SHARED { 0 } else { helpers() };
        let batches =
            Batches { jobs: Jobs::new(), read, compresses: self.writer.compresses, version: self.writer.version };
        thread::scope(|scope| {
            let _closes = CloseOnDrop(&batches.jobs);
            for _ in 0..helpers {
                // If there can be no thread, this one serializes everything.
                let helper = thread::Builder::new().name("dunlin-save".to_owned());
                drop(helper.spawn_scoped(scope, || batches.jobs.help(|batch| batches.serialize(batch))));
            }
            self.add_batches(&batches, handles, on_key)
        })
    }

    fn add_batches<'k, H, K: Iterator<Item = SavedKey<'k>>>(
        &mut self,
        batches: &Batches<'k, H, K, impl Fn(Vec<H>) -> K>,
        mut handles: impl Iterator<Item = H>,
        mut on_key: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut length = FIRST_BATCH_KEYS;
        self.output.take(&mut self.writer.out)?;
        loop {
            let batch: Vec<H> = handles.by_ref().take(length).collect();
            let is_last = batch.len() < length;
            batches.jobs.push(batch);
            let most = if is_last { 0 } else { MAX_JOBS - 1 };
            while batches.jobs.len() > most
                && let Some(serialized) = batches.jobs.next(|batch| batches.serialize(batch))
            {
                length = self.add_batch(serialized?, &mut on_key)?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Writes a batch; returns how many keys like these the next ones should have.
    fn add_batch<'k>(
        &mut self,
        mut batch: Serialized<'k, impl Iterator<Item = SavedKey<'k>>>,
        on_key: &mut impl FnMut() -> io::Result<()>,
    ) -> io::Result<usize> {
        (0..batch.keys).try_for_each(|_| on_key())?;
        self.output.take(&mut batch.bytes)?;
        for saved in batch.first_left.into_iter().chain(batch.left) {
            on_key()?;
            batch.keys += 1;
            batch.elements += number_of_elements(saved.view);
            self.entry(saved)?;
        }
        self.output.take(&mut self.writer.out)?;
        // Half, as the next keys may have some elements more.
        let length = BATCH_ELEMENTS / 2 * batch.keys / batch.elements.max(1);
        Ok(length.clamp(1, BATCH_KEYS))
    }

    /// Ends the file; returns the output, and the file's length in bytes.
    ///
    /// # Errors
    /// That of the output.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.writer.byte(opcode::END);
        let mut output = self.output;
        output.take(&mut self.writer.out)?;
        let checksum = output.checksum.unwrap_or(0);
        output.out.write_all(&checksum.to_le_bytes())?;
        output.out.flush()?;
        Ok((output.out, output.written_bytes + size_of_val(&checksum) as u64))
    }
}

impl Writer {
    /// Appends a key with its value, passing on what was written in between.
    fn entry(&mut self, saved: SavedKey<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        let kind = self.kind_of(saved.view);
        if kind::version(kind) > self.version {
            return Err(without_form(saved.key, self.version));
        }
        if let Some(deadline_ms) = saved.deadline_ms {
            self.byte(opcode::DEADLINE_MS);
            self.moment(deadline_ms);
        }
        match saved.hint {
            Some(LruHint::Idle(seconds)) => {
                self.byte(opcode::IDLE);
                self.length(seconds.cast_unsigned());
            }
            Some(LruHint::Frequency(count)) => {
                self.byte(opcode::FREQUENCY);
                self.byte(count);
            }
            None => {}
        }
        self.byte(kind);
        self.text(saved.key);
        self.value_in_parts(saved.view, sink)?;
        self.pass_on(sink)
    }
}

/// Makes the threads that help end when the thread that takes the results is done, even if it panics.
struct CloseOnDrop<'j, J, R>(&'j Jobs<J, R>);

impl<J, R> Drop for CloseOnDrop<'_, J, R> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Batches of keys, each a job whose result is written.
struct Batches<'k, H, K, R> {
    jobs: Jobs<Vec<H>, io::Result<Serialized<'k, K>>>,
    read: R,
    compresses: bool,
    version: u16,
}

/// A batch that was serialized, as far as it has no more than [`BATCH_ELEMENTS`].
struct Serialized<'k, K> {
    bytes: Vec<u8>,
    /// The number of keys in the bytes, and of their elements.
    keys: usize,
    elements: usize,
    /// The first key that is not in the bytes, and those behind it.
    first_left: Option<SavedKey<'k>>,
    left: K,
}

impl<'k, H, K: Iterator<Item = SavedKey<'k>>, R: Fn(Vec<H>) -> K> Batches<'k, H, K, R> {
    fn serialize(&self, handles: Vec<H>) -> io::Result<Serialized<'k, K>> {
        let serialize = || {
            let mut writer = Writer::in_parts(self.compresses, self.version, usize::MAX);
            let (mut left, mut keys, mut elements) = ((self.read)(handles), 0, 0);
            for saved in left.by_ref() {
                let more = number_of_elements(saved.view);
                if elements + more > BATCH_ELEMENTS {
                    return Ok(Serialized { bytes: writer.out, keys, elements, first_left: Some(saved), left });
                }
                writer.entry(saved, &mut |_| Ok(()))?;
                keys += 1;
                elements += more;
            }
            Ok(Serialized { bytes: writer.out, keys, elements, first_left: None, left })
        };
        catch_unwind(AssertUnwindSafe(serialize)).unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
    }
}

/// The number of elements of a value, a large one counting as several.
fn number_of_elements(view: View<'_>) -> usize {
    let (elements, bytes) = match view {
        View::Text(text) => (0, text.len()),
        View::List(list) => (list.len(), list.memory()),
        View::Set(set) => (set.len(), set.memory()),
        View::Hash(hash) => (hash.len(), hash.cell_bytes()),
        View::Zset(zset) => (zset.len(), zset.memory()),
        View::Stream(stream) => (stream.log().len(), stream.memory()),
        View::VectorSet(set) => (set.len(), set.memory()),
    };
    elements.max(bytes / ELEMENT_BYTES)
}

/// The reason why a file cannot have a key: a hash with deadlines of fields is all that older versions lack.
fn without_form(key: &[u8], version: u16) -> io::Error {
    let key = key.escape_ascii();
    io::Error::other(format!(
        "version {version} of the RDB format has no hashes with fields that expire, as '{key}' is"
    ))
}

impl<W: io::Write> Output<W> {
    /// Writes the bytes that have been gathered, and clears them.
    fn take(&mut self, gathered: &mut Vec<u8>) -> io::Result<()> {
        if let Some(checksum) = &mut self.checksum {
            *checksum = continued(*checksum, gathered);
        }
        self.out.write_all(gathered)?;
        self.written_bytes += gathered.len() as u64;
        gathered.clear();
        gathered.shrink_to(2 * GATHERED_BYTES);
        Ok(())
    }
}
