//! Measures: named groups of keys of an application (queues, sets and sorted sets), on which the metrics report (DUNLIN
//! MEASURE, and `measure` in the configuration).
//!
//! Changes by commands are counted as these run ([`crate::engine::exec::measures`]); the sizes of the keys are read
//! with the metrics. The label of a metric is the name of its measure, never a key. A server without measures has no
//! such state.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use crate::engine::spec::says;
use crate::engine::state::CoarseHistogram;
use crate::engine::state::kit::quoted;
use crate::engine::state::timing::Stopwatch;
use crate::value::{glob, number};

/// A set with more members than this is large: it takes long to read as a whole, to delete, or to move.
pub const LARGE_SET: u64 = 10_000;
/// The most measures.
pub const MAX_MEASURES: usize = 100;
/// The longest name of a measure, in bytes.
const LONGEST_NAME: usize = 64;

/// A kind of structure that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureKind {
    /// Elements are put into lists, or streams, and taken from them.
    Queue,
    /// Members are added once, and looked up.
    Set,
    /// Members have scores, which may be the times at which they are due.
    Zset,
}

/// The unit of scores that are times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreUnit {
    /// Unix time in seconds.
    Seconds,
    /// Unix time in milliseconds.
    Milliseconds,
}

/// The role of the keys of a pattern in a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The keys that are measured.
    Main,
    /// The keys with elements that were taken and are being processed.
    Processing,
    /// The keys with elements whose processing was given up.
    Failed,
}

/// A measure: its name, and the keys that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name, the value of its label.
    pub name: String,
    /// The kind of the structure.
    pub kind: MeasureKind,
    /// The database of its keys.
    pub database: usize,
    /// The unit of its scores, if they are times.
    pub unit: Option<ScoreUnit>,
    patterns: Vec<(Role, Box<[u8]>)>,
}

impl MeasureKind {
    const ALL: [MeasureKind; 3] = [MeasureKind::Queue, MeasureKind::Set, MeasureKind::Zset];

    /// The word for it, which is its label in lower case, too.
    pub fn name(self) -> &'static str {
        match self {
            MeasureKind::Queue => "queue",
            MeasureKind::Set => "set",
            MeasureKind::Zset => "zset",
        }
    }
}

impl Measure {
    /// The measure that these words declare: `QUEUE name key [PROCESSING key] [FAILED key]`, `SET name key`, or `ZSET
    /// name key [SECONDS|MILLISECONDS] [PROCESSING key]`, where a key may be a glob, and `DATABASE number` may follow;
    /// `database` is that of words without it. `None` for other words.
    pub fn parse<'w>(words: impl IntoIterator<Item = &'w [u8]>, database: usize) -> Option<Measure> {
        let mut words = words.into_iter();
        let (kind, name, main) = (words.next()?, words.next()?, words.next()?);
        let kind = MeasureKind::ALL.into_iter().find(|known| says(kind, known.name()))?;
        let name = std::str::from_utf8(name).ok().filter(|name| (1..=LONGEST_NAME).contains(&name.len()))?;
        let patterns = vec![(Role::Main, Box::from(main))];
        let mut measure = Measure { name: name.to_owned(), kind, database, unit: None, patterns };
        while let Some(word) = words.next() {
            match kind {
                _ if says(word, "DATABASE") => {
                    measure.database = usize::try_from(number::parse_i64(words.next()?)?).ok()?;
                }
                MeasureKind::Zset if says(word, "SECONDS") => measure.unit = Some(ScoreUnit::Seconds),
                MeasureKind::Zset if says(word, "MILLISECONDS") => measure.unit = Some(ScoreUnit::Milliseconds),
                MeasureKind::Queue | MeasureKind::Zset if says(word, "PROCESSING") => {
                    measure.patterns.push((Role::Processing, words.next()?.into()));
                }
                MeasureKind::Queue if says(word, "FAILED") => {
                    measure.patterns.push((Role::Failed, words.next()?.into()));
                }
                _ => return None,
            }
        }
        if kind == MeasureKind::Zset && measure.has(Role::Processing) {
            measure.unit.get_or_insert(ScoreUnit::Milliseconds);
        }
        Some(measure)
    }

    /// Whether it has keys in that role.
    pub fn has(&self, role: Role) -> bool {
        self.patterns.iter().any(|(known, _)| *known == role)
    }

    /// Its patterns, which are globs or the names of keys.
    pub fn patterns(&self) -> impl Iterator<Item = (Role, &[u8])> {
        self.patterns.iter().map(|(role, pattern)| (*role, &**pattern))
    }

    /// The roles that a key has for it.
    fn roles(&self, database: usize, key: &[u8]) -> impl Iterator<Item = Role> {
        let own = (database == self.database).then_some(&self.patterns).into_iter().flatten();
        own.filter(move |(_, pattern)| glob::matches(pattern, key, false)).map(|(role, _)| *role)
    }
}

impl Display for Measure {
    /// The words that declare it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind.name().to_uppercase(), quoted(self.name.as_bytes()))?;
        for (role, pattern) in &self.patterns {
            let word = match role {
                Role::Main => "",
                Role::Processing => "PROCESSING ",
                Role::Failed => "FAILED ",
            };
            write!(formatter, " {word}{}", quoted(pattern))?;
            let unit = match self.unit.filter(|_| *role == Role::Main) {
                Some(ScoreUnit::Seconds) => " SECONDS",
                Some(ScoreUnit::Milliseconds) => " MILLISECONDS",
                None => "",
            };
            formatter.write_str(unit)?;
        }
        write!(formatter, " DATABASE {}", self.database)
    }
}

/// The counts of changes to the keys of a measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasureCounts {
    /// Elements that were put into the keys of what failed.
    pub failed: u64,
    /// Elements that went back from those that are processed.
    pub requeued: u64,
    /// Members that were added.
    pub first_seen: u64,
    /// Members that were to be added and were there.
    pub duplicates: u64,
    /// Sets that grew past [`LARGE_SET`].
    pub grown_large: u64,
    /// How long requests took that took elements of a queue, looked up members of a set, or claimed members of a sorted
    /// set.
    pub latency: CoarseHistogram,
}

/// All measures.
#[derive(Debug, Default)]
pub struct Measures {
    all: Vec<(Measure, MeasureCounts)>,
    /// The commands that run, the outermost first.
    pub(in crate::engine) running: Vec<Vec<Touched>>,
    /// The changes by the outermost command, and by those within it, to the keys of each measure, by its place.
    pub(in crate::engine) changes: BTreeMap<usize, Change>,
    /// When the outermost command began.
    pub(in crate::engine) timer: Option<Stopwatch>,
}

/// A key that a running command concerns, and how long it was before.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) struct Touched {
    /// The place of the measure.
    pub(in crate::engine) measure: usize,
    pub(in crate::engine) role: Role,
    /// The database of the key.
    pub(in crate::engine) database: usize,
    /// The place of the key in the request.
    pub(in crate::engine) place: usize,
    /// Whether the command puts another value in place of that of the key.
    pub(in crate::engine) is_replaced: bool,
    pub(in crate::engine) before: KeySize,
}

/// The size of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySize {
    /// Its elements, members or entries.
    pub length: u64,
    /// Pending entries of a stream: delivered to a consumer and not acknowledged.
    pub pending: u64,
}

/// The changes by a request to the keys of a measure.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Change {
    /// Elements that were added to keys of a queue or sorted set.
    pub(in crate::engine) put: u64,
    /// Elements that a command which takes elements, such as LPOP, removed from them.
    pub(in crate::engine) taken: u64,
    /// Commands that looked up members of a set.
    pub(in crate::engine) looked_up: u64,
    /// Elements that were removed from processing keys.
    pub(in crate::engine) from_processing: u64,
    /// Elements that were added to failed keys.
    pub(in crate::engine) failed: u64,
    /// Members that were added to a set.
    pub(in crate::engine) first_seen: u64,
    /// Members that were to be added to it and were there.
    pub(in crate::engine) duplicates: u64,
    /// Sets that grew past [`LARGE_SET`] members.
    pub(in crate::engine) grown_large: u64,
}

impl Change {
    pub(in crate::engine) fn add(&mut self, other: Change) {
        self.put += other.put;
        self.taken += other.taken;
        self.looked_up += other.looked_up;
        self.from_processing += other.from_processing;
        self.failed += other.failed;
        self.first_seen += other.first_seen;
        self.duplicates += other.duplicates;
        self.grown_large += other.grown_large;
    }
}

impl Measures {
    /// Those measures; `None` if there are none.
    pub(in crate::engine) fn of(declared: &[Measure]) -> Option<Box<Measures>> {
        let all: Vec<_> = declared.iter().map(|measure| (measure.clone(), MeasureCounts::default())).collect();
        (!all.is_empty()).then(|| Box::new(Measures { all, ..Measures::default() }))
    }

    /// Adds a measure, or replaces the one of that name, which keeps its counts if it measures the same; false if there
    /// are too many.
    pub fn add(&mut self, measure: Measure) -> bool {
        let has_room = self.all.len() < MAX_MEASURES;
        match self.all.iter_mut().find(|(known, _)| known.name == measure.name) {
            Some((known, counts)) => {
                if known.kind != measure.kind {
                    *counts = MeasureCounts::default();
                }
                *known = measure;
            }
            None if has_room => self.all.push((measure, MeasureCounts::default())),
            None => return false,
        }
        true
    }

    /// Removes the measure of that name; false if there is none.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let before = self.all.len();
        self.all.retain(|(measure, _)| measure.name.as_bytes() != name);
        self.all.len() < before
    }

    /// The measures in the order in which they were declared, with their counts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Measure, &MeasureCounts)> {
        self.all.iter().map(|(measure, counts)| (measure, counts))
    }

    /// The measures that a key belongs to, by their places, with its roles.
    pub(in crate::engine) fn of_key(&self, database: usize, key: &[u8]) -> impl Iterator<Item = (usize, Role)> {
        let measures = self.all.iter().enumerate();
        measures.flat_map(move |(place, (measure, _))| measure.roles(database, key).map(move |role| (place, role)))
    }

    /// The globs of the keys of a database that belong to measures, in their order, each once.
    pub(in crate::engine) fn globs(&self, database: usize) -> Vec<&[u8]> {
        let measures = self.all.iter().map(|(measure, _)| measure).filter(|measure| measure.database == database);
        let mut globs: Vec<_> = measures.flat_map(Measure::patterns).map(|(_, pattern)| pattern).collect();
        globs.retain(|pattern| is_glob(pattern));
        globs.sort_unstable();
        globs.dedup();
        globs
    }

    /// The kind of the measure at a place.
    pub(in crate::engine) fn kind(&self, place: usize) -> Option<MeasureKind> {
        self.all.get(place).map(|(measure, _)| measure.kind)
    }

    /// Adds the changes by the outermost command, which took `elapsed_us`, to the counts.
    pub(in crate::engine) fn apply_changes(&mut self, elapsed_us: u64) {
        for (place, change) in std::mem::take(&mut self.changes) {
            let Some((_, counts)) = self.all.get_mut(place) else { continue };
            counts.failed += change.failed;
            counts.requeued += change.from_processing.min(change.put);
            counts.first_seen += change.first_seen;
            counts.duplicates += change.duplicates;
            counts.grown_large += change.grown_large;
            counts.latency.add(elapsed_us, u64::from(change.taken > 0 || change.looked_up > 0));
        }
    }
}

/// Whether a pattern may match more than the key of its name.
pub(in crate::engine) fn is_glob(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"*?[\\".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<Measure> {
        Measure::parse(line.split(' ').map(str::as_bytes), 0)
    }

    #[test]
    fn a_measure_is_written_in_the_words_that_declare_it() {
        for line in [
            "QUEUE email jobs:email DATABASE 0",
            "QUEUE email jobs:email PROCESSING jobs:email:processing FAILED jobs:email:dead DATABASE 0",
            "SET dedupe dedupe:events:* DATABASE 3",
            "ZSET board leaderboard:* DATABASE 0",
            "ZSET scheduler jobs:delayed SECONDS PROCESSING jobs:processing DATABASE 0",
        ] {
            assert_eq!(parsed(line).map(|measure| measure.to_string()).as_deref(), Some(line));
        }
        let usual = parsed("zset s a processing b").expect("it is a measure");
        assert_eq!(usual.to_string(), "ZSET s a MILLISECONDS PROCESSING b DATABASE 0");
    }

    #[test]
    fn other_words_declare_nothing() {
        let long = format!("QUEUE {} key", "n".repeat(65));
        for line in [
            "",
            "QUEUE",
            "QUEUE a",
            "LIST a b",
            "QUEUE  b",
            "SET a b PROCESSING c",
            "QUEUE a b PROCESSING",
            "QUEUE a b SECONDS",
            "ZSET a b FAILED c",
            "SET a b DATABASE",
            "SET a b DATABASE -1",
            &long,
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
        assert_eq!(Measure::parse([&b"SET"[..], b"\xff", b"key"], 0), None, "a label is UTF-8");
    }

    #[test]
    fn the_hundred_and_first_is_refused_and_a_name_is_used_once() {
        let mut measures = Measures::default();
        let named = |number: usize| parsed(&format!("SET {number} key:{number}")).expect("it is a measure");
        assert!((0..MAX_MEASURES).all(|number| measures.add(named(number))));
        assert!(!measures.add(named(MAX_MEASURES)));
        assert!(measures.add(parsed("QUEUE 7 other").expect("it is a measure")), "it replaces one");
        assert_eq!(measures.iter().len(), MAX_MEASURES);
        assert_eq!(measures.of_key(0, b"key:7").count(), 0);
        assert!(measures.remove(b"7") && !measures.remove(b"7"));
    }
}
